"""Where convolutions of JAX's own come by: the `bind` of its primitive, which we stand in front of.

Whatever computes a convolution in JAX, by whichever name it was imported and with whichever arguments, ends in
``conv_general_dilated_p.bind`` with all arguments checked and spelled out. Replacing `jax.lax.conv_general_dilated`
instead would miss who holds the function already, as the default of an argument (`flax.nnx.Conv`) or by a name of its
own. We stay there from the first use to the end of the process, and hand on every call nobody asked us for.

Whether we compute is decided by what the calling thread is in: a block of `accelerate`, which is part of the keys of
JAX's caches, or a call of ours. So another thread never sees a change.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax

Compute = Callable[..., Any]
"""Given the operands and the parameters of the primitive, returns the result, or None for what JAX is to compute."""


class _Calling(threading.local):
    ours: bool | None = None
    """What a call that is under way here asks for; None where it asks for nothing."""
    asked = False
    """Whether the primitive was met since `ours` was set."""


_calling = _Calling()
_lock = threading.Lock()
_installed = False


def install(compute: Compute, accelerated: Callable[[], bool]) -> None:
    """Stand in front of the primitive, once."""
    global _installed
    with _lock:
        if _installed:
            return
        primitive = jax.lax.conv_general_dilated_p
        theirs = primitive.bind

        def bind(*operands: Any, **how: Any) -> Any:
            _calling.asked = True
            ours = _calling.ours
            if ours is None:
                ours = accelerated()
            result = compute(*operands, **how) if ours else None
            return theirs(*operands, **how) if result is None else result

        primitive.bind = bind  # one assignment: other threads see all of it or nothing
        _installed = True


@contextmanager
def calling(ours: bool) -> Iterator[None]:
    """Compute the convolutions of this block ourselves, or leave them to JAX, whatever is around it."""
    before, _calling.ours = _calling.ours, ours
    try:
        yield
    finally:
        _calling.ours = before


def met(call: Callable[[], Any]) -> tuple[Any, bool]:
    """Return what a call of JAX's function gives when we compute, and whether it came by here at all."""
    _calling.asked = False
    with calling(True):
        result = call()
    return result, _calling.asked
