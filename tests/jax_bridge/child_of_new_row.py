"""Run by a test: arrays of JAX with an activation that only a row says."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

import convgrad.jax
from new_row import NAME, check_door, check_package


def main() -> None:
    check_package()
    check_door(jnp.asarray, np.asarray, jax.Array)
    x = jnp.linspace(-2, 3, 48).reshape(2, 2, 3, 4)
    y, *_ = jax.jit(lambda x: convgrad.jax.batch_norm_act(x, activation=NAME))(x)
    plain, *_ = convgrad.jax.batch_norm_act(x)
    np.testing.assert_allclose(y, jax.nn.soft_sign(plain), atol=1e-5)


if __name__ == "__main__":
    main()
