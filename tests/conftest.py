"""Shared by all tests: one thread per process, machines to compute as, and what a run says at its end.

It says how many generated problems it has checked, what share LLVM had, and which tests were slowest.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Before NumPy is imported, which reads the second. Several test processes keep all processors busy; with two threads
# each they wait for one another. Children of tests get the same. Tests that are about threads set their own number.
ONE_THREAD = {"CONVGRAD_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
if "PYTEST_XDIST_WORKER" in os.environ:
    ALONE = {name: value for name, value in ONE_THREAD.items() if name not in os.environ}
    os.environ.update(ALONE)
else:
    ALONE = {}

import kernel_counts  # noqa: E402
import machines  # noqa: E402
from convgrad._base import config as _config  # noqa: E402

AS_MANY_AS_USUAL = {
    "bench",
    "jax_bridge",
    "keras_bridge",
    "pytorch",
    "runtime",
    "tensorflow_bridge",
}
"""Folders with tests of how many threads there are where nobody says it."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Run a test of these folders, and the fixtures it is the first to need, as if nobody had said a number."""
    folders = [Path(__file__).parent / name for name in AS_MANY_AS_USUAL]
    if not ALONE or not any(item.path.is_relative_to(folder) for folder in folders):
        return (yield)
    with pytest.MonkeyPatch.context() as patch:
        for name in ALONE:
            patch.delenv(name, raising=False)
        _config._environment.pop("num_threads", None)
        try:
            return (yield)
        finally:
            _config._environment.pop("num_threads", None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--machine",
        choices=sorted(machines.MACHINES),
        help="compute as this machine would: its vectors and its caches",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give tests of plans that ask for a `machine`, and name none, this one and all that something is promised for."""
    named = [each.args[0] for each in metafunc.definition.iter_markers("parametrize")]
    if "machine" in metafunc.fixturenames and "machine" not in " ".join(map(str, named)):
        found = machines.targets()
        metafunc.parametrize("machine", found.values(), ids=found)


@pytest.fixture
def checked(record_property: Callable[[str, object], None]) -> Any:
    """Return a counter whose totals appear at the end of the run, also across worker processes."""
    counts: Counter[str] = Counter()
    yield counts
    for name, number in counts.items():
        record_property("checked " + name, number)


_LOG: pytest.StashKey[Path | None] = pytest.StashKey()
_PROCESSES: pytest.StashKey[list[dict[str, Any]]] = pytest.StashKey()


def pytest_configure(config: pytest.Config) -> None:
    name = config.getoption("--machine")
    if name is not None:
        # Before anything asks for these switches; child processes of tests get them too.
        os.environ.update(machines.MACHINES[name].variables)
    config.stash[_PROCESSES] = []
    config.stash[_LOG] = None if hasattr(config, "workerinput") else kernel_counts.tell_children()


def pytest_unconfigure(config: pytest.Config) -> None:
    log = config.stash.get(_LOG, None)
    if log is not None:
        os.environ.pop(kernel_counts.LOG, None)
        log.unlink(missing_ok=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    row = kernel_counts.of_this_process()
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["kernels"] = row
    elif not session.config.getoption("numprocesses", None):
        session.config.stash[_PROCESSES].append(row)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A test process of pytest-xdist has ended; one that crashed has nothing to say."""
    row = getattr(node, "workeroutput", {}).get("kernels")
    if row is not None:
        node.config.stash[_PROCESSES].append(row)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    totals: Counter[str] = Counter()
    reports = [each for found in terminalreporter.stats.values() for each in found]
    for report in reports:
        if getattr(report, "when", None) != "teardown":
            continue  # the properties are attached to every later phase too; the teardown has them all
        for name, number in report.user_properties:
            if name.startswith("checked "):
                totals[name.removeprefix("checked ")] += number
    lines = [f"checked {number} {name}" for name, number in sorted(totals.items())]
    rows = config.stash[_PROCESSES]
    pids = [os.getpid(), *(row["process"] for row in rows)]
    lines += kernel_counts.told(rows, kernel_counts.of_children(config.stash[_LOG], pids))
    lines += kernel_counts.slowest(reports)
    for line in lines:
        terminalreporter.write_line(line)


LONG = {
    "cc_long": "minutes of compiling: `make test-cc`",
    "dask_long": "minutes: `make test-dask`",
    "long": "minutes: `make test-long`",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    asked = re.findall(r"\w+", config.getoption("markexpr"))
    for marker, reason in LONG.items():
        if marker not in asked:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=reason))
