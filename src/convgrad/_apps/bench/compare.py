"""Two saved runs, row by row: what became faster or slower by more than the noise of either.

The noise of a row is how far the minima of its rounds lie above the best one: the median of that. The noise of two
runs adds up. Every row is assumed to have at least `LEAST_NOISE`, because a run cannot see what differs between runs.
The peers did not change, so they show how much of a difference is due to the machine.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from .report import geometric_mean

LEAST_NOISE = 0.05

Row = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One row of two runs; `ratio` is old over new, so above 1 the new run is faster."""

    problem: str
    op: str
    old_ms: float
    new_ms: float
    ratio: float
    noise: float
    """A ratio within 1 + noise and its inverse says nothing."""
    peers_ratio: float | None
    """The same of the best peer both runs timed."""

    @property
    def verdict(self) -> str:
        if self.ratio > 1 + self.noise:
            return "faster"
        return "slower" if self.ratio < 1 / (1 + self.noise) else ""


@dataclass(frozen=True)
class Comparison:
    """Changes in the order of the new run, their means, and what only one run has."""

    changes: list[Change]
    only_old: list[str]
    only_new: list[str]
    differs: list[str]
    """Settings and versions that are not the same, in words."""

    @property
    def ratio(self) -> float:
        return geometric_mean([change.ratio for change in self.changes])

    @property
    def peers_ratio(self) -> float:
        found = [change.peers_ratio for change in self.changes]
        return geometric_mean([ratio for ratio in found if ratio is not None])

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "ratio": self.ratio,
            "peers_ratio": self.peers_ratio,
            "changes": [{**asdict(change), "verdict": change.verdict} for change in self.changes],
            "only_old": self.only_old,
            "only_new": self.only_new,
            "differs": self.differs,
        }


def compare(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Match rows by problem, operation, dtype and layout."""
    before, after = _by_case(old), _by_case(new)
    changes = [_change(before[key], row) for key, row in after.items() if key in before]
    return Comparison(
        changes,
        [_named(row) for key, row in before.items() if key not in after],
        [_named(row) for key, row in after.items() if key not in before],
        _differences(old, new),
    )


def _by_case(results: dict[str, Any]) -> dict[tuple[str, ...], Row]:
    return {(r["text"], r["op"], r["dtype"], r["layout"]): r for r in results["rows"]}


def _named(row: Row) -> str:
    return f"{row['problem']} {row['op']}"


def _change(old: Row, new: Row) -> Change:
    first, second = old["ours"]["min_ms"], new["ours"]["min_ms"]
    noise = max(LEAST_NOISE, _noise(old["ours"]) + _noise(new["ours"]))
    ours = (new["problem"], new["op"], first, second, first / second, noise)
    return Change(*ours, _peers_ratio(old["peers"], new["peers"]))


def _noise(times: dict[str, Any]) -> float:
    rounds = times.get("rounds_min_ms") or [times["min_ms"]]
    return float(statistics.median(rounds) / min(rounds) - 1)


def _peers_ratio(old: Row, new: Row) -> float | None:
    both = [
        (old[name]["min_ms"], peer["min_ms"])
        for name, peer in new.items()
        if "min_ms" in peer and "min_ms" in old.get(name, {})
    ]
    if not both:
        return None
    first, second = min(both, key=lambda pair: pair[1])
    return float(first / second)


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    said = []
    for part in ("settings", "machine"):
        first, second = old.get(part, {}), new.get(part, {})
        names = ("threads", "winograd", "keep", "rounds", "seconds", "cpu")
        said += [
            f"{name}: {first.get(name)} then {second.get(name)}"
            for name in names
            if name in first and name in second and first[name] != second[name]
        ]
    one, two = (each.get("machine", {}).get("versions", {}) for each in (old, new))
    said += [
        f"{name}: {one[name]} then {two[name]}"
        for name in one
        if two.get(name, one[name]) != one[name]
    ]
    return list(dict.fromkeys(said))
