"""The tool that measures passes against memory."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import passes  # noqa: E402


def test_a_layer_has_four_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows.json"
    layers = "4x4x16b2:relu6,3x3x5b1:silu"
    assert passes.main(["--layers", layers, "--rounds", "1", "--warm", "--json", str(file)]) == 0
    rows = json.loads(file.read_text())
    assert [row["kind"] for row in rows] == ["statistics", "apply", "sums", "gradient"] * 2
    assert all(row["gigabytes"] > 0 and row["roof"] > 0 and row["share"] > 0 for row in rows)
    assert len(capsys.readouterr().out.splitlines()) == 9


@pytest.mark.parametrize("wrong", ["4x4x16:relu", "4x4x0b1:relu", "4x4x16b2:tanh", ""])
def test_a_wrong_layer_is_named(wrong: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        passes.main(["--layers", wrong])
    assert repr(wrong) in capsys.readouterr().err
