"""`check_op` on batch norms: a plain one in NumPy passes, each with a planted mistake is found, with its cause."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import convgrad
from convgrad import reference
from convgrad._apps.check.batch_norm import run
from convgrad._apps.cli.main import main
from convgrad.errors import ArgumentError
from convgrad.testing import check_op

FORWARD, BACKWARD = "batch_norm_act", "batch_norm_act_grad"


def act(name: str, u: Any, slope: float) -> Any:
    if name in ("gelu", "gelu_tanh"):
        raise NotImplementedError(name)
    return {
        "none": lambda: u,
        "relu": lambda: np.where(u <= 0, 0 * u, u),
        "relu6": lambda: np.where(u >= 6, 0 * u + 6, np.where(u <= 0, 0 * u, u)),
        "leaky_relu": lambda: np.where(u > 0, u, u * u.dtype.type(slope)),
        "silu": lambda: u / (1 + np.exp(-u)),
        "hardswish": lambda: u * np.clip(u + 3, 0, 6) / 6,
    }[name]()


def derivative(name: str, u: Any, slope: float) -> Any:
    if name in ("gelu", "gelu_tanh"):
        raise NotImplementedError(name)
    ones = np.ones_like(u)
    if name == "silu":
        gate = 1 / (1 + np.exp(-u))
        return gate * (1 + u * (1 - gate))
    return {
        "none": lambda: ones,
        "relu": lambda: np.where(u <= 0, 0, ones),
        "relu6": lambda: np.where((u <= 0) | (u >= 6), 0, ones),
        "leaky_relu": lambda: np.where(u > 0, ones, ones * u.dtype.type(slope)),
        "hardswish": lambda: np.where(u <= -3, 0, np.where(u < 3, u / 3 + ones / 2, ones)),
    }[name]()


class Plain:
    """Batch norm as one writes it in NumPy, in float32 or float64; a mistake is a method that is replaced."""

    def wide(self, x: Any) -> Any:
        return x if x.dtype == np.float64 else x.astype(np.float32)

    def moments(self, x: Any) -> tuple[Any, Any]:
        mean = x.mean(axis=(0, 1, 2))
        return mean, ((x - mean) ** 2).mean(axis=(0, 1, 2))

    def root(self, variance: Any, epsilon: float) -> Any:
        return np.sqrt(variance + variance.dtype.type(epsilon))

    def slope(self, name: str, u: Any, negative: float) -> Any:
        return derivative(name, u, negative)

    def gradient(self, g: Any, z: Any, steep: Any, dscale: Any, doffset: Any, count: int) -> Any:
        return steep * (g - doffset / g.dtype.type(count) - z * dscale / g.dtype.type(count))

    def _u(self, x: Any, scale: Any, offset: Any, mean: Any, root: Any, residual: Any) -> Any:
        u = (x - mean) / root
        u = u if scale is None else u * scale
        u = u if offset is None else u + offset
        return u if residual is None else u + self.wide(residual)

    def forward(
        self,
        *arrays: Any,
        epsilon: float,
        is_training: bool,
        activation: str,
        negative_slope: float,
        residual_position: str,
        data_format: str,
        residual: Any = None,
    ) -> Any:
        x, scale, offset, mean, variance = arrays
        if data_format != "NHWC":
            raise NotImplementedError(data_format)
        wide = self.wide(x)
        if is_training and not wide.shape[0] * wide.shape[1] * wide.shape[2] * wide.shape[3]:
            empty = np.full(wide.shape[3], np.nan, wide.dtype)
            return x.copy(), empty, empty.copy()
        if is_training:
            mean, variance = self.moments(wide)
        before = residual if residual_position == "before" else None
        root = self.root(variance, epsilon)
        y = act(activation, self._u(wide, scale, offset, mean, root, before), negative_slope)
        if residual is not None and before is None:
            y = y + self.wide(residual)
        return y.astype(x.dtype), mean.copy(), variance.copy()

    def backward(
        self,
        *arrays: Any,
        epsilon: float,
        is_training: bool,
        activation: str,
        negative_slope: float,
        residual_position: str,
        data_format: str,
        residual: Any = None,
    ) -> Any:
        dy, x, scale, offset, mean, variance = arrays
        if data_format != "NHWC":
            raise NotImplementedError(data_format)
        wide = self.wide(x)
        before = residual if residual_position == "before" else None
        root = self.root(variance, epsilon)
        u = self._u(wide, scale, offset, mean, root, before)
        g = self.wide(dy) * self.slope(activation, u, negative_slope)
        z = (wide - mean) / root
        dscale, doffset = (g * z).sum(axis=(0, 1, 2)), g.sum(axis=(0, 1, 2))
        steep = (1 if scale is None else scale) / root
        dx = steep * g
        if is_training and x.size:
            dx = self.gradient(g, z, steep, dscale, doffset, x.size // x.shape[3])
        dr = None
        if residual is not None:
            dr = dy.copy() if before is None else g.astype(x.dtype)
        return dx.astype(x.dtype), dscale, doffset, dr


def report_of(kernel: Plain, op: str, **settings: Any) -> Any:
    function = kernel.forward if op == FORWARD else kernel.backward
    return check_op(function, op, problems=240, **settings)


@pytest.mark.parametrize("op", [FORWARD, BACKWARD])
def test_a_plain_one_passes(op: str) -> None:
    """Written without care for the order of sums: limits must not ask for our own."""
    report = report_of(Plain(), op)
    report.raise_if_failed()
    assert {row.name for row in report.rows if row.status == "refused"} == {
        *("gelu", "gelu_tanh", "NCHW")
    }
    assert report.row("half").status == report.row("far-mean").status == "pass"


@pytest.mark.parametrize("op", [FORWARD, BACKWARD])
def test_ours_pass(op: str) -> None:
    report = check_op(getattr(convgrad, op), op, problems=150)
    report.raise_if_failed()
    assert not report.refusals


def planted(**methods: Callable[..., Any]) -> Plain:
    return type("Planted", (Plain,), methods)()  # type: ignore[no-any-return]


def _unbiased(self: Any, x: Any) -> Any:
    mean, variance = Plain.moments(self, x)
    count = x.size // x.shape[3]
    return mean, variance * x.dtype.type(count / max(count - 1, 1))


def _cancelling(self: Any, x: Any) -> Any:
    mean = x.mean(axis=(0, 1, 2))
    return mean, (x * x).mean(axis=(0, 1, 2)) - mean * mean


def _outside(self: Any, variance: Any, epsilon: float) -> Any:
    return np.sqrt(variance) + variance.dtype.type(epsilon)


def _no_upper_end(self: Any, name: str, u: Any, slope: float) -> Any:
    return derivative("relu" if name == "relu6" else name, u, slope)


def _no_mean(self: Any, g: Any, z: Any, steep: Any, dscale: Any, doffset: Any, count: int) -> Any:
    return steep * (g - z * dscale / g.dtype.type(count))


def _no_variance(
    self: Any, g: Any, z: Any, steep: Any, dscale: Any, doffset: Any, count: int
) -> Any:
    return steep * (g - doffset / g.dtype.type(count))


def _slightly(self: Any, *given: Any) -> Any:
    return Plain.gradient(self, *given) * given[0].dtype.type(1.001)


PLANTED = [
    (FORWARD, {"moments": _unbiased}, "basic", "variance divided by M - 1, not by M"),
    (FORWARD, {"moments": _cancelling}, "far-mean", None),
    (FORWARD, {"root": _outside}, "epsilon", "epsilon added outside of the root"),
    (BACKWARD, {"root": _outside}, "epsilon", "epsilon added outside of the root"),
    (BACKWARD, {"slope": _no_upper_end}, "relu6", "relu6 without its upper end"),
    (BACKWARD, {"gradient": _no_mean}, "basic", "no mean term in dx"),
    (BACKWARD, {"gradient": _no_variance}, "basic", "no variance term in dx"),
    (BACKWARD, {"gradient": _slightly}, "basic", None),
]


@pytest.mark.parametrize(
    "row", PLANTED, ids=lambda row: f"{row[0]}-{next(iter(row[1].values())).__name__}"
)
def test_planted_mistakes_are_found(row: Any) -> None:
    op, methods, name, guess = row
    report = report_of(planted(**methods), op)
    assert not report.ok and report.row(name).status == "FAIL"
    assert guess in {each.guess for each in report.findings}, str(report)
    if guess:
        found = next(each for each in report.findings if each.guess == guess)
        assert found.evidence.startswith("matches") and "reference." in found.program


def test_a_mistake_stays_in_its_row() -> None:
    """The upper end of relu6 concerns relu6, and what is drawn at random."""
    report = report_of(planted(slope=_no_upper_end), BACKWARD)
    assert {row.name for row in report.rows if row.failed} <= {"relu6", "mixed"}


def test_the_smallest_case_is_small_and_runs() -> None:
    report = report_of(planted(gradient=_no_mean), BACKWARD, properties=["basic", "mixed"])
    found = report.findings[0]
    assert "input = np." in found.program and len(found.program.splitlines()) < 25
    assert "kernel = " in found.program
    program = re.sub(
        r"import .*test_batch_norm\n", "from convgrad import batch_norm_act_grad\n", found.program
    )
    program = re.sub(r"kernel = .*", "kernel = batch_norm_act_grad", program)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_gradients_that_are_not_linear() -> None:
    """Too little to see beside the limits, and found without the oracle."""

    class Bent(Plain):
        def gradient(self, g: Any, *given: Any) -> Any:
            dx = super().gradient(g, *given)
            return dx * (1 + np.minimum(np.abs(g), 1) * g.dtype.type(2.0**-21))

    report = report_of(Bent(), BACKWARD, dtypes=["float32"])
    assert [row.name for row in report.rows if row.failed] == ["linear"]


def test_gradients_that_do_not_add_up() -> None:
    """Each is off by less than it may be, all in one direction."""

    class Leaning(Plain):
        def gradient(self, g: Any, *given: Any) -> Any:
            dx = super().gradient(g, *given)
            return dx + g.dtype.type(2.0**-18) * np.abs(g).max(axis=(0, 1, 2))

    report = report_of(Leaning(), BACKWARD)
    assert report.row("adds-up").failed


def test_other_faults_are_told_apart() -> None:
    def swallows(*arrays: Any, **settings: Any) -> Any:
        y, *statistics = Plain().forward(*arrays, **settings)
        return (np.nan_to_num(y), *statistics)

    report = check_op(swallows, FORWARD, problems=120)
    assert [row.name for row in report.rows if row.failed] == ["nan"]
    assert "NaN or infinity lost" in report.findings[0].what

    def writes(*arrays: Any, **settings: Any) -> Any:
        result = Plain().forward(*arrays, **settings)
        arrays[0][...] = 0
        return result

    report = check_op(writes, FORWARD, problems=60)
    assert report.row("operands-kept").failed and report.row("basic").status == "pass"

    def returns_input(*arrays: Any, **settings: Any) -> Any:
        return (arrays[0], *Plain().forward(*arrays, **settings)[1:])

    assert check_op(returns_input, FORWARD, problems=60).row("fresh-result").failed

    def forgets(*arrays: Any, **settings: Any) -> Any:
        return Plain().forward(*arrays, **settings)[:2]

    report = check_op(forgets, FORWARD, problems=60)
    assert report.row("basic").status == "died"
    assert "2 results instead of 3: y, mean, variance" in report.findings[0].what

    def wide(*arrays: Any, **settings: Any) -> Any:
        return reference.batch_norm_act(*arrays, **settings)

    report = check_op(wide, FORWARD, problems=60)
    assert "dtype float64 instead of float32" in report.findings[0].what


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(ArgumentError, match=r"must be a number for batch_norm_act"):
        check_op(Plain().forward, FORWARD, problems=["conv2d 1x3x3x1 3x3x1x1"])
    with pytest.raises(ArgumentError, match=r"`op` must be one of conv2d.*batch_norm_act_grad"):
        check_op(Plain().forward, "batch_norm")
    with pytest.raises(ArgumentError, match=r"`properties` must be of .*far-mean.*, got stride"):
        check_op(Plain().forward, FORWARD, properties=["stride"])
    with pytest.raises(ArgumentError, match=r"IMPL: torch can be checked for conv2d"):
        check_op("torch", FORWARD)
    with pytest.raises(ArgumentError, match=r"refused every plain problem of batch_norm_act"):
        check_op(lambda *arrays, **settings: int("no"), FORWARD)


MODULE = """
import os, convgrad
def crashes(out_backprop, input, *arrays, **settings):
    if input.shape[3] == 3:
        os.abort()
    return convgrad.batch_norm_act_grad(out_backprop, input, *arrays, **settings)
"""


def test_in_a_process_of_its_own(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "theirs.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_SECONDS", 3.0)  # of shrinking, a process per death
    report = check_op("theirs:crashes", BACKWARD, problems=12, isolate=True, properties=["basic"])
    assert report.row("basic").died and not report.row("basic").failed
    assert "SIGABRT" in report.findings[0].what
    assert ", 3]" in report.findings[0].program


def test_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    common = ["--in-process", "--problems", "40", "--property", "far-mean", "--property", "relu6"]
    assert main(["check", "convgrad:batch_norm_act", FORWARD, *common, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["op"] == FORWARD and document["problems"] == 40
    assert set(document["worst_error_in_limits"]) == {"float32"}
    assert main(["check", "convgrad:batch_norm_act_grad", BACKWARD, *common]) == 0
    assert "as a share of what is allowed: float32" in capsys.readouterr().out
    assert main(["check", "convgrad:conv2d", FORWARD, "--in-process", "--problems", "5"]) == 2
    assert "refused every plain problem" in capsys.readouterr().err
    line = ["--problem", "conv2d 1x4x4x1 1x1x1x1"]
    assert main(["check", "convgrad:batch_norm_act", FORWARD, *line]) == 2
    assert "problems of batch_norm_act have no lines" in capsys.readouterr().err
