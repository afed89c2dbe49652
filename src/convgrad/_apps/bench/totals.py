"""A row against families of peers, and whole networks: layers times how often they run.

A family is a framework; its time for a row is that of its fastest way to compute it. Ratios are taken inside one
process: a peer's time over ours beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._base.text import aligned
from .layers import parse
from .networks import NETWORKS

FAMILIES = {"PyTorch": "torch", "TensorFlow": "tf", "JAX": "jax"}
"""How people write a framework, and how its rows of `peers.PEERS` begin."""

STEP = "step"
"""All operations of a network together."""

Row = dict[str, Any]


def times_beside(row: Row, peer: Row) -> Row:
    """Return our times in the process of a peer; runs saved before we were there have one time for all."""
    found: Row = row.get("rooms", {}).get(peer.get("room"), row["ours"])
    return found


def timed(row: Row) -> dict[str, Row]:
    """Return the peers of a row that were right and timed, and we beside them."""
    return {
        name: peer
        for name, peer in row["peers"].items()
        if peer["status"] == "ok" and "min_ms" in peer and "min_ms" in times_beside(row, peer)
    }


def family_times(row: Row) -> dict[str, float]:
    """Return milliseconds of the best member of each family whose result was right."""
    return {family: peer["min_ms"] for family, peer in _families(row).items()}


def family_ratios(row: Row) -> dict[str, float]:
    """Return the same times over ours."""
    return {
        family: peer["min_ms"] / times_beside(row, peer)["min_ms"]
        for family, peer in _families(row).items()
    }


def _families(row: Row) -> dict[str, Row]:
    found = {}
    for family, prefix in FAMILIES.items():
        members = [peer for name, peer in timed(row).items() if name.split("-")[0] == prefix]
        if members:
            found[family] = min(members, key=lambda peer: peer["min_ms"])
    return found


@dataclass(frozen=True)
class Sums:
    """Milliseconds of ours and of one peer in the same process, added up over layers."""

    ours: float
    theirs: float
    ours_median: float
    theirs_median: float

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def median_ratio(self) -> float:
        return self.theirs_median / self.ours_median


@dataclass(frozen=True)
class Total:
    """All convolutions of one operation in a network, in milliseconds; who lacks a layer is left out."""

    network: str
    batch: int
    layout: str
    op: str
    layers: int
    ours: float
    ours_median: float
    families: dict[str, float]
    ratios: dict[str, float]
    """Of the same families, against ours beside them."""
    peers: dict[str, Sums]

    @property
    def title(self) -> str:
        return title(self.network)


def title(network: str) -> str:
    """Return how people write a network's name; a saved run may know networks that we do not."""
    return NETWORKS[network].title if network in NETWORKS else network


def measured(results: dict[str, Any]) -> list[tuple[str, int, str, list[tuple[str, int]]]]:
    """Return every network, batch and layout of a run, and its layers with their counts."""
    layouts = dict.fromkeys(row["layout"] for row in results["rows"])
    found = []
    for network, listed in results.get("networks", {}).items():
        by_batch: dict[int, list[tuple[str, int]]] = {}
        for text, count in listed:
            by_batch.setdefault(parse(text).batch, []).append((text, count))
        found += [
            (network, batch, layout, some) for batch, some in by_batch.items() for layout in layouts
        ]
    return found


def totals(results: dict[str, Any]) -> list[Total]:
    """Add up every network of a run; one that was filtered or interrupted has no sum."""
    rows = {(row["text"], row["op"], row["layout"]): row for row in results["rows"]}
    ops = results["settings"]["ops"]
    found = []
    for network, batch, layout, listed in measured(results):
        every: list[tuple[Row, int]] = []
        for op in ops:
            layers = [
                (rows[text, op, layout], count)
                for text, count in listed
                if (text, op, layout) in rows
            ]
            if layers and len(layers) == len(listed) - (op == "dx"):  # none of the image
                every += layers
                found.append(_add_up(network, batch, layout, op, layers))
        if len(ops) > 1 and len(every) == len(ops) * len(listed) - ("dx" in ops):
            found.append(_add_up(network, batch, layout, STEP, every))
    return found


def _add_up(
    network: str, batch: int, layout: str, op: str, layers: Sequence[tuple[Row, int]]
) -> Total:
    chosen = [(row, _families(row), count) for row, count in layers]
    families = {
        family: _sums((row, peers[family], count) for row, peers, count in chosen)
        for family in FAMILIES
        if all(family in peers for _, peers, _ in chosen)
    }
    names = dict.fromkeys(name for row, _ in layers for name in row["peers"])
    peers = {
        name: _sums((row, row["peers"][name], count) for row, count in layers)
        for name in names
        if all(name in timed(row) for row, _ in layers)
    }
    return Total(
        network,
        batch,
        layout,
        op,
        sum(count for _, count in layers),
        sum(row["ours"]["min_ms"] * count for row, count in layers),
        sum(row["ours"]["median_ms"] * count for row, count in layers),
        {family: each.theirs for family, each in families.items()},
        {family: each.ratio for family, each in families.items()},
        peers,
    )


def _sums(layers: Iterable[tuple[Row, Row, int]]) -> Sums:
    sums = [0.0] * 4
    for row, peer, count in layers:
        ours = times_beside(row, peer)
        times = (ours["min_ms"], peer["min_ms"], ours["median_ms"], peer["median_ms"])
        sums = [sum + count * time for sum, time in zip(sums, times, strict=True)]
    return Sums(*sums)


def by_network(results: dict[str, Any]) -> str:
    """Every convolution of each network, added up: our times, and each peer's over ours."""
    found = totals(results)
    if not found:
        return ""
    names = list(dict.fromkeys(name for total in found for name in total.peers))
    header = ["network", "batch", "layout", "op", "layers", "ours ms", "median"]
    lines = [[*header, *names, "lowest"]]
    for total in found:
        lowest = min(total.peers.values(), key=lambda each: each.ratio, default=None)
        middle = min((each.median_ratio for each in total.peers.values()), default=0.0)
        lines.append(
            [
                *(total.title, str(total.batch), total.layout, total.op, str(total.layers)),
                *map(_ms, (total.ours, total.ours_median)),
                *(_pair(total.peers.get(name)) for name in names),
                f"{lowest.ratio:.2f} ({middle:.2f})" if lowest else "-",
            ]
        )
    how = (
        "All convolutions, each as often as it occurs; a peer's sum over ours beside it, of minima (of medians).\n"
        f"{STEP} = forward, both gradients; the image has none. Peers that lack a layer have no sum."
    )
    return f"{aligned(lines, left=(0, 2, 3))}\n\n{how}"


def _ms(total: float) -> str:
    return f"{total:.2f}" if total < 100 else f"{total:.0f}"


def _pair(sums: Sums | None) -> str:
    return f"{sums.ratio:.2f} ({sums.median_ratio:.2f})" if sums else "-"
