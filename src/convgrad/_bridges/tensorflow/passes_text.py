"""The kernel of batch norm's passes as LLVM IR text, in the manner of `kernel_text`, whose functions it uses.

It reads up to `MOST_INPUTS` inputs, looks at none behind them, and has up to `MOST_OUTPUTS` results; the program is
given a block of their addresses. How many are needed, and of which dtypes, was compared with the call's text when
TensorFlow created the kernel.
"""

from __future__ import annotations

PASSES_TEXT = """
; Compute passes. Whatever happens, the handles of tensors and the status are given back.
define internal void @serve_passes(ptr %node, ptr %context) nounwind {
entry:
  %key = alloca [$KEY_WORDS x i64], align 16
  %tensors = alloca [$MOST_TENSORS x ptr], align 16
  %words = alloca [$MOST_PLACES x i64], align 16
  %block = load ptr, ptr @where, align 8
  call void @clear(ptr %key)
  br label %clear_tensors
clear_tensors:
  %t = phi i64 [ 0, %entry ], [ %t_next, %clear_tensors ]
  set ptr null, %tensors, %t
  %t_next = add i64 %t, 1
  %t_more = icmp ult i64 %t_next, $MOST_TENSORS
  br i1 %t_more, label %clear_tensors, label %begin
begin:
  %node_word = ptrtoint ptr %node to i64
  set i64 %node_word, %key, $KEY_NODE
  %switches = word i64 %block, $BLOCK_SWITCHES
  set i64 %switches, %key, $KEY_SWITCHES
  %new_status = word ptr %block, $BLOCK_NEW_STATUS
  %status = call ptr %new_status()
  %num_inputs = word ptr %block, $BLOCK_NUM_INPUTS
  %count32 = call i32 %num_inputs(ptr %context)
  %given_count = sext i32 %count32 to i64
  %get_code = word ptr %block, $BLOCK_GET_CODE
  %get_data = word ptr %block, $BLOCK_DATA
  %fits = icmp ule i64 %given_count, $MOST_INPUTS
  %count = select i1 %fits, i64 %given_count, i64 $MOST_INPUTS
  br label %fetch_each
fetch_each:
  %i = phi i64 [ 0, %begin ], [ %i_next, %fetched ]
  %i_left = icmp slt i64 %i, %count
  br i1 %i_left, label %fetch_one, label %look_up
fetch_one:
  %i32 = trunc i64 %i to i32
  %fetch_to = getelementptr ptr, ptr %tensors, i64 %i
  %input = call ptr @fetch(ptr %block, ptr %context, i32 %i32, ptr %fetch_to, ptr %status)
  %fetch_code = call i32 %get_code(ptr %status)
  %was_fetched = icmp eq i32 %fetch_code, 0
  br i1 %was_fetched, label %fetched, label %failed
fetched:
  %skipped = mul i64 %i, $TENSOR_WORDS
  %key_at = add i64 %skipped, $KEY_FIRST
  %shape_words = getelementptr i64, ptr %key, i64 %key_at
  call void @describe(ptr %block, ptr %input, ptr %shape_words)
  %i_next = add i64 %i, 1
  br label %fetch_each
look_up:
  %h = call i64 @hash(ptr %key)
  %buckets = word ptr %block, $BLOCK_BUCKETS
  %record = call ptr @find(ptr %buckets, ptr %key, i64 %h)
  %unknown = icmp eq ptr %record, null
  br i1 %unknown, label %ask, label %copy
ask:
  %miss = word ptr %block, $BLOCK_MISS
  call void %miss(ptr %key, i64 %h, ptr %context, ptr %tensors)
  br label %give_back
copy:
  %c = phi i64 [ 0, %look_up ], [ %c_next, %copy ]
  %from = add i64 %c, $PASS_PLACES
  %fixed = word i64 %record, %from
  set i64 %fixed, %words, %c
  %c_next = add i64 %c, 1
  %c_more = icmp ult i64 %c_next, $MOST_PLACES
  br i1 %c_more, label %copy, label %inputs
inputs:
  %k = phi i64 [ 0, %copy ], [ %k_next, %inputs ]
  %given = word ptr %tensors, %k
  %given_at = call i64 %get_data(ptr %given)
  %k_row = add i64 %k, $PASS_INPUTS
  %k_place = word i64 %record, %k_row
  set i64 %given_at, %words, %k_place
  %k_next = add i64 %k, 1
  %k_more = icmp slt i64 %k_next, %count
  br i1 %k_more, label %inputs, label %outputs
outputs:
  %all = word i64 %record, $PASS_OUTPUTS
  br label %each
each:
  %o = phi i64 [ 0, %outputs ], [ %o_next, %made_one ]
  %o_left = icmp slt i64 %o, %all
  br i1 %o_left, label %make, label %run
make:
  %o_skipped = mul i64 %o, $OUTPUT_WORDS
  %o_at = add i64 %o_skipped, $PASS_ROWS
  %row = getelementptr i64, ptr %record, i64 %o_at
  %dtype = word i64 %row, $OUTPUT_DTYPE
  %bytes = word i64 %row, $OUTPUT_BYTES
  %rank = word i64 %row, $OUTPUT_RANK
  %dims = getelementptr i64, ptr %row, i64 $OUTPUT_DIMS
  %dtype32 = trunc i64 %dtype to i32
  %rank32 = trunc i64 %rank to i32
  %o32 = trunc i64 %o to i32
  %function = word ptr %block, $BLOCK_ALLOCATE
  %made = call ptr %function(ptr %context, i32 %o32, i32 %dtype32, ptr %dims, i32 %rank32, i64 %bytes, ptr %status)
  %made_to = add i64 %o, $MOST_INPUTS
  set ptr %made, %tensors, %made_to
  %made_code = call i32 %get_code(ptr %status)
  %is_made = icmp eq i32 %made_code, 0
  br i1 %is_made, label %made_one, label %failed
made_one:
  %made_at = call i64 %get_data(ptr %made)
  %place = word i64 %row, $OUTPUT_PLACE
  set i64 %made_at, %words, %place
  %o_next = add i64 %o, 1
  br label %each
run:
  %program = word ptr %record, $PASS_PROGRAM
  %entry_function = word ptr %block, $BLOCK_RUN
  %ran = call i64 %entry_function(ptr %program, ptr %words)
  %fine = icmp eq i64 %ran, 0
  br i1 %fine, label %give_back, label %no_workspace
no_workspace:
  %set_status = word ptr %block, $BLOCK_SET_STATUS
  call void %set_status(ptr %status, i32 8, ptr @no_memory)
  br label %failed
failed:
  %failure = word ptr %block, $BLOCK_FAILURE
  call void %failure(ptr %context, ptr %status)
  br label %give_back
give_back:
  call void @release(ptr %block, ptr %tensors, i64 $MOST_TENSORS, ptr %status)
  ret void
}

define dso_local void @$PASSES(ptr %node, ptr %context) nounwind {
entry:
  %block = load ptr, ptr @where, align 8
  %at_work = getelementptr i64, ptr %block, i64 $BLOCK_AT_WORK
  %came = atomicrmw add ptr %at_work, i64 1 seq_cst, align 8
  call void @serve_passes(ptr %node, ptr %context)
  %went = atomicrmw sub ptr %at_work, i64 1 seq_cst, align 8
  ret void
}

; Say that the first result has the shape of the first input, which has four dimensions; of the others nothing.
define dso_local void @$PASSES_SHAPE(ptr %context, ptr %status) nounwind {
entry:
  %block = load ptr, ptr @where, align 8
  %unknown = word ptr %block, $BLOCK_SHAPE_UNKNOWN
  call void %unknown(ptr %context, ptr %status)
  %new_shape = word ptr %block, $BLOCK_NEW_SHAPE
  %given = call ptr %new_shape()
  %ranked = call ptr %new_shape()
  %shape_input = word ptr %block, $BLOCK_SHAPE_INPUT
  call void %shape_input(ptr %context, i32 0, ptr %given, ptr %status)
  %shape_rank = word ptr %block, $BLOCK_SHAPE_RANK
  call void %shape_rank(ptr %context, ptr %given, i64 $DIMS, ptr %ranked, ptr %status)
  %get_code = word ptr %block, $BLOCK_GET_CODE
  %code = call i32 %get_code(ptr %status)
  %fine = icmp eq i32 %code, 0
  br i1 %fine, label %set, label %done
set:
  %output = word ptr %block, $BLOCK_SHAPE_OUTPUT
  call void %output(ptr %context, i32 0, ptr %ranked, ptr %status)
  br label %done
done:
  %delete = word ptr %block, $BLOCK_DELETE_SHAPE
  call void %delete(ptr %given)
  call void %delete(ptr %ranked)
  ret void
}
"""
