"""Malformed and unusual calls give what PyTorch gives: equal results, or errors of equal types and words."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import vmap

from convgrad import torch as ours
from pytorch.malformed import calls, outcome, right, same


def compared(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    wrong = {}
    for name, wanted in theirs.items():
        try:
            if not same(mine[name], wanted):
                wrong[name] = (mine[name], wanted)
        except AssertionError as error:
            wrong[name] = (error, wanted)
    assert not wrong, wrong


def test_functions() -> None:
    table = calls()
    theirs = {name: outcome(call, F) for name, call in table.items()}
    assert len(theirs) > 450
    assert sum(kind != "result" for kind, _ in theirs.values()) > 350
    compared({name: outcome(call, ours) for name, call in table.items()}, theirs)


def test_patched() -> None:
    """Errors pass a C interface that has one type for all, and integers of 32 bits have kernels of ours."""
    table = {name: call for name, call in calls().items() if "int32" not in name}
    theirs = {name: outcome(call, F) for name, call in table.items()}
    with ours.patch():
        mine = {name: outcome(call, F) for name, call in table.items()}
    for name, (kind, said) in theirs.items():
        if kind != "result" and mine[name] == ("RuntimeError", f"{kind}: {said}"):
            mine[name] = (kind, said)
    compared(mine, theirs)


def test_a_bias_that_does_not_fit_under_torch_func() -> None:
    """There a bias is added to sums, and adding would cast and repeat it."""
    image, weight, bias = right()

    def of(call: Any, bias: Any, padding: Any) -> Any:
        return vmap(lambda image: call(image, weight, bias, padding=padding))(image.unsqueeze(1))

    for each in (bias.double(), bias.to(torch.complex64), bias[:1], bias.reshape(6, 1)):
        for padding in (1, "same"):
            for call in (F.conv2d, ours.conv2d):
                with pytest.raises(RuntimeError):
                    of(call, each, padding)


INPUTS = {
    "an empty batch": torch.ones(0, 3, 4, 5),
    "no rows": torch.ones(2, 0, 4, 5),
    "no columns": torch.ones(2, 3, 0, 5),
    "no features": torch.ones(2, 3, 4, 0),
    "too many features": torch.ones(2, 3, 4, 6),
    "float64": torch.ones(2, 3, 4, 5, dtype=torch.float64),
    "integers": torch.ones(2, 3, 4, 5, dtype=torch.int32),
    "complex": torch.ones(2, 3, 4, 5, dtype=torch.complex64),
    "meta": torch.ones(2, 3, 4, 5, device="meta"),
    "mkldnn": torch.ones(2, 3, 4, 5).to_mkldnn(),
    "sparse": torch.ones(2, 3, 4, 5).to_sparse(),
    "no tensor": [1.0],
}


def test_linear_layers() -> None:
    """They are convolutions inside, of which nobody is told."""
    theirs = nn.Linear(5, 6)
    mine = copy.deepcopy(theirs)
    ours.accelerate(mine)
    of: Any = SimpleNamespace
    found, wanted = (
        {
            name: outcome(lambda of, given=given: of.layer(given), of(layer=layer))
            for name, given in INPUTS.items()
        }
        for layer in (mine, theirs)
    )
    compared(found, wanted)
    assert wanted["an empty batch"][0] == "result" and wanted["no features"][0] == "RuntimeError"
    empty = torch.ones(2, 0, 4, 5, requires_grad=True)
    mine(empty).sum().backward()
    assert empty.grad is not None and mine.weight.grad.count_nonzero() == 0


@pytest.mark.parametrize("fuse", [False, True], ids=["plain", "fused"])
def test_layers_of_a_model(fuse: bool) -> None:
    """An error of a layer is PyTorch's; a note says which layer it was."""
    theirs = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()).eval()
    mine = copy.deepcopy(theirs)
    assert bool(ours.accelerate(mine, fuse=fuse).fused) is fuse
    images = {
        "too few channels": torch.ones(2, 2, 5, 5),
        "too small": torch.ones(2, 3, 2, 2),
        "five dimensions": torch.ones(1, 2, 3, 5, 5),
        "float64": torch.ones(2, 3, 5, 5, dtype=torch.float64),
        "complex": torch.ones(2, 3, 5, 5, dtype=torch.complex64),
        "mkldnn": torch.ones(2, 3, 5, 5).to_mkldnn(),
        "empty": torch.ones(0, 3, 5, 5),
    }
    found, wanted = (
        {
            name: outcome(lambda of, image=image: of.model(image), SimpleNamespace(model=model))
            for name, image in images.items()
        }
        for model in (mine, theirs)
    )
    compared(found, wanted)
    with pytest.raises(RuntimeError, match="expected input") as caught:
        mine(images["too few channels"])
    notes: list[str] = getattr(caught.value, "__notes__", [])
    assert not hasattr(caught.value, "add_note") or ["'0'" in note for note in notes] == [True]


def test_complex_layers_have_gradients() -> None:
    image, weight, bias = (each.to(torch.complex64).requires_grad_() for each in right())
    found, wanted = (
        torch.autograd.grad(call(image, weight, bias).abs().sum(), (image, weight, bias))
        for call in (ours.conv2d, F.conv2d)
    )
    torch.testing.assert_close(found, wanted)
