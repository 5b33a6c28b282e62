"""Keys, and an empty home, for the tests of what is sealed and signed."""

from tests.helpers.seals import home as home
from tests.helpers.seals import keys as keys
from tests.helpers.seals import no_threads_left as no_threads_left
