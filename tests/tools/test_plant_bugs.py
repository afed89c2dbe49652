"""The planted bugs still fit the sources they are planted in; that the tests notice each is a command of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.plant_bugs import BUGS, ROOMS, chosen
from tools.planted_rooms import SPLIT
from unit.test_layers import ALLOWED

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "convgrad"
HOLDS_NO_SUMS = {"_bridges/peers", "_apps/explain"}
"""How peers are called, and how plans are told."""


def test_every_bug_has_one_place():
    for bug in (*BUGS, *ROOMS):
        text = (PACKAGE / bug.file).read_text(encoding="utf-8")
        assert text.count(bug.right) == 1, f"{bug.name}: {bug.file}"
        assert bug.right != bug.wrong
        for argument in bug.tests:
            if argument.startswith("tests/"):
                assert (ROOT / argument).exists(), f"{bug.name}: {argument}"


def test_every_room_has_a_bug():
    rooms = {row for row in ALLOWED if row.startswith("_") and (PACKAGE / row).is_dir()}
    assert rooms - SPLIT - HOLDS_NO_SUMS == {bug.room for bug in (*BUGS, *ROOMS)}


def test_bugs_are_chosen_by_name_room_and_need():
    assert len(chosen([])) == len(BUGS) + len(ROOMS) - 4
    assert {bug.room for bug in chosen(["_bridges/dask", "frameworks"])} == {
        *(f"_bridges/{name}" for name in ("dask", "torch", "jax", "tensorflow", "keras"))
    }
    with pytest.raises(SystemExit, match="unknown bug or room: nothing"):
        chosen(["nothing"])
