"""The script that draws layers nobody tuned on."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bench.rows import flat
from convgrad._apps.bench import runner
from convgrad._apps.bench.layers import parse

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import random_shapes  # noqa: E402


def test_a_seed_always_draws_the_same() -> None:
    first, again, other = (random_shapes.layers(seed, 12) for seed in (1, 1, 2))
    assert first == again != other
    assert random_shapes.layers(1, 5) == first[:5]


def test_layers_are_what_was_promised() -> None:
    found = random_shapes.layers(3, 200)
    assert len({layer.text for layer in found}) == 200
    for layer in found:
        assert parse(layer.text) == layer
        assert 1e5 <= layer.flops() <= 4e9
        assert sum(layer.traffic("fwd", "float32")) <= 256 << 20
        assert max(layer.height, layer.width) <= 256 and layer.batch <= 32
    dense = [layer for layer in found if layer.is_dense]
    assert len(dense) == 150 and sum(layer.groups > 1 for layer in dense) == 50
    assert any(layer.channels % 8 for layer in dense)
    assert {layer.stride for layer in found} == {1, 2, 3}
    assert {layer.dilation for layer in found} == {1, 2, 3, 4}
    assert {layer.padding for layer in found} == {"SAME", "VALID"}


def test_it_prints_what_bench_takes(capsys: Any) -> None:
    assert random_shapes.main(["--seed", "5", "--count", "3"]) == 0
    printed = capsys.readouterr().out.split()
    assert [parse(text) for text in printed] == random_shapes.layers(5, 3)
    with pytest.raises(SystemExit):
        random_shapes.main(["--seed", "5", "--ops", "fwd"])
    with pytest.raises(SystemExit):
        random_shapes.main(["--seed", "5", "--count", "0"])


def test_it_races_both_layouts(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(runner, "probe", lambda threads, dtype, wanted: flat())
    small = [parse("1x4x4x3k3o2"), parse("1x4x4x3k3")]
    monkeypatch.setattr(random_shapes, "layers", lambda seed, count: small)
    how = ["--peers", "none", "--rounds", "1", "--seconds", "0.001", "--ops", "fwd", "--json"]
    assert random_shapes.main(["--seed", "1", "--race", *how]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [(row["text"], row["layout"]) for row in rows] == [
        (layer.text, layout) for layer in small for layout in ("NHWC", "NCHW")
    ]
