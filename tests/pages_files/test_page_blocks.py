"""The blocks that only pages have: GradientCheck and Loop."""

from __future__ import annotations

import numpy as np
import pytest

from convgrad._apps.pages import values
from convgrad._apps.pages.build import build
from convgrad._apps.pages.document import from_json
from convgrad._apps.pages.page import Value
from convgrad._apps.pages.run import PageRun
from convgrad.errors import ArgumentError
from studio_pages import page


def built(*blocks, wires=""):
    return build(from_json(page(*blocks, wires=wires), "page"))


def checked(*between, wires, dtype="DT_FLOAT", epsilon="1e-3"):
    """Return the results of a GradientCheck of something between a Variable and `y`."""
    made = built(
        ("x", "Variable", {"shape": "{1,4,4,2}", "dtype": dtype, "initvalues": "0.5"}),
        *between,
        ("g", "GradientCheck", {"epsilon": epsilon}),
        wires=f"{wires}; x.ref > g.x",
    )
    assert not made.problems, made.problems
    return PageRun(made).step()["g"]


@pytest.mark.parametrize("dtype", ["DT_FLOAT", "DT_DOUBLE", "DT_HALF", "DT_BFLOAT16"])
def test_a_right_gradient_passes_in_every_dtype(dtype):
    result = checked(
        ("s", "Square"), ("t", "Tanh"), wires="x.ref > s.x; s.y > t.x; t.y > g.y", dtype=dtype
    )
    most = {"DT_HALF": 1e-2, "DT_BFLOAT16": 1e-1}.get(dtype, 1e-5)
    assert result["largest_difference"] < most
    assert result["numeric"].dtype == np.float64 and result["numeric"].shape == (1, 4, 4, 2)
    assert np.abs(result["numeric"]).max() > 0.1


def test_lists_shapes_and_other_inputs_are_copied():
    result = checked(
        ("n", "RandomNormal", {"shape": "1,4,4,2", "dtype": "DT_FLOAT", "attrs": "seed_ = 3"}),
        ("a", "AddN"),
        ("r", "Reshape", {"shape": "-1,2"}),
        ("c", "Cast", {"DstT": "DT_DOUBLE"}),
        wires="x.ref > a.inputs; n.output > a.inputs; x.ref > a.inputs; a.sum > r.tensor; r.output > c.x; c.y > g.y",
    )
    assert result["largest_difference"] < 1e-5
    assert result["numeric"] == pytest.approx(result["analytic"], abs=1e-5)


def test_what_does_not_depend_has_no_gradient():
    result = checked(("k", "Const", {"val": "{1.0f,2.0f}"}), wires="k.output > g.y")
    assert result["largest_difference"] == 0 and not result["numeric"].any()


def test_a_gradient_that_is_wrong_is_found():
    """Beyond the kink of Relu differences see both sides; the gradient there is that of one."""
    result = checked(
        ("m", "Subtract", {"y": "0.5f"}),
        ("r", "Relu"),
        wires="x.ref > m.x; m.z > r.features; r.activations > g.y",
    )
    assert result["largest_difference"] > 0.1


@pytest.mark.parametrize(
    ("pins", "wires", "words"),
    [
        ({}, "", "`y` needs one wire"),
        ({"epsilon": "0"}, "x.ref > g.y; x.ref > g.x", "`epsilon`"),
        ({"epsilon": "small"}, "x.ref > g.y; x.ref > g.x", "`epsilon`"),
        ({}, "n.output > g.y; x.ref > g.x", "floating"),
        ({}, "big.ref > g.y; big.ref > g.x", "4096"),
    ],
)
def test_mistakes_of_a_check(pins, wires, words):
    made = built(
        ("x", "Variable"),
        ("n", "Const", {"val": "{1,2}"}),
        ("big", "Variable", {"shape": "{100,100}"}),
        ("g", "GradientCheck", pins),
        wires=wires,
    )
    assert words in made.problems["g"]


def test_specs_and_other_blocks_of_a_page_with_a_check():
    made = built(
        ("x", "Variable"),
        ("s", "Square"),
        ("g", "GradientCheck"),
        wires="x.ref > s.x; s.y > g.y; x.ref > g.x",
    )
    specs = made.specs()["g"]
    assert list(specs) == ["largest_difference", "analytic", "numeric"]
    assert specs["numeric"].shape == (2, 2)
    assert list(PageRun(made, fetch=["s"]).step()) == ["s"]
    assert "g" in PageRun(made, fetch=["g.analytic"]).step()


def test_a_loop_names_its_loss_and_steps():
    made = built(
        ("x", "Variable"),
        ("l", "L2Loss"),
        ("loop", "Loop", {"steps": "7"}),
        wires="x.ref > l.t; l.output > loop.loss",
    )
    assert made.loops["loop"].steps == 7
    running = PageRun(made)
    assert running.place(made.loops["loop"].loss) == ("l", "output")
    assert set(running.step()) == {"x", "l"}


@pytest.mark.parametrize("steps", ["0", "-1", "1.5", "many", "1000001", "٣"])
def test_mistakes_of_a_loop(steps):
    made = built(("x", "Variable"), ("loop", "Loop", {"steps": steps}), wires="x.ref > loop.loss")
    assert "`steps`" in made.problems["loop"]
    assert "`loss`" in built(("loop", "Loop")).problems["loop"]


def test_a_variable_of_one_number_is_stored_once():
    found = values.variable(Value("{1000000,1000000}"), Value("DT_FLOAT"), Value("2"), False)
    assert found.shape == (1000000, 1000000) and found.strides == (0, 0) and found[5, 7] == 2
    with pytest.raises(ArgumentError, match="fits in memory"):
        values.variable(
            Value("{1000000000000,1000000000000}"), Value("DT_FLOAT"), Value("2"), False
        )


def test_gradients_of_gradients_end_somewhere():
    """Each adds a multiple of what is there: a page of 30 blocks must not take all memory to be looked at."""
    blocks, wires = [("x", "Variable"), ("g0", "Tanh")], ["x.ref > g0.x"]
    for at in range(1, 30):
        blocks.append((f"g{at}", "AddSymbolicGradients"))
        source = "g0.y" if at == 1 else f"g{at - 1}.grad_outputs.0"
        wires += [f"{source} > g{at}.outputs", f"x.ref > g{at}.inputs"]
    made = built(*blocks, wires="; ".join(wires))
    assert "g5" not in made.problems
    assert "nodes already" in " ".join(made.problems.values())
    assert len(made.scope.graph.nodes) < 500_000


def test_an_epsilon_too_small_to_move_anything_is_an_error_of_its_block():
    with pytest.raises(
        ArgumentError, match=r"block 'g': `epsilon` 1e-300 is too small to move 0.5"
    ):
        checked(("s", "Square"), wires="x.ref > s.x; s.y > g.y", epsilon="1e-300")
