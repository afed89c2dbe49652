"""The sample pages of enuSpace's repository, written anew from their description.

Blocks, numbers and texts are as described, down to the number of blocks of each kind; ids and places are ours, except
the few that the description names. `in_full` adds what pages of enuSpace carry and what means nothing: scopes, outputs,
results of some older run, labels, plots, scripts.

Numbers the description does not list were found from those it does:

- The random-looking initial values of pages 1 and 19 are `rand()/32767` of Microsoft's C library, seed 1.
- Page 5: `Y = X {1,2,3} + 5` follows from the first step, the second moments of X from the costs of runs 2 and 11, and
  128 matrices of whole numbers have them. All give the same numbers in every run; this one is written like a person
  would, and has the 53 that the description names as the largest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from convgrad._pages.page import Block, Page, Value
from pages_files.writing import block, save, wire

DRAWING = """<rect id="ID_R" x="0" y="0" width="10" height="10" style="fill:#ffffff"/>
<path id="ID_P" d="M 0 0 L 9 9"/>
<text id="ID_T2" x="1">auto C = MatMul(root, A, B, MatMul::TransposeB(true));</text>
<pg-trend id="ID_TREND"><pg-trendseries variable="ID_COST.result_output"/></pg-trend>
<pg-trend-contour id="ID_IMAGE" data=""/>
<pg-editbox id="ID_EDIT"/>
<script type="text/lua">function _ontask() ID_GONE.data = ID_ANALSYS.result_y[0][0]; end</script>
"""
"""Elements that only draw, some naming blocks that are not there."""
FORMS = (3, 4, "json")
"""Of page files."""
_STALE = Value("7.500000;-3.250000", "double", (2,))
"""A result of some older run, in a shape that is not the block's."""


def in_full(page: Page) -> Page:
    """Add to every block what enuSpace writes and nobody may read."""
    used: dict[str, list[str]] = {}
    for each in page.wires:
        used.setdefault(each.source, []).append(each.source_pin)
    blocks = []
    for at, each in enumerate(page.blocks):
        pins = dict(each.pins)
        if each.in_graph and each.symbol != "InputList":
            pins["scope"] = Value("scope")
        for pin in dict.fromkeys(used.get(each.id, [])):
            if pin != "grad_outputs" and not pin.startswith("result_"):
                pins.setdefault(pin, Value(""))
                pins.setdefault(f"result_{pin}", _STALE)
        blocks.append(replace(each, pins=pins, x=40.0 + 130 * (at % 9), y=40.0 + 150 * (at // 9)))
    return Page(page.name, blocks, page.wires, 1920, 1080)


def store(page: Page, folder: Path, form: int | str) -> Path:
    """Write a page in one of its `FORMS`. As JSON it has no drawing, and only the blocks of the plug-in's own task."""
    if form == "json":
        blocks = [each for each in page.blocks if each.in_graph]
        ids = {each.id for each in blocks}
        wires = [each for each in page.wires if {each.source, each.target} <= ids]
        page = replace(page, blocks=blocks, wires=wires)
    return save(page, folder, form, DRAWING)


def page(name: str, blocks: list[Block], wires: str) -> Page:
    """Return a page; wires are lines such as `a.output > b.x`, those in brackets are hidden."""
    links = [line.strip() for line in wires.strip().splitlines()]
    made = [wire(line.strip("()"), hidden=line.startswith("(")) for line in links]
    return in_full(Page(name, blocks, made))


def rand(count: int, skip: int = 0) -> list[float]:
    """Return `rand()/32767` as six decimals of a float32, from the seed 1."""
    state, found = 1, []
    for _ in range(skip + count):
        state = (state * 214013 + 2531011) % (1 << 32)
        found.append(float(f"{np.float32((state >> 16 & 0x7FFF) / 32767):.6f}"))
    return found[skip:]


def floats(values: object, *shape: int) -> np.ndarray:
    """Return an array of float32."""
    return np.array(values, np.float32).reshape(shape)


def doubles(values: object, *shape: int) -> np.ndarray:
    """Return an array of float64."""
    return np.array(values, np.float64).reshape(shape)


def variable(id: str, first: np.ndarray) -> Block:
    """Return a Variable as the pages have them: typed values, no dtype, and a shape that is a leftover."""
    return block(
        id,
        "Variable",
        shape="{2,2}",
        dtype="",
        initvalues=first,
        attrs="container_ =;shared_name_ =;",
    )


def descent(id: str) -> Block:
    """Return an ApplyGradientDescent."""
    return block(id, "ApplyGradientDescent", attrs="use_locking_ = false;")


def mean(id: str, axis: str, keep: str = "false") -> Block:
    """Return a Mean over axes typed as a literal."""
    return block(id, "Mean", axis=axis, attrs=f"keep_dims_ = {keep};")


def matmul(id: str, a: str = "false", b: str = "false") -> Block:
    """Return a MatMul."""
    return block(id, "MatMul", attrs=f"transpose_a_ = {a};transpose_b_ = {b};")


def basic() -> Page:
    """Page 4: one product."""
    a, b = doubles([3, 2, -1, 0], 2, 2), doubles([3, 5], 1, 2)
    return page(
        "basic",
        [
            block("ID_A", "Const", val=a),
            block("ID_B", "Const", val=b),
            matmul("ID_MUL", b="true"),
            # A session of version 3.0.1.16: it has fewer pins.
            block("ID_SESSION", "ClientSession", device="/cpu:0"),
        ],
        """
        ID_A.output > ID_MUL.a
        ID_B.output > ID_MUL.b
        ID_MUL.product > ID_SESSION.fetch_outputs
        """,
    )


def basic_sum() -> Page:
    """Page `basic` of the newer projects: one sum, in the folder of another task."""
    numbers, task = doubles([1, 2, 3, 4], 2, 2), "enu_tensorflow2_0"
    return page(
        "basic",
        [
            block("ID_A", "Const", task=task, val=numbers),
            block("ID_B", "Const", task=task, val=numbers),
            block("ID_ADD", "Add", task=task),
            block("ID_SESSION", "ClientSession", task=task, SHOW_DEBUG="FALSE"),
        ],
        """
        ID_A.output > ID_ADD.x
        ID_B.output > ID_ADD.y
        ID_ADD.z > ID_SESSION.fetch_outputs
        """,
    )


def one_hot() -> Page:
    """Page 2: a hundred digits; the result is large enough for the `.dat`."""
    digits = np.arange(100, dtype=np.int32) * 7 % 10
    return page(
        "one_hot",
        [
            block("ID_DIGITS", "Const", val=digits),
            block(
                "ID_HOT",
                "OneHot",
                depth="10",
                on_value="1",
                off_value="0",
                attrs="axis_=0",
                result_output=np.eye(10, dtype=np.int32)[digits],
            ),
            block("ID_SESSION", "ClientSession"),
        ],
        """
        ID_DIGITS.output > ID_HOT.indices
        ID_HOT.output > ID_SESSION.fetch_outputs
        """,
    )


def symbolic_gradients() -> Page:
    """Page 1: three layers, weights held small, trained by symbolic gradients."""
    first = {
        "W1": floats(rand(9), 3, 3),
        "W2": floats(rand(6, 9), 3, 2),
        "W3": floats(rand(2, 15), 2, 1),
        "B1": floats(rand(3, 17), 3),
        "B2": floats(rand(2, 20), 2),
        "B3": floats(rand(1, 22), 1),
    }
    blocks = [
        block("ID_X", "Const", val=floats(rand(3, 26), 1, 3)),
        block("ID_TARGET", "Const", val=floats(1, 1, 1)),
        block("ID_ALPHA", "Const", val=np.float32(0.01)),
        *(variable(f"ID_{name}", array) for name, array in first.items()),
    ]
    for layer in (1, 2, 3):
        blocks += [
            matmul(f"ID_M{layer}"),
            block(f"ID_S{layer}", "Add"),
            block(f"ID_Y{layer}", "Tanh"),
            block(f"ID_L{layer}", "L2Loss"),
        ]
    blocks += [
        block("ID_LIST", "InputList"),
        block("ID_SUM", "AddN"),
        block("ID_DECAY", "Multiply", y="0.01f"),
        block("ID_DIFF", "Subtract"),
        block("ID_SQUARE", "Square"),
        mean("ID_MSE", "{0,1}"),
        block("ID_1eYS8f0", "Add"),
        block("ID_GRADIENTS", "AddSymbolicGradients"),
        *(descent(f"ID_NEW_{name}") for name in first),
        block("ID_SESSION", "ClientSession", device="/cpu:0"),
    ]
    wires = """
        ID_L1.output > ID_LIST.outputlist
        ID_L2.output > ID_LIST.outputlist
        ID_L3.output > ID_LIST.outputlist
        ID_LIST.output > ID_SUM.inputs
        ID_SUM.sum > ID_DECAY.x
        ID_Y3.y > ID_DIFF.x
        ID_TARGET.output > ID_DIFF.y
        ID_DIFF.z > ID_SQUARE.x
        ID_SQUARE.y > ID_MSE.input
        ID_MSE.output > ID_1eYS8f0.x
        ID_DECAY.z > ID_1eYS8f0.y
        (ID_1eYS8f0.z > ID_GRADIENTS.outputs)
    """
    before = "ID_X.output"
    for layer in (1, 2, 3):
        wires += f"""
        {before} > ID_M{layer}.a
        ID_W{layer}.ref > ID_M{layer}.b
        ID_M{layer}.product > ID_S{layer}.x
        ID_B{layer}.ref > ID_S{layer}.y
        ID_S{layer}.z > ID_Y{layer}.x
        ID_W{layer}.ref > ID_L{layer}.t
        """
        before = f"ID_Y{layer}.y"
    for at, name in enumerate(first):
        wires += f"""
        (ID_{name}.ref > ID_GRADIENTS.inputs)
        (ID_{name}.ref > ID_NEW_{name}.var)
        (ID_ALPHA.output > ID_NEW_{name}.alpha)
        ID_GRADIENTS.grad_outputs[{at}] > ID_NEW_{name}.delta
        ID_NEW_{name}.out > ID_SESSION.fetch_outputs
        """
    return page("addsymbolicgradients", blocks, _lines(wires))


def _lines(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.strip())


X5 = [
    [1, 5, 21], [15, 12, 22], [35, 13, 23], [4, 45, 24],
    [5, 15, 53], [6, 44, 7], [12, 17, 27], [6, 20, 28],
]  # fmt: skip


def regression() -> Page:
    """Page 5: a line through eight points in three dimensions, with sensors of another task."""
    x = doubles(X5, 8, 3)
    blocks = [
        variable("ID_X", x),
        variable("ID_Y", x @ doubles([1, 2, 3], 3, 1) + 5),
        variable("ID_W", doubles([1.5, 3.5, 0.5], 1, 3)),
        variable("ID_B", doubles([0.5], 1)),
        matmul("ID_XW", b="true"),
        block("ID_H", "Add"),
        block("ID_R", "Subtract"),
        block("ID_SQUARE", "Square"),
        mean("ID_COST", "{0,1}"),
        block("ID_RX", "Multiply"),
        mean("ID_DELTA_W", "0", keep="TRUE"),
        mean("ID_DELTA_B", "0"),
        block("ID_ALPHA", "Const", val=np.float64(0.001)),
        descent("ID_NEW_W"),
        descent("ID_NEW_B"),
        block("ID_SESSION", "ClientSession", INFINITE_LOOP=np.bool_(False)),
        block("ID_THREE", "ARAAY_3_OUT", task="logic"),
        *(block(f"ID_SENSOR{at}", "SENSOR_TREND", task="logic", IN="12.5") for at in range(5)),
    ]
    return page(
        "gradient_descent_xnwn_b",
        blocks,
        """
        ID_X.ref > ID_XW.a
        ID_W.ref > ID_XW.b
        ID_XW.product > ID_H.x
        ID_B.ref > ID_H.y
        ID_H.z > ID_R.x
        ID_Y.ref > ID_R.y
        ID_R.z > ID_SQUARE.x
        ID_SQUARE.y > ID_COST.input
        ID_R.z > ID_RX.x
        ID_X.ref > ID_RX.y
        ID_RX.z > ID_DELTA_W.input
        ID_R.z > ID_DELTA_B.input
        ID_W.ref > ID_NEW_W.var
        ID_ALPHA.output > ID_NEW_W.alpha
        ID_DELTA_W.output > ID_NEW_W.delta
        ID_B.ref > ID_NEW_B.var
        ID_ALPHA.output > ID_NEW_B.alpha
        ID_DELTA_B.output > ID_NEW_B.delta
        ID_COST.output > ID_SESSION.fetch_outputs
        ID_NEW_W.out > ID_SESSION.fetch_outputs
        ID_NEW_B.out > ID_SESSION.fetch_outputs
        ID_NEW_W.result_out > ID_THREE.IN
        ID_THREE.OUT0 > ID_SENSOR0.IN
        ID_COST.result_output > ID_SENSOR3.IN
        """,
    )


def _slope() -> tuple[list[Block], str]:
    """Return what pages 6 and 7 have in common: a line through three points and the origin."""
    points = doubles([1, 2, 3], 3)
    blocks = [
        variable("ID_W", doubles(100)),
        variable("ID_X", points),
        variable("ID_Y", points),
        block("ID_XW", "Multiply"),
        block("ID_R", "Subtract"),
        block("ID_SQUARE", "Square"),
        mean("ID_COST", "0"),
        block("ID_RX", "Multiply"),
        mean("ID_DELTA", "{0}"),
    ]
    wires = """
        ID_X.ref > ID_XW.x
        ID_W.ref > ID_XW.y
        ID_XW.z > ID_R.x
        ID_Y.ref > ID_R.y
        ID_R.z > ID_SQUARE.x
        ID_SQUARE.y > ID_COST.input
        ID_R.z > ID_RX.x
        ID_X.ref > ID_RX.y
        ID_RX.z > ID_DELTA.input
        ID_COST.output > ID_SESSION.fetch_outputs
    """
    return blocks, wires


def slope_applied() -> Page:
    """Page 6: the slope by ApplyGradientDescent."""
    blocks, wires = _slope()
    blocks += [
        block("ID_ALPHA", "Const", val=np.float64(0.0001)),
        descent("ID_NEW"),
        block("ID_SESSION", "ClientSession"),
    ]
    wires += """
        ID_W.ref > ID_NEW.var
        ID_ALPHA.output > ID_NEW.alpha
        ID_DELTA.output > ID_NEW.delta
        ID_NEW.out > ID_SESSION.fetch_outputs
    """
    return page("gradient_descent_xw_apply", blocks, _lines(wires))


def slope_assigned() -> Page:
    """Page 7: the slope by Subtract and Assign, and a factor typed on a pin."""
    blocks, wires = _slope()
    blocks += [
        block("ID_STEP", "Multiply", x="0.1"),
        block("ID_LESS", "Subtract"),
        block("ID_NEW", "Assign", attrs="validate_shape_ = true;use_locking_ = true;"),
        block("ID_SESSION", "ClientSession"),
    ]
    wires += """
        ID_DELTA.output > ID_STEP.y
        ID_W.ref > ID_LESS.x
        ID_STEP.z > ID_LESS.y
        ID_W.ref > ID_NEW.ref
        ID_LESS.z > ID_NEW.value
        ID_NEW.output_ref > ID_SESSION.fetch_outputs
    """
    return page("gradient_descent_xw_sub", blocks, _lines(wires))


def _xor(first: dict[str, Value], slope: str) -> tuple[list[Block], str]:
    """Return a network of two hidden units; `slope` is where the derivative of its cost comes from."""
    ones = {"dtype": "DT_FLOAT"}
    blocks = [
        # Texts of a type that is not the dtype: the dtype counts.
        block("ID_X", "Const_ex", val=doubles([0, 0, 0, 1, 1, 0, 1, 1], 4, 2), **ones),
        block("ID_Y", "Const_ex", val=Value("0;1;1;0", "string", (4, 1)), **ones),
        block("ID_ALPHA", "Const_ex", val=np.float32(0.1), **ones),
        block("ID_ONE", "Const_ex", val=Value("{1}"), **ones),
        *(
            block(f"ID_{name}", "Variable", shape=text.text, dtype="DT_FLOAT", initvalues=value)
            if value.type == "string"
            else block(f"ID_{name}", "Variable", shape="{2,2}", dtype="", initvalues=value)
            for (name, value), text in zip(first.items(), _SHAPES, strict=True)
        ),
        matmul("ID_XW"),
        block("ID_XWB", "Add"),
        block("ID_H", "Sigmoid"),
        matmul("ID_HW"),
        block("ID_HWB", "Add"),
        block("ID_O", "Sigmoid"),
        # Backwards, drawn by hand.
        block("ID_1_O", "Subtract"),
        block("ID_O_1_O", "Multiply"),
        block("ID_D", "Multiply"),
        matmul("ID_DELTA_W2", a="true"),
        mean("ID_DELTA_B2", "0"),
        matmul("ID_BACK", b="true"),
        block("ID_1_H", "Subtract"),
        block("ID_H_1_H", "Multiply"),
        block("ID_DH", "Multiply"),
        matmul("ID_DELTA_W1", a="1"),
        mean("ID_DELTA_B1", "{0}"),
        *(descent(f"ID_NEW_{name}") for name in first),
    ]
    wires = f"""
        ID_X.output > ID_XW.a
        ID_W1.ref > ID_XW.b
        ID_XW.product > ID_XWB.x
        ID_B1.ref > ID_XWB.y
        ID_XWB.z > ID_H.x
        ID_H.y > ID_HW.a
        ID_W2.ref > ID_HW.b
        ID_HW.product > ID_HWB.x
        ID_B2.ref > ID_HWB.y
        ID_HWB.z > ID_O.x
        ID_ONE.output > ID_1_O.x
        ID_O.y > ID_1_O.y
        ID_O.y > ID_O_1_O.x
        ID_1_O.z > ID_O_1_O.y
        {slope} > ID_D.x
        ID_O_1_O.z > ID_D.y
        ID_H.y > ID_DELTA_W2.a
        ID_D.z > ID_DELTA_W2.b
        ID_DELTA_W2.product > ID_NEW_W2.delta
        ID_D.z > ID_DELTA_B2.input
        ID_DELTA_B2.output > ID_NEW_B2.delta
        ID_D.z > ID_BACK.a
        ID_W2.ref > ID_BACK.b
        ID_ONE.output > ID_1_H.x
        ID_H.y > ID_1_H.y
        ID_H.y > ID_H_1_H.x
        ID_1_H.z > ID_H_1_H.y
        ID_BACK.product > ID_DH.x
        ID_H_1_H.z > ID_DH.y
        ID_X.output > ID_DELTA_W1.a
        ID_DH.z > ID_DELTA_W1.b
        ID_DELTA_W1.product > ID_NEW_W1.delta
        ID_DH.z > ID_DELTA_B1.input
        ID_DELTA_B1.output > ID_NEW_B1.delta
    """
    for name in first:
        wires += f"""
        ID_{name}.ref > ID_NEW_{name}.var
        (ID_ALPHA.output > ID_NEW_{name}.alpha)
        ID_NEW_{name}.out > ID_SESSION.fetch_outputs
        """
    return blocks, wires


_SHAPES = (Value("{2,2}"), Value("[2]"), Value("2;1"), Value("{1}"))


def xor(w1: str = "{{0.5,0.5},{0.5,0.5}}") -> Page:
    """Page 18: cross entropy, squared. Variables are typed as literals with a dtype beside them."""
    first = {
        "W1": Value(w1),
        "B1": Value("{0,0}"),
        "W2": Value("{{0.45},{0.54}}"),
        "B2": Value("{0}"),
    }
    blocks, wires = _xor(first, "ID_CE_DCE.z")
    blocks += [
        block("ID_1_Y", "Subtract", x="1.0f"),
        block("ID_REST", "Subtract", x="{{1f},{1f},{1f},{1f}}"),
        block("ID_LOG_O", "Log"),
        block("ID_LOG_REST", "Log"),
        block("ID_HIT", "Multiply"),
        block("ID_MISS", "Multiply"),
        block("ID_BOTH", "Add"),
        block("ID_CE", "Negate"),
        block("ID_SQUARE", "Square"),
        mean("ID_XOR_MEAN", "{0,1}"),
        block("ID_UP", "Div"),
        block("ID_DOWN", "Div"),
        block("ID_DCE", "Subtract"),
        block("ID_CE_DCE", "Multiply"),
        block("ID_SESSION", "ClientSession"),
    ]
    wires += """
        ID_Y.output > ID_1_Y.y
        ID_O.y > ID_REST.y
        ID_O.y > ID_LOG_O.x
        ID_REST.z > ID_LOG_REST.x
        ID_Y.output > ID_HIT.x
        ID_LOG_O.y > ID_HIT.y
        ID_1_Y.z > ID_MISS.x
        ID_LOG_REST.y > ID_MISS.y
        ID_HIT.z > ID_BOTH.x
        ID_MISS.z > ID_BOTH.y
        ID_BOTH.z > ID_CE.x
        ID_CE.y > ID_SQUARE.x
        ID_SQUARE.y > ID_XOR_MEAN.input
        ID_1_Y.z > ID_UP.x
        ID_REST.z > ID_UP.y
        ID_Y.output > ID_DOWN.x
        ID_O.y > ID_DOWN.y
        ID_UP.z > ID_DCE.x
        ID_DOWN.z > ID_DCE.y
        ID_CE.y > ID_CE_DCE.x
        ID_DCE.z > ID_CE_DCE.y
        ID_XOR_MEAN.output > ID_SESSION.fetch_outputs
    """
    return page("Xor", blocks, _lines(wires))


def xor_squares() -> Page:
    """Page 19: squares of differences. Variables have typed values."""
    numbers = rand(4)
    first = {
        "W1": floats(numbers, 2, 2),
        "B1": floats([0, 0], 2),
        "W2": floats(numbers[2:], 2, 1),
        "B2": floats([1], 1),
    }
    typed = {name: Value("", "float", array.shape, array) for name, array in first.items()}
    blocks, wires = _xor(typed, "ID_DIFF.z")
    blocks += [
        block("ID_DIFF", "Subtract"),
        block("ID_SQUARE", "Square"),
        mean("ID_1eOxka1459", "{0,1}"),
        block("ID_SESSION", "ClientSession"),
    ]
    wires += """
        ID_O.y > ID_DIFF.x
        ID_Y.output > ID_DIFF.y
        ID_DIFF.z > ID_SQUARE.x
        ID_SQUARE.y > ID_1eOxka1459.input
        ID_1eOxka1459.output > ID_SESSION.fetch_outputs
    """
    return page("Xor2", blocks, _lines(wires))
