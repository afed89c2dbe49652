"""Run by a test: NumPy's arrays with an activation that only a row says."""

from __future__ import annotations

import numpy as np

import convgrad
from convgrad import reference
from new_row import NAME, check_package


def main() -> None:
    check_package()
    x = np.linspace(-3, 3, 24, dtype=np.float32).reshape(2, 3, 2, 2)
    want = reference.batch_norm_act(x, activation=NAME)
    got = convgrad.batch_norm_act(x, activation=NAME)
    np.testing.assert_allclose(got.y, want.y, atol=1e-6)
    z = (x - want.mean) / np.sqrt(want.variance + 1e-3)
    np.testing.assert_allclose(want.y, z / (1 + abs(z)), atol=1e-6)
    arguments = (x[::-1], x, None, None, got.mean, got.variance)
    for one, other in zip(
        convgrad.batch_norm_act_grad(*arguments, activation=NAME),
        reference.batch_norm_act_grad(*arguments, activation=NAME),
        strict=True,
    ):
        if one is not None:
            np.testing.assert_allclose(one, other, atol=2e-5)


if __name__ == "__main__":
    main()
