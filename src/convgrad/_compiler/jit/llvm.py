"""IR text to machine code: the sole importer of llvmlite, and a lazy one.

Importing llvmlite costs 60-200 ms and 40 MB, so it happens when something must be compiled and
not before. What comes out is a relocatable object; `elf` loads it without LLVM, and `load` here
does so where `elf` cannot.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from convgrad._base import config, headroom
from convgrad._base.errors import CompileError
from convgrad._compiler.targets import Target

from . import counts

lock = threading.RLock()
"""Held while LLVM works. llvmlite has a lock of its own; this one is ours to hold across a fork."""

OPT_LEVEL = 2
"""The code generator's level, unless a switch says otherwise. 1, 2 and 3 took the same time (15-37 ms on Zen 3) and
made equally fast code on depthwise kernels of 450-1360 lines; 0 took a fifth of it (11 kernels, 98 ms against 545 on
Zen 4) and its code runs several times slower. No mid-level passes: `codegen` writes what they would leave. Turning
the machine scheduler off would save about 10 %, but only by an option that reaches every user of LLVM in the
process."""

_NEEDED = 48 << 20
"""Bytes of address space that must be free before LLVM is asked for anything. Where it gets no memory it ends the
process, and so does the C++ library. Kernels of 100 kB of text took 3 MB, the first one 5; malloc may ask for more."""


@dataclass(frozen=True)
class Machine:
    """What LLVM is told about a CPU and its system, in LLVM's own words. The defaults are for kernels that run here."""

    triple: str
    cpu: str
    features: str
    reloc: str = "pic"
    codemodel: str = "small"
    abi: str = ""
    jit: bool = True
    opt: int = OPT_LEVEL


_binding: Any = None
_foreign = False
_machines: dict[Machine, Any] = {}
_linker: Any = None
_trackers: list[Any] = []
"""Keep what was loaded mapped."""


def binding() -> Any:
    """Return llvmlite.binding, imported and ready."""
    global _binding
    if _binding is None:
        # On the calling thread: CPython's lock of all imports is lost to others if a signal handler raises inside it.
        with lock, counts.timed("importing_s"):
            _binding = _imported()
    return _binding


def _imported() -> Any:
    try:
        import llvmlite.binding as module
    except (ImportError, OSError) as error:
        raise CompileError(f"llvmlite cannot be imported: {error}") from error
    if module.llvm_version_info[0] < 20:
        # llvmlite 0.44 reads untyped pointers only if the whole process is switched over to them.
        version = ".".join(map(str, module.llvm_version_info))
        raise CompileError(f"llvmlite 0.45 or newer is needed, with LLVM 20; found LLVM {version}")
    module.initialize_native_target()
    module.initialize_native_asmprinter()
    return module


def compile_object(ir: str, target: Target, *, triple: str | None = None) -> bytes:
    """Return the object file of `ir`; `triple` names another operating system or architecture."""
    binding()
    # Here, not where it is compiled: blocks that set switches do not reach other threads.
    return _undisturbed(ir, target, triple, config.get("opt_level"))


def compile_for(ir: str, machine: Machine) -> bytes:
    """Return the object file of `ir` for any machine, on the calling thread: for a process that only compiles."""
    with lock:
        headroom.ask(_NEEDED, "to compile a kernel")
        return _emit_object(ir, machine)


def missing(triple: str) -> bool:
    """Return whether this LLVM was built without the architecture of a triple."""
    with lock:
        try:
            _llvm_target(triple)
        except CompileError:
            return True
    return False


def assembly(ir: str, target: Target, *, triple: str | None = None) -> str:
    """Return the assembly text of `ir`, for people and tests."""
    with lock:
        return _emit_assembly(ir, _here(target, triple))


class _Job:
    """One compile on a thread of its own."""

    def __init__(self, ir: str, target: Target, triple: str | None, level: int) -> None:
        self.code: bytes | None = None
        self.error: BaseException | None = None
        # A plain lock: waiting for it can be interrupted at any point without leaving anything half done.
        self._gate = threading.Lock()
        self._gate.acquire()
        # Not a daemon: the process must not be taken down while LLVM is at work.
        self._thread = threading.Thread(
            target=self._run,
            args=(ir, target, triple, level),
            name="convgrad-compile",
            daemon=False,
        )

    def start(self) -> None:
        """Begin, unless that was done before. RuntimeError if no thread can be started."""
        if self._thread.ident is None:
            self._thread.start()

    def _run(self, ir: str, target: Target, triple: str | None, level: int) -> None:
        try:
            self.code = _locked_object(ir, target, triple, level)
        except BaseException as error:
            self.error = error
        finally:
            self._gate.release()

    def wait(self) -> bytes:
        while self.code is None and self.error is None:
            self._gate.acquire(timeout=0.05)
        if self.error is not None:
            raise self.error
        assert self.code is not None
        return self.code


_jobs: dict[tuple[str, Target, str | None, int], _Job] = {}
"""Compiles whose callers were interrupted; asked again, they are waited for instead of begun again."""


def forget_jobs() -> None:
    """Forget compiles that go on elsewhere."""
    _jobs.clear()


def _undisturbed(ir: str, target: Target, triple: str | None, level: int) -> bytes:
    """Compile where no signal handler runs: on another thread than the main one.

    A handler that raises (Ctrl-C) inside llvmlite's own Python code, between giving an object back to LLVM and noting
    that, ends in a double free. The main thread waits and may be interrupted; the work then finishes without it.
    """
    if threading.current_thread() is not threading.main_thread():
        return _locked_object(ir, target, triple, level)
    key = (ir, target, triple, level)
    job = _jobs.get(key)
    if job is None:
        # Known before it begins: a handler may raise at any point from here on.
        job = _jobs[key] = _Job(ir, target, triple, level)
    try:
        job.start()
    except RuntimeError:  # no threads here, or the interpreter is on its way out
        _jobs.pop(key, None)
        return _locked_object(ir, target, triple, level)
    try:
        code = job.wait()
    finally:
        if job.error is not None or job.code is not None:
            _jobs.pop(key, None)
    return code


def _locked_object(ir: str, target: Target, triple: str | None, level: int) -> bytes:
    with lock:
        headroom.ask(_NEEDED, "to compile a kernel")
        return _emit_object(ir, _here(target, triple, level))


# Functions of their own so that the module is disposed of, which takes llvmlite's lock, before ours
# is given back: a fork in between would leave the child with a lock nobody releases.


def _emit_object(ir: str, machine: Machine) -> bytes:
    binding()
    with counts.timed("llvm_s"):
        module, made = _prepare(ir, machine)
        code = bytes(made.emit_object(module))
    counts.add("compiled")
    return code


def _emit_assembly(ir: str, machine: Machine) -> str:
    module, made = _prepare(ir, machine)
    return str(made.emit_assembly(module))


def _prepare(ir: str, machine: Machine) -> tuple[Any, Any]:
    llvm = binding()
    made = _made(machine)
    try:
        module = llvm.parse_assembly(ir)
        module.verify()
    except RuntimeError as error:
        raise CompileError(f"LLVM refused a kernel: {error}") from error
    module.triple = made.triple
    module.data_layout = str(made.target_data)
    return module, made


def _here(target: Target, triple: str | None, level: int = OPT_LEVEL) -> Machine:
    """Return the machine kernels of a row are compiled for where they run in the process that compiles them."""
    triple = triple or host_triple(target)
    return Machine(triple, target.cpu, target.features, opt=level)


def host_triple(target: Target) -> str:
    """Return this system's triple, or Linux's for an architecture that is not this machine's."""
    native = str(binding().get_process_triple())
    if _architecture(native) == target.architecture:
        return native
    return f"{target.architecture}-unknown-linux-gnu"


def _architecture(triple: str) -> str:
    name = triple.partition("-")[0]
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)


def _made(machine: Machine) -> Any:
    if machine not in _machines:
        _machines[machine] = _llvm_target(machine.triple).create_target_machine(
            cpu=machine.cpu,
            features=machine.features,
            opt=machine.opt,
            reloc=machine.reloc,
            codemodel=machine.codemodel,
            jit=machine.jit,
            abiname=machine.abi,
        )
    return _machines[machine]


def _llvm_target(triple: str) -> Any:
    global _foreign
    llvm = binding()
    if not _foreign and _architecture(triple) != _architecture(llvm.get_process_triple()):
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        _foreign = True
    try:
        return llvm.Target.from_triple(triple)
    except RuntimeError as error:
        raise CompileError(f"this LLVM cannot compile for {triple}: {error}") from error


def load(
    code: bytes,
    symbol: str,
    target: Target,
    imports: Mapping[str, int] = MappingProxyType({}),  # it never changes
) -> int:
    """Load an object through LLVM; returns the address, valid until the process ends."""
    global _linker
    with lock:
        llvm = binding()
        if _linker is None:
            # JITLink is LLVM's newer loader and the only one for Apple's ARM; it is weak on COFF.
            _linker = llvm.create_lljit_compiler(
                _made(_here(target, None)), use_jit_link=sys.platform != "win32"
            )
        library = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
        for name, address in imports.items():
            library.import_symbol(name, address)
        try:
            tracker = library.link(_linker, f"convgrad{len(_trackers)}")
        except RuntimeError as error:
            raise CompileError(f"LLVM could not load {symbol}: {error}") from error
        _trackers.append(tracker)
        return int(tracker[symbol])


def host_features() -> frozenset[str]:
    """Return the features LLVM sees in this machine."""
    with lock:
        found = binding().get_host_cpu_features()
        return frozenset(name for name, present in found.items() if present)
