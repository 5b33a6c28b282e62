"""tytoalba: where a sound comes from, learned direction by direction, without keeping anyone's audio.

>>> import tytoalba
>>> array = tytoalba.load_array("pepper")
>>> array.n_pairs, array.max_lag
(6, 25)
"""

import lazy_loader

__version__ = "0.1.0"

# The public names are in __init__.pyi. They are fetched when first asked for, so that `import tytoalba`
# and `tyto --help` do not wait for numpy.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
