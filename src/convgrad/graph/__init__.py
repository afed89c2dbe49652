"""Graphs and sessions in the shape of TensorFlow's C++ client API.

>>> import numpy as np
>>> from convgrad.graph import ClientSession, Scope, ops
>>> scope = Scope.new_root_scope()
>>> x = ops.Placeholder(scope, "float32", [1, 4, 4, 1])
>>> df = ops.DepthwiseConv2dNativeBackpropFilter(scope, x, [3, 3, 1, 1], np.ones((1, 2, 2, 1), np.float32),
...                                              [1, 2, 2, 1], "SAME")
>>> ClientSession(scope).run([df], {x: np.ones((1, 4, 4, 1), np.float32)})[0][..., 0, 0]
array([[4., 4., 2.],
       [4., 4., 2.],
       [2., 2., 1.]], dtype=float32)
"""

from __future__ import annotations

from .._apps.graph.explain import Explanation
from .._apps.graph.gradients import add_symbolic_gradients
from .._apps.graph.operation import Graph, Operation, Output
from .._apps.graph.scope import Scope, Status
from .._apps.graph.session import Cancelled, ClientSession
from .._apps.graph.spec import Spec
from .._apps.pages.build import build
from .._apps.pages.built import Built
from .._apps.pages.door import cpp_source, load, page_of, python_source, save, svg
from .._apps.pages.page import Block, Note, Page, Value, Wire
from .._apps.pages.run import PageRun
from . import ops

__all__ = [
    "Block",
    "Built",
    "Cancelled",
    "ClientSession",
    "Explanation",
    "Graph",
    "Note",
    "Operation",
    "Output",
    "Page",
    "PageRun",
    "Scope",
    "Spec",
    "Status",
    "Value",
    "Wire",
    "add_symbolic_gradients",
    "build",
    "cpp_source",
    "load",
    "ops",
    "page_of",
    "python_source",
    "save",
    "svg",
]
