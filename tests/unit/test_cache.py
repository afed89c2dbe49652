"""The disk cache: what is beyond doubt is used, all else costs a recompile and nothing more."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from calling import ROWS, SIGNATURE
from convgrad._base import config
from convgrad._base.errors import CompileError
from convgrad._compiler import jit
from convgrad._compiler.codegen import I64, KernelBuilder
from convgrad._compiler.jit import cache, key, llvm, private

TARGET = ROWS[0]
posix = pytest.mark.skipif(os.name != "posix", reason="permissions are POSIX's")
LOST = 0
"""Of `cache.lost`, in a test."""


@pytest.fixture(params=["by descriptor", "by name"])
def folder(request, tmp_path, monkeypatch):
    """Return where entries are; also as on Windows, where the folder is not opened."""
    monkeypatch.setattr(private, "BY_DESCRIPTOR", request.param == "by descriptor")
    monkeypatch.setattr(jit, "_kernels", {})
    monkeypatch.setattr(cache, "_lost", (LOST, None))
    # For the process, not a scope(): other threads do not see the scopes of this one.
    settings = {"cache_dir": str(tmp_path / "cache"), "disk_cache": True, "cache_bytes": 1 << 30}
    monkeypatch.setattr(config, "_process", settings)
    return tmp_path / "cache" / "kernels-1"


def _write(number):
    k = KernelBuilder("probe", TARGET)
    k.arg_pointer(0, I64).store_int(number)
    return k.finish()


def _load(number=7, memory=False):
    """Load a kernel that answers `number`, check that it does, return where it came from."""
    if not memory:
        jit._kernels.clear()
    kernel = jit.load(("answer", number), lambda: _write(number), TARGET)
    out = np.zeros(1, np.int64)
    SIGNATURE(kernel.address)(np.array([out.ctypes.data]).ctypes.data, 0, 1, 0)
    assert out[0] == number
    return kernel.origin


def _entry(folder):
    """Return the only entry, without its second name: that is tested further below."""
    for path in folder.glob("*.text"):
        path.unlink()
    (path,) = folder.glob("*.kernel")
    return path


def test_first_llvm_then_disk_then_memory(folder):
    assert _load() == "llvm"
    assert _load() == "disk"
    before = next(iter(jit._kernels.values()))
    assert jit.load(("answer", 7), pytest.fail, TARGET) is before
    one, other = sorted(folder.iterdir())
    assert {one.suffix, other.suffix} == {".kernel", ".text"} and one.samefile(other)


def test_emit_is_not_called_when_the_disk_has_it(folder):
    _load()
    jit._kernels.clear()
    assert jit.load(("answer", 7), pytest.fail, TARGET).origin == "disk"


@posix
def test_everything_is_private(folder):
    _load()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(_entry(folder).stat().st_mode) == 0o600


@pytest.mark.parametrize("keep", [0, 10, 60, 200, -1])
def test_truncated_entries_are_replaced(folder, keep):
    _load()
    path = _entry(folder)
    path.write_bytes(path.read_bytes()[:keep])
    assert _load() == "llvm" and _load() == "disk"


def test_every_flipped_bit_is_seen(folder):
    _load()
    path = _entry(folder)
    good = path.read_bytes()
    name = key.identity_text(("answer", 7), TARGET)
    assert cache._decode(good, name) is not None
    for bit in range(8 * len(good)):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        assert cache._decode(bytes(flipped), name) is None, bit
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 128]))
    assert _load() == "llvm" and _load() == "disk"


def test_an_entry_for_another_key_is_not_used(folder):
    _load(7)
    seven = _entry(folder).read_bytes()
    path = folder / (key.digest(key.identity_text(("answer", 8), TARGET)) + ".kernel")
    path.write_bytes(seven)
    path.chmod(0o600)
    assert _load(8) == "llvm"


@posix
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_entries_others_can_write_are_not_used(folder, mode):
    _load()
    _entry(folder).chmod(mode)
    assert _load() == "llvm" and _load() == "disk"


@posix
def test_entries_of_others_are_not_used(folder, monkeypatch):
    _load()
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert _load() == "llvm"


@posix
def test_links_are_not_followed(folder, tmp_path):
    _load()
    path = _entry(folder)
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    assert _load() == "llvm"
    assert elsewhere.exists() and not path.is_symlink()


@posix
@pytest.mark.parametrize("kind", ["shared", "link", "file"])
def test_a_doubtful_folder_is_not_used(folder, tmp_path, kind):
    folder.parent.mkdir()
    if kind == "shared":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "link":
        (tmp_path / "real").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "real")
    else:
        folder.write_text("")
    assert _load() == "llvm" and _load() == "llvm"


def test_a_directory_in_the_place_of_an_entry_costs_nothing(folder):
    _load()
    path = _entry(folder)
    path.unlink()
    path.mkdir()
    assert _load() == "llvm" and path.is_dir()


def _break(patch, call, code):
    """Let one call of the system fail; for opening it says what."""

    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    def opening(path, flags, *others, **more):
        kind = "new" if flags & os.O_CREAT else "folder" if flags & os.O_DIRECTORY else "entry"
        if call == f"open {kind}":
            fail()
        return real(path, flags, *others, **more)

    real = os.open
    name, function = ("open", opening) if call.startswith("open ") else (call, fail)
    patch.setattr(os, name, function)


@posix
@pytest.mark.parametrize(
    "code", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.ESTALE]
)
@pytest.mark.parametrize("call", ["open new", "fchmod", "write", "replace"])
def test_a_disk_that_cannot_be_written_is_no_error(folder, monkeypatch, call, code):
    _break(monkeypatch, call, code)
    assert _load() == "llvm"
    assert [*folder.iterdir()] == []


@posix
@pytest.mark.parametrize("call", ["open folder", "open entry", "read", "fstat", "scandir"])
def test_a_disk_that_cannot_be_read_is_no_error(folder, monkeypatch, call):
    """A worn or vanished disk: every call may say EIO."""
    monkeypatch.setattr(private, "BY_DESCRIPTOR", True)  # names need no folder to be opened
    _load()
    cache._looks.clear()
    with monkeypatch.context() as worn:
        _break(worn, call, errno.EIO)
        assert _load() == ("disk" if call == "scandir" else "llvm")
        assert _load(8) == "llvm" and jit.stats().disk_entries in (0, 1, 2)
    assert _load() == "disk"  # a good entry that could not be read is left alone
    assert _load(9) == "llvm" and _load(9) == "disk"


@posix
def test_a_folder_that_cannot_be_made_is_no_error(tmp_path):
    (tmp_path / "file").write_text("")
    with config.scope(cache_dir=str(tmp_path / "file" / "below")):
        assert _load() == "llvm" and _load() == "llvm"
        assert jit.stats().disk_entries == 0 and jit.clear() == 0


def test_the_disk_can_be_turned_off(folder):
    with config.scope(disk_cache=False):
        assert _load() == "llvm" and _load() == "llvm"
        assert jit.stats().folder is None
    assert not folder.exists()


def test_the_oldest_go_first(folder):
    for number in range(4):
        _load(number)
        path = folder / (key.digest(key.identity_text(("answer", number), TARGET)) + ".kernel")
        os.utime(path, (number * 1000.0, number * 1000.0))
    _load(0)  # a hit makes it young
    size = path.stat().st_size
    with config.scope(cache_bytes=3 * size + size // 2):
        _load(4)
    assert [_load(number) for number in (0, 3, 4)] == ["disk"] * 3
    with config.scope(disk_cache=True, cache_bytes=1 << 30):
        assert [_load(number) for number in (1, 2)] == ["llvm"] * 2


def test_the_size_stays_under_its_bound_at_every_write(folder):
    """Whatever the sizes: an entry above the usual 8 KB once counted as 8, and folders outgrew their bound."""
    bound, sizes = 1 << 20, (100_000, 300, 100_000, 20_000)
    with config.scope(cache_bytes=bound):
        for number in range(80):
            entry = cache.Entry("symbol", 0, bytes(sizes[number % len(sizes)]))
            assert cache.write(f"{number:032x}", "key", entry)
            assert cache.usage()[1] <= bound, number
        assert cache.usage()[1] > bound // 2  # and no more is dropped than need be


def test_a_full_folder_is_not_looked_through_at_every_write(folder, monkeypatch):
    """Each look at 15,000 files takes 200 ms; of a full folder every write once took one."""
    looks = []
    files = cache._files
    monkeypatch.setattr(cache, "_files", lambda inside: looks.append(1) or files(inside))
    with config.scope(cache_bytes=1 << 18):  # some 250 entries
        for number in range(1000):
            cache.write(f"{number:032x}", "key", cache.Entry("symbol", 0, bytes(900)))
    assert len(looks) < 333


def test_leftovers_of_dead_processes_go(folder):
    _load(1)
    old, young = folder / "a.1.1.partial", folder / "b.1.1.partial"
    for path in (old, young):
        path.write_text("")
    os.utime(old, (0, 0))
    cache._looks.clear()  # as in a new process, which looks at the folder when it first writes
    _load(2)
    assert young.exists() and not old.exists()


def test_clear_and_stats(folder):
    _load(1)
    _load(2)
    found = jit.stats()
    assert (found.kernels, found.compiled, found.from_disk) == (1, 1, 0)
    assert found.disk_entries == 2 and found.disk_bytes > 0 and found.folder == str(folder)
    assert jit.clear() == 2
    found = jit.stats()
    assert (found.kernels, found.disk_entries, found.disk_bytes) == (0, 0, 0)


def test_threads_compile_once(folder):
    written, barrier, found = [], threading.Barrier(8), []

    def emit():
        written.append(1)
        time.sleep(0.05)
        return _write(5)

    def work():
        barrier.wait()
        found.append(jit.load("threads", emit, TARGET))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(written) == 1 and len(set(map(id, found))) == 1


def test_a_failed_compile_can_be_tried_again(folder):
    def fail():
        raise CompileError("no")

    with pytest.raises(CompileError):
        jit.load(("answer", 7), fail, TARGET)
    assert _load() == "llvm"


# A kernel's second name: by its text.


def _renamed(number=7, scratch=None):
    """Load the same text under another key, as after a change of the sources; return the kernel."""
    jit._kernels.clear()

    def emit():
        written = _write(number)
        return written if scratch is None else replace(written, scratch_bytes=scratch)

    _renamed.count += 1
    kernel = jit.load(("renamed", _renamed.count), emit, TARGET)
    out = np.zeros(1, np.int64)
    SIGNATURE(kernel.address)(np.array([out.ctypes.data]).ctypes.data, 0, 1, 0)
    assert out[0] == number
    return kernel


_renamed.count = 0


def test_another_key_and_the_same_text_compile_nothing(folder, monkeypatch):
    _load()
    with monkeypatch.context() as without:
        without.setattr(llvm, "compile_object", pytest.fail)
        before = jit.counted()
        assert _renamed().origin == "text" and _load() == "disk"
        spent = jit.counted() - before
        assert (spent.compiled, spent.from_text, spent.from_disk) == (0, 1, 1)
        assert spent.writing_s > 0 < spent.loading_s and spent.llvm_s == 0
    before = jit.counted()
    assert _renamed(8).origin == "llvm"
    spent = jit.counted() - before
    assert (spent.compiled, spent.from_text) == (1, 0) and spent.llvm_s > 0


def test_the_new_key_is_found_without_the_text_next_time(folder):
    _load()
    _renamed()
    jit._kernels.clear()
    again = ("renamed", _renamed.count)
    assert jit.load(again, pytest.fail, TARGET).origin == "disk"
    assert _load() == "disk", "the old one stays: another version may still use it"
    assert sorted(path.suffix for path in folder.iterdir()) == [".kernel", ".kernel", ".text"]


def test_the_workspace_is_that_of_the_new_source(folder):
    """It is not part of the text."""
    _load()
    kernel = _renamed(scratch=640)
    assert (kernel.origin, kernel.scratch_bytes) == ("text", 640)
    jit._kernels.clear()
    kernel = jit.load(("renamed", _renamed.count), pytest.fail, TARGET)
    assert (kernel.origin, kernel.scratch_bytes) == ("disk", 640)


@posix
@pytest.mark.parametrize("how", ["cut", "bit", "shared", "link", "another text", "folder"])
def test_what_is_wrong_by_text_is_compiled_anew(folder, tmp_path, how):
    _load(8)
    (eight,) = folder.glob("*.text")
    kept = eight.read_bytes()
    eight.unlink()
    _load(7)
    (path,) = folder.glob("*.text")
    good = path.read_bytes()
    path.unlink()  # not the same file as the entry by its key any more
    content = {"cut": good[:-9], "bit": good[:-1] + bytes([good[-1] ^ 1]), "another text": kept}
    if how == "folder":
        path.mkdir()
    elif how == "link":
        (tmp_path / "elsewhere").write_bytes(good)
        (tmp_path / "elsewhere").chmod(0o600)
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.write_bytes(content.get(how, good))
        path.chmod(0o666 if how == "shared" else 0o600)
    assert _renamed().origin == "llvm"
    if how != "folder":
        assert _renamed().origin == "text" and not path.is_symlink()
    assert _load(7) == "disk"


@posix
@pytest.mark.parametrize("code", [errno.EPERM, errno.EMLINK, errno.EOPNOTSUPP])
def test_a_disk_without_second_names_keeps_kernels_by_key(folder, monkeypatch, code):
    _break(monkeypatch, "link", code)
    assert _load() == "llvm" and _load() == "disk"
    assert [path.suffix for path in folder.iterdir()] == [".kernel"]
    assert _renamed().origin == "llvm" and cache.lost()[0] == LOST


@posix
def test_a_read_only_disk_still_gives_what_it_has(folder, monkeypatch):
    """The key is new each time, so the text is written each time; nothing counts as lost, for nothing was compiled."""
    _load()
    before = sorted(folder.iterdir())
    _break(monkeypatch, "open new", errno.EROFS)
    assert [_renamed().origin for _ in range(2)] == ["text", "text"]
    assert sorted(folder.iterdir()) == before and cache.lost()[0] == LOST


def test_both_names_go_together_and_count_once(folder):
    _load(1)
    one = cache.usage()
    assert (one.kernels, one.by_text) == (1, 1)
    assert one.bytes == next(folder.glob("*.kernel")).stat().st_size
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    with config.scope(cache_bytes=one.bytes + one.bytes // 2):
        _load(2)
        assert cache.usage()[0] == 1
    assert len({path.stat().st_ino for path in folder.iterdir()}) == 1
    assert _load(2) == "disk" and _renamed(2).origin == "text" and _renamed(1).origin == "llvm"


def test_a_hit_by_text_makes_it_young(folder):
    _load(1)
    _load(2)
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    with config.scope(disk_cache=True):
        text = key.text_of(_write(1).ir, TARGET)
        assert cache.read_by_text(key.digest(text), text) is not None
    young = [path for path in folder.iterdir() if path.stat().st_mtime > 1e6]
    assert sorted(path.suffix for path in young) == [".kernel", ".text"]


def test_clearing_removes_both_names(folder):
    _load(1)
    _load(2)
    _renamed(2)
    assert jit.stats().disk_by_text == 2 and jit.stats().from_text == 1
    assert jit.clear() == 3 and [*folder.iterdir()] == []


PROGRAM = """
import sys, time
sys.path.insert(0, {tests!r})
import numpy as np
from convgrad._compiler import jit
target = jit.host_target()
def emit():
    from convgrad._compiler.codegen import I64, KernelBuilder
    k = KernelBuilder("probe", target)
    k.arg_pointer(0, I64).store_int(11)
    return k.finish()
import ctypes
call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
for number in range({count}):
    kernel = jit.load(("process", number), emit, target)
    out = np.zeros(1, np.int64)
    call(kernel.address)(np.array([out.ctypes.data]).ctypes.data, 0, 1, 0)
    assert out[0] == 11
print(kernel.origin, "llvmlite" in sys.modules)
"""


def _process(cache_dir, count=1):
    tests = str(Path(__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(tests=tests, count=count)],
        env={**os.environ, "CONVGRAD_CACHE_DIR": str(cache_dir)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(not jit.elf.supported(), reason="LLVM loads objects here")
def test_a_warm_process_never_imports_llvmlite(tmp_path):
    answers = [_process(tmp_path).communicate() for _ in range(2)]
    assert answers == [("llvm True\n", ""), ("disk False\n", "")]


def test_many_processes_share_a_folder(tmp_path):
    running = [_process(tmp_path, 20) for _ in range(4)]
    for process in running:
        _, errors = process.communicate()
        assert process.returncode == 0 and errors == "", errors
    kept = [*(tmp_path / "kernels-1").iterdir()]
    assert sorted(path.suffix for path in kept) == [".kernel"] * 20 + [".text"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_forked_during_a_compile_is_not_stuck(folder):
    """The other thread holds a kernel's lock, ours around LLVM and llvmlite's own."""
    inside, leave = threading.Event(), threading.Event()

    def emit():
        with llvm.lock, llvm.binding().ffi.lib._lock:
            inside.set()
            leave.wait(10)
            return _write(3)

    thread = threading.Thread(target=lambda: jit.load("slow", emit, TARGET))
    thread.start()
    assert inside.wait(10)
    threading.Timer(0.2, leave.set).start()
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if jit.load("slow", lambda: _write(3), TARGET).address else 1)
        except BaseException:
            os._exit(2)
    deadline = time.monotonic() + 20
    status = 0
    while time.monotonic() < deadline:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, 9)
        os.waitpid(child, 0)
        pytest.fail("the child is stuck")
    thread.join()
    assert os.waitstatus_to_exitcode(status) == 0


def test_platform_folders(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.platform_folder() == Path("/somewhere/convgrad")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.platform_folder() == tmp_path / ".cache" / "convgrad"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.platform_folder() == tmp_path / "Library" / "Caches" / "convgrad"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache.platform_folder() == tmp_path / "local" / "convgrad"
