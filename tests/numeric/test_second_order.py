"""The gradients of the six operations are again among them (TensorFlow's registered gradients, all six rows).

Each identity is checked as an exact statement on whole numbers: for op(a, b) bilinear in a and b, the gradient of
<op(a, b), u> with respect to a is the stated operation: moving one number of a by 1 changes the loss by exactly that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import Case, Data, random_case, run, whole_numbers


def identities(case: Case, data: Data, rng: np.random.Generator) -> list[tuple[str, Any, Any, Any]]:
    """Return (name, loss as a function of one operand, that operand, its stated gradient)."""
    ux, uf, uy = (
        rng.integers(-3, 4, each.shape).astype(np.float64) for each in (data.x, data.f, data.g)
    )

    def forward(x: Any, f: Any) -> Any:
        return run(case, "forward", Data(x, f, None))

    def to_input(f: Any, g: Any) -> Any:
        return run(case, "input", Data(None, f, g))

    def to_filter(x: Any, g: Any) -> Any:
        return run(case, "filter", Data(x, None, g))

    x, f, g = data.x, data.f, data.g
    return [
        ("forward, x", lambda a: (forward(a, f) * uy).sum(), x, to_input(f, uy)),
        ("forward, f", lambda a: (forward(x, a) * uy).sum(), f, to_filter(x, uy)),
        ("input, f", lambda a: (to_input(a, g) * ux).sum(), f, to_filter(ux, g)),
        ("input, g", lambda a: (to_input(f, a) * ux).sum(), g, forward(ux, f)),
        ("filter, x", lambda a: (to_filter(a, g) * uf).sum(), x, to_input(uf, g)),
        ("filter, g", lambda a: (to_filter(x, a) * uf).sum(), g, forward(x, uf)),
    ]


@pytest.mark.parametrize("depthwise", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_every_registered_gradient(depthwise: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, depthwise=depthwise, dtype="float64", batch=2, size=(5, 4), group_out=2)
    data = whole_numbers(case, rng)
    for name, loss, operand, gradient in identities(case, data, rng):
        base = loss(operand)
        for _ in range(12):
            position = (
                tuple(int(rng.integers(size)) for size in operand.shape) if operand.size else None
            )
            if position is None:
                break
            moved = operand.copy()
            moved[position] += 1
            assert loss(moved) - base == gradient[position], (case, name, position)
