"""How many processors this process may use.

`os.cpu_count()` counts the machine's. A process may be bound to some of them (taskset, batch
systems), and a container may be given a share of processor time (cgroup quota): with more threads
than that, all of them are stopped together for the rest of each period.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path


def available_cpus() -> int:
    """Return the number of processors this process may keep busy, at least 1."""
    can_ask = hasattr(os, "sched_getaffinity")
    cpus = len(os.sched_getaffinity(0)) if can_ask else os.cpu_count() or 1
    quota = cgroup_cpus()
    if quota is not None:
        cpus = min(cpus, math.ceil(quota))
    return max(1, cpus)


def cgroup_cpus(root: Path = Path("/")) -> float | None:
    """Return the smallest quota on the way from this process's cgroup to the root, or None."""
    quotas = [quota for quota in _quotas(root) if quota is not None]
    return min(quotas, default=None)


def _quotas(root: Path) -> Iterator[float | None]:
    mount = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        # "0::/path" is version 2, "4:cpu,cpuacct:/path" is version 1.
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == "0" and not controllers:
            for folder in _folders(mount, path):
                yield _quota_v2(_read(folder / "cpu.max"))
        elif "cpu" in controllers.split(","):
            for name in ("cpu", controllers):
                for folder in _folders(mount / name, path):
                    quota = _read(folder / "cpu.cfs_quota_us")
                    yield _ratio(quota, _read(folder / "cpu.cfs_period_us"))


def _folders(mount: Path, path: str) -> Iterator[Path]:
    # Inside a container the path is often the host's while the mount already is the container's
    # own folder; the mount itself is asked in any case.
    folder = Path(path.lstrip("/"))
    yield mount / folder
    for parent in folder.parents:
        yield mount / parent


def _quota_v2(text: str) -> float | None:
    quota, _, period = text.strip().partition(" ")
    return _ratio(quota, period or "100000")


def _ratio(quota: str, period: str) -> float | None:
    # "max" and -1 mean that there is no limit.
    try:
        limit, length = int(quota), int(period)
    except ValueError:
        return None
    return limit / length if limit > 0 and length > 0 else None


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""
