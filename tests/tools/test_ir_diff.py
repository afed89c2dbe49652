"""The tool that shows a refactoring to be one: it sees every number of a plan, and not what things are called."""

from __future__ import annotations

import runpy
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from convgrad import _kernels
from convgrad._engine import planner

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(monkeypatch):
    names = runpy.run_path(str(ROOT / "tools" / "ir_diff.py"))
    one = (False, 1, (8, 8), 1, 8, 8, (3, 3), 1, 1, "SAME")
    monkeypatch.setitem(names["digests"].__globals__, "cases", lambda quick: [one])
    return names


def differing(old, new):
    return {key.split("|")[1].strip() for key in {**old, **new} if old.get(key) != new.get(key)}


def test_nothing_differs_from_itself(tool, capsys):
    found = tool["digests"](True)
    assert found and tool["compare"](found, tool["digests"](True)) == 0
    assert "0 differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("words", lambda step: (*step.words[:-1], step.words[-1] + 1)),
        ("table", lambda step: step.table + bytes(8)),
        ("launch", lambda step: step.items + 1),
    ],
)
def test_a_changed_number_is_named(tool, monkeypatch, field, change):
    before = tool["digests"](True)
    choose = planner.choose_named

    def changed(*args):
        plan = choose(*args)
        if plan.algorithm != "dense_direct":
            return plan
        name = "items" if field == "launch" else field
        last = replace(plan.steps[-1], **{name: change(plan.steps[-1])})
        return replace(plan, steps=(*plan.steps[:-1], last))

    monkeypatch.setattr(planner, "choose_named", changed)
    wrong = differing(before, tool["digests"](True))
    assert wrong and all(key.startswith("dense_direct") and key.endswith(field) for key in wrong)


def test_a_changed_kernel_is_named_and_a_changed_symbol_is_not(tool, monkeypatch):
    before = tool["digests"](True)
    emit = _kernels.emit

    def renamed(kernel, target):
        source = emit(kernel, target)
        return replace(source, symbol="other", ir=source.ir.replace(source.symbol, "other"))

    monkeypatch.setattr(_kernels, "emit", renamed)
    assert not differing(before, tool["digests"](True))
    monkeypatch.setattr(
        _kernels, "emit", lambda *args: replace(emit(*args), ir=emit(*args).ir + "; more\n")
    )
    wrong = differing(before, tool["digests"](True))
    assert wrong and all(key.endswith("kernel") for key in wrong)


def test_an_identity_is_known_by_its_fields(tool):
    @dataclass(frozen=True)
    class One:
        size: int

    @dataclass(frozen=True)
    class Other:
        size: int

    values = tool["_values"]
    assert values(One(3)) == values(Other(3)) != values(Other(4))
