"""A trial: one problem, the data it gets, and the ways it is computed. Plain values, so that it can be saved."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from cases import KINDS, Case
from convgrad._base import config
from convgrad._compiler import jit
from convgrad._compiler import targets as _targets
from convgrad._compiler.jit import host
from convgrad._compiler.targets import Target

DENSE_OPS = ("conv2d", "conv2d_backprop_input", "conv2d_backprop_filter")
DEPTHWISE_OPS = tuple(f"depthwise_{op}" for op in DENSE_OPS)
OPS = (*DENSE_OPS, *DEPTHWISE_OPS, "conv2d_transpose", "separable_conv2d")

DOORS = ("friendly", "nn", "v1", "raw")
"""How a problem is asked for; every other call of a trial is the name of an algorithm."""


@dataclass(frozen=True)
class Trial:
    """One problem and how it is tried."""

    op: str
    case: Case
    mixing: int
    """Result channels of the 1x1 convolution of `separable_conv2d`, else 0."""
    data: str
    """whole: small whole numbers; wrapping: any int32; normal: floats; special: whole, with Inf and NaN planted."""
    seed: int
    """Of the data."""
    target: str
    """A row and a vector width, as in avx2v256; -inthalf converts float16 by integers, in named algorithms only."""
    winograd: str
    door: str
    layouts: tuple[str, str]
    """How the operands given to the door lie in memory: a row of `layouts.LAYOUTS`, broadcast, start or end."""
    named: tuple[str, ...]
    """Algorithms that compute it too, on guarded memory."""
    place: str
    threads: tuple[int, ...]
    """Counts that must all give the same bits."""
    paired: bool = False
    """Whether a second process must give the same bits too."""
    peer: str = ""
    """A framework to compare with."""

    @property
    def kind(self) -> str:
        if self.op == "conv2d_transpose":
            return "input"
        return {"input": "input", "filter": "filter"}.get(self.op.rsplit("_", 1)[-1], "forward")

    @property
    def problem(self) -> str:
        """A name for the problem alone: equal for two trials that differ in data, target or way only."""
        text = repr((self.op, asdict(self.case), self.mixing))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(row: dict[str, Any]) -> Trial:
        row = json.loads(json.dumps(row))
        case = {name: _tuples(value) for name, value in row.pop("case").items()}
        return Trial(case=Case(**case), **{name: _tuples(value) for name, value in row.items()})


def _tuples(value: Any) -> Any:
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def kinds_of(case: Case) -> tuple[str, ...]:
    """Return the operations a case has; int32 has no filter gradient."""
    return KINDS[:2] if case.dtype == "int32" else KINDS


def targets() -> tuple[str, ...]:
    """Return the labels of all that this machine can run: the host's own first."""
    rows = _targets.runnable(host.architecture(), host.features())
    labels = [row.with_vector_bits(bits).label for row in rows for bits in _targets.VECTOR_BITS]
    own = jit.host_target().label
    half = [f"{own}-inthalf"] if rows[0].has_half else []
    return (own, *(each for each in labels if each != own), *half)


def switches(trial: Trial) -> dict[str, Any]:
    """Return the settings under which a trial's door is called; the host's own where it lacks the target."""
    name, _, bits = trial.target.removesuffix("-inthalf").rpartition("v")
    if trial.target not in targets():
        return {"winograd": trial.winograd}
    return {"target": name, "vector_bits": int(bits), "winograd": trial.winograd}


def target_of(trial: Trial) -> Target:
    """Return what a trial's algorithms are compiled for."""
    with config.scope(**switches(trial)):
        found = jit.host_target()
    return replace(found, has_half=False) if trial.target.endswith("-inthalf") else found
