"""Compiled programs shared by the workers of a run, and the settings beyond the first kept for `make test-cc`."""

from __future__ import annotations

import pytest

from cc_programs import Builds, found


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Builds:
    """Return where programs are compiled, or skip where there is no compiler."""
    if not found():
        pytest.skip("there is neither g++ nor clang++ here")
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "cc"
    folder.mkdir(exist_ok=True)
    return Builds(folder)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "cc_long" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("cc_long"):
                item.add_marker(pytest.mark.skip(reason="minutes of compiling: `make test-cc`"))
