"""What a campaign has done so far, on disk: stopped at any time, it continues where it stopped."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import ROOT

FOLDER = ROOT / "build" / "campaign"


@dataclass
class State:
    """Counts of all trials that are done."""

    seed: int
    following: int = 0
    """The first trial that nobody has begun."""
    begun: list[int] = field(default_factory=list)
    """Trials that were begun and are not done."""
    unpaired: list[tuple[int, str]] = field(default_factory=list)
    """Trials that a second process has still to compute, with the digest of the first."""
    done: int = 0
    pairs: int = 0
    """Trials with the same bits in two processes."""
    seconds: float = 0.0
    cells: Counter[str] = field(default_factory=Counter)
    """Trials by operation, dtype, layout and target, joined by blanks."""
    algorithms: Counter[str] = field(default_factory=Counter)
    """Computations by algorithm and target."""
    checks: Counter[str] = field(default_factory=Counter)
    used: float = 0.0
    """The largest part of an error bound that a result used up."""
    failures: list[dict[str, Any]] = field(default_factory=list)
    problems: set[bytes] = field(default_factory=set)
    """Names of the distinct problems."""

    @property
    def folder(self) -> Path:
        return FOLDER / f"seed-{self.seed}"

    def count(self, answer: dict[str, Any]) -> None:
        """Add a trial that is done."""
        self.done += 1
        trial = answer.get("trial")
        if trial is None:
            return
        self.problems.add(bytes.fromhex(answer["problem"]))
        case, target = trial["case"], trial["target"]
        cell = (trial["op"], case["dtype"], case["data_format"], target)
        self.cells[" ".join(cell)] += 1
        for name in answer.get("algorithms", ()):
            self.algorithms[f"{name} {target}"] += 1
        self.checks.update(answer.get("checks", ()))
        self.used = max(self.used, answer.get("used", 0.0))

    def save(self) -> None:
        """Write everything; a reader sees the old or the new."""
        self.folder.mkdir(parents=True, exist_ok=True)
        row = {name: value for name, value in self.__dict__.items() if name != "problems"}
        _write(self.folder / "problems.bin", b"".join(sorted(self.problems)))
        _write(self.folder / "state.json", json.dumps(row).encode())

    @staticmethod
    def load(seed: int) -> State:
        """Return what a seed's campaign has done, nothing if there is none."""
        state = State(seed)
        if not (state.folder / "state.json").exists():
            return state
        row = json.loads((state.folder / "state.json").read_text(encoding="utf-8"))
        for name in ("cells", "algorithms", "checks"):
            row[name] = Counter(row[name])
        row["unpaired"] = [(index, digest) for index, digest in row["unpaired"]]
        names = (state.folder / "problems.bin").read_bytes()
        problems = {names[at : at + 8] for at in range(0, len(names), 8)}
        return State(**row, problems=problems)


def _write(path: Path, content: bytes) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_bytes(content)
    fresh.replace(path)
