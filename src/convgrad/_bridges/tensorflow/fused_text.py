"""The kernel of a convolution and what grappler has fused with it as LLVM IR text, in the manner of `kernel_text`.

It runs one program or two: the convolution, with a bias if there is one, and a pass over its result in place, for an
activation, an image that is added, or a batch norm. A record says where among the inputs each of these is.
"""

from __future__ import annotations

FUSED_TEXT = """
@on_heap = internal constant { i64, i8 } { i64 9, i8 0 }, align 8

; Compute a call. Whatever happens, the handles of its tensors and its status are given back.
define internal void @serve_fused(ptr %node, ptr %context, i1 %padded) nounwind {
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
  %given32 = call i32 %num_inputs(ptr %context)
  %given = sext i32 %given32 to i64
  %fits = icmp ule i64 %given, $MOST_INPUTS
  %count = select i1 %fits, i64 %given, i64 $MOST_INPUTS
  %last = sub i64 %count, 1
  %get_code = word ptr %block, $BLOCK_GET_CODE
  %get_data = word ptr %block, $BLOCK_DATA
  br label %fetch_each
fetch_each:
  %i = phi i64 [ 0, %begin ], [ %i_next, %described ]
  %i_left = icmp slt i64 %i, %count
  br i1 %i_left, label %fetch_one, label %look_up
fetch_one:
  %i32 = trunc i64 %i to i32
  %to = getelementptr ptr, ptr %tensors, i64 %i
  %input = call ptr @fetch(ptr %block, ptr %context, i32 %i32, ptr %to, ptr %status)
  %fetch_code = call i32 %get_code(ptr %status)
  %was_fetched = icmp eq i32 %fetch_code, 0
  br i1 %was_fetched, label %fetched, label %failed
fetched:
  %is_last = icmp eq i64 %i, %last
  %are_pads = and i1 %is_last, %padded
  br i1 %are_pads, label %read_pads, label %read_shape
read_pads:
  %pad_words = getelementptr i64, ptr %key, i64 $KEY_VALUES
  call void @measure(ptr %block, ptr %input, ptr %pad_words)
  br label %described
read_shape:
  %skipped = mul i64 %i, $TENSOR_WORDS
  %key_at = add i64 %skipped, $KEY_FIRST
  %shape_words = getelementptr i64, ptr %key, i64 %key_at
  call void @describe(ptr %block, ptr %input, ptr %shape_words)
  br label %described
described:
  %i_next = add i64 %i, 1
  br label %fetch_each
look_up:
  %h = call i64 @hash(ptr %key)
  %buckets = word ptr %block, $BLOCK_BUCKETS
  %record = call ptr @find(ptr %buckets, ptr %key, i64 %h)
  %unknown = icmp eq ptr %record, null
  br i1 %unknown, label %ask, label %known
ask:
  %miss = word ptr %block, $BLOCK_MISS
  call void %miss(ptr %key, i64 %h, ptr %context, ptr %tensors)
  br label %give_back
known:
  %bytes = word i64 %record, $RECORD_BYTES
  %dims = getelementptr i64, ptr %record, i64 $RECORD_DIMS
  %made = call ptr @allocate(ptr %block, ptr %context, i32 0, ptr %record, i32 $DIMS, i64 %bytes, ptr %dims,
                             ptr %status)
  set ptr %made, %tensors, $MOST_INPUTS
  %not_made = icmp eq ptr %made, null
  br i1 %not_made, label %failed, label %operands
operands:
  %made_at = call ptr %get_data(ptr %made)
  %first = word ptr %tensors, 0
  %first_at = call ptr %get_data(ptr %first)
  %second = word ptr %tensors, 1
  %second_at = call ptr %get_data(ptr %second)
  %bias_place = word i64 %record, $FUSED_BIAS
  %has_bias = icmp sge i64 %bias_place, 0
  br i1 %has_bias, label %find_bias, label %convolve
find_bias:
  %bias = word ptr %tensors, %bias_place
  %bias_data = call ptr %get_data(ptr %bias)
  br label %convolve
convolve:
  %bias_at = phi ptr [ null, %operands ], [ %bias_data, %find_bias ]
  %program = word ptr %record, $RECORD_PROGRAM
  %run = word ptr %block, $BLOCK_RUN
  set ptr %first_at, %words, 0
  set ptr %second_at, %words, 1
  set ptr %made_at, %words, 2
  set ptr %bias_at, %words, 3
  %ran = call i64 %run(ptr %program, ptr %words)
  %fine = icmp eq i64 %ran, 0
  br i1 %fine, label %convolved, label %no_workspace
convolved:
  %pass = word ptr %record, $FUSED_PASS
  %is_done = icmp eq ptr %pass, null
  br i1 %is_done, label %give_back, label %copy
copy:
  %c = phi i64 [ 0, %convolved ], [ %c_next, %copy ]
  %from = add i64 %c, $FUSED_PLACES
  %fixed = word i64 %record, %from
  set i64 %fixed, %words, %c
  %c_next = add i64 %c, 1
  %c_more = icmp ult i64 %c_next, $MOST_PLACES
  br i1 %c_more, label %copy, label %images
images:
  set ptr %made_at, %words, $PLACE_X
  set ptr %made_at, %words, $PLACE_Y
  %added_place = word i64 %record, $FUSED_RESIDUAL
  %has_added = icmp sge i64 %added_place, 0
  br i1 %has_added, label %find_added, label %statistics
find_added:
  %added = word ptr %tensors, %added_place
  %added_at = call ptr %get_data(ptr %added)
  set ptr %added_at, %words, $PLACE_RESIDUAL
  br label %statistics
statistics:
  %row_place = word i64 %record, $FUSED_ROWS
  %has_rows = icmp sge i64 %row_place, 0
  br i1 %has_rows, label %rows, label %apply
rows:
  %r = phi i64 [ 0, %statistics ], [ %r_next, %rows ]
  %r_from = add i64 %r, %row_place
  %row = word ptr %tensors, %r_from
  %row_at = call ptr %get_data(ptr %row)
  %r_to = add i64 %r, $PLACE_WEIGHT
  set ptr %row_at, %words, %r_to
  %r_next = add i64 %r, 1
  %r_more = icmp ult i64 %r_next, 4
  br i1 %r_more, label %rows, label %save
save:
  %saved_dtype = word i64 %record, $FUSED_DTYPE
  %saved_dtype32 = trunc i64 %saved_dtype to i32
  %saved_dims = getelementptr i64, ptr %record, i64 $FUSED_SAVED
  %temp = word ptr %block, $BLOCK_ALLOCATE_TEMP
  %saved = call ptr %temp(ptr %context, i32 %saved_dtype32, ptr %saved_dims, i32 2, ptr @on_heap, ptr %status)
  set ptr %saved, %tensors, $TEMPORARY
  %saved_code = call i32 %get_code(ptr %status)
  %is_saved = icmp eq i32 %saved_code, 0
  br i1 %is_saved, label %find_saved, label %failed
find_saved:
  %saved_at = call ptr %get_data(ptr %saved)
  set ptr %saved_at, %words, $PLACE_SAVED
  br label %apply
apply:
  %applied = call i64 %run(ptr %pass, ptr %words)
  %well = icmp eq i64 %applied, 0
  br i1 %well, label %give_back, label %no_workspace
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
"""

FUSED_COMPUTE = """
define dso_local void @$COMPUTE(ptr %node, ptr %context) nounwind {
entry:
  %block = load ptr, ptr @where, align 8
  %at_work = getelementptr i64, ptr %block, i64 $BLOCK_AT_WORK
  %came = atomicrmw add ptr %at_work, i64 1 seq_cst, align 8
  call void @serve_fused(ptr %node, ptr %context, i1 $PADDED)
  %went = atomicrmw sub ptr %at_work, i64 1 seq_cst, align 8
  ret void
}
"""
