"""Keras as a trainer: its own networks (`keras.applications`), trained by `train_on_batch`.

Imported by a child whose environment already names the backend. Satisfies `job.Trainer`.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import keras

from .drafts import batch_of
from .job import Job, Whole
from .networks import CLASSES
from .setting_up import MOMENTUM, RATE, set_up

MODELS = {
    "mobilenet_v2": keras.applications.MobileNetV2,
    "resnet50": keras.applications.ResNet50,
}


class Training:
    """A compiled model and a batch."""

    def __init__(self, model: Any, job: Job, note: str) -> None:
        self.parameters = sum(_size(each) for each in model.trainable_variables)
        self.note = note
        self._model = model
        # Tensors, so that no step waits for a copy of the images.
        self._batch = [keras.ops.convert_to_tensor(each) for each in batch_of(job)]
        self._loss = 0.0

    def step(self) -> Whole:
        began = time.perf_counter()
        result = self._model.train_on_batch(*self._batch)
        self._loss = float(result)  # which waits for it
        return Whole(time.perf_counter() - began)

    def loss(self) -> float:
        return self._loss


def build(name: str, image: int) -> Any:
    """Return one of Keras' networks as it comes, with new weights and logits instead of probabilities."""
    return MODELS[name](
        weights=None,
        input_shape=(image, image, 3),
        classes=CLASSES,
        classifier_activation=None,
    )


def prepare(job: Job) -> Training:
    """Build and compile as a user would; `accelerate` and `install` come before anything is traced."""
    set_up(job, keras.backend.backend())
    keras.utils.set_random_seed(job.seed)
    note = ""
    if job.family == "installed":
        note = str(import_module("convgrad.tensorflow").install(**job.accelerate))
    model = build(job.model, job.image)
    if job.family == "ours":
        note = str(import_module("convgrad.keras").accelerate(model, **job.accelerate))
    model.compile(
        keras.optimizers.SGD(RATE, momentum=MOMENTUM),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return Training(model, job, note)


def layers(job: Job, repeats: int) -> list[dict[str, Any]]:
    """Keras has no convolutions of its own; `frameworks.Training.no_layers` says where they are timed."""
    raise NotImplementedError("Keras' convolutions are those of its backend")


def _size(variable: Any) -> int:
    size = 1
    for extent in variable.shape:
        size *= int(extent)
    return size
