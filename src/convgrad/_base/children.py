"""How child processes start: the same Python with our import path, but never with the current folder on it.

`python -m` and `python -c` look for modules in the current folder first, so a file `numpy.py` that lies beside
somebody's page would run when a child imports NumPy. Python's own switch against it, -P, is of 3.11. -I is older, but
it also drops PYTHONHOME, the user's packages and all other variables of Python, so that a child might not start where
its parent runs. Here a child is told its path as its first statement, before it imports anything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = str(Path(__file__).resolve().parents[2])
"""What holds the package: a folder, or a zip file."""


def command(module: str, function: str, *arguments: str) -> list[str]:
    """Return the command line of a child that calls a function of ours; it finds `arguments` in `sys.argv[1:]`."""
    return python_command(f"from {module} import {function}; {function}()", *arguments)


def python_command(text: str, *arguments: str) -> list[str]:
    """Return the command line of a child that runs a program of ours."""
    start = f"import sys; sys.path[:] = {import_path()!a}\n{text}"
    return [sys.executable, *_flags(), "-c", start, *arguments]


def import_path() -> list[str]:
    """Return where a child looks for modules: where we do, without the current folder.

    PYTHONPATH may name that folder, and our own package may lie there: then it stays.
    """
    try:
        here = os.path.realpath(Path.cwd())
    except OSError:  # the folder is gone, and nobody can look there
        here = ""
    path = [str(Path(each).absolute()) for each in sys.path if str(each)]  # some hold `Path`s
    if here and here not in {ROOT, *_named()}:
        path = [each for each in path if os.path.realpath(each) != here]
    # An import hook may have found the package where the path does not lead.
    return path if ROOT in map(os.path.realpath, path) else [ROOT, *path]


def _named() -> set[str]:
    """Return the folders in PYTHONPATH; an empty place between two colons means the current one and names none."""
    if sys.flags.ignore_environment:
        return set()
    words = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return {os.path.realpath(each) for each in words if each}


def _flags() -> list[str]:
    """Return what we were told about the environment and the user's packages, which holds for children too."""
    if sys.flags.isolated:
        return ["-I"]
    flags = [
        ("-E", sys.flags.ignore_environment),
        ("-s", sys.flags.no_user_site),
        ("-P", sys.version_info >= (3, 11)),
    ]
    return [flag for flag, wanted in flags if wanted]
