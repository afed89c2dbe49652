"""The page of the C++ surface: every `yes` compiles."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cc_programs import ROOT, Builds, one_and_others, setting

SPEC = importlib.util.spec_from_file_location("cc_surface", ROOT / "tools" / "cc_surface.py")
assert SPEC and SPEC.loader
cc_surface = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(cc_surface)


def test_the_page_lists_every_member_once() -> None:
    page = cc_surface.PAGE.read_text()
    assert page == cc_surface.page(cc_surface.rows_of(page)), "run: python tools/cc_surface.py"


@pytest.mark.cc_long
@pytest.mark.parametrize("compiler", one_and_others())
def test_what_the_page_says_compiles_does(compiler: str, builds: Builds, tmp_path: Path) -> None:
    source = tmp_path / "surface.cc"
    text, order = cc_surface.program(cc_surface.rows_of(cc_surface.PAGE.read_text()))
    assert len(order) > 100
    source.write_text(text)
    builds.program(source, setting(compiler, "C++17"), "-Wno-unused", "-Wno-shadow")
