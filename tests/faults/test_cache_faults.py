"""The folder of compiled kernels under attack and accident; tests/unit/test_cache.py has the entries one by one."""

from __future__ import annotations

import os
import random
import resource
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

import convgrad
from convgrad import _engine
from convgrad._base import config
from convgrad._compiler import jit
from faults.children import finish, run, start
from faults.work import forget, work

linux = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "_kernels", {})
    monkeypatch.setattr(_engine, "memory", {})
    monkeypatch.setattr(
        config,
        "_process",
        {"cache_dir": str(tmp_path), "disk_cache": True, "cache_bytes": 1 << 30},
    )
    work(SMALL)
    forget()
    return tmp_path / "kernels-1"


SMALL = range(1, 2)


def origins() -> set[str]:
    """Do the small work as a new process would; say where its kernels came from."""
    forget()
    work(SMALL)
    return {kernel.origin for kernel in jit._kernels.values()}


def replace_by(path: Path, kind: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket may be 108 bytes long
        try:
            with socket.socket(socket.AF_UNIX) as listening:
                listening.bind(path.name)
        finally:
            os.chdir(here)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    elif kind == "second name":
        elsewhere = path.parent / "elsewhere"
        elsewhere.write_bytes(content)
        elsewhere.chmod(0o644)
        path.hardlink_to(elsewhere)


@pytest.mark.parametrize("kind", ["pipe", "socket", "link to a device"])
def test_what_is_no_file_is_replaced(folder, kind):
    """Opening a pipe waits for a writer, unless asked not to."""
    for path in [*folder.iterdir()]:
        replace_by(path, kind)
    assert origins() == {"llvm"}
    assert origins() == {"disk"}


def test_a_private_file_with_a_second_name_is_ours(folder):
    for path in folder.glob("*.kernel"):
        replace_by(path, "second name")
    assert origins() == {"disk"}


def test_swapped_entries_are_both_compiled_anew(folder):
    # Alone: the parallel loop is an entry too, and is loaded once per process.
    with convgrad.threads(1):
        work(range(2))
    first, second = sorted(folder.glob("*.kernel"))[:2]
    held = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(held)
    forget()
    with convgrad.threads(1):
        work(range(2))
    assert sum(kernel.origin == "llvm" for kernel in jit._kernels.values()) == 2


def test_damage_in_every_region(folder):
    """A byte changed, a cut, zeros, doubled: at 40 places of each file, through the front door."""
    pick = random.Random(1)
    work(SMALL)
    ((identity, target, _),) = jit._kernels
    name = jit.key.identity_text(identity, target)
    path = folder / f"{jit.key.digest(name)}.kernel"  # in a new process the entry lies beside it
    good = path.read_bytes()
    for step in range(40):
        at = len(good) * step // 40
        damaged = pick.choice(
            [
                good[:at] + bytes([good[at] ^ 1 << pick.randrange(8)]) + good[at + 1 :],
                good[:at],
                good[:at] + bytes(len(good) - at),
                good[:at] + good,
            ]
        )
        if damaged == good:
            continue
        path.write_bytes(damaged)
        assert jit.cache.read(path.stem, name) is None and not path.exists()
        path.write_bytes(good)
        path.chmod(0o600)
    assert origins() == {"disk"}


@linux
@as_root
@pytest.mark.parametrize("what", ["entries", "folder"])
def test_what_somebody_else_owns_is_not_used(folder, what):
    for path in folder.glob("*.kernel") if what == "entries" else [folder]:
        os.chown(path, 12345, 12345)
    assert origins() == {"llvm"}


@linux
def test_no_free_descriptor_is_no_reason_to_remove_an_entry(folder):
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open("/", os.O_RDONLY)
    os.close(lowest)
    entries = sorted(folder.iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        assert origins() == {"llvm"}
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert sorted(folder.iterdir()) == entries
    assert origins() == {"disk"}


@pytest.mark.long
@linux
def test_one_free_descriptor_is_enough(warm):
    run(
        """
        import resource
        lowest = os.open("/", os.O_RDONLY)
        os.close(lowest)
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, lowest + 1))
        work(range(2))
        """,
        warm,
    )


@linux
def test_files_may_not_grow(tmp_path):
    """`ulimit -f`: the system sends SIGXFSZ, which Python ignores, and refuses the write."""
    run(
        "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)); work(range(1, 2))",
        tmp_path,
    )
    assert [*(tmp_path / "kernels-1").iterdir()] == []


@linux
@as_root
@pytest.mark.parametrize(
    "options",
    [
        pytest.param("size=16k", id="full"),
        pytest.param("size=1m,ro", id="read-only", marks=pytest.mark.faults_long),
    ],
)
def test_a_real_disk_that_takes_nothing(tmp_path, options):
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        out = run(
            f"""
            work(range(1, 3))
            try:
                open({str(tmp_path / "filler")!r}, "wb", buffering=0).write(bytes(1 << 20))
            except OSError:
                pass
            print(convgrad._compiler.jit.find_trouble().kind)
            """,
            tmp_path,
            "-W",
            "ignore::ResourceWarning",
        )
        assert out == ("read-only\n" if options.endswith("ro") else "full\n")
        if options.endswith("ro"):
            assert [*tmp_path.iterdir()] == []
        else:
            assert not [*tmp_path.rglob("*.partial")]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def _warm_together(cache: Path, processes: int, calls: str) -> None:
    """Many processes, forked from one that has compiled nothing, wait for a bell and do all work."""
    run(
        f"""
        expect()
        import_all()
        ready, bell = os.pipe(), os.pipe()
        children = []
        for _ in range({processes}):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    os.close(bell[1])
                    os.read(bell[0], 1)  # returns when the parent closes its end
                    work({calls})
                    code = 0
                finally:
                    os._exit(code)
            children.append(child)
        os.close(bell[0])
        os.close(bell[1])
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        assert set(codes) == {{0}}, codes
        """,
        cache,
        "-W",
        "ignore:.*fork.*:DeprecationWarning",
        seconds=600,
    )
    left = [path.suffix for path in (cache / "kernels-1").iterdir()]
    assert set(left) == {".kernel", ".text"}
    run(
        f"work({calls}); assert all(k.origin == 'disk' for k in convgrad._compiler.jit._kernels.values())",
        cache,
    )


@pytest.mark.long
@linux
def test_many_processes_warm_one_cache(tmp_path):
    _warm_together(tmp_path, 6, "range(1, 2)")


@linux
@pytest.mark.faults_long
def test_two_hundred_processes_warm_one_cache(tmp_path):
    _warm_together(tmp_path, 200, "range(6)")


WRITER = """
from convgrad._compiler.jit import cache
print("ready", flush=True)
number = 0
while True:
    entry = cache.Entry("symbol", number % 50, b"code" * 4000)
    cache.write(f"{number % 50:032x}", f"key {number % 50}", entry, (f"{number % 20:032x}", f"text {number % 20}"))
    number += 1
"""


def _kill_writers(cache_dir: Path, times: int) -> None:
    pick = random.Random(7)
    for _ in range(times):
        process = start(WRITER, cache_dir)
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        time.sleep(pick.uniform(0, 0.05))
        process.kill()
        process.communicate()
    with config.scope(cache_dir=str(cache_dir), disk_cache=True):
        place = jit.cache.folder()
        assert place is not None
        partial = [path for path in place.iterdir() if path.suffix == ".partial"]
        assert len(partial) <= 2 * times  # each has two names
        kept = [path for path in place.iterdir() if path.suffix == ".kernel"]
        assert kept
        for path in kept:  # whole, every one
            number = int(path.stem, 16)
            entry = jit.cache.read(path.stem, f"key {number}")
            assert entry == jit.cache.Entry("symbol", number, b"code" * 4000)
        by_text = [path for path in place.iterdir() if path.suffix == ".text"]
        assert by_text
        for path in by_text:
            entry = jit.cache.read_by_text(path.stem, f"text {int(path.stem, 16)}")
            assert entry is not None and entry.code == b"code" * 4000
        for path in partial:
            os.utime(path, (time.time() - 61,) * 2)
        jit.cache.usage()
        assert not [path for path in place.iterdir() if path.suffix == ".partial"]


@linux
def test_killed_while_writing(tmp_path):
    _kill_writers(tmp_path, 2)


@linux
@pytest.mark.faults_long
def test_killed_while_writing_many_times(tmp_path):
    _kill_writers(tmp_path, 200)


@linux
def test_an_interrupted_write_leaves_nothing(folder, monkeypatch):
    def interrupted(descriptor, content):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        jit.cache.write("0" * 32, "key", jit.cache.Entry("symbol", 0, b"code"), ("1" * 32, "text"))
    assert {path.suffix for path in folder.iterdir()} == {".kernel", ".text"}
    assert not [path for path in folder.iterdir() if path.stem in ("0" * 32, "1" * 32)]


def test_without_sources_there_is_no_name_and_no_file(tmp_path, folder, monkeypatch):
    """A frozen program has compiled files only; a hash of nothing would serve every version the same kernels."""
    before = sorted(folder.iterdir())
    monkeypatch.setattr(jit.key, "_PACKAGE", tmp_path / "nowhere")
    monkeypatch.setattr(jit.key, "sources", jit.key.sources.__wrapped__)
    assert origins() == {"llvm"} == origins()
    assert sorted(folder.iterdir()) == before


def test_programs_end(warm):
    """The helper itself: a program that fails is seen to fail."""
    with pytest.raises(AssertionError, match="ended with 3"):
        finish(start("os._exit(3)", warm))
