from . import errors as errors
from .data.simulation.recordings import simulate as simulate
from .learning.method import Method as Method
from .learning.method import Task as Task
from .learning.methods import METHODS as METHODS
from .learning.methods.contract import check_method as check_method
from .live.segments import Segment as Segment
from .live.tracker import Track as Track
from .live.tracker import Tracker as Tracker
from .live.tracking import Following as Following
from .live.tracking import track as track
from .localizer.localizer import Localizer as Localizer
from .localizer.locate import locate as locate
from .localizer.store import open_store as open_store
from .localizer.stream import Located as Located
from .signal import metrics as metrics
from .signal.array import MicArray as MicArray
from .signal.array import builtin_arrays as builtin_arrays
from .signal.array import import_odas as import_odas
from .signal.array import load_array as load_array
from .signal.gcc import GccPhat as GccPhat
from .signal.gcc import gcc_phat as gcc_phat
from .signal.music import Music as Music
from .signal.srp import SrpPhat as SrpPhat
from .signal.srp import srp_phat as srp_phat

__all__: list[str]
__version__: str
