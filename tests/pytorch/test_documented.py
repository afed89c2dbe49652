"""The examples in PyTorch's own documentation of its convolutions, run with our functions and our layers."""

from __future__ import annotations

import re
import textwrap
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from convgrad import torch as ours

DOCUMENTED = {
    "F.conv2d": F.conv2d.__doc__,
    "F.conv_transpose2d": F.conv_transpose2d.__doc__,
    "nn.Conv2d": nn.Conv2d.__doc__,
    "nn.ConvTranspose2d": nn.ConvTranspose2d.__doc__,
}


def statements(text: str) -> list[str]:
    """Return the lines behind `>>>`, with those that continue them."""
    found = re.findall(r"^ *>>> (.*(?:\n *\.\.\. .*)*)", textwrap.dedent(text), re.MULTILINE)
    return [re.sub(r"\n *\.\.\. ", "\n", each) for each in found]


def run(text: str, function: Any, layers: Any) -> tuple[dict[str, Any], Any]:
    """Run an example with these functions in the place of `F` and `nn`; the value of its last line too."""
    torch.manual_seed(0)
    names: dict[str, Any] = {"torch": torch, "nn": layers, "F": function}
    last = None
    for each in statements(text):
        try:
            last = eval(each, names)
        except SyntaxError:
            exec(each, names)
    return names, last


@pytest.mark.parametrize("name", DOCUMENTED)
def test_examples(name: str) -> None:
    text = DOCUMENTED[name]
    assert text is not None and len(statements(text)) >= 3

    def accelerated(kind: Any) -> Any:
        def make(*arguments: Any, **more: Any) -> Any:
            layer = kind(*arguments, **more)
            if kind in (nn.Conv2d, nn.ConvTranspose2d):
                assert ours.accelerate(layer).taken == ("",)
            return layer

        return make

    wrapped = SimpleNamespace(
        **{kind: accelerated(getattr(nn, kind)) for kind in ("Conv2d", "ConvTranspose2d")}
    )
    functions = SimpleNamespace(conv2d=ours.conv2d, conv_transpose2d=ours.conv_transpose2d)
    mine, my_last = run(text, functions, wrapped)
    theirs, their_last = run(text, F, nn)
    compared = 0
    for each, value in theirs.items():
        if isinstance(value, torch.Tensor):
            torch.testing.assert_close(mine[each], value, rtol=1e-4, atol=1e-4)
            compared += 1
    if isinstance(their_last, torch.Tensor):
        torch.testing.assert_close(my_last, their_last, rtol=1e-4, atol=1e-4)
        compared += 1
    assert compared >= 2
    sizes = {each: value for each, value in theirs.items() if isinstance(value, torch.Size)}
    assert {each: mine[each] for each in sizes} == sizes
