"""Show versions, the CPU row chosen and why, the kernel cache, threads, and every switch with its source."""

from __future__ import annotations

import os
import platform
import sys
from argparse import ArgumentParser, Namespace
from importlib import metadata
from pathlib import Path
from typing import Any

from ..._base import config
from ..._base.errors import CompileError
from ..._base.version import __version__
from ..._compiler import jit, targets
from ..._compiler.jit import cache, host, llvm
from ..._runtime.cpus import cgroup_cpus
from ..._runtime.threads import get_num_threads, story
from .screen import Cell, Screen
from .verb import DONE

NAME = "info"
SUMMARY = "versions, CPU row, caches, threads, switches"
EXAMPLES = """
convgrad info
convgrad info --json
convgrad info --include
CONVGRAD_NUM_THREADS=1 convgrad info
"""

INCLUDE = Path(__file__).resolve().parents[2] / "include"
"""The folder of the C++ headers."""
_NEEDED = ("numpy", "ml_dtypes", "llvmlite")
_EXTRAS = ("rich", "shtab", "matplotlib", "scikit-learn")
_PEERS = ("torch", "tensorflow", "tensorflow-cpu", "jax", "jaxlib", "keras")


def add_arguments(parser: ArgumentParser) -> None:
    """Add what may be asked for alone."""
    parser.add_argument(
        "--include",
        action="store_true",
        help="print only the folder of the C++ headers, for a compiler's -I",
    )


def run(given: Namespace, screen: Screen) -> int:
    """Print what is known about this installation."""
    if given.include:
        screen.line(str(INCLUDE))
        screen.document({"include": str(INCLUDE)})
        return DONE
    facts: dict[str, Any] = {
        "convgrad": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "needed": _versions(_NEEDED),
        "llvm": _llvm(),
        "extras": _versions(_EXTRAS),
        "peers": _versions(_PEERS),
        "cpu": _cpu(),
        "cache": kernel_cache(),
        "threads": _threads(),
        "include": str(INCLUDE),
        "switches": [_switch(row) for row in config.SWITCHES.values()],
    }
    _print(facts, screen)
    screen.document(facts)
    return DONE


def kernel_cache() -> dict[str, Any]:
    """Describe the kernels on disk."""
    place = cache.folder()
    held = cache.usage()
    trouble = jit.find_trouble()
    return {
        "folder": None if place is None else str(place),
        "entries": held.kernels,
        "by_text": held.by_text,
        "bytes": held.bytes,
        "limit": config.get("cache_bytes"),
        "used": trouble is None or not trouble.is_refusal,
        "writable": trouble is None,
        "trouble": None if trouble is None else trouble.kind,
        "reason": None if trouble is None else trouble.reason,
    }


def cache_state(kept: dict[str, Any]) -> Cell:
    """Say whether kernels are taken from the disk and kept there, and if not, why."""
    if kept["trouble"] is None:
        return Cell("in use", "good")
    refused = "not used" if not kept["used"] else "nothing new is kept"
    return Cell(f"{refused}: {kept['reason']}", "bad")


def _versions(names: tuple[str, ...]) -> dict[str, str]:
    """Return what is installed, without importing it: a framework takes seconds."""
    found = {}
    for name in names:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _llvm() -> str:
    """Return LLVM's version, or why there is none."""
    try:
        return ".".join(map(str, llvm.binding().llvm_version_info))
    except CompileError as error:
        return str(error)


def _cpu() -> dict[str, Any]:
    architecture, features = host.architecture(), host.features()
    rows = [row for row in targets.TARGETS if row.architecture == architecture]
    try:
        chosen = jit.host_target()
    except CompileError:  # no row for this architecture; the reference runs
        chosen = None
    why_not = {}
    for row in rows:
        missing = sorted(row.needs - features)
        if missing:
            why_not[row.name] = f"the CPU lacks {', '.join(missing)}"
        elif chosen is not None and row.name != chosen.name:
            better = rows.index(row) < [each.name for each in rows].index(chosen.name)
            why_not[row.name] = (
                "another one was asked for" if better else "comes later in the order"
            )
    return {
        "name": cpu_name(),
        "architecture": architecture,
        "row": None if chosen is None else chosen.name,
        "vector_bits": None if chosen is None else chosen.vector_bits,
        "why_not": why_not,
        "features_used": sorted(chosen.needs) if chosen is not None else [],
        "features": sorted(features),
        "cache_bytes": []
        if chosen is None
        else [chosen.l1_bytes, chosen.l2_bytes, chosen.l3_bytes],
    }


def cpu_name() -> str:
    """Return what the system calls this CPU."""
    if sys.platform.startswith("linux"):
        try:
            for line in Path("/proc/cpuinfo").read_text().splitlines():
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
        except OSError:
            pass
    return platform.processor() or "unknown"


def _threads() -> dict[str, Any]:
    row = _switch(config.SWITCHES["num_threads"])
    source = row["source"]
    if source == "default":
        quota = cgroup_cpus()
        bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        source = f"{bound} processors this process may run on"
        if quota is not None:
            source += f", a share of {quota:g} of them"
    pool, why = story()
    return {"number": get_num_threads(), "source": source, "pool": pool, "pool_reason": why}


def _switch(row: config.Switch) -> dict[str, Any]:
    text = (os.environ.get(row.variable) or "").strip()
    source = "default"
    if text:
        try:
            row.parse(text)
            source = row.variable
        except ValueError as error:
            source = f"default: {row.variable}={text} is ignored, {error}"
    return {
        "name": row.name,
        "variable": row.variable,
        "value": config.get(row.name),
        "source": source,
        "meaning": row.meaning,
    }


def _print(facts: dict[str, Any], screen: Screen) -> None:
    cpu, threads = facts["cpu"], facts["threads"]
    rows: list[tuple[str | Cell, str | Cell]] = [
        ("convgrad", facts["convgrad"]),
        ("python", f"{facts['python']}, {facts['system']}"),
        ("needs", f"{_joined(facts['needed'])} (LLVM {facts['llvm']})"),
        ("extras", _joined(facts["extras"])),
        ("peers", _joined(facts["peers"])),
        ("CPU", cpu["name"]),
        ("row", _row_text(cpu)),
        *((f"not {name}", reason) for name, reason in cpu["why_not"].items()),
        (
            "CPU caches",
            ", ".join(f"L{n} {b >> 10:,} kB" for n, b in enumerate(cpu["cache_bytes"], 1)),
        ),
        ("kernel cache", _cache_text(facts["cache"])),
        ("threads", f"{threads['number']}: {threads['source']}"),
        ("pool", f"{threads['pool']}: {threads['pool_reason']}"),
        ("C++ headers", facts["include"]),
    ]
    screen.table(("what", "value"), rows, left=2)
    screen.line()
    screen.table(
        ("switch", "value", "source", "meaning"),
        [
            (row["variable"], _value(row["value"]), _source_text(row), row["meaning"])
            for row in facts["switches"]
        ],
        left=4,
    )


def _row_text(cpu: dict[str, Any]) -> Cell:
    if cpu["row"] is None:
        return Cell(f"none for {cpu['architecture']}: the slow reference runs", "bad")
    uses = ", ".join(cpu["features_used"]) or "no extensions"
    return Cell(f"{cpu['row']}: {cpu['vector_bits']}-bit vectors, uses {uses}", "good")


def _source_text(switch: dict[str, Any]) -> Cell:
    if switch["source"] == "default":
        return Cell("default")
    return Cell(
        "environment" if switch["source"] == switch["variable"] else switch["source"], "strong"
    )


def _cache_text(kept: dict[str, Any]) -> Cell:
    state = cache_state(kept)
    if kept["folder"] is None:
        return state
    megabytes = kept["bytes"] / 1e6
    text = (
        f"{kept['entries']:,} kernels, {kept['by_text']:,} of them by text, "
        f"{megabytes:,.1f} of {kept['limit'] / 1e6:,.0f} MB in {kept['folder']}"
    )
    return Cell(text) if kept["trouble"] is None else Cell(f"{text}; {state.text}", state.mood)


def _joined(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) or "none installed"


def _value(value: Any) -> str:
    if value is None:
        return "unset"
    return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)
