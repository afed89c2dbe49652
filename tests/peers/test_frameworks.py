"""The oracle against TensorFlow, PyTorch and JAX, where they are installed: `pytest -m peers`.

TensorFlow's own CPU kernels refuse much of the family, so it is asked through its compiler (`jit_compile=True`), which
does not, and its known defects have tests of their own. A framework that is absent skips its tests and says so.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

from cases import KINDS, Case, Data, normal, random_case, run
from frameworks import ask

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

PER_FRAMEWORK = 40


def some_cases(seed: int, **fixed: Any) -> list[Case]:
    """Draw cases with no empty tensors: frameworks disagree on those."""
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < PER_FRAMEWORK:
        case = random_case(rng, dtype="float64", **fixed)
        if not case.is_empty:
            cases.append(case)
    return cases


def compare(case: Case, kind: str, data: Data, theirs: Any) -> None:
    ours = run(case, kind, data, "reference")
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=str((case, kind)))


@pytest.mark.parametrize("case", some_cases(1), ids=str)
def test_pytorch(case: Case) -> None:
    pytest.importorskip("torch")
    data = normal(case, np.random.default_rng(0))
    for kind in KINDS:
        compare(case, kind, data, ask("torch", case, kind, data))


@pytest.mark.parametrize("case", some_cases(2), ids=str)
def test_jax(case: Case) -> None:
    pytest.importorskip("jax")
    data = normal(case, np.random.default_rng(0))
    for kind in KINDS:
        compare(case, kind, data, ask("jax", case, kind, data))


@pytest.mark.parametrize("case", some_cases(3), ids=str)
def test_tensorflow_compiled(case: Case) -> None:
    pytest.importorskip("tensorflow")
    data = normal(case, np.random.default_rng(0))
    for kind in KINDS:
        compare(case, kind, data, ask("tensorflow", case, kind, data, compiled=True))


@pytest.mark.parametrize(
    "case",
    some_cases(4, data_format="NHWC", dilations=(1, 1), strides=(2, 2), groups=1),
    ids=str,
)
def test_tensorflow_eager(case: Case) -> None:
    """What TensorFlow's plain CPU kernels do take: NHWC, one group, no dilation, equal strides."""
    pytest.importorskip("tensorflow")
    data = normal(case, np.random.default_rng(0))
    for kind in KINDS:
        compare(case, kind, data, ask("tensorflow", case, kind, data))


def test_tensorflow_has_these_signatures() -> None:
    """The table of test_signatures, which the default run compares ours with, is what TensorFlow says of itself."""
    tf = pytest.importorskip("tensorflow")
    from unit.test_signatures import SIGNATURES, nn, raw_ops, v1

    for ours, theirs in ((nn, tf.nn), (v1.nn, tf.compat.v1.nn), (raw_ops, tf.raw_ops)):
        for name, text in SIGNATURES[ours].items():
            parameters = inspect.signature(getattr(theirs, name)).parameters.values()
            written = [
                each.name if each.default is each.empty else f"{each.name}={each.default!r}"
                for each in parameters
            ]
            assert ", ".join(written) == text, name


@pytest.mark.parametrize("kind", ["input", "filter"])
def test_tensorflow_still_ignores_dilations_of_depthwise_gradients(kind: str) -> None:
    """The first entry of docs/differences-from-tensorflow.md. If this fails, TensorFlow has been mended."""
    pytest.importorskip("tensorflow")
    dilated = Case(True, 1, (9, 9), 2, 1, 1, (3, 3), (1, 1), (2, 2), "SAME", dtype="float64")
    plain = Case(True, 1, (9, 9), 2, 1, 1, (3, 3), (1, 1), (1, 1), "SAME", dtype="float64")
    data = normal(dilated, np.random.default_rng(0))
    theirs = ask("tensorflow", dilated, kind, data)
    np.testing.assert_allclose(theirs, run(plain, kind, data, "reference"), rtol=1e-9, atol=1e-9)
    assert np.abs(theirs - run(dilated, kind, data, "reference")).max() > 1
