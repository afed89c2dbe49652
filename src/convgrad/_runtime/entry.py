"""The entry: one compiled function that runs a whole program, as LLVM IR text.

::

    i64 cg_run(program, first, second, result)      on the threads the runtime block says
    i64 cg_call(words)                              the same four, then threads and pool

Both take every launch in order, find memory for partial sums, packed operand and workspaces, share the items among
threads, and return 0; or 1 where memory could not be had, and 2 where `program` is no program of this version. They
need no interpreter and no lock of it, any thread may call them, and any number of threads at once.

The text is compiled together with the parallel loop (`parfor`), which it hands jobs to. The other pool is OpenMP's: the
body that `GOMP_parallel` runs on each of its threads claims chunks from the same kind of word, kept on the caller's
stack, so that seats, chunks and bits are the same. One call at a time goes to OpenMP, as to our own pool: a second
caller runs its items itself, where OpenMP would start another set of threads for it.

Memory comes from `SLOTS` blocks that are kept between calls. A block is taken by exchanging its slot for 0 and given
back to the first slot that is 0, so there is no lock and a fork or a thread that dies loses a block at most.
"""

from __future__ import annotations

import re

from .bound import LAUNCH, MAGIC, MOST_ARGUMENTS, PROGRAM
from .parking import CONTROL_WORDS
from .state import OPENMP, SLOTS, STATE

RUN = "cg_run"
CALL = "cg_call"
RELEASE = "cg_release"
SYMBOLS = (RUN, CALL, RELEASE)

CALL_WORDS = ("PROGRAM", "FIRST", "SECOND", "RESULT", "THREADS", "POOL")
"""What `cg_call` is given. THREADS 0 asks the runtime block, or OpenMP if its pool is used; POOL -1 asks the block."""
OK, NO_MEMORY, NO_PROGRAM = 0, 1, 2

KEPT = 64 << 20
"""Bytes of the largest block that is kept between calls."""
_STEP, _HUGE = 64 << 10, 2 << 20
_SLACK = 1 << 20
"""A block may be 16 times too large for what it is taken for, and up to this size in any case."""


def text() -> str:
    """Return the entry; names in capitals that are not spelt out here are `parfor`'s."""
    fields = {
        **{f"STATE_{name}": at for name, at in STATE.items()},
        **{f"PROGRAM_{name}": at for at, name in enumerate(PROGRAM)},
        **{f"LAUNCH_{name}": at for at, name in enumerate(LAUNCH)},
        "PROGRAM_WORDS": len(PROGRAM),
        "LAUNCH_HEADER": len(LAUNCH),
        "MAGIC": MAGIC,
        "MOST_JOB": MOST_ARGUMENTS + 8,
        "SLOTS": SLOTS,
        "KEPT": KEPT,
        "STEP": _STEP,
        "HUGE": _HUGE,
        "SLACK": _SLACK,
        "OPENMP": OPENMP,
        "CONTROL_SIZE": CONTROL_WORDS,
        "NO_MEMORY": NO_MEMORY,
        "NO_PROGRAM": NO_PROGRAM,
    }
    found = re.sub(r"\$([A-Z_]+)", lambda m: str(fields.get(m[1], m[0])), _TEXT)
    return re.sub(r"^  %(\w+) = word (\w+) (%\w+), (\S+)$", _word, found, flags=re.MULTILINE)


def _word(match: re.Match[str]) -> str:
    """Spell ``%x = word i64 %base, 3``: the fourth word behind an address."""
    name, kind, base, at = match.groups()
    return (
        f"  %{name}.at = getelementptr i64, ptr {base}, i64 {at}\n"
        f"  %{name} = load {kind}, ptr %{name}.at, align 8"
    )


_TEXT = """
; ---- memory ----

; A block lies behind 16 bytes that say where malloc's begins and how large it is.
define internal void @free_block(ptr %state, ptr %block) nounwind {
  %raw = word ptr %block, -2
  %free = word ptr %state, $STATE_FREE
  call void %free(ptr %raw)
  ret void
}

define internal ptr @new_block(ptr %state, i64 %bytes) nounwind {
entry:
  %large = icmp uge i64 %bytes, $HUGE
  %step = select i1 %large, i64 $HUGE, i64 $STEP
  %alignment = select i1 %large, i64 $HUGE, i64 64
  %up = add i64 %bytes, %step
  %less = sub i64 %up, 1
  %steps = udiv i64 %less, %step
  %size = mul i64 %steps, %step
  %room = add i64 %size, %alignment
  %asked = add i64 %room, 64
  %malloc = word ptr %state, $STATE_MALLOC
  %raw = call ptr %malloc(i64 %asked)
  %refused = icmp eq ptr %raw, null
  br i1 %refused, label %none, label %got
none:
  ret ptr null
got:
  %start = ptrtoint ptr %raw to i64
  %behind = add i64 %start, 63
  %far = add i64 %behind, %alignment
  %mask = sub i64 0, %alignment
  %at = and i64 %far, %mask
  %block = inttoptr i64 %at to ptr
  %raw_at = getelementptr i64, ptr %block, i64 -2
  store ptr %raw, ptr %raw_at, align 8
  %size_at = getelementptr i64, ptr %block, i64 -1
  store i64 %size, ptr %size_at, align 8
  %madvise = word ptr %state, $STATE_MADVISE
  %can = icmp ne ptr %madvise, null
  %advise = and i1 %large, %can
  br i1 %advise, label %huge, label %done
huge:
  ; 14: MADV_HUGEPAGE. The first touch of 4 KB pages costs more than most kernels.
  %advised = call i32 %madvise(ptr %block, i64 %size, i32 14)
  br label %done
done:
  ret ptr %block
}

; Find memory for %bytes; null where there is none, or nothing is asked.
define internal ptr @take_memory(ptr %state, i64 %bytes) nounwind {
entry:
  %nothing = icmp eq i64 %bytes, 0
  br i1 %nothing, label %none, label %who
who:
  %take = word ptr %state, $STATE_TAKE
  %theirs = icmp ne ptr %take, null
  br i1 %theirs, label %ask, label %ours
ask:
  %lent = call ptr %take(i64 %bytes)
  ret ptr %lent
ours:
  %sixteen = shl i64 %bytes, 4
  %small = icmp ult i64 %sixteen, $SLACK
  %most = select i1 %small, i64 $SLACK, i64 %sixteen
  br label %slot
slot:
  %i = phi i64 [ 0, %ours ], [ %next, %again ]
  %number = add i64 %i, $STATE_SLOT
  %slot_at = getelementptr i64, ptr %state, i64 %number
  %found = atomicrmw xchg ptr %slot_at, i64 0 acquire, align 8
  %empty = icmp eq i64 %found, 0
  br i1 %empty, label %again, label %look
look:
  %block = inttoptr i64 %found to ptr
  %size = word i64 %block, -1
  %enough = icmp uge i64 %size, %bytes
  %thrifty = icmp ule i64 %size, %most
  %fits = and i1 %enough, %thrifty
  br i1 %fits, label %got, label %back
got:
  ret ptr %block
back:
  %swap = cmpxchg ptr %slot_at, i64 0, i64 %found release monotonic, align 8
  %kept = extractvalue { i64, i1 } %swap, 1
  br i1 %kept, label %again, label %drop
drop:
  call void @free_block(ptr %state, ptr %block)
  br label %again
again:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, $SLOTS
  br i1 %more, label %slot, label %new
new:
  %made = call ptr @new_block(ptr %state, i64 %bytes)
  ret ptr %made
none:
  ret ptr null
}

define internal void @give_memory(ptr %state, ptr %block, i64 %bytes) nounwind {
entry:
  %nothing = icmp eq ptr %block, null
  br i1 %nothing, label %done, label %who
who:
  %give = word ptr %state, $STATE_GIVE
  %theirs = icmp ne ptr %give, null
  br i1 %theirs, label %return, label %ours
return:
  call void %give(ptr %block, i64 %bytes)
  ret void
ours:
  %value = ptrtoint ptr %block to i64
  %size = word i64 %block, -1
  %large = icmp ugt i64 %size, $KEPT
  br i1 %large, label %drop, label %slot
slot:
  %i = phi i64 [ 0, %ours ], [ %next, %taken ]
  %number = add i64 %i, $STATE_SLOT
  %slot_at = getelementptr i64, ptr %state, i64 %number
  %swap = cmpxchg ptr %slot_at, i64 0, i64 %value release monotonic, align 8
  %kept = extractvalue { i64, i1 } %swap, 1
  br i1 %kept, label %done, label %taken
taken:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, $SLOTS
  br i1 %more, label %slot, label %replace
replace:
  ; All are full, of sizes nobody asked for lately: the first makes room.
  %first_at = getelementptr i64, ptr %state, i64 $STATE_SLOT
  %old = atomicrmw xchg ptr %first_at, i64 %value acq_rel, align 8
  %vacant = icmp eq i64 %old, 0
  br i1 %vacant, label %done, label %free_old
free_old:
  %old_block = inttoptr i64 %old to ptr
  call void @free_block(ptr %state, ptr %old_block)
  ret void
drop:
  call void @free_block(ptr %state, ptr %block)
  ret void
done:
  ret void
}

; Free all blocks that are in no call.
define void @cg_release(ptr %state) nounwind {
entry:
  br label %slot
slot:
  %i = phi i64 [ 0, %entry ], [ %next, %again ]
  %number = add i64 %i, $STATE_SLOT
  %slot_at = getelementptr i64, ptr %state, i64 %number
  %found = atomicrmw xchg ptr %slot_at, i64 0 acquire, align 8
  %empty = icmp eq i64 %found, 0
  br i1 %empty, label %again, label %free
free:
  %block = inttoptr i64 %found to ptr
  call void @free_block(ptr %state, ptr %block)
  br label %again
again:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, $SLOTS
  br i1 %more, label %slot, label %done
done:
  ret void
}

; ---- pools ----

; Keep our workers off the processor the calling thread is on (see `State.place_workers`).
define internal void @make_room(ptr %state) nounwind {
entry:
  %others = alloca [16 x i64], align 8
  %getcpu = word ptr %state, $STATE_GETCPU
  %cannot = icmp eq ptr %getcpu, null
  br i1 %cannot, label %done, label %ask
ask:
  %cpu32 = call i32 %getcpu()
  %cpu = sext i32 %cpu32 to i64
  %before = word i64 %state, $STATE_CALLER_CPU
  %workers = word i64 %state, $STATE_WORKERS
  %placed = word i64 %state, $STATE_PLACED
  %same_cpu = icmp eq i64 %cpu, %before
  %same_workers = icmp eq i64 %workers, %placed
  %same = and i1 %same_cpu, %same_workers
  br i1 %same, label %done, label %known
known:
  %in_mask = icmp ult i64 %cpu, 1024
  br i1 %in_mask, label %move, label %done
move:
  %cpu_at = getelementptr i64, ptr %state, i64 $STATE_CALLER_CPU
  store i64 %cpu, ptr %cpu_at, align 8
  %placed_at = getelementptr i64, ptr %state, i64 $STATE_PLACED
  store i64 %workers, ptr %placed_at, align 8
  %mine = lshr i64 %cpu, 6
  %shift = and i64 %cpu, 63
  %bit = shl i64 1, %shift
  %unset = xor i64 %bit, -1
  br label %mask
mask:
  %i = phi i64 [ 0, %move ], [ %next, %mask ]
  %any = phi i64 [ 0, %move ], [ %any_more, %mask ]
  %allowed_number = add i64 %i, $STATE_ALLOWED
  %allowed = word i64 %state, %allowed_number
  %here = icmp eq i64 %i, %mine
  %filter = select i1 %here, i64 %unset, i64 -1
  %bits = and i64 %allowed, %filter
  %to = getelementptr i64, ptr %others, i64 %i
  store i64 %bits, ptr %to, align 8
  %any_more = or i64 %any, %bits
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, 16
  br i1 %more, label %mask, label %masked
masked:
  %nowhere = icmp eq i64 %any_more, 0
  %nobody = icmp eq i64 %workers, 0
  %useless = or i1 %nowhere, %nobody
  br i1 %useless, label %done, label %place
place:
  %w = phi i64 [ 0, %masked ], [ %w_next, %place ]
  %tid_number = add i64 %w, $STATE_TIDS
  %tid = word i64 %state, %tid_number
  %tid32 = trunc i64 %tid to i32
  %setaffinity = word ptr %state, $STATE_SETAFFINITY
  %r = call i32 %setaffinity(i32 %tid32, i64 128, ptr %others)
  %w_next = add i64 %w, 1
  %w_more = icmp ult i64 %w_next, %workers
  br i1 %w_more, label %place, label %done
done:
  ret void
}

; What each of OpenMP's threads does with a job whose word is on the caller's stack.
define internal void @openmp_body(ptr %control) nounwind {
entry:
  %next_at = getelementptr i64, ptr %control, i64 $DONE
  %slot = atomicrmw add ptr %next_at, i64 1 seq_cst, align 8
  %job = word ptr %control, $CURRENT_JOB
  %threads = word i64 %job, $JOB_THREADS
  %expected = icmp ult i64 %slot, %threads
  br i1 %expected, label %seek, label %done
seek:
  %first = call i64 @take(ptr %control, i64 0)
  %none = icmp eq i64 %first, -1
  br i1 %none, label %done, label %work
work:
  %chunks = call i64 @drain(ptr %control, i64 %first, i64 %slot)
  br label %done
done:
  ret void
}

define internal void @run_openmp(ptr %state, ptr %job) nounwind {
entry:
  %control = alloca [$CONTROL_SIZE x i64], align 128
  %items = word i64 %job, $JOB_ITEMS
  %asked = word i64 %job, $JOB_GRAIN
  %threads = word i64 %job, $JOB_THREADS
  %grain = call i64 @chunk_size(i64 %items, i64 %asked)
  %sum = add i64 %items, %grain
  %less = sub i64 %sum, 1
  %chunks = udiv i64 %less, %grain
  %word = shl i64 %chunks, $CHUNK_BITS
  store i64 %word, ptr %control, align 8
  %next_at = getelementptr i64, ptr %control, i64 $DONE
  store i64 0, ptr %next_at, align 8
  %job_at = getelementptr i64, ptr %control, i64 $CURRENT_JOB
  store ptr %job, ptr %job_at, align 8
  %grain_at = getelementptr i64, ptr %control, i64 $CURRENT_GRAIN
  store i64 %grain, ptr %grain_at, align 8
  %busy = getelementptr i64, ptr %state, i64 $STATE_OMP_BUSY
  %lock = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic, align 8
  %locked = extractvalue { i64, i1 } %lock, 1
  br i1 %locked, label %share, label %alone
share:
  %gomp = word ptr %state, $STATE_GOMP
  %threads32 = trunc i64 %threads to i32
  call void %gomp(ptr @openmp_body, ptr %control, i32 %threads32, i32 0)
  store atomic i64 0, ptr %busy release, align 8
  ret void
alone:
  call void @openmp_body(ptr %control)
  ret void
}

; ---- the entry ----

define internal i64 @run_with(ptr %program, ptr %first, ptr %second, ptr %result, i64 %asked, i64 %pool) nounwind {
entry:
  %job = alloca [$MOST_JOB x i64], align 16
  %places = alloca [5 x ptr], align 8
  %magic = word i64 %program, $PROGRAM_MAGIC
  %known = icmp eq i64 %magic, $MAGIC
  br i1 %known, label %begin, label %stranger
stranger:
  ret i64 $NO_PROGRAM
begin:
  %state = word ptr %program, $PROGRAM_STATE
  %most = word i64 %program, $PROGRAM_THREADS
  %args = getelementptr i64, ptr %job, i64 $JOB_SIZE
  store ptr %first, ptr %places, align 8
  %second_at = getelementptr ptr, ptr %places, i64 1
  store ptr %second, ptr %second_at, align 8
  %result_at = getelementptr ptr, ptr %places, i64 2
  store ptr %result, ptr %result_at, align 8

  ; Which pool, and how many threads: one if there is no pool.
  %control = word ptr %state, $STATE_CONTROL
  %gomp = word ptr %state, $STATE_GOMP
  %has_gomp = icmp ne ptr %gomp, null
  %usual = word i64 %state, $STATE_POOL
  %said = icmp sge i64 %pool, 0
  %pool_here = select i1 %said, i64 %pool, i64 %usual
  %wants_openmp = icmp eq i64 %pool_here, $OPENMP
  %openmp = and i1 %wants_openmp, %has_gomp
  %has_own = icmp ne ptr %control, null
  %has_pool = or i1 %openmp, %has_own
  %many = icmp sgt i64 %most, 1
  %can_share = and i1 %has_pool, %many
  br i1 %can_share, label %count, label %counted
count:
  %unsaid = icmp eq i64 %asked, 0
  br i1 %unsaid, label %default, label %counted
default:
  br i1 %openmp, label %ask_openmp, label %ask_state
ask_openmp:
  %omp_max = word ptr %state, $STATE_OMP_MAX
  %theirs32 = call i32 %omp_max()
  %theirs = sext i32 %theirs32 to i64
  br label %counted
ask_state:
  %ours = word i64 %state, $STATE_THREADS
  br label %counted
counted:
  %wanted = phi i64 [ 1, %begin ], [ %asked, %count ], [ %theirs, %ask_openmp ], [ %ours, %ask_state ]
  %too_many = icmp sgt i64 %wanted, %most
  %threads = select i1 %too_many, i64 %most, i64 %wanted

  ; Memory that launches share.
  %partial_bytes = word i64 %program, $PROGRAM_PARTIAL
  %packed_bytes = word i64 %program, $PROGRAM_PACKED
  %partial = call ptr @take_memory(ptr %state, i64 %partial_bytes)
  %packed = call ptr @take_memory(ptr %state, i64 %packed_bytes)
  %partial_at = getelementptr ptr, ptr %places, i64 3
  store ptr %partial, ptr %partial_at, align 8
  %packed_at = getelementptr ptr, ptr %places, i64 4
  store ptr %packed, ptr %packed_at, align 8
  %got_partial = icmp ne ptr %partial, null
  %no_partial = icmp eq i64 %partial_bytes, 0
  %partial_fine = or i1 %got_partial, %no_partial
  %got_packed = icmp ne ptr %packed, null
  %no_packed = icmp eq i64 %packed_bytes, 0
  %packed_fine = or i1 %got_packed, %no_packed
  %fine = and i1 %partial_fine, %packed_fine
  %launches = word i64 %program, $PROGRAM_LAUNCHES
  %some = icmp sgt i64 %launches, 0
  %start = getelementptr i64, ptr %program, i64 $PROGRAM_WORDS
  br i1 %fine, label %any, label %leave
any:
  br i1 %some, label %launch, label %leave

launch:
  %at = phi ptr [ %start, %any ], [ %following, %after ]
  %number = phi i64 [ 0, %any ], [ %number_next, %after ]
  %kernel = word ptr %at, $LAUNCH_KERNEL
  %items = word i64 %at, $LAUNCH_ITEMS
  %grain = word i64 %at, $LAUNCH_GRAIN
  %scratch_bytes = word i64 %at, $LAUNCH_SCRATCH
  %pointers = word i64 %at, $LAUNCH_PLACES
  %words = word i64 %at, $LAUNCH_WORDS
  %distance = word i64 %at, $LAUNCH_NEXT
  %following = getelementptr i64, ptr %at, i64 %distance
  %list = getelementptr i64, ptr %at, i64 $LAUNCH_HEADER
  %has_pointers = icmp sgt i64 %pointers, 0
  br i1 %has_pointers, label %pointer, label %constants
pointer:
  %p = phi i64 [ 0, %launch ], [ %p_next, %pointer ]
  %place = word i64 %list, %p
  %place_at = getelementptr ptr, ptr %places, i64 %place
  %address = load ptr, ptr %place_at, align 8
  %arg_at = getelementptr ptr, ptr %args, i64 %p
  store ptr %address, ptr %arg_at, align 8
  %p_next = add i64 %p, 1
  %p_more = icmp ult i64 %p_next, %pointers
  br i1 %p_more, label %pointer, label %constants
constants:
  %total = add i64 %pointers, %words
  %has_words = icmp sgt i64 %words, 0
  br i1 %has_words, label %constant, label %divide
constant:
  %c = phi i64 [ %pointers, %constants ], [ %c_next, %constant ]
  %value = word i64 %list, %c
  %to = getelementptr i64, ptr %args, i64 %c
  store i64 %value, ptr %to, align 8
  %c_next = add i64 %c, 1
  %c_more = icmp ult i64 %c_next, %total
  br i1 %c_more, label %constant, label %divide

divide:
  ; As many threads as there are chunks; one alone gets all items in one call.
  %alone = icmp sle i64 %threads, 1
  br i1 %alone, label %serial, label %chunks
chunks:
  %up = add i64 %items, %grain
  %less = sub i64 %up, 1
  %claims = udiv i64 %less, %grain
  %few = icmp ult i64 %claims, %threads
  %here = select i1 %few, i64 %claims, i64 %threads
  %one = icmp ule i64 %here, 1
  br i1 %one, label %serial, label %shared

serial:
  %own_scratch = call ptr @take_memory(ptr %state, i64 %scratch_bytes)
  %got_own = icmp ne ptr %own_scratch, null
  %no_own = icmp eq i64 %scratch_bytes, 0
  %own_fine = or i1 %got_own, %no_own
  br i1 %own_fine, label %serial_items, label %leave
serial_items:
  %anything = icmp sgt i64 %items, 0
  br i1 %anything, label %serial_call, label %serial_done
serial_call:
  call void %kernel(ptr %args, i64 0, i64 %items, ptr %own_scratch)
  br label %serial_done
serial_done:
  call void @give_memory(ptr %state, ptr %own_scratch, i64 %scratch_bytes)
  br label %after

shared:
  ; Workspaces are 128 bytes apart, so that no two threads write to neighbouring lines.
  %padded = add i64 %scratch_bytes, 127
  %stride = and i64 %padded, -128
  %scratch_total = mul i64 %stride, %here
  %scratch = call ptr @take_memory(ptr %state, i64 %scratch_total)
  %got_scratch = icmp ne ptr %scratch, null
  %no_scratch = icmp eq i64 %scratch_total, 0
  %scratch_fine = or i1 %got_scratch, %no_scratch
  br i1 %scratch_fine, label %share, label %leave
share:
  %cpus = word i64 %state, $STATE_CPUS
  %room = icmp ule i64 %here, %cpus
  %spin = zext i1 %room to i64
  %job_control = getelementptr i64, ptr %job, i64 $JOB_CONTROL
  store ptr %control, ptr %job_control, align 8
  %job_kernel = getelementptr i64, ptr %job, i64 $JOB_KERNEL
  store ptr %kernel, ptr %job_kernel, align 8
  %job_items = getelementptr i64, ptr %job, i64 $JOB_ITEMS
  store i64 %items, ptr %job_items, align 8
  %job_grain = getelementptr i64, ptr %job, i64 $JOB_GRAIN
  store i64 %grain, ptr %job_grain, align 8
  %job_scratch = getelementptr i64, ptr %job, i64 $JOB_SCRATCH
  store ptr %scratch, ptr %job_scratch, align 8
  %job_stride = getelementptr i64, ptr %job, i64 $JOB_SCRATCH_STRIDE
  store i64 %stride, ptr %job_stride, align 8
  %job_threads = getelementptr i64, ptr %job, i64 $JOB_THREADS
  store i64 %here, ptr %job_threads, align 8
  %job_spin = getelementptr i64, ptr %job, i64 $JOB_SPIN
  store i64 %spin, ptr %job_spin, align 8
  br i1 %openmp, label %hand_openmp, label %hand_own
hand_openmp:
  call void @run_openmp(ptr %state, ptr %job)
  br label %shared_done
hand_own:
  call void @make_room(ptr %state)
  call void @cg_parfor_run(ptr %job)
  br label %shared_done
shared_done:
  call void @give_memory(ptr %state, ptr %scratch, i64 %scratch_total)
  br label %after

after:
  %number_next = add i64 %number, 1
  %more = icmp ult i64 %number_next, %launches
  br i1 %more, label %launch, label %leave
leave:
  %done = phi i1 [ false, %counted ], [ true, %any ], [ false, %serial ], [ false, %shared ], [ true, %after ]
  %status = select i1 %done, i64 0, i64 $NO_MEMORY
  call void @give_memory(ptr %state, ptr %packed, i64 %packed_bytes)
  call void @give_memory(ptr %state, ptr %partial, i64 %partial_bytes)
  ret i64 %status
}

define i64 @cg_run(ptr %program, ptr %first, ptr %second, ptr %result) nounwind {
  %status = call i64 @run_with(ptr %program, ptr %first, ptr %second, ptr %result, i64 0, i64 -1)
  ret i64 %status
}

define i64 @cg_call(ptr %words) nounwind {
  %program = word ptr %words, 0
  %first = word ptr %words, 1
  %second = word ptr %words, 2
  %result = word ptr %words, 3
  %threads = word i64 %words, 4
  %pool = word i64 %words, 5
  %status = call i64 @run_with(ptr %program, ptr %first, ptr %second, ptr %result, i64 %threads, i64 %pool)
  ret i64 %status
}
"""
