"""The tool that compares statistics in a convolution's epilogue with those of another pass."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from convgrad._base import config
from convgrad._problem.convolution import Kind

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import epilogue  # noqa: E402


def test_layers_are_run_as_the_bridge_runs_them() -> None:
    wide, depthwise, stem = (
        epilogue.problem_of(text, 160, 2)
        for text in ("56x56x24k1s1o144", "56x56x144k3s2", "224x224x3k3s2o32")
    )
    assert wide and depthwise and stem
    assert wide.kind is Kind.INPUT_GRADIENT and wide.result_shape == (2, 40, 40, 144)
    assert depthwise.kind is Kind.FORWARD and depthwise.result_shape == (2, 20, 20, 144)
    assert stem.result_shape == (2, 80, 80, 32)
    assert epilogue.problem_of("1x1x96k1s1o24", 160, 2) is None


def test_contestants_take_turns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ["56x56x24k1s1o144", "7x7x960k3s1"]
    monkeypatch.setitem(
        epilogue.networks.NETWORKS, "two", epilogue.networks.Network("two", lambda: texts)
    )
    # The first result has 1.8 MB: with a larger second cache it would be read again from there, without shares.
    with config.scope(cpu_caches=config.read_caches("32K,512K,32M")):
        layers = epilogue.layers_of("two", 160, 2, everywhere=False)
        assert [layer.shares > 0 for layer in layers] == [True, False]
        times = epilogue.measure(layers, 3, 1)
    assert {len(turns) for turns in times.values()} == {3}
    epilogue.report(layers, times)
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" ")[0] for row in rows] == ["layer", *texts, "taking", "not", "all"]
