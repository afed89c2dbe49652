"""`tools/sizes.py`: the sizes of a network as a table and as JSON."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

from convgrad._apps.bench import networks

TOOL = Path(__file__).resolve().parents[2] / "tools" / "sizes.py"


@pytest.fixture
def tool(monkeypatch):
    loaded = runpy.run_path(str(TOOL))
    small = networks.NETWORKS["mobilenet_v2"].layers(1)[:3]
    monkeypatch.setattr(type(networks.NETWORKS["mobilenet_v2"]), "layers", lambda *_: small)
    return loaded


def test_a_network_is_a_row(tool, tmp_path, capsys):
    tool["main"](["mobilenet_v2", "--json", str(tmp_path / "rows.json")])
    [row] = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
    assert tuple(row) == tool["COLUMNS"]
    assert row["network"] == "mobilenet_v2" and 0 < row["kernels"] <= 20
    assert row["code"] > 1000 and row["tables"] >= row["dense tables"] > 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["network", "kernels", "code"] and line.startswith("mobilenet_v2")


def test_an_unknown_network_is_named(tool, capsys):
    with pytest.raises(SystemExit):
        tool["main"](["alexnot"])
    assert "NETWORK must be one of" in capsys.readouterr().err
