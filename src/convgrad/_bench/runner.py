"""A whole run: every contest against every peer, gathered into one plain dictionary that `report` prints or stores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from .contests import WRONG, Array, Contest, expect, operands_of, our_call
from .layers import OPS, Layer
from .machine import Machine, describe, footprints, probe
from .measure import Times, Turn, race, run_turn
from .memory import extra_memory
from .peers import Peer
from .worker import Remote, Worker

FAULTS_MATTER = 0.1
"""Page faults that make up more than this share of a time are worth a flag."""
NOISY = 1.5
"""A median this many times the minimum makes a row doubtful."""
AGAIN = 10.0
"""Seconds after which the machine is measured a second time: other programs come and go, and only ever slow it down."""

Progress = Callable[[int, str], None]
"""Is told how many contests were done since the last call, and what is going on now."""


@dataclass(frozen=True)
class RunSettings:
    """What a run was asked to do."""

    ops: tuple[str, ...] = OPS
    dtype: str = "float32"
    layout: str = "NHWC"
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


@dataclass
class Ours:
    """Convgrad as a contestant, in this process."""

    call: Callable[[], Array]
    keep: int = 0
    name: str = "convgrad"
    slow: bool = field(default=False)
    """Whether a call takes longer than a turn, so that a call to warm up is not worth it."""

    def turn(self, seconds: float) -> Turn:
        turn = run_turn(self.call, seconds, keep=self.keep, warm=not self.slow)
        self.slow = min(turn.times) > seconds
        return turn


def run(
    wanted: Iterable[tuple[Layer, str]],
    peers: Sequence[Peer],
    settings: RunSettings,
    progress: Progress = lambda done, text: None,
    machine: Machine | None = None,
) -> dict[str, Any]:
    """Measure every pair of layer and operation; an interrupt ends the run early and keeps what there is."""
    absent = [peer.name for peer in peers if not peer.is_installed]
    peers = [peer for peer in peers if peer.is_installed]
    wanted = list(wanted)
    workers = workers_of(peers, settings)
    needed = footprints(wanted, settings.dtype)
    load_before = describe({}, settings.threads)["load"]
    try:
        progress(0, "starting the peers")
        for worker in workers.values():
            worker.launch()
        for worker in workers.values():
            worker.await_start()
        progress(0, "measuring the machine")
        known = machine or probe(settings.threads, settings.dtype, needed)
        probed = time.monotonic()
    except BaseException:
        for worker in workers.values():
            worker.stop()
        raise
    began, rows, complete = time.strftime("%Y-%m-%d %H:%M:%S"), list[dict[str, Any]](), True
    errors: list[str] = []
    contests = [Contest(p, op, settings.dtype, settings.layout) for p, op in wanted]
    try:
        for number, contest in enumerate(contests):
            progress(
                min(number, 1),
                f"{number + 1} of {len(contests)}: {contest.layer.name} {contest.op}",
            )
            remotes = [Remote(peer, workers[peer.process]) for peer in peers]
            try:
                rows.append(_measure(contest, remotes, settings))
            except Exception as error:  # an error of ours; a peer's ends up in its record
                errors.append(f"{contest.layer.name} {contest.op}: {type(error).__name__}: {error}")
        if machine is None and time.monotonic() - probed > AGAIN:
            progress(1, "measuring the machine again")
            known = known.best_of(probe(settings.threads, settings.dtype, needed))
    except KeyboardInterrupt:
        complete = False
    finally:
        versions = {k: v for worker in workers.values() for k, v in worker.versions.items()}
        for worker in workers.values():
            worker.stop()
    for row in rows:
        judge(row, known)
    return {
        "began": began,
        "complete": complete,
        "settings": asdict(settings),
        "absent_peers": absent,
        "errors": errors,
        "machine": {**describe(versions, settings.threads), "load_before": load_before},
        "speed": asdict(known),
        "rows": rows,
    }


def workers_of(peers: Sequence[Peer], settings: RunSettings) -> dict[str, Worker]:
    families: dict[str, list[Peer]] = {}
    for peer in peers:
        families.setdefault(peer.process, []).append(peer)
    how = (settings.threads, settings.keep, settings.warm_malloc, settings.timeout)
    return {process: Worker(members, *how) for process, members in families.items()}


def _measure(contest: Contest, remotes: list[Remote], settings: RunSettings) -> dict[str, Any]:
    call = our_call(contest, operands_of(contest))
    start = time.perf_counter()
    result = call()
    first = time.perf_counter() - start
    expected = expect(contest)
    error = expected.error(contest, result)
    del result
    ready = [remote for remote in remotes if remote.prepare(contest, expected)]
    ours = Ours(call, settings.keep)
    times = race(ours, ready, rounds=settings.rounds, seconds=settings.seconds)
    record = {"status": "ok" if error <= WRONG[contest.dtype] else "wrong", "error": error}
    return {
        "problem": contest.layer.name,
        "text": contest.layer.text,
        "labels": contest.layer.labels,
        "op": contest.op,
        "dtype": contest.dtype,
        "layout": contest.layout,
        "ours": {**record, "first_ms": first * 1e3, **times[ours.name].summary()},
        "peers": {r.name: {**r.record, **times.get(r.name, Times()).summary()} for r in remotes},
        "memory": extra_memory(contest, settings.threads) if settings.memory else {},
        "_layer": contest.layer,
    }


def judge(row: dict[str, Any], machine: Machine) -> None:
    """Add what follows from the measurements: best peer, ratio, rates, share of the roofline, notes."""
    layer: Layer = row.pop("_layer")
    ours, peers = row["ours"], row["peers"]
    seconds = ours["min_ms"] / 1e3
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
    timed = {
        name: peer for name, peer in peers.items() if peer["status"] == "ok" and "min_ms" in peer
    }
    best = min(timed, key=lambda name: timed[name]["min_ms"], default=None)
    row["best_peer"] = best
    row["ratio"] = timed[best]["min_ms"] / ours["min_ms"] if best else None
    row["median_ratio"] = (
        min(peer["median_ms"] for peer in timed.values()) / ours["median_ms"] if best else None
    )
    row["flags"], row["notes"] = _notes(row, timed.get(best or ""), machine)


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
