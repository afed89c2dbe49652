"""`tools/dist.py`: what an archive and a wheel hold is counted by folder. `tests/outside` builds and uses real ones."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

import pytest

from tools import dist


def small(folder: Path) -> tuple[Path, Path]:
    """Write an archive and a wheel of three files."""
    files = {"src/convgrad/a.py": b"a" * 1500, "src/convgrad/b/c.py": b"", "LICENSE": b"free"}
    archive, wheel = folder / "convgrad-9.tar.gz", folder / "convgrad-9-py3-none-any.whl"
    with tarfile.open(archive, "w:gz") as tar, zipfile.ZipFile(wheel, "w") as packed:
        for name, data in files.items():
            about = tarfile.TarInfo(f"convgrad-9/{name}")
            about.size = len(data)
            tar.addfile(about, io.BytesIO(data))
            packed.writestr(name, data)
    return archive, wheel


def test_both_are_read_alike(tmp_path: Path) -> None:
    archive, wheel = small(tmp_path)
    assert dist.built(tmp_path) == (archive, wheel)
    assert dist.members(archive) == dist.members(wheel)


def test_a_summary_counts_folders(tmp_path: Path) -> None:
    _, wheel = small(tmp_path)
    head, *rows, whole = (line.split() for line in dist.summary(wheel, 2).splitlines())
    assert head == ["files", "kB", wheel.name]
    assert rows == [["1", "0.0", "."], ["2", "1.5", "src/convgrad"]]
    size = wheel.stat().st_size / 1000
    assert whole == f"3 1.5 in all; {size:.1f} kB as a file".split()
    assert len(dist.summary(wheel, 3).splitlines()) == 5


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    archive, wheel = small(tmp_path)
    archive.unlink()
    with pytest.raises(FileNotFoundError, match=rf"one archive and one wheel, has \['{wheel.name}"):
        dist.built(tmp_path)
