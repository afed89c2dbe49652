"""The functions of TensorFlow's C interface that ops and kernels are made with, found by name in its own library.

They are those TensorFlow exports for kernels in libraries of their own (tensorflow/c/kernels.h, ops.h, tf_tensor.h).
A version that lacks one of them cannot take our ops: `missing` names it.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tensorflow as tf

from ..._base.errors import InternalError

_P, _TEXT, _INT, _I64 = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_int64
_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "TF_NewStatus": (_P, ()),
    "TF_DeleteStatus": (None, (_P,)),
    "TF_SetStatus": (None, (_P, _INT, _TEXT)),
    "TF_GetCode": (_INT, (_P,)),
    "TF_Message": (_TEXT, (_P,)),
    "TF_NewOpDefinitionBuilder": (_P, (_TEXT,)),
    "TF_OpDefinitionBuilderAddAttr": (None, (_P, _TEXT)),
    "TF_OpDefinitionBuilderAddInput": (None, (_P, _TEXT)),
    "TF_OpDefinitionBuilderAddOutput": (None, (_P, _TEXT)),
    "TF_OpDefinitionBuilderSetShapeInferenceFunction": (None, (_P, _P)),
    "TF_RegisterOpDefinition": (None, (_P, _P)),
    "TF_NewShapeHandle": (_P, ()),
    "TF_DeleteShapeHandle": (None, (_P,)),
    "TF_ShapeInferenceContextGetInput": (None, (_P, _INT, _P, _P)),
    "TF_ShapeInferenceContextWithRank": (None, (_P, _P, _I64, _P, _P)),
    "TF_ShapeInferenceContextSubshape": (None, (_P, _P, _I64, _I64, _P, _P)),
    "TF_ShapeInferenceContextVectorFromSize": (_P, (_P, _I64)),
    "TF_ShapeInferenceContextConcatenateShapes": (None, (_P, _P, _P, _P, _P)),
    "TF_ShapeInferenceContextSetOutput": (None, (_P, _INT, _P, _P)),
    "TF_ShapeInferenceContextSetUnknownShape": (None, (_P, _P)),
    "TF_NewKernelBuilder": (_P, (_TEXT, _TEXT, _P, _P, _P)),
    "TF_KernelBuilder_TypeConstraint": (None, (_P, _TEXT, _INT, _P)),
    "TF_KernelBuilder_Label": (None, (_P, _TEXT)),
    "TF_KernelBuilder_Priority": (None, (_P, ctypes.c_int32)),
    "TF_RegisterKernelBuilder": (None, (_TEXT, _P, _P)),
    "TF_OpKernelConstruction_GetAttrType": (None, (_P, _TEXT, _P, _P)),
    "TF_OpKernelConstruction_GetAttrTypeList": (None, (_P, _TEXT, _P, _INT, _P)),
    "TF_OpKernelConstruction_GetAttrSize": (None, (_P, _TEXT, _P, _P, _P)),
    "TF_OpKernelConstruction_GetAttrInt64List": (None, (_P, _TEXT, _P, _INT, _P)),
    "TF_OpKernelConstruction_GetAttrString": (None, (_P, _TEXT, _P, ctypes.c_size_t, _P)),
    "TF_OpKernelConstruction_GetAttrStringList": (
        None,
        (_P, _TEXT, _P, _P, _INT, _P, ctypes.c_size_t, _P),
    ),
    "TF_OpKernelConstruction_GetAttrFloat": (None, (_P, _TEXT, _P, _P)),
    "TF_OpKernelConstruction_GetAttrInt64": (None, (_P, _TEXT, _P, _P)),
    "TF_OpKernelConstruction_HasAttr": (ctypes.c_bool, (_P, _TEXT, _P)),
    "TF_OpKernelConstruction_Failure": (None, (_P, _P)),
    "TF_OpKernelContext_Failure": (None, (_P, _P)),
    "TF_NumInputs": (_INT, (_P,)),
    "TF_GetInput": (None, (_P, _INT, _P, _P)),
    "TF_AllocateOutput": (_P, (_P, _INT, _INT, _P, _INT, ctypes.c_size_t, _P)),
    "TF_AllocateTemp": (_P, (_P, _INT, _P, _INT, _P, _P)),
    "TF_TensorType": (_INT, (_P,)),
    "TF_NumDims": (_INT, (_P,)),
    "TF_Dim": (_I64, (_P, _INT)),
    "TF_TensorElementCount": (_I64, (_P,)),
    "TF_TensorData": (_P, (_P,)),
    "TF_DeleteTensor": (None, (_P,)),
}
"""By name: what a function returns, and what it takes."""

INVALID_ARGUMENT, RESOURCE_EXHAUSTED, INTERNAL = 3, 8, 13
"""Codes of a status."""
INT32, INT64 = 3, 9
"""Numbers of the dtypes that sizes may have."""


class Library:
    """TensorFlow's library, which is loaded already, and its functions by name."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.functions: dict[str, Any] = {}
        self.missing: tuple[str, ...] = tuple(
            name for name in _FUNCTIONS if not hasattr(library, name)
        )
        for name, (result, arguments) in _FUNCTIONS.items():
            if name not in self.missing:
                function = getattr(library, name)
                function.restype, function.argtypes = result, list(arguments)
                self.functions[name] = function

    def __getattr__(self, name: str) -> Any:
        try:
            return self.functions[f"TF_{name}"]
        except KeyError:
            raise AttributeError(name) from None

    def address(self, name: str) -> int:
        """Return where a function is, for compiled code."""
        address = ctypes.cast(self.functions[name], ctypes.c_void_p).value
        assert address
        return address

    @contextmanager
    def status(self) -> Iterator[int]:
        """Make a status for a block."""
        status = self.NewStatus()
        try:
            yield status
        finally:
            self.DeleteStatus(status)

    def check(self, status: int, what: str) -> None:
        """Raise an error if a status is not fine."""
        if self.GetCode(status):
            said = self.Message(status).decode(errors="replace")
            raise InternalError(f"TensorFlow {tf.__version__} did not take {what}: {said}")


@functools.cache
def library() -> Library | None:
    """Return TensorFlow's library, or None where it is not where we look."""
    folder = Path(tf.__file__).parent
    for name in ("libtensorflow_framework.so.2", "libtensorflow_framework.2.dylib"):
        if (folder / name).exists():
            return Library(ctypes.CDLL(str(folder / name)))
    return None


def lacking() -> str:
    """Return what this TensorFlow lacks for our ops, as part of a sentence, or an empty text."""
    found = library()
    if found is None:
        return f"TensorFlow {tf.__version__} has no libtensorflow_framework here"
    if found.missing:
        return f"TensorFlow {tf.__version__} lacks {', '.join(found.missing)} of its C interface"
    return ""
