"""The folder of compiled kernels, exchanged by somebody who may write its parent: what was checked is what is used."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convgrad._base import config
from convgrad._compiler.jit import cache

pytestmark = pytest.mark.skipif(os.name != "posix", reason="Windows cannot open folders")

DIGEST, KEY = "0" * 32, "key"
TEXT = ("2" * 32, "text")
OURS, THEIRS = cache.Entry("symbol", 0, b"ours" * 2000), cache.Entry("symbol", 0, b"theirs" * 2000)


@pytest.fixture
def base(tmp_path, monkeypatch):
    """Return a folder with ours, `kernels-1`, and theirs, `bait`: entries in both, unfinished files in theirs."""
    settings = {"cache_dir": str(tmp_path), "disk_cache": True, "cache_bytes": 1 << 30}
    monkeypatch.setattr(config, "_process", settings)
    assert cache.write(DIGEST, KEY, THEIRS, TEXT)
    (tmp_path / "kernels-1" / "a.1.1.partial").write_text("")
    os.utime(tmp_path / "kernels-1" / "a.1.1.partial", (0, 0))
    (tmp_path / "kernels-1").rename(tmp_path / "bait")
    assert cache.write(DIGEST, KEY, OURS, TEXT)
    return tmp_path


def _exchange(base: Path, kind: str) -> None:
    (base / "kernels-1").rename(base / "aside")
    if kind == "link":
        (base / "kernels-1").symlink_to(base / "bait")
    else:
        (base / "bait").chmod(0o777)
        (base / "bait").rename(base / "kernels-1")


def _put_back(base: Path, kind: str) -> None:
    if kind == "link":
        (base / "kernels-1").unlink()
    else:
        (base / "kernels-1").rename(base / "bait")
    (base / "aside").rename(base / "kernels-1")


def _evict() -> None:
    with config.scope(cache_bytes=1):
        cache.write("1" * 32, KEY, OURS, TEXT)


ACTIONS = {
    "read": lambda: cache.read(DIGEST, KEY),
    "read by text": lambda: cache.read_by_text(*TEXT),
    "write": lambda: cache.write("1" * 32, KEY, OURS, TEXT),
    "usage": cache.usage,
    "clear": cache.clear,
    "evict": _evict,
}
CALLS = ("lstat", "stat", "fstat", "open", "mkdir", "scandir", "replace", "link", "unlink", "utime")


def _exchanged_after(moment: int, base: Path, action: str, kind: str):
    """Do something and exchange the folder after so many calls of the system; returns how many there were."""
    seen = 0

    def watched(real):
        def call(*args, **keywords):
            nonlocal seen
            result = real(*args, **keywords)
            seen += 1
            if seen == moment:
                patch.undo()
                _exchange(base, kind)
            return result

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, watched(getattr(os, name)))
        return ACTIONS[action](), seen


def _bait(base: Path) -> list[tuple[str, bytes]]:
    return sorted((path.name, path.read_bytes()) for path in (base / "bait").iterdir())


@pytest.mark.parametrize("kind", ["link", "folder"])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_folder_exchanged_after_any_call_is_not_used(base, action, kind):
    """Another folder, or a link to it, comes after the first call of the system, after the second, and so on."""
    bait = _bait(base)
    for moment in range(1, 100):
        found, seen = _exchanged_after(moment, base, action, kind)
        if seen < moment:
            break
        if action.startswith("read"):
            assert found in (OURS, None), moment
        _put_back(base, kind)
        assert _bait(base) == bait, moment
        assert cache.write(DIGEST, KEY, OURS, TEXT)  # what `clear` and `evict` have removed
    assert 3 < moment < 99


@pytest.mark.parametrize("kind", ["link", "folder"])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_folder_exchanged_before_is_left_alone(base, action, kind):
    bait = _bait(base)
    _exchange(base, kind)
    assert ACTIONS[action]() in (None, False, 0, (0, 0, 0))
    _put_back(base, kind)
    assert _bait(base) == bait


EXCHANGER = """
import os, sys
os.chdir(sys.argv[1])
os.symlink("bait", "link")
os.chmod("bait", 0o777)
while True:
    for other in ("link", "bait"):
        os.rename("kernels-1", "aside")
        os.rename(other, "kernels-1")
        os.rename("kernels-1", other)
        os.rename("aside", "kernels-1")
"""


def test_a_folder_exchanged_all_the_time(base):
    """Before, 2 of 114,016 reads took the wrong one; this is a second of it."""
    other = subprocess.Popen([sys.executable, "-c", EXCHANGER, str(base)])
    try:
        found, deadline = [], time.monotonic() + 1
        while time.monotonic() < deadline:
            found.append(cache.read(DIGEST, KEY))
            assert found[-1] in (OURS, None)
    finally:
        other.kill()
        other.wait()
    assert OURS in found and other.returncode < 0


def test_a_pipe_in_the_place_of_the_folder_is_not_waited_for(base):
    (base / "kernels-1").rename(base / "aside")
    os.mkfifo(base / "kernels-1")
    assert cache.read(DIGEST, KEY) is None
    assert not cache.write(DIGEST, KEY, OURS)
    assert stat.S_ISFIFO((base / "kernels-1").stat().st_mode)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o277, 0o777])
def test_parents_are_ours_alone_whatever_the_umask(tmp_path, mask):
    with config.scope(cache_dir=str(tmp_path / "a" / "b"), disk_cache=True):
        before = os.umask(mask)
        try:
            assert cache.write(DIGEST, KEY, OURS)
        finally:
            os.umask(before)
        assert cache.read(DIGEST, KEY) == OURS
    for path in (tmp_path / "a", tmp_path / "a" / "b", tmp_path / "a" / "b" / "kernels-1"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    (entry,) = path.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600


class _Alarm(BaseException):
    pass


def _interrupted_at(moment: int, action: str) -> bool:
    """Do something and raise where a signal handler might for the n-th time; tells whether there was such a moment."""
    seen = 0

    def ring(frame, event, _):
        nonlocal seen
        if event in ("call", "c_return") and "jit" in frame.f_code.co_filename:
            seen += 1
            if seen >= moment:
                raise _Alarm

    sys.setprofile(ring)
    try:
        ACTIONS[action]()
    except _Alarm:
        return True
    finally:
        sys.setprofile(None)
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="Linux")
@pytest.mark.filterwarnings("ignore:.*[sS]candir")  # a listing given up closes itself, and says so
@pytest.mark.parametrize("action", ACTIONS)
def test_no_moment_to_interrupt_leaves_a_descriptor(base, action):
    """Signal handlers run after calls and at the start of functions; here one raises at each of these in turn."""
    before = len([*Path("/proc/self/fd").iterdir()])
    for moment in range(1, 1000):
        if not _interrupted_at(moment, action):
            break
        assert len([*Path("/proc/self/fd").iterdir()]) == before, moment
    assert 10 < moment < 999
    assert cache.write(DIGEST, KEY, OURS) and cache.read(DIGEST, KEY) == OURS
