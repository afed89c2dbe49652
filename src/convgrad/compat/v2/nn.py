"""The objects of `convgrad.nn`, where TensorFlow shows them too."""

from ...nn import *
from ...nn import __all__
