"""What `ops_cases.cc` makes of cases."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cc_cases import Case, read_results
from cc_programs import run


@dataclass(frozen=True)
class Runner:
    """The program of all together, and a folder for files of cases."""

    program: Path
    folder: Path

    def run(self, cases: list[Case]) -> dict[str, list[Any]]:
        """Return what the program makes of cases, by their names, which must differ."""
        assert len({case.name for case in cases}) == len(cases), "two cases of one name"
        file = self.folder / "cases.txt"
        file.write_text("\n".join(line for case in cases for line in case.lines()) + "\n")
        ran = run(self.program, "ops_cases", str(file))
        assert ran.returncode == 0, ran.stderr[-4000:]
        return read_results(ran.stdout)
