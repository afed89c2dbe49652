"""A kernel cache that is of no use: `info` and `cache` say so and say why, and touch nothing that is not ours."""

from __future__ import annotations

import errno
import os

import pytest

from convgrad._base import config
from convgrad._compiler import jit

posix = pytest.mark.skipif(os.name != "posix", reason="owners and modes are POSIX's")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return the folder, which is there and has one entry."""
    monkeypatch.setattr(config, "_environment", {})
    monkeypatch.setattr(jit, "_kernels", {})
    monkeypatch.setenv("CONVGRAD_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setenv("CONVGRAD_DISK_CACHE", "1")
    entry = jit.cache.Entry("symbol", 0, b"code")
    assert jit.cache.write("0" * 32, "key", entry)
    return tmp_path / "kept" / "kernels-1"


def _fail(code):
    def fail(*_, **__):
        raise OSError(code, os.strerror(code))

    return fail


def _switch_off(place, monkeypatch):
    monkeypatch.setattr(config, "_environment", {})
    monkeypatch.setenv("CONVGRAD_DISK_CACHE", "0")


def _link(place, monkeypatch):
    place.rename(place.parent / "elsewhere")
    place.symlink_to(place.parent / "elsewhere")


def _put_a_file_there(place, monkeypatch):
    place.rename(place.parent / "elsewhere")
    place.write_text("")


def _share(place, monkeypatch):
    place.chmod(0o777)


def _give_away(place, monkeypatch):
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)


def _hide_the_sources(place, monkeypatch):
    monkeypatch.setattr(jit.key, "sources", _fail(errno.ENOENT))


def _break(name, code):
    def act(place, monkeypatch):
        monkeypatch.setattr(os, name, _fail(code))

    return act


NOT_USED = {
    "off": (_switch_off, "CONVGRAD_DISK_CACHE"),
    "link": (_link, "links are not followed"),
    "no folder": (_put_a_file_there, "it is not a folder"),
    "shared": (_share, "others may write there (mode 0777"),
    "not ours": (_give_away, "it belongs to user"),
    "no sources": (_hide_the_sources, "sources"),
}
NOTHING_NEW = {
    "read-only": (_break("fchmod", errno.EROFS), "its file system is read-only"),
    "full": (_break("write", errno.ENOSPC), "the disk is full"),
    "no permission": (_break("write", errno.EACCES), "we may not write there"),
    "error": (_break("write", errno.EIO), os.strerror(errno.EIO)),
}
WARM = ("cache", "warm", "--shape", "1x4x4x8k3")


@posix
@pytest.mark.parametrize("kind", NOT_USED)
def test_a_cache_that_is_not_used_is_named_and_left_alone(
    convgrad_command, monkeypatch, place, kind
):
    act, reason = NOT_USED[kind]
    act(place, monkeypatch)
    for words in (("info",), ("cache", "stats")):
        shown = convgrad_command(*words)
        assert shown.status == 0 and "not used: " in shown.out and reason in shown.out
        document = convgrad_command(*words, "--json").document
        facts = document["cache"] if words == ("info",) else document
        assert (facts["trouble"], facts["used"], facts["writable"]) == (kind, False, False)
        assert reason in facts["reason"]
    before = sorted(place.parent.rglob("*"))
    for words in (WARM, ("cache", "clear")):
        ending = convgrad_command(*words)
        assert ending.status == 2 and reason in ending.err and ending.err.count("\n") == 1
        assert kind == "off" or str(place) in ending.err
        assert reason in convgrad_command(*words, "--json").document["error"]
    assert sorted(place.parent.rglob("*")) == before


@posix
@pytest.mark.parametrize("kind", NOTHING_NEW)
def test_a_cache_that_keeps_nothing_new_is_named(convgrad_command, monkeypatch, place, kind):
    act, reason = NOTHING_NEW[kind]
    act(place, monkeypatch)
    for words in (("info",), ("cache", "stats")):
        assert f"nothing new is kept: {reason}" in convgrad_command(*words).out
        document = convgrad_command(*words, "--json").document
        facts = document["cache"] if words == ("info",) else document
        assert (facts["trouble"], facts["used"], facts["writable"]) == (kind, True, False)
        assert facts["entries"] == 1
    warmed = convgrad_command(*WARM)
    assert warmed.status == 1 and f"were not kept in {place}: {reason}" in warmed.out
    jit._kernels.clear()
    warmed = convgrad_command(*WARM, "--json")
    assert warmed.status == 1 and warmed.document["compiled"] > 0 == warmed.document["kept"]
    assert (warmed.document["trouble"], warmed.document["reason"]) == (kind, reason)
    assert len([*place.iterdir()]) == 1


def test_a_cache_in_order_says_so(convgrad_command, place):
    stats = convgrad_command("cache", "stats", "--json").document
    assert stats["trouble"] is stats["reason"] is None
    assert stats["used"] is stats["writable"] is True
    assert "in use" in convgrad_command("cache", "stats").out
    assert "kept: " not in convgrad_command("info").out
    warmed = convgrad_command(*WARM, "--json")
    assert warmed.status == 0
    assert warmed.document["kept"] == warmed.document["compiled"] > 0
    assert warmed.document["trouble"] is warmed.document["reason"] is None
    assert not [*place.glob("*.partial")]


@posix
def test_what_cannot_be_removed_is_counted(convgrad_command, monkeypatch, place):
    for name in ("unlink", "fchmod"):
        monkeypatch.setattr(os, name, _fail(errno.EROFS))
    ending = convgrad_command("cache", "clear")
    assert ending.status == 1 and "removed 0 kernels, 0 bytes" in ending.out
    assert "1 are left: its file system is read-only" in ending.out
    document = convgrad_command("cache", "clear", "--json").document
    assert (document["removed"], document["left"], document["bytes"]) == (0, 1, 0)
    assert document["trouble"] == "read-only"


@posix
def test_a_folder_that_is_not_there_yet(convgrad_command, monkeypatch, tmp_path, place):
    """Nothing is made to find out whether it could be."""

    def trouble(base):
        monkeypatch.setattr(config, "_environment", {})
        monkeypatch.setenv("CONVGRAD_CACHE_DIR", str(base))
        return convgrad_command("cache", "stats", "--json").document["trouble"]

    assert trouble(tmp_path / "a" / "b") is None
    assert not (tmp_path / "a").exists()
    (tmp_path / "file").write_text("")
    assert trouble(tmp_path / "file" / "b") == "no folder"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda *_, **__: False)
        assert trouble(tmp_path / "a") == "no permission"
    real = os.statvfs(tmp_path)
    for place_in_it, value, kind in (
        (4, 0, "full"),
        (7, 0, "full"),
        (8, os.ST_RDONLY, "read-only"),
    ):
        fields = [*real]
        fields[5] = max(fields[5], 1)  # how many files there may be; some systems do not say
        fields[place_in_it] = value
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "statvfs", lambda _, fields=fields: os.statvfs_result(fields))
            assert trouble(tmp_path / "a") == kind


def test_no_home(convgrad_command, monkeypatch, place):
    monkeypatch.setattr(config, "_environment", {})
    monkeypatch.setenv("CONVGRAD_CACHE_DIR", "~nobody-of-this-name/x")
    document = convgrad_command("cache", "stats", "--json").document
    assert (document["trouble"], document["folder"]) == ("no home", None)
