"""Build the archive of the sources and the wheel into `dist`, and say what is in them.

    python tools/dist.py             build both, the wheel out of the archive, as an installer without the clone would
    python tools/dist.py --list      only say what is in those that are there

Both have the studio's page, which needs node for the archive and none for the wheel: see hatch_build.py.
`make test-dist` installs the wheel elsewhere and uses it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import zipfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
WIDEST = 60
"""Columns of the folders' names in a summary."""


@dataclass(frozen=True)
class Member:
    """A file in an archive or a wheel."""

    name: str
    """Without the folder that all of an archive lies in."""
    size: int
    data: bytes


def members(path: Path) -> list[Member]:
    """Return the files of a wheel, or of an archive of sources."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return [
                Member(each.filename, each.file_size, wheel.read(each))
                for each in wheel.infolist()
                if not each.is_dir()
            ]
    found = []
    with tarfile.open(path) as archive:
        for each in archive:
            opened = archive.extractfile(each)
            if opened:
                found.append(Member(each.name.partition("/")[2], each.size, opened.read()))
    return found


def folder_of(name: str, depth: int) -> str:
    """Return the folder a file is counted under.

    >>> folder_of("src/convgrad/_compiler/jit/cache.py", 3), folder_of("LICENSE", 3)
    ('src/convgrad/_compiler', '.')
    """
    return "/".join(name.split("/")[:-1][:depth]) or "."


def summary(path: Path, depth: int) -> str:
    """Return how many files of which size each folder has, and the whole."""
    held = members(path)
    folders: dict[str, list[int]] = defaultdict(list)
    for each in held:
        folders[folder_of(each.name, depth)].append(each.size)
    lines = [f"{'files':>7}{'kB':>10}  {path.name}"]
    for name, sizes in sorted(folders.items()):
        lines.append(f"{len(sizes):>7}{sum(sizes) / 1000:>10.1f}  {name[:WIDEST]}")
    unpacked = sum(each.size for each in held)
    packed = path.stat().st_size
    lines.append(
        f"{len(held):>7}{unpacked / 1000:>10.1f}  in all; {packed / 1000:.1f} kB as a file"
    )
    return "\n".join(lines)


def built(folder: Path = DIST) -> tuple[Path, Path]:
    """Return the archive and the wheel of a folder; there must be one of each."""
    found = [sorted(folder.glob(pattern)) for pattern in ("convgrad-*.tar.gz", "convgrad-*.whl")]
    if [len(each) for each in found] != [1, 1]:
        names = sorted(path.name for paths in found for path in paths)
        raise FileNotFoundError(f"{folder} must hold one archive and one wheel, has {names}")
    return found[0][0], found[1][0]


def build(folder: Path = DIST) -> None:
    """Build both; those of an earlier build are deleted."""
    folder.mkdir(exist_ok=True)
    for old in (*folder.glob("convgrad-*.tar.gz"), *folder.glob("convgrad-*.whl")):
        old.unlink()
    require = {**os.environ, "CONVGRAD_STUDIO": "require"}
    archive = f"import hatch_build; hatch_build.build_sdist({str(folder)!r})"
    subprocess.run([sys.executable, "-c", archive], cwd=ROOT, env=require, check=True)
    (made,) = folder.glob("convgrad-*.tar.gz")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    words = [*pip, "--no-deps", "--wheel-dir", str(folder), str(made)]
    subprocess.run(words, cwd=folder, env=require, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the archive of the sources and the wheel.")
    parser.add_argument("--list", action="store_true", help="only say what is in them")
    if not parser.parse_args().list:
        build()
    archive, wheel = built()
    print(summary(archive, 2))
    print()
    print(summary(wheel, 3))


if __name__ == "__main__":
    main()
