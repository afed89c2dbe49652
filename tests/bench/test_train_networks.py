"""The networks that JAX and TensorFlow train, by shapes, and turns of their convolutions; no framework is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convgrad
from benchmarks.train import drafts, layer_turns, networks, report
from benchmarks.train.drafts import Convolution, Draft
from benchmarks.train.frameworks import NETWORKS, TRAININGS
from benchmarks.train.job import Job
from benchmarks.train.layer_turns import Side

PARAMETERS = {"mobilenet_v2": 3_504_872, "resnet50": 25_557_032}


def test_networks_have_the_published_parameters() -> None:
    assert {name: drafts.draft(name, 2, 64).parameters for name in networks.NETWORKS} == PARAMETERS
    assert tuple(networks.NETWORKS) == NETWORKS
    assert all(row.models == NETWORKS for name, row in TRAININGS.items() if name != "torch")


def test_networks_have_the_usual_convolutions() -> None:
    small, large = drafts.draft("mobilenet_v2", 8, 160), drafts.draft("resnet50", 8, 160)
    assert (sum(small.convolutions.values()), len(small.convolutions)) == (52, 30)
    assert (sum(large.convolutions.values()), len(large.convolutions)) == (53, 23)
    depthwise = {each: n for each, n in small.convolutions.items() if each.is_depthwise}
    assert sum(depthwise.values()) == 17
    assert all(each.groups == each.input[3] == each.filter[3] for each in depthwise)
    assert not any(each.is_depthwise for each in large.convolutions)
    for of, last in ((small, (8, 5, 5, 1280)), (large, (8, 5, 5, 2048))):
        first, *others = of.convolutions
        assert not first.input_gradient and all(each.input_gradient for each in others)
        assert last in {each.output for each in others}


def test_everybody_starts_from_the_same_numbers() -> None:
    of = drafts.draft("mobilenet_v2", 2, 32)
    (one, statistics), (two, _), (other, _) = (drafts.starting_values(of, n) for n in (0, 0, 1))
    kernel = one["block3/depthwise/conv"]["kernel"]
    assert kernel.shape == (3, 3, 1, 144) and kernel.dtype == np.float32
    assert np.array_equal(kernel, two["block3/depthwise/conv"]["kernel"])
    assert not np.array_equal(kernel, other["block3/depthwise/conv"]["kernel"])
    assert kernel.std() == pytest.approx((2 / 9) ** 0.5, rel=0.1)
    assert {role: array.mean() for role, array in one["stem/norm"].items()} == {
        "scale": 1.0,
        "bias": 0.0,
    }
    assert statistics["stem/norm"].keys() == {"mean", "variance"}
    job = Job("mobilenet_v2", 32, 5, 1, "native", "contiguous", False, seed=3)
    images, labels = drafts.batch_of(job)
    assert images.shape == (5, 32, 32, 3) and images.dtype == np.float32
    assert labels.shape == (5,) and labels.min() >= 0 and labels.max() < networks.CLASSES
    assert np.array_equal(images, drafts.batch_of(job)[0])


def test_a_name_is_used_once() -> None:
    of = Draft()
    of.linear("same", drafts.Sketch(1, 2), 3)
    with pytest.raises(AssertionError, match="two layers are called same"):
        of.linear("same", drafts.Sketch(1, 2), 3)


def test_convolutions_are_told_as_bench_takes_them() -> None:
    strided = Convolution((8, 56, 56, 144), (3, 3, 1, 144), 2, 144, True)
    assert strided.output == (8, 28, 28, 144)
    assert strided.row()["padding"] == [(0, 1), (0, 1)]
    assert report.as_layer({**strided.row(), "count": 1}).text == "56x56x144k3s2b8"
    dense = Convolution((8, 14, 14, 64), (3, 3, 64, 128), 1, 1, True)
    assert report.as_layer({**dense.row(), "count": 1}).text == "14x14x64k3s1o128b8"


def sides(wrong: float = 1.0) -> Any:
    """Return a native side and one of ours, both computed by us; `wrong` scales a gradient."""

    def both(each: Convolution, image: Any, taps: Any, gradient: Any) -> tuple[Side, Side]:
        def side(scale: float) -> Side:
            how: Any = (each.stride, "SAME")

            def backward() -> list[Any]:
                dw = convgrad.conv2d_backprop_filter(image, taps.shape, gradient, *how)
                dx = convgrad.conv2d_backprop_input(image.shape, taps, gradient, *how)
                return [dx, dw * scale] if each.input_gradient else [dw * scale]

            return Side(lambda: [convgrad.conv2d(image, taps, *how)], backward)

        return side(1.0), side(wrong)

    return both


def test_convolutions_take_turns() -> None:
    of = Draft()
    x = of.convolution("one", drafts.Sketch(2, 8, 8, 3), 4, 3, 2, 1)
    for name in ("two", "three"):
        x = of.convolution(name, x, 4, 1, 1, 1)
    rows = layer_turns.compare(of, 3, sides())
    assert [(row["input"], row["filter"], row["count"]) for row in rows] == [
        ((2, 3, 8, 8), (4, 3, 3, 3), 1),
        ((2, 4, 4, 4), (4, 4, 1, 1), 2),
    ]
    for row in rows:
        assert row["error"] == 0
        assert all(
            row[part][side] > 0 for part in Side._fields for side in ("native_ms", "ours_ms")
        )
    assert all(row["error"] > 1e-3 for row in layer_turns.compare(of, 1, sides(wrong=1.01)))
