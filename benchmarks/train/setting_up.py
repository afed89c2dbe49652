"""What trainers of all frameworks set for their process, and how they all train."""

from __future__ import annotations

import convgrad
from convgrad._base.memory import tune_memory
from convgrad._bridges.peers import FRAMEWORKS

from .job import Job

RATE = 1e-3
"""Learning rate: small, so that a hundred steps on one batch end far from zero loss, where numbers get denormal."""
MOMENTUM = 0.9
"""The share of an optimizer's velocity that stays."""


def set_up(job: Job, framework: str) -> None:
    """Set what holds for the whole process; the memory setting comes before anything large is allocated.

    PyTorch was told the number of threads by the environment; its `limit_threads` is for those who need no gradients.
    """
    if job.memory:
        setting = tune_memory()
        if not setting.applied:
            raise RuntimeError(f"the memory setting: {setting}")
    if framework != "torch":
        FRAMEWORKS[framework].limit_threads(job.threads)
    convgrad.set_num_threads(job.threads)
