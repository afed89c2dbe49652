"""The long tests are kept for `make faults`."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "faults_long" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("faults_long"):
                item.add_marker(pytest.mark.skip(reason="minutes long: `make faults`"))
