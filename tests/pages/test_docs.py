"""The pages say what is true: every Python block runs, every link leads somewhere, every command exists."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import convgrad
from convgrad._base import config
from convgrad._kernels import ALGORITHMS
from errors.doors import FRIENDLY
from page_blocks import FENCE, PAGES, ROOT, blocks, framework_of, read, run_block

LINK = re.compile(r"\]\(([^)\s]+)\)")
MACHINE_PATH = re.compile(r"(?<![\w.])(/(home|work|root|tmp|opt|mnt|Users|private)/|[A-Z]:\\)")


def anchors(text: str) -> set[str]:
    """Return the anchors a page's headings make on GitHub."""
    bare = FENCE.sub("", text)
    headings = re.findall(r"^#+ +(.+)$", bare, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


PYTHON = [
    pytest.param(page, line, source, id=f"{page}:{line}")
    for page in PAGES
    for line, source in blocks(page, "python")
    if framework_of(source) is None  # the others are run by the tests of the bridges
]


@pytest.mark.parametrize(("page", "line", "source"), PYTHON)
def test_python_block_runs_on_its_own(page: str, line: int, source: str) -> None:
    run_block(page, line, source)


def test_there_are_examples() -> None:
    """Guards the reader of fences: a page that lost its examples would pass every test above."""
    found = {page for page in PAGES if blocks(page, "python")}
    assert {"README.md", "docs/differences-from-tensorflow.md", "docs/oracle.md"} <= found


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    for target in LINK.findall(FENCE.sub("", read(page))):
        if re.match(r"[a-z]+:", target):
            continue  # the web is not asked
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), f"{page}: no such file: {target}"
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8")), (
                f"{page}: no such heading: {target}"
            )


@pytest.mark.parametrize("page", PAGES)
def test_no_machine_paths(page: str) -> None:
    found = MACHINE_PATH.search(read(page))
    assert found is None, f"{page}: {found and found.group()}"


@pytest.mark.parametrize("page", PAGES)
def test_make_commands_exist(page: str) -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    shell = "\n".join(source for _, source in blocks(page, "sh"))
    inline = " ".join(re.findall(r"`(make [^`]*)`", read(page)))
    used = set(re.findall(r"(?:^|[ ;&])make ([a-z]+)", shell + "\n" + inline, re.MULTILINE))
    assert used <= targets, f"{page}: no such target: {sorted(used - targets)}"


def names_of_tests(path: Path) -> set[str]:
    """Return the names of the tests of a file."""
    return set(re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE))


def table_rows(page: str) -> list[str]:
    """Return the rows of the tables of a page, without heads and rules."""
    lines = read(page).splitlines()
    rule = re.compile(r"\|[-|: ]+\|$")
    return [
        line
        for line, below in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("| ") and not rule.match(below) and not rule.match(line)
    ]


def test_every_promise_names_a_test() -> None:
    """A promise is a row with a link to a file that has tests, or to a page that reports without promising."""
    rows = [row for row in table_rows("docs/promises.md") if row.count("|") == 3]
    assert len(rows) > 40
    for row in rows:
        promise, _, keepers = row.strip("| ").rpartition(" | ")
        files = [
            (ROOT / "docs" / target).resolve()
            for target in LINK.findall(keepers)
            if target.endswith(".py")
        ]
        assert any(path.name.startswith("test_") and names_of_tests(path) for path in files), (
            promise
        )


def test_every_fault_names_tests_that_exist() -> None:
    """The last column of both tables: `file.py`, `file.py: test_name`, `test_name`; `test_na...` and `test_na*`
    stand for all that begin so. Where a folder is left out the file is one of those named before, or in tests/faults.
    """
    every = {
        path.relative_to(ROOT).as_posix(): path for path in (ROOT / "tests").rglob("test_*.py")
    }
    known = {name for path in every.values() for name in names_of_tests(path)}
    rows = table_rows("docs/faults.md")
    assert {row.count(" | ") for row in rows} == {3}
    assert len(rows) > 45
    for row in rows:
        named = re.findall(r"`([^`]+)`", row.rpartition(" | ")[2])
        assert named, row
        for words in named:
            file, _, test = (
                words.rpartition(": ")
                if ".py: " in words
                else ((words, "", "") if words.endswith(".py") else ("", "", words))
            )
            if file:
                found = [
                    path
                    for name, path in every.items()
                    if name == file or name.endswith("/" + file)
                ]
                assert found, f"no such file: {words}"
                defined = set.union(*map(names_of_tests, found))
            else:
                defined = known
            if test:
                start = test.rstrip(".*")
                exact = start == test
                assert any(each == test if exact else each.startswith(start) for each in defined), (
                    f"no such test: {words}"
                )


def test_every_page_is_listed() -> None:
    """Reports are listed by the page that explains them, all others by the index."""
    for page in PAGES:
        if page.startswith("docs/") and page != "docs/index.md":
            reports = page.startswith("docs/reports/")
            index = "docs/checking-your-kernel.md" if reports else "docs/index.md"
            assert f"({page.removeprefix('docs/')}" in read(index), f"{index} does not name {page}"


@pytest.mark.parametrize("page", PAGES)
def test_powers_are_quoted(page: str) -> None:
    """Two powers on a line, written plainly, print what stands between them in bold."""
    prose = re.sub(r"`[^`\n]*`", "", FENCE.sub("", read(page)))
    assert not (found := re.search(r"\w\*\*-?\w+", prose)), f"{page}: {found and found.group()}"


def test_nobody_is_sent_to_an_index_we_are_not_on() -> None:
    """Somebody else may own the name there. What is installed is a clone, or a library by its own name."""
    files = [ROOT / page for page in PAGES]
    for folder in ("src", "examples", "tools", "docs"):
        files += (ROOT / folder).rglob("*.py")
    for file in files:
        found = re.search(r"pip install [^\n`&;]*\bconvgrad\b", file.read_text(encoding="utf-8"))
        assert not found, f"{file}: {found and found.group()}"


@pytest.mark.parametrize("family", ["depthwise", "dense"])
def test_pages_list_the_algorithms_in_the_order_they_are_asked(family: str) -> None:
    (rows,) = re.findall(
        r"^\| algorithm \|.*\n((?:\|.*\n)*)", read(f"docs/{family}-kernels.md"), re.M
    )
    table = re.findall(r"^\| `(\w+)` \|", rows, re.MULTILINE)
    depthwise = [name for name in ALGORITHMS if name.startswith("depthwise")]
    others = [name for name in ALGORITHMS if name not in depthwise and name != "reference"]
    assert table == (depthwise if family == "depthwise" else others)


def test_int32_is_named_where_it_is_taken() -> None:
    """The README lists the operations with int32; their pages and the code must agree."""
    (listed,) = re.findall(
        r"in int32 where TensorFlow\s+documents it \(([^)]*)\)", read("README.md")
    )
    assert " ".join(listed.split()) == "`conv2d`, its input gradient, `conv2d_transpose`"
    taken = {"conv2d", "conv2d_backprop_input", "conv2d_transpose"}
    for door in FRIENDLY:
        assert door.takes_int32 == (door.op in taken)
        row = re.search(
            r"^\| `\w+` \| half, .*$", read(f"docs/operations/{door.op}.md"), re.MULTILINE
        )
        assert row and ("int32" in row.group()) == door.takes_int32, door.op


def test_the_table_of_switches_is_current() -> None:
    """`python tools/switches.py` rewrites it."""
    page = (ROOT / "docs" / "switches.md").read_text(encoding="utf-8")
    for row in config.SWITCHES.values():
        assert f"| `{row.variable}` |" in page
        assert f"| {row.meaning} |" in page


def parts(folder: Path) -> set[str]:
    """Return the modules and packages of a folder, as pages name them."""
    return {
        path.name + ("/" if path.is_dir() else "")
        for path in folder.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").exists()
    }


HOUSE = Path(convgrad.__file__).parent
ROOMS = sorted(name for name in parts(HOUSE) if name.startswith("_") and name.endswith("/"))


def test_every_room_and_public_module_is_described() -> None:
    rooms, doors = read("docs/how-it-works.md"), read("docs/house/api.md")
    assert len(ROOMS) == 10
    for name in parts(HOUSE):
        page = rooms if name in ROOMS else doors
        assert f"`{name}`" in page, f"no page describes `{name}`"


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_of_a_room_describes_what_is_in_it(room: str) -> None:
    """Each module and package has its word in a table, and each file named there exists."""
    page = f"docs/house/{room.strip('_/')}.md"
    here = parts(HOUSE / room) - {"__init__.py"}
    told = {name for row in table_rows(page) for name in re.findall(r"`([\w/]+(?:\.py|/))`", row)}
    missing = sorted(here - told)
    assert not missing, f"{page} does not describe {missing}"
    known = {path.name for path in (HOUSE / room).rglob("*.py")}
    places = (HOUSE, HOUSE / room)
    gone = {name for name in told - known if not any((at / name).exists() for at in places)}
    assert not gone, f"{page} describes what is not there: {sorted(gone)}"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if not re.match(r"CHANGELOG|changelog.d|docs/reports", page)]
)
def test_prose_has_lines_of_a_width_that_an_editor_shows(page: str) -> None:
    prose = FENCE.sub("", read(page)).splitlines()
    assert not [line for line in prose if len(line) > 130 and line[0] not in "|#!<`"]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.startswith("docs/house/")] + ["docs/how-it-works.md"]
)
def test_sources_of_pages_on_the_house_can_be_read(page: str) -> None:
    """Paragraphs that are read at one glance."""
    prose = FENCE.sub("", read(page))
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", prose):
        lines = [line for line in paragraph.splitlines() if not line.startswith("|")]
        assert len(lines) <= 5, f"{page}: {lines[0]}"


def test_changelog_knows_the_version() -> None:
    assert re.search(
        rf"^## {re.escape(convgrad.__version__)}\b", read("CHANGELOG.md"), re.MULTILINE
    )


def test_licence_is_whole() -> None:
    text = read("LICENSE")
    assert "Version 2.0, January 2004" in text and text.count("\n") == 202


def test_continuous_integration_runs_what_the_readme_says() -> None:
    script = ROOT / ".ci/run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text(encoding="utf-8")


def test_demo_succeeds() -> None:
    demo = subprocess.run(
        [sys.executable, str(ROOT / "examples/demo.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert demo.returncode == 0, demo.stdout + demo.stderr
    assert demo.stdout.count("verdict") == demo.stdout.count(" ok") == 2
