"""What lies beside a page, made to hurt: the page is read, its numbers are missing, and nothing else is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from convgrad._apps.pages.files import read_page
from convgrad._apps.pages.page import Page
from pages_files.hostile import BINARY, PIPES, USE, page_of, put, soon
from pages_files.writing import block, save, wire


@pytest.mark.parametrize(
    ("type", "shape", "position"),
    [
        ("float", "[2]", "-8"),
        ("float", "[2]", "1"),
        ("float", "[2]", str(2**63)),
        ("float", "[2]", "9" * 100),
        ("float", "[2]", str(2**64 - 4)),
        ("float", "[2]", "x"),
        ("float", "[2]", ""),
        ("float", "[2]", "\N{SUPERSCRIPT TWO}"),
        ("float", "[1000000000][1000000000]", "0"),
        ("float", "[4294967296][4294967296]", "0"),
        ("float", "[-2]", "0"),
        ("float", "[?]", "0"),
        ("float", "[" + "9" * 5000 + "]", "0"),
        ("float", "[1]" * 1000, "0"),
        ("string", "[2]", "0"),
        ("complex", "[2]", "0"),
    ],
)
def test_numbers_that_are_not_there(tmp_path: Path, type: str, shape: str, position: str) -> None:
    path = put(tmp_path, page_of(USE.format(BINARY.format(type, shape, position))))
    path.with_suffix(".dat").write_bytes(bytes(8))
    with soon():
        page = read_page(path)
    assert page.blocks[0].pins["val"].missing
    assert page.blocks[0].pins["val"].array is None
    assert page.notes
    assert all("\n" not in str(note) and len(str(note)) < 700 for note in page.notes)


def test_the_same_bytes_are_not_handed_out_again_and_again(tmp_path: Path) -> None:
    pins = "".join(
        BINARY.format("double", "[1000]", "0").replace("#val", f"#v{n}") for n in range(1000)
    )
    path = put(tmp_path, page_of(USE.format(pins)))
    path.with_suffix(".dat").write_bytes(bytes(8000))
    values = [pin for name, pin in read_page(path).blocks[0].pins.items() if name != "val"]
    assert [pin.missing for pin in values] == [False] + [True] * 999


def _folder(dat: Path, outside: Path) -> None:
    dat.mkdir()


def _pipe(dat: Path, outside: Path) -> None:
    os.mkfifo(dat)


def _link_outside(dat: Path, outside: Path) -> None:
    dat.symlink_to(outside)


def _link_to_pipe(dat: Path, outside: Path) -> None:
    os.mkfifo(dat.with_name("pipe"))
    dat.symlink_to(dat.with_name("pipe"))


def _circle(dat: Path, outside: Path) -> None:
    dat.symlink_to(dat)


def _device(dat: Path, outside: Path) -> None:
    dat.symlink_to("/dev/zero")


@PIPES
@pytest.mark.parametrize("make", [_folder, _pipe, _link_outside, _link_to_pipe, _circle, _device])
@pytest.mark.parametrize("form", [3, "json"])
def test_a_dat_that_is_no_file_of_this_folder(
    tmp_path: Path, make: Callable[[Path, Path], None], form: int | str
) -> None:
    outside = tmp_path / "secret.bin"
    outside.write_bytes(bytes(8000))
    folder = tmp_path / "pages"
    folder.mkdir()
    path = save(Page("p", [block("A", "Const", val=np.ones(300))]), folder, form)
    path.with_suffix(".dat").unlink()
    make(path.with_suffix(".dat"), outside)
    with soon():
        page = read_page(path)
    assert page.blocks[0].pins["val"].missing
    assert len(page.notes) == 1
    assert "'p.dat'" in str(page.notes[0])


def test_a_link_inside_the_folder_is_fine(tmp_path: Path) -> None:
    path = save(Page("p", [block("A", "Const", val=np.ones(300))]), tmp_path, 3)
    path.with_suffix(".dat").rename(tmp_path / "other.dat")
    path.with_suffix(".dat").symlink_to("other.dat")
    assert not read_page(path).blocks[0].pins["val"].missing


def test_no_file_is_opened_but_the_page_and_its_dat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    real = os.open

    def watched(path: object, *rest: object, **more: object) -> int:
        opened.append(Path(str(path)).name)
        return real(path, *rest, **more)  # type: ignore[arg-type]

    page = Page(
        "p",
        [
            block("A", "Const", val=np.ones(300)),
            block("R", "Restore", file_pattern="C:\\\\Users\\\\x", name="/etc/passwd"),
            block("B", "../../etc/passwd", val="file:///etc/passwd"),
        ],
        [wire("A.output > R.name")],
    )
    path = save(page, tmp_path, 4)
    monkeypatch.setattr(os, "open", watched)
    assert read_page(path).blocks[1].pins["name"].text == "/etc/passwd"
    assert opened == ["p.svg", "p.dat"]
