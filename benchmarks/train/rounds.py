"""A whole run: for each model one live process per configuration, which take turns in random order.

Two configurations in one process disturb each other: the heap of one changes the page faults of the other. Processes
one after the other drift apart with the machine, by a quarter in our trials. So all are alive at once, only one works
at a time, and what is compared are turns of the same round.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from convgrad._apps.bench.machine import describe
from convgrad._apps.bench.measure import GAP

from .configurations import Configuration, Place
from .entrant import Entrant
from .frameworks import Training
from .job import Job

Progress = Callable[[int, str], None]
"""Is told how many starts and turns were done since the last call, and what is going on now."""


@dataclass(frozen=True)
class TrainSettings:
    """What a run was asked to do."""

    framework: str
    models: tuple[str, ...]
    image: int = 160
    batch: int = 8
    threads: int = 1
    rounds: int = 7
    steps: int = 3
    """Timed ones of a turn."""
    seed: int = 0
    """Of the weights, the data and the order of turns."""
    timeout: float = 300.0
    """Seconds for a process to be ready, compiling included, or to take a turn."""
    layers: bool = False
    """Whether the convolutions of each model are timed one by one too."""


def total(settings: TrainSettings, places: Sequence[Place]) -> int:
    """Return how much progress a run will report."""
    return len(settings.models) * (len(places) * (1 + settings.rounds) + settings.layers)


def run(
    training: Training,
    places: Sequence[Place],
    settings: TrainSettings,
    progress: Progress = lambda done, text: None,
) -> dict[str, Any]:
    """Measure every model in every configuration; an interrupt ends the run early and keeps what there is."""
    results: dict[str, Any] = {
        "kind": "train",
        "began": time.strftime("%Y-%m-%d %H:%M:%S"),
        "complete": True,
        "settings": asdict(settings),
        "machine": {},
        "rows": [],
        "layers": [],
    }
    load_before = describe({}, settings.threads)["load"]
    try:
        for model in settings.models:
            _model(training, model, places, settings, progress, results["rows"])
            if settings.layers:
                progress(0, f"{model}: its convolutions one by one")
                results["layers"].append(_layers(training, model, settings))
                progress(1, f"{model}: done")
    except KeyboardInterrupt:
        results["complete"] = False
    about = describe(training.versions, settings.threads)
    results["machine"] = {**about, "load_before": load_before}
    return results


def _model(
    training: Training,
    model: str,
    places: Sequence[Place],
    settings: TrainSettings,
    progress: Progress,
    rows: list[dict[str, Any]],
) -> None:
    entrants = [
        Entrant(place, training, _job(model, place.configuration, settings), settings.timeout)
        for place in places
    ]
    rows += [entrant.row for entrant in entrants]
    order = random.Random(f"{settings.seed} {model}")
    try:
        for at, entrant in enumerate(entrants):
            progress(0, f"{model}: starting {entrant.row['label']}")
            if not _left_out(entrant, entrants[:at]):
                entrant.start()
            progress(1, f"{model}: started {entrant.row['label']}")
        for number in range(settings.rounds):
            for entrant in order.sample(entrants, len(entrants)):
                if entrant.is_ready:
                    time.sleep(GAP)  # threads of whoever was before spin for a while
                    entrant.turn(number, settings.steps)
                progress(1, f"{model}: round {number + 1} of {settings.rounds}")
    finally:
        for entrant in entrants:
            entrant.stop()


def _job(model: str, configuration: Configuration, settings: TrainSettings) -> Job:
    return Job(
        model,
        settings.image,
        settings.batch,
        settings.threads,
        configuration.family,
        configuration.layout,
        configuration.memory,
        dict(configuration.accelerate),
        settings.seed,
    )


def _left_out(entrant: Entrant, before: Sequence[Entrant]) -> bool:
    """Whether one more process would not fit into memory; a machine that swaps or kills measures nothing."""
    needed = max((each.peak_bytes for each in before), default=0)
    free = free_memory()
    if free is None or needed <= free:
        return False
    entrant.leave_out(
        f"not started: the others need up to {needed / 1e9:.1f} GB each and {free / 1e9:.1f} GB are free; "
        "name fewer --configurations or a smaller --batch"
    )
    return True


def free_memory() -> int | None:
    """Return the bytes a new process may use without others being swapped out; None where nobody says."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def _layers(training: Training, model: str, settings: TrainSettings) -> dict[str, Any]:
    """Time the convolutions of a model, native as the reference has it against ours, with the memory setting."""
    (reference,) = (row for row in training.configurations if row.name == training.reference)
    both = replace(reference, name="layers", meaning="each convolution", memory=True)
    place = Place(both.name, both)
    patience = settings.timeout * settings.rounds  # one answer for as many calls as all turns have
    entrant = Entrant(place, training, _job(model, both, settings), patience)
    try:
        rows = entrant.layers(settings.rounds * settings.steps)
    finally:
        entrant.stop()
    return {
        "model": model,
        "status": entrant.row["status"],
        "reason": entrant.row["reason"],
        "rows": rows,
    }
