"""Compiled programs shared by the workers of a run."""

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
