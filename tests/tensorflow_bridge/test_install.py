"""`install()`: TensorFlow's own six ops computed by our kernels, with oneDNN on and off.

It lasts as long as the process, so it happens in two children, which do everything once (`installed.py`) and report.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tensorflow_bridge import children
from tensorflow_bridge.malformed import MALFORMED

KNOWN = {
    *("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"),
    *("Conv2DWithBias", "PadWithConv2D", "Conv2DBackpropFilterWithBias"),
    *(f"DepthwiseConv2dNative{suffix}" for suffix in ("", "BackpropInput", "BackpropFilter")),
    *("_FusedConv2D", "_FusedDepthwiseConv2dNative"),
    *("FusedConv2D", "FusedDepthwiseConv2dNative", "PadWithFusedConv2D"),
}
"""The six, and what oneDNN and grappler make of them and other operations."""


@pytest.fixture(params=["1", "0"], ids=["oneDNN", "no-oneDNN"])
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the child has seen."""
    return children.once(
        tmp_path_factory,
        f"installed-{request.param}",
        "tensorflow_bridge.installed",
        TF_ENABLE_ONEDNN_OPTS=request.param,
    )


def test_installing(found: Any) -> None:
    """While threads compute, from two threads at once, and again: one state, one report, no wrong number."""
    made = found["install"]
    assert not made["before"] and made["after"]
    assert made["wrong"] == []
    assert len(made["reports"]) == 3 and all(made["reports"])
    assert "Conv2DBackpropFilter" in made["reports"][0]


@pytest.mark.parametrize("part", ["eager", "graphs", "unknown_shapes", "recorded", "tapes"])
def test_the_six_operations_are_ours(found: Any, part: str) -> None:
    """All configurations give the bits of our NumPy calls, and the answers on record."""
    assert found[part] == []


def test_the_facts_of_the_readme(found: Any) -> None:
    assert found["facts"] == {
        "taps": [3.0, 10.0, 9.0],
        "sums": {"float16": 5184.0, "bfloat16": 5184.0, "float32": 5184.0},
        "empty": [0.0, 0.0, 0.0],
    }


def test_dilated_gradients_against_differences(found: Any) -> None:
    """Of `tf.nn.depthwise_conv2d` and its v1 relative, which was refused or wrong in every digit."""
    for dtype, bound in (("float64", 1e-9), ("float32", 1e-2)):
        rows = found["dilated"][dtype]
        assert len(rows) == 12
        for row in rows:
            assert row["error"] is not None and row["error"] < bound, row


@pytest.mark.parametrize("part", ["malformed_calls", "malformed_graphs"])
def test_malformed_calls_raise(found: Any, part: str) -> None:
    """The child is alive, and no call has got a value that is wrong."""
    made = found[part]
    assert [each["number"] for each in made] == list(range(len(MALFORMED)))
    for each in made:
        wanted = "E" if MALFORMED[each["number"]].right is None else "V"
        assert each["kind"] == wanted, (MALFORMED[each["number"]].title, each)


def test_errors_say_what_is_wrong(found: Any) -> None:
    """Eager calls: TensorFlow's classes, and in the message the op, the argument and the rule."""
    for each in found["malformed_calls"]:
        title = MALFORMED[each["number"]].title
        if (
            each["kind"] == "E" and "in a graph" not in title
        ):  # there TensorFlow's own checks come first
            assert each["error"] in (
                "InvalidArgumentError",
                "ResourceExhaustedError",
                "ValueError",
            ), each
            said = ["`", "depth must be", "no memory for a result of"]
            assert any(word in each["text"] for word in said), (title, each)


def test_what_runs_in_graphs(found: Any) -> None:
    """Whatever TensorFlow makes of a graph, with bias, activation, padding or batch norm: the numbers are ours.

    An operation that holds a convolution and is none that we have kernels for would be one that goes around us.
    """
    made = found["node_types"]
    assert isinstance(made, dict), made
    assert len(made) == 18
    for name, each in made.items():
        assert each["ours"], (name, each)
        plain = {op.removeprefix("_MklNative") for op in each["ops"]}
        assert plain <= KNOWN, (name, plain - KNOWN)


def test_what_grappler_fuses_is_ours(found: Any) -> None:
    """Its remapping stays on: a convolution with what follows is one op, and computed by our kernels, in any form."""
    made = found["fusions"]
    assert isinstance(made, dict), made
    assert made["wrong"] == []
    assert {op.removeprefix("_MklNative") for op in made["names"]} <= KNOWN
    wanted = {"BiasAdd", "FusedBatchNorm"}
    wanted |= {f"{one}+{act}" for one in wanted for act in ("Relu", "Relu6", "Elu", "LeakyRelu")}
    if "_MklNativeConv2D" in made["names"]:
        wanted |= {"BiasAdd+Add", "BiasAdd+Add+Relu", "BiasAdd+_FusedHardSwish", "BiasAdd+Mish"}
        wanted |= {"BiasAdd+_MklSwish", "FusedBatchNorm+_MklSwish"}
        assert "_MklNativePadWithFusedConv2D" in made["names"]
    assert wanted <= set(made["fused"]), wanted - set(made["fused"])


def test_the_rest_of_remapping_goes_on(found: Any) -> None:
    """A matrix product, its bias and its activation are one operation, as without us."""
    assert found["rest_of_remapping"][0] == "_FusedMatMul", found["rest_of_remapping"]
    assert "BiasAdd" not in found["rest_of_remapping"]


def test_other_ways_to_run_a_graph(found: Any) -> None:
    """Sessions with options of their own, functions of `tf.data`, imported graphs: all come to our kernels."""
    assert len(found["ways"]) == 5
    for name, (same, records) in found["ways"].items():
        assert same and records, name


def test_forms_that_grappler_does_not_make_are_refused(found: Any) -> None:
    said = found["refusals"]
    words = [
        *["`fused_ops` must be BiasAdd or FusedBatchNorm"] * 2,
        "`bias` must have shape [16], got [3]",
        "what is added must have the result's shape [2, 9, 8, 16], got [1, 9, 8, 16]",
        "a row of batch norm must have shape [16], got [5]",
        *["it must have 5 arguments", "it must have 1 arguments", "it must have 1 arguments"],
    ]
    for text, wanted in zip(said, words, strict=True):
        assert f"Conv2D: {wanted}" in text or wanted in text, (text, wanted)
    assert all("'remapping': False" in said[at] for at in (0, 1, 5, 6, 7))


def test_a_keras_model_trains(found: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    native = children.once(tmp_path_factory, "native", "tensorflow_bridge.keras_digits")
    made = found["keras"]
    assert made[-1] < 0.1 * made[0]
    # Rounding differs, and training carries it on: the first epochs agree closely.
    np.testing.assert_allclose(made[:3], native[:3], rtol=0.02)


def test_dispatch_on_types_of_ones_own(found: Any) -> None:
    assert found["dispatch"] == ["mine Array ndarray", "mine ndarray Array", "EagerTensor"]


@pytest.mark.parametrize("part", ["integers", "threads", "at_once"])
def test_nothing_is_wrong(found: Any, part: str) -> None:
    assert found[part] == []


def test_saved_models_hold_tensorflows_own_operations(found: Any) -> None:
    assert found["saved"] == {"names": [True, False], "most": 18.0}
