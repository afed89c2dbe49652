"""The table in which compiled code of bridges looks calls up: what decides a call as words, and what is to be done.

A framework calls compiled code of ours, which writes down all that decides how the call is computed as the words of a
key, and looks for the record with the same words. It reads the table without a lock while Python adds to it, so a
record is complete before it is linked, and is never changed after that. When there are too many, as for a network that
sees images of every size, all are unlinked. Another thread may still be running one, so they are kept until whoever
asks for a record is alone at work.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .entry import spelled

BUCKETS = 1024
MOST = 8192
MOST_BYTES = 32 << 20
"""Records linked, and bytes of programs they may hold together."""


class Table:
    """Records by the words of their calls: the next one in its bucket, the key, then a body."""

    def __init__(self, at_work: Callable[[], int] = lambda: 0) -> None:
        """`at_work` tells how many calls are, the one that asks for a record included."""
        self.buckets = (ctypes.c_int64 * BUCKETS)()
        self._at_work = at_work
        self._records: list[tuple[object, object]] = []
        self._unlinked: list[tuple[object, object]] = []
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._records)

    def link(
        self, key: Sequence[int], hash_: int, body: Sequence[int], kept: object, nbytes: int
    ) -> int:
        """Link the record of a call, which lives as long as `kept`, of so many bytes, must; returns its address."""
        record = np.array([0, *key, *body], np.int64)
        with self._lock:
            # Of earlier calls, so that who has come to work since cannot have found them.
            if self._unlinked and self._at_work() == 1:
                self._unlinked = []
            self._bytes += record.nbytes + nbytes
            if len(self._records) >= MOST or self._bytes > MOST_BYTES:
                self._unlink()
            number = hash_ % BUCKETS
            record[0] = self.buckets[number]
            record.flags.writeable = False
            address: int = record.ctypes.data
            self._records.append((record, kept))
            self.buckets[number] = address
        return address

    def clear(self) -> None:
        """Forget all records: what made them has changed."""
        with self._lock:
            self._unlink()

    def _unlink(self) -> None:
        ctypes.memset(self.buckets, 0, ctypes.sizeof(self.buckets))
        self._unlinked += self._records
        self._records, self._bytes = [], 0


LOOK_UP = """
; Write zeros to all words of a key.
define internal void @clear(ptr %key) nounwind {
entry:
  br label %word
word:
  %i = phi i64 [ 0, %entry ], [ %next, %word ]
  set i64 0, %key, %i
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, $KEY_WORDS
  br i1 %more, label %word, label %done
done:
  ret void
}

; Return the hash of a key.
define internal i64 @hash(ptr %key) nounwind {
entry:
  br label %word
word:
  %i = phi i64 [ 0, %entry ], [ %next, %word ]
  %h = phi i64 [ 0, %entry ], [ %new, %word ]
  %this = word i64 %key, %i
  %mixed = xor i64 %h, %this
  %spread = mul i64 %mixed, -7046029254386353131
  %high = lshr i64 %spread, 32
  %new = xor i64 %spread, %high
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, $KEY_WORDS
  br i1 %more, label %word, label %done
done:
  ret i64 %new
}

; Return the record with these words, or null.
define internal ptr @find(ptr %buckets, ptr %key, i64 %hash) nounwind {
entry:
  %number = and i64 %hash, $LAST_BUCKET
  %head_at = getelementptr ptr, ptr %buckets, i64 %number
  %head = load atomic ptr, ptr %head_at acquire, align 8
  br label %look
look:
  %record = phi ptr [ %head, %entry ], [ %following, %other ]
  %none = icmp eq ptr %record, null
  br i1 %none, label %missing, label %compare
compare:
  %i = phi i64 [ 0, %look ], [ %next, %same ]
  %theirs_at = add i64 %i, 1
  %theirs = word i64 %record, %theirs_at
  %ours = word i64 %key, %i
  %equal = icmp eq i64 %theirs, %ours
  br i1 %equal, label %same, label %other
same:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, $KEY_WORDS
  br i1 %more, label %compare, label %found
other:
  %following = word ptr %record, 0
  br label %look
found:
  ret ptr %record
missing:
  ret ptr null
}
"""
"""Functions for the text of compiled code, which says how many words its keys have."""


def written(text: str, numbers: Mapping[str, object]) -> str:
    """Spell out a text of LLVM IR: names in capitals behind a dollar, and lines that load and store words.

    ``%x = word i64 %base, 3`` loads the fourth word behind an address, ``set i64 %x, %base, 3`` stores it.
    """
    known = {"LAST_BUCKET": BUCKETS - 1, **numbers}
    found = re.sub(r"\$([A-Z_]+)", lambda match: str(known[match[1]]), text)
    pattern = r"^  set (\w+) (\S+), (%\w+), (\S+)$"
    return re.sub(pattern, _Setting(), spelled(found), flags=re.MULTILINE)


class _Setting:
    """Spells ``set i64 %value, %base, 3``: store into the fourth word."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, match: re.Match[str]) -> str:
        kind, value, base, at = match.groups()
        self._count += 1
        name = f"%set{self._count}"
        return (
            f"  {name} = getelementptr i64, ptr {base}, i64 {at}\n"
            f"  store {kind} {value}, ptr {name}, align 8"
        )
