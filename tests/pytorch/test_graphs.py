"""Graphs that leave the process: accelerated models traced, exported, saved and loaded elsewhere."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import convgrad
from convgrad import torch as ours
from convgrad._bridges.torch import graphs
from pytorch.configurations import CONFIGURATIONS
from pytorch.running import assert_right, everything, function, operands

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning",
    "ignore::FutureWarning",
    "ignore:Using padding='same'",
    "ignore:No complete tensor found",
    "ignore:Constant folding",
)
"""What PyTorch says of its own code, and of parameters that are not contiguous, also those in channels_last."""
FORMATS = (torch.contiguous_format, torch.channels_last)


class Model(nn.Module):
    """Layers of every kind that `accelerate` takes, a block to fuse, and settings that differ from layer to layer."""

    def __init__(self) -> None:
        super().__init__()
        self.block = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU()
        )
        self.rest = nn.Sequential(
            nn.Conv2d(8, 8, 3, stride=2, groups=8),
            nn.ConvTranspose2d(8, 4, 2, stride=2),
            nn.Conv2d(4, 4, (2, 3), padding="same"),
            nn.Conv2d(4, 4, 3, padding="same", dilation=2, padding_mode="reflect"),
        )
        self.head = nn.Linear(4, 5)

    def forward(self, image: Any) -> Any:
        return self.head(self.rest(self.block(image)).permute(0, 2, 3, 1))


def made(order: torch.memory_format, **how: bool) -> tuple[Any, Any, Any]:
    """Return an accelerated model, the same of PyTorch and an image."""
    torch.manual_seed(3)
    theirs = Model().double().to(memory_format=order)
    mine, image = copy.deepcopy(theirs), torch.randn(2, 3, 9, 8, dtype=torch.float64)
    report = ours.accelerate(mine, **how)
    assert len(report.taken) == 6 and bool(report.fused) is bool(how.get("fuse"))
    return mine, theirs, image


def with_gradients(call: Any, model: Any, image: Any) -> list[Any]:
    model.zero_grad()
    result = call(image)
    result.square().sum().backward()
    return [result.detach(), *(each.grad.clone() for each in model.parameters())]


def operators(trace: Any) -> set[str]:
    return {node.kind() for node in trace.inlined_graph.nodes() if "convgrad" in node.kind()}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Waking threads takes longer than these layers."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("order", FORMATS, ids=str)
@pytest.mark.parametrize("fuse", [False, True], ids=["plain", "fused"])
@pytest.mark.parametrize("recorded", [True, False], ids=["grad", "no_grad"])
def test_a_trace_says_all_and_has_gradients(order: Any, fuse: bool, recorded: bool) -> None:
    mine, theirs, image = made(order, fuse=fuse)
    with torch.set_grad_enabled(recorded):
        trace = torch.jit.trace(mine.eval(), image)  # it checks itself
    assert operators(trace) == {
        "convgrad::conv2d",
        "convgrad::conv_transpose2d",
        "convgrad::linear",
    }
    others = torch.randn(3, 3, 11, 12, dtype=torch.float64)
    torch.testing.assert_close(
        with_gradients(trace, mine, others), with_gradients(theirs.eval(), theirs, others)
    )


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_trace_in_training() -> None:
    mine, theirs, image = made(torch.channels_last, fuse=True)
    trace = torch.jit.trace(copy.deepcopy(mine), image, check_trace=False)
    # Tracing has run it once, and PyTorch's own checks would some times more.
    theirs(image)
    torch.testing.assert_close(trace(image), theirs(image))
    torch.testing.assert_close(
        trace.state_dict()["block.1.running_var"], theirs.state_dict()["block.1.running_var"]
    )


def test_the_whole_list_is_traced() -> None:
    for each in CONFIGURATIONS[::2]:
        tensors = operands(each, torch.float64)
        with torch.no_grad():
            trace = torch.jit.trace(function(each), tuple(tensors))
        others = operands(each, torch.float64, seed=1)
        assert_right(each, everything(trace, others), others)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_functions_with_tensorflows_arguments_are_traced() -> None:
    image = torch.randn(1, 5, 6, 4, dtype=torch.float64)
    weight = torch.randn(3, 2, 4, 2, dtype=torch.float64, requires_grad=True)

    def call(x: Any, f: Any) -> Any:
        return convgrad.nn.depthwise_conv2d(x, f, [1, 2, 2, 1], "SAME") + 1

    trace = torch.jit.trace(call, (image, weight))
    assert "convgrad::forward" in str(trace.graph)
    torch.testing.assert_close(
        everything(trace, (image.requires_grad_(), weight)), everything(call, (image, weight))
    )


@pytest.mark.parametrize("fuse", [False, True], ids=["native", "fused"])
def test_a_backward_pass_alone_is_refused(fuse: bool) -> None:
    """PyTorch cannot trace one whose forward pass it has not seen. A block must not write down its row's number."""
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.SiLU())
    if fuse:
        assert ours.accelerate(model, fuse=True).fused
    model.requires_grad_(False)
    weight: Any = model[1].weight.requires_grad_()
    result = model(torch.randn(2, 3, 6, 6))

    def gradient(arriving: Any) -> Any:
        return torch.autograd.grad(result, weight, arriving, retain_graph=True)

    with pytest.raises(RuntimeError, match="Cannot insert a Tensor that requires grad"):
        torch.jit.trace(gradient, torch.ones_like(result), check_trace=False)


def test_numbers_of_rows_are_no_part_of_files() -> None:
    """Files of earlier versions have `convgrad::layer` with a number that means nothing elsewhere."""
    assert not hasattr(torch.ops.convgrad, "layer")
    assert set(graphs.SCHEMAS) == {"conv2d", "conv2d.padding", "conv_transpose2d", "linear"}


@pytest.mark.parametrize("strict", [False, True], ids=["loose", "strict"])
def test_an_exported_program_says_all(strict: bool) -> None:
    mine, theirs, image = made(torch.channels_last, fuse=True)
    batch = {"image": {0: torch.export.Dim("batch", min=2, max=9)}}
    program = torch.export.export(mine.eval(), (image,), dynamic_shapes=batch, strict=strict)
    found = {str(node.target) for node in program.graph.nodes if "conv" in str(node.target)}
    assert found == {f"convgrad.{name}" for name in NAMES}
    others = torch.randn(5, 3, 9, 8, dtype=torch.float64)
    torch.testing.assert_close(program.module()(others), theirs.eval()(others))
    lower = program.run_decompositions()
    torch.testing.assert_close(lower.module()(others), theirs(others))


NAMES = ("conv2d.default", "conv2d.padding", "conv_transpose2d.default", "linear.default")


def test_onnx_gets_pytorchs_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no others. The exporter itself needs packages that are not here; this is what it asks a model for."""
    mine, theirs, image = made(torch.contiguous_format, fuse=True)
    monkeypatch.setattr(torch.onnx, "is_in_onnx_export", lambda: True)
    trace = torch.jit.trace(mine.eval(), image)
    assert operators(trace) == set() and "aten::_convolution_mode" in str(trace.inlined_graph)
    program = torch.export.export(mine, (image,))
    assert not [node for node in program.graph.nodes if "convgrad" in str(node.target)]
    torch.testing.assert_close(program.module()(image), theirs.eval()(image))


ELSEWHERE = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
traces, programs, numbers = sys.argv[1:4]
said = []
try:
    torch.jit.load(traces)
except RuntimeError as error:
    said.append(str(error))
try:
    torch.export.load(programs)
except RuntimeError as error:
    said.append("program")
assert len(said) == 2 and "convgrad::conv" in said[0], said

import convgrad.torch
# Other layers first, so that this process numbers settings in another order.
with torch.no_grad():
    for stride in (3, 2, 1):
        convgrad.torch.conv2d(torch.ones(1, 1, 9, 9), torch.ones(1, 1, 1, 1), stride=stride, padding=stride)
image, *wanted = torch.load(numbers)
loaded = torch.jit.load(traces)
result = loaded(image)
result.square().sum().backward()
torch.testing.assert_close([result.detach(), *(each.grad for each in loaded.parameters())], wanted)
with torch.no_grad():
    torch.testing.assert_close(loaded(image), wanted[0])
torch.testing.assert_close(torch.export.load(programs).module()(image), wanted[0])
print("equal")
"""


def test_what_is_saved_computes_the_same_elsewhere(tmp_path: Path) -> None:
    """Where convgrad is imported; where it is not, loading says what is missing."""
    mine, theirs, image = made(torch.channels_last, fuse=True)
    mine.eval()
    files = [str(tmp_path / name) for name in ("trace.pt", "program.pt2", "numbers.pt")]
    with torch.no_grad():
        torch.jit.save(torch.jit.trace(mine, image), files[0])
        torch.export.save(torch.export.export(mine, (image,)), files[1])
    torch.save([image, *with_gradients(theirs.eval(), theirs, image)], files[2])
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, *files],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.stdout.split() == ["equal"], done.stderr
