"""`accelerate(fuse=True)`: modules that are alike are traced once, and those that only look alike are not."""

from __future__ import annotations

import copy
import io
import operator
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from convgrad import torch as ours
from convgrad._bridges.torch import fusing, progress
from convgrad._bridges.torch.traces import Traces
from pytorch.fusing import BLOCKS, assert_same, images, network, pair, step


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The class of every module that `torch.fx` traces."""
    found: list[str] = []
    trace = fx.Tracer.trace

    def noted(self: Any, root: Any, *args: Any) -> Any:
        found.append(type(root).__name__)
        return trace(self, root, *args)

    monkeypatch.setattr(fx.Tracer, "trace", noted)
    return found


class Branch(nn.Module):
    """Reads an attribute by name, as blocks of timm do."""

    def __init__(self, inputs: int, width: int, size: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, width, size, padding=size // 2, bias=False)
        self.bn, self.last = nn.BatchNorm2d(width), None

    def forward(self, x: Any) -> Any:
        x = self.bn(self.conv(x))
        last = getattr(self, "last", None)
        return x if last is None else last(x)


class Branches(nn.Module):
    """A block of MobileOne: many branches whose sum goes into an activation."""

    def __init__(self, inputs: int, width: int, count: int) -> None:
        super().__init__()
        self.branches = nn.ModuleList([Branch(inputs, width, 3) for _ in range(count)])
        self.scale = Branch(inputs, width, 1)
        self.act = nn.ReLU()

    def forward(self, x: Any) -> Any:
        y = self.scale(x)
        for each in self.branches:
            y = y + each(x)
        return self.act(y)


def test_blocks_of_many_widths_are_traced_once(traced: list[str]) -> None:
    widths = (3, 4, 6)
    model = nn.Sequential(*(Branches(*each, 4) for each in pairwise(widths)))
    plain, fused, report = pair(model.double())
    assert len(report.fused) == 10 and not report.unfused
    assert sorted(traced) == ["Branch", "Branches", "Sequential"]
    assert_same(step(fused, images()), step(plain, images()))


def test_the_same_blocks_as_without_a_memory(
    traced: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a forward is traced for evaluation only where it could differ."""

    def fused() -> dict[str, str]:
        return ours.accelerate(nn.Sequential(network(), network()), fuse=True).fused

    said = {f"{number}.{name}": what for number in "01" for name, what in BLOCKS.items()}
    assert fused() == said
    few = list(traced)
    assert few.count("Excited") == 1 and few.count("Residual") == 2
    traced.clear()

    class Forgets(Traces):
        def graphs(self, module: nn.Module) -> list[fx.Graph]:
            return Traces().graphs(module)

    monkeypatch.setattr(fusing, "Traces", Forgets)
    assert fused() == said
    assert traced.count("Excited") == 2 and traced.count("Residual") == 4


class Like(nn.Module):
    """Two of these differ in one thing, which `change` does to the second."""

    def __init__(self, read: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)
        self.one, self.two = nn.Identity(), nn.Identity()
        self.adds, self.factors, self.zero = True, [1.0, {"a": (2.0,)}], 0.0
        self.own = nn.Parameter(torch.ones(1))
        self.other = nn.Parameter(torch.full((1,), 3.0))
        self.list = nn.ModuleList([nn.Identity()])
        self.read, self.which = read, "dilation"

    def forward(self, x: Any) -> Any:
        return self.read(self, F.relu(self.bn(self.conv(x))))


class Seen(Like):
    stride = property(operator.attrgetter("conv.dilation"))


stride_of = operator.attrgetter("conv.dilation")


def _set(path: str, value: Any) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        *way, name = path.split(".")
        for each in way:
            module = getattr(module, each)
        setattr(module, name, value)

    return change


def _tie(module: Any) -> None:
    module.other = module.own


def _share(module: Any) -> None:
    module.two = module.one


@pytest.mark.parametrize(
    "read, change",
    [
        (lambda self, x: x + 1 if self.adds else x, _set("adds", False)),
        (lambda self, x: x * self.factors[0], _set("factors", [1.5, {"a": (2.0,)}])),
        (lambda self, x: x * self.factors[1]["a"][0], _set("factors", [1.0, {"a": (3.0,)}])),
        (lambda self, x: 1 / ((x + 1) * self.zero), _set("zero", -0.0)),
        (lambda self, x: x * self.conv.dilation[0], _set("conv.dilation", (2, 2))),
        (lambda self, x: x * getattr(self.conv, self.which)[0], _set("conv.dilation", (2, 2))),
        (lambda self, x: x * getattr(self.conv, "dilation", None)[0], _set("conv.dilation", (2, 2))),
        (lambda self, x: x * stride_of(self)[0], _set("conv.dilation", (2, 2))),
        (lambda self, x: x * self.stride[0], _set("conv.dilation", (2, 2))),
        (lambda self, x: x * self.own * self.other, _tie),
        (lambda self, x: x + 1 if self.one is self.two else x, _share),
        (lambda self, x: x * len(self.list), lambda self: self.list.append(nn.Identity())),
        (lambda self, x: x if self.two is None else x + 1, _set("two", None)),
        (lambda self, x: x + 1 if self.bn.training else x, _set("bn.training", False)),
        (lambda self, x: self.one(x), _set("one", nn.Sequential(nn.ReLU(), nn.Tanh()))),
        (lambda self, x: x * self._parameters["own"].shape[0], _set("own", nn.Parameter(torch.ones(3, 1, 1)))),
    ],
)  # fmt: skip
def test_what_only_looks_alike(read: Any, change: Any) -> None:
    first = Seen(read)
    second = copy.deepcopy(first)
    change(second)
    x = images()
    for each in ((first, second), (second, first)):
        model, fused, _ = pair(nn.Sequential(*each).double())
        with torch.no_grad():
            for mine, theirs in zip(fused, model, strict=True):
                torch.testing.assert_close(mine(x), theirs(x))


def test_a_line_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def clock() -> float:
        now[0] += 0.15
        return now[0]

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress.time, "monotonic", clock)
    said = {}
    for kind in (io.StringIO, Terminal):
        for wanted in (True, False):
            monkeypatch.setattr(progress.sys, "stderr", kind())
            ours.accelerate(network(), fuse=True, progress=wanted)
            said[kind, wanted] = progress.sys.stderr.getvalue()
    line = said[io.StringIO, True]
    assert line.startswith("convgrad: fusing layers, ") and line.endswith(" modules are done\n")
    assert line.count("\n") == 1
    changing = said[Terminal, True]
    assert changing.count("\rconvgrad: fusing") > 1 and changing.endswith(" \r")
    assert said[io.StringIO, False] == said[Terminal, False] == ""
    monkeypatch.setattr(progress.time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(progress.sys, "stderr", Terminal())
    ours.accelerate(network(), fuse=True)
    assert progress.sys.stderr.getvalue() == ""
