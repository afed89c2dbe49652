"""Batch norm with activation on arrays of JAX: against plain formulas and JAX's derivatives, under every transform."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import convgrad
import convgrad.jax
from convgrad import _engine
from convgrad._base import dtypes
from convgrad._bridges.jax import abi, formulas, handler, targets
from convgrad._problem import text as _problem_text
from convgrad._problem.norm import ACTIVATIONS, Task
from convgrad._problem.norm import normalisation as calls
from convgrad._problem.norm.normalisation import Normalisation
from convgrad._runtime.bound import Bound
from convgrad._runtime.program import MOST_PLACES
from convgrad.errors import InternalError
from convgrad.jax import batch_norm_act

ROWS = ("scale", "offset", "mean", "variance")
POSITIONS = (None, "before", "after")
CASES = [
    ("NHWC" if number % 2 else "NCHW", activation, position, (number // 2 + at) % 2 == 0)
    for number, activation in enumerate(ACTIVATIONS)
    for at, position in enumerate(POSITIONS)
]
"""Layouts and frozen statistics know nothing of activations: each in turn."""


def operands(layout: str, position: str | None, frozen: bool, dtype: Any = np.float64) -> Any:
    """Draw arrays: x is far from 0, and values come to lie on both sides of every kink."""
    rng = np.random.default_rng(3)
    shape = (3, 4, 5, 6)
    channels = shape[3 if layout == "NHWC" else 1]
    found = {
        "x": 2 + 3 * rng.standard_normal(shape),
        "scale": 3 * rng.standard_normal(channels),
        "offset": 2 + rng.standard_normal(channels),
    }
    if position:
        found["residual"] = rng.standard_normal(shape)
    if frozen:
        found |= {"mean": rng.standard_normal(channels), "variance": 1 + rng.random(channels)}
    wide = np.float64 if dtype == np.float64 else np.float32
    return {
        name: jnp.asarray(value, wide if name in ROWS else dtype) for name, value in found.items()
    }


def ours(arrays: Any, layout: str, activation: str, position: str | None) -> Any:
    return batch_norm_act(
        **arrays,
        activation=activation,
        residual_position=position or "before",
        data_format=layout,
    )


def plain(arrays: Any, layout: str, activation: str, position: str | None) -> Any:
    """The formulas, as anybody would write them."""
    x, residual = arrays["x"], arrays.get("residual", 0.0)
    axes, shape = ((0, 1, 2), (-1,)) if layout == "NHWC" else ((0, 2, 3), (-1, 1, 1))
    mean, variance = arrays.get("mean"), arrays.get("variance")
    if mean is None:
        mean, variance = jnp.mean(x, axes), jnp.var(x, axes)
    rows = [each.reshape(shape) for each in (mean, variance, arrays["scale"], arrays["offset"])]
    u = (x - rows[0]) / jnp.sqrt(rows[1] + 1e-3) * rows[2] + rows[3]
    functions: dict[str, Any] = {
        "none": lambda u: u,
        "relu": jax.nn.relu,
        "relu6": jax.nn.relu6,
        "leaky_relu": lambda u: jax.nn.leaky_relu(u, 0.2),
        "silu": jax.nn.silu,
        "hardswish": jax.nn.hard_swish,
        "gelu": lambda u: jax.nn.gelu(u, approximate=False),
        "gelu_tanh": lambda u: jax.nn.gelu(u, approximate=True),
    }
    y = functions[activation](u + residual if position == "before" else u)
    return (y + residual if position == "after" else y), mean, variance


def weights(arrays: Any) -> Any:
    return jnp.asarray(np.random.default_rng(9).standard_normal(arrays["x"].shape))


def value_and_gradients(function: Any, arrays: Any, *how: Any) -> Any:
    """Return results, and gradients of a loss that all of them have a part in, by all arrays."""
    weight = weights(arrays)

    def loss(arrays: Any) -> Any:
        y, mean, variance = function(arrays, *how)
        return jnp.sum(y * weight) + jnp.sum(jnp.sin(mean)) + jnp.sum(variance**2), (
            y,
            mean,
            variance,
        )

    return jax.jit(jax.value_and_grad(loss, has_aux=True))(arrays)


@pytest.mark.parametrize(("layout", "activation", "position", "frozen"), CASES)
def test_values_and_gradients(
    layout: str, activation: str, position: str | None, frozen: bool
) -> None:
    arrays = operands(layout, position, frozen)
    got = value_and_gradients(ours, arrays, layout, activation, position)
    wanted = value_and_gradients(plain, arrays, layout, activation, position)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10), got, wanted)


def test_a_small_error_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above compares tells a gradient that is off by a thousandth."""
    arrays = operands("NHWC", None, False)
    compute = formulas.compute

    def wrong(call: Normalisation, given: Any) -> Any:
        made = compute(call, given)
        return {name: each * 1.001 if name == "dx" else each for name, each in made.items()}

    from convgrad._bridges.jax import batch_norm, passes

    monkeypatch.setattr(passes, "compute", wrong)
    got = value_and_gradients(ours, arrays, "NHWC", "silu", None)[1]["x"]
    wanted = value_and_gradients(plain, arrays, "NHWC", "silu", None)[1]["x"]
    assert not np.allclose(got, wanted, rtol=1e-4)
    assert batch_norm.passes is passes


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_narrow_dtypes(dtype: str) -> None:
    """Results are rounded once; statistics and parameters' gradients are float32 whatever x is."""
    row = dtypes.find(jnp.dtype(dtype))
    assert row is not None
    arrays = operands("NHWC", "before", False, jnp.dtype(dtype))
    (_, (y, mean, variance)), moves = value_and_gradients(ours, arrays, "NHWC", "silu", "before")
    wide = {name: each.astype(jnp.float64) for name, each in arrays.items()}
    (_, wanted), wanted_moves = value_and_gradients(plain, wide, "NHWC", "silu", "before")
    assert (y.dtype, mean.dtype, moves["scale"].dtype) == (dtype, np.float32, np.float32)
    for got, exact in zip((y, mean, variance), wanted, strict=True):
        np.testing.assert_allclose(
            got.astype(float), exact, rtol=2 * row.unit + 1e-6, atol=4 * row.unit + 1e-6
        )
    for name, got in moves.items():
        exact = wanted_moves[name]
        scale = float(jnp.max(jnp.abs(exact)))
        np.testing.assert_allclose(got.astype(float), exact, rtol=0, atol=8 * row.unit * scale)


def test_parameters_that_are_left_out() -> None:
    arrays = operands("NCHW", None, False)
    arrays |= {"scale": jnp.ones(4), "offset": jnp.zeros(4)}
    wanted = plain(arrays, "NCHW", "relu", None)[0]
    for names in (("scale",), ("offset",), ()):
        given = {name: arrays[name] for name in names}
        y, _, _ = batch_norm_act(arrays["x"], **given, activation="relu", data_format="NCHW")
        np.testing.assert_allclose(y, wanted, rtol=1e-12, atol=1e-12)


def test_only_what_is_wanted_is_computed() -> None:
    """A gradient of x alone asks for no sums of parameters, and one of parameters for no image."""
    arrays = operands("NHWC", "before", False)

    def said(*names: str) -> str:
        def loss(some: Any) -> Any:
            return jnp.sum(ours(arrays | some, "NHWC", "relu", "before")[0] ** 2)

        jaxpr = str(jax.make_jaxpr(jax.grad(loss))({name: arrays[name] for name in names}))
        fields = re.findall(
            r"name='backward'.*?wants_x=(\w+), wants_parameters=(\w+), wants_residual=(\w+)",
            " ".join(jaxpr.split()),
        )
        assert len(fields) == 1
        return " ".join(fields[0])

    assert said("x") == "True False False"
    assert said("scale") == "False True False"
    assert said("residual") == "False False True"
    assert said("x", "offset", "residual") == "True True True"


def test_second_derivatives() -> None:
    arrays = operands("NHWC", "before", False)

    def bent(function: Any) -> Any:
        def loss(arrays: Any) -> Any:
            return jnp.sum(function(arrays, "NHWC", "silu", "before")[0] ** 3)

        def again(arrays: Any) -> Any:
            return sum(jnp.sum(jnp.sin(each)) for each in jax.tree.leaves(jax.grad(loss)(arrays)))

        return jax.jit(jax.grad(again))(arrays)

    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-7), bent(ours), bent(plain)
    )


@pytest.mark.parametrize(("layout", "axis"), [("NHWC", 0), ("NCHW", 2)])
def test_vmap(layout: str, axis: int) -> None:
    """Examples have statistics of their own, and share the parameters that are not mapped."""
    arrays = operands(layout, "before", False)
    rng = np.random.default_rng(4)
    many = {
        "x": jnp.asarray(rng.standard_normal((5, *arrays["x"].shape))),
        "offset": jnp.asarray(rng.standard_normal((5, *arrays["offset"].shape))),
    }
    moved = {"x": jnp.moveaxis(many["x"], 0, axis), "offset": many["offset"]}

    def of(function: Any) -> Any:
        def step(x: Any, offset: Any) -> Any:
            given = arrays | {"x": x, "offset": offset}
            return value_and_gradients(function, given, layout, "silu", "before")

        return step

    got = jax.vmap(of(ours), in_axes=(axis, 0))(moved["x"], moved["offset"])
    one = of(plain)
    wanted = [one(many["x"][at], many["offset"][at]) for at in range(5)]
    jax.tree.map(
        lambda a, *b: np.testing.assert_allclose(a, np.stack(b), rtol=1e-8, atol=1e-9), got, *wanted
    )


def test_transforms_keep_the_bits() -> None:
    """Jitted or not, under `checkpoint` and `scan`, on any number of threads."""
    arrays = operands("NHWC", None, False, jnp.float32)

    def bits(function: Any) -> bytes:
        return b"".join(np.asarray(each).tobytes() for each in jax.tree.leaves(function(arrays)))

    def gradient(call: Any) -> Any:
        return jax.grad(lambda arrays: jnp.sum(call(arrays)[0] * weights(arrays)))

    def call(arrays: Any) -> Any:
        return ours(arrays, "NHWC", "hardswish", None)

    wanted = bits(jax.jit(gradient(call)))
    assert bits(gradient(call)) == wanted
    assert bits(jax.jit(gradient(jax.checkpoint(call)))) == wanted
    for threads in (1, 3):
        with convgrad.threads(threads):
            assert bits(jax.jit(gradient(call))) == wanted
    looped = jax.jit(lambda arrays: jax.lax.map(call, {n: a[None] for n, a in arrays.items()}))
    assert bits(looped) == bits(call)


def test_empty_images() -> None:
    y, mean, _ = batch_norm_act(jnp.zeros((0, 2, 2, 3)), activation="relu")
    assert y.shape == (0, 2, 2, 3)
    assert np.isnan(mean).all()
    mapped = jax.vmap(batch_norm_act)(jnp.zeros((0, 1, 2, 2, 3)))
    assert [each.shape for each in mapped] == [(0, 1, 2, 2, 3), (0, 3), (0, 3)]


def test_an_unknown_activation_is_not_taken_for_none() -> None:
    with pytest.raises(InternalError, match="unknown activation 'swoosh'"):
        formulas.activated("swoosh", jnp.ones(3), 0.0)


def test_forward_mode_is_refused_by_jax() -> None:
    x = jnp.ones((1, 2, 2, 1))
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(lambda x: batch_norm_act(x)[0], (x,), (x,))


IMAGE = jnp.zeros((1, 2, 2, 3), np.float32)
ROW = jnp.ones(3, np.float32)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": IMAGE[0]}, "`x` must have 4 dimensions, got 3"),
        ({"x": IMAGE.astype(int)}, "`x` must be one of half, bfloat16, float32, float64, got int"),
        (
            {"scale": jnp.ones(2)},
            r"`scale` must have shape \(3,\), the channels of `x`, got \(2,\)",
        ),
        ({"offset": jnp.ones(3, int)}, "`offset` must be one of half, .*, got int"),
        ({"mean": ROW}, "`mean` and `variance` must be given together, got no `variance`"),
        ({"residual": IMAGE[:, 1:]}, "`residual` must have the shape of `x`"),
        ({"residual": IMAGE.astype("bfloat16")}, "`residual` must have the dtype of `x`, float32"),
        (
            {"activation": "relu7"},
            "`activation` must be one of 'none', 'relu', .*did you mean 'relu'",
        ),
        ({"residual_position": 3}, "`residual_position` must be one of 'before', 'after', got 3"),
        ({"data_format": "NHCW"}, "`data_format` must be .*got 'NHCW'"),
        ({"epsilon": -1e-3}, "`epsilon` must be at least 0, got -0.001"),
        ({"epsilon": jnp.ones(())}, "`epsilon` must be a number"),
        ({"negative_slope": np.nan}, "`negative_slope` must be finite, got nan"),
        ({"negative_slope": -0.1}, "`negative_slope` must be at least 0, got -0.1"),
    ],
)
def test_mistakes_are_named(arguments: Any, words: str) -> None:
    with pytest.raises(convgrad.errors.ConvgradError, match=f"^batch_norm_act: {words}"):
        batch_norm_act(**{"x": IMAGE, **arguments})


# What XLA calls. ------------------------------------------------------------------------------------------------------

TASK = Task("forward", dtypes.FLOAT, "NHWC", 1, 4, 3, "relu", "after")
_RUN = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A slab whose entry is ours: it notes the block of addresses that a handler gives it."""
    version = targets.usable()
    assert isinstance(version, abi.Version)
    slab = targets.Slab(2000 + len(targets._slabs), version)
    found: list[Any] = []

    def run(program: int, addresses: int) -> int:
        words = (ctypes.c_int64 * MOST_PLACES).from_address(addresses)
        found.append((program, list(words)))
        return 0

    entry = _RUN(run)
    slab._block[handler.BLOCK.index("RUN")] = ctypes.cast(entry, ctypes.c_void_p).value or 0
    return slab, found, entry


@pytest.mark.parametrize("wrong", [None, "size", "dtype", "count"])
def test_a_handler_gathers_addresses(seen: Any, wrong: str | None) -> None:
    """Every array comes to its place; other arrays than the call's never come to a program."""
    slab, found, _ = seen
    call = Normalisation(TASK, ("bias",))
    program = _engine.program(_problem_text.read("conv2d 1x5x5x3 3x3x3x3"))
    assert isinstance(program, Bound)
    address = slab.take(call, program, "its line")
    name = f"convgrad_test_pass_{wrong}"
    function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="cpu")
    x, residual, bias = IMAGE, IMAGE + 1, ROW
    given = {
        None: (x, residual, bias),
        "size": (x, residual[:, 1:], bias),
        "dtype": (x, residual, bias.astype(jnp.float16)),
        "count": (x, residual),
    }[wrong]
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in (x.shape, (5, 3))]
    run = jax.jit(lambda *given: jax.ffi.ffi_call(name, shapes)(*given))
    if wrong is not None:
        message = (
            "INVALID_ARGUMENT: convgrad: the arrays do not have the sizes and the dtype of its line"
        )
        with pytest.raises(jax.errors.JaxRuntimeError, match=message):
            run(*given)
        assert not found
        return
    jax.block_until_ready(run(*given))
    ((ran, words),) = found
    assert ran == program.address
    where = dict(zip(call.places, words, strict=False))
    for place, array in (("x", x), ("residual", residual), ("bias", bias)):
        assert where[place] == array.unsafe_buffer_pointer(), place
    assert where["weight"] == where["running_mean"] == 0
    scalars = (ctypes.c_double * 4).from_address(where["scalars"])
    assert tuple(scalars) == call.scalars
    assert 0 not in (where["y"], where["saved"])
    assert where["y"] != where["saved"]


def test_calls_are_lines_of_text() -> None:
    for name, given in (("forward", ()), ("forward_frozen", ("weight",))):
        task = Task(name, dtypes.BFLOAT16, "NCHW", 2, 9, 5, "leaky_relu", "before")
        call = Normalisation(task, given, 1e-5, 0.1)
        assert calls.read(calls.write(call)) == call
        back = call.backward(x=False, parameters=True, residual=True)
        assert calls.read(calls.write(back)) == back
    line = calls.write(call)
    assert calls.is_text(line)
    for wrong in (
        line.replace("leaky_relu", "relu7"),
        line.replace("NCHW", "NHCW"),
        line.replace("2x9x5", "2x0x5"),
        line + " more=1",
        line.replace("weight", "gamma"),
        line.replace("1e-05", "nan"),
        "batch_norm_act.",
    ):
        with pytest.raises(convgrad.errors.ArgumentError, match="is not a line that describes"):
            calls.read(wrong)


def test_the_line_stands_beside_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    program = _engine.program(_problem_text.read("conv2d 1x5x5x3 3x3x3x3"))
    monkeypatch.setattr(_engine, "program", lambda task: program)  # which is not run
    text = jax.jit(lambda x: batch_norm_act(x, activation="silu")).lower(ODD).as_text()
    line = "batch_norm_act.forward 1x4x7 NHWC float32 silu given= epsilon=0.001"
    assert re.findall(r'@(convgrad_[0-9a-f]+)\(.*?problem = "([^"]*)"', text) == [
        (targets.name_of(line, ""), line)
    ]
    targets.register_text(targets.name_of(line, ""), line, "")


def test_exports_are_registered() -> None:
    """A module that calls passes has their lines beside the calls; each is made again from its line."""
    from jax import export

    x = jnp.zeros((1, 2, 3, 5), np.float32)
    run = jax.jit(lambda x: batch_norm_act(x, activation="gelu")[0])
    exported = export.export(
        run,
        disabled_checks=[export.DisabledSafetyCheck.custom_call(name) for name in _names(run, x)],
    )(x)
    assert convgrad.jax.register(exported) == 2  # with its derivative
    assert np.array_equal(exported.call(x), run(x))


def _names(run: Any, x: Any) -> set[str]:
    """Return what a function and its derivative call."""
    back = jax.jit(lambda x, g: jax.vjp(run, x)[1](g))
    texts = run.lower(x).as_text() + back.lower(x, x).as_text()
    return set(re.findall(r"@(convgrad_[0-9a-f]+)", texts))


ODD = jnp.zeros((1, 2, 2, 7), np.float32)
"""Of a shape that no other test has: a name that is registered stays with its program."""
