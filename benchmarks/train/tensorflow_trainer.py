"""TensorFlow as a trainer: a model of `tensorflow_models` in one configuration; its step is one `tf.function`.

Imported by a child whose environment already says whether oneDNN is on. Satisfies `job.Trainer`.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import tensorflow as tf

from . import tensorflow_layers
from .drafts import batch_of, draft, starting_values
from .job import Job, Whole
from .setting_up import MOMENTUM, RATE, set_up
from .tensorflow_models import Computed, cross_entropy


class Training:
    """A model, a batch and an optimizer."""

    def __init__(self, job: Job, note: str) -> None:
        of = draft(job.model, job.batch, job.image)
        self.parameters = of.parameters
        self.note = note
        computed = Computed(*starting_values(of, job.seed))
        velocities = [tf.Variable(tf.zeros_like(each)) for each in computed.trained]
        self._batch = [tf.constant(each) for each in batch_of(job)]
        self._loss: Any = None

        def step(images: Any, labels: Any) -> Any:
            with tf.GradientTape() as tape:
                loss = cross_entropy(job.model, computed, images, labels)
            gradients = tape.gradient(loss, computed.trained)
            for variable, velocity, gradient in zip(
                computed.trained, velocities, gradients, strict=True
            ):
                tf.raw_ops.ResourceApplyMomentum(
                    var=variable.handle,
                    accum=velocity.handle,
                    lr=RATE,
                    grad=gradient,
                    momentum=MOMENTUM,
                )
            return loss

        self._step = tf.function(step, jit_compile=False)

    def step(self) -> Whole:
        began = time.perf_counter()
        self._loss = self._step(*self._batch)
        self._loss.numpy()
        return Whole(time.perf_counter() - began)

    def loss(self) -> float:
        return float(self._loss)


def prepare(job: Job) -> Training:
    """Build the step as a user would: ours is the same one, traced after `install`."""
    set_up(job, "tensorflow")
    note = ""
    if job.family == "ours":
        note = str(import_module("convgrad.tensorflow").install(**job.accelerate))
    return Training(job, note)


def layers(job: Job, repeats: int) -> list[dict[str, Any]]:
    """Time each distinct convolution, native and ours in turns."""
    set_up(job, "tensorflow")
    return tensorflow_layers.compare(draft(job.model, job.batch, job.image), repeats)
