"""enuSpace's pages 18 and 19, written anew: a network that learns XOR, its gradients drawn by hand."""

from __future__ import annotations

import numpy as np

from convgrad._apps.pages.page import Block, Page, Value
from pages_files.sample_parts import descent, doubles, floats, lines, matmul, mean, page, rand
from pages_files.writing import block


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
    return page("Xor", blocks, lines(wires))


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
    return page("Xor2", blocks, lines(wires))
