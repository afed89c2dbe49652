/* Runs problems of a stream on kernels that are linked in: no library but memory, so that it runs on any target.

   A problem is a block of 64-bit words, little-endian, with offsets into the block:
   bytes of the block, launches, bytes of partial sums, of the packed operand, places; then each place of the program:
   bytes, offset of what it holds or 0, offset of what it must hold afterwards or 0 if it is only read; then each launch:
   kernel, items, bytes of scratch, offset of the table or 0, places, words; the places; the words.

   Kernels are called by a thread that rounds upward and flushes subnormals, and must leave it so. */
#include <stdint.h>

typedef void (*kernel_type)(const void *args, int64_t begin, int64_t end, void *scratch);
extern const kernel_type kernels[];

enum { BLOCK, LAUNCHES, PARTIAL, PACKED, ALL_PLACES, HEADER };
enum { BYTES, BEFORE, AFTER, PLACE };
enum { KERNEL, ITEMS, SCRATCH, TABLE, PLACES, WORDS, LAUNCH };
enum { RIGHT, WRONG, BEYOND, TOO_LARGE, OTHER_MODE, MOST_WORDS = 256, MOST_PLACES = 16, GUARD = 64 };

/* The register of the floating-point mode, and what is set in it. */
#if defined(__x86_64__)
#define GET_MODE(to) (to) = __builtin_ia32_stmxcsr()
#define SET_MODE(from) __builtin_ia32_ldmxcsr((unsigned)(from))
enum { HOSTILE = 0xdfc0 };
#elif defined(__aarch64__)
#define GET_MODE(to) __asm volatile("mrs %0, fpcr" : "=r"(to))
#define SET_MODE(from) __asm volatile("msr fpcr, %0" : : "r"(from))
enum { HOSTILE = 1 << 24 | 1 << 22 };
#elif defined(__arm__)
#define GET_MODE(to) __asm volatile("vmrs %0, fpscr" : "=r"(to))
#define SET_MODE(from) __asm volatile("vmsr fpscr, %0" : : "r"(from))
enum { HOSTILE = 1 << 24 | 1 << 22 };
#elif defined(__riscv)
#define GET_MODE(to) __asm volatile("frrm %0" : "=r"(to))
#define SET_MODE(from) __asm volatile("fsrm %0" : : "r"(from))
enum { HOSTILE = 3 };
#else /* wasm has one mode */
#define GET_MODE(to) (to) = HOSTILE
#define SET_MODE(from) (void)(from)
enum { HOSTILE = 0 };
#endif

/* Calls a kernel; returns whether the mode was left alone. */
static int call(kernel_type kernel, const void *args, int64_t begin, int64_t end, void *scratch) {
  uintptr_t usual, after;
  GET_MODE(usual);
  SET_MODE((uintptr_t)HOSTILE);
  kernel(args, begin, end, scratch);
  GET_MODE(after);
  SET_MODE(usual);
  return after == HOSTILE;
}

static unsigned char *taken, *end_of_memory;

/* Rubbish that is NaN in every dtype, and behind it a guard. */
static unsigned char *take(uint64_t bytes, unsigned shift) {
  unsigned char *at = (unsigned char *)(((uintptr_t)taken + 63) & ~(uintptr_t)63) + shift;
  uint64_t i;
  if ((uint64_t)(end_of_memory - at) < bytes + GUARD) return 0;
  for (i = 0; i < bytes; i++) ((volatile unsigned char *)at)[i] = 0xff;
  for (i = 0; i < GUARD; i++) ((volatile unsigned char *)at)[bytes + i] = 0xa5;
  taken = at + bytes + GUARD;
  return at;
}

static int guarded(const unsigned char *at, uint64_t bytes) {
  unsigned i;
  for (i = 0; i < GUARD; i++)
    if (at[bytes + i] != 0xa5) return 0;
  return 1;
}

/* Which byte of its place is the first wrong one. */
int64_t wrong_at;

int run_block(const int64_t *block, unsigned char *memory, uint64_t memory_bytes) {
  const unsigned char *base = (const unsigned char *)block;
  const int64_t *place = block + HEADER, *next = place + PLACE * block[ALL_PLACES];
  unsigned char *partial, *packed;
  int64_t places[MOST_PLACES + 3]; /* the last three are memory, as in _runtime/program.py */
  int64_t launch, i, n;
  taken = memory;
  end_of_memory = memory + memory_bytes;
  partial = take((uint64_t)block[PARTIAL], 0);
  packed = take((uint64_t)block[PACKED], 0);
  if (!partial || !packed) return TOO_LARGE;
  for (n = 0; n < block[ALL_PLACES]; n++, place += PLACE) {
    const unsigned char *at = base + place[BEFORE];
    if (place[AFTER]) {
      /* As badly aligned as what is read. */
      unsigned char *own = take((uint64_t)place[BYTES], (unsigned)(place[AFTER] & 63));
      if (!own) return TOO_LARGE;
      for (i = 0; place[BEFORE] && i < place[BYTES]; i++) ((volatile unsigned char *)own)[i] = at[i];
      at = own;
    }
    places[n] = (int64_t)(uintptr_t)at;
  }
  places[MOST_PLACES] = (int64_t)(uintptr_t)partial;
  places[MOST_PLACES + 1] = (int64_t)(uintptr_t)packed;
  places[MOST_PLACES + 2] = (int64_t)(uintptr_t)places;
  for (launch = 0; launch < block[LAUNCHES]; launch++) {
    int64_t args[MOST_WORDS], count = 0, items = next[ITEMS], half = items / 2;
    const int64_t *words = next + LAUNCH;
    unsigned char *before = taken, *scratch = take((uint64_t)next[SCRATCH], 0);
    if (!scratch || next[PLACES] + next[WORDS] + 1 > MOST_WORDS) return TOO_LARGE;
    for (i = 0; i < next[PLACES]; i++) args[count++] = places[*words++];
    if (next[TABLE]) args[count++] = (int64_t)(uintptr_t)(base + next[TABLE]);
    for (i = 0; i < next[WORDS]; i++) args[count++] = *words++;
    if (half < items && !call(kernels[next[KERNEL]], args, half, items, scratch)) return OTHER_MODE;
    if (half > 0 && !call(kernels[next[KERNEL]], args, 0, half, scratch)) return OTHER_MODE;
    if (!guarded(scratch, (uint64_t)next[SCRATCH])) return BEYOND;
    taken = before;
    next = words;
  }
  if (!guarded(partial, (uint64_t)block[PARTIAL]) || !guarded(packed, (uint64_t)block[PACKED])) return BEYOND;
  for (n = 0, place = block + HEADER; n < block[ALL_PLACES]; n++, place += PLACE) {
    const unsigned char *at = (const unsigned char *)(uintptr_t)places[n];
    if (!place[AFTER]) continue;
    if (!guarded(at, (uint64_t)place[BYTES])) return BEYOND;
    for (i = 0; i < place[BYTES]; i++)
      if (at[i] != base[place[AFTER] + i]) {
        wrong_at = i;
        return WRONG;
      }
  }
  return RIGHT;
}

#ifdef WITH_FILES
#include <stdio.h>
#include <stdlib.h>

#ifdef BARE
#include <string.h>
extern void initialise_monitor_handles(void);
extern char bss_start, bss_end;
void _fini(void) {}
void _init(void) {}
int main(void);
void reset(void);
void reset(void) {
  *(volatile unsigned *)0xE000ED88 |= 0xfu << 20; /* the floating-point unit on */
  __asm volatile("dsb\n isb");
  memset(&bss_start, 0, (size_t)(&bss_end - &bss_start));
  initialise_monitor_handles();
  exit(main());
}
static void fault(void) {
  puts("fault");
  exit(9);
}
extern char stack_top;
__attribute__((section(".vectors"), used)) void *const vectors[] = {
    &stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault};
#define PATH "blocks.bin"
#else
#define PATH argv[1]
#endif

static unsigned char arena[ARENA] __attribute__((aligned(64), section(".bss.arena")));

#ifdef BARE
int main(void) {
#else
int main(int argc, char **argv) {
#endif
  FILE *file = fopen(PATH, "rb");
  int64_t bytes;
  int number;
  if (!file) return 2;
  for (number = 0; fread(&bytes, 1, sizeof bytes, file) == sizeof bytes; number++) {
    int64_t *block = (int64_t *)(void *)arena;
    size_t rest = (size_t)bytes - sizeof bytes;
    int answer = TOO_LARGE;
    block[0] = bytes;
    if (bytes > ARENA || fread(block + 1, 1, rest, file) != rest) return 3;
    answer = run_block(block, arena + bytes, ARENA - (uint64_t)bytes);
    printf("%d %d %ld\n", number, answer, (long)wrong_at);
    fflush(stdout);
  }
#ifndef BARE
  (void)argc;
#endif
  puts("end");
  return 0;
}
#endif
