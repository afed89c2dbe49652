"""Test a convolution kernel of your own against the oracle: `check_op(function, op)` tries hundreds of problems.

>>> import convgrad
>>> check_op(convgrad.conv2d, "conv2d", problems=30).ok
True
"""

from ._check.implementation import load as implementation
from ._check.report import Finding, Report, Row
from ._check.run import check_op

__all__ = ["Finding", "Report", "Row", "check_op", "implementation"]
