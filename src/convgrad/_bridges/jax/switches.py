"""Switches that change while functions are compiled already: what XLA calls heeds them, and so do JAX's caches.

How many threads a call uses is asked when it runs. Which program computes a problem is decided when a function is
lowered; so what decides it is part of the keys of JAX's caches, and a jitted function called in a block of
`convgrad.options(winograd="off")` is compiled for it. Before JAX 0.7 there is no room for it in those keys: there a
compiled function keeps the switches it was compiled with.
"""

from __future__ import annotations

import threading
from typing import Any

import jax

from ..._base import config
from ..._runtime import threads

_state: Any = jax.make_user_context(None) if hasattr(jax, "make_user_context") else None
_lock = threading.Lock()
_watching = False
_outside: tuple[Any, ...] = ()
"""The deciding switches outside of all blocks."""


class _Here(threading.local):
    block: Any = None
    """What is entered in the calling thread."""


_here = _Here()


def watch() -> None:
    """Heed the switches from now on."""
    global _watching
    with _lock:
        if not _watching:
            _watching = True
            heed()
            config.watch(heed)


def heed() -> None:
    """Let calls by XLA use as many threads as the settings say here and now, and JAX know what decides."""
    global _outside
    threads.get_ready()
    if _state is None:
        return
    decided = config.deciding()
    if _here.block is not None:
        _here.block.__exit__(None, None, None)
        _here.block = None
    if not config.in_block():
        _outside = decided
    elif decided != _outside:
        _here.block = _state(decided)
        _here.block.__enter__()
