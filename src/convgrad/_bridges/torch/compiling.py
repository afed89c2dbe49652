"""What `torch.compile` must know of our functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch


def allow_in_graph(functions: Iterable[Callable[..., Any]]) -> None:
    """Let functions with TensorFlow's arguments stand in a graph as they are.

    Reading those arguments is more Python than Dynamo follows. It need not: called with tensors that have shapes only,
    as the compiler's next stage does, a function shows the operators it is made of.
    """
    for function in functions:
        torch.compiler.allow_in_graph(function)
