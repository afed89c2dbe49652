"""Trying one trial: compute it in all its ways and compare each result with what it must be."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import convgrad
from cases import ACCUMULATOR_UNITS, NUMPY, UNITS, Case, Data, run
from convgrad._base import config, dtypes
from convgrad._compiler import jit
from convgrad._engine import planner
from kernels import problem_of

from . import oracle
from .steps import call_door, call_named, data_of, laid_out, operand_names
from .trial import Trial, switches

INEXACT = ("winograd_fast",)
"""Algorithms whose constants are not short binary fractions: not even whole numbers come out exact."""


class Wrong(Exception):
    """A result is not what it must be."""


@dataclass
class Outcome:
    """What came out of a trial that passed."""

    digest: str
    """Of the bits of all results."""
    algorithms: list[str] = field(default_factory=list)
    """Of the door first, then those asked by name."""
    checks: list[str] = field(default_factory=list)
    used: float = 0.0
    """The largest part of an error bound that a float32 or float64 result used up."""


def attempt(trial: Trial) -> Outcome:
    """Compute a trial in all its ways, or raise `Wrong`."""
    data, mixing = data_of(trial)
    expected = _Expected(trial, data, mixing)
    outcome = Outcome("", [_door_algorithm(trial)], [trial.data])
    digest = hashlib.blake2b(digest_size=12)
    for name in ("", *trial.named):
        bits = b""
        for turn, count in enumerate(trial.threads):
            with convgrad.threads(count):
                got = call_named(trial, name, data) if name else _by_door(trial, data, mixing)
            if turn == 0:
                algorithm = name or outcome.algorithms[0]
                used = expected.check(got, algorithm, name or f"door {trial.door}")
                outcome.used = max(outcome.used, used)
                bits = got.tobytes()
                digest.update(bits)
            elif got.tobytes() != bits:
                where = f"{trial.threads[0]} and {count} threads" if turn < 4 else "two calls"
                raise Wrong(f"{name or trial.door}: other bits between {where}")
    outcome.algorithms.extend(trial.named)
    outcome.digest = digest.hexdigest()
    outcome.checks.extend(_checks(trial))
    if trial.peer:
        outcome.checks.append(f"peer {trial.peer}" if _by_peer(trial, data) else "peer refused")
    return outcome


def _checks(trial: Trial) -> list[str]:
    plain = [each for each in trial.layouts if each not in ("C", "start", "end")]
    guarded = trial.named and trial.place != "shifted"
    if trial.layouts[0] in ("start", "end") or trial.layouts[1] in ("start", "end"):
        guarded = True
    marks = (("layouts", plain), ("guarded", guarded), ("threads", len(trial.threads) > 1))
    return [name for name, found in marks if found]


def _door_algorithm(trial: Trial) -> str:
    """Return what the door will run; the last one where it runs two."""
    case = trial.case
    if case.is_empty:
        return "empty"
    if trial.mixing:
        return "separable"
    with config.scope(**switches(trial)):
        return planner.choose(problem_of(case, trial.kind), jit.host_target()).algorithm


def _by_door(trial: Trial, data: Data, mixing: Any) -> Any:
    """Call the public function on operands laid out as the trial says, and check that it leaves them alone."""
    operands = tuple(getattr(data, name) for name in operand_names(trial))
    given = tuple(
        laid_out(each, layout, slot)
        for slot, (each, layout) in enumerate(zip(operands, trial.layouts, strict=True))
    )
    with config.scope(**switches(trial)):
        got = call_door(trial, given, mixing)
    for name, before, after in zip(operand_names(trial), operands, given, strict=True):
        if np.asarray(after).astype(before.dtype).tobytes() != before.tobytes():
            raise Wrong(f"operand {name} was changed")
    if type(got) is not np.ndarray or got.dtype != NUMPY[trial.case.dtype]:
        raise Wrong(f"the result is a {type(got).__name__} of {got.dtype}")
    if not (got.flags.c_contiguous and got.flags.writeable):
        raise Wrong("the result is not contiguous or not writable")
    if got.size and got.ctypes.data % 64:
        raise Wrong("the result is not aligned to 64 bytes")
    return got


class _Expected:
    """What a trial's results are compared with; the magnitudes of a bound are computed once, when asked for."""

    def __init__(self, trial: Trial, data: Data, mixing: Any) -> None:
        self.trial, self.case, self.data = trial, trial.case, data
        wide: Any = np.float64
        if self.case.dtype == "int32":
            wide = np.int64
        elif trial.data == "normal" and self.case.dtype == "float64":
            wide = np.longdouble
        self.exact = oracle.compute(self.case, trial.kind, data, wide)
        if trial.data == "whole" and trial.seed % 16 == 0 and not trial.mixing:
            theirs = run(self.case, trial.kind, data, "reference", exact=True)
            if not np.array_equal(theirs.astype(np.float64), self.exact.astype(np.float64)):
                raise Wrong("convgrad.reference differs from the campaign's own sums")
        if trial.mixing:
            self.exact = _mix(self.case, self._rounded(self.exact), mixing)
        self._magnitudes: Any = None

    def _rounded(self, exact: Any) -> Any:
        if self.case.dtype == "int32":
            return ((exact + 2**31) % 2**32 - 2**31).astype(np.int32)
        row = dtypes.find(NUMPY[self.case.dtype])
        assert row is not None
        return dtypes.round_once(exact.astype(np.float64), row)

    def check(self, got: Any, algorithm: str, who: str) -> float:
        """Compare one result; return the part of its error bound that was used up."""
        if got.shape != self.exact.shape:
            raise Wrong(f"{who}: shape {got.shape} instead of {self.exact.shape}")
        if self.trial.data == "normal" or algorithm in INEXACT:
            return self._check_bound(got, algorithm, who)
        expected = self._rounded(self.exact).astype(np.float64)
        got = got.astype(np.float64)
        if self.trial.data == "special" and not algorithm.startswith("winograd"):
            free = oracle.padding_meets_infinity(self.case, self.trial.kind, self.data)
            expected = np.where(free & np.isnan(got), np.nan, expected)
        _compare(got, expected, who)
        return 0.0

    def _check_bound(self, got: Any, algorithm: str, who: str) -> float:
        exact = self.exact
        got = got.astype(exact.dtype)
        if self.trial.data == "special":
            _same_classes(got, exact, who)
            finite = np.isfinite(exact)
            got, exact = np.where(finite, got, 0), np.where(finite, exact, 0)
        if algorithm in INEXACT:
            return self._check_norm(got, exact, who)
        with np.errstate(all="ignore"):
            allowed = self._allowed(algorithm)
            error = np.abs(got - exact)
            parts = np.nan_to_num(error / allowed, nan=np.inf, posinf=np.inf)
            part = float(parts.max()) if error.size else 0.0
        if not part <= 1:
            worst = np.unravel_index(int(parts.argmax()), error.shape)
            at = tuple(int(each) for each in worst)
            raise Wrong(f"{who} ({algorithm}): {part:.3g} times the error allowed at {at}")
        # A 16-bit result uses up its one rounding as a rule; that says nothing about the sum.
        return part if self.case.dtype in ("float32", "float64") else 0.0

    def _allowed(self, algorithm: str) -> Any:
        """Return the bound of each number: t additions in precision a err by t * a * sum|products|, then one rounding.

        Winograd's sums have 4 additions more before the products and as many after. Its filter gradient adds up all
        taps of a tile, so its error is relative to the largest of them.
        """
        if self._magnitudes is None:
            absolute = Data(*(np.abs(each) for each in (self.data.x, self.data.f, self.data.g)))
            wide = self.exact.dtype
            self._magnitudes = oracle.compute(self.case, self.trial.kind, absolute, wide)
        terms, magnitudes = self.case.terms(self.trial.kind) + 2, self._magnitudes
        if algorithm.startswith("winograd"):
            terms = 2 * terms + 32
        if algorithm == "winograd_filter_gradient":
            magnitudes = np.broadcast_to(magnitudes.max((0, 1)), magnitudes.shape)
        dtype = self.case.dtype
        tiny = 2.0**-24 if dtype == "half" else 2.0**-133
        rounding = UNITS[dtype] * np.abs(self.exact) * 1.0001
        return rounding + terms * ACCUMULATOR_UNITS[dtype] * magnitudes + tiny

    def _check_norm(self, got: Any, exact: Any, who: str) -> float:
        """Compare norms: F(4,3) errs by some 10 units of float32 in this measure, whatever else is rounded."""
        norm = float(np.sqrt((exact.astype(np.float64) ** 2).sum()))
        error = float(np.sqrt(((got - exact).astype(np.float64) ** 2).sum()))
        # A sum that happens to be near zero still errs like its products.
        terms = self.case.terms(self.trial.kind)
        scale = np.sqrt(exact.size * terms) * self._typical()
        allowed = 64 * 2.0**-24 * max(norm, scale) + UNITS[self.case.dtype] * norm
        if not error <= allowed:
            raise Wrong(f"{who}: norm of the error {error:.3g}, allowed {allowed:.3g}")
        return 0.0

    def _typical(self) -> float:
        """Return the root mean square of one product."""
        first, second = (getattr(self.data, name) for name in operand_names(self.trial))
        means = []
        for each in (first, second):
            finite = each.astype(np.float64)
            finite = finite[np.isfinite(finite)]
            means.append(float(np.sqrt((finite**2).mean())) if finite.size else 0.0)
        return means[0] * means[1]


def _mix(case: Case, rounded: Any, mixing: Any) -> Any:
    """Apply the 1x1 convolution of `separable_conv2d`."""
    word = "npqi,ik->npqk" if case.data_format == "NHWC" else "nipq,ik->nkpq"
    return np.einsum(word, rounded.astype(np.float64), mixing[0, 0].astype(np.float64))


def _compare(got: Any, expected: Any, who: str) -> None:
    """Demand equal numbers, NaN where NaN is expected."""
    wrong = (got != expected) & ~(np.isnan(got) & np.isnan(expected))
    if wrong.any():
        at = tuple(int(each[0]) for each in np.nonzero(wrong))
        raise Wrong(
            f"{who}: {int(wrong.sum())} of {wrong.size} numbers wrong, first at {at}: "
            f"{got[at]:g} instead of {expected[at]:g}"
        )


def _same_classes(got: Any, expected: Any, who: str) -> None:
    for name, test in (("NaN", np.isnan), ("Inf", np.isposinf), ("-Inf", np.isneginf)):
        if not np.array_equal(test(got), test(expected)):
            raise Wrong(f"{who}: {name} in other places than the plain sum has it")


def _by_peer(trial: Trial, data: Data) -> bool:
    """Compare with a framework; return whether it computes the problem at all."""
    from frameworks import ask

    case, kind = trial.case, trial.kind
    if case.is_empty:
        return False
    wide = Data(*(each.astype(np.float64) for each in (data.x, data.f, data.g)))
    case = Case(**{**case.__dict__, "dtype": "float64"})
    way = {"compiled": True} if trial.peer == "tensorflow" else {}
    try:
        theirs = ask(trial.peer, case, kind, wide, **way)
    except ImportError:
        return False
    except Exception as error:  # whatever a framework raises where it refuses
        if "not support" in str(error) or "mplement" in str(error):
            return False
        raise
    ours = run(case, kind, wide)
    absolute = Data(*(np.abs(each) for each in (wide.x, wide.f, wide.g)))
    magnitudes = oracle.compute(case, kind, absolute)
    allowed = 4 * (case.terms(kind) + 2) * UNITS["float64"] * magnitudes + 2.0**-1000
    if (np.abs(ours - theirs) > allowed).any():
        worst = float((np.abs(ours - theirs) / allowed).max())
        raise Wrong(f"{trial.peer}: {worst:.3g} times the difference allowed")
    return True
