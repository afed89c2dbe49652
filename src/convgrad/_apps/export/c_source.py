"""NAME.c and NAME.h: a pack as C, which is C++ too: no initialiser names its field.

Everything that one problem needs is apart from all others, and one table at the end knows them all. So a linker that
drops what nobody refers to (`--gc-sections`) keeps the kernels of the problems that a program names.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..._base.version import __version__
from ..._runtime.program import Launch
from .pack import DTYPES, Entry, Pack, PackedProgram, descriptor
from .recipe import ROLES, Place

FIXED = "convgrad_pack.h"
"""The header that is the same for all packs."""
VERSION = 2
"""`CG_VERSION` of that header."""

_ARCHITECTURES = {
    "x86_64": "defined(__x86_64__) || defined(_M_X64)",
    "aarch64": "defined(__aarch64__) || defined(_M_ARM64)",
    "wasm32": "defined(__wasm32__)",
    "thumbv7em": "defined(__arm__)",
    "riscv64": "defined(__riscv) && __riscv_xlen == 64",
}
"""What compilers for an architecture define."""
_NOWHERE = "CG_NOWHERE"
_LEAST_LONG = -(2**63)
_WIDTH = 112


def header(pack: Pack) -> str:
    """Return NAME.h: a function for each problem, its scratch as a macro, and the table to look problems up in."""
    # As the name is written, and more: `Net` and `net` are two packs, and a program may have a net.h of its own.
    guard = f"CONVGRAD_PACK_{pack.name}_H"
    parts = [
        f"/* {pack.name}.h: {len(pack.entries)} problems for {pack.label}.",
        f"   Written by convgrad {__version__}; do not edit.",
        "",
        *(f"   {line}" for line in facts(pack)),
        "",
        "   Each function takes its places and scratch, which begins on a boundary of CG_SCRATCH_ALIGN",
        f"   bytes; {pack.name}_SCRATCH bytes are enough for any of them on one thread. It returns CG_OK or a",
        f"   code that cg_error_text puts in words. {FIXED} has the rules, the look-up by descriptor, and",
        "   threads. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f'#include "{FIXED}"',
        "",
        f"#if CG_VERSION != {VERSION}u",
        f'#error "{pack.name}.h is of version {VERSION}, and {FIXED} of another: export the pack again"',
        "#endif",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        f"#define {pack.name}_SCRATCH {pack.scratch_bytes}",
        "",
        f"extern const cg_pack {pack.name};",
        "",
        *(_declaration(entry) for entry in pack.entries),
        "#ifdef __cplusplus",
        "}",
        "#endif",
        "",
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def facts(pack: Pack) -> list[str]:
    """Return what a pack was made for and of, in lines."""
    target = pack.target
    return [
        f"target   {target.name}, {target.vector_bits}-bit vectors, {pack.system.triple}",
        f"planned  for caches of {target.l1_bytes} {target.l2_bytes} {target.l3_bytes} bytes, winograd {pack.winograd}",
        f"holds    {len(pack.codes)} kernels, {pack.code_bytes} bytes of code, {pack.table_bytes} of tables, "
        f"{pack.word_bytes} of words",
    ]


def source(pack: Pack) -> str:
    """Return NAME.c: the numbers of every problem, and the table of all."""
    parts = [
        f"/* {pack.name}.c: the numbers of {pack.name}.h; the kernels are in lib{pack.name}.a.",
        f"   Written by convgrad {__version__}; do not edit. */",
        f'#include "{pack.name}.h"',
        "",
        f"#if !({_ARCHITECTURES[pack.target.architecture]})",
        f'#error "{pack.name} is a pack for {pack.label}"',
        "#endif",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
        "",
        *(
            f"void {code.symbol}(const void *words, int64_t begin, int64_t end, void *scratch);"
            for code in pack.codes
        ),
        "",
        *(_array(name, _numbers(table)) for table, name in pack.tables.items()),
        *(_definition(pack, entry) for entry in pack.entries),
        _listing(pack),
        "#ifdef __cplusplus",
        "}",
        "#endif",
    ]
    return "\n".join(parts) + "\n"


def _declaration(entry: Entry) -> str:
    sizes = " ".join(f"{place.name} {place.nbytes}" for place in entry.recipe.callers)
    return (
        f"/* {entry.line}\n"
        f"   {entry.algorithm}; bytes: {sizes}; {entry.code_bytes} of code, {entry.table_bytes} of tables */\n"
        f"#define {entry.name}_SCRATCH {entry.scratch_bytes}\n"
        f"extern const cg_entry {entry.name}_entry;\n"
        f"{_signature(entry)};\n"
    )


def _signature(entry: Entry) -> str:
    arguments = [_argument(place) for place in entry.recipe.callers]
    lines, line = [], f"int {entry.name}("
    for word in [*arguments, "void *scratch", "size_t scratch_bytes"]:
        if len(line) + len(word) > _WIDTH:
            lines.append(line.rstrip())
            line = "    "
        line += f"{word}, "
    return "\n".join([*lines, line.removesuffix(", ") + ")"])


def _argument(place: Place) -> str:
    kind = place.dtype.c or "void"
    return f"{'const ' if place.role == 'given' else ''}{kind} *{place.name}"


def _definition(pack: Pack, entry: Entry) -> str:
    parts = [f"/* {entry.line} */"]
    for number, part in enumerate(entry.parts if entry.launches else ()):
        seen = ", ".join(_NOWHERE if at is None else str(at) for at in part.seen)
        parts.append(
            f"static const uint8_t {entry.name}_seen_{number}[{len(part.seen)}] = {{{seen}}};"
        )
    rows = []
    for number, (part, launch) in enumerate(entry.launches):
        words = "NULL"
        if launch.words:
            words = f"{entry.name}_words_{number}"
            parts.append(_array(words, launch.words))
        rows.append(_launch(pack, entry, part, launch, words))
    launches = "NULL"
    if rows:
        launches = f"{entry.name}_launches"
        parts.append(f"static const cg_launch {launches}[{len(rows)}] = {{\n{_joined(rows)}\n}};")
    places = entry.recipe.places
    parts += [
        _array(f"{entry.name}_{place.name}", _numbers(place.data)) for place in places if place.data
    ]
    listed = _joined(_place(entry, place) for place in places)
    callers = entry.recipe.callers
    numbers = ", ".join(map(_number, descriptor(entry.recipe.asked)))
    parts += [
        f"static const cg_place {entry.name}_places[{len(places)}] = {{\n{listed}\n}};",
        f"const cg_entry {entry.name}_entry = {{",
        f"    CG_MAGIC, CG_VERSION, {{{numbers}}},",
        f'    "{entry.name}",',
        f'    "{entry.line}",',
        f'    "{entry.algorithm}", {launches}, {len(rows)}, {entry.most_workers},',
        f"    {entry.partial_bytes}, {entry.packed_bytes}, {entry.temporary_bytes}, {entry.worker_bytes},",
        f"    {entry.name}_places, {len(callers)}, {len(places)}}};",
        f"{_signature(entry)} {{",
        f"  void *places[{len(callers)}];",
        *(f"  places[{at}] = (void *)(uintptr_t){place.name};" for at, place in enumerate(callers)),
        f"  return cg_run_places(&{entry.name}_entry, places, scratch, scratch_bytes);",
        "}",
        "",
    ]
    return "\n".join(parts)


def _place(entry: Entry, place: Place) -> str:
    data = f"{entry.name}_{place.name}" if place.data else "NULL"
    role = f"CG_{place.role.upper()}"
    assert place.role in ROLES
    return f'    {{"{place.name}", {DTYPES[place.dtype]}, {role}, {place.nbytes}, {data}}}'


def _launch(pack: Pack, entry: Entry, part: PackedProgram, launch: Launch, words: str) -> str:
    table = pack.tables[launch.table] if launch.table else "NULL"
    pointers = ", ".join(map(str, launch.places or (0,)))
    # A launch that is too little to share is one chunk, also where others of the entry are shared.
    grain, least = launch.grain, launch.fewest
    if part.program.serial:
        grain = least = max(1, launch.items)
    return (
        f"    {{{part.codes[launch.kernel].symbol}, {words}, {table}, {launch.items}, {grain}, "
        f"{least}, {len(launch.words)}, {len(launch.places)}, {{{pointers}}}, "
        f"{len(part.seen)}, {entry.name}_seen_{entry.parts.index(part)}}}"
    )


def _listing(pack: Pack) -> str:
    target = pack.target
    entries, lines = "NULL", []
    if pack.entries:
        entries = f"{pack.name}_entries"
        rows = [f"    &{entry.name}_entry" for entry in pack.entries]
        lines.append(
            f"static const cg_entry *const {entries}[{len(rows)}] = {{\n{_joined(rows)}\n}};"
        )
    lines += [
        f"const cg_pack {pack.name} = {{",
        f'    CG_MAGIC, CG_VERSION, "{pack.name}", "{pack.label}", "{__version__}",',
        f"    {target.l1_bytes}, {target.l2_bytes}, {target.l3_bytes}, {entries}, {len(pack.entries)}}};",
        "",
    ]
    return "\n".join(lines)


def _joined(rows: Iterable[str]) -> str:
    return ",\n".join(rows)


def _numbers(table: bytes) -> list[int]:
    padded = table + bytes(-len(table) % 8)
    found: list[int] = np.frombuffer(padded, "<i8").tolist()
    return found


def _array(name: str, numbers: Iterable[int]) -> str:
    texts = [_number(number) for number in numbers]
    lines, line = [], ""
    for text in texts:
        if len(line) + len(text) + 2 > _WIDTH:
            lines.append(line)
            line = ""
        line += f" {text}," if line else f"   {text},"
    lines.append(line)
    return f"static const int64_t {name}[{len(texts)}] = {{\n" + "\n".join(lines) + "\n};"


def _number(number: int) -> str:
    """Spell a number of 64 bits; the least has no literal of its own."""
    return str(number) if number != _LEAST_LONG else f"({number + 1} - 1)"
