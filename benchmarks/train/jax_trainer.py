"""JAX as a trainer: a model of `jax_models` in one configuration; its step is one compiled program.

Imported by a child whose environment already names the platform and limits threads. Satisfies `job.Trainer`.
"""

from __future__ import annotations

import time
from functools import partial
from importlib import import_module
from typing import Any

import jax
from jax import numpy as jnp

from . import jax_layers
from .drafts import batch_of, draft, starting_values
from .jax_models import cross_entropy
from .job import Job, Whole
from .setting_up import MOMENTUM, RATE, set_up


class Training:
    """A model, a batch and an optimizer."""

    note = ""

    def __init__(self, job: Job, step: Any) -> None:
        of = draft(job.model, job.batch, job.image)
        self.parameters = of.parameters
        values, statistics = jax.tree.map(jnp.asarray, starting_values(of, job.seed))
        self._state = values, statistics, jax.tree.map(jnp.zeros_like, values)
        self._batch = jax.tree.map(jnp.asarray, batch_of(job))
        self._step = step
        self._loss: Any = None

    def step(self) -> Whole:
        began = time.perf_counter()
        self._state, self._loss = self._step(self._state, *self._batch)
        jax.block_until_ready((self._state, self._loss))  # calls return before they are done
        return Whole(time.perf_counter() - began)

    def loss(self) -> float:
        return float(self._loss)


def prepare(job: Job) -> Training:
    """Compile a step as a user would: ours is the same function, traced under `accelerate`."""
    set_up(job, "jax")
    step = partial(_step, job.model)
    if job.family == "ours":
        step = import_module("convgrad.jax").accelerate(**job.accelerate)(step)
    return Training(job, jax.jit(step, donate_argnums=0))


def layers(job: Job, repeats: int) -> list[dict[str, Any]]:
    """Time each distinct convolution, native and ours in turns."""
    set_up(job, "jax")
    return jax_layers.compare(draft(job.model, job.batch, job.image), repeats)


def _step(model: str, state: Any, images: Any, labels: Any) -> Any:
    """Return parameters, statistics and velocities after a step of SGD with momentum, and the loss before it."""
    parameters, statistics, velocities = state
    loss_of = jax.value_and_grad(partial(cross_entropy, model), has_aux=True)
    (loss, statistics), gradients = loss_of(parameters, statistics, images, labels)
    velocities = jax.tree.map(lambda v, g: MOMENTUM * v + g, velocities, gradients)
    parameters = jax.tree.map(lambda p, v: p - RATE * v, parameters, velocities)
    return (parameters, statistics, velocities), loss
