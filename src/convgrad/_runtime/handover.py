"""Handing a job to threads, as LLVM IR text: what our own pool needs before it, and OpenMP as another pool.

OpenMP's runtime is given a body that each of its threads runs. It claims chunks from the same kind of word as our own
workers (see `parfor`), kept on the caller's stack, so that seats, chunks and bits are the same. One call at a time goes
to OpenMP, as to our own pool: a second caller runs its items itself, where OpenMP would start another set of threads
for it. A job is handed to the whole team that the framework has; threads without a seat return at once.
"""

from __future__ import annotations

from .parking import CONTROL_WORDS

FIELDS = {"CONTROL_SIZE": CONTROL_WORDS}

TEXT = """
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
  %w = phi i64 [ 0, %masked ], [ %w_next, %placed_one ]
  %tid_number = add i64 %w, $STATE_TIDS
  %tid = word i64 %state, %tid_number
  ; 0 would be the calling thread itself.
  %known_tid = icmp ne i64 %tid, 0
  br i1 %known_tid, label %set, label %placed_one
set:
  %tid32 = trunc i64 %tid to i32
  %setaffinity = word ptr %state, $STATE_SETAFFINITY
  %r = call i32 %setaffinity(i32 %tid32, i64 128, ptr %others)
  br label %placed_one
placed_one:
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
  ; 0: the whole team. A smaller one would end its other threads, and the framework would have to start them again;
  ; those that find no seat return at once.
  call void %gomp(ptr @openmp_body, ptr %control, i32 0, i32 0)
  store atomic i64 0, ptr %busy release, align 8
  ret void
alone:
  call void @openmp_body(ptr %control)
  ret void
}
"""
