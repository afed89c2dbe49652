"""`ops_cases.cc`, compiled once, with the sanitizers where the compiler has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cc_cases import Case, read_results

import convgrad

INCLUDE = Path(convgrad.__file__).parent / "include"
FLAGS = "-std=c++17 -O1 -Wall -Wextra -Wconversion -Wshadow -pedantic -Werror -pthread".split()
SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=all".split()


@dataclass(frozen=True)
class Runner:
    """The program, and a folder for files of cases."""

    program: Path
    folder: Path

    @classmethod
    def compiled(cls, folder: Path) -> Runner:
        compiler = shutil.which("g++") or shutil.which("clang++")
        if compiler is None:
            pytest.skip("there is neither g++ nor clang++ here")
        probe = folder / "probe.cc"
        probe.write_text("int main() { return 0; }\n")
        extra = SANITIZERS
        if subprocess.run(
            [compiler, *extra, probe, "-o", folder / "probe"], capture_output=True
        ).returncode:
            extra = []
        program = folder / "ops_cases"
        source = Path(__file__).parent / "ops_cases.cc"
        made = subprocess.run(
            [compiler, *FLAGS, *extra, f"-I{INCLUDE}", source, "-o", program],
            capture_output=True,
            text=True,
        )
        assert made.returncode == 0, made.stderr[-4000:]
        return cls(program, folder)

    def run(self, cases: list[Case]) -> dict[str, list[Any]]:
        """Return what the program makes of cases, by their names, which must differ."""
        assert len({case.name for case in cases}) == len(cases), "two cases of one name"
        file = self.folder / "cases.txt"
        file.write_text("\n".join(line for case in cases for line in case.lines()) + "\n")
        ran = subprocess.run(
            [self.program, file],
            capture_output=True,
            text=True,
            # Memory that is refused gives null, as without the sanitizer.
            env={**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"},
        )
        assert ran.returncode == 0, ran.stderr[-4000:]
        return read_results(ran.stdout)
