"""Kernels as object files for other systems, compiled in a process of its own.

LLVM ends its process where it cannot go on: on a feature it does not know how to select, or without memory. That must
not end the process that exports a pack. A child compiles many kernels of an export, because starting one takes 0.2 s.
It is told in LLVM's words what to compile for and answers with bytes; a time limit ends it where it hangs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from queue import SimpleQueue
from typing import Any

import numpy as np

from ..._base import children, messages
from ..._base.errors import CompileError, ConvgradError, said
from .. import targets
from ..kernel import KernelSource
from ..targets import Target
from . import llvm

SECONDS = 120.0
"""A kernel takes 10 to 300 ms. The first also waits for the child to start and to import LLVM, from a cold disk."""
_WORTH_A_PROCESS = 4
"""Kernels; for fewer, starting another child takes as long as it saves."""
_MOST_PROCESSES = 8
"""Each has LLVM in its memory."""

Progress = Callable[[int, int, str], None]
"""Called with the kernels that are done, all there are, and the symbol of the one just done."""


def machine(target: Target, triple: str) -> llvm.Machine:
    """Return what LLVM is told for objects of a row; ValueError where the row has no such triple."""
    system = target.system_of(triple)
    return llvm.Machine(
        triple, target.cpu, target.features, system.reloc, system.codemodel, system.abi, jit=False
    )


def compile_all(
    sources: Sequence[KernelSource],
    target: Target,
    triple: str,
    *,
    progress: Progress | None = None,
    seconds: float = SECONDS,
    processes: int = 1,
) -> list[bytes]:
    """Return the object files of kernels, in their order; each may take `seconds`, and several are made at once.

    CompileError names the kernel, the row and what happened: LLVM refused it or died, by which signal, or took too
    long. If this LLVM cannot compile for the row at all, it lists the rows it can compile for.
    """
    wanted = machine(target, triple)
    if not sources:
        return []
    count = max(1, min(processes, len(sources) // _WORTH_A_PROCESS, _MOST_PROCESSES))
    idle: SimpleQueue[_Compiler] = SimpleQueue()

    def compiled(source: KernelSource) -> bytes:
        place = f"the kernel {source.symbol} for {target.name} ({triple})"
        compiler = idle.get()
        try:
            return compiler.compile(source, place, seconds)
        finally:
            idle.put(compiler)

    with ExitStack() as stack:
        compilers = [stack.enter_context(_Compiler(wanted)) for _ in range(count)]
        for compiler in compilers:
            idle.put(compiler)
        pool = ThreadPoolExecutor(count)
        try:
            futures = [pool.submit(compiled, source) for source in sources]
            # In order: of several errors it is always the first that is told.
            for number, (future, source) in enumerate(zip(futures, sources, strict=True), 1):
                future.result()
                if progress is not None:
                    progress(number, len(sources), source.symbol)
        except BaseException:
            for compiler in compilers:
                compiler.kill()  # its thread waits for an answer
            raise
        finally:
            pool.shutdown(cancel_futures=True)
        return [future.result() for future in futures]


class _Compiler:
    """The parent's end of the child."""

    def __init__(self, wanted: llvm.Machine) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the child)
        try:
            self._process = subprocess.Popen(
                children.command(__name__, "serve"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                start_new_session=True,  # Ctrl-C in the terminal is for us; we end the child
            )
        except OSError as error:
            self._errors.close()
            raise CompileError(
                f"no process could be started to compile kernels: {said(error)}"
            ) from error
        self._wanted: llvm.Machine | None = wanted

    def __enter__(self) -> _Compiler:
        return self

    def __exit__(self, *unused: object) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # a dead child's pipe may still hold bytes of ours
                stream.close()  # type: ignore[union-attr]
        self._process.kill()
        self._process.wait()
        self._errors.close()

    def kill(self) -> None:
        """End the child; a thread that waits for its answer gets an error."""
        self._process.kill()

    def compile(self, source: KernelSource, place: str, seconds: float) -> bytes:
        """Compile one kernel; `place` names it in errors."""
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._process.kill()

        timer = threading.Timer(seconds, give_up)
        timer.daemon = True
        timer.start()
        try:
            answer = self._ask(source.ir)
        except (EOFError, OSError) as error:
            if isinstance(error, messages.Garbled):
                self._process.kill()
            ending = messages.ending(self._process.wait())
            if late.is_set():
                ending = f"was ended because it took longer than {seconds:g} s"
            elif isinstance(error, messages.Garbled):
                ending = f"answered with something that is not an object file ({error})"
            last = self._last_words()
            raise CompileError(
                f"LLVM's process {ending} at {place}" + (f": {last}" if last else "")
            ) from error
        finally:
            timer.cancel()
        if isinstance(answer, np.ndarray):
            return answer.tobytes()
        raise CompileError(f"{place} was not compiled: {answer}")

    def _ask(self, ir: str) -> Any:
        if self._wanted is not None:
            messages.write(self._process.stdin, self._wanted)
            self._wanted = None
        messages.write(self._process.stdin, ir)
        return messages.read(self._process.stdout)

    def _last_words(self) -> str:
        """Return the last line the child printed that looks like a reason."""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 4000))
        lines = self._errors.read().decode(errors="replace").splitlines()
        telling = [line.strip() for line in lines if "error" in line.lower() or "ssert" in line]
        return telling[-1][:200] if telling else ""


def serve() -> None:
    """Be the child: compile what comes until the parent closes the pipe."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever LLVM prints does not disturb the messages
    calls = sys.stdin.buffer
    try:
        wanted = messages.read(calls, llvm.Machine)
        while True:
            ir = messages.read(calls)
            messages.write(answers, _answer(ir, wanted))
    except (EOFError, BrokenPipeError):
        return


def _answer(ir: str, wanted: llvm.Machine) -> Any:
    """Return an object's bytes, or in words why there is none."""
    try:
        if llvm.missing(wanted.triple):
            return _only_these(wanted)
        return np.frombuffer(llvm.compile_for(ir, wanted), np.uint8)
    except ConvgradError as error:
        return str(error)
    except Exception as error:  # of llvmlite
        return said(error)


def _only_these(wanted: llvm.Machine) -> str:
    rows = [row.name for row in targets.ALL if not llvm.missing(row.triple)]
    return f"this LLVM cannot compile for {wanted.triple}; it can for {', '.join(rows)}"
