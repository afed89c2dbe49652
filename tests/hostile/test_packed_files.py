"""Archives of a few hundred kilobytes that unpack to hundreds of megabytes: refused by their headers, unread."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from child_python import child_environment
from convgrad._apps.cli.main import main

LARGE = 256 << 20


def header(shape: str, descr: str = "<f4", more: int = 0) -> bytes:
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(text) + more) + text


def pack(name: str, head: bytes, fill: bytes, packing: int = zipfile.ZIP_DEFLATED) -> None:
    """Write an archive with one member: a header and many equal bytes."""
    with (
        zipfile.ZipFile(name, "w", packing, compresslevel=1) as archive,
        archive.open("x.npy", "w", force_zip64=True) as file,
    ):
        file.write(head)
        for _ in range(LARGE >> 20):
            file.write(fill * (1 << 20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("f.npy", np.ones((3, 3, 4, 1), np.float32))
    return tmp_path


PROGRAM = r"""
import contextlib, io, json, re, sys
from pathlib import Path
from convgrad._apps.cli.main import main

def peak():
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) << 10

def told(*words):
    with contextlib.redirect_stderr(io.StringIO()) as said:
        status = main(words)
    return status, said.getvalue()

told("run", "conv2d", "--input", "small.npz", "--filter", "f.npy")  # whatever is imported is
found = {}
for words in json.loads(sys.argv[1]):
    before = peak()
    found[words[-1]] = (*told(*words), peak() - before)
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_nothing_is_unpacked_before_its_header_was_read(folder):
    """A file of 4.7 MB took 2.1 GB. One process for all: each may add a little to the peak, or has unpacked it."""
    np.savez_compressed("small.npz", np.ones((1, 5, 5, 4), np.float32))
    square = "(1, 8192, 8192, 1)"
    assert LARGE == 8192 * 8192 * 4
    pack("trailing.npz", header("(1, 5, 5, 4)"), b"\0")
    pack("channels.npz", header(square), b"\0")
    pack("dtype.npz", header(square, "<u4"), b"\0")
    pack("header.npz", header("(1, 5, 5, 4)", more=LARGE), b" ")
    assert all(Path(name).stat().st_size < LARGE // 100 for name in ("trailing.npz", "header.npz"))
    reasons = {
        "trailing.npz": "has 400 bytes of data, it holds",
        "channels.npz": "evenly divisible",
        "dtype.npz": "holds uint32",
        "header.npz": "not an array NumPy saved",
    }
    words = [["run", "conv2d", "--filter", "f.npy", "--input", name] for name in reasons]
    page = {"format": "convgrad-page", "version": 1, "name": "p", "wires": []}
    page["blocks"] = [{"id": "x", "type": "Placeholder", "at": [0, 0], "pins": {}}]
    Path("page.json").write_text(json.dumps(page))
    for name in ("trailing.npz", "header.npz"):
        reasons[f"x={name}"] = reasons[name]
        words.append(["graph", "run", "page.json", "--feed", f"x={name}"])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(words)],
        env=child_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    for name, (status, said, grown) in json.loads(done.stdout.splitlines()[-1]).items():
        assert status == 2 and reasons[name] in said and said.count("\n") == 1, (name, said)
        assert grown < LARGE // 8, (name, grown)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_packings_that_python_cannot_stop_are_refused_unread(folder, packing, monkeypatch, capsys):
    """Some 600 bytes of bzip2 unpack to gigabytes, whatever size the archive states."""
    with zipfile.ZipFile("x.npz", "w", packing) as archive:
        archive.writestr("x.npy", b"anything")
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("it was unpacked"))
    assert main(["run", "conv2d", "--input", "x.npz", "--filter", "f.npy"]) == 2
    assert "must be stored or deflated" in capsys.readouterr().err


def test_memory_for_a_packed_array_is_asked_for(folder, capsys):
    """The size of the member is a promise too: it is believed only as far as memory goes."""
    size = 1 << 50
    with zipfile.ZipFile("x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", header(f"(1, 1, {size // 16}, 4)"))
    content = Path("x.npz").read_bytes()
    length = len(header(f"(1, 1, {size // 16}, 4)"))
    # The sizes of the central directory are replaced by those of zip64, in an extra field.
    at = content.rindex(b"PK\x01\x02")
    entry = bytearray(content[at:])
    end = entry.index(b"PK\x05\x06")
    name = entry[46:51]
    entry[24:28] = b"\xff" * 4
    entry[30:32] = struct.pack("<H", 12)
    extra = struct.pack("<HHQ", 1, 8, size + length)
    tail = bytearray(entry[end:])
    tail[12:16] = struct.pack("<I", 51 + len(extra))
    Path("x.npz").write_bytes(content[:at] + entry[:46] + name + extra + tail)
    assert main(["run", "depthwise_conv2d", "--input", "x.npz", "--filter", "f.npy"]) == 2
    said = capsys.readouterr().err
    assert "the compressed input" in said and said.count("\n") == 1
