"""How the frameworks are called, as far as that can be said without them; `pytest -m peers` asks them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from convgrad._bridges.peers import FRAMEWORKS, Wanted, tensorflow
from convgrad._problem.convolution import Kind

DENSE = Wanted(
    Kind.INPUT_GRADIENT,
    depthwise=False,
    layout="NCHW",
    input_shape=(2, 6, 8, 9),
    filter_shape=(3, 2, 3, 10),
    strides=(2, 1),
    dilations=(1, 3),
    padding=((1, 2), (0, 3)),
    pads=((1, 2), (0, 3)),
)
DEPTHWISE = Wanted(
    Kind.FORWARD,
    depthwise=True,
    layout="NHWC",
    input_shape=(2, 8, 9, 6),
    filter_shape=(3, 2, 6, 2),
    strides=(1, 1),
    dilations=(2, 3),
    padding="SAME",
    pads=((2, 2), (1, 2)),
)


def test_the_package_imports_no_framework() -> None:
    code = "import sys, convgrad._bridges.peers as f; print(*({*f.FRAMEWORKS} & {*sys.modules}))"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == ""


def test_groups_and_sizes() -> None:
    assert (DENSE.groups, DENSE.grouped_filter, DENSE.image_size) == (2, (3, 2, 3, 10), (8, 9))
    assert (DEPTHWISE.groups, DEPTHWISE.grouped_filter, DEPTHWISE.image_size) == (
        6,
        (3, 2, 1, 12),
        (8, 9),
    )


def test_tensorflows_raw_form() -> None:
    assert tensorflow.raw_name(DENSE) == "Conv2DBackpropInput"
    assert tensorflow.raw_settings(DENSE) == {
        "strides": [1, 1, 2, 1],
        "padding": "EXPLICIT",
        "explicit_paddings": [0, 0, 0, 0, 1, 2, 0, 3],
        "data_format": "NCHW",
        "dilations": [1, 1, 1, 3],
    }
    assert tensorflow.raw_name(DEPTHWISE) == "DepthwiseConv2dNative"
    assert tensorflow.raw_settings(DEPTHWISE)["dilations"] == [1, 2, 3, 1]


def test_tensorflows_documented_form() -> None:
    assert tensorflow.documented_name(DENSE) == "tf.compat.v1.nn.conv2d_backprop_input"
    assert tensorflow.documented_settings(DENSE)["padding"] == [[0, 0], [0, 0], [1, 2], [0, 3]]
    assert tensorflow.documented_name(DEPTHWISE) == "tf.nn.depthwise_conv2d"
    assert tensorflow.documented_settings(DEPTHWISE) == {
        "strides": [1, 1, 1, 1],
        "padding": "SAME",
        "data_format": "NHWC",
        "dilations": [2, 3],
    }


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_absent_framework(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    with pytest.raises(ImportError, match=name):
        FRAMEWORKS[name].module.limit_threads(1)
    row = FRAMEWORKS[name]
    missing = type(row)("absent", "Absent", row.module, ("no-such-distribution",), {}, ("N",))
    assert not missing.is_installed and missing.version == ""
    assert missing.environment(3) == {"N": "3"}
