"""A cache folder that all fault programs of a run may fill and use, and the long tests kept for `make faults`."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warm")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "faults_long" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("faults_long"):
                item.add_marker(pytest.mark.skip(reason="minutes long: `make faults`"))
