"""How a thread sleeps until another one has news: three ways, as LLVM IR text.

Each way calls functions of the system by addresses kept in the control block, so that the compiled
code has no symbol to resolve. None of them enters Python: a sleeper never waits for the interpreter
lock, and waking one cannot run a signal handler.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from enum import Enum
from typing import Any

_FUTEX_NUMBERS = {"x86_64": 202, "amd64": 202, "aarch64": 98, "arm64": 98}

# The control block: word numbers. What is written often is 128 bytes apart, because processors
# fetch lines in pairs.
CONTROL = {
    "WORD": 0,
    "DONE": 16,
    "CALLER_SLEEPS": 17,
    "EPOCH": 32,
    "PARKED": 48,
    "BUSY": 64,
    "STOPPED": 80,
    "STARTED": 81,  # workers inside their loop
    "CURRENT_JOB": 82,
    "CURRENT_GRAIN": 83,
    "SHORT_SPIN": 84,  # pauses
    "LONG_SPIN": 85,
    "YIELD": 86,  # address of a function, like the next four
    "WAIT": 87,
    "WAKE": 88,
    "LOCK": 89,
    "UNLOCK": 90,
    "FUTEX": 91,  # number of the system call
    "MUTEX": 96,
    "CONDITION": 112,
}
CONTROL_WORDS = 128


class Parking(Enum):
    """How a thread sleeps until a 32-bit word of the control block changes."""

    FUTEX = "futex"
    """`WAIT` and `WAKE` are libc's `syscall`."""
    PTHREAD = "pthread"
    """`WAIT`, `WAKE`, `LOCK`, `UNLOCK` are the functions of a condition variable and its mutex."""
    ADDRESS = "address"
    """`WAIT` and `WAKE` are Windows' `WaitOnAddress` and `WakeByAddressAll`."""


def choose_way() -> Parking:
    """Return the way of this system."""
    if sys.platform == "win32":
        return Parking.ADDRESS
    if sys.platform == "linux" and platform.machine().lower() in _FUTEX_NUMBERS:
        return Parking.FUTEX
    return Parking.PTHREAD


def fill(words: Any, parking: Parking) -> None:
    """Write the addresses of the system's functions into a control block."""
    if parking is Parking.ADDRESS:
        kernel32 = ctypes.CDLL("kernel32")
        synch = ctypes.CDLL("api-ms-win-core-synch-l1-2-0")
        functions = {
            "YIELD": kernel32.SwitchToThread,
            "WAIT": synch.WaitOnAddress,
            "WAKE": synch.WakeByAddressAll,
        }
    elif parking is Parking.FUTEX:
        libc = ctypes.CDLL(None)
        words[CONTROL["FUTEX"]] = _FUTEX_NUMBERS[platform.machine().lower()]
        functions = {"YIELD": libc.sched_yield, "WAIT": libc.syscall, "WAKE": libc.syscall}
    else:
        libc = ctypes.CDLL(None)
        start = ctypes.addressof(words)
        libc.pthread_mutex_init(ctypes.c_void_p(start + 8 * CONTROL["MUTEX"]), None)
        libc.pthread_cond_init(ctypes.c_void_p(start + 8 * CONTROL["CONDITION"]), None)
        functions = {
            "YIELD": libc.sched_yield,
            "WAIT": libc.pthread_cond_wait,
            "WAKE": libc.pthread_cond_broadcast,
            "LOCK": libc.pthread_mutex_lock,
            "UNLOCK": libc.pthread_mutex_unlock,
        }
    for name, function in functions.items():
        words[CONTROL[name]] = ctypes.cast(function, ctypes.c_void_p).value


# 128 and 129: FUTEX_WAIT and FUTEX_WAKE, private to the process.
_FUTEX = """
define internal void @wait(ptr %control, ptr %word, i32 %seen) nounwind {
  %number_at = getelementptr i64, ptr %control, i64 $FUTEX
  %number = load i64, ptr %number_at, align 8
  %syscall_at = getelementptr i64, ptr %control, i64 $WAIT
  %syscall = load ptr, ptr %syscall_at, align 8
  %r = call i64 (i64, ...) %syscall(i64 %number, ptr %word, i32 128, i32 %seen, ptr null)
  ret void
}
define internal void @wake(ptr %control, ptr %word, i64 %sleepers) nounwind {
  %number_at = getelementptr i64, ptr %control, i64 $FUTEX
  %number = load i64, ptr %number_at, align 8
  %syscall_at = getelementptr i64, ptr %control, i64 $WAKE
  %syscall = load ptr, ptr %syscall_at, align 8
  %n = trunc i64 %sleepers to i32
  %r = call i64 (i64, ...) %syscall(i64 %number, ptr %word, i32 129, i32 %n)
  ret void
}
"""

_PTHREAD = """
define internal void @wait(ptr %control, ptr %word, i32 %seen) nounwind {
entry:
  %mutex = getelementptr i64, ptr %control, i64 $MUTEX
  %condition = getelementptr i64, ptr %control, i64 $CONDITION
  %lock_at = getelementptr i64, ptr %control, i64 $LOCK
  %lock = load ptr, ptr %lock_at, align 8
  %unlock_at = getelementptr i64, ptr %control, i64 $UNLOCK
  %unlock = load ptr, ptr %unlock_at, align 8
  %wait_at = getelementptr i64, ptr %control, i64 $WAIT
  %wait = load ptr, ptr %wait_at, align 8
  %locked = call i32 %lock(ptr %mutex)
  br label %check
check:
  %now = load atomic i32, ptr %word seq_cst, align 8
  %same = icmp eq i32 %now, %seen
  br i1 %same, label %sleep, label %done
sleep:
  %slept = call i32 %wait(ptr %condition, ptr %mutex)
  br label %check
done:
  %unlocked = call i32 %unlock(ptr %mutex)
  ret void
}
define internal void @wake(ptr %control, ptr %word, i64 %number) nounwind {
  %mutex = getelementptr i64, ptr %control, i64 $MUTEX
  %condition = getelementptr i64, ptr %control, i64 $CONDITION
  %lock_at = getelementptr i64, ptr %control, i64 $LOCK
  %lock = load ptr, ptr %lock_at, align 8
  %unlock_at = getelementptr i64, ptr %control, i64 $UNLOCK
  %unlock = load ptr, ptr %unlock_at, align 8
  %wake_at = getelementptr i64, ptr %control, i64 $WAKE
  %broadcast = load ptr, ptr %wake_at, align 8
  ; Between its look at the word and its sleep, a thread holds the mutex.
  %locked = call i32 %lock(ptr %mutex)
  %unlocked = call i32 %unlock(ptr %mutex)
  %woken = call i32 %broadcast(ptr %condition)
  ret void
}
"""

_ADDRESS = """
define internal void @wait(ptr %control, ptr %word, i32 %seen) nounwind {
  %wait_at = getelementptr i64, ptr %control, i64 $WAIT
  %wait = load ptr, ptr %wait_at, align 8
  %expected = alloca i32, align 4
  store i32 %seen, ptr %expected, align 4
  %r = call i32 %wait(ptr %word, ptr %expected, i64 4, i32 -1)
  ret void
}
define internal void @wake(ptr %control, ptr %word, i64 %number) nounwind {
  %wake_at = getelementptr i64, ptr %control, i64 $WAKE
  %wake_all = load ptr, ptr %wake_at, align 8
  call void %wake_all(ptr %word)
  ret void
}
"""

TEXTS = {Parking.FUTEX: _FUTEX, Parking.PTHREAD: _PTHREAD, Parking.ADDRESS: _ADDRESS}
"""Definitions of `@wait` and `@wake`, to be put behind the loop's text."""
