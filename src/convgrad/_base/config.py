"""Every switch and environment variable of the package, typed, in one table.

A switch is a row of `SWITCHES`. Its value is, in this order: what an enclosing `scope()` set,
what `set_default()` set for the process, what the environment said when first asked, the row's
default. A value in the environment that cannot be read is reported once as a warning and
otherwise ignored: a typo must not stop a program. So is a variable that looks like ours and is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from .blocks import WithBlock
from .errors import shown
from .warnings import warn


@dataclass(frozen=True)
class Switch:
    """One row: where a setting comes from and what it means."""

    name: str
    variable: str
    """The environment variable."""
    parse: Callable[[str], Any]
    """Turns the variable's text into a value; raises ValueError with the rule it breaks."""
    default: Any
    meaning: str
    """One sentence for the documentation, which is generated from this table."""


def _one_of(*values: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) not in values:
            raise ValueError(f"it must be one of {', '.join(map(str, values))}")
        return int(text)

    return parse


def _word(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError(f"it must be one of {', '.join(words)}")
        return text

    return parse


def _flag(text: str) -> bool:
    """Read a yes or a no.

    >>> _flag("0"), _flag("on")
    (False, True)
    """
    word = text.lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError("it must be 0 or 1")


def _bytes(text: str) -> int:
    """Read a number of bytes, with an optional K, M or G.

    >>> _bytes("64M")
    67108864
    """
    number, scale = text.upper(), 1
    if number[-1] in "KMG":
        scale = 1 << 10 * ("KMG".index(number[-1]) + 1)
        number = number[:-1]
    if not number.isdecimal():
        raise ValueError("it must be a number of bytes, or one with K, M or G behind it")
    return int(number) * scale


LARGEST_CACHE = 1 << 40
"""Bytes of a cache: a bound against typing mistakes."""


class Caches(NamedTuple):
    """Bytes of the first three levels of data cache; all None stand for the usual sizes of a CPU row.

    The text of one is what `read_caches` reads, without blanks: the bridge to JAX sends it elsewhere as a word.

    >>> print(Caches(48 << 10, 2 << 20, 100_000_000), Caches(None, None, None))
    48K,2M,100000000 row
    """

    l1: int | None
    l2: int | None
    l3: int | None

    def __str__(self) -> str:
        return ",".join([_size_text(size) for size in self if size is not None]) or "row"


def _size_text(size: int) -> str:
    for letter, scale in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if size % scale == 0:
            return f"{size // scale}{letter}"
    return str(size)


def read_caches(text: str) -> Caches:
    """Read the sizes of three caches, or the word that stands for the usual ones of the CPU row.

    >>> read_caches("32k,1m,32m").l2, read_caches("row").l2
    (1048576, None)
    """
    words = text.replace(" ", "").split(",")
    if words[0].lower() == "row" and len(words) == 1:
        return Caches(None, None, None)
    rule = (
        "it must be the sizes of three levels of cache, such as 32K,1M,32M, each from 1K to 1024G and none smaller "
        "than the one before, or the word row"
    )
    if len(words) != 3 or not all(words):
        raise ValueError(rule)
    try:
        l1, l2, l3 = map(_bytes, words)
    except ValueError:
        raise ValueError(rule) from None
    if not 1 << 10 <= l1 <= l2 <= l3 <= LARGEST_CACHE:
        raise ValueError(rule)
    return Caches(l1, l2, l3)


WINOGRAD = ("off", "auto", "fast")
"""Values of the switch, each allowing more than the one before."""

POOLS = ("own", "openmp", "auto")
"""Values of the switch that says whose threads are used."""

MAX_THREADS = 256
"""Threads of one call; the word that hands out work has 8 bits for them."""


def _thread_count(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_THREADS:
        raise ValueError(f"it must be a whole number from 1 to {MAX_THREADS}")
    return int(text)


_ROWS: tuple[Switch, ...] = (
    Switch(
        name="kernels",
        variable="CONVGRAD_KERNELS",
        parse=_flag,
        default=True,
        meaning="Whether compiled kernels are used; 0 computes everything with the slow reference.",
    ),
    Switch(
        name="target",
        variable="CONVGRAD_TARGET",
        parse=str,
        default=None,
        meaning="CPU row to compile for, such as sse2; it must be one this machine can run.",
    ),
    Switch(
        name="vector_bits",
        variable="CONVGRAD_VECTOR_BITS",
        parse=_one_of(128, 256, 512),
        default=None,
        meaning="Vector width kernels are written for, whatever the CPU has.",
    ),
    Switch(
        name="cpu_caches",
        variable="CONVGRAD_CPU_CACHES",
        parse=read_caches,
        default=None,
        meaning="Sizes of the three levels of cache that plans are made for, such as 32K,1M,32M, or row for the usual "
        "ones of the CPU row; unset: what the system says.",
    ),
    Switch(
        name="opt_level",
        variable="CONVGRAD_OPT_LEVEL",
        parse=_one_of(0, 2),
        default=2,
        meaning="Level of LLVM's code generator; 0 compiles in a fifth of the time, and the code runs several times "
        "slower and gives the same bits: for tests.",
    ),
    Switch(
        name="disk_cache",
        variable="CONVGRAD_DISK_CACHE",
        parse=_flag,
        default=True,
        meaning="Whether compiled kernels are kept on disk between processes.",
    ),
    Switch(
        name="cache_dir",
        variable="CONVGRAD_CACHE_DIR",
        parse=str,
        default=None,
        meaning="Folder for compiled kernels; else the platform's cache folder.",
    ),
    Switch(
        name="cache_bytes",
        variable="CONVGRAD_CACHE_BYTES",
        parse=_bytes,
        default=256 << 20,
        meaning="Size of that folder above which the kernels used longest ago are dropped.",
    ),
    Switch(
        name="num_threads",
        variable="CONVGRAD_NUM_THREADS",
        parse=_thread_count,
        default=None,
        meaning="Threads of one call; unset: the processors this process may use.",
    ),
    Switch(
        name="pool_bytes",
        variable="CONVGRAD_POOL_BYTES",
        parse=_bytes,
        default=256 << 20,
        meaning="Most bytes of released results kept for new ones; 0 leaves all results to NumPy.",
    ),
    Switch(
        name="winograd",
        variable="CONVGRAD_WINOGRAD",
        parse=_word(*WINOGRAD),
        default="auto",
        meaning="Winograd's algorithms for 3x3 windows: off, auto (only within the promised errors) or fast (all).",
    ),
    Switch(
        name="pool",
        variable="CONVGRAD_POOL",
        parse=_word(*POOLS),
        default="auto",
        meaning="Whose threads share the work: own, openmp (of an OpenMP runtime that is loaded), or auto "
        "(openmp in a process that has imported PyTorch).",
    ),
    Switch(
        name="record",
        variable="CONVGRAD_RECORD",
        parse=str,
        default=None,
        meaning="File to which each problem is added, as one line of text, when a process first computes it.",
    ),
    Switch(
        name="kernel_log",
        variable="CONVGRAD_KERNEL_LOG",
        parse=str,
        default=None,
        meaning="File to which each process adds a line at its end: kernels compiled and found, and how long it took.",
    ),
    Switch(
        name="free_threading",
        variable="CONVGRAD_FREE_THREADING",
        parse=_flag,
        default=False,
        meaning="Whether to run where Python has no global lock, which was never tested; 0 refuses the import there.",
    ),
)

SWITCHES: dict[str, Switch] = {row.name: row for row in _ROWS}

_Blocks: TypeAlias = "tuple[tuple[Scope, ...], Mapping[str, Any]]"
"""The blocks a context is in, the innermost last, and what they say together: one value, as signals may strike."""
_NOTHING: _Blocks = ((), {})
_scoped: ContextVar[_Blocks] = ContextVar("convgrad_config")
_process: dict[str, Any] = {}
_environment: dict[str, Any] = {}
DECIDING = ("kernels", "target", "vector_bits", "cpu_caches", "winograd")
"""The switches that decide what computes a problem."""
_decided: tuple[Any, ...] | None = None
"""Their values outside of all blocks, once they were asked for."""
_changes = 0
"""How often a default was set."""
_strangers_named = False
"""Whether the environment was searched for unknown names that look like ours."""


def get(name: str) -> Any:
    """Return the value of a switch as seen by the calling context."""
    scoped = _scoped.get(_NOTHING)[1]
    if name in scoped:
        return scoped[name]
    if name in _process:
        return _process[name]
    if name not in _environment:
        _name_strangers()
        row = SWITCHES[name]
        text = os.environ.get(row.variable, "").strip()
        value = row.default
        try:
            value = row.parse(text) if text else row.default
        except ValueError as error:
            warn(f"convgrad: {row.variable}={os.environ[row.variable]!r} is ignored: {error}")
        _environment[name] = value
    return _environment[name]


def deciding() -> tuple[Any, ...]:
    """Return what the switches that decide what runs say here: part of the key of all that is remembered.

    0.1 us where no block sets one of them; asking for each takes 1 us.
    """
    global _decided
    decided = _decided
    if decided is None or not _scoped.get(_NOTHING)[1].keys().isdisjoint(DECIDING):
        changes = _changes
        decided = tuple([get(name) for name in DECIDING])
        if not _scoped.get(_NOTHING)[1]:
            _decided = decided
            if changes != _changes:  # by another thread, in between
                _decided = None
    return decided


def unusual() -> dict[str, Any]:
    """Return the switches that decide what runs and are not at their defaults here, for code that runs elsewhere."""
    pairs = zip(DECIDING, deciding(), strict=True)
    return {name: value for name, value in pairs if value != SWITCHES[name].default}


def same(blocks: object, changes: int) -> bool:
    """Tell whether no switch can have changed since `seen` returned these, in the calling context: 0.1 us."""
    return _scoped.get(_NOTHING) is blocks and _changes == changes


def seen() -> tuple[object, int]:
    """Return what `same` compares."""
    return _scoped.get(_NOTHING), _changes


def in_block() -> bool:
    """Tell whether the calling context is inside a block that sets switches."""
    return bool(_scoped.get(_NOTHING)[0])


def set_default(name: str, value: Any) -> None:
    """Set a switch for the whole process."""
    global _decided, _changes
    _process[SWITCHES[name].name] = value
    _changes += 1
    _decided = None
    _tell()


_watchers: list[Callable[[], None]] = []


def watch(changed: Callable[[], None]) -> None:
    """Call a function after every change of a switch, for code that cannot ask: it may be called from C."""
    _watchers.append(changed)


def _tell() -> None:
    for each in _watchers:
        each()


class Scope(WithBlock):
    """Switches set for the calling context until the block ends.

    Leaving takes out what this block has set and nothing else: generators may leave their blocks in any order, and one
    object may be entered again, also by several threads at once. A block that is left in another context than it was
    entered in, as by a generator another thread closes, changes nothing there.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        unknown = values.keys() - SWITCHES.keys()
        assert not unknown, f"no such switch: {sorted(unknown)}"
        self._values = dict(values)
        self.title = "threads" if "num_threads" in values else "options"

    def __enter__(self) -> None:
        _set_blocks((*_scoped.get(_NOTHING)[0], self))

    def __exit__(self, *_: object) -> None:
        blocks = _scoped.get(_NOTHING)[0]
        for at in range(len(blocks) - 1, -1, -1):
            if blocks[at] is self:
                _set_blocks(blocks[:at] + blocks[at + 1 :])
                return


def _set_blocks(blocks: tuple[Scope, ...]) -> None:
    together = {name: value for block in blocks for name, value in block._values.items()}
    _scoped.set((blocks, together))
    _tell()


def scope(**values: Any) -> Scope:
    """Set switches for the calling context until the block ends."""
    return Scope(values)


_PREFIX = "CONVGRAD_"
_READ_ELSEWHERE = (
    "CONVGRAD_STUDIO",
    "CONVGRAD_STUDIO_TOKEN",
    "CONVGRAD_REQUIRE_BROWSER",
    "CONVGRAD_CHROMIUM",
)
"""Known, though not switches of a call: how wheels are built, how the studio is tested, and its token, which `info`
must not print."""
_MOST_NAMED = 8
"""Unknown variables that are named; the others are counted."""


def _name_strangers() -> None:
    """Warn once of variables that nothing reads: a misspelt name would silently have no effect."""
    global _strangers_named
    if _strangers_named:
        return
    _strangers_named = True  # first, because the code that shows the warning may call us
    known = [row.variable for row in SWITCHES.values()]
    # In any case: on some systems it does not matter, and users come from there.
    ours = [name for name in os.environ if name.upper().startswith(_PREFIX)]
    strangers = sorted(set(ours).difference(known, _READ_ELSEWHERE))
    if not strangers:
        return
    from difflib import get_close_matches  # few programs need it

    for name in strangers[:_MOST_NAMED]:
        (nearest,) = get_close_matches(name.upper()[:100], known, n=1, cutoff=0)
        warn(
            f"convgrad: the environment variable {shown(name)} is unknown and ignored; "
            f"the nearest known one is {nearest}"
        )
    if more := strangers[_MOST_NAMED:]:
        warn(f"convgrad: {len(more)} more variables named {_PREFIX}... are unknown and ignored")
