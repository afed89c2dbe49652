"""`tools/house.py`: rooms, floors and counts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tools import house
from unit.test_layers import ALLOWED

HOUSE = house.package(house.ROOT / "src")


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A package of two rooms, a bridge and a door."""
    texts = {
        "__init__.py": "from ._base import text",
        "nn.py": "from ._engine import run\nimport convgrad._base.text",
        "_base/__init__.py": "",
        "_base/text.py": "def shown(): ...\ndef _own(): ...",
        "_engine/__init__.py": "from .._base.text import shown\ndef run(): ...\ndef shown(): ...",
        "_bridges/__init__.py": "",
        "_bridges/records.py": "RECORD = ()",
        "_bridges/jax/__init__.py": "def shown(): ...",
        "_bridges/jax/handler.py": "from ... import _engine\n_engine.run()\n"
        "TEXT = '''\ndefine i64 @f() {\n  %x = add i64 1, 2\n  ret i64 %x\n}\n; why\n'''",
    }
    for name, text in texts.items():
        path = tmp_path / "convgrad" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_floors_and_counts(small: Path) -> None:
    found = {row.name: row for row in house.rows(house.package(small))}
    assert {name: row.floor for name, row in found.items()} == {
        "_base": 0,
        "_bridges": 0,
        "_bridges/records": 0,
        "_engine": 1,
        "__init__": 1,
        "nn": 2,
        "_bridges/jax": 2,
    }
    assert found["nn"].imports == ("_base", "_engine")
    assert (found["_base"].files, found["_base"].functions) == (2, 2)
    counted = house.measures(house.package(small))
    assert (counted.private_entries, counted.files) == (3, 9)
    assert (counted.ssa_lines, counted.ssa_lines_of_bridges, counted.record_layouts) == (3, 3, 1)
    assert counted.engine_functions_of_bridges == ("run",)
    assert counted.names_defined_three_times == 1


def test_our_own_house_has_ten_rooms_and_the_rows_of_the_layer_test() -> None:
    assert {row.name for row in house.rows(HOUSE)} == set(ALLOWED)
    counted = house.measures(HOUSE)
    assert counted.private_entries == 10
    assert counted.ssa_lines > 0


def test_a_folder_without_a_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="there is no package `convgrad`"):
        house.main(["--source", str(tmp_path)])


def test_both_ways_to_print(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert house.main(["--source", str(small), "--names"]) == 0
    told = capsys.readouterr().out
    assert "private entries" in told and "shown x3" in told
    assert house.main(["--source", str(small), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["measures"]["private_entries"] == 3


def test_the_page_of_measures_is_current() -> None:
    """`python tools/house.py --before SRC` rewrites it. Lines, files and names change with every commit."""
    now = house.measures(HOUSE)
    rows = [line for line in house.table(now, now).splitlines() if line.count("|") == 4]
    page = house.PAGE.read_text(encoding="utf-8")
    for row in rows[2:]:
        words, count = (cell.strip() for cell in (row.split("|")[1], row.split("|")[3]))
        (written,) = re.findall(rf"^\| {re.escape(words)} \|[^|]*\| ([\d,]+) \|$", page, re.M)
        if words not in ("files", "lines", house.SAID["names_defined_three_times"]):
            assert written == count, words


def test_both_sides_are_written_into_the_page(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "measures.md"
    page.write_text("# Measures\n\n| measure | before | now |\n|---|---:|---:|\n\nEnd.\n")
    monkeypatch.setattr(house, "PAGE", page)
    for _ in range(2):  # the second time over the first
        assert house.main(["--before", str(small)]) == 0
        told = page.read_text()
        assert "| private entries on the top floor | 3 | 10 |" in told
        assert (
            told.startswith("# Measures\n\n|")
            and told.endswith("|\n\nEnd.\n")
            and told.count("| files |") == 1
        )
