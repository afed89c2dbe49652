"""What kernels with a known mistake would return: mostly the oracle, asked something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...._base.dtypes import AnyArray
from .case import BACKWARD, FORWARD, Arrays, NormCase
from .truth import exact


class Mistake(NamedTuple):
    """A likely cause."""

    text: str
    ops: tuple[str, ...]
    compute: Callable[[NormCase, Arrays], list[AnyArray] | None]
    """What would be returned; None where the mistake changes nothing or cannot be made."""


def _asked(applies: Callable[[NormCase], bool], **changed: Any) -> Callable[..., Any]:
    """Return the oracle's answer to a changed question."""
    return lambda case, arrays: exact(case, arrays, **changed) if applies(case) else None


def _own_statistics(case: NormCase, arrays: Arrays) -> tuple[AnyArray, AnyArray]:
    wide = arrays["input"].astype(np.float64)
    mean = wide.mean(axis=case.spread)
    return mean, ((wide - case.column(mean)) ** 2).mean(axis=case.spread)


def _given(case: NormCase, arrays: Arrays, mean: AnyArray, variance: AnyArray) -> list[AnyArray]:
    """Return what comes out with other statistics."""
    return exact(case, arrays, is_training=False, mean=mean, variance=variance)


def _unbiased(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    if case.op == BACKWARD or not case.is_training or case.values < 2:
        return None
    mean, variance = _own_statistics(case, arrays)
    return _given(case, arrays, mean, variance * case.values / (case.values - 1))


def _returned_unbiased(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    """As TensorFlow does."""
    if not case.is_training or case.values < 2:
        return None
    y, mean, variance = exact(case, arrays)
    return [y, mean, variance * case.values / (case.values - 1)]


def _epsilon_outside(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    if case.op == BACKWARD or not case.is_training:
        variance = arrays.get("variance")
        mean = arrays.get("mean")
    else:
        mean, variance = None, None
    if mean is None or variance is None:
        mean, variance = _own_statistics(case, arrays)
    wide = variance.astype(np.float64)
    changed = (np.sqrt(wide) + case.epsilon) ** 2 - case.epsilon
    if case.op == BACKWARD:
        return exact(case, arrays, variance=changed)
    y, *_ = _given(case, arrays, mean, changed)
    return [y, mean.astype(np.float64), wide]


def _each_image(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    """Statistics of each image: y alone can be compared."""
    if not case.is_training or case.images < 2:
        return None
    parts = []
    for n in range(case.images):
        one = {name: each[n : n + 1] if each.ndim == 4 else each for name, each in arrays.items()}
        parts.append(exact(NormCase(**{**vars(case), "images": 1}), one)[0])
    return [np.concatenate(parts)]


def _pieces(case: NormCase, arrays: Arrays) -> tuple[list[AnyArray], AnyArray, AnyArray]:
    """Return the right gradients, and the two terms that training takes from dx."""
    found = exact(case, arrays)
    wide = {name: arrays[name].astype(np.float64) for name in ("input", "mean", "variance")}
    inverse = case.column(1 / np.sqrt(wide["variance"] + case.epsilon))
    scale = arrays["scale"].astype(np.float64) if case.scale else np.ones(case.channels)
    steep = case.column(scale) * inverse / max(case.values, 1)
    away = (wide["input"] - case.column(wide["mean"])) * inverse
    of_mean = np.broadcast_to(steep * case.column(found[2]), case.shape)
    return found, of_mean, steep * away * case.column(found[1])


def _without_mean(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    if not case.is_training:
        return None
    found, of_mean, _ = _pieces(case, arrays)
    return [found[0] + of_mean, *found[1:]]


def _without_variance(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    if not case.is_training:
        return None
    found, _, of_variance = _pieces(case, arrays)
    return [found[0] + of_variance, *found[1:]]


def _unscaled(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    """The gradient of scale from deviations that were not divided."""
    found = exact(case, arrays)
    root = np.sqrt(arrays["variance"].astype(np.float64) + case.epsilon)
    return [found[0], found[1] * root, *found[2:]]


def _dx_unscaled(case: NormCase, arrays: Arrays) -> list[AnyArray] | None:
    if not case.scale:
        return None
    found = exact(case, arrays)
    with np.errstate(all="ignore"):
        return [found[0] / case.column(arrays["scale"].astype(np.float64)), *found[1:]]


def _is(activation: str) -> Callable[[NormCase], bool]:
    return lambda case: case.activation == activation


def _activated(case: NormCase) -> bool:
    return case.activation != "none"


BOTH = (FORWARD, BACKWARD)
MISTAKES = (
    Mistake("variance divided by M - 1, not by M", (FORWARD,), _unbiased),
    Mistake("variance returned as divided by M - 1", (FORWARD,), _returned_unbiased),
    Mistake("epsilon added outside of the root", BOTH, _epsilon_outside),
    Mistake("epsilon ignored", BOTH, _asked(lambda case: case.epsilon != 0, epsilon=0.0)),
    Mistake("statistics of each image, not of the batch", (FORWARD,), _each_image),
    Mistake(
        "the batch's statistics used where others are given",
        (FORWARD,),
        _asked(lambda case: not case.is_training, is_training=True, mean=None, variance=None),
    ),
    Mistake("no mean term in dx", (BACKWARD,), _without_mean),
    Mistake("no variance term in dx", (BACKWARD,), _without_variance),
    Mistake(
        "mean and variance taken for constants in dx",
        (BACKWARD,),
        _asked(lambda case: case.is_training, is_training=False),
    ),
    Mistake(
        "mean and variance that are given taken for the batch's in dx",
        (BACKWARD,),
        _asked(lambda case: not case.is_training, is_training=True),
    ),
    Mistake("dscale of deviations that were not divided", (BACKWARD,), _unscaled),
    Mistake("scale missing in dx", (BACKWARD,), _dx_unscaled),
    Mistake("relu6 without its upper end", BOTH, _asked(_is("relu6"), activation="relu")),
    Mistake("one gelu for the other", BOTH, _asked(_is("gelu"), activation="gelu_tanh")),
    Mistake("one gelu for the other", BOTH, _asked(_is("gelu_tanh"), activation="gelu")),
    Mistake("negative slope taken for 0.01", BOTH, _asked(_is("leaky_relu"), negative_slope=0.01)),
    Mistake("negative slope ignored", BOTH, _asked(_is("leaky_relu"), activation="relu")),
    Mistake("activation ignored", BOTH, _asked(_activated, activation="none")),
    Mistake("residual ignored", BOTH, _asked(lambda case: bool(case.residual), residual=None)),
    Mistake(
        "residual added after the activation",
        BOTH,
        _asked(lambda case: case.residual == "before", residual_position="after"),
    ),
    Mistake(
        "residual added before the activation",
        BOTH,
        _asked(lambda case: case.residual == "after", residual_position="before"),
    ),
    Mistake("scale ignored", BOTH, _asked(lambda case: case.scale, scale=None)),
    Mistake("offset ignored", BOTH, _asked(lambda case: case.offset, offset=None)),
)
