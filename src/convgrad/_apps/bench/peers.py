"""Whom we compare with: one row per way to call a framework.

Every peer gets its operands in its own memory and in the layout it likes best, converted before the clock starts.
Where it refuses a contest, the reason it gives ends up in the JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._bridges.peers import FRAMEWORKS, Framework, Prepared, Wanted
from .contests import KINDS, Contest, operands_of


@dataclass(frozen=True)
class Peer:
    """One row: a framework and a way to call it."""

    name: str
    framework: Framework
    process: str
    """Peers with the same process share one worker."""
    meaning: str
    way: Mapping[str, Any] = field(default_factory=dict)
    """What its `prepare` is told."""
    switches: Mapping[str, str] = field(default_factory=dict)
    """Variables of the process in addition to the framework's own."""

    @property
    def is_installed(self) -> bool:
        return self.framework.is_installed

    def environment(self, threads: int) -> dict[str, str]:
        """Return the variables the worker starts with."""
        return {**self.framework.environment(threads), **self.switches}

    def prepare(self, contest: Contest) -> Prepared:
        arrays = operands_of(contest)
        first, second = {
            "fwd": (arrays.x, arrays.f),
            "dx": (arrays.f, arrays.g),
            "dw": (arrays.x, arrays.g),
        }[contest.op]
        return self.framework.prepare(request_of(contest), first, second, **self.way)


def request_of(contest: Contest) -> Wanted:
    """Describe a contest to a framework."""
    layer = contest.layer
    return Wanted(
        kind=KINDS[contest.op],
        depthwise=not layer.is_dense,
        layout=contest.layout,
        input_shape=layer.input_shape(contest.layout),
        filter_shape=layer.filter_shape,
        strides=layer.strides,
        dilations=layer.dilations,
        padding=layer.padding,
        pads=layer.pads,
    )


_TENSORFLOW, _TORCH, _JAX = (FRAMEWORKS[name] for name in ("tensorflow", "torch", "jax"))

PEERS = (
    Peer(
        "torch-cl",
        _TORCH,
        "torch",
        "PyTorch, channels_last memory format",
        {"channels_last": True},
    ),
    Peer(
        "torch-nchw",
        _TORCH,
        "torch",
        "PyTorch, contiguous NCHW tensors",
        {"channels_last": False},
    ),
    Peer(
        "tf-eager",
        _TENSORFLOW,
        "tf",
        "TensorFlow raw operations, eager, without oneDNN",
        switches={"TF_ENABLE_ONEDNN_OPTS": "0"},
    ),
    Peer(
        "tf-onednn",
        _TENSORFLOW,
        "tf-onednn",
        "TensorFlow raw operations, eager, TF_ENABLE_ONEDNN_OPTS=1",
        switches={"TF_ENABLE_ONEDNN_OPTS": "1"},
    ),
    Peer(
        "tf-xla",
        _TENSORFLOW,
        "tf",
        "TensorFlow raw operations in tf.function(jit_compile=True)",
        {"compiled": True},
        {"TF_ENABLE_ONEDNN_OPTS": "0"},
    ),
    Peer(
        "jax-jit",
        _JAX,
        "jax",
        "JAX conv_general_dilated and its linear transposes under jit",
    ),
)

BY_NAME = {peer.name: peer for peer in PEERS}


def select(text: str) -> list[Peer]:
    """Return the peers a list like ``torch,tf-eager`` names; a family name takes all of its rows."""
    if text in ("", "none"):
        return []
    words = [word.strip() for word in text.split(",") if word.strip()]
    chosen: list[Peer] = []
    for word in words:
        found = [p for p in PEERS if word in ("all", p.name, p.name.split("-")[0])]
        if not found:
            raise ValueError(
                f"no peer {word!r}; there are {', '.join(BY_NAME)}, and the families torch, tf, jax"
            )
        chosen += found
    return [peer for peer in PEERS if peer in chosen]
