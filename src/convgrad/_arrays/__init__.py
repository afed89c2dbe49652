"""Arrays in: what callers pass becomes a NumPy array.

`ndarray` is the one array type inside the house. A framework's adapter is a module beside `numpy.py` that borrows the
framework's memory as an `ndarray` without a copy. Nothing here knows plans or kernels.
"""

from .holding import hold, pin
from .numpy import borrow, borrow_any, contiguous

__all__ = ["borrow", "borrow_any", "contiguous", "hold", "pin"]
