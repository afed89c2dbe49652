"""Compile the C++ programs of `tests/cc` with whatever compilers are here, and run them."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import cc_exports

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "tests" / "cc"
INCLUDE = ROOT / "src" / "convgrad" / "include"
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic", "-Werror")
# The first one compiles what every run of the tests needs, in half of g++'s time.
COMPILERS = ("clang++", "g++")
SANITIZED = (
    "-O0",
    "-g1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
)
MINUTES = 10
OTHERS = (
    "messages",
    "fuzz",
    "core_graphs",
    "ops_cases",
    "conv_run",
    "conv_gradients",
    "review_reuse",
    "fp_mode",
)
"""Programs that `all_together` has beside the guide's and those that are exported."""


@dataclass(frozen=True)
class Setting:
    """A compiler and the flags that matter."""

    compiler: str
    name: str
    flags: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.compiler} {self.name}"


VARIANTS: dict[str, tuple[str, ...]] = {
    "C++17": ("-std=c++17", "-O0"),
    "C++20": ("-std=c++20", "-O1"),
    "plain": ("-std=c++17", "-O0", "-fno-exceptions", "-fno-rtti"),
    "sanitized": ("-std=c++17", *SANITIZED),
    "threads": ("-std=c++17", "-O0", "-g1", "-fsanitize=thread"),
}
ALWAYS = ("C++17", "C++20", "plain", "sanitized")
"""What every program is compiled with; `threads` is for those that have some."""


def found() -> list[str]:
    """Return the compilers of this machine; `CXX` names another, or the only one wanted."""
    named = os.environ.get("CXX")
    return [each for each in ([named] if named else COMPILERS) if shutil.which(each)]


def one_and_others() -> list[Any]:
    """Return the compilers of this machine for a test: the first one always, the others where there is time."""
    return [
        pytest.param(each, marks=[pytest.mark.cc_long] if number else [])
        for number, each in enumerate(found())
    ]


def setting(compiler: str, variant: str) -> Setting:
    return Setting(compiler, variant, VARIANTS[variant])


def settings() -> list[Setting]:
    """Return every compiler with every variant, the cheapest first."""
    return [setting(compiler, variant) for variant in ALWAYS for compiler in found()]


@cache
def _links(compiler: str, flags: tuple[str, ...]) -> bool:
    """Whether a program of these flags can be made: a compiler may be here without its sanitizers' libraries."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "empty.cc"
        source.write_text("int main() { return 0; }\n")
        command = [compiler, *flags, str(source), "-o", str(source.with_suffix(""))]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def eigen() -> str:
    """Return flags for a program that brings Eigen, or skip: `CC_EIGEN`, the system's, or that of a TensorFlow here."""
    spec = importlib.util.find_spec("tensorflow")
    places = [os.environ.get("CC_EIGEN", ""), "/usr/include/eigen3"]
    places += [f"{place}/include" for place in (spec and spec.submodule_search_locations) or ()]
    for place in filter(None, places):
        if (Path(place) / "unsupported" / "Eigen" / "CXX11" / "Tensor").exists():
            return f"-isystem{place}"
    pytest.skip("there is no Eigen here: install libeigen3-dev, or name its folder in CC_EIGEN")


def skip_without(compiler: str, *flags: str) -> None:
    """Skip the test where a sanitizer or OpenMP is asked for whose library is not here."""
    asked = tuple(flag for flag in flags if flag.startswith(("-fsanitize=", "-fopenmp")))
    if asked and not _links(compiler, asked):
        pytest.skip(
            f"{compiler} cannot link {' '.join(asked)} here: its libraries are not installed"
        )


@contextmanager
def _lock(place: Path) -> Iterator[None]:
    """Hold a file: a worker that wants what another compiles waits for it."""
    with place.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class CompileFailed(Exception):
    """The compiler's own words."""


class Builds:
    """Programs compiled in this run, each setting once, whichever worker came first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def program(self, source: Path, how: Setting, *more: str) -> Path:
        """Return the compiled program; `more` are flags and sources of this program alone."""
        skip_without(how.compiler, *how.flags, *more)
        flags = [*how.flags, *WARNINGS, f"-I{INCLUDE}", f"-I{INCLUDE / 'shim'}", f"-I{PROGRAMS}"]
        command = [how.compiler, *flags, str(source), *more, "-pthread"]
        key = hashlib.sha256("\0".join(command).encode()).hexdigest()[:16]
        place = self.folder / f"{source.stem}-{key}"
        with _lock(place.with_suffix(".lock")):
            if place.exists():
                return place
            part = place.with_suffix(f".{os.getpid()}")
            done = subprocess.run(
                [*command, "-o", str(part)],
                capture_output=True,
                text=True,
                check=False,
                timeout=60 * MINUTES,
            )
            if done.returncode:
                raise CompileFailed(" ".join(command) + "\n" + done.stderr[:8000])
            part.replace(place)
        return place

    def all_together(self, how: Setting, *more: str) -> Path:
        """Return the guide's programs and all others that need every kernel as one program."""
        names = sorted(path.stem for path in PROGRAMS.glob("guide_*.cc"))
        texts = {name: (PROGRAMS / f"{name}.cc").read_text() for name in [*names, *OTHERS]}
        texts["exports"] = cc_exports.together()
        _write(self.folder / "exports.cc", texts["exports"])
        return self.program(together(texts, self.folder), how, *more)


def _write(place: Path, text: str) -> None:
    """Write a source at once, unless another worker has: it may be compiling it."""
    if not place.exists() or place.read_text() != text:
        part = place.with_suffix(f".{os.getpid()}")
        part.write_text(text)
        part.replace(place)


def together(texts: dict[str, str], folder: Path) -> Path:
    """Write one program of several, chosen by its first argument: the kernels are then compiled once.

    Each is in a namespace of its own; what it includes has been included before it.
    """
    includes = {
        line
        for text in texts.values()
        for line in text.splitlines()
        if line.startswith(("#include <", '#include "'))
    }
    lines = [*sorted(includes), ""]
    for name in texts:
        lines += [f"#define main Main_{name}", f"namespace program_{name} {{"]
        lines += [f'#include "{name}.cc"', "}", "#undef main"]
    lines += [
        "int main(int argc, char** argv) {",
        '  const std::string name = argc > 1 ? argv[1] : "";',
    ]
    for name, text in texts.items():
        arguments = "" if "int main()" in text else "argc - 1, argv + 1"
        lines.append(f'  if (name == "{name}") return program_{name}::Main_{name}({arguments});')
    lines += ["  return 2;", "}", ""]
    place = folder / "together.cc"
    _write(place, "\n".join(lines))
    return place


def run(
    program: Path, *arguments: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program for at most some minutes, quietly."""
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "ASAN_OPTIONS": "allocator_may_return_null=1"}
    return subprocess.run(
        [str(program), *arguments],
        env={**os.environ, **quiet, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * MINUTES,
    )
