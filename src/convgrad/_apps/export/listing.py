"""The sizes of a pack in a table: code, tables, words and scratch of every problem, and in total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._base.text import aligned
from ..._base.version import __version__
from .pack import Pack

COLUMNS = ("problem", "algorithm", "code", "tables", "words", "scratch", "threads")


@dataclass(frozen=True, repr=False)
class Report:
    """What `convgrad.export` has written: print it, or use `to_dict()`."""

    pack: Pack
    folder: str
    files: tuple[str, ...]
    notes: tuple[str, ...]
    """What was left out, and why."""
    seconds: float

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's cells. A kernel that two problems use is counted in both, and once in the total."""
        pack = self.pack
        found = [
            (
                *(entry.line, entry.algorithm, f"{entry.code_bytes:,}", f"{entry.table_bytes:,}"),
                *(f"{entry.word_bytes:,}", f"{entry.scratch_bytes:,}", str(entry.most_workers)),
            )
            for entry in pack.entries
        ]
        total = (
            *(_count(len(pack.entries), "problem"), _count(len(pack.codes), "kernel")),
            *(f"{pack.code_bytes:,}", f"{pack.table_bytes:,}", f"{pack.word_bytes:,}"),
            *(f"{pack.scratch_bytes:,}", ""),
        )
        return [*found, total]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        pack, target = self.pack, self.pack.target
        return {
            "name": pack.name,
            "convgrad": __version__,
            "target": target.name,
            "vector_bits": target.vector_bits,
            "system": pack.system.name,
            "triple": pack.system.triple,
            "cache_bytes": [target.l1_bytes, target.l2_bytes, target.l3_bytes],
            "winograd": pack.winograd,
            "folder": self.folder,
            "files": list(self.files),
            "kernels": len(pack.codes),
            "code_bytes": pack.code_bytes,
            "table_bytes": pack.table_bytes,
            "word_bytes": pack.word_bytes,
            "scratch_bytes": pack.scratch_bytes,
            "problems": [
                {
                    "line": entry.line,
                    "function": entry.name,
                    "algorithm": entry.algorithm,
                    "code_bytes": entry.code_bytes,
                    "table_bytes": entry.table_bytes,
                    "word_bytes": entry.word_bytes,
                    "scratch_bytes": entry.scratch_bytes,
                    "operand_bytes": list(entry.operand_bytes),
                    "threads": entry.most_workers,
                    "kernels": [code.symbol for code in entry.codes],
                }
                for entry in pack.entries
            ],
            "refused": [{"line": each.line, "reason": each.reason} for each in pack.refused],
            "notes": list(self.notes),
            "seconds": self.seconds,
        }

    def __repr__(self) -> str:
        # Not the fields: among them are the objects of all kernels, byte by byte.
        problems = _count(len(self.pack.entries), "problem")
        return f"<pack {self.pack.name} of {problems} for {self.pack.label} in {self.folder!r}>"

    def __str__(self) -> str:
        lines = [aligned([list(COLUMNS), *map(list, self.rows())], (0, 1))]
        lines += [f"refused: {each.line}: {each.reason}" for each in self.pack.refused]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def text_file(pack: Pack, facts: list[str]) -> str:
    """Return NAME.txt: the problems, as `convgrad export` reads them, and what was made of them."""
    name = pack.name
    columns = [["# bytes of code", "tables", "words", "scratch", "algorithm"]]
    for entry in pack.entries:
        numbers = (entry.code_bytes, entry.table_bytes, entry.word_bytes, entry.scratch_bytes)
        columns.append([*map(str, numbers), entry.algorithm])
    table = aligned(columns, (4,)).splitlines()
    lines = [
        f"# {name}, a pack of convgrad {__version__}",
        *(f"# {fact}" for fact in facts),
        table[0],
    ]
    for entry, row in zip(pack.entries, table[1:], strict=True):
        lines += [f"#{row[1:]}" if row.startswith(" ") else f"# {row}", entry.line]
    lines += [f"# refused: {each.line}: {each.reason}" for each in pack.refused]
    return "\n".join(lines) + "\n"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
