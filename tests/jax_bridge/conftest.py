"""Nothing here is read where JAX is absent: `make test-frameworks` runs these tests in an environment that has it.

The folder is not called `jax`: `tests` is on the path of imports, and `import jax` would find it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("jax") else ["*.py"]

os.environ.setdefault("JAX_PLATFORMS", "cpu")
# JAX's own convolutions are what ours are compared with. Each compiles: 70 ms instead of 570 without optimization.
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_backend_optimization_level=0"


@pytest.fixture(autouse=True)
def doubles(request: pytest.FixtureRequest) -> Iterator[None]:
    """Derivatives are compared in float64; a test marked `single` runs as JAX is set by itself."""
    import jax

    with jax.enable_x64(request.node.get_closest_marker("single") is None):
        yield


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "single: runs with JAX's 64-bit types off, as they are by default"
    )
