"""`tools/emulate.py` is not part of the default run; that it says what it needs is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "emulate.py"


def test_missing_programs_are_named(tmp_path):
    done = subprocess.run(
        [sys.executable, str(TOOL)],
        env={**os.environ, "PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "tools/emulate.py needs qemu-aarch64 and aarch64-linux-gnu-gcc: "
        "apt-get install qemu-user gcc-aarch64-linux-gnu\n"
    )
