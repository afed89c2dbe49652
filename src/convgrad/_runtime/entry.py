"""The entry: one compiled function that runs a whole program, as LLVM IR text.

::

    i64 cg_run_places(program, addresses)        on the threads the runtime block says
    i64 cg_run(program, first, second, result)   the same for a program of three places, for C
    i64 cg_call(words)                           program, threads, pool, then the addresses

A program says how many places it has; `addresses` are as many, in their order. All take every launch in order, find
memory for partial sums, packed operand and workspaces, share the items among threads, and return 0; or 1 if there was
not enough memory, and 2 if `program` is not a program of this version. They need no interpreter and no lock of it, any
thread may call them, and any number of threads at once.

The text is compiled together with the parallel loop (`parfor`), which it hands jobs to, or to OpenMP's threads
(`handover`). Memory for partial sums and workspaces is kept between calls (`slots`).
"""

from __future__ import annotations

import re

from . import handover, slots
from .bound import LAUNCH, MAGIC, PROGRAM
from .program import MEMORY, MOST_ARGUMENTS, MOST_PLACES
from .state import OPENMP, STATE

RUN = "cg_run"
RUN_PLACES = "cg_run_places"
CALL = "cg_call"
RELEASE = "cg_release"
SYMBOLS = (RUN, RUN_PLACES, CALL, RELEASE)

CALL_WORDS = ("PROGRAM", "THREADS", "POOL")
"""What `cg_call` is given before the addresses. THREADS 0 are as many as OpenMP has; -1 in THREADS or POOL asks the
runtime block."""
OK, NO_MEMORY, NO_PROGRAM = 0, 1, 2


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
        "CALL_WORDS": len(CALL_WORDS),
        "ALL_PLACES": MOST_PLACES + len(MEMORY),
        **{f"PLACE_{name.upper()}": at for name, at in MEMORY.items()},
        **slots.FIELDS,
        **handover.FIELDS,
        "OPENMP": OPENMP,
        "NO_MEMORY": NO_MEMORY,
        "NO_PROGRAM": NO_PROGRAM,
    }
    whole = slots.TEXT + handover.TEXT + _TEXT
    found = re.sub(r"\$([A-Z_]+)", lambda m: str(fields.get(m[1], m[0])), whole)
    return expanded(found)


def expanded(text: str) -> str:
    """Spell out the lines of a text that load a word behind an address."""
    return re.sub(r"^  %(\w+) = word (\w+) (%\w+), (\S+)$", _word, text, flags=re.MULTILINE)


def _word(match: re.Match[str]) -> str:
    """Spell ``%x = word i64 %base, 3``: the fourth word behind an address."""
    name, kind, base, at = match.groups()
    return (
        f"  %{name}.at = getelementptr i64, ptr {base}, i64 {at}\n"
        f"  %{name} = load {kind}, ptr %{name}.at, align 8"
    )


_TEXT = """
define internal i64 @run_with(ptr %program, ptr %addresses, i64 %asked, i64 %pool) nounwind {
entry:
  %job = alloca [$MOST_JOB x i64], align 16
  %places = alloca [$ALL_PLACES x ptr], align 8
  %magic = word i64 %program, $PROGRAM_MAGIC
  %known = icmp eq i64 %magic, $MAGIC
  br i1 %known, label %begin, label %stranger
stranger:
  ret i64 $NO_PROGRAM
begin:
  %state = word ptr %program, $PROGRAM_STATE
  %most = word i64 %program, $PROGRAM_THREADS
  %args = getelementptr i64, ptr %job, i64 $JOB_SIZE
  %count_places = word i64 %program, $PROGRAM_PLACES
  %all_at = getelementptr ptr, ptr %places, i64 $PLACE_PLACES
  store ptr %addresses, ptr %all_at, align 8
  %has_places = icmp sgt i64 %count_places, 0
  br i1 %has_places, label %given, label %choose
given:
  %g = phi i64 [ 0, %begin ], [ %g_next, %given ]
  %g_address = word i64 %addresses, %g
  %g_at = getelementptr i64, ptr %places, i64 %g
  store i64 %g_address, ptr %g_at, align 8
  %g_next = add i64 %g, 1
  %g_more = icmp ult i64 %g_next, %count_places
  br i1 %g_more, label %given, label %choose
choose:

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
  ; -1 asks the block, 0 asks OpenMP.
  %ours = word i64 %state, $STATE_THREADS
  %unsaid = icmp slt i64 %asked, 0
  %said_here = select i1 %unsaid, i64 %ours, i64 %asked
  br i1 %openmp, label %ask_openmp, label %counted
ask_openmp:
  ; Never more than the team that is there: OpenMP ends the process where it cannot start a thread.
  %omp_max = word ptr %state, $STATE_OMP_MAX
  %team32 = call i32 %omp_max()
  %team = sext i32 %team32 to i64
  %nothing_said = icmp eq i64 %said_here, 0
  %exceeds = icmp sgt i64 %said_here, %team
  %all_of_it = or i1 %nothing_said, %exceeds
  %theirs = select i1 %all_of_it, i64 %team, i64 %said_here
  br label %counted
counted:
  %wanted = phi i64 [ 1, %choose ], [ %said_here, %count ], [ %theirs, %ask_openmp ]
  %too_many = icmp sgt i64 %wanted, %most
  %threads = select i1 %too_many, i64 %most, i64 %wanted

  ; Memory that launches share.
  %partial_bytes = word i64 %program, $PROGRAM_PARTIAL
  %packed_bytes = word i64 %program, $PROGRAM_PACKED
  %partial = call ptr @take_memory(ptr %state, i64 %partial_bytes)
  %packed = call ptr @take_memory(ptr %state, i64 %packed_bytes)
  %partial_at = getelementptr ptr, ptr %places, i64 $PLACE_PARTIAL
  store ptr %partial, ptr %partial_at, align 8
  %packed_at = getelementptr ptr, ptr %places, i64 $PLACE_PACKED
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
  %usual_grain = word i64 %at, $LAUNCH_GRAIN
  %least_grain = word i64 %at, $LAUNCH_LEAST
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
  ; A claim is smaller where that gives every thread one.
  %even = udiv i64 %items, %threads
  %larger = icmp ugt i64 %even, %usual_grain
  %fair = select i1 %larger, i64 %usual_grain, i64 %even
  %too_few = icmp ult i64 %fair, %least_grain
  %grain = select i1 %too_few, i64 %least_grain, i64 %fair
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

define i64 @cg_run_places(ptr %program, ptr %addresses) nounwind {
  %status = call i64 @run_with(ptr %program, ptr %addresses, i64 -1, i64 -1)
  ret i64 %status
}

define i64 @cg_run(ptr %program, ptr %first, ptr %second, ptr %result) nounwind {
  %addresses = alloca [3 x ptr], align 8
  %second_at = getelementptr ptr, ptr %addresses, i64 1
  %result_at = getelementptr ptr, ptr %addresses, i64 2
  store ptr %first, ptr %addresses, align 8
  store ptr %second, ptr %second_at, align 8
  store ptr %result, ptr %result_at, align 8
  %count = word i64 %program, $PROGRAM_PLACES
  %three = icmp eq i64 %count, 3
  br i1 %three, label %run, label %other
other:
  ret i64 $NO_PROGRAM
run:
  %status = call i64 @run_with(ptr %program, ptr %addresses, i64 -1, i64 -1)
  ret i64 %status
}

define i64 @cg_call(ptr %words) nounwind {
  %program = word ptr %words, 0
  %threads = word i64 %words, 1
  %pool = word i64 %words, 2
  %addresses = getelementptr i64, ptr %words, i64 $CALL_WORDS
  %status = call i64 @run_with(ptr %program, ptr %addresses, i64 %threads, i64 %pool)
  ret i64 %status
}
"""
