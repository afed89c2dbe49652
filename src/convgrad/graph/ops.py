"""Ops as classes with TensorFlow's C++ names and argument order, made from the table of ops.

``Conv2D(scope, input, filter, strides, padding, attrs)`` adds a node to the scope's graph; its outputs are attributes
of the object, and one output alone stands for it wherever a tensor is wanted. Arrays, lists and numbers become
constants. Attributes: ``Conv2D.Attrs().DataFormat("NCHW").Dilations([1, 1, 2, 2])``, ``Conv2D.DataFormat("NCHW")`` or
``data_format="NCHW"``.
"""

from __future__ import annotations

from .._apps.graph.classes import CLASSES, InputList

globals().update(CLASSES)

__all__ = ["InputList", *CLASSES]
