"""Shared by all tests: machines to plan for or to compute as, and counting the generated problems."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import machines


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--machine",
        choices=sorted(machines.MACHINES),
        help="compute as this machine would: its vectors and its caches",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Set the switches before anything asks for them; child processes of tests get them too."""
    name = config.getoption("--machine")
    if name is not None:
        os.environ.update(machines.MACHINES[name].variables)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests of plans that ask for a `machine` this one and all others that something is promised for."""
    if "machine" in metafunc.fixturenames:
        found = machines.targets()
        metafunc.parametrize("machine", found.values(), ids=found)


@pytest.fixture
def checked(record_property: Callable[[str, object], None]) -> Any:
    """Return a counter whose totals appear at the end of the run, also across worker processes."""
    counts: Counter[str] = Counter()
    yield counts
    for name, number in counts.items():
        record_property("checked " + name, number)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    totals: Counter[str] = Counter()
    for report in (each for reports in terminalreporter.stats.values() for each in reports):
        if getattr(report, "when", None) != "teardown":
            continue  # the properties are attached to every later phase too; the teardown has them all
        for name, number in report.user_properties:
            if name.startswith("checked "):
                totals[name.removeprefix("checked ")] += number
    for name, number in sorted(totals.items()):
        terminalreporter.write_line(f"checked {number} {name}")


LONG = {
    "cc_long": "minutes of compiling: `make test-cc`",
    "dask_long": "minutes: `make test-dask`",
    "numeric_long": "minutes: `make test-long`",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for marker, reason in LONG.items():
        if marker not in config.getoption("markexpr"):
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))
