"""The table of algorithms is put together from the packages, and loses none of their rows."""

from __future__ import annotations

import ast
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from convgrad import _kernels
from convgrad._kernels import reference
from convgrad._kernels.shared.filter_order import FilterOrderKernel
from convgrad._kernels.shared.pixel_sum import PixelSumKernel
from convgrad._kernels.shared.reduce import ReduceKernel, TreeKernel

FOLDER = Path(_kernels.__file__).parent
PACKAGES = [
    import_module(f"{_kernels.__name__}.{place.parent.name}")
    for place in sorted(FOLDER.glob("*/__init__.py"))
    if place.parent.name not in ("norm", "shared")  # passes, and what families share
]


def test_every_package_is_in_the_table():
    """A name or an identity that stands in two packages would silently be the later one's."""
    names = Counter(name for package in PACKAGES for name in package.ALGORITHMS)
    kernels = Counter(kernel for package in PACKAGES for kernel in package.EMITTERS)
    assert len(PACKAGES) == 9
    assert Counter([*_kernels.ALGORITHMS]) == names + Counter([reference.NAME])
    assert Counter([*_kernels._EMITTERS]) == kernels + Counter(
        [ReduceKernel, TreeKernel, PixelSumKernel, FilterOrderKernel]
    )


def test_equals_are_preferred_in_this_order():
    assert [*_kernels.ALGORITHMS] == [
        "depthwise_direct",
        "depthwise_plane",
        "depthwise_flat",
        "depthwise_packed",
        "winograd_fast",
        "winograd",
        "dense_grouped",
        "dense_direct",
        "dense_planes",
        "winograd_filter_gradient",
        "dense_filter",
        "reference",
    ]
    for name, algorithm in _kernels.ALGORITHMS.items():
        assert name == algorithm.NAME


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_packages_follow_one_template(package):
    """Where to look is the same everywhere: who plans, who writes, and what the two agree on."""
    here = package.__name__
    for algorithm in package.ALGORITHMS.values():
        assert algorithm.__name__.rpartition(".")[0] == here
    assert f"{here}.schedule" in {each.__name__ for each in package.ALGORITHMS.values()}
    homes = {
        kernel: (kernel.__module__, emit.__module__) for kernel, emit in package.EMITTERS.items()
    }
    assert (f"{here}.words", f"{here}.kernel") in homes.values()
    # A further kernel that needs one file has all of itself there.
    assert all(
        home == (f"{here}.words", f"{here}.kernel") or home[0] == home[1] for home in homes.values()
    )


def test_identities_have_names_of_their_own():
    """`explain` names kernels by them, and people search by them."""
    names = Counter(kernel.__name__ for kernel in _kernels._EMITTERS)
    assert set(names.values()) == {1}, names


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_packages_use_themselves_and_what_is_shared(package):
    """A family that reaches into another one's files is broken by a change nobody expects to concern it."""
    for path in sorted(Path(package.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert (node.module or "").split(".")[0] in ("plan", "shared"), (path, node.lineno)
            if isinstance(node, ast.ImportFrom) and path.name == "schedule.py":
                assert (node.level, node.module) != (1, "kernel"), "a plan needs no mechanism"


def test_what_is_shared_uses_no_package():
    for path in sorted((FOLDER / "shared").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == 2:
                assert node.module == "plan", (path, node.lineno)


def test_parts_are_given_what_they_need_and_inherit_nothing():
    """A class cut into files by inheritance hides where its names come from."""
    for path in sorted(FOLDER.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base) for base in node.bases}
                assert bases <= {"NamedTuple", "Protocol"}, (path, node.name)


def test_no_two_classes_have_one_name():
    """But for `Frame`, a part of the template, and those only their own file sees."""
    names = Counter(
        node.name
        for path in sorted(FOLDER.rglob("*.py"))
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert {name for name, count in names.items() if count > 1} == {"Frame"}
