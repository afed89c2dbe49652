"""What the checker says of the frameworks, where they are installed: `pytest -m peers`."""

from __future__ import annotations

import pytest

from convgrad.testing import check_op

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize("which", ["input", "filter"])
def test_tensorflow_ignores_dilations_of_depthwise_gradients(which: str) -> None:
    pytest.importorskip("tensorflow")
    op = f"depthwise_conv2d_backprop_{which}"
    report = check_op("tensorflow", op, problems=60, properties=["basic", "dilation"], isolate=True)
    assert (report.row("basic").status, report.row("dilation").status) == ("pass", "FAIL")
    assert report.findings[0].guess == "dilation ignored"
    assert f"tf.nn.{op}(" in report.findings[0].program


def test_tensorflow_adds_in_sixteen_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its own kernels, on any CPU. oneDNN, its default on CPUs with AVX-512, adds bfloat16 in float32 there."""
    pytest.importorskip("tensorflow")
    monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")  # the process that is checked inherits it
    op = "depthwise_conv2d_backprop_filter"
    report = check_op("tensorflow", op, problems=40, properties=["accumulation"], isolate=True)
    guesses = " ".join(each.guess or "" for each in report.findings)
    assert "kept in half" in guesses and "kept in bfloat16" in guesses


@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize("op", ["conv2d", "depthwise_conv2d_backprop_filter"])
def test_adapters_pass_the_plain_problems(name: str, op: str) -> None:
    """Guards the adapters: a wrong one would blame the framework."""
    pytest.importorskip(name)
    plain = ["basic", "stride", "dilation", "padding-side", "explicit-padding", "NCHW"]
    report = check_op(name, op, problems=36, properties=plain, isolate=True)
    assert report.ok and not report.refusals, str(report)
