"""`accelerate` and `conv_general_dilated`: JAX's own convolutions on our kernels, in a block or in one call."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import jax

from ..._base.blocks import WithBlock
from ..._base.warnings import warn
from . import convolution, hook

_state: Any = jax.make_user_context(False) if hasattr(jax, "make_user_context") else None
"""Part of the keys of JAX's caches, so that what was traced outside of a block is traced anew inside."""


class _Blocks(threading.local):
    open: int = 0


_blocks = _Blocks()


def _accelerated() -> bool:
    return _blocks.open > 0 if _state is None else bool(_state.value)


class accelerate(WithBlock):
    """Let convgrad compute JAX's 2-D convolutions on CPUs, in a ``with`` block or in a function.

    Whatever calls `jax.lax.conv_general_dilated` inside uses our kernels: Flax, Haiku, Equinox, Keras. Derivatives of
    what was traced inside are ours wherever they are taken. What convgrad does not compute, JAX goes on computing. A
    jitted function that ran outside is traced and compiled again inside, and keeps both. Other threads are not
    affected; blocks may be nested.

    >>> import jax, jax.numpy as jnp, convgrad.jax
    >>> with convgrad.jax.accelerate():
    ...     y = jax.lax.conv(jnp.ones((1, 1, 3, 3)), jnp.ones((1, 1, 2, 2)), (1, 1), "VALID")
    >>> y.ravel().tolist()
    [4.0, 4.0, 4.0, 4.0]
    """

    title = "accelerate"

    def __init__(self) -> None:
        self._entered = threading.local()

    def _recreate_cm(self) -> accelerate:
        return accelerate()  # each call of a decorated function is a block of its own

    def __enter__(self) -> accelerate:
        block = _OlderBlock() if _state is None else _state(True)
        block.__enter__()
        self._stack().append(block)
        return self

    def __exit__(self, *error: Any) -> None:
        self._stack().pop().__exit__(*error)

    def _stack(self) -> list[Any]:
        """The blocks of this object that the calling thread is in: it may be entered again, by several threads."""
        if not hasattr(self._entered, "blocks"):
            self._entered.blocks = []
        found: list[Any] = self._entered.blocks
        return found


class _OlderBlock:
    """The same before JAX 0.7, which has no state of users' in the keys of its caches, but marks on operations.

    So operations that are traced inside carry a mark, which changes nothing about them.
    """

    def __init__(self) -> None:
        from jax.experimental.xla_metadata import set_xla_metadata

        self._mark = set_xla_metadata(convgrad="accelerate")

    def __enter__(self) -> None:
        self._mark.__enter__()
        _blocks.open += 1

    def __exit__(self, *error: Any) -> None:
        _blocks.open -= 1
        self._mark.__exit__(*error)


_warned = False


def conv_general_dilated(*args: Any, **kwargs: Any) -> Any:
    """Convolve as `jax.lax.conv_general_dilated` does, with the same arguments, on our kernels.

    JAX reads and checks the arguments. What convgrad does not compute, JAX computes: other ranks than 2-D, integers, a
    `preferred_element_type` other than that of the operands, `lhs_dilation` together with strides.

    >>> import jax.numpy as jnp, convgrad.jax
    >>> x, f = jnp.ones((1, 4, 4, 2)), jnp.ones((3, 3, 1, 2))
    >>> y = convgrad.jax.conv_general_dilated(
    ...     x, f, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=2)
    >>> y.shape, float(y[0, 0, 0, 0])
    ((1, 2, 2, 2), 9.0)
    """
    global _warned
    result, met = hook.met(lambda: jax.lax.conv_general_dilated(*args, **kwargs))
    if not met and not _warned:
        _warned = True
        warn(
            f"convgrad: JAX {jax.__version__} computes convolutions in a way we do not know, "
            "so they stay its own; convgrad.jax.conv2d and the other functions are not affected"
        )
    return result


conv_general_dilated.__signature__ = inspect.signature(jax.lax.conv_general_dilated)  # type: ignore[attr-defined]
hook.install(convolution.compute, _accelerated)
