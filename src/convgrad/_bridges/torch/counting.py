"""Counting batches as `torch.nn.BatchNorm2d` does: before they are normalized."""

from __future__ import annotations

from typing import Any


def count(norm: Any) -> float:
    """Count a batch, and return by how much its statistics count."""
    momentum: float | None = norm.momentum
    tracked = _tracked(norm)
    if tracked is not None:
        tracked.add_(1)
        if momentum is None:
            return 1.0 / float(tracked)
    return 0.0 if momentum is None else float(momentum)


def uncount(norm: Any) -> None:
    """Take it back: somebody else will count."""
    tracked = _tracked(norm)
    if tracked is not None:
        tracked.sub_(1)


def _tracked(norm: Any) -> Any:
    if norm.training and norm.track_running_stats:
        return norm._buffers.get("num_batches_tracked")
    return None
