"""The floating-point mode of the calling thread: setting it, reading it, and giving it back.

By the C library's `fegetenv` and `fesetenv`, whose block holds the registers, so that no kernel of ours is needed to
test kernels of ours.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_ARM = platform.machine().lower() in ("aarch64", "arm64")
_WORD = 0 if _ARM else 7
"""Which 32-bit word of the block is the register: FPCR, or MXCSR behind the seven of the old unit."""

MODES = {
    "flush": 1 << 24 if _ARM else 0x8040,
    "upward": 1 << 22 if _ARM else 2 << 13,
    "downward": 2 << 22 if _ARM else 1 << 13,
    "toward zero": 3 << 22 if _ARM else 3 << 13,
    "flush, upward": 1 << 24 | 1 << 22 if _ARM else 0x8040 | 2 << 13,
}
"""By name, the bits that are set beyond the default's. On x86-64 flushing is of results (FTZ) and operands (DAZ)."""
ROUNDINGS = ("upward", "downward", "toward zero")
AVAILABLE = sys.platform == "linux" and (_ARM or platform.machine().lower() in ("x86_64", "amd64"))

_MODE_BITS = 0x07C89F07 if _ARM else 0xFFC0
_DEFAULT = 0 if _ARM else 0x1F80

_library = ctypes.CDLL("libm.so.6") if AVAILABLE else None


def _block() -> ctypes.Array[ctypes.c_uint32]:
    block = (ctypes.c_uint32 * 16)()
    assert _library is not None
    _library.fegetenv(block)
    return block


def word() -> int:
    """Return the register of this thread; on x86-64 its low six bits are the flags."""
    return int(_block()[_WORD])


def mode() -> int:
    """Return what of the register decides how is computed, beyond the default."""
    return (word() & _MODE_BITS) ^ _DEFAULT


def set_word(value: int) -> None:
    """Set the register of this thread."""
    block = _block()
    block[_WORD] = value
    if not _ARM:  # the old unit's rounding is the one that C libraries tell
        block[0] = (block[0] & ~0xC00) | (value >> 3 & 0xC00)
    assert _library is not None
    _library.fesetenv(block)


@contextmanager
def set_to(name: str) -> Iterator[None]:
    """Compute in a mode of `MODES`, or the default one, inside the block; it must still be set at the end."""
    before = word()
    wanted = MODES.get(name, 0)
    set_word((before & ~_MODE_BITS) | (_DEFAULT ^ wanted))
    try:
        yield
        assert mode() == wanted, f"{name}: the mode is {mode():#x} afterwards, not {wanted:#x}"
    finally:
        set_word(before)
