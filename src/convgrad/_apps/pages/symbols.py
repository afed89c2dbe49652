"""The blocks enuSpace has, one row each: pins with defaults and grammars, outputs, and what the original does oddly.

Every block but InputList has a pin `scope` too, whose text means nothing: a page is a scope. And every output pin `p`
has a twin `result_p`, which holds the numbers of the last run. Neither is listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from .page import Block, Page, Value
from .setting_texts import nearest

MOST_NOTES = 1000
"""On unknown pins of a page."""
WIRE = "wire"
"""Needs a wire."""
LITERAL = "literal"
"""A wire, or a literal (T2)."""
WIRES = "wires"
"""Any number of wires, in their order."""
LITERALS = "literals"
"""Any number of wires, or a list of literals (T3)."""
INITIAL = "initial"
"""An array: typed (T1) or stored; a Variable's may be a literal too, or a wire from a Const."""
SHAPE, DTYPE, INTS, PADDING, ATTRS, TRUTH, TEXT = (
    "shape",
    "dtype",
    "ints",
    "padding",
    "attrs",
    "truth",
    "text",
)
"""Texts only: T5, T7, T6, T8, T4, true or false, anything."""


@dataclass(frozen=True)
class Pin:
    """An input of a block."""

    name: str
    kind: str
    default: str = ""
    dtype: str = ""
    """Of literal text, where it is not the characters that give one."""


@dataclass(frozen=True)
class Symbol:
    """A row."""

    name: str
    pins: tuple[Pin, ...] = ()
    outputs: tuple[str, ...] = ()
    attrs: Mapping[str, str] = field(default_factory=dict)
    """Kinds of the attributes by name, as `setting_texts.attribute_value` knows them."""
    computed: bool = True
    """Whether we know what it does; the others are kept with the pins their page gives them, and refuse to run."""
    notes: tuple[str, ...] = ()
    """Where enuSpace's own library and code disagree."""

    @cached_property
    def names(self) -> dict[str, Pin]:
        """The input pins by name."""
        return {pin.name: pin for pin in self.pins}

    def pin(self, name: str) -> Pin | None:
        """Return the input pin of a name, or None."""
        return self.names.get(name)


def _wires(*names: str) -> tuple[Pin, ...]:
    return tuple(Pin(name, WIRE) for name in names)


def _literals(*names: str) -> tuple[Pin, ...]:
    return tuple(Pin(name, LITERAL) for name in names)


def _attrs(text: str) -> Pin:
    return Pin("attrs", ATTRS, text)


_LOCKING = {"use_locking_": "bool"}
_FORMAT = {"data_format_": "string"}
_DENSE = {"data_format_": "string", "dilations_": "ints", "use_cudnn_on_gpu_": "bool"}
_DEPTHWISE = {"data_format_": "string", "dilations_": "ints"}
_SEEDS = {"seed_": "int", "seed2_": "int"}
_WINDOW = (Pin("strides", INTS), Pin("padding", PADDING))
_DENSE_PINS = (
    *_WINDOW,
    # Misspelt in the library; read as `dilations_`.
    _attrs("data_format_ = NHWC;dialtions_ = {1,1,1,1};use_cudnn_on_gpu_ = true;"),
)
_DEPTHWISE_PINS = (*_WINDOW, _attrs("data_format_ = NHWC;dilations_={1,1,1,1}"))
_DILATIONS = "enuSpace 2.0.1 does not read `dilations_`, 1.5 does; it is read here"


def _convolutions(prefix: str, pins: tuple[Pin, ...], attrs: Mapping[str, str]) -> list[Symbol]:
    """Return the rows of a convolution and its two gradients."""
    operands = {
        prefix: ("input", "filter"),
        f"{prefix}BackpropInput": ("input_sizes", "filter", "out_backprop"),
        f"{prefix}BackpropFilter": ("input", "filter_sizes", "out_backprop"),
    }
    return [
        Symbol(name, (*_wires(*wired), *pins), ("output",), attrs, notes=(_DILATIONS,))
        for name, wired in operands.items()
    ]


_ROWS = [
    # core
    Symbol("Const", (Pin("val", INITIAL, "{0}"),), ("output",)),
    Symbol("Const_ex", (Pin("val", INITIAL, "{0}"), Pin("dtype", DTYPE, "DT_INT32")), ("output",)),
    Symbol(
        "AddSymbolicGradients", (Pin("outputs", WIRES), Pin("inputs", WIRES)), ("grad_outputs",)
    ),
    Symbol("InputList", (Pin("outputlist", WIRES),), ("output",)),
    Symbol(
        "ClientSession",
        (
            Pin("device", TEXT, "/cpu:0"),
            Pin("fetch_outputs", WIRES),
            Pin("inputs", WIRES),
            Pin("run_outputs", WIRES),
            Pin("SHOW_DEBUG", TRUTH, "0"),
            Pin("INFINITE_LOOP", TRUTH, "0"),
        ),
        ("status",),
        notes=("enuSpace reads `device` and does nothing with it, and never writes `status`",),
    ),
    Symbol("Operation", _wires("operation"), ("output",)),
    # state and training
    Symbol(
        "Variable",
        (
            Pin("shape", SHAPE, "{2,2}"),
            Pin("dtype", DTYPE, "DT_DOUBLE"),
            Pin("initvalues", INITIAL, "{{1,2},{3,4}}"),
            _attrs("container_ =;shared_name_ =;"),
        ),
        ("ref",),
        {"container_": "string", "shared_name_": "string"},
        notes=("enuSpace reads `SharedName_` and never `shared_name_`",),
    ),
    Symbol(
        "Assign",
        (*_wires("ref", "value"), _attrs("validate_shape_ = true;use_locking_ = true;")),
        ("output_ref",),
        {"validate_shape_": "bool", **_LOCKING},
    ),
    Symbol(
        "ApplyGradientDescent",
        (*_wires("var", "alpha", "delta"), _attrs("use_locking_ = false;")),
        ("out",),
        _LOCKING,
    ),
    # math
    Symbol("AddN", (Pin("inputs", LITERALS),), ("sum",)),
    *(
        Symbol(name, _literals("x", "y"), ("z",))
        for name in ("Add", "Subtract", "Multiply", "Div", "Equal")
    ),
    *(
        Symbol(name, _literals("x"), ("y",))
        for name in ("Negate", "Square", "Log", "Exp", "Tanh", "Sigmoid")
    ),
    Symbol(
        "MatMul",
        (*_literals("a", "b"), _attrs("transpose_a_ = false;transpose_b_ = false;")),
        ("product",),
        {"transpose_a_": "bool", "transpose_b_": "bool"},
    ),
    *(
        Symbol(
            name,
            (*_literals("input", "axis"), _attrs("keep_dims_ = false;")),
            ("output",),
            {"keep_dims_": "bool"},
        )
        for name in ("Mean", "Sum")
    ),
    Symbol("ArgMax", _literals("input", "dimension"), ("output",)),
    Symbol("Cast", (*_literals("x"), Pin("DstT", DTYPE, "DT_DOUBLE")), ("y",)),
    # array_ops
    Symbol(
        "Placeholder",
        (Pin("dtype", DTYPE, "DT_INT32"), _attrs("shape_=")),
        ("output",),
        {"shape_": "shape"},
        notes=("enuSpace reads `shape_ = {2,3}` as [2,23]; it is 2 by 3 here",),
    ),
    Symbol("Reshape", (*_literals("tensor"), Pin("shape", LITERAL, dtype="DT_INT32")), ("output",)),
    Symbol("Transpose", (*_literals("x"), Pin("perm", LITERAL, dtype="DT_INT32")), ("y",)),
    Symbol(
        "OneHot",
        (*_literals("indices", "depth", "on_value", "off_value"), _attrs("axis_=0")),
        ("output",),
        {"axis_": "int"},
        notes=("enuSpace never reads `axis_`: the axis is always the last",),
    ),
    # nn
    Symbol("Relu", _wires("features"), ("activations",)),
    Symbol("L2Loss", _wires("t"), ("output",)),
    Symbol("Softmax", _wires("logits"), ("softmax",)),
    Symbol("SoftmaxCrossEntropyWithLogits", _wires("features", "labels"), ("loss", "backprop")),
    Symbol(
        "BiasAdd", (*_wires("value", "bias"), _attrs("data_format_ = NHWC;")), ("output",), _FORMAT
    ),
    Symbol(
        "MaxPool",
        (*_wires("input"), Pin("ksize", INTS), *_WINDOW, _attrs("data_format_ = NHWC;")),
        ("output",),
        _FORMAT,
    ),
    *_convolutions("Conv2D", _DENSE_PINS, _DENSE),
    *_convolutions("DepthwiseConv2dNative", _DEPTHWISE_PINS, _DEPTHWISE),
    # random
    Symbol(
        "RandomNormal",
        (*_wires("shape"), Pin("dtype", DTYPE, "DT_DOUBLE"), _attrs("seed_ = 0;seed2_ = 0;")),
        ("output",),
        _SEEDS,
        notes=("enuSpace needs `shape` from a Const or Const_ex",),
    ),
    Symbol(
        "RandomNormal_ex",
        (
            Pin("shape", SHAPE, "[1]"),
            Pin("dtype", DTYPE, "DT_DOUBLE"),
            _attrs("seed_=0;seed2_=0"),
        ),
        ("output",),
        _SEEDS,
        notes=(
            "enuSpace never reads `seed_` and `seed2_`: its numbers differ from run to run",
            "enuSpace reads shape `{2,3}` as [2,23]; it is 2 by 3 here",
        ),
    ),
    # Known by name: they occur on pages, and their pins come with the page.
    Symbol("Switch", _wires("data", "pred"), ("output_false", "output_true"), computed=False),
    Symbol("Output", computed=False, notes=("enuSpace itself never creates it",)),
    Symbol("NoOp", computed=False, notes=("enuSpace itself never creates it",)),
    Symbol("RandomPoisson", computed=False, notes=("enuSpace 2.0.1 does not know it",)),
    *(
        Symbol(name, computed=False)
        for name in (
            "All",
            "DecodeRaw",
            "FIFOQueue",
            "FeedType",
            "FixedLengthRecordReader",
            "Greater",
            "Input_Initializer",
            "Link",
            "LogicalNot",
            "Mod",
            "QueueEnqueue",
            "QueueSize",
            "ReaderReadUpTo",
            "Restore",
            "Save",
            "SparseToDense",
            "Tensor",
            "TensorArray",
            "TensorArrayGather",
            "TensorArrayWrite",
        )
    ),
]
SYMBOLS: Mapping[str, Symbol] = {row.name: row for row in _ROWS}


def find(name: str) -> Symbol | None:
    """Return the row of a symbol, or None.

    >>> find("Conv2D").outputs, find("Conv3D")
    (('output',), None)
    """
    return SYMBOLS.get(name)


def pins_of(block: Block) -> dict[str, Value]:
    """Return the pins of a block, those it lacks filled with their defaults.

    >>> {name: value.text for name, value in pins_of(Block("x", "Cast", {"x": Value("1")})).items()}
    {'x': '1', 'DstT': 'DT_DOUBLE'}
    """
    symbol = SYMBOLS.get(block.symbol) if block.in_graph else None
    missing = [pin for pin in symbol.pins if pin.name not in block.pins] if symbol else []
    return {**block.pins, **{pin.name: Value(pin.default) for pin in missing}}


def fill_missing(page: Page) -> None:
    """Give every block the pins its page does not mention: older pages have fewer."""
    for block in page.blocks:
        block.pins = pins_of(block)


def note_unknown_pins(page: Page) -> None:
    """Add a note for every wire that ends at a pin its block does not have, where we know the block."""
    blocks = page.by_id()
    left = MOST_NOTES  # the nearest name takes a while to find
    for wire in page.wires:
        for id, pin, begins in (
            (wire.source, wire.source_pin, True),
            (wire.target, wire.target_pin, False),
        ):
            block = blocks[id]
            symbol = SYMBOLS.get(block.symbol) if block.in_graph else None
            if symbol is None or not (symbol.pins or symbol.outputs) or pin in block.pins:
                continue
            names = symbol.outputs if begins else tuple(each.name for each in symbol.pins)
            if pin.removeprefix("result_" if begins else "") not in (*names, "scope"):
                side = "output" if begins else "input"
                left -= 1
                if not left:
                    page.note(None, "there are more wires that end at unknown pins")
                    return
                page.note(id, f"{symbol.name} has no {side} pin `{pin[:50]}`{nearest(pin, names)}")
