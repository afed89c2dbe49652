"""Packs of more than plain convolutions compute the bits of the engine: bias, batch norm, and blocks of both."""

from __future__ import annotations

import ctypes
import re
import subprocess

import numpy as np
import pytest

import convgrad
from convgrad import _engine
from convgrad._apps.export import recipe
from convgrad._problem.convolution import Problem
from convgrad.errors import ArgumentError
from packs import INCLUDE, Library, tool

LINES = """
conv2d 4x14x14x32 3x3x32x48 bias=output
conv2d_backprop_input 4x14x14x32 3x3x32x48 bias=input dtype=float16
conv2d_backprop_filter 4x14x14x32 3x3x32x48 bias=output
depthwise_conv2d_backprop_filter 4x28x28x96 3x3x96x1 bias=input dtype=bfloat16
batch_norm_act.forward 8x196x32 NHWC float32 relu residual=before given=weight,bias epsilon=0.001
batch_norm_act.forward_frozen 8x196x32 NCHW float16 silu given=weight epsilon=1e-05
batch_norm_act.backward 8x196x32 NHWC float32 gelu residual=before wanted=dx,parameters,dresidual epsilon=0.001
batch_norm_act.backward_frozen 8x196x32 NCHW float64 leaky_relu wanted=dx,parameters epsilon=0.001 slope=0.1
conv2d 4x14x14x32 3x3x32x48 | batch_norm_act.forward relu given=weight,bias epsilon=0.001
conv2d 4x14x14x32 3x3x32x48 bias=output | batch_norm_act.forward_frozen relu6 given=weight,bias epsilon=0.001
depthwise_conv2d 4x28x28x96 3x3x96x1 | batch_norm_act.forward_frozen hardswish residual=after given= epsilon=0.001
"""
_RUN = """
#include "convgrad_pack.h"
int run_all(const cg_entry *e, void *const *p, void *s, size_t n, int threads, int *shared);
int run_all(const cg_entry *e, void *const *p, void *s, size_t n, int threads, int *shared) {
  return cg_run_places_parallel(e, p, s, n, threads, parallel, shared);
}
"""


def drawn(what: recipe.Recipe, rng: np.random.Generator) -> dict[str, np.ndarray]:
    found = {}
    for place in what.places:
        if place.role == "constant":
            found[place.name] = np.frombuffer(place.data, place.dtype.numpy)
        else:
            values = rng.standard_normal(place.elements)
            values = np.abs(values) + 0.5 if place.name == "running_var" else values
            found[place.name] = values.astype(place.dtype.numpy)
    return found


def test_all_of_them_have_the_bits_of_the_engine_on_any_number_of_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("packs._CALL", __import__("packs")._CALL + _RUN)
    report = convgrad.export(LINES, tmp_path / "pack", name="more", target="host", with_test=False)
    library = Library(tmp_path / "pack", "more")
    rng = np.random.default_rng(1)
    for entry in report.pack.entries:
        what = entry.recipe
        arrays = drawn(what, rng)
        ours = {name: array.copy() for name, array in arrays.items()}
        for part in what.parts:
            asked = part.asked if isinstance(part.asked, Problem) else part.asked.task
            at = [0 if name is None else ours[name].ctypes.data for name in part.seen]
            _engine.run(asked, *at)
        there = ctypes.byref(ctypes.c_char.in_dll(library.code, f"{entry.name}_entry"))
        for threads in (1, 2, 3, 8):
            theirs = {name: array.copy() for name, array in arrays.items()}
            places = (ctypes.c_void_p * len(what.callers))(
                *(theirs[place.name].ctypes.data for place in what.callers)
            )
            size = library.code.scratch_of(there, threads)
            memory = np.full(size + 64, 255, np.uint8)
            scratch = ctypes.c_void_p(memory.ctypes.data + -memory.ctypes.data % 64)
            shared = ctypes.c_int(0)
            words = (there, places, scratch, ctypes.c_size_t(size), threads, ctypes.byref(shared))
            assert library.code.run_all(*words) == 0
            for place in what.callers:
                same = theirs[place.name].tobytes() == ours[place.name].tobytes()
                assert same, (entry.line, place.name, threads)
                changed = theirs[place.name].tobytes() != arrays[place.name].tobytes()
                assert changed == (place.role == "made"), (entry.line, place.name)


def test_lines_are_read_as_they_were_written():
    asked = recipe.read_lines(LINES, "LINES")
    assert len(asked) == 11
    assert [recipe.read(recipe.write(each)) for each in asked] == asked


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("conv2d 1x8x8x4 3x3x4x8 bias=input", "`bias` of a forward must be output"),
        ("conv2d 1x8x8x4 3x3x4x8 bias", "`bias` of a forward must be output"),
        ("conv2d_backprop_input 1x8x8x4 3x3x4x8 bias=output", "must be input"),
        ("conv2d 1x8x8x4 3x3x4x8 |", "behind the |"),
        ("conv2d 1x8x8x4 3x3x4x8 | relu", "behind the |"),
        ("conv2d 1x8x8x4 3x3x4x8 | batch_norm_act.forward rleu epsilon=1", "describes batch norm"),
        ("conv2d_backprop_input 1x8x8x4 3x3x4x8 | batch_norm_act.forward relu", "a block begins"),
        ("batch_norm_act.forward 8x196 NHWC float32 relu", "describes batch norm"),
        ("| batch_norm_act.forward relu epsilon=0.001", "is empty"),
        ("conv2d_backprop_input 1x2x2x4 3x3x4x8 padding=VALID bias=input", "nothing but the bias"),
    ],
)
def test_wrong_lines_are_refused(tmp_path, line, message):
    with pytest.raises(ArgumentError, match=re.escape(message)):
        convgrad.export(f"{line}\n", tmp_path, name="it")


def test_a_pack_of_version_1_is_refused_by_the_compiler(tmp_path):
    """What the header of such a pack says where it meets this convgrad_pack.h."""
    (tmp_path / "old.h").write_text(
        '#include "convgrad_pack.h"\n#if CG_VERSION != 1u\n'
        '#error "old.h needs version 1 of convgrad_pack.h; another one was included before"\n#endif\n'
    )
    (tmp_path / "old.c").write_text('#include "old.h"\n')
    words = [tool("gcc"), "-I", str(INCLUDE), "-c", str(tmp_path / "old.c"), "-o", "/dev/null"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode and "needs version 1" in done.stderr


def test_a_header_of_version_1_is_refused_by_name(tmp_path):
    convgrad.export("conv2d 1x8x8x4 3x3x4x8", tmp_path, name="it", with_test=False)
    fixed = tmp_path / "convgrad_pack.h"
    fixed.write_text(fixed.read_text().replace("CG_VERSION 2u", "CG_VERSION 1u"))
    words = [tool("gcc"), "-c", str(tmp_path / "it.c"), "-o", "/dev/null"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode and "export the pack again" in done.stderr
