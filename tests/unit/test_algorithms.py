"""The table of algorithms is put together from the packages, and loses none of their rows."""

from __future__ import annotations

from collections import Counter
from importlib import import_module
from pathlib import Path

from convgrad import _algorithms
from convgrad._algorithms import reference
from convgrad._algorithms.shared.reduce import ReduceKernel

FOLDER = Path(_algorithms.__file__).parent
PACKAGES = [
    import_module(f"{_algorithms.__name__}.{place.parent.name}")
    for place in sorted(FOLDER.glob("*/__init__.py"))
    if place.parent.name != "shared"
]


def test_every_package_is_in_the_table():
    """A name or an identity that stands in two packages would silently be the later one's."""
    names = Counter(name for package in PACKAGES for name in package.ALGORITHMS)
    kernels = Counter(kernel for package in PACKAGES for kernel in package.EMITTERS)
    assert len(PACKAGES) == 7
    assert Counter([*_algorithms.ALGORITHMS]) == names + Counter([reference.NAME])
    assert Counter([*_algorithms._EMITTERS]) == kernels + Counter([ReduceKernel])


def test_the_order_is_the_preference():
    assert [*_algorithms.ALGORITHMS] == [
        "depthwise_direct",
        "depthwise_plane",
        "depthwise_flat",
        "depthwise_packed",
        "winograd_fast",
        "winograd",
        "dense_direct",
        "winograd_filter_gradient",
        "dense_filter",
        "reference",
    ]
    for name, algorithm in _algorithms.ALGORITHMS.items():
        assert name == algorithm.NAME


def test_packages_follow_one_template():
    for package in PACKAGES:
        folder = Path(package.__file__).parent
        assert {"__init__.py", "schedule.py", "kernel.py"} <= {f.name for f in folder.iterdir()}
