"""What the turns of a run say: medians and quartiles, ratios of turns in the same round, layers that lose.

Noise on a shared machine comes in bursts and drifts, and both hit neighbours in time alike. So a ratio is taken round
by round, and its median and quartiles over the rounds are what is reported.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .configurations import AGAIN

Row = dict[str, Any]

PARTS = ("forward", "backward", "optimizer")
SLOWER = 1.03
"""A layer is listed as slower from this ratio on; less is noise."""
DISTURBED = 0.05
"""Share of the processors used by other programs from which a run is called disturbed."""
LOSSES_DIFFER = 1e-3
"""First losses of the same model that differ by more than this share were not computed by the same sums."""


@dataclass(frozen=True)
class Spread:
    """The middle of some values and the quartiles around it."""

    median: float
    low: float
    high: float
    count: int


def spread(values: Iterable[float]) -> Spread | None:
    """Return the middle of some values, if there are any.

    >>> spread([1.0, 2.0, 4.0])
    Spread(median=2.0, low=1.5, high=3.0, count=3)
    """
    found = list(values)
    if not found:
        return None
    if len(found) == 1:
        return Spread(found[0], found[0], found[0], 1)
    low, median, high = statistics.quantiles(found, n=4, method="inclusive")
    return Spread(median, low, high, len(found))


def steps(row: Row) -> list[float]:
    """Return the milliseconds of all timed steps."""
    return [sum(step) for turn in row["turns"] for step in turn["steps"]]


def has_parts(row: Row) -> bool:
    """Whether the steps were timed in `PARTS`; a step that is compiled as one program is one number."""
    return all(len(step) == len(PARTS) for turn in row["turns"] for step in turn["steps"])


def part(row: Row, name: str) -> float:
    """Return the median milliseconds of one of `PARTS`, of a row that has them."""
    at = PARTS.index(name)
    return float(statistics.median(step[at] for turn in row["turns"] for step in turn["steps"]))


def middle(row: Row, name: str) -> float | None:
    """Return the median over the turns of what was counted in each: `faults` per step, or the share of `others`."""
    found = [turn[name] for turn in row["turns"] if turn[name] is not None]
    return statistics.median(found) if found else None


def paired(base: Row, other: Row) -> list[float]:
    """Return base / other for each round in which both took a turn; above 1 the other is faster."""
    times, others = _by_round(base), _by_round(other)
    return [times[number] / others[number] for number in times if number in others]


def _by_round(row: Row) -> dict[int, float]:
    return {
        turn["round"]: statistics.median(sum(step) for step in turn["steps"])
        for turn in row["turns"]
    }


def timed(rows: Iterable[Row], model: str) -> list[Row]:
    """Return who took part in a model's rounds until the end."""
    return [row for row in rows if row["model"] == model and row["status"] == "ok" and row["turns"]]


def best(rows: Sequence[Row], family: str, *, memory: bool) -> Row | None:
    """Return the row of a family with the shortest median step: the best of its layouts. Controls do not compete."""
    found = [
        row
        for row in rows
        if row["configuration"]["family"] == family
        and row["configuration"]["memory"] == memory
        and not row["label"].endswith(AGAIN)
    ]
    return min(found, key=lambda row: statistics.median(steps(row)), default=None)


def disturbed(rows: Iterable[Row]) -> float | None:
    """Return the largest share that others had in somebody's turns, if that is too much for ratios to be believed."""
    most = max((middle(row, "others") or 0.0 for row in rows), default=0.0)
    return most if most > DISTURBED else None


def find(rows: Iterable[Row], label: str) -> Row | None:
    return next((row for row in rows if row["label"] == label), None)


def comparisons(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each model: equal processes, then everybody else against the best native of its memory setting."""
    return [
        {
            "model": model,
            "what": what,
            "base": base["label"],
            "other": other["label"],
            **asdict(ratio),
        }
        for model in results["settings"]["models"]
        for what, base, other in _pairs(timed(results["rows"], model))
        if (ratio := spread(paired(base, other))) is not None
    ]


def _pairs(rows: Sequence[Row]) -> list[tuple[str, Row, Row]]:
    pairs = []
    for row in rows:
        twin = find(rows, row["label"] + AGAIN)
        if twin is not None:
            pairs.append(("control", row, twin))
    for memory in (False, True):
        native = best(rows, "native", memory=memory)
        others = [
            row
            for row in rows
            if row["configuration"]["family"] != "native"
            and row["configuration"]["memory"] == memory
        ]
        if native is not None:
            pairs += [(row["configuration"]["family"], native, row) for row in others]
    return pairs


def odd_losses(rows: Sequence[Row]) -> list[Row]:
    """Return rows whose first loss is not the native one: they train something else.

    Two native layouts round differently, and batch normalization over few numbers makes that visible, so losses may
    differ by some times as much as those of native rows do.
    """
    native = [row["losses"][0] for row in rows if row["configuration"]["family"] == "native"]
    if not native:
        return []
    allowed = max(LOSSES_DIFFER * abs(native[0]), 4 * (max(native) - min(native)))
    return [
        row
        for row in rows
        if row["configuration"]["family"] != "native"
        and not abs(row["losses"][0] - native[0]) <= allowed  # NaN too
    ]


@dataclass(frozen=True)
class Lost:
    """A part of a layer in which we are slower than native."""

    layer: Row
    part: str
    native_ms: float
    ours_ms: float

    @property
    def ratio(self) -> float:
        """Native / ours, as everywhere: below 1."""
        return self.native_ms / self.ours_ms

    @property
    def lost_ms(self) -> float:
        """Of one step: the layer occurs `count` times."""
        return float((self.ours_ms - self.native_ms) * self.layer["count"])


def slower(layers: Iterable[Row]) -> list[Lost]:
    """Return what is still slower than native by more than `SLOWER`, the largest loss first."""
    every = (
        Lost(layer, name, layer[name]["native_ms"], layer[name]["ours_ms"])
        for layer in layers
        for name in ("forward", "backward")
    )
    found = [each for each in every if each.ours_ms > SLOWER * each.native_ms]
    return sorted(found, key=lambda each: -each.lost_ms)


def layer_sums(layers: Iterable[Row]) -> dict[str, tuple[float, float]]:
    """Return milliseconds of all convolutions of a step, native and ours, by part."""
    rows = list(layers)
    return {
        name: (
            sum(row[name]["native_ms"] * row["count"] for row in rows),
            sum(row[name]["ours_ms"] * row["count"] for row in rows),
        )
        for name in ("forward", "backward")
    }
