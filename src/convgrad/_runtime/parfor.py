"""The parallel loop that hands out a kernel's work items, as LLVM IR text.

It is compiled like a kernel, because Python cannot hand work to another thread in a microsecond.
This module writes text and describes two blocks of 64-bit words; who compiles it, who fills the
blocks and who owns the threads is not known here.

One word holds all that decides who runs what::

    bits 63..48 generation | 47..40 free seats | 39..20 chunks | 19..0 next chunk

A chunk is claimed by a compare-and-swap of the whole word, so a late thread can never claim a chunk
of a job that is over: the word it read is no longer there. A worker's first claim in a job also
takes a seat, which is the number of its workspace; it reports its chunks only when none is left, so
the job cannot end under it. Everything else of a job is read after a claim and is stable until that
report.

The caller takes part and then waits for chunks that were claimed, never for threads. A worker that
sleeps, was never started or did not survive a fork is simply not there. A second caller finds the
loop busy and runs its items itself.

A worker spins before it parks: briefly after it was woken, longer while each job comes soon after
the last. An always long spin made calls 0.5 ms apart up to 2.5 times slower than one thread when
another process held a core; no spin at all costs 6 us per call (2-core x86-64 VM).
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from . import entry
from .parking import CONTROL, TEXTS, Parking

RUN = "cg_parfor_run"
WORKER = "cg_parfor_worker"
STOP = "cg_parfor_stop"
PAUSE = "cg_parfor_pause"
SYMBOLS = (RUN, WORKER, STOP, PAUSE, *entry.SYMBOLS)

CHUNK_BITS = 20
MAX_CHUNKS = (1 << CHUNK_BITS) - 1
SEAT_SHIFT = 2 * CHUNK_BITS
MAX_SEATS = 255
GENERATION_SHIFT = 48

# A caller with nothing left to claim pauses this often before it yields, then so often between
# yields, and sleeps after so many of those: about 25, 3 and 100 us where a pause takes 25 ns.
PATIENCE, ROUND, ROUNDS = 1000, 100, 32

# The job: a block of words the caller owns; the kernel's own words follow it. SPIN is 1, or 0 to
# have workers sleep at once: with more threads than processors, a spinning one holds back others.
JOB = ("CONTROL", "KERNEL", "ITEMS", "GRAIN", "SCRATCH", "SCRATCH_STRIDE", "THREADS", "SPIN")


@dataclass(frozen=True)
class ParforSource:
    """What a compiler needs: text without a target, and the symbols wanted."""

    name: str
    text: str
    symbols: tuple[str, ...] = SYMBOLS


def source(machine: str, parking: Parking) -> ParforSource:
    """Return the loop for a machine, named as `platform.machine()` names it."""
    declaration, pause = _PAUSES.get(machine.lower(), _NO_PAUSE)
    fields = {
        "PAUSE_DECLARATION": declaration,
        "PAUSE": pause,
        "CHUNK_BITS": CHUNK_BITS,
        "CHUNK_MASK": MAX_CHUNKS,
        "SEAT_SHIFT": SEAT_SHIFT,
        "SEAT_MASK": MAX_SEATS,
        "ONE_SEAT": 1 << SEAT_SHIFT,
        "GENERATION_SHIFT": GENERATION_SHIFT,
        "JOB_BYTES": 8 * len(JOB),
        "JOB_SIZE": len(JOB),
        "PATIENCE": PATIENCE,
        "ROUND": ROUND,
        "ROUNDS": ROUNDS,
        **CONTROL,
        **{f"JOB_{name}": index for index, name in enumerate(JOB)},
    }
    text = Template(_LOOP + TEXTS[parking] + entry.text()).substitute(fields)
    return ParforSource(f"cg_parfor_{machine.lower()}_{parking.value}", text)


# `isb` and not `yield` on Arm: the latter does nothing on cores without hardware threads.
_X86 = ("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()")
_ARM = ("declare void @llvm.aarch64.isb(i32)", "call void @llvm.aarch64.isb(i32 15)")
_NO_PAUSE = ("", 'fence syncscope("singlethread") seq_cst')
_PAUSES = {"x86_64": _X86, "amd64": _X86, "aarch64": _ARM, "arm64": _ARM}

_LOOP = """
$PAUSE_DECLARATION

; Claim the next chunk and, if %seat is not 0, a seat. Gives the word before the claim, or -1.
define internal i64 @take(ptr %control, i64 %seat) nounwind {
entry:
  %any_seat = icmp eq i64 %seat, 0
  br label %again
again:
  %word = load atomic i64, ptr %control acquire, align 8
  %next = and i64 %word, $CHUNK_MASK
  %high = lshr i64 %word, $CHUNK_BITS
  %chunks = and i64 %high, $CHUNK_MASK
  %seat_bits = lshr i64 %word, $SEAT_SHIFT
  %seats = and i64 %seat_bits, $SEAT_MASK
  %has_chunk = icmp ult i64 %next, %chunks
  %free_seat = icmp ne i64 %seats, 0
  %seated = or i1 %any_seat, %free_seat
  %possible = and i1 %has_chunk, %seated
  br i1 %possible, label %claim, label %none
claim:
  %one_more = add i64 %word, 1
  %wanted = sub i64 %one_more, %seat
  %swap = cmpxchg ptr %control, i64 %word, i64 %wanted acq_rel monotonic, align 8
  %won = extractvalue { i64, i1 } %swap, 1
  br i1 %won, label %got, label %again
got:
  ret i64 %word
none:
  ret i64 -1
}

; Run claimed chunks of the current job until none is left; gives their number.
define internal i64 @drain(ptr %control, i64 %first, i64 %slot) nounwind {
entry:
  %job_at = getelementptr i64, ptr %control, i64 $CURRENT_JOB
  %job = load ptr, ptr %job_at, align 8
  %grain_at = getelementptr i64, ptr %control, i64 $CURRENT_GRAIN
  %grain = load i64, ptr %grain_at, align 8
  %kernel_at = getelementptr i64, ptr %job, i64 $JOB_KERNEL
  %kernel = load ptr, ptr %kernel_at, align 8
  %items_at = getelementptr i64, ptr %job, i64 $JOB_ITEMS
  %items = load i64, ptr %items_at, align 8
  %scratch_at = getelementptr i64, ptr %job, i64 $JOB_SCRATCH
  %scratch = load ptr, ptr %scratch_at, align 8
  %stride_at = getelementptr i64, ptr %job, i64 $JOB_SCRATCH_STRIDE
  %stride = load i64, ptr %stride_at, align 8
  %skip = mul i64 %slot, %stride
  %mine = getelementptr i8, ptr %scratch, i64 %skip
  %args = getelementptr i8, ptr %job, i64 $JOB_BYTES
  br label %chunk
chunk:
  %word = phi i64 [ %first, %entry ], [ %more, %chunk ]
  %count = phi i64 [ 0, %entry ], [ %counted, %chunk ]
  %index = and i64 %word, $CHUNK_MASK
  %begin = mul i64 %index, %grain
  %reach = add i64 %begin, %grain
  %short = icmp ult i64 %reach, %items
  %end = select i1 %short, i64 %reach, i64 %items
  call void %kernel(ptr %args, i64 %begin, i64 %end, ptr %mine)
  %counted = add i64 %count, 1
  %more = call i64 @take(ptr %control, i64 0)
  %over = icmp eq i64 %more, -1
  br i1 %over, label %done, label %chunk
done:
  ret i64 %counted
}

; How many items a chunk has: no fewer than asked, and no more chunks than the word can count.
define internal i64 @chunk_size(i64 %items, i64 %asked) nounwind {
  %items_up = add i64 %items, $CHUNK_MASK
  %items_less = sub i64 %items_up, 1
  %least = udiv i64 %items_less, $CHUNK_MASK
  %asked_more = icmp ugt i64 %asked, %least
  %grain = select i1 %asked_more, i64 %asked, i64 %least
  ret i64 %grain
}

; Run all items of a job; returns when every one is done.
define void @cg_parfor_run(ptr %job) nounwind {
entry:
  %control_at = getelementptr i64, ptr %job, i64 $JOB_CONTROL
  %control = load ptr, ptr %control_at, align 8
  %items_at = getelementptr i64, ptr %job, i64 $JOB_ITEMS
  %items = load i64, ptr %items_at, align 8
  %grain_at = getelementptr i64, ptr %job, i64 $JOB_GRAIN
  %asked = load i64, ptr %grain_at, align 8
  %threads_at = getelementptr i64, ptr %job, i64 $JOB_THREADS
  %threads = load i64, ptr %threads_at, align 8
  %grain = call i64 @chunk_size(i64 %items, i64 %asked)
  %sum = add i64 %items, %grain
  %sum_less = sub i64 %sum, 1
  %chunks = udiv i64 %sum_less, %grain
  %others = sub i64 %threads, 1
  %chunks_less = sub i64 %chunks, 1
  %few_chunks = icmp ult i64 %chunks_less, %others
  %seats = select i1 %few_chunks, i64 %chunks_less, i64 %others
  %alone = icmp slt i64 %seats, 1
  br i1 %alone, label %serial, label %try

try:
  %busy = getelementptr i64, ptr %control, i64 $BUSY
  %lock = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic, align 8
  %locked = extractvalue { i64, i1 } %lock, 1
  br i1 %locked, label %publish, label %serial

serial:
  %kernel_at = getelementptr i64, ptr %job, i64 $JOB_KERNEL
  %kernel = load ptr, ptr %kernel_at, align 8
  %scratch_at = getelementptr i64, ptr %job, i64 $JOB_SCRATCH
  %scratch = load ptr, ptr %scratch_at, align 8
  %args = getelementptr i8, ptr %job, i64 $JOB_BYTES
  call void %kernel(ptr %args, i64 0, i64 %items, ptr %scratch)
  ret void

publish:
  %done = getelementptr i64, ptr %control, i64 $DONE
  store atomic i32 0, ptr %done monotonic, align 8
  %current_job = getelementptr i64, ptr %control, i64 $CURRENT_JOB
  store ptr %job, ptr %current_job, align 8
  %current_grain = getelementptr i64, ptr %control, i64 $CURRENT_GRAIN
  store i64 %grain, ptr %current_grain, align 8
  %old = load atomic i64, ptr %control monotonic, align 8
  %old_generation = lshr i64 %old, $GENERATION_SHIFT
  %generation = add i64 %old_generation, 1
  %generation_bits = shl i64 %generation, $GENERATION_SHIFT
  %seat_bits = shl i64 %seats, $SEAT_SHIFT
  %chunk_bits = shl i64 %chunks, $CHUNK_BITS
  %upper = or i64 %generation_bits, %seat_bits
  %word = or i64 %upper, %chunk_bits
  store atomic i64 %word, ptr %control seq_cst, align 8
  ; A worker counts itself as parked, then looks at the word; here it is the other way round.
  %epoch = getelementptr i64, ptr %control, i64 $EPOCH
  %before = atomicrmw add ptr %epoch, i32 1 seq_cst, align 8
  %parked_at = getelementptr i64, ptr %control, i64 $PARKED
  %parked = load atomic i64, ptr %parked_at seq_cst, align 8
  %sleepers = icmp ne i64 %parked, 0
  br i1 %sleepers, label %count, label %work
count:
  ; Workers that are up need no call; with one seat and one of them spinning, none is made.
  %started_at = getelementptr i64, ptr %control, i64 $STARTED
  %started = load atomic i64, ptr %started_at monotonic, align 8
  %up = sub i64 %started, %parked
  %wanted = sub i64 %seats, %up
  %needed = icmp sgt i64 %wanted, 0
  br i1 %needed, label %wake, label %work
wake:
  call void @wake(ptr %control, ptr %epoch, i64 %wanted)
  br label %work

work:
  %first = call i64 @take(ptr %control, i64 0)
  %too_late = icmp eq i64 %first, -1
  br i1 %too_late, label %join, label %own
own:
  %own_chunks = call i64 @drain(ptr %control, i64 %first, i64 0)
  br label %join
join:
  %ran = phi i64 [ 0, %work ], [ %own_chunks, %own ]
  %theirs_wide = sub i64 %chunks, %ran
  %theirs = trunc i64 %theirs_wide to i32
  br label %poll
poll:
  %waited = phi i64 [ 0, %join ], [ %waited_more, %rest ], [ 0, %give_way ], [ 0, %sleep ]
  %limit = phi i64 [ $PATIENCE, %join ], [ %limit, %rest ], [ $ROUND, %give_way ], [ 0, %sleep ]
  %rounds = phi i64 [ 0, %join ], [ %rounds, %rest ], [ %rounds_more, %give_way ], [ 0, %sleep ]
  %reported = load atomic i32, ptr %done acquire, align 8
  %complete = icmp eq i32 %reported, %theirs
  br i1 %complete, label %finish, label %rest
rest:
  $PAUSE
  %waited_more = add i64 %waited, 1
  %impatient = icmp ugt i64 %waited_more, %limit
  br i1 %impatient, label %round, label %poll
round:
  %rounds_more = add i64 %rounds, 1
  %tired = icmp ugt i64 %rounds_more, $ROUNDS
  br i1 %tired, label %lie_down, label %give_way
give_way:
  ; The thread that holds the last chunk may be waiting for this very processor.
  %yield_at = getelementptr i64, ptr %control, i64 $YIELD
  %yield = load ptr, ptr %yield_at, align 8
  %yielded = call i32 %yield()
  br label %poll
lie_down:
  ; Or for another one, beside a stranger; the system moves it to a processor that is idle.
  %caller_at = getelementptr i64, ptr %control, i64 $CALLER_SLEEPS
  store atomic i64 1, ptr %caller_at seq_cst, align 8
  %last_look = load atomic i32, ptr %done seq_cst, align 8
  %just_now = icmp eq i32 %last_look, %theirs
  br i1 %just_now, label %finish, label %sleep
sleep:
  call void @wait(ptr %control, ptr %done, i32 %last_look)
  br label %poll
finish:
  %sleeps_at = getelementptr i64, ptr %control, i64 $CALLER_SLEEPS
  store atomic i64 0, ptr %sleeps_at monotonic, align 8
  store atomic i64 0, ptr %busy release, align 8
  ret void
}

; What a worker thread does until it is told to stop.
define void @cg_parfor_worker(ptr %control) nounwind {
entry:
  %epoch_at = getelementptr i64, ptr %control, i64 $EPOCH
  %done = getelementptr i64, ptr %control, i64 $DONE
  %parked = getelementptr i64, ptr %control, i64 $PARKED
  %stopped_at = getelementptr i64, ptr %control, i64 $STOPPED
  %short_at = getelementptr i64, ptr %control, i64 $SHORT_SPIN
  %long_at = getelementptr i64, ptr %control, i64 $LONG_SPIN
  %caller_at = getelementptr i64, ptr %control, i64 $CALLER_SLEEPS
  %started = getelementptr i64, ptr %control, i64 $STARTED
  %earlier = atomicrmw add ptr %started, i64 1 seq_cst, align 8
  br label %look
look:
  %spins = phi i64 [ 0, %entry ], [ %spun, %spin ], [ 0, %settle ], [ %limit, %awake ]
  %limit = phi i64 [ 0, %entry ], [ %limit, %spin ], [ %new_limit, %settle ], [ 0, %awake ]
  ; Read before the word: if a job comes in between, the sleep below does not begin.
  %epoch = load atomic i32, ptr %epoch_at seq_cst, align 8
  %stopped = load atomic i64, ptr %stopped_at monotonic, align 8
  %stopping = icmp ne i64 %stopped, 0
  br i1 %stopping, label %leave, label %seek
seek:
  %word = call i64 @take(ptr %control, i64 $ONE_SEAT)
  %found = icmp ne i64 %word, -1
  br i1 %found, label %work, label %idle
idle:
  %patient = icmp ult i64 %spins, %limit
  br i1 %patient, label %spin, label %park
spin:
  $PAUSE
  %spun = add i64 %spins, 1
  br label %look

work:
  %seat_bits = lshr i64 %word, $SEAT_SHIFT
  %slot = and i64 %seat_bits, $SEAT_MASK
  %job_at = getelementptr i64, ptr %control, i64 $CURRENT_JOB
  %job = load ptr, ptr %job_at, align 8
  %spin_at = getelementptr i64, ptr %job, i64 $JOB_SPIN
  %may_spin = load i64, ptr %spin_at, align 8
  %chunks = call i64 @drain(ptr %control, i64 %word, i64 %slot)
  %chunks_narrow = trunc i64 %chunks to i32
  br label %report
report:
  ; From here on the job is over for this thread and may be gone; the control block never is.
  %reported = atomicrmw add ptr %done, i32 %chunks_narrow seq_cst, align 8
  %caller_sleeps = load atomic i64, ptr %caller_at seq_cst, align 8
  %asleep = icmp ne i64 %caller_sleeps, 0
  br i1 %asleep, label %rouse, label %settle
rouse:
  call void @wake(ptr %control, ptr %done, i64 1)
  br label %settle
settle:
  ; A job met while spinning says that the next one will come soon, too.
  %was_spinning = icmp ne i64 %limit, 0
  %short = load i64, ptr %short_at, align 8
  %long = load i64, ptr %long_at, align 8
  %eager = select i1 %was_spinning, i64 %long, i64 %short
  %new_limit = mul i64 %eager, %may_spin
  br label %look

park:
  %sleepers = atomicrmw add ptr %parked, i64 1 seq_cst, align 8
  %last_look = load atomic i64, ptr %control seq_cst, align 8
  %next = and i64 %last_look, $CHUNK_MASK
  %high = lshr i64 %last_look, $CHUNK_BITS
  %total = and i64 %high, $CHUNK_MASK
  %seats_high = lshr i64 %last_look, $SEAT_SHIFT
  %seats = and i64 %seats_high, $SEAT_MASK
  %chunk_left = icmp ult i64 %next, %total
  %seat_left = icmp ne i64 %seats, 0
  %new_job = and i1 %chunk_left, %seat_left
  br i1 %new_job, label %awake, label %sleep
sleep:
  call void @wait(ptr %control, ptr %epoch_at, i32 %epoch)
  br label %awake
awake:
  %fewer = atomicrmw sub ptr %parked, i64 1 seq_cst, align 8
  br label %look
leave:
  %left = atomicrmw sub ptr %started, i64 1 seq_cst, align 8
  ret void
}

; Tell all workers to leave their loop.
define void @cg_parfor_stop(ptr %control) nounwind {
  %stopped = getelementptr i64, ptr %control, i64 $STOPPED
  store atomic i64 1, ptr %stopped seq_cst, align 8
  %epoch = getelementptr i64, ptr %control, i64 $EPOCH
  %before = atomicrmw add ptr %epoch, i32 1 seq_cst, align 8
  call void @wake(ptr %control, ptr %epoch, i64 1000)
  ret void
}

; Pause %count times, for whoever wants to know how long that takes.
define void @cg_parfor_pause(i64 %count) nounwind {
entry:
  br label %loop
loop:
  %left = phi i64 [ %count, %entry ], [ %less, %loop ]
  $PAUSE
  %less = sub i64 %left, 1
  %over = icmp slt i64 %less, 1
  br i1 %over, label %done, label %loop
done:
  ret void
}

; @wait sleeps while *%word is %seen and may return early; @wake ends %number such sleeps.
"""
