"""Kernels in TensorFlow: compiled code, the block and table it uses, and Python's half of a call that is new.

What is compiled is in `server`. Here is the object that holds it, one per process and for its whole life, and two
functions that compiled code or TensorFlow calls: one creates the kernel of a node, the other computes a call without a
record (`first_time`). Nothing may be raised through either, so errors become a status of TensorFlow's.
"""

from __future__ import annotations

import contextlib
import contextvars
import ctypes
import functools
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..._base import config
from ..._base.errors import CompileError, ConvgradError, said
from ..._engine.prepare import load_functions
from ..._engine.prepare import load_runtime as _load_runtime
from ..._problem.convolution import Call
from ..._problem.norm.call import FORWARD
from ..._runtime import code, entry, threads
from ..._runtime.records import Table
from ..._runtime.state import STATE_BLOCK, address_of, keep_forever
from . import capi, first_fused, first_pass, first_time, foreign, kernel, server
from .capi import INTERNAL, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, Library
from .nodes import Attributes, Node, Nodes, PassNode

_CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_MISS = ctypes.CFUNCTYPE(
    *(None, ctypes.POINTER(ctypes.c_int64), ctypes.c_int64, ctypes.c_void_p),
    ctypes.POINTER(ctypes.c_void_p),
)


@dataclass(frozen=True)
class KernelsSource:
    """The kernels' text; its repr tells versions of it apart."""

    name: str
    symbols: tuple[str, ...]
    text: str

    def __repr__(self) -> str:
        return f"KernelsSource({self.name!r}, {hashlib.sha256(self.text.encode()).hexdigest()})"


class Kernels:
    """Compiled kernels, with all that they need."""

    def __init__(self, library: Library) -> None:
        self.library = library
        self.nodes = Nodes()
        self._block = (ctypes.c_int64 * len(foreign.BLOCK))()
        self.table = Table(lambda: self._block[foreign.BLOCK.index("AT_WORK")])
        self._miss = _MISS(self._answer)
        self._no_memory = ctypes.create_string_buffer(b"convgrad: no memory for the workspaces.")
        self._creates: dict[tuple[Call, str], Any] = {}
        self._create_passes = _CREATE(self._created_passes)
        words = {each.name: library.address(each.name) for each in foreign.FOREIGN}
        words["BUCKETS"] = ctypes.addressof(self.table.buckets)
        words["MISS"] = address_of(self._miss)
        words["NO_MEMORY"] = ctypes.addressof(self._no_memory)
        words["RUN"] = code.ensure(_load_runtime).addresses[entry.RUN_PLACES]
        for name, word in words.items():
            self._block[foreign.BLOCK.index(name)] = word
        source = KernelsSource("cg_tensorflow", kernel.SYMBOLS, server.text())
        imports = {foreign.BLOCK_SYMBOL: ctypes.addressof(self._block)}
        self.functions = load_functions(source, imports)
        self._seen: tuple[object, int] = (None, -1)
        self._process = 0
        self._context = contextvars.copy_context()
        self.heed()
        config.watch(self.heed)
        keep_forever(self)  # TensorFlow never forgets a kernel

    def heed(self) -> None:
        """Compute calls as the switches decide here and now, and on as many threads, until this is called again."""
        if config.same(*self._seen) and self._process == os.getpid():
            return
        self._seen, self._process = config.seen(), os.getpid()
        # TensorFlow's threads have contexts of their own, in which nobody has set anything.
        self._context = contextvars.copy_context()
        self._block[foreign.BLOCK.index("SWITCHES")] = hash(config.deciding())
        STATE_BLOCK["THREADS"], STATE_BLOCK["POOL"] = threads.ready()

    def register(
        self,
        op: str,
        call: Call,
        *,
        form: str = "",
        types: dict[str, int] | None = None,
        label: str = "",
        priority: int = 0,
    ) -> None:
        """Make ours the CPU's kernel of an op, for some dtypes or for all it has."""
        form = form or kernel.PLAIN[call.kind]
        create = self._create(call, form)
        self._register(op, create, kernel.COMPUTES[form], types or {}, label, priority)

    def register_passes(self, op: str) -> None:
        """Make ours the CPU's kernel of an op of batch norm."""
        self._register(op, self._create_passes, kernel.PASSES, {}, "", 0)

    def _register(
        self, op: str, create: Any, compute: str, types: dict[str, int], label: str, priority: int
    ) -> None:
        library = self.library
        builder = library.NewKernelBuilder(
            *(op.encode(), b"CPU", address_of(create)),
            *(self.functions[compute], self.functions[kernel.DELETE]),
        )
        with library.status() as status:
            for attribute, dtype in types.items():
                library.KernelBuilder_TypeConstraint(builder, attribute.encode(), dtype, status)
                library.check(status, f"a kernel for {op}")
            if label:
                library.KernelBuilder_Label(builder, label.encode())
            if priority:
                library.KernelBuilder_Priority(builder, priority)
            library.RegisterKernelBuilder(f"Convgrad{op}".encode(), builder, status)
            library.check(status, f"a kernel for {op}")

    def _create(self, call: Call, form: str) -> Any:
        """Return the function that TensorFlow creates an op's kernels with."""
        if (call, form) not in self._creates:

            def create(construction: int) -> int:
                try:
                    attributes = Attributes(self.library, construction)
                    return self.nodes.number(attributes.node(call, form))
                except BaseException as error:
                    report = self.library.OpKernelConstruction_Failure
                    self._fail(report, construction, call.function, error)
                    return 0

            self._creates[call, form] = _CREATE(create)
        return self._creates[call, form]

    def _created_passes(self, construction: int) -> int:
        try:
            return self.nodes.number(Attributes(self.library, construction).pass_node())
        except BaseException as error:
            report = self.library.OpKernelConstruction_Failure
            self._fail(report, construction, FORWARD, error)
            return 0

    def _answer(self, key: Any, hash_: int, context: int, tensors: Any) -> None:
        """Compute a call that has no record."""
        function = "convgrad"
        try:
            words = key[: kernel.KEY_WORDS]
            node = self.nodes.row(words[kernel.KEY["NODE"]])
            function = node.call.function if isinstance(node, Node) else FORWARD
            self._context.copy().run(self._compute, words, hash_, node, context, tensors)
        except BaseException as error:
            self._fail(self.library.OpKernelContext_Failure, context, function, error)

    def _compute(
        self, words: Sequence[int], hash_: int, node: Node | PassNode, context: int, tensors: Any
    ) -> None:
        module: Any = first_pass
        if isinstance(node, Node):
            module = first_time if node.fused is None else first_fused
        recipe = module.compute(self.library, node, context, tensors)
        # Another thread may have changed the switches since the key was written.
        if recipe is not None and hash(config.deciding()) == words[kernel.KEY["SWITCHES"]]:
            programs = recipe.programs
            nbytes = sum(program.nbytes for program in programs)
            self.table.link(words, hash_, recipe.words(), programs, nbytes)

    def _fail(
        self,
        report: Callable[[int, int], None],
        context: int,
        function: str,
        error: BaseException,
    ) -> None:
        """Tell TensorFlow what went wrong."""
        # An op without a result and without an error is reported by TensorFlow itself.
        with contextlib.suppress(BaseException):
            meaning = INVALID_ARGUMENT if isinstance(error, ValueError | TypeError) else INTERNAL
            text = str(error) if isinstance(error, ConvgradError) else said(error)
            if isinstance(error, MemoryError):
                meaning = RESOURCE_EXHAUSTED
                text = f"{function}: {text}."
            with self.library.status() as status:
                self.library.SetStatus(status, meaning, text.replace("\0", "?").encode())
                report(context, status)


_lock = threading.Lock()


@functools.cache
def _made() -> Kernels | None:
    library = capi.library()
    if library is None or library.missing:
        return None
    try:
        return Kernels(library)
    except CompileError:
        return None


_ready: Kernels | None = None


def kernels() -> Kernels | None:
    """Return the process's kernels, or None where TensorFlow or the system does not have what they need."""
    global _ready
    with _lock:
        _ready = _made()
        return _ready


def ready() -> Kernels | None:
    """Return the process's kernels if they were made already: 0.05 us."""
    return _ready
