"""Building pages by mouse and keyboard: the document's page, errors in the library's words, undo, refused wires."""

from __future__ import annotations

import numpy as np
import pytest

import convgrad
from convgrad import graph
from studio_browser.driving import Studio


def build(studio: Studio) -> str:
    """Build the document's page: the gradient of a depthwise filter. Return the id of its block."""
    images = studio.rename(studio.add("RandomNormal", (60, 40)), "images")
    studio.type(images, "shape", "{1,8,8,2}")
    studio.type(images, "dtype", "DT_FLOAT")
    studio.type(images, "attrs", "seed_ = 1")
    sizes = studio.rename(studio.add("Const", (60, 300)), "sizes")
    studio.type(sizes, "val", "{3,3,2,1}")
    gradient = studio.rename(studio.add("RandomNormal", (60, 480)), "gradient")
    studio.type(gradient, "shape", "{1,4,4,2}")
    studio.type(gradient, "dtype", "DT_FLOAT")
    studio.type(gradient, "attrs", "seed_ = 2")
    symbol = "DepthwiseConv2dNativeBackpropFilter"
    made = studio.rename(studio.add(symbol, (440, 200)), "filter_gradient")
    studio.type(made, "strides", "1,2,2,1")
    studio.type(made, "padding", "SAME")
    studio.type(made, "attrs", "data_format_ = NHWC; dilations_ = {1,1,1,1}")
    studio.wire("images.output", f"{made}.input")
    studio.wire("sizes.output", f"{made}.filter_sizes")
    studio.wire("gradient.output", f"{made}.out_backprop")
    studio.count(4, 3)
    return made


def expected() -> np.ndarray:
    """Compute the same numbers with the library."""
    scope = graph.Scope.new_root_scope()
    images = graph.ops.RandomNormal(scope, [1, 8, 8, 2], "float32", seed=1)
    gradient = graph.ops.RandomNormal(scope, [1, 4, 4, 2], "float32", seed=2)
    x, g = graph.ClientSession(scope).run([images, gradient])
    return convgrad.depthwise_conv2d_backprop_filter(x, (3, 3, 2, 1), g, 2, "SAME")


def test_the_documents_page_by_mouse_and_keyboard(studio: Studio) -> None:
    made = build(studio)
    studio.spec(made, "output", "3")
    assert studio[f"problem-{made}"].count() == 0
    studio.fit()
    studio.run()
    shown = studio.numbers(made, "output")
    wanted = expected()
    assert shown.keys() == set(np.ndindex(*wanted.shape))
    for index, number in shown.items():
        assert number == pytest.approx(wanted[index], rel=2e-5), index


def test_an_error_stands_on_its_block_in_the_words_of_the_library(studio: Studio) -> None:
    made = build(studio)
    studio.type("sizes", "val", "{3,3,5,1}")
    problem = studio[f"problem-{made}"]
    with pytest.raises(convgrad.errors.ConvgradError) as refused:
        convgrad.depthwise_conv2d_backprop_filter(
            np.zeros((1, 8, 8, 2), "f"), (3, 3, 5, 1), np.zeros((1, 4, 4, 2), "f"), 2, "SAME"
        )
    rule = str(refused.value).partition(": ")[2]
    problem.filter(has_text=rule[:40]).wait_for()  # half a text has other problems
    assert studio["problem-images"].count() == 0
    studio["status"].filter(has_text="1 problem").wait_for()
    studio.type("sizes", "val", "{3,3,2,1}")
    problem.wait_for(state="detached")


def test_undo_and_redo(studio: Studio) -> None:
    block = studio.add("Const", (80, 80))
    field = studio[f"field-{block}-val"]
    before = field.input_value()
    studio.type(block, "val", "{1,2}")
    studio.spec(block, "output", "2")
    studio["undo"].click()
    assert field.input_value() == before
    studio.press("Escape", "Control+Shift+z")
    assert field.input_value() == "{1,2}"
    studio.press("Escape")
    studio.page.mouse.click(*studio.title(block))
    studio.press("Delete")
    studio.count(0, 0)
    studio.press("Control+z")
    studio.count(1, 0)
    assert field.input_value() == "{1,2}"
    while studio["undo"].is_enabled():
        studio["undo"].click()
    studio.count(0, 0)
    while studio["redo"].is_enabled():
        studio["redo"].click()
    studio.count(0, 0)  # the last thing done was to delete it


def test_a_wire_that_cannot_fit_is_refused_while_it_is_drawn(studio: Studio) -> None:
    studio.rename(studio.add("Const", (60, 60)), "flat")
    studio.type("flat", "val", "{1f,2f}")
    studio.rename(studio.add("Conv2D", (440, 60)), "y")
    studio.wire("flat.output", "y.input")  # a vector is not an image
    studio.page.wait_for_timeout(300)
    studio.count(2, 0)
    assert studio.wires() == 0


def test_copy_paste_and_select_all(studio: Studio) -> None:
    studio.rename(studio.add("Const", (60, 60)), "a")
    studio.type("a", "val", "2f")
    studio.rename(studio.add("Square", (400, 60)), "b")
    studio.wire("a.output", "b.x")
    studio.count(2, 1)
    studio.press("Escape", "Escape", "Control+a", "Control+d")
    studio.count(4, 2)
    studio.press("Delete")
    studio.count(2, 1)
