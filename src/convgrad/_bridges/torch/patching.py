"""`patch` and `unpatch`: our kernels for PyTorch's own operators, for code one cannot touch."""

from __future__ import annotations

import threading
from types import TracebackType

from . import install

_lock = threading.Lock()
_patches = 0
_current: install.Patch | None = None


class Patched:
    """One `patch`; leaving its block takes it back."""

    def __init__(self) -> None:
        self._open = True

    def __enter__(self) -> Patched:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._open:
            self._open = False
            unpatch()


def patch() -> Patched:
    """Let convgrad compute `torch.nn.functional.conv2d` and `conv_transpose2d`, and whatever calls them, on CPUs.

    It replaces the kernels of `aten::convolution` and `aten::convolution_backward`, for all threads, until `unpatch`,
    or until the end of a ``with`` block. What convgrad does not compute (1-D and 3-D images, integers, other devices)
    PyTorch goes on computing. A backward pass uses the kernels that are in place when it runs.

    >>> import torch, convgrad.torch
    >>> with convgrad.torch.patch():
    ...     y = torch.nn.functional.conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2))
    >>> y.flatten().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """
    global _patches, _current
    with _lock:
        if _patches == 0:
            install.install()
            install.heed()
            _current = install.Patch()
        _patches += 1
    return Patched()


def unpatch() -> None:
    """Take the last `patch` back; does nothing where there is none."""
    global _patches, _current
    with _lock:
        if _patches == 0:
            return
        _patches -= 1
        if _patches == 0 and _current is not None:
            _current.undo()
            _current = None
