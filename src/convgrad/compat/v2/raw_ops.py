"""The objects of `convgrad.raw_ops`, where TensorFlow shows them too."""

from ...raw_ops import *
from ...raw_ops import __all__
