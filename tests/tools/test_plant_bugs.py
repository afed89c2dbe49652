"""The planted bugs still fit the sources they are planted in; that the tests notice each is a command of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.plant_bugs import BUGS, ROOMS, chosen

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "convgrad"
HOLDS_NO_SUMS = {"_frameworks", "__pycache__", "compat", "graph", "include"}
"""How peers are called, and names of what is elsewhere."""


def test_every_bug_has_one_place():
    for bug in (*BUGS, *ROOMS):
        text = (PACKAGE / bug.file).read_text(encoding="utf-8")
        assert text.count(bug.right) == 1, f"{bug.name}: {bug.file}"
        assert bug.right != bug.wrong
        for argument in bug.tests:
            if argument.startswith("tests/"):
                assert (ROOT / argument).exists(), f"{bug.name}: {argument}"


def test_every_room_has_a_bug():
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - HOLDS_NO_SUMS
    assert rooms == {bug.room for bug in (*BUGS, *ROOMS) if not bug.room.endswith(".py")}


def test_bugs_are_chosen_by_name_room_and_need():
    assert len(chosen([])) == len(BUGS) + len(ROOMS) - 4
    assert {bug.room for bug in chosen(["_dask", "frameworks"])} == {
        "_dask",
        "_torch",
        "_jax",
        "_tensorflow",
        "_keras",
    }
    with pytest.raises(SystemExit, match="unknown bug or room: nothing"):
        chosen(["nothing"])
