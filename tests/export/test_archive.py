"""Archives are read by the tools of each format, and a program that calls one kernel gets one member."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from convgrad._apps.export import archive
from convgrad._compiler.jit import llvm, objects
from convgrad._compiler.targets import ALL, System, Target, find

NAMES = ["cgk_0123456789abcdef", "cgk_fedcba9876543210", "cgk_k"]
"""Names that need the table of long ones, and one that does not."""
PAIRS = [
    (row, system) for row in ALL for system in row.systems if row.name not in ("avx512", "avx2")
]


def _object(target: Target, system: System, name: str, text: str) -> bytes:
    return llvm.compile_for(text.replace("NAME", name), objects.machine(target, system.triple))


def _kernel(target: Target, system: System, name: str, number: int) -> bytes:
    text = (
        f"define void @NAME(ptr %args) nounwind {{\n store i64 {number}, ptr %args\n ret void\n}}\n"
    )
    return _object(target, system, name, text)


def _members(target: Target, system: System) -> list[tuple[str, bytes]]:
    return [(name, _kernel(target, system, name, 7 + at)) for at, name in enumerate(NAMES)]


def _run(*command: str | Path) -> str:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def _tool(*names: str) -> str:
    for name in names:
        for found in (shutil.which(name), f"/usr/lib/llvm-14/bin/{name}"):
            if found and Path(found).exists():
                return found
    pytest.skip(f"none of {', '.join(names)} is installed")


each_pair = pytest.mark.parametrize(("target", "system"), PAIRS, ids=lambda each: each.name)


@each_pair
def test_the_order_of_members_and_repeated_ones_do_not_matter(target, system):
    members = _members(target, system)
    made = archive.archive(members, system.archive_style)
    assert made == archive.archive([*members[::-1], members[1]], system.archive_style)
    assert made.startswith(b"!<arch>\n")


@each_pair
def test_tools_list_members_and_index(target, system, tmp_path):
    path = tmp_path / "libpack.a"
    path.write_bytes(archive.archive(_members(target, system), system.archive_style))
    ar, nm = _tool("llvm-ar"), _tool("llvm-nm")
    assert _run(ar, "t", path).split() == [f"{name}.o" for name in NAMES]
    index = _run(nm, "--print-armap", path).partition("\n\n")[0].splitlines()[1:]
    prefix = system.symbol_prefix
    assert sorted(index) == [f"{prefix}{name} in {name}.o" for name in NAMES]
    for name, code in _members(target, system):
        unpacked = subprocess.run([ar, "p", path, f"{name}.o"], capture_output=True, check=True)
        assert unpacked.stdout.startswith(code) and len(unpacked.stdout) - len(code) < 8


def test_binutils_list_members_and_index(tmp_path):
    target = find("sse2")
    path = tmp_path / "libpack.a"
    path.write_bytes(archive.archive(_members(target, target.system_called()), "gnu"))
    assert _run(_tool("ar"), "t", path).split() == [f"{name}.o" for name in NAMES]
    index = _run(_tool("nm"), "-s", path).partition("\n\n")[0]
    assert all(f"{name} in {name}.o" in index for name in NAMES)


CALLER = """
declare void @cgk_0123456789abcdef(ptr)
define i64 @START() nounwind {
  %words = alloca i64
  call void @cgk_0123456789abcdef(ptr %words)
  %value = load i64, ptr %words
  ret i64 %value
}
"""


def _linked(target: Target, system: System, folder: Path) -> bytes:
    """Link a program that calls one kernel; returns what the linker made, symbols and all."""
    library, program, out = folder / "libpack.a", folder / "program.o", folder / "out"
    library.write_bytes(archive.archive(_members(target, system), system.archive_style))
    start = "main" if system.object_format == "macho" else "start"
    text = CALLER.replace("START", start)
    program.write_bytes(_object(target, system, "", text))
    if system.object_format == "elf":
        _run(_tool("ld.lld"), "-e", start, "-o", out, program, library)
    elif system.object_format == "wasm":
        _run(_tool("wasm-ld"), f"--entry={start}", "-o", out, program, library)
    elif system.object_format == "coff":
        command = ["/subsystem:console", f"/entry:{start}", "/map", f"/out:{out}"]
        _run(_tool("lld-link"), *command, program, library)
        out = folder / "out.map"
    else:
        arch = "arm64" if target.architecture == "aarch64" else "x86_64"
        platform = ["ios", "13.0"] if system.name == "ios" else ["macos", "11.0"]
        version = ["-platform_version", platform[0], platform[1], platform[1]]
        # No libSystem here: a bundle needs none.
        _run(_tool("ld64.lld"), "-arch", arch, *version, "-bundle", "-o", out, program, library)
    return out.read_bytes()


@each_pair
def test_a_program_that_calls_one_kernel_gets_one_member(target, system, tmp_path):
    made = _linked(target, system, tmp_path)
    assert NAMES[0].encode() in made
    assert not any(name.encode() in made for name in NAMES[1:])


def test_gnu_ld_takes_one_member(tmp_path):
    target = find("sse2")
    _linked(target, target.system_called(), tmp_path)
    _run(
        _tool("ld"),
        "-e",
        "start",
        "-o",
        tmp_path / "out",
        tmp_path / "program.o",
        tmp_path / "libpack.a",
    )
    made = (tmp_path / "out").read_bytes()
    assert NAMES[0].encode() in made and NAMES[1].encode() not in made


@pytest.mark.parametrize("style", ["gnu", "bsd"])
def test_an_archive_of_nothing_is_one(style):
    assert archive.archive([], style) == b"!<arch>\n"


def test_files_of_bsd_archives_lie_on_eight_bytes():
    target = find("neon")
    made = archive.archive(_members(target, target.system_called("macos")), "bsd")
    found = [at for at in range(len(made)) if made.startswith(b"\xcf\xfa\xed\xfe", at)]
    assert len(found) == 3 and all(at % 8 == 0 for at in found)


def test_mistakes_are_named():
    with pytest.raises(ValueError, match="`style` must be gnu or bsd, got 'sysv'"):
        archive.archive([], "sysv")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two members define f, and they differ"):
        archive.archive([("f", b"f1"), ("f", b"f2")], "gnu")
    with pytest.raises(ValueError, match="the member for f does not define it"):
        archive.archive([("f", b"f")], "bsd")
