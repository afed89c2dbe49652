"""Memory of programs between calls, as LLVM IR text: blocks in the slots of the runtime block.

A block is taken by exchanging its slot for 0 and given back to the first slot that is 0, so there is no lock, and a
fork or a thread that dies loses a block at most. Blocks from 2 MB up begin on a huge page. A caller that brings memory
of its own (`TAKE`, `GIVE`) is asked instead.
"""

from __future__ import annotations

from .state import SLOTS

KEPT = 64 << 20
"""Bytes of the largest block that is kept between calls."""
_STEP, _HUGE = 64 << 10, 2 << 20
_SLACK = 1 << 20
"""A block may be 16 times too large for what it is taken for, and up to this size in any case."""

FIELDS = {"SLOTS": SLOTS, "KEPT": KEPT, "STEP": _STEP, "HUGE": _HUGE, "SLACK": _SLACK}

TEXT = """
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
"""
