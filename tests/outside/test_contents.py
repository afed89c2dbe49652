"""What is in the wheel and in the archive of the sources, and what is not."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
import re
from collections.abc import Iterable
from email import message_from_bytes
from pathlib import Path

import pytest

import convgrad
from page_blocks import ROOT
from tools import dist

VERSION = convgrad.__version__
INFO = f"convgrad-{VERSION}.dist-info"
NEEDED = {"numpy", "ml_dtypes", "llvmlite"}
NOTICES = "src/convgrad/_apps/studio/static/THIRD-PARTY-NOTICES.txt"
# A folder of some machine; those in an address of the web, and examples such as /tmp/x in a help text, are not meant.
MACHINE = re.compile(rb"(?<![\w.:/-])/(?:home|root|Users|work|build)/[\w.-]+/")


@pytest.fixture(scope="module")
def in_wheel(wheel: Path) -> dict[str, dist.Member]:
    return {each.name: each for each in dist.members(wheel)}


@pytest.fixture(scope="module")
def in_archive(archive: Path) -> dict[str, dist.Member]:
    return {each.name: each for each in dist.members(archive)}


def test_the_wheel_has_all_of_the_package(in_wheel: dict[str, dist.Member]) -> None:
    """Every file of the package in the clone, but measurements, which are for maintainers."""
    package = ROOT / "src" / "convgrad"
    files = {
        path.relative_to(package.parent).as_posix(): path
        for path in package.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".csv"
    }
    assert {name for name in in_wheel if not name.startswith(INFO)} == set(files)
    for name, path in files.items():
        assert in_wheel[name].data == path.read_bytes(), f"{name} is not the one of the clone"


@pytest.mark.parametrize(
    "name",
    [
        "py.typed",
        "_apps/studio/static/index.html",
        "include/convgrad_pack.h",
        "include/convgrad/cc/convgrad.h",
        "include/shim/tensorflow/cc/client/client_session.h",
    ],
)
def test_the_wheel_has_what_is_no_python(in_wheel: dict[str, dist.Member], name: str) -> None:
    assert f"convgrad/{name}" in in_wheel


def test_the_page_has_its_parts(in_wheel: dict[str, dist.Member]) -> None:
    """Scripts and styles that the page asks for lie beside it."""
    folder = "convgrad/_apps/studio/static/"
    page = in_wheel[f"{folder}index.html"].data.decode()
    parts = re.findall(r'(?:src|href)="(?:\./|/)?([^":]+)"', page)
    assert any(part.endswith(".js") for part in parts)
    assert {folder + part for part in parts} <= set(in_wheel)


def test_the_notices_of_others_go_along(
    in_wheel: dict[str, dist.Member], in_archive: dict[str, dist.Member]
) -> None:
    """Packages that the page's script is known to have, by names that it says itself, and their licences in full."""
    notices = in_wheel[NOTICES.removeprefix("src/")].data
    assert in_wheel[f"{INFO}/licenses/{NOTICES}"].data == in_archive[NOTICES].data == notices
    text = notices.decode()
    named = dict(re.findall(r"^(\S+) \S+ \(([\w.-]+)\)$", text, re.MULTILINE))
    assert named["react"] == named["react-dom"] == named["zustand"] == "MIT"
    assert named["@xyflow/react"] == "MIT" and named["d3-ease"] == "BSD-3-Clause"
    assert {"scheduler", "@xyflow/system", "classcat", "d3-zoom", "d3-drag", "rolldown"} <= set(
        named
    )
    assert not {"typescript", "vitest", "jsdom"} & set(named)
    for words in ("Meta Platforms, Inc.", "webkid GmbH", "Mike Bostock", "Paul Henschel"):
        assert re.search(rf"^Copyright.*{words}", text, re.MULTILINE), words
    for words in (
        "Permission is hereby granted, free of charge",
        "Redistribution and use in source",
    ):
        assert words in text


def test_the_bill_of_materials(in_wheel: dict[str, dist.Member]) -> None:
    """It names the packages that the notices name, in these versions, and what is installed with the wheel."""
    made = json.loads(in_wheel[f"{INFO}/sboms/convgrad.cdx.json"].data)
    assert made["metadata"]["component"]["purl"] == f"pkg:pypi/convgrad@{VERSION}"
    parts = made["components"]
    text = in_wheel[NOTICES.removeprefix("src/")].data.decode()
    named = set(re.findall(r"^(\S+) (\S+) \([\w.-]+\)$", text, re.MULTILINE))
    bundled = [each for each in parts if each["purl"].startswith("pkg:npm/")]
    assert {
        ("/".join(filter(None, (each.get("group"), each["name"]))), each["version"])
        for each in bundled
    } == named
    assert all(each["licenses"] and each["hashes"] for each in bundled)
    assert {each["name"] for each in parts if each not in bundled} == NEEDED


def unwanted(names: Iterable[str]) -> list[str]:
    """Return the files that no archive should have."""
    parts = {"__pycache__", "node_modules", ".git", ".venv", ".mypy_cache", ".pytest_cache", "dist"}
    ends = (".pyc", ".o", ".a", ".so", ".egg-info")
    return [name for name in names if parts & set(name.split("/")[:-1]) or name.endswith(ends)]


def test_no_tests_and_no_caches(
    in_wheel: dict[str, dist.Member], in_archive: dict[str, dist.Member]
) -> None:
    assert {name.partition("/")[0] for name in in_wheel} == {"convgrad", INFO}
    assert not [name for name in in_wheel if re.search(r"(^|/)(tests?_|conftest)[^/]*\.py$", name)]
    assert unwanted(in_wheel) == unwanted(in_archive) == []
    assert unwanted(["a/__pycache__/b.py", "x.so", "a/x.py"]) == ["a/__pycache__/b.py", "x.so"]


def test_no_paths_of_a_machine(in_wheel: dict[str, dist.Member]) -> None:
    clone = str(ROOT).encode()
    for member in in_wheel.values():
        assert clone not in member.data, member.name
        found = MACHINE.search(member.data)
        assert found is None, f"{member.name}: {found and found.group()!r}"


def test_the_record_is_true(in_wheel: dict[str, dist.Member]) -> None:
    """pip believes it when it removes a package."""
    rows = list(csv.reader(in_wheel[f"{INFO}/RECORD"].data.decode().splitlines()))
    assert sorted(row[0] for row in rows) == sorted(in_wheel)
    for name, digest, size in rows:
        if digest:
            member = in_wheel[name]
            made = base64.urlsafe_b64encode(hashlib.sha256(member.data).digest()).rstrip(b"=")
            assert (digest, int(size)) == (f"sha256={made.decode()}", member.size)


def test_the_metadata(in_wheel: dict[str, dist.Member]) -> None:
    said = message_from_bytes(in_wheel[f"{INFO}/METADATA"].data)
    assert (said["Name"], said["Version"]) == ("convgrad", VERSION)
    assert said["License-Expression"] == "Apache-2.0"
    assert said.get_all("License-File") == ["LICENSE", NOTICES]
    assert said["Requires-Python"] == ">=3.10"
    needed = said.get_all("Requires-Dist") or []
    always = {re.split(r"[<>=!~ ]", each)[0] for each in needed if "extra ==" not in each}
    assert {name.replace("-", "_") for name in always} == NEEDED
    assert "Typing :: Typed" in (said.get_all("Classifier") or [])
    assert in_wheel[f"{INFO}/licenses/LICENSE"].data == (ROOT / "LICENSE").read_bytes()
    entries = in_wheel[f"{INFO}/entry_points.txt"].data.decode().split()
    assert entries == ["[console_scripts]", "convgrad", "=", "convgrad._apps.cli.main:main"]
    tags = message_from_bytes(in_wheel[f"{INFO}/WHEEL"].data)
    assert (tags["Tag"], tags["Root-Is-Purelib"]) == ("py3-none-any", "true")


def test_the_archive_has_the_whole_house(in_archive: dict[str, dist.Member]) -> None:
    """Sources, tests and pages to read and to build with, and the page, so that the wheel needs no node."""
    for name in (
        "PKG-INFO",
        "pyproject.toml",
        "hatch_build.py",
        "Makefile",
        ".ci/run",
        "README.md",
        "tools/studio_page.py",
        "tests/conftest.py",
        "studio/package-lock.json",
        "src/convgrad/_apps/studio/static/index.html",
        "docs/images/train.svg",
    ):
        assert name in in_archive


def test_the_wheel_is_made_of_the_archive(
    in_wheel: dict[str, dist.Member], in_archive: dict[str, dist.Member]
) -> None:
    for name, member in in_wheel.items():
        if not name.startswith(INFO):
            assert in_archive[f"src/{name}"].data == member.data, name
