"""The table in which compiled code of bridges looks calls up: what decides a call as words, and what is to be done.

A framework calls compiled code of ours, which writes down all that decides how the call is computed as the words of a
key, and looks for the record with the same words. It reads the table without a lock while Python adds to it, so a
record is complete before it is linked, and is never changed after that. When there are too many, as for a network that
sees images of every size, all are unlinked. Another thread may still be running one, so they are kept until whoever
asks for a record is alone at work.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence

import numpy as np

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
