"""Take the golden outputs: compile the programs of `tests/cc` with TensorFlow's own headers and library, and run them.

Run with a Python that has TensorFlow; needs g++ and about a minute per three programs:

    python tests/cc/with_tensorflow/record.py [PROGRAM ...]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAMS = HERE.parent
GOLDENS = PROGRAMS / "goldens"
MESSAGES_END = 77
"""What the program of messages returns for a case it does not have."""

QUIET = {
    **os.environ,
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "TF_ENABLE_ONEDNN_OPTS": "0",
    "CUDA_VISIBLE_DEVICES": "",
}


def tensorflow_folder() -> Path:
    spec = find_spec("tensorflow")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("this Python has no TensorFlow")
    return Path(next(iter(spec.submodule_search_locations)))


def compile_all(names: list[str], folder: Path) -> None:
    tensorflow = tensorflow_folder()
    flags = ["g++", "-std=c++17", "-w", "-O0", f"-I{tensorflow / 'include'}", f"-I{PROGRAMS}"]
    libraries = [
        str(tensorflow / "libtensorflow_cc.so.2"),
        str(tensorflow / "libtensorflow_framework.so.2"),
    ]
    session = folder / "client_session.o"
    subprocess.run([*flags, "-c", str(HERE / "client_session.cc"), "-o", str(session)], check=True)
    for name in names:
        print("compiling", name, flush=True)
        command = [*flags, str(PROGRAMS / f"{name}.cc"), str(session), "-o", str(folder / name)]
        subprocess.run([*command, *libraries, f"-Wl,-rpath,{tensorflow}"], check=True)


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(program), *arguments], env=QUIET, capture_output=True, text=True, check=False
    )


def messages(program: Path) -> str:
    """Return one line per case; what TensorFlow says last where it ends the process."""
    lines: list[str] = []
    at = 0
    while (done := run(program, str(at))).returncode != MESSAGES_END:
        label, _, line = done.stdout.partition("\n")
        if done.returncode:
            checks = [each for each in done.stderr.splitlines() if "] " in each and each[0] == "F"]
            said = checks[0].split("] ", 1)[1] if checks else f"signal {-done.returncode}"
            line = f"{label} = ABORTS: {said}\n"
        lines.append(line)
        at += 1
    return "".join(lines)


def main() -> None:
    names = sys.argv[1:] or sorted(
        path.stem for pattern in ("guide_*.cc", "messages.cc") for path in PROGRAMS.glob(pattern)
    )
    GOLDENS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        compile_all(names, Path(folder))
        for name in names:
            program = Path(folder) / name
            if name == "messages":
                text = messages(program)
            else:
                done = run(program)
                if done.returncode:
                    sys.exit(f"{name} failed: {done.stderr}")
                text = done.stdout
            (GOLDENS / f"{name}.txt").write_text(text)


if __name__ == "__main__":
    main()
