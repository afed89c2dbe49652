"""`convgrad.batch_norm_act` and its gradients on arrays of JAX."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import norm_doors
from convgrad._base.dtypes import DOUBLE
from convgrad.errors import ArgumentError
from norm_doors import BACKWARD, FORWARD, Case


@norm_doors.every_case
def test_values(case: Case) -> None:
    norm_doors.check_case(case, jnp.asarray, np.asarray, jax.Array)


def test_mixed_with_arrays_of_numpy() -> None:
    norm_doors.check_mixed(jnp.asarray, np.asarray, jax.Array)


def test_mistakes() -> None:
    norm_doors.check_mistakes(jnp.asarray)


def arrays(case: Case) -> dict[str, Any]:
    return {name: jnp.asarray(each) for name, each in case.arrays().items()}


@norm_doors.every_case
def test_gradients_of_a_compiled_call(case: Case) -> None:
    """What JAX finds under `jit` is what `batch_norm_act_grad` returns."""
    given = arrays(case)
    forward = jax.jit(lambda every: FORWARD(**every, **case.settings).y)
    _, pull = jax.vjp(forward, given)
    (found,) = pull(jnp.asarray(case.out_backprop()))
    want = BACKWARD(
        **norm_doors.gradient_arguments(case, FORWARD(**case.arrays(), **case.settings)),
        **case.settings,
    )
    absent = dict.fromkeys(name for name in want._fields if name not in given)
    got = want._replace(**{name: each for name, each in found.items() if name in want._fields})
    norm_doors.compare(
        *(case, want._replace(**absent), got._replace(**absent)), np.asarray, jax.Array
    )


WIDE = [
    Case((2, 2, 2, 3), DOUBLE, True, "before", "silu", "NHWC"),
    Case((2, 2, 2, 3), DOUBLE, True, "after", "silu", "NCHW"),
    Case((2, 2, 2, 3), DOUBLE, False, "before", "silu", "NCHW"),
]


@pytest.mark.parametrize("case", WIDE, ids=str)
def test_derivatives_of_all_results_and_of_gradients(case: Case) -> None:
    given = arrays(case)
    check_grads(
        lambda every: tuple(FORWARD(**every, **case.settings)), (given,), order=2, modes=["rev"]
    )
    grad = jnp.asarray(case.out_backprop())

    def backward(grad: Any, every: dict[str, Any]) -> Any:
        found = FORWARD(**every, **case.settings)
        told = {**every, "mean": found.mean, "variance": found.variance}
        told = {"scale": None, "offset": None, **told}
        return [each for each in BACKWARD(grad, **told, **case.settings) if each is not None]

    check_grads(backward, (grad, given), order=1, modes=["rev"])


def test_a_batch_of_calls() -> None:
    case = Case(residual="before")
    given = arrays(case)
    many = {name: jnp.stack([each, each + each]) for name, each in given.items()}
    got = jax.vmap(lambda every: FORWARD(**every, **case.settings))(many)
    want = FORWARD(**{name: each[1] for name, each in many.items()}, **case.settings)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one[1], other, rtol=1e-5, atol=1e-5)


def test_an_array_that_was_deleted() -> None:
    x = jnp.ones((1, 2, 2, 1))
    x.delete()
    with pytest.raises(ArgumentError, match="batch_norm_act: `input` must be an array that still"):
        FORWARD(x)
