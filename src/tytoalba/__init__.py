"""tytoalba: where a sound comes from, learned direction by direction, without keeping anyone's audio.

>>> import tytoalba
>>> array = tytoalba.load_array("pepper")
>>> array.n_pairs, array.max_lag
(6, 25)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tytoalba.errors import ArrayError as ArrayError
    from tytoalba.errors import AudioError as AudioError
    from tytoalba.errors import DataError as DataError
    from tytoalba.errors import MissingExtraError as MissingExtraError
    from tytoalba.errors import TytoError as TytoError
    from tytoalba.errors import TytoWarning as TytoWarning
    from tytoalba.gcc import GccPhat as GccPhat
    from tytoalba.gcc import gcc_phat as gcc_phat
    from tytoalba.geometry import MicArray as MicArray
    from tytoalba.geometry import builtin_arrays as builtin_arrays
    from tytoalba.geometry import import_odas as import_odas
    from tytoalba.geometry import load_array as load_array
    from tytoalba.localizer import Localizer as Localizer
    from tytoalba.locating import Located as Located
    from tytoalba.locating import locate as locate
    from tytoalba.music import Music as Music
    from tytoalba.srp import SrpPhat as SrpPhat
    from tytoalba.srp import srp_phat as srp_phat

__version__ = "0.1.0"

# Public names and their rooms. They are fetched when first asked for, so that `import tytoalba` and
# `tyto --help` do not wait for numpy.
_ROOMS = {
    "ArrayError": "errors",
    "AudioError": "errors",
    "DataError": "errors",
    "GccPhat": "gcc",
    "Located": "locating",
    "Localizer": "localizer",
    "MicArray": "geometry",
    "MissingExtraError": "errors",
    "Music": "music",
    "SrpPhat": "srp",
    "TytoError": "errors",
    "TytoWarning": "errors",
    "builtin_arrays": "geometry",
    "gcc_phat": "gcc",
    "import_odas": "geometry",
    "load_array": "geometry",
    "locate": "locating",
    "srp_phat": "srp",
}
__all__ = ["__version__", *_ROOMS]


def __getattr__(name: str) -> object:
    if name not in _ROOMS:
        raise AttributeError(f"module 'tytoalba' has no attribute {name!r}")
    return getattr(import_module(f"tytoalba.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
