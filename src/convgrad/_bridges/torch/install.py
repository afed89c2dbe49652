"""Handlers in PyTorch's dispatcher: found functions, compiled code, registrations that can be taken back.

`aten::convolution_overrideable` and its backward are PyTorch's own operators for convolutions that somebody else
computes: they have derivatives in C++ and no kernel for the CPU. We are that kernel, from the first use of
`convgrad.torch` to the end of the process. `patch` also gives `aten::convolution` and `aten::convolution_backward` our
handlers, for as long as it is asked to.

Where PyTorch lacks the functions of its C interface that handlers need (before 2.13), or nothing can be compiled, the
same kernels are registered as Python functions.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..._base import config
from ..._base.errors import CompileError, InternalError
from ..._engine.prepare import load_functions
from ..._engine.prepare import load_runtime as _load_runtime
from ..._runtime import code, entry, threads
from ..._runtime.records import Table
from ..._runtime.state import STATE_BLOCK, address_of, keep_forever
from . import fused_handler, handler, kernels, records, server
from .fused_recipes import Row

_FUNCTIONS = {
    "IS_DEFINED": "aoti_torch_is_defined",
    "GET_DIM": "aoti_torch_get_dim",
    "GET_SIZES": "aoti_torch_get_sizes",
    "GET_STRIDES": "aoti_torch_get_strides",
    "GET_DTYPE": "aoti_torch_get_dtype",
    "READ_AT": "torch_get_const_data_ptr",
    "WRITE_AT": "torch_get_mutable_data_ptr",
    "EMPTY": "aoti_torch_empty_strided",
    "UNDEFINED": "aoti_torch_new_uninitialized_tensor",
    "DELETE_TENSOR": "aoti_torch_delete_tensor_object",
    "LIST_SIZE": "torch_list_size",
    "LIST_ITEM": "torch_list_get_item",
    "DELETE_LIST": "torch_delete_list",
    "DELETE_VALUE": "torch_delete_stable_ivalue",
    "DISPATCH": "torch_call_dispatcher",
    "CHECK": "aoti_torch_check",
}
_MOST_LAYERS = 4096
"""Different settings that have a row; layers with others go the longer way."""
_WHAT = ctypes.CFUNCTYPE(ctypes.c_void_p)
_VERSION = (2 << 56) | (13 << 48)
"""Of the C interface we speak: how values lie on the stack."""
_SCHEMA = (
    "SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed, "
    "SymInt[] output_padding, SymInt groups"
)
DECLINED = {
    "DECLINED_FORWARD": (
        "declined_convolution",
        f"(Tensor input, Tensor weight, Tensor? bias, {_SCHEMA}) -> Tensor",
        kernels.declined_forward,
    ),
    "DECLINED_BACKWARD": (
        "declined_convolution_backward_overrideable",
        f"(Tensor grad_output, Tensor input, Tensor weight, {_SCHEMA}, bool[3] output_mask)"
        " -> (Tensor, Tensor, Tensor)",
        kernels.declined_backward,
    ),
    "DECLINED_ATEN_BACKWARD": (
        "declined_convolution_backward",
        "(Tensor grad_output, Tensor input, Tensor weight, SymInt[]? bias_sizes, "
        f"{_SCHEMA}, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        kernels.declined_aten_backward,
    ),
    "DECLINED_LAYER": (
        "declined_layer",
        "(Tensor input, Tensor weight, Tensor? bias, int settings) -> Tensor",
        kernels.declined_layer,
    ),
}
"""What computes the calls that handlers decline: an operator's name and schema, and its kernel."""
NUMBERED = "numbered_layer"
"""The operator of layers whose settings are a row of this process's table, so never part of a graph (`graphs`). It was
called `layer` when graphs had it: files with such numbers must not load."""
OVERRIDEABLE = ("convolution_overrideable", "convolution_backward_overrideable")
ATEN = ("convolution", "convolution_backward")


@dataclass(frozen=True)
class HandlerSource:
    """The handlers' text; its repr tells versions of it apart."""

    name: str
    symbols: tuple[str, ...]
    text: str

    def __repr__(self) -> str:
        return f"HandlerSource({self.name!r}, {hashlib.sha256(self.text.encode()).hexdigest()})"


class Handlers:
    """Compiled handlers and the block and table they use; one per process, for its whole life."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library
        self._block = (ctypes.c_int64 * len(server.BLOCK))()
        self.table, self.fused_table = (
            Table(lambda: self._block[server.BLOCK.index("AT_WORK")]) for _ in range(2)
        )
        self._miss = records.miss(self.table, handler.SERVED, records.read)
        self._fused_miss = records.miss(self.fused_table, fused_handler.SERVED, records.read_fused)
        self._what = _WHAT(kernels.last_error)
        self._texts = [
            ctypes.create_string_buffer(text.encode())
            for text in ("", *(f"convgrad::{name}" for name, _, _ in DECLINED.values()))
        ]
        runtime = code.ensure(_load_runtime)
        words = {name: _address(library, symbol) for name, symbol in _FUNCTIONS.items()}
        words["BUCKETS"] = ctypes.addressof(self.table.buckets)
        words["MISS"] = address_of(self._miss)
        words["FUSED_BUCKETS"] = ctypes.addressof(self.fused_table.buckets)
        words["FUSED_MISS"] = address_of(self._fused_miss)
        words["WHAT"] = address_of(self._what)
        words["RUN"] = runtime.addresses[entry.RUN_PLACES]
        words["VERSION"] = _VERSION
        for name, text in zip(("NOTHING", *DECLINED), self._texts, strict=True):
            words[name] = ctypes.addressof(text)
        for name, word in words.items():
            self._block[server.BLOCK.index(name)] = word
        imports = {server.BLOCK_SYMBOL: ctypes.addressof(self._block)}
        self._functions: dict[str, int] = {}
        for source in (
            HandlerSource("cg_torch", handler.SYMBOLS, handler.text()),
            HandlerSource("cg_torch_fused", fused_handler.SYMBOLS, fused_handler.text()),
        ):
            self._functions |= load_functions(source, imports)
        self._layers = (ctypes.c_int64 * (_MOST_LAYERS * handler.LAYER_WORDS))()
        self._block[server.BLOCK.index("LAYERS")] = ctypes.addressof(self._layers)
        self._seen: tuple[object, int] = (None, -1)
        self._process = 0
        keep_forever(self)  # the dispatcher may call us while the interpreter shuts down

    def heed(self) -> None:
        """Compute calls as the switches decide here and now, and on as many threads, until this is called again."""
        if config.same(*self._seen) and self._process == os.getpid():
            return
        with _heeding:
            self._block[server.BLOCK.index("SETTINGS")] = hash(config.deciding())
            STATE_BLOCK["THREADS"], STATE_BLOCK["POOL"] = threads.ready()
            # Last: a handler that finds it trusts the words above.
            self._seen, self._process = config.seen(), os.getpid()

    def add_layer(self, number: int, settings: Sequence[int]) -> None:
        """Write the settings of a layer to a row; it is known to handlers from then on."""
        at = number * handler.LAYER_WORDS
        self._layers[at : at + handler.LAYER_WORDS] = list(settings)
        self._block[server.BLOCK.index("LAYER_COUNT")] = number + 1

    def register(self, operator: str, symbol: str, namespace: str = "aten") -> int:
        """Make a handler the CPU's kernel of an operator; returns what `forget` takes back."""
        made = ctypes.c_void_p()
        status = self.library.aoti_torch_library_init_impl(
            namespace.encode(), b"CPU", b"convgrad", ctypes.c_uint32(0), ctypes.byref(made)
        )
        function = ctypes.c_void_p(self._functions[symbol])
        status = status or self.library.torch_library_impl(
            made, operator.encode(), function, ctypes.c_uint64(_VERSION)
        )
        if status or not made.value:
            raise InternalError(f"PyTorch did not take our kernel for {namespace}::{operator}")
        return made.value

    def forget(self, registration: int) -> None:
        self.library.aoti_torch_delete_library_object(ctypes.c_void_p(registration))


_lock = threading.RLock()
_heeding = threading.RLock()
_handlers: Handlers | None = None
_installed = False
_kept: list[Any] = []
_fused_rows: dict[tuple[Any, Any], int] = {}


def install() -> None:
    """Register the kernels of the overrideable operators, once."""
    global _handlers, _installed
    with _lock:
        if _installed:
            return
        ours = torch.library.Library("convgrad", "FRAGMENT")
        _kept.append(ours)
        for name, schema, kernel in DECLINED.values():
            ours.define(f"{name}{schema}")
            ours.impl(name, kernel, "CPU")
        _handlers = _compiled()
        if _handlers is not None:
            _handlers.heed()
            config.watch(_handlers.heed)
            for operator, symbol in zip(OVERRIDEABLE, handler.SYMBOLS, strict=False):
                _kept.append(_handlers.register(operator, symbol))
            ours.define(f"{NUMBERED}{DECLINED['DECLINED_LAYER'][1]}")
            _kept.append(_handlers.register(NUMBERED, handler.SYMBOLS[handler.LAYER], "convgrad"))
            for schema, symbol in zip(fused_handler.SCHEMAS, fused_handler.SYMBOLS, strict=True):
                ours.define(schema)
                _kept.append(_handlers.register(schema.partition("(")[0], symbol, "convgrad"))
        python = torch.library.Library("aten", "IMPL")
        _kept.append(python)
        for operator, kernel, shapes in zip(
            OVERRIDEABLE,
            (kernels.declined_forward, kernels.declined_backward),
            (_fake_forward, _fake_backward),
            strict=True,
        ):
            if _handlers is None:
                python.impl(operator, kernel, "CPU")
            python.impl(operator, shapes, "Meta")
        _installed = True


def _fake_forward(image: Any, weight: Any, bias: Any, *settings: Any) -> Any:
    """Return the shape and memory format of a result, for `torch.compile` and its like: PyTorch's own rule."""
    made = torch.ops.aten.convolution.default(image, weight, bias, *settings)
    last = torch._prims_common.suggest_memory_format
    if torch.channels_last in (last(image), last(weight)):
        return torch.empty_like(made, memory_format=torch.channels_last)
    return torch.empty_like(made, memory_format=torch.contiguous_format)


def _fake_backward(grad: Any, image: Any, weight: Any, *settings: Any) -> Any:
    mask, groups = settings[6], settings[5]
    channels = weight.shape[1] * groups if settings[3] else weight.shape[0]
    return (
        torch.empty_like(image) if mask[0] else None,
        torch.empty_like(weight) if mask[1] else None,
        grad.new_empty([channels]) if mask[2] else None,
    )


def layer_number(how: tuple[Any, ...]) -> int | None:
    """Return the row of settings, given as `aten::convolution` takes them, or None where there is none."""
    found = kernels.LAYERS.get(how)
    if found is None and _handlers is not None and len(kernels.LAYERS) < _MOST_LAYERS:
        stride, padding, dilation, transposed, output_padding, groups = how
        words = (*stride, *padding, *dilation, int(transposed), *output_padding, groups)
        if len(words) != handler.LAYER_WORDS or not all(-(2**31) < word < 2**31 for word in words):
            return None
        with _lock:
            found = kernels.LAYERS.get(how)
            if found is None:
                found = len(kernels.LAYERS)
                _handlers.add_layer(found, words)
                kernels.LAYERS[how] = found
    return found


def fused_row(convolution: tuple[Any, ...], how: Any) -> int | None:
    """Return the number of what a block does, or None where compiled functions do not compute it."""
    found = _fused_rows.get((convolution, how))
    if found is None and _handlers is not None and len(records.ROWS) < _MOST_LAYERS:
        settings = kernels.settings_of(*convolution)
        if settings is None:
            return None
        row = Row(settings, how)
        if not row.how.computable:
            return None
        with _lock:
            found = _fused_rows.get((convolution, how))
            if found is None:
                found = len(records.ROWS)
                records.ROWS.append(row)
                _fused_rows[convolution, how] = found
    return found


def handlers() -> Handlers | None:
    """Return the compiled handlers if they are used."""
    return _handlers


class Patch:
    """Our kernels in the place of PyTorch's own, until `undo`."""

    def __init__(self) -> None:
        install()
        self._registrations: list[int] = []
        self._python: Any = None
        if _handlers is not None:
            for operator, symbol in zip(
                ATEN, (handler.SYMBOLS[0], handler.SYMBOLS[2]), strict=True
            ):
                self._registrations.append(_handlers.register(operator, symbol))
            return
        self._python = torch.library.Library("aten", "IMPL")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that a kernel is overridden is what was asked for
            self._python.impl("convolution", kernels.declined_forward, "CPU")
            self._python.impl("convolution_backward", kernels.declined_aten_backward, "CPU")

    def undo(self) -> None:
        """Give the operators back."""
        for registration in self._registrations:
            assert _handlers is not None
            _handlers.forget(registration)
        self._registrations = []
        if self._python is not None:
            self._python._destroy()
            self._python = None


def _compiled() -> Handlers | None:
    """Return the handlers, or None where PyTorch or the system does not have what they need."""
    library = _library()
    needed = (
        *_FUNCTIONS.values(),
        *("aoti_torch_library_init_impl", "torch_library_impl", "aoti_torch_delete_library_object"),
    )
    if library is None or not all(hasattr(library, name) for name in needed):
        return None
    try:
        return Handlers(library)
    except CompileError:
        return None


def _library() -> ctypes.CDLL | None:
    """Return PyTorch's own library, which is loaded already."""
    folder = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll"):
        if (folder / name).exists():
            return ctypes.CDLL(str(folder / name))
    return None


def _address(library: ctypes.CDLL, symbol: str) -> int:
    return address_of(getattr(library, symbol))


def heed() -> None:
    """Let handlers compute as the switches decide here and now, and on as many threads."""
    if _handlers is not None:
        _handlers.heed()
