"""The site of `make docs`: it builds without a warning and without the web, and its pages and pictures are complete."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import subprocess
import sys
import xml.etree.ElementTree
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import nn, raw_ops
from convgrad._problem import geometry
from convgrad.compat import v1

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "images"
DRAWN = {"geometry": "draw_geometry", "dask": "draw_chunks"}
"""Folders of pictures, and the tools that draw them."""
OPERATIONS = [
    name
    for name in convgrad.__all__
    if name.startswith(("conv2d", "depthwise_conv2d", "separable_conv2d"))
]


def tool(name: str) -> ModuleType:
    """Import a script of tools/, with its neighbours in reach as when it is run."""
    folder = str(ROOT / "tools")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(folder)


def operation_page(name: str) -> str:
    return (ROOT / "docs" / "operations" / f"{name}.md").read_text(encoding="utf-8")


# ---- the build


def build(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", *arguments],
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.long
def test_the_site(tmp_path: Path) -> None:
    """Built once, with warnings as errors, as `make docs` does; then looked at."""
    done = build("--site-dir", str(tmp_path), folder=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    nothing_is_fetched_from_the_web(tmp_path)
    links_that_leave_the_folder_stay_in_the_site(tmp_path)
    search_finds_operations_and_leaves_sources_out(tmp_path)


def nothing_is_fetched_from_the_web(site: Path) -> None:
    """Links may lead there; scripts, styles, fonts, pictures and frames may not."""
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        text = page.read_text(encoding="utf-8")
        found = re.search(r"<(script|img|iframe|source)\b[^>]*\bsrc=\"?(https?:)?//[^>]*>", text)
        found = found or re.search(r"<link\b[^>]*href=\"?(https?:)?//[^>]*>", text)
        assert found is None, f"{page.name}: {found and found.group()}"


def links_that_leave_the_folder_stay_in_the_site(site: Path) -> None:
    """README, tests and sources are linked by their path in the repository; here they are pages."""

    def read(page: str) -> str:
        return (site / page).read_text(encoding="utf-8")

    assert 'href="readme.html"' in read("index.html")
    assert 'href="performance.html"' in read("readme.html")
    assert 'href="source/tests/test_tiny.py.html"' in read("promises.html")
    assert "test_three_sums" in read("source/tests/test_tiny.py.html")


def search_finds_operations_and_leaves_sources_out(site: Path) -> None:
    """The index is a script too, so that it can be read from a folder."""
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert "operations/conv2d_transpose.html" in index
    assert "source/tests" not in index


@pytest.mark.parametrize(
    "mistake", ["[a](nowhere.md)", "[a](#nowhere)", "[a](/b.md)", "[a](../b.md)"]
)
def test_a_bad_link_fails_the_build(mistake: str, tmp_path: Path) -> None:
    """Guards the settings: with MkDocs' own, three of these are not warnings."""
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config
    from mkdocs.exceptions import Abort

    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n{mistake}\n", encoding="utf-8")
    config = load_config(
        str(ROOT / "mkdocs.yml"),
        docs_dir=str(tmp_path / "docs"),
        site_dir=str(tmp_path / "site"),
        theme={"name": "mkdocs", "locale": "en"},
        plugins=[],
        hooks=[],
        nav=[{"Home": "index.md"}],
        extra_css=[],
        strict=True,
    )
    with pytest.raises(Abort, match="warnings"):
        build_site(config)


def test_every_page_is_in_the_navigation_once() -> None:
    from mkdocs.config import load_config

    links = tool("site_links")
    config = links.on_config(load_config(str(ROOT / "mkdocs.yml"), hooks=[]))

    def pages(entries: Any) -> list[str]:
        if isinstance(entries, str):
            return [entries]
        values = entries.values() if isinstance(entries, dict) else entries
        return [page for entry in values for page in pages(entry)]

    here = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(pages(config.nav)) == sorted(here | set(links.OUTSIDE.values()))


# ---- pictures


@pytest.mark.parametrize("folder", DRAWN)
def test_pictures_are_current(folder: str) -> None:
    """`python tools/draw_geometry.py` and `python tools/draw_chunks.py` redraw them."""
    drawn = tool(DRAWN[folder]).draw()
    assert sorted(path.name for path in (PICTURES / folder).iterdir()) == sorted(drawn)
    for name, text in drawn.items():
        file = PICTURES / folder / name
        assert file.read_text(encoding="utf-8") == text, f"{name} is out of date"
        assert len(text) < 30_000
        xml.etree.ElementTree.fromstring(text)


def test_pictures_are_shown() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").rglob("*.md"))
    for folder in DRAWN:
        for path in (PICTURES / folder).iterdir():
            assert f"images/{folder}/{path.name})" in text, f"no page shows {path.name}"


@pytest.mark.parametrize("padding", ["SAME", "VALID", (2, 1)])
def test_pictures_show_what_the_operations_read(padding: Any) -> None:
    """The gradient of one output puts the number of each tap into the cell that the tap reads."""
    draw = tool("draw_geometry")
    filter = np.arange(1.0, 7).reshape(3, 2, 1, 1)
    rows = geometry.solve(7, 3, 2, 2, padding)
    cols = geometry.solve(6, 2, 3, 1, padding)
    pads = padding if isinstance(padding, str) else (padding, padding)
    for p, q in product(range(rows.out), range(cols.out)):
        g = np.zeros((1, rows.out, cols.out, 1))
        g[0, p, q, 0] = 1
        dx = convgrad.conv2d_backprop_input((7, 6), filter, g, (2, 3), pads, dilations=(2, 1))
        drawn = {
            cell: filter[tap].item()
            for tap, cell in draw.window(rows, cols, (p, q))
            if 0 <= cell[0] < 7 and 0 <= cell[1] < 6
        }
        assert drawn == {(h, w): dx[0, h, w, 0] for h, w in np.argwhere(dx[0, :, :, 0]).tolist()}


# ---- one page per operation


def flat(text: str) -> str:
    return " ".join(text.replace("`", "").split())


def test_there_are_eight_operations() -> None:
    here = {path.stem for path in (ROOT / "docs" / "operations").glob("*.md")}
    assert here == set(OPERATIONS) and len(OPERATIONS) == 8


@pytest.mark.parametrize("name", OPERATIONS)
def test_formula_and_arguments_are_those_of_the_function(name: str) -> None:
    page, function = operation_page(name), getattr(convgrad, name)
    formula = re.search(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert formula and "=" in formula.group(1)
    paragraph = (inspect.getdoc(function) or "").split("\n\n")[1]
    assert flat(paragraph).startswith(flat(formula.group(1)))
    parameters = inspect.signature(function).parameters.values()
    shown = ", ".join(
        each.name
        if each.default is inspect.Parameter.empty
        else f"{each.name}={each.default!r}".replace("'", '"')
        for each in parameters
    )
    assert f"`convgrad.{name}({shown})`" in page
    for each in parameters:
        assert re.search(rf"^\|[^|]*`{each.name}`", page, re.MULTILINE), f"no row for {each.name}"


@pytest.mark.parametrize("name", OPERATIONS)
def test_page_has_a_picture_an_example_and_its_edge_cases(name: str) -> None:
    page = operation_page(name)
    assert "](../images/geometry/" in page
    for heading in ("Arguments", "Example", "Edge cases", "TensorFlow's names", "See also"):
        assert f"\n## {heading}\n" in page
    assert f"convgrad.{name}(" in page.partition("\n## Example\n")[2].partition("\n## ")[0]


def test_every_name_of_tensorflow_is_on_some_page() -> None:
    text = "".join(operation_page(name) for name in OPERATIONS)
    for module, door in ((nn, "nn"), (v1.nn, "compat.v1.nn"), (raw_ops, "raw_ops")):
        for name in module.__all__:
            assert f"`tf.{door}.{name}`" in text and f"`convgrad.{door}.{name}`" in text, name
