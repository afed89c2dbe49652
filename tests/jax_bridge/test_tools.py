"""`tools/jax_table.py` and `tools/jax_calls.py`: what they print, and what they say of what does not pass."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def table() -> Any:
    return runpy.run_path(str(TOOLS / "jax_table.py"))


def test_a_check_is_a_row(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    table["main"](
        ["--every", "80", "vmap over filters", "jvp of grad", "shard_map and its gradient"]
    )
    head, _, *rows = capsys.readouterr().out.splitlines()
    assert head == "| check | passes | of |"
    assert rows == [
        "| jvp of grad | 4 | 4 |",
        "| vmap over filters | 4 | 4 |",
        "| shard_map and its gradient | 4 | 4 |",
    ]


def test_every_check_passes_somewhere(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    table["main"](["--every", "247"])
    _, _, *rows = capsys.readouterr().out.splitlines()
    assert len(rows) == 28
    for row in rows:
        _, _, passed, tried, _ = row.split("|")
        assert int(passed) == int(tried) >= 1, row


def test_what_fails_is_told(
    table: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(each: Any) -> None:
        raise AssertionError("wrong\nin detail")

    monkeypatch.setitem(table["main"].__globals__, "checks", lambda: {"a check": fail})
    table["main"](["--every", "200"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| a check | 0 | 2 |" and lines[3].endswith("AssertionError: wrong")


def test_an_unknown_check_is_named(table: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        table["main"](["jpv"])
    assert "jpv" in capsys.readouterr().err


@pytest.mark.single
def test_calls_are_timed(capsys: pytest.CaptureFixture[str]) -> None:
    """That there is a number for each; how large it is, a busy machine decides."""
    calls = runpy.run_path(str(TOOLS / "jax_calls.py"))
    calls["main"](["--repeats", "1", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert len(found["calls"]) == 3 and [row["layer"] for row in found["rows"]] == list(
        calls["LAYERS"]
    )
    for row in found["rows"]:
        assert len(row["jax"]) == len(row["ours"]) == 3 and len(row["convgrad"]) == 1
        assert all(0 < number < 1e6 for side in ("jax", "ours", "convgrad") for number in row[side])
    calls["main"](["--repeats", "1"])
    assert "depthwise 3x3" in capsys.readouterr().out
