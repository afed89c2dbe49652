"""An environment that has the wheel, and runs programs in it."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Environment:
    """A virtual environment outside of the clone, and a folder to work in."""

    programs: Path
    folder: Path

    def run(self, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a program as somebody would who has installed the wheel and knows no clone."""
        kept = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT")
        mine = {name: value for name, value in os.environ.items() if name in kept}
        mine["PATH"] = os.pathsep.join([str(self.programs), mine.get("PATH", os.defpath)])
        mine["XDG_CACHE_HOME"] = str(self.folder / "cache")  # no kernel is there yet
        return subprocess.run(
            [str(word) for word in words],
            cwd=self.folder,
            env=mine,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
            **options,
        )

    def printed(self, *words: object, **options: Any) -> str:
        """Return what a program printed that succeeded."""
        ended = self.run(*words, **options)
        assert ended.returncode == 0, f"{words}\n{ended.stdout}\n{ended.stderr}"
        return ended.stdout
