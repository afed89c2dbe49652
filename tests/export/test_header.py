"""convgrad_pack.h compiles everywhere without a word, needs no library, and has a code for every wrong argument."""

from __future__ import annotations

import re
import subprocess

import pytest

import convgrad
from cc_programs import skip_without
from convgrad._apps.export import c_source, pack, problems
from convgrad._runtime.program import MOST_PLACES
from packs import COMPILERS, INCLUDE, STRICT, run, tool

HEADER = (INCLUDE / "convgrad_pack.h").read_text()
USE = """
#include "convgrad_pack.h"
int use(const cg_pack *p, const cg_problem *q, void *m);
int use(const cg_pack *p, const cg_problem *q, void *m) {
  int64_t pads[2];
  const cg_entry *e = cg_find(p, q);
  return cg_run(e, m, m, m, m, cg_scratch_bytes(e, 2)) + (int)cg_chunks(e, 0, 2) + cg_workers(e, 2) +
         cg_same_pads(5, 3, 2, 1, &pads[0], &pads[1]) + (cg_error_text(1)[0] == 'x');
}
"""


@pytest.mark.parametrize(("compiler", "standard"), COMPILERS)
@pytest.mark.parametrize("level", ["-O0", "-O2"])
def test_it_compiles_without_a_warning(tmp_path, compiler, standard, level):
    source = tmp_path / ("use.cc" if "++" in standard else "use.c")
    source.write_text(USE)
    words = [*STRICT, "-Wsign-conversion", "-Wundef", f"-std={standard}", level, "-I", INCLUDE]
    run(tool(compiler), *words, "-c", source, "-o", tmp_path / "use.o")


@pytest.mark.parametrize(
    ("compiler", "flags", "allowed"),
    [
        ("gcc", ["-O3", "-fno-stack-protector"], r"_GLOBAL_OFFSET_TABLE_"),
        (
            "clang",
            ["--target=wasm32", "-O3", "-ffreestanding"],
            r"__stack_pointer|__linear_memory|__indirect.*",
        ),
        ("arm-none-eabi-gcc", ["-mcpu=cortex-m4", "-mthumb", "-O3"], r"__aeabi_u?ldivmod"),
    ],
)
def test_it_calls_no_library(tmp_path, compiler, flags, allowed):
    """Not even memcpy or memset, which optimisers make of loops."""
    source, code = tmp_path / "use.c", tmp_path / "use.o"
    source.write_text(USE)
    run(tool(compiler), *flags, "-std=c99", "-I", INCLUDE, "-c", source, "-o", code)
    symbols = code.read_bytes()
    for name in (b"memcpy", b"memset", b"memmove", b"malloc", b"free"):
        assert name not in symbols, name
    if compiler != "clang":
        listed = (
            run(tool("nm"), "-u", code)
            if compiler == "gcc"
            else run(tool("arm-none-eabi-nm"), "-u", code)
        )
        missing = re.findall(r"U (\S+)", listed)
        assert all(re.fullmatch(allowed, name) for name in missing), missing


def test_big_endian_machines_are_refused(tmp_path):
    source = tmp_path / "use.c"
    source.write_text("#undef __BYTE_ORDER__\n#define __BYTE_ORDER__ __ORDER_BIG_ENDIAN__\n" + USE)
    done = subprocess.run(
        [tool("gcc"), "-I", str(INCLUDE), "-c", str(source), "-o", str(tmp_path / "use.o")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode and "little-endian" in done.stderr


def test_the_exporter_knows_its_numbers():
    def defined(name):
        return re.search(rf"#define {name} (\w+)", HEADER)[1]

    assert int(defined("CG_MOST_WORDS")) == pack.MOST_WORDS
    assert int(defined("CG_MOST_POINTERS")) == pack.MOST_POINTERS
    assert int(defined("CG_MOST_PLACES")) == pack.MOST_PLACES
    assert int(defined("CG_MOST_SEEN")) == MOST_PLACES
    assert int(defined("CG_MOST_WORKERS")) == pack.MOST_WORKERS
    assert defined("CG_VERSION") == f"{c_source.VERSION}u"
    for row, number in pack.DTYPES.items():
        name = {"float32": "FLOAT", "float64": "DOUBLE"}.get(row.name, row.name.upper())
        assert f"CG_{name} = {number}" in HEADER
    assert list(problems.OPS) == ["fwd", "dx", "dw"]


TROUBLE = r"""
#include <stdio.h>
#include <string.h>
#include "t.h"

#define ENTRY t_conv_dw_f32_8x14x14x16_k3x3_o32_same_entry
#define FUNCTION t_conv_dw_f32_8x14x14x16_k3x3_o32_same
#define EXPECT(code, call) do { int got = (call); checked++; if (got != (code)) { \
  printf("line %d: %s is %d (%s), not %s\n", __LINE__, #call, got, cg_error_text(got), #code); bad = 1; } } while (0)

static union { double align; unsigned char bytes[4 << 20]; } memory;
static int never(void *context, int64_t chunks, int workers, cg_task task, const cg_job *job) {
  (void)context; (void)chunks; (void)workers; (void)task; (void)job;
  return 1;
}

int main(void) {
  const cg_entry *e = &ENTRY;
  unsigned char *base = memory.bytes + (64 - (uintptr_t)memory.bytes % 64) % 64;
  float *x = (float *)(void *)base, *g = (float *)(void *)(base + (1 << 19)), *r = (float *)(void *)(base + (1 << 20));
  unsigned char *s = base + (2 << 20);
  const size_t n = cg_scratch_bytes(e, 1);
  cg_entry other = *e;
  const cg_place strange_places[3] = {e->places[0], {"x", 7, CG_GIVEN, 4, NULL}, e->places[2]};
  void *const places[3] = {x, g, r};
  cg_pack strange = t;
  cg_job job;
  int64_t before, after;
  int bad = 0, checked = 0, i;

  EXPECT(CG_OK, FUNCTION(x, g, r, s, n));
  EXPECT(CG_OK, FUNCTION(x, x, r, s, n)); /* operands may be one */
  EXPECT(CG_NULL, cg_run(NULL, x, g, r, s, n));
  EXPECT(CG_NULL, FUNCTION(NULL, g, r, s, n));
  EXPECT(CG_NULL, FUNCTION(x, NULL, r, s, n));
  EXPECT(CG_NULL, FUNCTION(x, g, NULL, s, n));
  for (i = 1; i < 4; i++) {
    EXPECT(CG_MISALIGNED, cg_run(e, (char *)x + i, g, r, s, n));
    EXPECT(CG_MISALIGNED, cg_run(e, x, (char *)g + i, r, s, n));
    EXPECT(CG_MISALIGNED, cg_run(e, x, g, (char *)r + i, s, n));
  }
  for (i = 1; i < 64; i++) EXPECT(CG_SCRATCH_MISALIGNED, FUNCTION(x, g, r, s + i, n + 64));
  EXPECT(CG_SCRATCH_SMALL, FUNCTION(x, g, r, NULL, n));
  EXPECT(CG_SCRATCH_SMALL, FUNCTION(x, g, r, s, n - 1));
  EXPECT(CG_SCRATCH_SMALL, FUNCTION(x, g, r, s, 0));
  EXPECT(CG_OVERLAP, FUNCTION(x, g, x, s, n));
  EXPECT(CG_OVERLAP, FUNCTION(x, g, g + 1, s, n));
  EXPECT(CG_OVERLAP, FUNCTION(r + 1, g, r, s, n));
  EXPECT(CG_OVERLAP, FUNCTION(x, g, r, base, n));
  EXPECT(CG_OVERLAP, FUNCTION(x, g, r, base + (1 << 19), n));
  EXPECT(CG_OVERLAP, FUNCTION(x, g, r, base + (1 << 20), n));
  other.version++;
  EXPECT(CG_WRONG_VERSION, cg_run(&other, x, g, r, s, n));
  other = *e; other.magic = 0;
  EXPECT(CG_WRONG_VERSION, cg_run(&other, x, g, r, s, n));
  other = *e; other.problem.dtype = 7;
  EXPECT(CG_WRONG_VERSION, cg_run(&other, x, g, r, s, n));

  other = *e; other.places = strange_places;
  EXPECT(CG_WRONG_VERSION, cg_run(&other, x, g, r, s, n)); /* a dtype that packs do not have */
  other = *e; other.all_count = CG_MOST_PLACES + 1;
  EXPECT(CG_WRONG_VERSION, cg_run(&other, x, g, r, s, n));
  other = *e; other.place_count = other.all_count = 2;
  EXPECT(CG_WRONG_PLACES, cg_run(&other, x, g, r, s, n));
  EXPECT(CG_WRONG_PLACES, cg_begin(&job, &other, 1, x, g, r, s, n));
  EXPECT(CG_NULL, cg_run_places(e, NULL, s, n));
  EXPECT(CG_OK, cg_run_places(e, places, s, n));
  EXPECT(1, cg_find_line(&t, e->line) == e);
  EXPECT(1, cg_find_line(&t, "conv2d") == NULL);
  EXPECT(1, cg_find_line(&t, NULL) == NULL);
  EXPECT(1, cg_version_text(&t) == NULL);
  strange.version = 1;
  EXPECT(0, strcmp(cg_version_text(&strange), "this pack is of version 1; export it again"));
  EXPECT(1, cg_find_line(&strange, e->line) == NULL);
  EXPECT(1, strstr(cg_error_text(CG_WRONG_VERSION), "export it again") != NULL);
  strange.version = 3;
  EXPECT(1, strstr(cg_version_text(&strange), "export it again") != NULL);
  strange = t;

  /* With a bias there is a fourth place. */
  EXPECT(CG_WRONG_PLACES, cg_run(&t_conv_dw_f32_1x8x8x4_k3x3_o8_same_bias_entry, x, g, r, s, n));
  EXPECT(CG_OK, t_conv_dw_f32_1x8x8x4_k3x3_o8_same_bias(x, g, r, r + 4096, s, n));
  EXPECT(CG_OVERLAP, t_conv_dw_f32_1x8x8x4_k3x3_o8_same_bias(x, g, r, r + 8, s, n)); /* both are made */
  EXPECT(CG_OVERLAP, t_conv_dw_f32_1x8x8x4_k3x3_o8_same_bias(x, g, r, x, s, n));
  EXPECT(CG_NULL, t_conv_dw_f32_1x8x8x4_k3x3_o8_same_bias(x, g, r, NULL, s, n));
  EXPECT(CG_MISALIGNED, t_conv_dw_f32_1x8x8x4_k3x3_o8_same_bias(x, g, r, (float *)(void *)(base + 2049), s, n));

  EXPECT(CG_WRONG_WORKER, cg_begin(&job, e, 0, x, g, r, s, n));
  EXPECT(CG_WRONG_WORKER, cg_begin(&job, e, -5, x, g, r, s, n));
  EXPECT(CG_NULL, cg_begin(NULL, e, 1, x, g, r, s, n));
  EXPECT(CG_SCRATCH_SMALL, cg_begin(&job, e, 2, x, g, r, s, n));
  EXPECT(CG_OK, cg_begin(&job, e, 2, x, g, r, s, cg_scratch_bytes(e, 2)));
  EXPECT(CG_NULL, cg_run_chunk(&job, 0, 0)); /* no launch yet */
  EXPECT(CG_WRONG_LAUNCH, cg_launch_begin(&job, -1));
  EXPECT(CG_WRONG_LAUNCH, cg_launch_begin(&job, e->launch_count));
  EXPECT(CG_NULL, cg_launch_begin(NULL, 0));
  EXPECT(CG_OK, cg_launch_begin(&job, 0));
  EXPECT(1, job.chunks == cg_chunks(e, 0, 2));
  EXPECT(CG_WRONG_WORKER, cg_run_chunk(&job, 0, -1));
  EXPECT(CG_WRONG_WORKER, cg_run_chunk(&job, 0, job.workers));
  EXPECT(CG_WRONG_CHUNK, cg_run_chunk(&job, -1, 0));
  EXPECT(CG_WRONG_CHUNK, cg_run_chunk(&job, job.chunks, 0));
  EXPECT(CG_WRONG_CHUNK, cg_run_chunk(&job, INT64_MAX, 0));
  EXPECT(CG_NULL, cg_run_chunk(NULL, 0, 0));
  EXPECT(CG_OK, cg_run_chunk(&job, 0, 0));
  EXPECT(CG_NOT_RUN, cg_run_parallel(e, x, g, r, s, cg_scratch_bytes(e, 2), 2, never, NULL));
  EXPECT(CG_OK, cg_run_parallel(e, x, g, r, s, n, 8, NULL, NULL)); /* no loop: one thread's scratch is enough */

  EXPECT(1, cg_find(NULL, &e->problem) == NULL);
  EXPECT(1, cg_find(&t, NULL) == NULL);
  strange.version = 0;
  EXPECT(1, cg_find(&strange, &e->problem) == NULL);
  strange = t; strange.count = 0;
  EXPECT(1, cg_find(&strange, &e->problem) == NULL);
  EXPECT(1, cg_find(&t, &e->problem) == e);
  EXPECT(0, (int)cg_scratch_bytes(NULL, 3));
  EXPECT(1, cg_workers(NULL, 9));
  EXPECT(1, cg_workers(e, -9));
  EXPECT(0, (int)cg_chunks(e, 99, 1));
  other = *e; other.worker_bytes = SIZE_MAX / 4; other.most_workers = 256;
  EXPECT(1, cg_scratch_bytes(&other, 256) == SIZE_MAX);

  /* An empty problem: zeros, and operands that nobody reads. */
  memset(r, 255, 4096);
  EXPECT(CG_OK, t_conv_dw_f32_0x9x9x2_k3x3_o4_same(NULL, NULL, r, NULL, 0));
  for (i = 0; i < 3 * 3 * 2 * 4; i++) EXPECT(1, r[i] == 0.0f);
  EXPECT(1, r[72] != r[72]);

  EXPECT(CG_OK, cg_same_pads(14, 3, 2, 1, &before, &after));
  EXPECT(1, before == 0 && after == 1);
  EXPECT(CG_WRONG_SIZES, cg_same_pads(-1, 3, 2, 1, &before, &after));
  EXPECT(CG_WRONG_SIZES, cg_same_pads(14, 3, 0, 1, &before, &after));
  EXPECT(CG_WRONG_SIZES, cg_same_pads(14, INT64_MAX, 1, INT64_MAX, &before, &after));
  EXPECT(CG_NULL, cg_same_pads(14, 3, 2, 1, NULL, &after));
  for (i = -3; i < 20; i++) EXPECT(1, cg_error_text(i) != NULL && cg_error_text(i)[0] != 0);
  printf("%d checks\n", checked);
  return bad;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_every_wrong_argument_has_its_code(tmp_path, compiler):
    """Also under the sanitizers, which see every index and every overflow of the header's own."""
    guards = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g"]
    skip_without(tool(compiler), *guards)
    lines = "conv2d_backprop_filter 8x14x14x16 3x3x16x32\nconv2d_backprop_filter 0x9x9x2 3x3x2x4\n"
    lines += "conv2d_backprop_filter 1x8x8x4 3x3x4x8 bias=output\n"
    convgrad.export(lines, tmp_path / "pack", name="t", with_test=False)
    (tmp_path / "trouble.c").write_text(TROUBLE)
    pack_files = (tmp_path / "pack/t.c", tmp_path / "pack/libt.a", "-o", tmp_path / "trouble")
    words = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-I", tmp_path / "pack", *guards]
    run(tool(compiler), *words, tmp_path / "trouble.c", *pack_files)
    assert int(run(tmp_path / "trouble").split()[0]) > 200
