"""XLA flushes subnormal numbers on its threads; our kernels there lose none."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import convgrad
import convgrad.jax
import fp_modes

pytestmark = [
    pytest.mark.single,
    pytest.mark.skipif(not fp_modes.AVAILABLE, reason="no fesetenv that we know here"),
]


def test_subnormals_are_kept_and_rounding_is_to_nearest() -> None:
    """In every mode of the caller, on 1 to 3 threads, forwards and backwards; and JAX's own are lost."""
    rng = np.random.default_rng(1)
    tiny = (rng.uniform(1, 2, (2, 32, 32, 32)) * 2.0**-140).astype(np.float32)
    f = rng.uniform(1, 2, (3, 3, 32, 1)).astype(np.float32)
    rough = rng.standard_normal(tiny.shape).astype(np.float32)

    def both(x: jax.Array, f: jax.Array) -> tuple[jax.Array, ...]:
        y, back = jax.vjp(lambda *given: convgrad.jax.depthwise_conv2d(*given, 1, "SAME"), x, f)
        return (y, *back(x))

    compiled, doubled = jax.jit(both), jax.jit(lambda x: x * 2)
    wanted = {}
    for name, x in (("tiny", tiny), ("rough", rough)):
        wanted[name] = [
            convgrad.depthwise_conv2d(x, f, 1, "SAME"),
            convgrad.depthwise_conv2d_backprop_input(x.shape, f, x, 1, "SAME"),
            convgrad.depthwise_conv2d_backprop_filter(x, f.shape, x, 1, "SAME"),
        ]
    assert wanted["tiny"][0].min() > 0 and wanted["tiny"][0].max() < np.finfo(np.float32).tiny
    assert not np.asarray(doubled(tiny)).any(), "XLA does not flush here: this test shows nothing"
    for number in (1, 2, 3):
        for mode in ("default", *fp_modes.MODES):
            with convgrad.threads(number), fp_modes.set_to(mode):
                made = {name: compiled(x, f) for name, x in (("tiny", tiny), ("rough", rough))}
                jax.block_until_ready(made)
            for name, arrays in made.items():
                for one, other in zip(arrays, wanted[name], strict=True):
                    assert np.asarray(one).tobytes() == other.tobytes(), (number, mode, name)
