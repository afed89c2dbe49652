/* convgrad_pack.h: runs what is in a pack that `convgrad export` wrote: convolutions, batch norm, blocks of both.
   C99 and C++17.

   The same text for every pack. It allocates nothing, has no globals and calls no function of a C library. Memory is
   the caller's: the places of an entry, which are arrays that are given or made, and scratch. Threads are the caller's
   too, if there are any.

     const cg_entry *entry = cg_find(&NAME, &problem);            a convolution, by what it is
     size_t bytes = cg_scratch_bytes(entry, 1);                   of memory on a boundary of CG_SCRATCH_ALIGN
     int code = cg_run(entry, first, second, result, scratch, bytes);

   Operands, in this order:      forward           input, filter
                                 input gradient    filter, out_backprop
                                 filter gradient   input, out_backprop
   That is for convolutions of three places. An entry of any kind is found by its line and runs on all its places:

     const cg_entry *entry = cg_find_line(&NAME, "conv2d 1x8x8x4 3x3x4x8 padding=1,1:1,1 bias=output");
     void *places[] = {input, filter, output, bias};              in the order of entry->places
     int code = cg_run_places(entry, places, scratch, bytes);

   All arrays are contiguous, of exactly the shape and dtype of their place, and aligned to their elements; what is made
   overlaps neither another place nor the scratch. A function returns CG_OK or a code that cg_error_text puts in words,
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
#define CG_VERSION 2u        /* of the structures below */
#define CG_SCRATCH_ALIGN 64  /* boundary that scratch begins on */
#define CG_MOST_WORDS 96     /* words of a kernel, which lie on the stack; the exporter keeps to it */
#define CG_MOST_POINTERS 6   /* of a launch, besides its table */
#define CG_MOST_PLACES 24    /* of an entry, those that it keeps to itself included */
#define CG_MOST_SEEN 16      /* places that one launch sees */
#define CG_MOST_WORKERS 256
#define CG_NOWHERE 255       /* in place of a place's number: a null pointer */

/* Which of the three tensors is wanted; the last is an entry that is more than a convolution. */
enum { CG_FORWARD = 0, CG_INPUT_GRADIENT = 1, CG_FILTER_GRADIENT = 2, CG_OTHER = 3 };
/* Whose channels a bias belongs to. A filter gradient makes the bias's gradient. */
enum { CG_NO_BIAS = 0, CG_BIAS_OF_INPUT = 1, CG_BIAS_OF_OUTPUT = 2 };
/* What a place is: an array of the caller's that is read or written, or memory that the entry sees to itself. */
enum { CG_GIVEN = 0, CG_MADE = 1, CG_TEMPORARY = 2, CG_CONSTANT = 3 };
/* Order of the dimensions of images. */
enum { CG_NHWC = 0, CG_NCHW = 1 };
/* TensorFlow's numbers of dtypes. */
enum { CG_FLOAT = 1, CG_DOUBLE = 2, CG_BFLOAT16 = 14, CG_HALF = 19 };
/* Endings of a call. */
enum {
  CG_OK = 0,
  CG_NULL = 1,               /* an argument is NULL that must not be */
  CG_MISALIGNED = 2,         /* a place is not aligned to its elements */
  CG_SCRATCH_MISALIGNED = 3, /* the scratch does not begin on a boundary of CG_SCRATCH_ALIGN */
  CG_SCRATCH_SMALL = 4,      /* fewer bytes than cg_scratch_bytes says, or none */
  CG_OVERLAP = 5,            /* what is made overlaps another place, or the scratch overlaps anything */
  CG_WRONG_VERSION = 6,      /* no pack, or one of another version; see cg_version_text */
  CG_WRONG_LAUNCH = 7,       /* no such launch */
  CG_WRONG_WORKER = 8,       /* workers are 0 to workers - 1, at least one */
  CG_WRONG_CHUNK = 9,        /* no such chunk */
  CG_WRONG_SIZES = 10,       /* sizes of which there is no convolution */
  CG_NOT_RUN = 11,           /* the caller's loop gave up */
  CG_WRONG_PLACES = 12       /* the entry has not three places; cg_run_places takes any number */
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
  int64_t bias; /* CG_NO_BIAS, CG_BIAS_OF_INPUT, CG_BIAS_OF_OUTPUT */
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
  int32_t pointer_count;
  uint8_t pointers[CG_MOST_POINTERS]; /* numbers of `seen`; 16 partial sums, 17 packed operand, 18 all that is seen */
  int32_t seen_count;
  const uint8_t *seen; /* numbers of the entry's places, or CG_NOWHERE */
} cg_launch;

/* An array. */
typedef struct cg_place {
  const char *name;
  int32_t dtype;    /* CG_FLOAT, CG_DOUBLE, CG_BFLOAT16, CG_HALF */
  int32_t role;     /* CG_GIVEN, CG_MADE, CG_TEMPORARY, CG_CONSTANT */
  size_t bytes;     /* 0 for an operand that nobody reads */
  const void *data; /* of a constant */
} cg_place;

/* One problem of a pack. */
typedef struct cg_entry {
  uint32_t magic, version;
  cg_problem problem;    /* zeros behind the kind for CG_OTHER */
  const char *name;      /* of its own function */
  const char *line;      /* the problem, as `convgrad export` reads it */
  const char *algorithm; /* who computes it */
  const cg_launch *launches;
  int32_t launch_count; /* 0: there is nothing to add up, and what is made is zeros */
  int32_t most_workers; /* workers there is work for */
  size_t partial_bytes, packed_bytes, temporary_bytes, worker_bytes;
  const cg_place *places; /* the caller's, then temporaries and constants */
  int32_t place_count;    /* the caller's */
  int32_t all_count;
} cg_entry;

typedef struct cg_pack {
  uint32_t magic, version;
  const char *name, *target, *writer;   /* the writer is the version of convgrad */
  int64_t l1_bytes, l2_bytes, l3_bytes; /* cache sizes that were planned for */
  const cg_entry *const *entries;       /* sorted by cg_order, then by line */
  size_t count;
} cg_pack;

static inline const char *cg_error_text(int code) {
  switch (code) {
    case CG_OK: return "done";
    case CG_NULL: return "an argument is NULL that must not be";
    case CG_MISALIGNED: return "a place is not aligned to its elements";
    case CG_SCRATCH_MISALIGNED: return "the scratch must begin on a boundary of 64 bytes";
    case CG_SCRATCH_SMALL: return "the scratch has fewer bytes than cg_scratch_bytes says";
    case CG_OVERLAP: return "what is made or the scratch overlaps other memory of the call";
    case CG_WRONG_VERSION: return "no pack, or a pack of another version than 2; export it again";
    case CG_WRONG_LAUNCH: return "no such launch";
    case CG_WRONG_WORKER: return "no such worker";
    case CG_WRONG_CHUNK: return "no such chunk";
    case CG_WRONG_SIZES: return "sizes of which there is no convolution";
    case CG_NOT_RUN: return "the caller's loop gave up";
    case CG_WRONG_PLACES: return "the entry has not three places; cg_run_places takes any number";
    default: return "no code of convgrad_pack.h";
  }
}

/* Why a pack is refused, in words; NULL for one that can be run. Every version begins with these two numbers. */
static inline const char *cg_version_text(const cg_pack *pack) {
  if (!pack || pack->magic != CG_MAGIC) return "this is not a pack";
  if (pack->version == CG_VERSION) return NULL;
  if (pack->version == 1u) return "this pack is of version 1; export it again";
  return "this pack is of another version than convgrad_pack.h; export it again";
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
  CG_ORDER_BY(bias);
  return 0;
}

#undef CG_ORDER_BY

/* The entry of a line, spelled as in NAME.h, or NULL. */
static inline const cg_entry *cg_find_line(const cg_pack *pack, const char *line) {
  size_t at, i;
  if (!pack || !line || pack->magic != CG_MAGIC || pack->version != CG_VERSION) return NULL;
  for (at = 0; at < pack->count; at++) {
    const char *own = pack->entries[at]->line;
    for (i = 0; own[i] && own[i] == line[i];) i++;
    if (own[i] == line[i]) return pack->entries[at];
  }
  return NULL;
}

/* The entry of a problem, or NULL: for a problem the pack does not have, whatever its numbers are, and for NULL. */
static inline const cg_entry *cg_find(const cg_pack *pack, const cg_problem *problem) {
  size_t low = 0, high;
  if (!pack || !problem || pack->magic != CG_MAGIC || pack->version != CG_VERSION) return NULL;
  if (problem->kind == CG_OTHER) return NULL; /* these are not told apart by their numbers */
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

   Scratch holds partial sums, the packed operand, temporary places, and then a workspace for each worker, 128 bytes apart so that no
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
  alone = cg_up(entry->partial_bytes, 64) + cg_up(entry->packed_bytes, 64) + cg_up(entry->temporary_bytes, 64) +
          cg_up(entry->worker_bytes, 64);
  apart = cg_up(entry->worker_bytes, 128);
  if (others && apart > (SIZE_MAX - alone) / others) return SIZE_MAX;
  return alone + others * apart;
}

static inline int cg_overlap(const void *a, size_t a_bytes, const void *b, size_t b_bytes) {
  const uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;
  if (!a_bytes || !b_bytes) return 0;
  return x < y ? y - x < a_bytes : x - y < b_bytes;
}

/* Whether a call on these places may run: CG_OK, or the first thing that is wrong. */
static inline int cg_check_places(const cg_entry *entry, int threads, void *const *places, const void *scratch,
                                  size_t scratch_bytes) {
  size_t needed;
  int32_t i, k;
  if (!entry) return CG_NULL;
  if (entry->magic != CG_MAGIC || entry->version != CG_VERSION) return CG_WRONG_VERSION;
  if (entry->place_count < 1 || entry->place_count > entry->all_count || entry->all_count > CG_MOST_PLACES)
    return CG_WRONG_VERSION;
  if (entry->problem.kind != CG_OTHER && !cg_itemsize(entry->problem.dtype)) return CG_WRONG_VERSION;
  if (threads < 1) return CG_WRONG_WORKER;
  if (!places) return CG_NULL;
  for (i = 0; i < entry->place_count; i++)
    if (!places[i] && entry->places[i].bytes) return CG_NULL;
  for (i = 0; i < entry->place_count; i++) {
    const size_t item = cg_itemsize(entry->places[i].dtype);
    if (!item || (entry->places[i].role != CG_GIVEN && entry->places[i].role != CG_MADE)) return CG_WRONG_VERSION;
    if ((uintptr_t)places[i] % item) return CG_MISALIGNED;
  }
  for (i = 0; i < entry->place_count; i++) {
    if (entry->places[i].role != CG_MADE) continue;
    for (k = 0; k < entry->place_count; k++)
      if (k != i && cg_overlap(places[i], entry->places[i].bytes, places[k], entry->places[k].bytes))
        return CG_OVERLAP;
  }
  needed = cg_scratch_bytes(entry, threads);
  if (!needed) return CG_OK;
  if (!scratch || scratch_bytes < needed) return CG_SCRATCH_SMALL;
  if ((uintptr_t)scratch % CG_SCRATCH_ALIGN) return CG_SCRATCH_MISALIGNED;
  for (i = 0; i < entry->place_count; i++)
    if (cg_overlap(scratch, needed, places[i], entry->places[i].bytes)) return CG_OVERLAP;
  return CG_OK;
}

/* Three places as an array. What is given is only read, though the array says void *. */
static inline int cg_three(const cg_entry *entry, const void *first, const void *second, const void *result,
                           void **places) {
  if (!entry) return CG_NULL;
  if (entry->magic != CG_MAGIC || entry->version != CG_VERSION) return CG_WRONG_VERSION;
  if (entry->place_count != 3) return CG_WRONG_PLACES;
  places[0] = (void *)(uintptr_t)first;
  places[1] = (void *)(uintptr_t)second;
  places[2] = (void *)(uintptr_t)result;
  return CG_OK;
}

/* The same as cg_check_places for a plain convolution. */
static inline int cg_check(const cg_entry *entry, int threads, const void *first, const void *second,
                           const void *result, const void *scratch, size_t scratch_bytes) {
  void *places[3];
  const int code = cg_three(entry, first, second, result, places);
  return code == CG_OK ? cg_check_places(entry, threads, places, scratch, scratch_bytes) : code;
}

/* ---- Running ----

   A problem is a few launches in order, each of which must see all that the one before wrote. A launch is chunks that
   any worker may run at any time. Threads of the caller's choosing:

     cg_job job;
     int code = cg_begin_places(&job, entry, threads, places, scratch, bytes);
     for (launch = 0; code == CG_OK && launch < entry->launch_count; launch++) {
       code = cg_launch_begin(&job, launch);
       ... on every thread w of [0, job.workers), for each k of [0, job.chunks) once: cg_run_chunk(&job, k, w);
       ... wait for all
     }

   cg_run_places_parallel does that with a loop of the caller's. A job stays where it is until all is done: kernels are
   given its address. cg_begin, cg_run_parallel and cg_run are the same for convolutions of three places. */

typedef struct cg_job {
  const cg_entry *entry;
  const cg_launch *launch;
  int64_t places[CG_MOST_PLACES]; /* addresses of the entry's places */
  int64_t seen[CG_MOST_SEEN];     /* of those that this launch sees */
  int64_t partial, packed;
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

/* Checks the arguments of a call. An entry that has no launches is done afterwards: what it makes is zeros. */
static inline int cg_begin_places(cg_job *job, const cg_entry *entry, int threads, void *const *places, void *scratch,
                                  size_t scratch_bytes) {
  int32_t i;
  int code;
  char *at = (char *)scratch;
  if (!job) return CG_NULL;
  code = cg_check_places(entry, threads, places, scratch, scratch_bytes);
  if (code != CG_OK) return code;
  job->entry = entry;
  job->launch = NULL;
  job->partial = job->packed = (int64_t)(uintptr_t)at;
  if (at) {
    at += cg_up(entry->partial_bytes, 64);
    job->packed = (int64_t)(uintptr_t)at;
    at += cg_up(entry->packed_bytes, 64);
  }
  job->workspaces = at ? at + cg_up(entry->temporary_bytes, 64) : NULL;
  for (i = 0; i < entry->all_count; i++) {
    const cg_place *place = entry->places + i;
    if (i < entry->place_count) {
      job->places[i] = (int64_t)(uintptr_t)places[i];
    } else if (place->role == CG_CONSTANT) {
      job->places[i] = (int64_t)(uintptr_t)place->data;
    } else {
      job->places[i] = (int64_t)(uintptr_t)at;
      if (at) at += cg_up(place->bytes, 64);
    }
  }
  job->workspace_stride = cg_up(entry->worker_bytes, 128);
  job->items = job->chunks = 0;
  job->claim = 1;
  job->workers = cg_workers(entry, threads);
  if (entry->launch_count == 0) {
    for (i = 0; i < entry->place_count; i++) {
      /* volatile: compilers turn a plain loop into a call of memset, which bare machines may not have. */
      volatile unsigned char *to = (volatile unsigned char *)places[i];
      size_t k;
      if (entry->places[i].role != CG_MADE) continue;
      for (k = 0; k < entry->places[i].bytes; k++) to[k] = 0;
    }
  }
  return CG_OK;
}

static inline int cg_begin(cg_job *job, const cg_entry *entry, int threads, const void *first, const void *second,
                           void *result, void *scratch, size_t scratch_bytes) {
  void *places[3];
  int code;
  if (!job) return CG_NULL;
  code = cg_three(entry, first, second, result, places);
  return code == CG_OK ? cg_begin_places(job, entry, threads, places, scratch, scratch_bytes) : code;
}

/* Prepares one launch; job->chunks of them are then to be run. Not while chunks of another launch are running. */
static inline int cg_launch_begin(cg_job *job, int number) {
  const cg_launch *launch;
  const volatile int64_t *words; /* volatile as above, for memcpy */
  int32_t i, count = 0;
  if (!job || !job->entry) return CG_NULL;
  if (number < 0 || number >= job->entry->launch_count) return CG_WRONG_LAUNCH;
  launch = job->entry->launches + number;
  if (launch->pointer_count < 0 || launch->pointer_count > CG_MOST_POINTERS || launch->word_count < 0 ||
      launch->word_count > CG_MOST_WORDS - CG_MOST_POINTERS - 1 || launch->seen_count < 0 ||
      launch->seen_count > CG_MOST_SEEN)
    return CG_WRONG_VERSION;
  for (i = 0; i < launch->seen_count; i++) {
    const int32_t place = launch->seen[i];
    if (place != CG_NOWHERE && place >= job->entry->all_count) return CG_WRONG_VERSION;
    job->seen[i] = place == CG_NOWHERE ? 0 : job->places[place];
  }
  for (i = 0; i < launch->pointer_count; i++) {
    const int32_t pointer = launch->pointers[i];
    if (pointer < launch->seen_count) {
      job->words[count++] = job->seen[pointer];
    } else if (pointer == CG_MOST_SEEN) {
      job->words[count++] = job->partial;
    } else if (pointer == CG_MOST_SEEN + 1) {
      job->words[count++] = job->packed;
    } else if (pointer == CG_MOST_SEEN + 2) {
      job->words[count++] = (int64_t)(uintptr_t)job->seen;
    } else {
      return CG_WRONG_VERSION;
    }
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
static inline int cg_run_places_parallel(const cg_entry *entry, void *const *places, void *scratch,
                                         size_t scratch_bytes, int threads, cg_parallel_for loop, void *context) {
  cg_job job;
  int launch, code = cg_begin_places(&job, entry, loop ? threads : 1, places, scratch, scratch_bytes);
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

/* Runs an entry on the calling thread, on its places in their order. */
static inline int cg_run_places(const cg_entry *entry, void *const *places, void *scratch, size_t scratch_bytes) {
  return cg_run_places_parallel(entry, places, scratch, scratch_bytes, 1, NULL, NULL);
}

static inline int cg_run_parallel(const cg_entry *entry, const void *first, const void *second, void *result,
                                  void *scratch, size_t scratch_bytes, int threads, cg_parallel_for loop,
                                  void *context) {
  void *places[3];
  const int code = cg_three(entry, first, second, result, places);
  if (code != CG_OK) return code;
  return cg_run_places_parallel(entry, places, scratch, scratch_bytes, threads, loop, context);
}

static inline int cg_run(const cg_entry *entry, const void *first, const void *second, void *result, void *scratch,
                         size_t scratch_bytes) {
  return cg_run_parallel(entry, first, second, result, scratch, scratch_bytes, 1, NULL, NULL);
}

#ifdef __cplusplus
}
#endif

#endif
