"""The errors this package raises; each is also a `ValueError`, `TypeError`, `MemoryError`, ..."""

from ._base.errors import (
    AllocationError,
    ArgumentError,
    ArgumentTypeError,
    BackendMissingError,
    CompileError,
    ConvgradError,
    DTypeError,
    InternalError,
)

__all__ = [
    "AllocationError",
    "ArgumentError",
    "ArgumentTypeError",
    "BackendMissingError",
    "CompileError",
    "ConvgradError",
    "DTypeError",
    "InternalError",
]
