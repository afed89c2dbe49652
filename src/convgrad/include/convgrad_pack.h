/* convgrad_pack.h: runs the convolutions of a pack that `convgrad export` wrote. C99 and C++17.

   The same text for every pack. It allocates nothing, has no globals and calls no function of a C library. Memory is
   the caller's: two operands, the result, and scratch. Threads are the caller's too, if there are any.

     const cg_entry *entry = cg_find(&NAME, &problem);            a convolution, by what it is
     size_t bytes = cg_scratch_bytes(entry, 1);                   of memory on a boundary of CG_SCRATCH_ALIGN
     int code = cg_run(entry, first, second, result, scratch, bytes);

   Operands, in this order:      forward           input, filter
                                 input gradient    filter, out_backprop
                                 filter gradient   input, out_backprop
   All arrays are contiguous, of exactly the problem's shape and dtype, and aligned to their elements; the result
   overlaps neither an operand nor the scratch. A function returns CG_OK or a code that cg_error_text puts in words,
   and then has written nothing. Any number of threads may run one entry at once, each call with its own scratch.
   The bits of a result do not depend on the number of threads or on who runs which chunk. */
#ifndef CONVGRAD_PACK_H
#define CONVGRAD_PACK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#error "convgrad packs are for little-endian machines"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define CG_MAGIC 0x4b504743u /* "CGPK" in memory */
#define CG_VERSION 1u        /* of the structures below */
#define CG_SCRATCH_ALIGN 64  /* boundary that scratch begins on */
#define CG_MOST_WORDS 96     /* words of a kernel, which lie on the stack; the exporter keeps to it */
#define CG_MOST_PLACES 6
#define CG_MOST_WORKERS 256

/* Which of the three tensors is wanted. */
enum { CG_FORWARD = 0, CG_INPUT_GRADIENT = 1, CG_FILTER_GRADIENT = 2 };
/* Order of the dimensions of images. */
enum { CG_NHWC = 0, CG_NCHW = 1 };
/* TensorFlow's numbers of dtypes. */
enum { CG_FLOAT = 1, CG_DOUBLE = 2, CG_BFLOAT16 = 14, CG_HALF = 19 };
/* Endings of a call. */
enum {
  CG_OK = 0,
  CG_NULL = 1,               /* an argument is NULL that must not be */
  CG_MISALIGNED = 2,         /* an operand or the result is not aligned to its elements */
  CG_SCRATCH_MISALIGNED = 3, /* the scratch does not begin on a boundary of CG_SCRATCH_ALIGN */
  CG_SCRATCH_SMALL = 4,      /* fewer bytes than cg_scratch_bytes says, or none */
  CG_OVERLAP = 5,            /* the result overlaps an operand, or the scratch overlaps anything */
  CG_WRONG_VERSION = 6,      /* no pack, or one for another convgrad_pack.h */
  CG_WRONG_LAUNCH = 7,       /* no such launch */
  CG_WRONG_WORKER = 8,       /* workers are 0 to workers - 1, at least one */
  CG_WRONG_CHUNK = 9,        /* no such chunk */
  CG_WRONG_SIZES = 10,       /* sizes that are no convolution's */
  CG_NOT_RUN = 11            /* the caller's loop gave up */
};

/* A convolution: what it is looked up by. A depthwise one with multiplier M has groups = in_c and out_c = in_c * M.
   Sizes are those of the forward operation, also for its gradients; pads are cells, SAME being solved. */
typedef struct cg_problem {
  int32_t kind;      /* CG_FORWARD, CG_INPUT_GRADIENT, CG_FILTER_GRADIENT */
  int32_t dtype;     /* CG_FLOAT, CG_DOUBLE, CG_BFLOAT16, CG_HALF */
  int32_t layout;    /* CG_NHWC, CG_NCHW */
  int32_t depthwise; /* 1 for the depthwise operations, else 0; a grouped twin may have other bits */
  int64_t batch, in_h, in_w, in_c, out_c, groups;
  int64_t filter_h, filter_w, stride_h, stride_w, dilation_h, dilation_w;
  int64_t pad_top, pad_bottom, pad_left, pad_right;
} cg_problem;

typedef void (*cg_kernel)(const void *words, int64_t begin, int64_t end, void *scratch);

/* One kernel over its items, which may be done in any order and by any worker. */
typedef struct cg_launch {
  cg_kernel kernel;
  const int64_t *words; /* the words behind the pointers and the table */
  const int64_t *table; /* numbers the kernel looks up, or NULL */
  int64_t items;
  int64_t grain; /* items of a chunk, and how few where there are more workers than such chunks */
  int64_t least;
  int32_t word_count;
  int32_t place_count;
  uint8_t places[CG_MOST_PLACES]; /* whose pointers: 0 first, 1 second, 2 result, 3 partial sums, 4 packed operand */
} cg_launch;

/* One problem of a pack. */
typedef struct cg_entry {
  uint32_t magic, version;
  cg_problem problem;
  const char *name;      /* of its own function */
  const char *line;      /* the problem, as `convgrad export` reads it */
  const char *algorithm; /* who computes it */
  const cg_launch *launches;
  int32_t launch_count; /* 0: there is nothing to add up, and the result is zeros */
  int32_t most_workers; /* workers there is work for */
  size_t partial_bytes, packed_bytes, worker_bytes;
  size_t bytes[3]; /* of first, second and result */
} cg_entry;

typedef struct cg_pack {
  uint32_t magic, version;
  const char *name, *target, *writer;   /* the writer is the version of convgrad */
  int64_t l1_bytes, l2_bytes, l3_bytes; /* cache sizes that were planned for */
  const cg_entry *const *entries;       /* sorted by cg_order */
  size_t count;
} cg_pack;

static inline const char *cg_error_text(int code) {
  switch (code) {
    case CG_OK: return "done";
    case CG_NULL: return "an argument is NULL that must not be";
    case CG_MISALIGNED: return "an operand or the result is not aligned to its elements";
    case CG_SCRATCH_MISALIGNED: return "the scratch must begin on a boundary of 64 bytes";
    case CG_SCRATCH_SMALL: return "the scratch has fewer bytes than cg_scratch_bytes says";
    case CG_OVERLAP: return "the result or the scratch overlaps other memory of the call";
    case CG_WRONG_VERSION: return "no pack, or a pack for another convgrad_pack.h";
    case CG_WRONG_LAUNCH: return "no such launch";
    case CG_WRONG_WORKER: return "no such worker";
    case CG_WRONG_CHUNK: return "no such chunk";
    case CG_WRONG_SIZES: return "sizes that are no convolution's";
    case CG_NOT_RUN: return "the caller's loop gave up";
    default: return "no code of convgrad_pack.h";
  }
}

/* ---- Looking up ---- */

#define CG_ORDER_BY(field) \
  if (a->field != b->field) return a->field < b->field ? -1 : 1

/* Orders problems: negative, 0 or positive. */
static inline int cg_order(const cg_problem *a, const cg_problem *b) {
  CG_ORDER_BY(kind);
  CG_ORDER_BY(dtype);
  CG_ORDER_BY(layout);
  CG_ORDER_BY(depthwise);
  CG_ORDER_BY(batch);
  CG_ORDER_BY(in_h);
  CG_ORDER_BY(in_w);
  CG_ORDER_BY(in_c);
  CG_ORDER_BY(out_c);
  CG_ORDER_BY(groups);
  CG_ORDER_BY(filter_h);
  CG_ORDER_BY(filter_w);
  CG_ORDER_BY(stride_h);
  CG_ORDER_BY(stride_w);
  CG_ORDER_BY(dilation_h);
  CG_ORDER_BY(dilation_w);
  CG_ORDER_BY(pad_top);
  CG_ORDER_BY(pad_bottom);
  CG_ORDER_BY(pad_left);
  CG_ORDER_BY(pad_right);
  return 0;
}

#undef CG_ORDER_BY

/* The entry of a problem, or NULL: for a problem the pack does not have, whatever its numbers are, and for NULL. */
static inline const cg_entry *cg_find(const cg_pack *pack, const cg_problem *problem) {
  size_t low = 0, high;
  if (!pack || !problem || pack->magic != CG_MAGIC || pack->version != CG_VERSION) return NULL;
  high = pack->count;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int order = cg_order(&pack->entries[middle]->problem, problem);
    if (order == 0) return pack->entries[middle];
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

/* Pads of TensorFlow's SAME along one axis, for the two ends of a cg_problem. Sizes below 2^31. */
static inline int cg_same_pads(int64_t size, int64_t window, int64_t stride, int64_t dilation, int64_t *before,
                               int64_t *after) {
  const int64_t most = INT32_MAX;
  int64_t outputs, total;
  if (!before || !after) return CG_NULL;
  if (size < 0 || window < 0 || stride < 1 || dilation < 1) return CG_WRONG_SIZES;
  if (size > most || window > most || stride > most || dilation > most) return CG_WRONG_SIZES;
  outputs = (size + stride - 1) / stride;
  total = (outputs - 1) * stride + (window - 1) * dilation + 1 - size;
  if (total < 0) total = 0;
  *before = total / 2;
  *after = total - total / 2;
  return CG_OK;
}

/* Bytes of an element, 0 for a dtype that packs do not have. */
static inline size_t cg_itemsize(int32_t dtype) {
  switch (dtype) {
    case CG_FLOAT: return 4;
    case CG_DOUBLE: return 8;
    case CG_BFLOAT16: return 2;
    case CG_HALF: return 2;
    default: return 0;
  }
}

/* ---- Memory ----

   Scratch holds partial sums, the packed operand, and then a workspace for each worker, 128 bytes apart so that no
   two of them write to neighbouring cache lines. */

static inline size_t cg_up(size_t bytes, size_t boundary) { return (bytes + boundary - 1) / boundary * boundary; }

/* How many of some threads have work. */
static inline int cg_workers(const cg_entry *entry, int threads) {
  if (!entry || threads < 1) return 1;
  return threads < entry->most_workers ? threads : entry->most_workers;
}

/* Bytes of scratch for a number of threads; 0 if none is needed, SIZE_MAX if it fits no address space. */
static inline size_t cg_scratch_bytes(const cg_entry *entry, int threads) {
  const size_t others = (size_t)(cg_workers(entry, threads) - 1);
  size_t alone, apart;
  if (!entry) return 0;
  alone = cg_up(entry->partial_bytes, 64) + cg_up(entry->packed_bytes, 64) + cg_up(entry->worker_bytes, 64);
  apart = cg_up(entry->worker_bytes, 128);
  if (others && apart > (SIZE_MAX - alone) / others) return SIZE_MAX;
  return alone + others * apart;
}

static inline int cg_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  if (!a_bytes || !b_bytes) return 0;
  return x < y ? y - x < a_bytes : x - y < b_bytes;
}

/* Whether a call with these arguments may run: CG_OK, or the first thing that is wrong. */
static inline int cg_check(const cg_entry *entry, int threads, const void *first, const void *second,
                           const void *result, const void *scratch, size_t scratch_bytes) {
  size_t item, needed;
  if (!entry) return CG_NULL;
  if (entry->magic != CG_MAGIC || entry->version != CG_VERSION) return CG_WRONG_VERSION;
  if (threads < 1) return CG_WRONG_WORKER;
  if ((!first && entry->bytes[0]) || (!second && entry->bytes[1]) || (!result && entry->bytes[2])) return CG_NULL;
  item = cg_itemsize(entry->problem.dtype);
  if (!item) return CG_WRONG_VERSION;
  if ((uintptr_t)first % item || (uintptr_t)second % item || (uintptr_t)result % item) return CG_MISALIGNED;
  if (cg_overlap(result, entry->bytes[2], first, entry->bytes[0])) return CG_OVERLAP;
  if (cg_overlap(result, entry->bytes[2], second, entry->bytes[1])) return CG_OVERLAP;
  needed = cg_scratch_bytes(entry, threads);
  if (!needed) return CG_OK;
  if (!scratch || scratch_bytes < needed) return CG_SCRATCH_SMALL;
  if ((uintptr_t)scratch % CG_SCRATCH_ALIGN) return CG_SCRATCH_MISALIGNED;
  if (cg_overlap(scratch, needed, first, entry->bytes[0])) return CG_OVERLAP;
  if (cg_overlap(scratch, needed, second, entry->bytes[1])) return CG_OVERLAP;
  if (cg_overlap(scratch, needed, result, entry->bytes[2])) return CG_OVERLAP;
  return CG_OK;
}

/* ---- Running ----

   A problem is a few launches in order, each of which must see all that the one before wrote. A launch is chunks that
   any worker may run at any time. Threads of the caller's choosing:

     cg_job job;
     int code = cg_begin(&job, entry, threads, first, second, result, scratch, bytes);
     for (launch = 0; code == CG_OK && launch < entry->launch_count; launch++) {
       code = cg_launch_begin(&job, launch);
       ... on every thread w of [0, job.workers), for each k of [0, job.chunks) once: cg_run_chunk(&job, k, w);
       ... wait for all
     }

   cg_run_parallel does that with a loop of the caller's. */

typedef struct cg_job {
  const cg_entry *entry;
  const cg_launch *launch;
  const void *places[5];
  char *workspaces;
  size_t workspace_stride;
  int64_t items, claim;
  int64_t chunks; /* of this launch */
  int workers;    /* that may run them */
  int64_t words[CG_MOST_WORDS];
} cg_job;

/* Items of one chunk, by the rule of the library's own threads. */
static inline int64_t cg_claim(const cg_launch *launch, int workers) {
  int64_t claim;
  if (workers < 2) return launch->items > 0 ? launch->items : 1;
  claim = launch->items / workers;
  if (claim > launch->grain) claim = launch->grain;
  return claim < launch->least ? launch->least : claim;
}

/* Into how many chunks a launch is cut for a number of threads; 0 for a launch that is not there. */
static inline int64_t cg_chunks(const cg_entry *entry, int launch, int threads) {
  int64_t claim;
  if (!entry || launch < 0 || launch >= entry->launch_count) return 0;
  claim = cg_claim(entry->launches + launch, cg_workers(entry, threads));
  return (entry->launches[launch].items + claim - 1) / claim;
}

/* Checks the arguments of a call. An entry that has no launches is done afterwards: its result is zeros. */
static inline int cg_begin(cg_job *job, const cg_entry *entry, int threads, const void *first, const void *second,
                           void *result, void *scratch, size_t scratch_bytes) {
  int code;
  if (!job) return CG_NULL;
  code = cg_check(entry, threads, first, second, result, scratch, scratch_bytes);
  if (code != CG_OK) return code;
  job->entry = entry;
  job->launch = NULL;
  job->places[0] = first;
  job->places[1] = second;
  job->places[2] = result;
  job->places[3] = job->places[4] = NULL;
  job->workspaces = (char *)scratch;
  if (scratch) {
    job->places[3] = job->workspaces;
    job->workspaces += cg_up(entry->partial_bytes, 64);
    job->places[4] = job->workspaces;
    job->workspaces += cg_up(entry->packed_bytes, 64);
  }
  job->workspace_stride = cg_up(entry->worker_bytes, 128);
  job->items = job->chunks = 0;
  job->claim = 1;
  job->workers = cg_workers(entry, threads);
  if (entry->launch_count == 0) {
    /* volatile: compilers turn a plain loop into a call of memset, which bare machines may not have. */
    volatile unsigned char *to = (volatile unsigned char *)result;
    size_t i;
    for (i = 0; i < entry->bytes[2]; i++) to[i] = 0;
  }
  return CG_OK;
}

/* Prepares one launch; job->chunks of them are then to be run. Not while chunks of another launch are running. */
static inline int cg_launch_begin(cg_job *job, int number) {
  const cg_launch *launch;
  const volatile int64_t *words; /* volatile as above, for memcpy */
  int32_t i, count = 0;
  if (!job || !job->entry) return CG_NULL;
  if (number < 0 || number >= job->entry->launch_count) return CG_WRONG_LAUNCH;
  launch = job->entry->launches + number;
  if (launch->place_count < 0 || launch->place_count > CG_MOST_PLACES || launch->word_count < 0 ||
      launch->word_count > CG_MOST_WORDS - CG_MOST_PLACES - 1)
    return CG_WRONG_VERSION;
  for (i = 0; i < launch->place_count; i++) {
    if (launch->places[i] > 4) return CG_WRONG_VERSION;
    job->words[count++] = (int64_t)(uintptr_t)job->places[launch->places[i]];
  }
  if (launch->table) job->words[count++] = (int64_t)(uintptr_t)launch->table;
  words = launch->words;
  for (i = 0; i < launch->word_count; i++) job->words[count++] = words[i];
  job->launch = launch;
  job->items = launch->items;
  job->claim = cg_claim(launch, job->workers);
  job->chunks = (launch->items + job->claim - 1) / job->claim;
  return CG_OK;
}

/* Runs chunk `chunk` as worker `worker`. No two threads may be the same worker at the same time. */
static inline int cg_run_chunk(const cg_job *job, int64_t chunk, int worker) {
  int64_t begin, end;
  if (!job || !job->launch) return CG_NULL;
  if (worker < 0 || worker >= job->workers) return CG_WRONG_WORKER;
  if (chunk < 0 || chunk >= job->chunks) return CG_WRONG_CHUNK;
  begin = chunk * job->claim;
  end = job->items - begin < job->claim ? job->items : begin + job->claim;
  job->launch->kernel(job->words, begin, end,
                      job->workspaces ? job->workspaces + (size_t)worker * job->workspace_stride : NULL);
  return CG_OK;
}

/* The caller's loop: calls task(job, chunk, worker) once for every chunk of [0, chunks), in any order, on at most
   `workers` threads that call themselves 0 to workers - 1, and returns when all of these calls have returned. It
   returns 0, or anything else if not all of them were made. */
typedef int (*cg_task)(const cg_job *job, int64_t chunk, int worker);
typedef int (*cg_parallel_for)(void *context, int64_t chunks, int workers, cg_task task, const cg_job *job);

/* Runs an entry on threads of the caller's. Without a loop, or where there is nothing to share, on the calling one. */
static inline int cg_run_parallel(const cg_entry *entry, const void *first, const void *second, void *result,
                                  void *scratch, size_t scratch_bytes, int threads, cg_parallel_for loop,
                                  void *context) {
  cg_job job;
  int launch, code = cg_begin(&job, entry, loop ? threads : 1, first, second, result, scratch, scratch_bytes);
  for (launch = 0; code == CG_OK && launch < entry->launch_count; launch++) {
    code = cg_launch_begin(&job, launch);
    if (code != CG_OK || job.chunks < 1) continue;
    if (loop && job.workers > 1 && job.chunks > 1) {
      if (loop(context, job.chunks, job.workers, cg_run_chunk, &job) != 0) code = CG_NOT_RUN;
    } else {
      /* One chunk, or several where there is no loop to share them. */
      int64_t chunk;
      for (chunk = 0; code == CG_OK && chunk < job.chunks; chunk++) code = cg_run_chunk(&job, chunk, 0);
    }
  }
  return code;
}

/* Runs an entry on the calling thread. */
static inline int cg_run(const cg_entry *entry, const void *first, const void *second, void *result, void *scratch,
                         size_t scratch_bytes) {
  return cg_run_parallel(entry, first, second, result, scratch, scratch_bytes, 1, NULL, NULL);
}

#ifdef __cplusplus
}
#endif

#endif
