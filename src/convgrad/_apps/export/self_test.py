"""NAME_test.c: a program that runs every problem of a pack and knows what must come out.

It makes its operands itself, runs each problem on one thread and again in chunks from the last to the first, as other
workers, and compares the results with what was computed when the pack was written. It needs `printf` and static memory,
as much as its largest problem; with NAME_TEST_BYTES defined to less, it leaves out what does not fit and says so.
Problems beyond `expected.LARGEST` are always left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._base.version import __version__
from .expected import LARGEST, MIX, SAMPLES, WEIGHT, Expected, expected
from .pack import Entry, Pack

_WORKERS = 3


def known(entry: Entry) -> Expected | None:
    """Return what an entry must compute; None for one that is too large."""
    return expected(entry) if memory(entry) <= LARGEST else None


def source(pack: Pack, found: Sequence[Expected | None]) -> str:
    """Return the program for a pack and what is known of its entries."""
    name = pack.name
    needed = max((memory(entry) for entry in pack.entries if memory(entry) <= LARGEST), default=64)
    rows = (
        ",\n".join(_row(entry, each) for entry, each in zip(pack.entries, found, strict=True))
        or "    {NULL, 0, 0, 0.0, 0, {0}, {0.0}}"
    )
    text = _PROGRAM
    for word, value in {
        "NAME": name,
        "VERSION": __version__,
        "NEEDED": str(needed),
        "ROWS": rows,
        "COUNT": str(len(pack.entries)),
        "SAMPLES": str(SAMPLES),
        "MIX_ONE": f"{MIX[0]}u",
        "MIX_TWO": f"{MIX[1]}u",
        "WEIGHT_HIGH": f"0x{WEIGHT >> 32:x}u",
        "WEIGHT_LOW": f"0x{WEIGHT & 0xFFFFFFFF:x}u",
        "WORKERS": str(_WORKERS),
    }.items():
        text = text.replace(f"${word}$", value)
    return text


def memory(entry: Entry) -> int:
    """Return the static memory that the test of an entry takes."""
    program = entry.program
    shared = sum(-(-part // 64) * 64 for part in (program.partial_bytes, program.packed_bytes))
    workers = min(_WORKERS, entry.most_workers)
    apart = -(-entry.worker_bytes // 128) * 128
    scratch = shared + -(-entry.worker_bytes // 64) * 64 + (workers - 1) * apart
    return scratch + sum(-(-part // 64) * 64 for part in entry.operand_bytes)


def _row(entry: Entry, each: Expected | None) -> str:
    if each is None:
        return f"    {{&{entry.name}_entry, 0u, 0u, 0.0, 0, 0, {{0}}, {{0.0}}}}"
    places = ", ".join(str(at) for at, _ in each.samples) or "0"
    values = ", ".join(_value(value) for _, value in each.samples) or "0.0"
    high, low = each.digest >> 32, each.digest & 0xFFFFFFFF
    return (
        f"    {{&{entry.name}_entry, 0x{high:08x}u, 0x{low:08x}u, {each.tolerance!r}, {each.spread}, "
        f"{len(each.samples)}, {{{places}}}, {{{values}}}}}"
    )


def _value(value: float) -> str:
    """Spell a number; a sum beyond the largest of a half is compared by the digest alone."""
    return repr(value) if abs(value) < 1e300 else f"{'-' if value < 0 else ''}1e300"


_PROGRAM = """\
/* $NAME$_test.c: runs every problem of $NAME$.h and compares with numbers that are in this file. Ends with status 0
   if all are right. Written by convgrad $VERSION$; do not edit.

     cc $NAME$_test.c $NAME$.c lib$NAME$.a && ./a.out

   Define $NAME$_TEST_BYTES to give it less memory; problems that do not fit are then left out. */
#include <stdio.h>

#include "$NAME$.h"

#ifndef $NAME$_TEST_BYTES
#define $NAME$_TEST_BYTES $NEEDED$
#endif

typedef struct test_row {
  const cg_entry *entry;
  uint32_t digest_high, digest_low; /* of all bytes of the result */
  double tolerance;                 /* 0: every bit is known */
  int spread;                       /* operands are whole numbers from -spread to spread; 0: nothing is known */
  int samples;
  int64_t places[$SAMPLES$];
  double values[$SAMPLES$];
} test_row;

static const test_row rows[] = {
$ROWS$
};
static const size_t row_count = $COUNT$;

static unsigned char memory[$NAME$_TEST_BYTES + CG_SCRATCH_ALIGN];

/* A whole number from -spread to spread: element `at` of operand `which`. */
static int number(uint32_t which, uint32_t at, int spread) {
  uint32_t mixed = (2u * at + which) * $MIX_ONE$;
  mixed ^= mixed >> 15;
  mixed *= $MIX_TWO$;
  mixed ^= mixed >> 13;
  return (int)((mixed >> 8) % (uint32_t)(2 * spread + 1)) - spread;
}

/* 16 bits of a whole number below 8: of a half, or of a bfloat16. */
static uint16_t narrow(int value, int32_t dtype) {
  static const uint16_t half[8] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
  static const uint16_t brain[8] = {0, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0};
  const int size = value < 0 ? -value : value;
  const uint16_t bits = dtype == CG_HALF ? half[size] : brain[size];
  return (uint16_t)(value < 0 ? bits | 0x8000u : bits);
}

static void fill(void *to, size_t bytes, uint32_t which, int32_t dtype, int spread) {
  const size_t count = bytes / cg_itemsize(dtype);
  size_t at;
  for (at = 0; at < count; at++) {
    const int value = number(which, (uint32_t)at, spread);
    if (dtype == CG_FLOAT) {
      ((float *)to)[at] = (float)value;
    } else if (dtype == CG_DOUBLE) {
      ((double *)to)[at] = (double)value;
    } else {
      ((uint16_t *)to)[at] = narrow(value, dtype);
    }
  }
}

/* Rubbish where nothing has been written yet: NaN in every dtype. Volatile, or compilers call memset, which bare
   machines may not have. */
static void spoil(volatile unsigned char *to, size_t bytes) {
  size_t at;
  for (at = 0; at < bytes; at++) to[at] = 0xff;
}

static double powered(double value, int exponent) {
  for (; exponent > 0; exponent--) value *= 2.0;
  for (; exponent < 0; exponent++) value *= 0.5;
  return value;
}

/* A half or a bfloat16 as a number. */
static double widened(uint16_t bits, int32_t dtype) {
  const int fraction = dtype == CG_HALF ? 10 : 7, bias = dtype == CG_HALF ? 15 : 127;
  const int exponent = (bits & 0x7fff) >> fraction, rest = bits & ((1 << fraction) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == 0) return sign * powered(rest, 1 - bias - fraction);
  if (exponent == 2 * bias + 1) return sign * 1e300;
  return sign * powered(rest + (1 << fraction), exponent - bias - fraction);
}

static double element(const void *from, int64_t at, int32_t dtype) {
  if (dtype == CG_FLOAT) return (double)((const float *)from)[at];
  if (dtype == CG_DOUBLE) return ((const double *)from)[at];
  return widened(((const uint16_t *)from)[at], dtype);
}

static uint64_t digest(const unsigned char *from, size_t bytes) {
  const uint64_t weight = ((uint64_t)$WEIGHT_HIGH$ << 32) | $WEIGHT_LOW$;
  uint64_t sum = 0, odd = 1;
  size_t at;
  for (at = 0; at + 1 < bytes; at += 2, odd += 2) {
    const uint32_t unit = (uint32_t)from[at] | ((uint32_t)from[at + 1] << 8);
    sum += ((uint64_t)unit + 1u) * (odd * weight);
  }
  return sum;
}

/* NULL, or what is wrong with a result. */
static const char *wrong(const test_row *row, const unsigned char *result) {
  const uint64_t known = ((uint64_t)row->digest_high << 32) | row->digest_low;
  const int32_t dtype = row->entry->problem.dtype;
  int i;
  for (i = 0; i < row->samples; i++) {
    const double value = element(result, row->places[i], dtype), want = row->values[i];
    const double apart = value < want ? want - value : value - want;
    const double size = want < 0 ? -want : want;
    if (!(apart <= row->tolerance * (1.0 + size))) return "wrong numbers";
  }
  if (row->tolerance == 0.0 && digest(result, row->entry->bytes[2]) != known) return "wrong numbers";
  return NULL;
}

/* All chunks in reverse, as different workers: what threads do in an order that is unlikely. */
static int run_backwards(const cg_entry *entry, const void *first, const void *second, void *result, void *scratch,
                         size_t bytes) {
  cg_job job;
  int launch, code = cg_begin(&job, entry, $WORKERS$, first, second, result, scratch, bytes);
  for (launch = 0; code == CG_OK && launch < entry->launch_count; launch++) {
    int64_t chunk;
    code = cg_launch_begin(&job, launch);
    for (chunk = job.chunks; code == CG_OK && chunk > 0; chunk--)
      code = cg_run_chunk(&job, chunk - 1, (int)((chunk - 1) % job.workers));
  }
  return code;
}

int main(void) {
  size_t at, failed = 0, left_out = 0;
  for (at = 0; at < row_count; at++) {
    const test_row *row = &rows[at];
    const cg_entry *entry = row->entry;
    const int32_t dtype = entry->problem.dtype;
    const size_t scratch_bytes = cg_scratch_bytes(entry, $WORKERS$);
    const size_t needed = cg_up(scratch_bytes, 64) + cg_up(entry->bytes[0], 64) + cg_up(entry->bytes[1], 64) +
                          cg_up(entry->bytes[2], 64);
    unsigned char *scratch, *first, *second, *result;
    const char *trouble = NULL;
    int turn, code = CG_OK;
    if (needed > $NAME$_TEST_BYTES || row->spread == 0) {
      printf("left out %s: needs %lu bytes\\n", entry->line, (unsigned long)needed);
      left_out++;
      continue;
    }
    scratch = memory + (CG_SCRATCH_ALIGN - (uintptr_t)memory % CG_SCRATCH_ALIGN) % CG_SCRATCH_ALIGN;
    first = scratch + cg_up(scratch_bytes, 64);
    second = first + cg_up(entry->bytes[0], 64);
    result = second + cg_up(entry->bytes[1], 64);
    fill(first, entry->bytes[0], 1, dtype, row->spread);
    fill(second, entry->bytes[1], 2, dtype, row->spread);
    if (cg_find(&$NAME$, &entry->problem) != entry) trouble = "not found by its descriptor";
    for (turn = 0; turn < 2 && code == CG_OK && !trouble; turn++) {
      spoil(scratch, scratch_bytes);
      spoil(result, entry->bytes[2]);
      code = turn ? run_backwards(entry, first, second, result, scratch, scratch_bytes)
                  : cg_run(entry, first, second, result, scratch, scratch_bytes);
      if (code == CG_OK) trouble = wrong(row, result);
    }
    if (code != CG_OK) trouble = cg_error_text(code);
    if (trouble) failed++;
    printf("%s  %s%s%s\\n", trouble ? "FAILED" : "right ", entry->line, trouble ? ": " : "", trouble ? trouble : "");
  }
  printf("$NAME$: %lu problems, %lu failed, %lu left out\\n", (unsigned long)row_count, (unsigned long)failed,
         (unsigned long)left_out);
  return failed || (row_count && left_out == row_count) ? 1 : 0;
}
"""
