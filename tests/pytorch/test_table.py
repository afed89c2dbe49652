"""`tools/torch_table.py`: the table of what passes, and what it says of what does not."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).resolve().parents[2] / "tools" / "torch_table.py"


@pytest.fixture
def tool() -> Any:
    return runpy.run_path(str(TOOL))


def test_a_check_is_a_row(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tool["main"](["--every", "80", "torch.func.vmap", "gradgradcheck"])
    head, _, first, second = capsys.readouterr().out.splitlines()
    assert head == "| check | passes | of |"
    assert first == "| torch.func.vmap | 3 | 3 |" and second == "| gradgradcheck | 3 | 3 |"


def test_what_fails_is_told(
    tool: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(each: Any) -> None:
        raise AssertionError("wrong\nin detail")

    monkeypatch.setitem(tool["main"].__globals__, "checks", lambda: {"a check": fail})
    tool["main"](["--every", "200"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[2].startswith("| a check | 0 | ") and lines[3].endswith("AssertionError: wrong")


def test_an_unknown_check_is_named(tool: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tool["main"](["gradchek"])
    assert "gradchek" in capsys.readouterr().err
