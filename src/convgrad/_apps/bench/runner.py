"""A whole run: every contest against every peer, gathered into one plain dictionary that `report` prints or stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..._base.errors import InternalError
from ..._problem.text import write
from .contests import WRONG, Contest, Expected, expect, operands_of, our_call
from .layers import LAYOUTS, OPS, Layer
from .machine import Machine, describe, footprints, probe
from .measure import Here, Room, Times, race
from .memory import extra_memory
from .peers import Peer
from .totals import timed, times_beside
from .worker import Remote, Worker, ours_in

FAULTS_MATTER = 0.1
"""Page faults that make up more than this share of a time are worth a flag."""
NOISY = 1.5
"""A median this many times the minimum makes a row doubtful."""
AGAIN = 10.0
"""Seconds after which the machine is measured a second time: other programs come and go, and only ever slow it down."""

MIXED = {"dtype": "several dtypes", "layout": "several layouts"}
"""What stands in the settings of a run whose contests differ."""

Progress = Callable[[int, str], None]
"""Is told how many contests were done since the last call, and what is going on now."""


@dataclass(frozen=True)
class RunSettings:
    """What a run was asked to do."""

    ops: tuple[str, ...] = OPS
    dtype: str = "float32"
    """One of `layers.DTYPES`; `MIXED` where contests have their own."""
    layout: str = "NHWC"
    """Of our arrays: one of `layers.LAYOUTS`, or both; `MIXED` where contests have their own."""
    threads: int = 1
    rounds: int = 5
    seconds: float = 0.25
    keep: int = 0
    warm_malloc: bool = False
    memory: bool = True
    timeout: float = 120.0
    winograd: str = "auto"
    """What convgrad's switch of that name is set to."""
    below: float = 1.0
    """Rows below this ratio are listed."""

    @property
    def layouts(self) -> tuple[str, ...]:
        return LAYOUTS if self.layout == "both" else (self.layout,)


def measure_all(
    wanted: Iterable[tuple[Layer, str] | Contest],
    peers: Sequence[Peer],
    settings: RunSettings,
    progress: Progress = lambda done, text: None,
    machine: Machine | None = None,
) -> dict[str, Any]:
    """Measure every pair of layer and operation; an interrupt ends the run early and keeps what there is.

    A pair is measured in the dtype and layouts of the settings, a contest in its own.
    """
    absent = [peer.name for peer in peers if not peer.is_installed]
    peers = [peer for peer in peers if peer.is_installed]
    contests = [_with_layouts(each, settings) for each in wanted]
    workers = workers_of(peers, settings)
    needed = _footprints([contest for contest, _ in contests])
    load_before = describe({}, settings.threads)["load"]
    try:
        progress(0, "starting the peers")
        for worker in workers.values():
            worker.launch()
        for worker in workers.values():
            worker.await_start()
        progress(0, "measuring the machine")
        known = {
            dtype: machine or probe(settings.threads, dtype, places)
            for dtype, places in needed.items()
        }
        probed = time.monotonic()
    except BaseException:
        for worker in workers.values():
            worker.stop()
        raise
    began, rows, complete = time.strftime("%Y-%m-%d %H:%M:%S"), list[dict[str, Any]](), True
    errors: list[str] = []
    try:
        for number, (contest, layouts) in enumerate(contests):
            progress(
                min(number, 1),
                f"{number + 1} of {len(contests)}: {contest.layer.name} {contest.op}",
            )
            try:
                rows += _measure(contest, peers, workers, settings, layouts)
            except Exception as error:  # an error of ours; a peer's ends up in its record
                errors.append(f"{contest.layer.name} {contest.op}: {type(error).__name__}: {error}")
        if machine is None and time.monotonic() - probed > AGAIN:
            progress(1, "measuring the machine again")
            known = {
                dtype: found.best_of(probe(settings.threads, dtype, needed[dtype]))
                for dtype, found in known.items()
            }
    except KeyboardInterrupt:
        complete = False
    finally:
        versions = {k: v for worker in workers.values() for k, v in worker.versions.items()}
        for worker in workers.values():
            worker.stop()
    for row in rows:
        conclude(row, known[_precision(row["dtype"])])
    return {
        "began": began,
        "complete": complete,
        "settings": asdict(settings),
        "absent_peers": absent,
        "errors": errors,
        "machine": {**describe(versions, settings.threads), "load_before": load_before},
        "speed": asdict(next(iter(known.values()))),
        "rows": rows,
    }


def _with_layouts(
    wanted: tuple[Layer, str] | Contest, settings: RunSettings
) -> tuple[Contest, tuple[str, ...]]:
    """Return a contest and the layouts in which we take part in it."""
    if isinstance(wanted, Contest):
        return wanted, (wanted.layout,)
    return Contest(*wanted, settings.dtype, settings.layouts[0]), settings.layouts


def _precision(dtype: str) -> str:
    """Return the dtype whose arithmetic bounds a contest: 16 bits are added up in float32."""
    return "float64" if dtype == "float64" else "float32"


def _footprints(contests: Iterable[Contest]) -> dict[str, dict[str, list[int]]]:
    """Return for each precision which footprints the rooflines of its contests need."""
    needed: dict[str, dict[str, list[int]]] = {}
    by_dtype: dict[str, list[tuple[Layer, str]]] = {}
    for contest in contests:
        by_dtype.setdefault(contest.dtype, []).append((contest.layer, contest.op))
    for dtype, turns in by_dtype.items():
        merged = needed.setdefault(_precision(dtype), {})
        for stream, places in footprints(turns, dtype).items():
            merged[stream] = sorted({*merged.get(stream, ()), *places})
    return needed


def workers_of(peers: Sequence[Peer], settings: RunSettings) -> dict[str, Worker]:
    families: dict[str, list[Peer]] = {}
    for peer in peers:
        families.setdefault(peer.process, []).append(peer)
    how = (settings.threads, settings.keep, settings.warm_malloc, settings.timeout)
    return {process: Worker(members, *how) for process, members in families.items()}


def _measure(
    contest: Contest,
    peers: Sequence[Peer],
    workers: dict[str, Worker],
    settings: RunSettings,
    layouts: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Return a row for each layout of ours; peers have been in turns with all of them."""
    ours = {layout: replace(contest, layout=layout) for layout in layouts or settings.layouts}
    expected = expect(contest)
    records = {each.layout: _checked(each, expected, contest) for each in ours.values()}
    remotes = prepared(contest, list(ours), expected, peers, workers)
    rooms: list[Room] = [room for room in remotes if room.ours and room.peers]
    if not rooms:
        calls = {ours_in(name): our_call(c, operands_of(c)) for name, c in ours.items()}
        rooms = [Here(calls, settings.keep)]
    for room, layout in ((room, layout) for room in remotes for layout in ours):
        found = room.records.get(ours_in(layout), {"status": "ok"})
        if found["status"] != "ok":  # right here, but not beside a framework
            records[layout].update(found)
    times = race(rooms, rounds=settings.rounds, seconds=settings.seconds)
    for name, layout in ((room.name, layout) for room in rooms for layout in ours):
        if (name, ours_in(layout)) not in times:  # a room times nobody who is wrong
            raise InternalError(f"convgrad in {layout} beside {name}: {records[layout]}")
    beside = {
        layout: {room.name: times[room.name, ours_in(layout)].summary() for room in rooms}
        for layout in ours
    }
    pools = {
        room.name: room.records[ours_in(contest.layout)].get("note", "")
        for room in remotes
        if ours_in(contest.layout) in room.records
    }
    return [
        {
            "problem": contest.layer.name,
            "text": contest.layer.text,
            "line": write(each.problem),
            "labels": contest.layer.labels,
            "op": contest.op,
            "dtype": contest.dtype,
            "layout": layout,
            "ours": records[layout],
            "rooms": beside[layout],
            "pools": pools,
            "peers": _peers(remotes, times),
            "to_other_layout": _share(beside[LAYOUTS[1]], beside[LAYOUTS[0]])
            if layout == LAYOUTS[1] and len(ours) > 1
            else None,
            "memory": extra_memory(each, settings.threads) if settings.memory else {},
            "_layer": contest.layer,
        }
        for layout, each in ours.items()
    ]


def _checked(contest: Contest, expected: Expected, original: Contest) -> dict[str, Any]:
    """Call for the first time, in this process, and look at the numbers."""
    call = our_call(contest, operands_of(contest))
    start = time.perf_counter()
    result = call()
    first = time.perf_counter() - start
    error = expected.in_layout(original, contest.layout).error(contest, result)
    status = "ok" if error <= WRONG[contest.dtype] else "wrong"
    return {"status": status, "error": error, "first_ms": first * 1e3}


def prepared(
    contest: Contest,
    layouts: Sequence[str],
    expected: Expected,
    peers: Sequence[Peer],
    workers: dict[str, Worker],
) -> list[Remote]:
    """Return the rooms with everybody in them who does a contest right: its peers, then ours in each layout.

    Nothing is timed yet that counts, so all rooms are filled at once: that takes as long as the race.
    """

    def filled(room: Remote) -> Remote:
        for peer in peers:
            if peer.process == room.name:
                room.prepare(peer.name, contest, expected)
        for layout in layouts if room.peers else ():
            own = replace(contest, layout=layout)
            room.prepare(ours_in(layout), own, expected.in_layout(contest, layout))
        return room

    if not workers:
        return []
    with ThreadPoolExecutor(len(workers)) as pool:
        return list(pool.map(filled, [Remote(name, each) for name, each in workers.items()]))


def _peers(
    rooms: Sequence[Remote], times: dict[tuple[str, str], Times]
) -> dict[str, dict[str, Any]]:
    return {
        name: {**record, "room": room.name, **times.get((room.name, name), Times()).summary()}
        for room in rooms
        for name, record in room.records.items()
        if name not in map(ours_in, LAYOUTS)
    }


def _share(
    one: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]
) -> dict[str, float] | None:
    """Return the time of one layout over that of another, in the first room that has both."""
    for room, times in one.items():
        if times and other[room]:
            return {key: times[key] / other[room][key] for key in ("min_ms", "median_ms")}
    return None


def conclude(row: dict[str, Any], machine: Machine) -> None:
    """Add what follows from the measurements: best peer, ratio, rates, share of the roofline, notes."""
    layer: Layer = row.pop("_layer")
    peers = timed(row)
    for peer in peers.values():
        ours = times_beside(row, peer)
        peer["ratio"] = peer["min_ms"] / ours["min_ms"]
        peer["median_ratio"] = peer["median_ms"] / ours["median_ms"]
    best = min(peers, key=lambda name: peers[name]["ratio"], default=None)
    if "rooms" in row:  # our times in a row are those beside the best peer
        row["ours"].update(
            times_beside(row, peers[best])
            if best
            else next(filter(None, row["rooms"].values()), {})
        )
    seconds = row["ours"]["min_ms"] / 1e3
    flops, moved = layer.flops(), sum(layer.traffic(row["op"], row["dtype"]))
    roof = machine.roofline(layer, row["op"], row["dtype"])
    row.update(
        flops=flops,
        nominal_flops=layer.flops(effective=False),
        bytes=moved,
        gflops=flops / seconds / 1e9,
        gbytes=moved / seconds / 1e9,
        roofline_ms=roof * 1e3,
        roofline_share=roof / seconds,
    )
    row["best_peer"] = best
    row["ratio"] = peers[best]["ratio"] if best else None
    row["median_ratio"] = min((peer["median_ratio"] for peer in peers.values()), default=None)
    row["flags"], row["notes"] = _notes(row, peers.get(best or ""), machine)


def _notes(
    row: dict[str, Any], best: dict[str, Any] | None, machine: Machine
) -> tuple[str, list[str]]:
    """Return flag letters, explained in `report.FLAGS`, and the sentences behind them."""
    flags: dict[str, str] = {}
    ours = row["ours"]
    if ours["status"] != "ok":
        flags["W"] = f"convgrad is wrong: error {ours['error']:.1e}"
    for letter, name, times in (("f", "convgrad", ours), ("F", row["best_peer"], best)):
        if times is None or times["faults"] is None:
            continue
        cost = times["faults"] * machine.fault_seconds * 1e3
        if cost > FAULTS_MATTER * times["min_ms"]:
            flags[letter] = (
                f"{name}: {times['faults']:.0f} page faults per call, about {cost:.2f} of {times['min_ms']:.2f} ms"
            )
    if best is not None and best.get("note"):
        flags["p"] = f"{row['best_peer']}: {best['note']}"
    for times in filter(None, (ours, best)):
        if times["median_ms"] > NOISY * times["min_ms"]:
            flags["n"] = "median far above minimum"
    for letter, status in (("x", "wrong"), ("r", "refused"), ("d", "failed")):
        found = [
            f"{n}: {peer['reason']}" for n, peer in row["peers"].items() if peer["status"] == status
        ]
        if found:
            flags[letter] = "; ".join(found)
    return "".join(flags), list(flags.values())
