"""A trainer of a framework with a small network in place of the large ones, for children of tests.

Whose trainer it is says the environment. What the framework read when it was imported goes into the note.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from benchmarks.train import networks
from benchmarks.train.job import Job, Trained

_FRAMEWORKS = {"jax", "tensorflow", "torch", "keras"}


def small(net: networks.Layers, images: Any) -> Any:
    """Compute a MobileNetV2 of one block."""
    x = net.relu6(networks._normalized(net, "stem", images, 8, 3, 2))
    x = networks._inverted_residual(net, "block", x, 8, 1, 2)
    x = net.max_pool(net.relu(networks._normalized(net, "head", x, 16)))
    return net.linear("classifier", net.mean(x), networks.CLASSES)


def small_keras(input_shape: tuple[int, ...], classes: int, **how: Any) -> Any:
    """Return much the same of Keras' layers."""
    assert how == {"weights": None, "classifier_activation": None}
    keras = import_module("keras")
    layers = keras.layers
    return keras.Sequential(
        [
            keras.Input(input_shape),
            layers.Conv2D(8, 3, 2, "same", use_bias=False),
            layers.BatchNormalization(),
            layers.ReLU(6.0),
            layers.DepthwiseConv2D(3, 1, "same"),
            layers.Conv2D(16, 1),
            layers.GlobalAveragePooling2D(),
            layers.Dense(classes),
        ]
    )


TRAINER = os.environ.get("SMALL_TRAINER", "")
"""Empty where pytest looks into this module for examples: then nothing is replaced."""
trainer: Any = None
if TRAINER:
    assert not _FRAMEWORKS & set(sys.modules), "a framework was there before its trainer"
    networks.NETWORKS["mobilenet_v2"] = small
    trainer = import_module(TRAINER)
    if TRAINER.endswith("keras_trainer"):
        trainer.MODELS["mobilenet_v2"] = small_keras


def prepare(job: Job) -> Trained:
    trained: Trained = trainer.prepare(job)
    trained.note = "; ".join((*_seen(), trained.note))
    return trained


def _seen() -> list[str]:
    """Say what the framework took from the environment."""
    seen = []
    backend = TRAINER.split(".")[-1].removesuffix("_trainer")
    if backend == "keras":
        backend = sys.modules["keras"].backend.backend()
        seen.append(f"keras {backend}")
    framework: Any = sys.modules[backend]
    if backend == "jax":
        seen.append(f"jax {framework.default_backend()} {framework.numpy.asarray(1.0).dtype}")
    elif backend == "torch":
        seen.append(f"threads {framework.get_num_threads()}")
    else:
        port = import_module("tensorflow.python.util._pywrap_util_port")
        threads = framework.config.threading.get_intra_op_parallelism_threads()
        seen.append(f"oneDNN {port.IsMklEnabled()}, threads {threads}")
    return seen


def layers(job: Job, repeats: int) -> Any:
    return trainer.layers(job, repeats)
