"""Running a campaign: hand trials to workers, note what comes back, shrink what fails, stop when told."""

from __future__ import annotations

import select
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import ROOT, draw, shrink
from .state import State
from .worker import SILENCE, Worker

RECYCLE = 5_000
"""Trials after which a worker is replaced: machine code is never unloaded."""
SHRUNK = 2
"""Failures of one signature that are shrunk and saved; the rest are counted."""
SAVE_SECONDS = 10.0


@dataclass
class Limits:
    """When a campaign ends."""

    minutes: float
    problems: int
    """Distinct ones."""
    failures: int = 100


class Campaign:
    """One run, from the state it finds to the state it leaves."""

    def __init__(
        self, state: State, limits: Limits, workers: int, peers: float, regressions: Path
    ) -> None:
        self.state, self.limits, self.peers = state, limits, peers
        self.regressions = regressions
        state.folder.mkdir(parents=True, exist_ok=True)
        self.workers = [Worker(state.folder / f"worker-{i}.log") for i in range(workers)]
        self._again = sorted(state.begun)
        self._second: dict[int, list[tuple[int, str]]] = {i: [] for i in range(workers)}
        for number, pair in enumerate(state.unpaired):
            self._second[number % workers].append(pair)
        self._signatures: Counter[str] = Counter()
        self._started = time.monotonic()
        self._done_before, self._seconds_before = state.done, state.seconds
        self._shown = self._saved = 0.0

    def run(self) -> None:
        """Work until a limit or Ctrl-C; what has been begun is finished either way."""
        try:
            while not self._over():
                self._turn(handing_out=True)
        except KeyboardInterrupt:
            print("\nstopping; Ctrl-C again to stop at once", file=sys.stderr)
        try:
            while any(worker.sent for worker in self.workers):
                self._turn(handing_out=False)
            while any(self._second.values()):  # the last second opinions
                self._turn(handing_out=True, fresh=False)
        except KeyboardInterrupt:
            pass
        finally:
            for worker in self.workers:
                worker.stop()
            self._note()
            self._show(last=True)

    def _over(self) -> bool:
        state, limits = self.state, self.limits
        minutes = (time.monotonic() - self._started) / 60
        return (
            minutes >= limits.minutes
            or len(state.problems) >= limits.problems
            or len(state.failures) >= limits.failures
        )

    def _turn(self, handing_out: bool, fresh: bool = True) -> None:
        if handing_out:
            for number, worker in enumerate(self.workers):
                if worker.sent is None:
                    self._hand_out(number, worker, fresh)
        busy = [worker for worker in self.workers if worker.sent is not None]
        ready, _, _ = select.select(busy, [], [], 1.0)
        for worker in ready:
            job = worker.sent
            self._take(self.workers.index(worker), job, worker.answer())
            if worker.tried >= RECYCLE:
                worker.stop()
        for worker in self.workers:
            if worker.hangs():
                job = worker.sent
                worker.stop()
                failure = f"hang: no answer in {SILENCE:.0f} s"
                self._take(self.workers.index(worker), job, {"failure": failure})
        now = time.monotonic()
        if now - self._saved > SAVE_SECONDS:
            self._note()
        if now - self._shown > (1.0 if sys.stderr.isatty() else 15.0):
            self._show()

    def _hand_out(self, number: int, worker: Worker, fresh: bool) -> None:
        """Give a worker a second opinion to form, else a trial that was left behind, else the next one."""
        job: dict[str, Any] = {"seed": self.state.seed, "peers": self.peers}
        if self._second[number]:
            index, digest = self._second[number].pop(0)
            worker.send({**job, "index": index, "digest": digest})
        elif not fresh:
            return
        elif self._again:
            worker.send({**job, "index": self._again.pop(0)})
        else:
            worker.send({**job, "index": self.state.following})
            self.state.following += 1

    def _take(self, number: int, job: dict[str, Any], answer: dict[str, Any]) -> None:
        index, expected = job["index"], job.get("digest")
        if answer["failure"]:
            self._fail(index, answer)
        elif expected is not None and answer["digest"] != expected:
            self._fail(index, {**answer, "failure": "bits: two processes differ"})
        elif expected is not None:
            self.state.pairs += 1
        elif answer["trial"]["paired"] and len(self.workers) > 1:
            other = (number + 1) % len(self.workers)
            self._second[other].append((index, answer["digest"]))
        if expected is None:
            self.state.count(answer)

    def _fail(self, index: int, answer: dict[str, Any]) -> None:
        """Note a failure; shrink and save the first ones of their kind."""
        seed, failure = self.state.seed, answer["failure"]
        row: dict[str, Any] = {"index": index, "failure": failure}
        self.state.failures.append(row)
        self._say(f"FAILURE {index}: {failure}")
        try:
            trial = draw.trial(seed, index, self.peers)
        except Exception as error:  # the planner itself fails; the number is all there is
            self._say(f"  the trial cannot be drawn: {error}")
            return
        name = shrink.signature(trial, failure)
        self._signatures[name] += 1
        if self._signatures[name] > SHRUNK:
            return
        spare = Worker(self.state.folder / "shrinking.log")
        try:
            smallest, reason = shrink.shrink(trial, failure, spare)
        finally:
            spare.stop()
        path = shrink.save(smallest, reason, seed, index, self.regressions)
        row["saved"] = path.name
        if path.is_relative_to(ROOT):
            path = path.relative_to(ROOT)
        self._say(f"  {reason}\n  {smallest}\n  python -m tools.campaign --replay {path}")

    def _note(self) -> None:
        state = self.state
        state.begun = [w.sent["index"] for w in self.workers if w.sent and "digest" not in w.sent]
        state.begun += self._again
        waiting = [pair for pairs in self._second.values() for pair in pairs]
        under_way = [w.sent for w in self.workers if w.sent and "digest" in w.sent]
        state.unpaired = waiting + [(job["index"], job["digest"]) for job in under_way]
        state.seconds = self._seconds_before + time.monotonic() - self._started
        state.save()
        self._saved = time.monotonic()

    def _show(self, last: bool = False) -> None:
        state = self.state
        seconds = time.monotonic() - self._started
        rate = (state.done - self._done_before) / max(seconds, 1e-9)
        line = (
            f"{state.done} trials, {len(state.problems)} distinct problems, {rate:.1f}/s, "
            f"{state.pairs} pairs of processes agree, {len(state.failures)} failures, "
            f"{seconds / 60:.1f} min"
        )
        terminal = sys.stderr.isatty()
        end = "" if terminal and not last else "\n"
        print(("\r\033[K" if terminal else "") + line, end=end, file=sys.stderr, flush=True)
        self._shown = time.monotonic()

    def _say(self, text: str) -> None:
        print(("\r\033[K" if sys.stderr.isatty() else "") + text, file=sys.stderr, flush=True)
