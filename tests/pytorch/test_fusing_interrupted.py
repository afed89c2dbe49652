"""Somebody ends `accelerate(fuse=True)` from outside: the process stays as it was, and the exception arrives."""

from __future__ import annotations

import ctypes
import math
import signal
import sys
import threading
from math import sqrt
from types import FrameType
from typing import Any

import pytest
from torch import fx, nn

from convgrad import torch as ours
from convgrad._bridges.torch import tracing
from pytorch.fusing import images

PUTTING_BACK = (
    *("revert_all_patches", "revert", "_new_patcher", "__exit__", "undo", "put_back"),
    *("watched", "unseen", "fuse", "patch_method", "patch"),
)
"""Functions in which an interrupt is worst."""
FILES = (
    *("_symbolic_trace.py", "contextlib.py"),
    *("interruptions.py", "tracing.py", "watching.py", "fusing.py"),
)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.act = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3), nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.act(self.bn(self.conv(x))) * sqrt(4) if self.training else x


class Interrupt:
    """Raises at one of the lines that are run, counted; without a number it notes their functions."""

    def __init__(self, at: int | None) -> None:
        self.at, self.seen = at, list[str]()

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(FILES):
            return None
        if event == "line":
            if len(self.seen) == self.at:
                raise KeyboardInterrupt
            self.seen.append(frame.f_code.co_name)
        return self


def accelerate(model: nn.Module, interrupt: Any) -> bool:
    """Accelerate with a function that sees all lines; tells whether it was interrupted."""
    before = sys.gettrace()
    sys.settrace(interrupt)
    try:
        ours.accelerate(model, fuse=True)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def state() -> list[Any]:
    """All that `torch.fx` changes."""
    there = vars(nn.Module)
    flags: Any = sys.modules["torch.fx._symbolic_trace"]
    return [
        *(there["__call__"], there["__getattr__"], math.sqrt, math.floor, sqrt),
        *(flags._is_fx_tracing_flag, sys.getprofile()),
        None if flags.CURRENT_PATCHER is None else flags.CURRENT_PATCHER.patches_made or None,
        *([value for _, value in sorted(vars(math).items())]),
    ]


def test_an_interrupt_at_any_line() -> None:
    ours.accelerate(Small(), fuse=True)  # what is done the first time only is done
    noted = Interrupt(None)
    assert not accelerate(Small(), noted)
    total = len(noted.seen)
    worst: list[int] = []
    for name in PUTTING_BACK:
        found = [at for at, each in enumerate(noted.seen) if each == name]
        assert found, name
        worst += found[:6] + found[-6:] + found[:: max(1, len(found) // 8)]
    points = sorted({*worst, *range(0, total, max(1, total // 80))})
    before = state()
    ended = 0
    model = Small()
    for at in points:
        attributes = {each: dict(vars(each)) for each in model.modules()}
        ended += accelerate(model, Interrupt(at))
        assert all(a is b for a, b in zip(state(), before, strict=True)), noted.seen[at]
        assert model.training and model.bn.training
        ours.restore(model)
        for each, there in attributes.items():
            assert vars(each).keys() - {"_channels_last"} == there.keys() - {"_channels_last"}
    assert ended > 0.9 * len(points) > 100
    model(images(model.conv.weight.dtype))
    assert ours.accelerate(model, fuse=True).fused == {"conv": "convolution + batch norm + relu"}


class TimeLimit(Exception):
    pass


@pytest.mark.parametrize("error", [TimeLimit("late"), RuntimeError("late"), TimeoutError("late")])
def test_a_time_limit_arrives(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal's handler raises while a forward is traced."""
    create = fx.Tracer.create_arg

    def late(self: Any, a: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return create(self, a)

    def handler(*_: Any) -> None:
        raise error

    before, there = state(), signal.signal(signal.SIGUSR1, handler)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(tracing._Tracer, "create_arg", late)
            with pytest.raises(type(error), match="late"):
                ours.accelerate(Small(), fuse=True)
    finally:
        signal.signal(signal.SIGUSR1, there)
    assert all(a is b for a, b in zip(state(), before, strict=True))


def test_an_exception_from_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    create = fx.Tracer.create_arg
    number = ctypes.c_ulong(threading.get_ident())

    def late(self: Any, a: Any) -> Any:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(TimeLimit))
        return create(self, a)

    monkeypatch.setattr(tracing._Tracer, "create_arg", late)
    with pytest.raises(TimeLimit):
        ours.accelerate(Small(), fuse=True)


def test_what_a_forward_raises_is_a_reason() -> None:
    class Refuses(Small):
        def forward(self, x: Any) -> Any:
            raise TimeLimit("it says no")

    class Fails(Small):
        def forward(self, x: Any) -> Any:
            return [][x.ndim + 1]

    for kind, words in ((Refuses, "it says no"), (Fails, "cannot trace")):
        assert words in ours.accelerate(kind(), fuse=True).unfused["bn"]
