"""Test a convolution kernel of your own against the oracle: `check_op(function, op)` tries hundreds of problems.

>>> from convgrad import reference
>>> check_op(reference.conv2d, "conv2d", problems=30, dtypes=["float64"]).ok
True
"""

from ._apps.check.implementation import load as implementation
from ._apps.check.report import Finding, Report, Row
from ._apps.check.run import check_op

__all__ = ["Finding", "Report", "Row", "check_op", "implementation"]
