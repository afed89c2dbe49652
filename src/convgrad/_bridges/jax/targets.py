"""Programs under names that XLA calls them by: slots, registrations, and which name stands for which problem.

A name is made from the problem's line of text, the switches that decide what computes it, and our version. It says
nothing about the process or the CPU: what XLA has compiled may be kept on disk, or exported to another machine, and
finds there what was registered by the same name, the program for that machine.

What was registered stays: XLA has no way to forget a name, and nobody knows how long an executable lives that calls it.
So programs of different problems add up, some 20 KB each, as the executables of XLA around them do.
"""

from __future__ import annotations

import ctypes
import hashlib
import threading
from math import prod
from typing import Any, NamedTuple

import jax
import jax.ffi

from ... import _engine
from ..._base import config
from ..._base.dtypes import DType
from ..._base.errors import CompileError, ConvgradError
from ..._base.version import __version__
from ..._base.warnings import warn
from ..._engine.prepare import load_functions, load_runtime
from ..._problem import text as _problem_text
from ..._problem.convolution import Problem
from ..._problem.norm import normalisation
from ..._problem.norm.normalisation import Normalisation
from ..._runtime import code, entry
from ..._runtime.bound import Bound
from ..._runtime.state import keep_forever
from ..records import NOWHERE, record
from . import abi, handler, switches

PREFIX = "convgrad_"


class Target(NamedTuple):
    """What a call of XLA's says: a registered name, and two attributes for people and for `register_target`."""

    name: str
    problem: str
    switches: str


class Slab:
    """A block of slots and the handlers that look into it."""

    def __init__(self, number: int, version: abi.Version) -> None:
        size = len(handler.BLOCK) + handler.SLOTS * len(handler.SLOT)
        self._block = (ctypes.c_int64 * size)()
        self._texts: list[Any] = []
        self.used = 0
        runtime = code.ensure(load_runtime)
        head = {
            "RUN": runtime.addresses[entry.RUN_PLACES],
            "MAJOR": version.major,
            "MINOR": version.minor,
            "EMPTY": self._text("convgrad: this handler has no program; please report this"),
            "BROKEN": self._text("convgrad: this program is damaged; please report this"),
        }
        for name, word in head.items():
            self._block[handler.BLOCK.index(name)] = word
        source = handler.source(number)
        found = load_functions(source, {handler.BLOCK_SYMBOL: ctypes.addressof(self._block)})
        self._handlers = [found[symbol] for symbol in source.symbols]
        keep_forever(self)  # XLA's threads may call us while the interpreter shuts down

    def take(self, asked: Problem | Normalisation, program: Bound, text: str) -> int:
        """Fill the next slot; returns the address of its handler."""
        if isinstance(asked, Normalisation):
            counts, words = (len(asked.operands), len(asked.results)), self._passes(asked, program)
        else:
            counts, words = (2, 1), _sum(asked, program)
        recorded = (ctypes.c_int64 * len(words))(*words)
        self._texts += [recorded, program]
        slot = {
            "NO_MEMORY": self._text(f"convgrad: not enough memory for workspaces of {text}"),
            "MISFIT": self._text(
                f"convgrad: the arrays do not have the sizes and the dtype of {text}"
            ),
            "OPERANDS": counts[0],
            "RESULTS": counts[1],
            "RECORD": ctypes.addressof(recorded),
        }
        at = len(handler.BLOCK) + self.used * len(handler.SLOT)
        for name, word in slot.items():
            self._block[at + handler.SLOT.index(name)] = word
        self.used += 1
        return self._handlers[self.used - 1]

    def _passes(self, call: Normalisation, program: Bound) -> list[int]:
        """Return the record of passes: arrays, and their numbers as a constant."""
        scalars = (ctypes.c_double * len(call.scalars))(*call.scalars)
        self._texts.append(scalars)
        arrays = (*call.operands, *call.results)
        rows = [_row(call.dtype(place), call.elements(place)) for place in arrays]
        numbers = {place: at for at, place in enumerate((*arrays, "scalars"))}
        places = [numbers.get(place, NOWHERE) for place in call.places]
        assert len(numbers) <= handler.MOST
        return record(rows, [], 0, [ctypes.addressof(scalars)], [(program, places)])

    def _text(self, message: str) -> int:
        made = ctypes.create_string_buffer(message.encode())
        self._texts.append(made)
        return ctypes.addressof(made)


def _sum(problem: Problem, program: Bound) -> list[int]:
    """Return the record of a sum: two operands and a result."""
    sizes = [nbytes // problem.dtype.itemsize for nbytes in problem.operand_bytes]
    rows = [_row(problem.dtype, size) for size in (*sizes, prod(problem.result_shape))]
    return record(rows, [], 0, [], [(program, range(3))])


def _row(dtype: DType, elements: int) -> tuple[int, int, int]:
    return dtype.xla, dtype.itemsize - 1, elements


_lock = threading.RLock()
_slabs: list[Slab] = []
_registered: set[str] = set()
_version: abi.Version | str | None = None
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


def target_for(asked: Problem | Normalisation, program: Bound) -> Target | None:
    """Return what calls a program, registered; None where XLA cannot call us, of which a warning is given once."""
    text = _text_of(asked)
    beside = switches_text()
    target = Target(name_of(text, beside), text, beside)
    return target if register_target(target.name, asked, program, text) else None


def _text_of(asked: Problem | Normalisation) -> str:
    return (
        normalisation.write(asked)
        if isinstance(asked, Normalisation)
        else _problem_text.write(asked)
    )


def register_target(name: str, asked: Problem | Normalisation, program: Bound, text: str) -> bool:
    """Let XLA call a program by a name; returns whether it can."""
    switches.watch()
    if name in _registered:
        return True
    with _lock:
        version = usable()
        if name in _registered or isinstance(version, str):
            return name in _registered
        try:
            if not _slabs or _slabs[-1].used == handler.SLOTS:
                _slabs.append(Slab(len(_slabs), version))
        except CompileError as error:
            _give_up(str(error))
            return False
        function = _HANDLER(_slabs[-1].take(asked, program, text))
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(function), platform="cpu")
        _registered.add(name)
        return True


def usable() -> abi.Version | str:
    """Return the version of XLA's interface, or why our handlers cannot be used; warns the first time."""
    global _version
    with _lock:
        if _version is None:
            _version = abi.installed(_headers())
            if isinstance(_version, str):
                _give_up(_version)
        return _version


def _headers() -> str:
    return jax.ffi.include_dir()


def _give_up(reason: str) -> None:
    global _version
    _version = reason
    warn(
        "convgrad: XLA's interface for foreign functions is not used, so every call goes through Python "
        f"(jax.pure_callback), some 0.2 ms each: {reason}"
    )


def name_of(text: str, beside: str) -> str:
    """Return the name of what computes a problem, from its line of text and that of the switches."""
    whole = "\n".join((text, beside, __version__))
    return PREFIX + hashlib.sha256(whole.encode()).hexdigest()[:24]


def switches_text() -> str:
    """Return the switches that decide what computes a problem, where they do not say their defaults.

    >>> with config.scope(winograd="fast"):
    ...     switches_text()
    'winograd=fast'
    """
    return " ".join(f"{name}={value}" for name, value in config.unusual().items())


def register_text(name: str, text: str, beside: str) -> None:
    """Register what a module of XLA's calls by `name`, from the two texts that stand beside it."""
    values: dict[str, Any] = {each: config.SWITCHES[each].default for each in config.DECIDING}
    for word in beside.split():
        key, _, value = word.partition("=")
        values[key] = config.SWITCHES[key].parse(value)
    asked = normalisation.read(text) if normalisation.is_text(text) else _problem_text.read(text)
    with config.scope(**values):
        program = _engine.program(asked.task if isinstance(asked, Normalisation) else asked)
    if not isinstance(program, Bound) or not register_target(name, asked, program, text):
        raise ConvgradError(
            f"register: {text!r} cannot be computed by a compiled program here, which an exported module needs; "
            "see the warning that was given."
        )
