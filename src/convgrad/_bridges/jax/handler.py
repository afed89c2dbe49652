"""What XLA calls for one of our sums or passes: compiled functions, and the words they work on.

XLA's interface for foreign functions hands a handler one frame: buffers of operands and results, attributes, and a
table of functions for errors. Nothing in it tells which program to run, except the name a handler was registered by.
So every program has a handler of its own: `SLOTS` little functions at a time, each with the number of a slot, which
all go to the same code. A slot is a row of words in a block that Python fills before it registers the handler.

No pointer and no number of a slot is written into what XLA compiles, so that its executables can be kept on disk and
run by another process, whose slots are others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..._runtime.entry import NO_MEMORY, spelled

SLOTS = 64
"""Handlers that are loaded at a time: a network of 50 convolutions has some 100 programs, and the code of 64 takes
30 ms to compile, once per machine."""

BLOCK = ("RUN", "MAJOR", "MINOR", "EMPTY", "BROKEN")
"""The head of a block: the entry; the version of the interface; messages for a slot without a program, and for a
program that the entry does not know."""
SLOT = (
    *("PROGRAM", "DTYPE", "ALIGNMENT", "FIRST", "SECOND", "RESULT", "NO_MEMORY", "MISFIT"),
    "TABLE",
)
"""A slot: the program; the dtype of its arrays as XLA counts them, an element's bytes less one, and how many elements
they have; messages for a lack of memory, and for arrays of other sizes; the table of a program with other arrays than
two operands and a result, or 0."""
MOST_PLACES = 12
TABLE = ("OPERANDS", "RESULTS", *(f"PLACE_{at}" for at in range(MOST_PLACES)))
"""The head of a table: how many operands and results there are, and what such a program is given: a block of addresses,
of which those of arrays are filled in."""
BUFFER = ("DTYPE", "ALIGNMENT", "ELEMENTS", "PLACE")
"""A row of a table for each operand and each result: as in a slot, and the place of its address."""
BLOCK_SYMBOL = "cg_jax_block"

INTERNAL, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, FAILED_PRECONDITION = 13, 3, 8, 9
"""Codes of errors."""


@dataclass(frozen=True)
class HandlerSource:
    """The text of a slab of handlers; all slabs are one object on disk, loaded with blocks of their own."""

    number: int = field(repr=False)
    name: str
    symbols: tuple[str, ...]
    text: str


def source(number: int) -> HandlerSource:
    """Return the handlers of a slab."""
    symbols = tuple(f"cg_jax_{slot}" for slot in range(SLOTS))
    return HandlerSource(number, "cg_jax", symbols, text())


def text() -> str:
    """Return a slab of handlers."""
    fields = {
        **{f"BLOCK_{name}": at for at, name in enumerate(BLOCK)},
        **{f"SLOT_{name}": at for at, name in enumerate(SLOT)},
        **{f"BUFFER_{name}": at for at, name in enumerate(BUFFER)},
        "TABLE_OPERANDS": TABLE.index("OPERANDS"),
        "TABLE_RESULTS": TABLE.index("RESULTS"),
        "TABLE_FIRST": TABLE.index("PLACE_0"),
        "TABLE_WORDS": len(TABLE),
        "BUFFER_WORDS": len(BUFFER),
        "MOST_PLACES": MOST_PLACES,
        "BLOCK_WORDS": len(BLOCK),
        "SLOT_WORDS": len(SLOT),
        "BLOCK": f"@{BLOCK_SYMBOL}",
        "ERROR_INTERNAL": INTERNAL,
        "ERROR_INVALID": INVALID_ARGUMENT,
        "ERROR_MEMORY": RESOURCE_EXHAUSTED,
        "ERROR_EMPTY": FAILED_PRECONDITION,
        "NO_MEMORY": NO_MEMORY,
    }
    stubs = "".join(_STUB.replace("$SLOT", str(slot)) for slot in range(SLOTS))
    whole = spelled(re.sub(r"\$([A-Z_]+)", lambda match: str(fields[match[1]]), _TEXT))
    return whole + stubs


_STUB = """
define i64 @cg_jax_$SLOT(ptr %frame) nounwind {
  %found = tail call i64 @answer(ptr %frame, i64 $SLOT)
  ret i64 %found
}
"""

# Offsets are those of xla/ffi/api/c_api.h on machines with 64-bit pointers (`abi` compares the header). In 64-bit
# words: a frame has the extension at 1, the table of functions at 2, counts and lists of operands at 7 and 9, of
# results at 12 and 14; a buffer has its dtype (32 bits) at 2, the address at 3, rank and sizes at 4 and 5.
_TEXT = """
$BLOCK = external global i8
@where = internal constant ptr $BLOCK, align 8

; Return an error of XLA's: what is wrong, and its kind.
define internal i64 @failure(ptr %frame, ptr %message, i64 %code) nounwind {
entry:
  %args = alloca [4 x i64], align 8
  %extension = getelementptr i64, ptr %args, i64 1
  %text = getelementptr i64, ptr %args, i64 2
  %kind = getelementptr i64, ptr %args, i64 3
  store i64 28, ptr %args, align 8
  store i64 0, ptr %extension, align 8
  store ptr %message, ptr %text, align 8
  store i64 %code, ptr %kind, align 8
  %api = word ptr %frame, 2
  %create = word ptr %api, 6
  %error = call i64 %create(ptr %args)
  ret i64 %error
}

; Tell whether a buffer has as many elements of a dtype as it should.
define internal i1 @fits(ptr %buffer, i64 %dtype, i64 %elements) nounwind {
entry:
  %kind_at = getelementptr i64, ptr %buffer, i64 2
  %kind32 = load i32, ptr %kind_at, align 8
  %kind = sext i32 %kind32 to i64
  %typed = icmp eq i64 %kind, %dtype
  %rank = word i64 %buffer, 4
  %sizes = word ptr %buffer, 5
  br label %count
count:
  %i = phi i64 [ 0, %entry ], [ %next, %more ]
  %product = phi i64 [ 1, %entry ], [ %longer, %more ]
  %left = icmp slt i64 %i, %rank
  br i1 %left, label %more, label %counted
more:
  %size = word i64 %sizes, %i
  %longer = mul i64 %product, %size
  %next = add i64 %i, 1
  br label %count
counted:
  %full = icmp eq i64 %product, %elements
  %both = and i1 %typed, %full
  ret i1 %both
}

; Write the block of addresses of a program with a table; tells whether all arrays are what it says.
define internal i1 @gather(ptr %frame, ptr %table, ptr %words) nounwind {
entry:
  %given = word i64 %frame, 7
  %operands = word i64 %table, $TABLE_OPERANDS
  %all_given = icmp eq i64 %given, %operands
  %wanted = word i64 %frame, 12
  %results = word i64 %table, $TABLE_RESULTS
  %all_wanted = icmp eq i64 %wanted, %results
  %counted = and i1 %all_given, %all_wanted
  br i1 %counted, label %copy, label %misfit
copy:
  %c = phi i64 [ 0, %entry ], [ %c_next, %copy ]
  %from = add i64 %c, $TABLE_FIRST
  %fixed = word i64 %table, %from
  %to = getelementptr i64, ptr %words, i64 %c
  store i64 %fixed, ptr %to, align 8
  %c_next = add i64 %c, 1
  %c_more = icmp ult i64 %c_next, $MOST_PLACES
  br i1 %c_more, label %copy, label %begin
begin:
  %operand_list = word ptr %frame, 9
  %result_list = word ptr %frame, 14
  %all = add i64 %operands, %results
  br label %each
each:
  %k = phi i64 [ 0, %begin ], [ %k_next, %fine ]
  %left = icmp slt i64 %k, %all
  br i1 %left, label %look, label %done
look:
  %is_operand = icmp slt i64 %k, %operands
  %list = select i1 %is_operand, ptr %operand_list, ptr %result_list
  %behind = sub i64 %k, %operands
  %at = select i1 %is_operand, i64 %k, i64 %behind
  %buffer = word ptr %list, %at
  %skipped = mul i64 %k, $BUFFER_WORDS
  %row_at = add i64 %skipped, $TABLE_WORDS
  %row = getelementptr i64, ptr %table, i64 %row_at
  %dtype = word i64 %row, $BUFFER_DTYPE
  %elements = word i64 %row, $BUFFER_ELEMENTS
  %fits = call i1 @fits(ptr %buffer, i64 %dtype, i64 %elements)
  %address = word i64 %buffer, 3
  %mask = word i64 %row, $BUFFER_ALIGNMENT
  %odd = and i64 %address, %mask
  %aligned = icmp eq i64 %odd, 0
  %both = and i1 %fits, %aligned
  br i1 %both, label %fine, label %misfit
fine:
  %place = word i64 %row, $BUFFER_PLACE
  %place_at = getelementptr i64, ptr %words, i64 %place
  store i64 %address, ptr %place_at, align 8
  %k_next = add i64 %k, 1
  br label %each
done:
  ret i1 true
misfit:
  ret i1 false
}

define internal i64 @answer(ptr %frame, i64 %number) nounwind {
entry:
  %words = alloca [$MOST_PLACES x i64], align 8
  %block = load ptr, ptr @where, align 8
  %extension = word ptr %frame, 1
  %plain = icmp eq ptr %extension, null
  br i1 %plain, label %slot, label %extended
extended:
  %type_at = getelementptr i64, ptr %extension, i64 1
  %type = load i32, ptr %type_at, align 8
  %asked = icmp eq i32 %type, 1
  br i1 %asked, label %metadata, label %slot
metadata:
  ; XLA asks what we were written for: version at 24 and 28, no traits.
  %about = word ptr %extension, 3
  %major = word i64 %block, $BLOCK_MAJOR
  %minor = word i64 %block, $BLOCK_MINOR
  %major32 = trunc i64 %major to i32
  %minor32 = trunc i64 %minor to i32
  %major_at = getelementptr i8, ptr %about, i64 24
  store i32 %major32, ptr %major_at, align 8
  %minor_at = getelementptr i8, ptr %about, i64 28
  store i32 %minor32, ptr %minor_at, align 4
  %traits_at = getelementptr i8, ptr %about, i64 32
  store i32 0, ptr %traits_at, align 8
  ret i64 0
slot:
  %skipped = mul i64 %number, $SLOT_WORDS
  %at = add i64 %skipped, $BLOCK_WORDS
  %row = getelementptr i64, ptr %block, i64 %at
  %program = word ptr %row, $SLOT_PROGRAM
  %there = icmp ne ptr %program, null
  br i1 %there, label %check, label %empty
empty:
  %empty_text = word ptr %block, $BLOCK_EMPTY
  %empty_error = call i64 @failure(ptr %frame, ptr %empty_text, i64 $ERROR_EMPTY)
  ret i64 %empty_error
check:
  %table = word ptr %row, $SLOT_TABLE
  %is_sum = icmp eq ptr %table, null
  br i1 %is_sum, label %count, label %several
several:
  %gathered = call i1 @gather(ptr %frame, ptr %table, ptr %words)
  br i1 %gathered, label %run, label %misfit
count:
  %given = word i64 %frame, 7
  %two = icmp eq i64 %given, 2
  %wanted = word i64 %frame, 12
  %one = icmp eq i64 %wanted, 1
  %counted = and i1 %two, %one
  br i1 %counted, label %buffers, label %misfit
buffers:
  %operands = word ptr %frame, 9
  %results = word ptr %frame, 14
  %first = word ptr %operands, 0
  %second = word ptr %operands, 1
  %result = word ptr %results, 0
  %dtype = word i64 %row, $SLOT_DTYPE
  %first_size = word i64 %row, $SLOT_FIRST
  %second_size = word i64 %row, $SLOT_SECOND
  %result_size = word i64 %row, $SLOT_RESULT
  %first_fits = call i1 @fits(ptr %first, i64 %dtype, i64 %first_size)
  %second_fits = call i1 @fits(ptr %second, i64 %dtype, i64 %second_size)
  %result_fits = call i1 @fits(ptr %result, i64 %dtype, i64 %result_size)
  %x = word ptr %first, 3
  %y = word ptr %second, 3
  %z = word ptr %result, 3
  %x_bits = ptrtoint ptr %x to i64
  %y_bits = ptrtoint ptr %y to i64
  %z_bits = ptrtoint ptr %z to i64
  %some_bits = or i64 %x_bits, %y_bits
  %bits = or i64 %some_bits, %z_bits
  %mask = word i64 %row, $SLOT_ALIGNMENT
  %odd = and i64 %bits, %mask
  %aligned = icmp eq i64 %odd, 0
  %operands_fit = and i1 %first_fits, %second_fits
  %all_fit = and i1 %operands_fit, %result_fits
  %fine = and i1 %all_fit, %aligned
  br i1 %fine, label %three, label %misfit
misfit:
  %misfit_text = word ptr %row, $SLOT_MISFIT
  %misfit_error = call i64 @failure(ptr %frame, ptr %misfit_text, i64 $ERROR_INVALID)
  ret i64 %misfit_error
three:
  store ptr %x, ptr %words, align 8
  %y_at = getelementptr ptr, ptr %words, i64 1
  store ptr %y, ptr %y_at, align 8
  %z_at = getelementptr ptr, ptr %words, i64 2
  store ptr %z, ptr %z_at, align 8
  br label %run
run:
  %entry_point = word ptr %block, $BLOCK_RUN
  %status = call i64 %entry_point(ptr %program, ptr %words)
  %done = icmp eq i64 %status, 0
  br i1 %done, label %end, label %failed
end:
  ret i64 0
failed:
  %lacks = icmp eq i64 %status, $NO_MEMORY
  br i1 %lacks, label %lack, label %broken
lack:
  %lack_text = word ptr %row, $SLOT_NO_MEMORY
  %lack_error = call i64 @failure(ptr %frame, ptr %lack_text, i64 $ERROR_MEMORY)
  ret i64 %lack_error
broken:
  %broken_text = word ptr %block, $BLOCK_BROKEN
  %broken_error = call i64 @failure(ptr %frame, ptr %broken_text, i64 $ERROR_INTERNAL)
  ret i64 %broken_error
}
"""
