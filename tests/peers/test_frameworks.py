"""The oracle against TensorFlow, PyTorch and JAX, where they are installed: `pytest -m peers`.

TensorFlow's own CPU kernels refuse much of the family, so it is asked through its compiler (`jit_compile=True`), which
does not, and its known defects have tests of their own. A framework that is absent skips its tests and says so.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cases import KINDS, Case, Data, door_settings, normal, pads, random_case, run

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

PER_FRAMEWORK = 40


def some_cases(seed: int, **fixed: Any) -> list[Case]:
    """Draw cases with no empty tensors: frameworks disagree on those."""
    rng = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < PER_FRAMEWORK:
        case = random_case(rng, dtype="float64", **fixed)
        if 0 not in (*case.input_shape, *case.output_shape, *case.filter_shape):
            cases.append(case)
    return cases


def compare(case: Case, kind: str, data: Data, theirs: Any) -> None:
    ours = run(case, kind, data, "reference")
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9, err_msg=str((case, kind)))


def nchw(case: Case, array: Any) -> Any:
    return np.moveaxis(array, -1, 1) if case.data_format == "NHWC" else array


def from_nchw(case: Case, array: Any) -> Any:
    return np.moveaxis(array, 1, -1) if case.data_format == "NHWC" else array


def oihw(case: Case, f: Any) -> Any:
    """Filter [kh, kw, I, O] or [kh, kw, C, M] as PyTorch's [O, I / groups, kh, kw]."""
    f = f.reshape(*case.window, case.group_in, case.groups * case.group_out)
    return f.transpose(3, 2, 0, 1)


@pytest.mark.parametrize("case", some_cases(1), ids=str)
def test_pytorch(case: Case) -> None:
    torch = pytest.importorskip("torch")
    data = normal(case, np.random.default_rng(0))
    (top, bottom), (left, right) = pads(*case.axis(0)), pads(*case.axis(1))
    x = torch.tensor(np.ascontiguousarray(nchw(case, data.x)), requires_grad=True)
    f = torch.tensor(np.ascontiguousarray(oihw(case, data.f)), requires_grad=True)
    padded = torch.nn.functional.pad(x, (left, right, top, bottom))
    y = torch.nn.functional.conv2d(
        padded, f, None, case.strides, 0, case.dilations, groups=case.groups
    )
    y.backward(torch.tensor(np.ascontiguousarray(nchw(case, data.g))))
    df = f.grad.numpy().transpose(2, 3, 1, 0).reshape(case.filter_shape)
    compare(case, "forward", data, from_nchw(case, y.detach().numpy()))
    compare(case, "input", data, from_nchw(case, x.grad.numpy()))
    compare(case, "filter", data, df)


@pytest.mark.parametrize("case", some_cases(2), ids=str)
def test_jax(case: Case) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    data = normal(case, np.random.default_rng(0))

    def convolve(x: Any, f: Any) -> Any:
        return jax.lax.conv_general_dilated(
            x,
            f.reshape(*case.window, case.group_in, -1),
            case.strides,
            (pads(*case.axis(0)), pads(*case.axis(1))),
            rhs_dilation=case.dilations,
            dimension_numbers=(case.data_format, "HWIO", case.data_format),
            feature_group_count=case.groups,
        )

    y, pull_back = jax.vjp(convolve, data.x, data.f)
    dx, df = pull_back(np.asarray(data.g))
    for kind, theirs in zip(KINDS, (y, dx, df), strict=True):
        compare(case, kind, data, np.asarray(theirs))


def tensorflow_call(tf: Any, case: Case, kind: str, data: Data) -> Any:
    """Call TensorFlow's raw op of the same name, with the arguments of the raw door."""
    _, settings = door_settings(case, "raw")
    name = "DepthwiseConv2dNative" if case.depthwise else "Conv2D"
    if kind == "forward":
        return getattr(tf.raw_ops, name)(input=data.x, filter=data.f, **settings)
    if kind == "input":
        return getattr(tf.raw_ops, name + "BackpropInput")(
            input_sizes=list(case.input_shape), filter=data.f, out_backprop=data.g, **settings
        )
    return getattr(tf.raw_ops, name + "BackpropFilter")(
        input=data.x, filter_sizes=list(case.filter_shape), out_backprop=data.g, **settings
    )


@pytest.mark.parametrize("case", some_cases(3), ids=str)
def test_tensorflow_compiled(case: Case) -> None:
    tf = pytest.importorskip("tensorflow")
    data = normal(case, np.random.default_rng(0))
    for kind in KINDS:
        # Operands must be arguments: TensorFlow folds constants with the very kernels that are wrong.
        compiled = tf.function(
            lambda x, f, g, kind=kind: tensorflow_call(tf, case, kind, Data(x, f, g)),
            jit_compile=True,
        )
        compare(case, kind, data, compiled(data.x, data.f, data.g).numpy())


@pytest.mark.parametrize(
    "case",
    some_cases(4, data_format="NHWC", dilations=(1, 1), strides=(2, 2), groups=1),
    ids=str,
)
def test_tensorflow_eager(case: Case) -> None:
    """What TensorFlow's plain CPU kernels do take: NHWC, one group, no dilation, equal strides."""
    tf = pytest.importorskip("tensorflow")
    data = normal(case, np.random.default_rng(0))
    for kind in KINDS:
        compare(case, kind, data, tensorflow_call(tf, case, kind, data).numpy())


@pytest.mark.parametrize("kind", ["input", "filter"])
def test_tensorflow_still_ignores_dilations_of_depthwise_gradients(kind: str) -> None:
    """The first entry of docs/differences-from-tensorflow.md. If this fails, TensorFlow has been mended."""
    tf = pytest.importorskip("tensorflow")
    dilated = Case(True, 1, (9, 9), 2, 1, 1, (3, 3), (1, 1), (2, 2), "SAME", dtype="float64")
    plain = Case(True, 1, (9, 9), 2, 1, 1, (3, 3), (1, 1), (1, 1), "SAME", dtype="float64")
    data = normal(dilated, np.random.default_rng(0))
    theirs = tensorflow_call(tf, dilated, kind, data).numpy()
    np.testing.assert_allclose(theirs, run(plain, kind, data, "reference"), rtol=1e-9, atol=1e-9)
    assert np.abs(theirs - run(dilated, kind, data, "reference")).max() > 1
