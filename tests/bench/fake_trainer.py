"""A trainer without a framework, for children of tests: its steps take the times its configuration says."""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from benchmarks.train.job import Job, Parts, Whole

STEP = {"native": 0.012, "compiled": 0.009, "ours": 0.006, "installed": 0.008}
"""Seconds by family; the memory setting takes a third off, channels_last a sixth."""


class Fake:
    """Says how long its steps took, and sleeps for none of them."""

    parameters = 1234

    def __init__(self, job: Job) -> None:
        self.note = f"{job.threads} threads{os.environ.get('TF_ENABLE_ONEDNN_OPTS', '')}"
        self._job = job
        self._steps = 0

    def step(self) -> Parts | Whole:
        self._steps += 1
        if self._steps == self._job.accelerate.get("dies_in_step"):
            os.kill(os.getpid(), signal.SIGKILL)
        whole = STEP[self._job.family]
        whole *= (2 / 3 if self._job.memory else 1) * (
            5 / 6 if self._job.layout == "channels_last" else 1
        )
        if self._job.accelerate.get("whole"):
            return Whole(whole)
        return Parts(whole / 3, whole / 2, whole / 6)

    def loss(self) -> float:
        return float(self._job.accelerate.get("loss", 6.9)) / self._steps


def prepare(job: Job) -> Fake:
    if job.accelerate.get("hangs"):
        time.sleep(60)
    if job.accelerate.get("refuses"):
        raise RuntimeError("no kernel\nfor this")
    print("frameworks print what they like")
    return Fake(job)


def layers(job: Job, repeats: int) -> list[dict[str, Any]]:
    assert job.memory and job.layout == "channels_last"
    if job.model == "resnet50":
        raise RuntimeError("no layers of this")
    return [
        layer((8, 3, 32, 32), (16, 3, 3, 3), 1, (2.0, 1.0), (4.0, 4.1)),
        layer((8, 16, 32, 32), (16, 1, 3, 3), 3, (1.0, 1.5), (2.0, 2.5), groups=16),
        layer((8, 16, 32, 32), (24, 16, 1, 1), 2, (1.0, 2.0), (repeats, repeats), pad=0),
    ]


def layer(
    images: tuple[int, ...],
    taps: tuple[int, ...],
    count: int,
    forward: tuple[float, float],
    backward: tuple[float, float],
    groups: int = 1,
    pad: int = 1,
) -> dict[str, Any]:
    return {
        "input": images,
        "filter": taps,
        "stride": (1, 1),
        "padding": (pad, pad),
        "dilation": (1, 1),
        "groups": groups,
        "bias": False,
        "input_gradient": True,
        "count": count,
        "forward": dict(zip(("native_ms", "ours_ms"), forward, strict=True)),
        "backward": dict(zip(("native_ms", "ours_ms"), backward, strict=True)),
        "error": 1e-7,
    }
