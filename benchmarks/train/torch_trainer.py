"""PyTorch as a trainer: a model of `torch_models` in one configuration, and its step.

Imported by a child whose environment already limits threads. Satisfies `job.Trainer`.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import convgrad

from . import torch_layers
from .job import Job, Parts
from .setting_up import MOMENTUM, RATE
from .torch_models import CLASSES, MODELS


class Training:
    """A model, a batch and an optimizer."""

    def __init__(self, model: nn.Module, images: Any, labels: Any, note: str) -> None:
        self.parameters = sum(each.numel() for each in model.parameters())
        self.note = note
        self._model = model
        self._images = images
        self._labels = labels
        self._optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)
        self._loss: Any = None

    def step(self) -> Parts:
        clock = time.perf_counter
        began = clock()
        loss = functional.cross_entropy(self._model(self._images), self._labels)
        forward = clock()
        loss.backward()
        backward = clock()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        end = clock()
        self._loss = loss.detach()
        return Parts(forward - began, backward - forward, end - backward)

    def loss(self) -> float:
        return float(self._loss)


def prepare(job: Job) -> Training:
    """Build the model as a user would: layout first, then what changes it, then the optimizer."""
    _set_up(job)
    order = _memory_format(job)
    torch.manual_seed(job.seed)
    model = MODELS[job.model]().to(memory_format=order)
    random = torch.Generator().manual_seed(job.seed)
    shape = (job.batch, 3, job.image, job.image)
    images = torch.randn(shape, generator=random).contiguous(memory_format=order)
    labels = torch.randint(0, CLASSES, (job.batch,), generator=random)
    note = ""
    if job.family == "ours":
        note = str(import_module("convgrad.torch").accelerate(model, **job.accelerate))
    elif job.family == "compiled":
        model = torch.compile(model)
    return Training(model, images, labels, note)


def layers(job: Job, repeats: int) -> list[dict[str, Any]]:
    """Time each distinct convolution, channels_last, native and ours in turns."""
    _set_up(job)
    shape = (job.batch, 3, job.image, job.image)
    return torch_layers.compare(MODELS[job.model](), shape, repeats)


def _set_up(job: Job) -> None:
    """Set what holds for the whole process; the memory setting comes before anything large is allocated."""
    if job.memory:
        setting = import_module("convgrad.torch").tune_memory()
        if not setting.applied:
            raise RuntimeError(f"the memory setting: {setting}")
    torch.set_num_threads(job.threads)
    convgrad.set_num_threads(job.threads)


def _memory_format(job: Job) -> Any:
    return torch.channels_last if job.layout == "channels_last" else torch.contiguous_format
