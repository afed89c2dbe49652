"""Shapes of the six operations with sizes hidden at random: never refused if it runs, never wrong if it is stated."""

from __future__ import annotations

import numpy as np
import pytest

import cases as convolutions
from convgrad import raw_ops
from convgrad._apps.graph.row import NodeCall, canonical
from convgrad._apps.graph.scope import infer
from convgrad._apps.graph.spec import Spec, fits
from convgrad._apps.graph.table import TABLE
from convgrad._base.errors import ConvgradError
from convgrad.graph import Scope, ops

PINS = {
    "forward": ("input", "filter"),
    "input": ("input_sizes", "filter", "out_backprop"),
    "filter": ("input", "filter_sizes", "out_backprop"),
}


def name_of(case, kind):
    base = "DepthwiseConv2dNative" if case.depthwise else "Conv2D"
    return base + {"forward": "", "input": "BackpropInput", "filter": "BackpropFilter"}[kind]


def shapes_of(case, kind):
    x, f, g = case.input_shape, case.filter_shape, case.output_shape
    return {"forward": (x, f), "input": (x, f, g), "filter": (x, f, g)}[kind]


def hidden(rng, sizes, chance):
    if rng.random() < chance / 3:
        return None
    return tuple(None if rng.random() < chance else size for size in sizes)


def specs_of(kind, shapes, dtype, rng, chance):
    """Return what is known of the inputs with some of it hidden."""
    found = []
    for pin, shape in zip(PINS[kind], shapes, strict=True):
        known = hidden(rng, shape, chance)
        if pin.endswith("_sizes"):
            index = np.dtype(str(rng.choice(["int32", "int64"])))
            if known is None:
                found.append(Spec(index, None if rng.random() < 0.5 else (None,)))
            else:
                found.append(Spec(index, (len(shape),), None if rng.random() < 0.2 else known))
        else:
            found.append(Spec(dtype, known))
    return tuple(found)


def attributes(name, settings):
    """Return all attributes in the form nodes keep them."""
    return {
        attr.name: canonical(name, attr, settings.get(attr.name, attr.default))
        for attr in TABLE[name].attrs
    }


@pytest.mark.parametrize("kind", PINS)
@pytest.mark.parametrize("depthwise", [False, True])
def test_hidden_sizes_are_never_refused_and_never_wrong(kind, depthwise, checked):
    rng = np.random.default_rng(7)
    stated = 0
    for _ in range(700):
        case = convolutions.random_case(rng, depthwise=depthwise)
        name, shapes = name_of(case, kind), shapes_of(case, kind)
        true = {
            "forward": case.output_shape,
            "input": case.input_shape,
            "filter": case.filter_shape,
        }[kind]
        _, settings = convolutions.door_settings(case, "raw")
        attrs = attributes(name, settings)
        specs = specs_of(
            kind, shapes, convolutions.NUMPY[case.dtype], rng, float(rng.choice([0, 0.1, 0.3, 0.8]))
        )
        (found,) = infer(TABLE[name], attrs, specs)
        assert fits(found.shape, true), (case, kind, specs, found)
        assert found.shape is not None and len(found.shape) == 4
        stated += sum(size is not None for size in found.shape)
        if all(spec.is_known and (spec.value is None or None not in spec.value) for spec in specs):
            sized = all(spec.value is not None for spec in specs if spec.dtype.kind == "i")
            assert not sized or found.shape == true
        checked["convolutions with hidden sizes"] += 1
    assert stated > 700 * 2, "most sizes are known, and must be stated"


def exact(name, kind, attrs, shapes, dtype):
    """Return the shape with everything known, or None where that is refused."""
    specs = tuple(
        Spec(np.dtype(np.int64), (len(shape),), shape)
        if pin.endswith("_sizes")
        else Spec(dtype, shape)
        for pin, shape in zip(PINS[kind], shapes, strict=True)
    )
    try:
        return infer(TABLE[name], attrs, specs)[0].shape
    except ConvgradError:
        return None


@pytest.mark.parametrize("kind", PINS)
@pytest.mark.parametrize("depthwise", [False, True])
def test_odd_problems_that_run_are_not_refused_either(kind, depthwise):
    """Windows and images without cells, no channels, sizes that fit by chance."""
    rng = np.random.default_rng(13)
    legal = 0
    for _ in range(1500):
        case = convolutions.random_case(rng, depthwise=depthwise, dtype="float32")
        name, shapes = name_of(case, kind), [list(shape) for shape in shapes_of(case, kind)]
        for _ in range(int(rng.integers(1, 4))):
            shapes[int(rng.integers(len(shapes)))][int(rng.integers(4))] = int(
                rng.choice([0, 0, 1, 2, 3, 6])
            )
        attrs = attributes(name, convolutions.door_settings(case, "raw")[1])
        shapes = [tuple(shape) for shape in shapes]
        true = exact(name, kind, attrs, shapes, np.dtype(np.float32))
        if true is not None:
            legal += 1
            for chance in (0.15, 0.5):
                specs = specs_of(kind, shapes, np.dtype(np.float32), rng, chance)
                (found,) = infer(TABLE[name], attrs, specs)
                assert fits(found.shape, true), (attrs, shapes, specs, found)
    assert legal > 60


def changed(rng, case, kind):
    """Return shapes of a legal problem with one size made wrong, perhaps."""
    shapes = [list(shape) for shape in shapes_of(case, kind)]
    which = int(rng.integers(len(shapes)))
    change = rng.random()
    if change < 0.15:
        shapes[which].append(1)
    elif change < 0.3:
        shapes[which].pop()
    elif change < 0.4 and PINS[kind][which].endswith("_sizes"):
        shapes[which][int(rng.integers(4))] = -1
    else:
        at = int(rng.integers(4))
        shapes[which][at] = int(rng.integers(0, 12))
    return [tuple(shape) for shape in shapes]


@pytest.mark.parametrize("kind", PINS)
@pytest.mark.parametrize("depthwise", [False, True])
def test_with_all_sizes_errors_are_the_eager_ones_and_name_the_node(kind, depthwise, checked):
    rng = np.random.default_rng(11)
    refused = accepted = 0
    for _ in range(120):
        case = convolutions.random_case(rng, depthwise=depthwise, dtype="float32")
        name, shapes = name_of(case, kind), changed(rng, case, kind)
        _, settings = convolutions.door_settings(case, "raw")
        arguments = {
            pin: shape if pin.endswith("_sizes") else np.ones(shape, np.float32)
            for pin, shape in zip(PINS[kind], shapes, strict=True)
        }
        try:
            eager = getattr(raw_ops, name)(**arguments, **settings).shape
        except ConvgradError as error:
            eager = error
        scope = Scope.new_root_scope()
        tensors = {
            pin: ops.Const(scope, list(shape), np.int64)
            if pin.endswith("_sizes")
            else ops.Placeholder(scope, np.float32, shape)
            for pin, shape in zip(PINS[kind], shapes, strict=True)
        }
        try:
            built = getattr(ops, name)(
                scope.with_op_name("mine"), **tensors, **settings
            ).output.shape
        except ConvgradError as error:
            built = error
        if isinstance(eager, ConvgradError):
            refused += 1
            assert isinstance(built, ConvgradError), (case, shapes, str(eager))
            assert type(built) is type(eager) and str(built) == f"node 'mine': {eager}"
            assert not scope.ok and scope.status.message == str(built)
            weakened(rng, name, kind, shapes, settings)
        else:
            accepted += 1
            assert built == eager, (case, shapes, built)
    assert refused > 50 and accepted > 2


def weakened(rng, name, kind, shapes, settings):
    """With sizes hidden a wrong problem may be refused or not, but only by an error of ours."""
    legal = [shape if len(shape) == 4 else (1, 1, 1, 1) for shape in shapes]
    specs = specs_of(kind, legal, np.dtype(np.float32), rng, 0.3)
    try:
        infer(TABLE[name], attributes(name, settings), specs)
    except ConvgradError as error:
        assert str(error).startswith(f"{name}: ")


SETTINGS = {
    "strides": [[1, 0, 1, 1], [1, 1], [1, 1, 1, 2], [1, -1, 1, 1]],
    "padding": ["same", "FULL", "EXPLICIT"],
    "data_format": ["NHCW", "CHWN", ""],
    "dilations": [[1, 0, 1, 1], [2, 1, 1, 1], [1, 2], []],
    "explicit_paddings": [[1], [0] * 8],
}


@pytest.mark.parametrize("base", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize("sized", [True, False])
def test_settings_are_refused_in_the_eager_words_even_if_no_size_is_known(base, sized):
    x, f = np.ones((1, 4, 4, 2), np.float32), np.ones((2, 2, 2, 1), np.float32)
    good = {"strides": [1, 1, 1, 1], "padding": "SAME"}
    for argument, values in SETTINGS.items():
        for value in values:
            with pytest.raises(ConvgradError) as eager:
                getattr(raw_ops, base)(input=x, filter=f, **{**good, argument: value})
            scope = Scope.new_root_scope()
            tensors = [
                ops.Placeholder(scope, np.float32, a.shape if sized else None) for a in (x, f)
            ]
            with pytest.raises(type(eager.value)) as built:
                getattr(ops, base)(scope, *tensors, **{**good, argument: value})
            assert str(built.value) == f"node '{base}': {eager.value}"


def test_two_input_sizes_stand_for_rows_and_columns():
    scope = Scope.new_root_scope()
    for layout, expected in (("NHWC", (None, 6, 7, 2)), ("NCHW", (None, 2, 6, 7))):
        g = ops.Placeholder(scope, np.float32, [None] * 4)
        f = ops.Placeholder(scope, np.float32, [3, 3, 2, 4])
        dx = ops.Conv2DBackpropInput(scope, [6, 7], f, g, [1, 1, 1, 1], "SAME", data_format=layout)
        assert dx.output.shape == expected


def test_a_call_names_its_inputs():
    row = TABLE["Conv2D"]
    spec = Spec(np.dtype(np.float32), None)
    assert NodeCall(row, {}, (spec, spec))["filter"] is spec
