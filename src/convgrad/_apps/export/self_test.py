"""NAME_test.c: a program that runs every problem of a pack and knows what must come out.

It makes its operands itself, runs each problem on one thread and again in chunks from the last to the first, as other
workers, compares the results with what was computed when the pack was written, and the bits of both runs with each
other. It needs `printf` and static memory, as much as its largest problem; with NAME_TEST_BYTES defined to less, it
leaves out what does not fit and says so. Problems beyond `expected.LARGEST` are always left out.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..._base.version import __version__
from .expected import LARGEST, MIX, POSITIVE, WEIGHT, Expected, expected
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
        or "    {NULL, 0, 0, 0.0, 0, 0, 0, {0}, {0}, {0.0}}"
    )
    text = _PROGRAM
    for word, value in {
        "NAME": name,
        "VERSION": __version__,
        "NEEDED": str(needed),
        "ROWS": rows,
        "COUNT": str(len(pack.entries)),
        "SAMPLES": str(max([len(each.samples) for each in found if each], default=0) or 1),
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
    workers = min(_WORKERS, entry.most_workers)
    apart = -(-entry.worker_bytes // 128) * 128
    scratch = entry.shared_bytes + -(-entry.worker_bytes // 64) * 64 + (workers - 1) * apart
    return scratch + sum(-(-part // 64) * 64 for part in entry.operand_bytes)


def _row(entry: Entry, each: Expected | None) -> str:
    if each is None:
        return f"    {{&{entry.name}_entry, 0u, 0u, 0.0, 0, 0u, 0, {{0}}, {{0}}, {{0.0}}}}"
    places = ", ".join(str(place) for place, _, _ in each.samples) or "0"
    spots = ", ".join(str(at) for _, at, _ in each.samples) or "0"
    values = ", ".join(_value(value) for *_, value in each.samples) or "0.0"
    positive = sum(1 << at for at, one in enumerate(entry.recipe.callers) if one.name in POSITIVE)
    high, low = each.digest >> 32, each.digest & 0xFFFFFFFF
    return (
        f"    {{&{entry.name}_entry, 0x{high:08x}u, 0x{low:08x}u, {each.tolerance!r}, {each.spread}, "
        f"{positive}u, {len(each.samples)}, {{{places}}}, {{{spots}}}, {{{values}}}}}"
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
  uint32_t digest_high, digest_low; /* of all bytes that are made */
  double tolerance;                 /* 0: every bit is known */
  int spread;                       /* operands are whole numbers from -spread to spread; 0: nothing is known */
  uint32_t positive;                /* bits of places whose numbers are from 1 to spread + 1 */
  int samples;
  uint8_t places[$SAMPLES$]; /* which array, and where in it */
  int64_t spots[$SAMPLES$];
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

static void fill(void *to, size_t bytes, uint32_t which, int32_t dtype, int spread, int positive) {
  const size_t count = bytes / cg_itemsize(dtype);
  size_t at;
  for (at = 0; at < count; at++) {
    int value = number(which, (uint32_t)at, spread);
    if (positive) value = (value < 0 ? -value : value) + 1;
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

/* Of all arrays that are made. */
static uint64_t digest_made(const cg_entry *entry, void *const *places) {
  uint64_t sum = 0, odd = 1;
  int32_t k;
  for (k = 0; k < entry->place_count; k++) {
    if (entry->places[k].role != CG_MADE) continue;
    sum += digest((const unsigned char *)places[k], entry->places[k].bytes) * odd;
    odd += 2;
  }
  return sum;
}

/* NULL, or what is wrong with the results. */
static const char *wrong(const test_row *row, void *const *places) {
  const uint64_t known = ((uint64_t)row->digest_high << 32) | row->digest_low;
  int i;
  for (i = 0; i < row->samples; i++) {
    const int which = row->places[i];
    const double want = row->values[i], size = want < 0 ? -want : want;
    const double value = element(places[which], row->spots[i], row->entry->places[which].dtype);
    const double apart = value < want ? want - value : value - want;
    if (!(apart <= row->tolerance * (1.0 + size))) return "wrong numbers";
  }
  if (row->tolerance == 0.0 && digest_made(row->entry, places) != known) return "wrong numbers";
  return NULL;
}

/* All chunks in reverse, as different workers: what threads do in an order that is unlikely. */
static int run_backwards(const cg_entry *entry, void *const *places, void *scratch, size_t bytes) {
  cg_job job;
  int launch, code = cg_begin_places(&job, entry, $WORKERS$, places, scratch, bytes);
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
    const size_t scratch_bytes = cg_scratch_bytes(entry, $WORKERS$);
    size_t needed = cg_up(scratch_bytes, 64);
    unsigned char *scratch, *next;
    void *places[CG_MOST_PLACES];
    const char *trouble = NULL;
    uint64_t before = 0;
    int turn, code = CG_OK;
    int32_t k;
    for (k = 0; k < entry->place_count; k++) needed += cg_up(entry->places[k].bytes, 64);
    if (needed > $NAME$_TEST_BYTES || row->spread == 0) {
      printf("left out %s: needs %lu bytes\\n", entry->line, (unsigned long)needed);
      left_out++;
      continue;
    }
    scratch = memory + (CG_SCRATCH_ALIGN - (uintptr_t)memory % CG_SCRATCH_ALIGN) % CG_SCRATCH_ALIGN;
    next = scratch + cg_up(scratch_bytes, 64);
    for (k = 0; k < entry->place_count; k++) {
      const cg_place *place = &entry->places[k];
      places[k] = next;
      next += cg_up(place->bytes, 64);
      if (place->role == CG_GIVEN)
        fill(places[k], place->bytes, (uint32_t)k + 1u, place->dtype, row->spread, (int)(row->positive >> k & 1u));
    }
    if (cg_find_line(&$NAME$, entry->line) != entry) trouble = "not found by its line";
    if (entry->problem.kind != CG_OTHER && cg_find(&$NAME$, &entry->problem) != entry)
      trouble = "not found by its descriptor";
    for (turn = 0; turn < 2 && code == CG_OK && !trouble; turn++) {
      spoil(scratch, scratch_bytes);
      for (k = 0; k < entry->place_count; k++)
        if (entry->places[k].role == CG_MADE) spoil((unsigned char *)places[k], entry->places[k].bytes);
      code = turn ? run_backwards(entry, places, scratch, scratch_bytes)
                  : cg_run_places(entry, places, scratch, scratch_bytes);
      if (code == CG_OK) trouble = wrong(row, places);
      if (code == CG_OK && !trouble && turn && digest_made(entry, places) != before)
        trouble = "other bits as other workers";
      before = digest_made(entry, places);
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
