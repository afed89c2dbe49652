"""Packs for CPUs this machine is not pass their own test there: in emulators, and in node for wasm."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import convgrad
from packs import run, tool

pytestmark = pytest.mark.cc_long
HERE = Path(__file__).parent
LINES = """
conv2d 2x9x9x8 3x3x8x12
conv2d 1x12x12x16 3x3x16x16
conv2d_backprop_input 2x9x9x8 3x3x8x12 strides=2
conv2d_backprop_filter 2x9x9x8 3x3x8x12
conv2d 2x8x9x9 3x3x4x12 data_format=NCHW
conv2d_backprop_input 1x7x9x9 3x3x7x5 data_format=NCHW dtype=float64
conv2d_backprop_filter 1x7x9x9 3x3x7x5 data_format=NCHW dtype=bfloat16
conv2d 1x9x9x5 3x3x5x4 dtype=float16 dilations=2
conv2d 1x9x9x5 2x3x5x4 dtype=bfloat16 padding=VALID
conv2d_backprop_filter 1x9x9x5 3x3x5x4 dtype=float16
depthwise_conv2d 2x9x9x12 3x3x12x1 strides=2
depthwise_conv2d 1x9x9x5 3x3x5x2 dtype=float16
depthwise_conv2d_backprop_input 2x9x9x12 3x3x12x1 strides=2
depthwise_conv2d_backprop_input 1x9x9x5 3x3x5x2 dtype=float64
depthwise_conv2d_backprop_filter 2x9x9x12 3x3x12x1
depthwise_conv2d_backprop_filter 1x5x9x9 3x3x5x2 data_format=NCHW dtype=bfloat16
conv2d_backprop_filter 0x4x4x2 1x1x2x3
conv2d 2x9x9x8 3x3x8x12 bias=output
conv2d_backprop_input 2x9x9x8 3x3x8x12 strides=2 bias=input
conv2d_backprop_filter 1x9x9x5 3x3x5x4 dtype=float16 bias=output
depthwise_conv2d_backprop_filter 2x9x9x12 3x3x12x1 bias=input
batch_norm_act.forward 2x81x12 NHWC float32 relu residual=before given=weight,bias epsilon=0.001
batch_norm_act.forward 2x81x5 NCHW float16 silu given= epsilon=0.001
batch_norm_act.forward_frozen 2x81x5 NHWC bfloat16 gelu residual=after given=weight epsilon=1e-05
batch_norm_act.backward 2x81x5 NHWC float32 relu6 residual=before wanted=dx,parameters,dresidual epsilon=0.001
batch_norm_act.backward 2x81x12 NCHW float64 leaky_relu wanted=dx,parameters epsilon=0.001 slope=0.1
conv2d 2x9x9x8 3x3x8x12 | batch_norm_act.forward relu given=weight,bias epsilon=0.001
conv2d 2x9x9x8 3x3x8x12 bias=output | batch_norm_act.forward_frozen relu6 given=weight,bias epsilon=0.001
depthwise_conv2d 1x9x9x5 3x3x5x2 dtype=float16 | batch_norm_act.forward_frozen hardswish given=bias epsilon=0.001
"""
COUNT = len(LINES.split("\n")) - 2
LINUX = {
    "sse2": ("gcc", []),
    "neon": ("aarch64-linux-gnu-gcc", ["qemu-aarch64", "-cpu", "cortex-a57"]),
    "riscv64": ("riscv64-linux-gnu-gcc", ["qemu-riscv64", "-cpu", "rv64,v=false"]),
    "riscv64v": (
        "riscv64-linux-gnu-gcc",
        ["qemu-riscv64", "-cpu", "rv64,v=true,vlen=128,vext_spec=v1.0"],
    ),
}
BOARDS = {
    "cortex_m4": ("cortex-m4", "fpv4-sp-d16", "mps2-an386"),
    "cortex_m7": ("cortex-m7", "fpv5-d16", "mps2-an500"),
}
THUMB = ("-mthumb", "-mfloat-abi=hard", "--specs=rdimon.specs", "-nostartfiles")


def export(folder: Path, target: str) -> list[Path]:
    convgrad.export(LINES, folder, name="dev", target=target)
    return [folder / "dev_test.c", folder / "dev.c", folder / "libdev.a"]


def passes(command: list[str | Path]) -> None:
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, (done.stdout[-3000:], done.stderr[-1000:])
    assert f"dev: {COUNT} problems, 0 failed, 0 left out" in done.stdout


@pytest.mark.parametrize("target", LINUX)
def test_on_linux(tmp_path, target):
    compiler, emulator = LINUX[target]
    for program in (compiler, *emulator[:1]):
        tool(program)
    files = export(tmp_path, target)
    words = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", "-static"]
    run(compiler, *words, *files, "-o", tmp_path / "test")
    passes([*emulator, tmp_path / "test"])


@pytest.mark.parametrize("target", BOARDS)
def test_on_bare_cortex_m(tmp_path, target):
    cpu, fpu, board = BOARDS[target]
    compiler, emulator = tool("arm-none-eabi-gcc"), tool("qemu-system-arm")
    test, source, library = export(tmp_path, target)
    words = [
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        f"-mcpu={cpu}",
        f"-mfpu={fpu}",
        *THUMB,
    ]
    start = tmp_path / "start.o"
    run(compiler, "-O1", *words[5:], "-c", HERE / "devices/start.c", "-o", start)
    # Batch norm takes the root of a double, which the M4 has no instruction for.
    files = [start, test, source, library, "-lm", "-T", HERE / "thumb.ld", "-o", tmp_path / "test"]
    run(compiler, *words, *files)
    options = ["-nographic", "-semihosting-config", "enable=on,target=native", "-M", board]
    passes([emulator, *options, "-kernel", tmp_path / "test"])


@pytest.mark.parametrize("target", ["wasm", "wasm_simd"])
def test_in_node(tmp_path, target):
    compiler, linker, node = tool("clang"), tool("wasm-ld"), tool("node")
    test, source, library = export(tmp_path, target)
    words = ["--target=wasm32", "-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-nostdlib"]
    parts = []
    for file in (test, source):
        parts.append(file.with_suffix(".o"))
        own = ["-Dmain=test_main", "-isystem", HERE / "devices"]
        run(compiler, *words, *own, "-c", file, "-o", parts[-1])
    module = tmp_path / "test.wasm"
    ends = ["--no-entry", "--export=test_main", "--allow-undefined", "-o", module]
    run(linker, *parts, library, *ends)
    passes([node, HERE / "devices/run_wasm.mjs", module])
