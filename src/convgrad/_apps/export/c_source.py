"""NAME.c and NAME.h: a pack as C, which is C++ too: no initialiser names its field.

Everything that one problem needs is apart from all others, and one table at the end knows them all. So a linker that
drops what nobody refers to (`--gc-sections`) keeps the kernels of the problems that a program names.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..._base.version import __version__
from ..._runtime.program import MEMORY, Launch
from . import names
from .pack import Entry, Pack, descriptor

FIXED = "convgrad_pack.h"
"""The header that is the same for all packs."""
VERSION = 1
"""`CG_VERSION` of that header."""

_ARCHITECTURES = {
    "x86_64": "defined(__x86_64__) || defined(_M_X64)",
    "aarch64": "defined(__aarch64__) || defined(_M_ARM64)",
    "wasm32": "defined(__wasm32__)",
    "thumbv7em": "defined(__arm__)",
    "riscv64": "defined(__riscv) && __riscv_xlen == 64",
}
"""What compilers for an architecture define."""
"""C's own; others are passed as void."""
_NUMBERS = {MEMORY["partial"]: 3, MEMORY["packed"]: 4}
"""Of memory in `CG_VERSION` 1, whose programs have three places."""
_LEAST_LONG = -(2**63)
_WIDTH = 112


def header(pack: Pack) -> str:
    """Return NAME.h: a function for each problem, its scratch as a macro, and the table to look problems up in."""
    # As the name is written, and more: `Net` and `net` are two packs, and a program may have a net.h of its own.
    guard = f"CONVGRAD_PACK_{pack.name}_H"
    parts = [
        f"/* {pack.name}.h: {len(pack.entries)} convolutions for {pack.label}.",
        f"   Written by convgrad {__version__}; do not edit.",
        "",
        *(f"   {line}" for line in facts(pack)),
        "",
        "   Each function takes its operands, the result and scratch, which begins on a boundary of CG_SCRATCH_ALIGN",
        f"   bytes; {pack.name}_SCRATCH bytes are enough for any of them on one thread. It returns CG_OK or a",
        f"   code that cg_error_text puts in words. {FIXED} has the rules, the look-up by descriptor, and",
        "   threads. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f'#include "{FIXED}"',
        "",
        f"#if CG_VERSION != {VERSION}u",
        f'#error "{pack.name}.h needs version {VERSION} of {FIXED}; another one was included before"',
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
    first, second, result = entry.operand_bytes
    return (
        f"/* {entry.line}\n"
        f"   {entry.algorithm}; bytes: {first} {second} {result} of the operands and the result, "
        f"{entry.code_bytes} of code, {entry.table_bytes} of tables */\n"
        f"#define {entry.name}_SCRATCH {entry.scratch_bytes}\n"
        f"extern const cg_entry {entry.name}_entry;\n"
        f"{_signature(entry)};\n"
    )


def _signature(entry: Entry) -> str:
    kind = entry.problem.dtype.c or "void"
    first, second, result = names.operands(entry.problem)
    return (
        f"int {entry.name}(const {kind} *{first}, const {kind} *{second}, {kind} *{result}, void *scratch,\n"
        f"    size_t scratch_bytes)"
    )


def _definition(pack: Pack, entry: Entry) -> str:
    problem, program = entry.problem, entry.program
    parts = [f"/* {entry.line} */"]
    rows = []
    for number, launch in enumerate(program.launches):
        words = "NULL"
        if launch.words:
            words = f"{entry.name}_words_{number}"
            parts.append(_array(words, launch.words))
        rows.append(_launch(pack, entry, launch, words))
    launches = "NULL"
    if rows:
        launches = f"{entry.name}_launches"
        parts.append(f"static const cg_launch {launches}[{len(rows)}] = {{\n{_joined(rows)}\n}};")
    numbers = ", ".join(map(_number, descriptor(problem)))
    first, second, result = names.operands(problem)
    parts += [
        f"const cg_entry {entry.name}_entry = {{",
        f"    CG_MAGIC, CG_VERSION, {{{numbers}}},",
        f'    "{entry.name}",',
        f'    "{entry.line}",',
        f'    "{entry.algorithm}", {launches}, {len(rows)}, {entry.most_workers},',
        f"    {program.partial_bytes}, {program.packed_bytes}, {entry.worker_bytes}, "
        f"{{{', '.join(map(str, entry.operand_bytes))}}}}};",
        f"{_signature(entry)} {{",
        f"  return cg_run(&{entry.name}_entry, {first}, {second}, {result}, scratch, scratch_bytes);",
        "}",
        "",
    ]
    return "\n".join(parts)


def _launch(pack: Pack, entry: Entry, launch: Launch, words: str) -> str:
    table = pack.tables[launch.table] if launch.table else "NULL"
    places = ", ".join(str(_NUMBERS.get(place, place)) for place in launch.places or (0,))
    return (
        f"    {{{entry.codes[launch.kernel].symbol}, {words}, {table}, {launch.items}, {launch.grain}, "
        f"{launch.fewest}, {len(launch.words)}, {len(launch.places)}, {{{places}}}}}"
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
