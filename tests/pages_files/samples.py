"""The sample pages of enuSpace's repository, written anew from their description.

Blocks, numbers and texts are as described, down to the number of blocks of each kind; ids and places are ours, except
the few that the description names. `sample_parts` adds what such pages carry and what means nothing.

Numbers the description does not list were found from those it does:

- The random-looking initial values of pages 1 and 19 are `rand()/32767` of Microsoft's C library, seed 1.
- Page 5: `Y = X {1,2,3} + 5` follows from the first step, the second moments of X from the costs of runs 2 and 11, and
  128 matrices of whole numbers up to 60 have them. All give the same numbers in every run; this one looks typed by
  a person, and its largest is the 53 that the description names.
"""

from __future__ import annotations

import numpy as np

from convgrad._apps.pages.page import Block, Page
from pages_files.sample_parts import (
    descent,
    doubles,
    floats,
    lines,
    matmul,
    mean,
    page,
    rand,
    variable,
)
from pages_files.writing import block


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
    return page("addsymbolicgradients", blocks, lines(wires))


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
    return page("gradient_descent_xw_apply", blocks, lines(wires))


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
    return page("gradient_descent_xw_sub", blocks, lines(wires))
