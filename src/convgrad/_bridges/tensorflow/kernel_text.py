"""The kernels of `kernel` as LLVM IR text.

Names in capitals behind a dollar are numbers of `kernel`; lines that load and store words are shorter than LLVM has
them (`written` of `_runtime/records.py`).
"""

from __future__ import annotations

TEXT = """
$BLOCK = external global i8
@where = internal constant ptr $BLOCK, align 8
@no_memory = internal constant [40 x i8] c"convgrad: no memory for the workspaces.\\00"

define dso_local void @$DELETE(ptr %node) nounwind {
  ret void
}

; Write a tensor's rank and its first four sizes.
define internal void @describe(ptr %block, ptr %tensor, ptr %words) nounwind {
entry:
  %num_dims = word ptr %block, $BLOCK_NUM_DIMS
  %rank32 = call i32 %num_dims(ptr %tensor)
  %rank = sext i32 %rank32 to i64
  set i64 %rank, %words, 0
  %fits = icmp slt i64 %rank, $DIMS
  %last = select i1 %fits, i64 %rank, i64 $DIMS
  %any = icmp sgt i64 %last, 0
  br i1 %any, label %copy, label %done
copy:
  %i = phi i64 [ 0, %entry ], [ %next, %copy ]
  %dim = word ptr %block, $BLOCK_DIM
  %i32 = trunc i64 %i to i32
  %size = call i64 %dim(ptr %tensor, i32 %i32)
  %next = add i64 %i, 1
  set i64 %size, %words, %next
  %more = icmp slt i64 %next, %last
  br i1 %more, label %copy, label %done
done:
  ret void
}

; Write the rank of a small tensor of integers, how many there are and their values, if they are up to eight.
define internal void @measure(ptr %block, ptr %tensor, ptr %words) nounwind {
entry:
  %num_dims = word ptr %block, $BLOCK_NUM_DIMS
  %rank32 = call i32 %num_dims(ptr %tensor)
  %rank = sext i32 %rank32 to i64
  set i64 %rank, %words, 0
  %get_count = word ptr %block, $BLOCK_COUNT
  %count = call i64 %get_count(ptr %tensor)
  set i64 %count, %words, 1
  %less = sub i64 %count, 1
  %fits = icmp ult i64 %less, $MOST_VALUES
  br i1 %fits, label %look, label %done
look:
  %type = word ptr %block, $BLOCK_TYPE
  %dtype = call i32 %type(ptr %tensor)
  %is_long = icmp eq i32 %dtype, 9
  %get_data = word ptr %block, $BLOCK_DATA
  %data = call ptr %get_data(ptr %tensor)
  br label %copy
copy:
  %i = phi i64 [ 0, %look ], [ %next, %store ]
  br i1 %is_long, label %long, label %short
long:
  %long_value = word i64 %data, %i
  br label %store
short:
  %short_at = getelementptr i32, ptr %data, i64 %i
  %short_value = load i32, ptr %short_at, align 4
  %widened = sext i32 %short_value to i64
  br label %store
store:
  %value = phi i64 [ %long_value, %long ], [ %widened, %short ]
  %to = add i64 %i, 2
  set i64 %value, %words, %to
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %copy, label %done
done:
  ret void
}

; Fetch an input; null if the op has none there.
define internal ptr @fetch(ptr %block, ptr %context, i32 %at, ptr %to, ptr %status) nounwind {
entry:
  store ptr null, ptr %to, align 8
  %absent = icmp slt i32 %at, 0
  br i1 %absent, label %none, label %there
there:
  %get_input = word ptr %block, $BLOCK_GET_INPUT
  call void %get_input(ptr %context, i32 %at, ptr %to, ptr %status)
  %tensor = load ptr, ptr %to, align 8
  ret ptr %tensor
none:
  ret ptr null
}

; Allocate an output; null if there is no memory.
define internal ptr @allocate(ptr %block, ptr %context, i32 %at, ptr %record, i32 %rank, i64 %bytes, ptr %dims,
                              ptr %status) nounwind {
entry:
  %dtype = word i64 %record, $RECORD_DTYPE
  %dtype32 = trunc i64 %dtype to i32
  %function = word ptr %block, $BLOCK_ALLOCATE
  %made = call ptr %function(ptr %context, i32 %at, i32 %dtype32, ptr %dims, i32 %rank, i64 %bytes, ptr %status)
  %get_code = word ptr %block, $BLOCK_GET_CODE
  %code = call i32 %get_code(ptr %status)
  %refused = icmp ne i32 %code, 0
  %answer = select i1 %refused, ptr null, ptr %made
  ret ptr %answer
}

; Give back the handles of tensors, null where there is none, and of the status.
define internal void @release(ptr %block, ptr %tensors, i64 %count, ptr %status) nounwind {
entry:
  br label %each
each:
  %i = phi i64 [ 0, %entry ], [ %next, %given ]
  %tensor = word ptr %tensors, %i
  %there = icmp ne ptr %tensor, null
  br i1 %there, label %give, label %given
give:
  %delete = word ptr %block, $BLOCK_DELETE_TENSOR
  call void %delete(ptr %tensor)
  br label %given
given:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %each, label %done
done:
  %delete_status = word ptr %block, $BLOCK_DELETE_STATUS
  call void %delete_status(ptr %status)
  ret void
}

; Compute a call. Whatever happens, the handles of its tensors and its status are given back.
define internal void @serve(ptr %node, ptr %context, i32 %at_first, i32 %at_second, i32 %at_values, i32 %at_bias,
                            i32 %outputs) nounwind {
entry:
  %key = alloca [$KEY_WORDS x i64], align 16
  %tensors = alloca [6 x ptr], align 16
  %addresses = alloca [4 x ptr], align 16
  %block = load ptr, ptr @where, align 8
  call void @clear(ptr %key)
  %node_word = ptrtoint ptr %node to i64
  set i64 %node_word, %key, $KEY_NODE
  %switches = word i64 %block, $BLOCK_SWITCHES
  set i64 %switches, %key, $KEY_SWITCHES
  %new_status = word ptr %block, $BLOCK_NEW_STATUS
  %status = call ptr %new_status()
  %first_to = getelementptr ptr, ptr %tensors, i64 0
  %second_to = getelementptr ptr, ptr %tensors, i64 1
  %values_to = getelementptr ptr, ptr %tensors, i64 2
  %bias_to = getelementptr ptr, ptr %tensors, i64 3
  set ptr null, %tensors, 4
  set ptr null, %tensors, 5
  %first = call ptr @fetch(ptr %block, ptr %context, i32 %at_first, ptr %first_to, ptr %status)
  %second = call ptr @fetch(ptr %block, ptr %context, i32 %at_second, ptr %second_to, ptr %status)
  %values = call ptr @fetch(ptr %block, ptr %context, i32 %at_values, ptr %values_to, ptr %status)
  %bias = call ptr @fetch(ptr %block, ptr %context, i32 %at_bias, ptr %bias_to, ptr %status)
  %fetch_code_of = word ptr %block, $BLOCK_GET_CODE
  %fetch_code = call i32 %fetch_code_of(ptr %status)
  %fetched = icmp eq i32 %fetch_code, 0
  br i1 %fetched, label %describe_operands, label %failed
describe_operands:
  %first_words = getelementptr i64, ptr %key, i64 $KEY_FIRST
  call void @describe(ptr %block, ptr %first, ptr %first_words)
  %second_words = getelementptr i64, ptr %key, i64 $KEY_SECOND
  call void @describe(ptr %block, ptr %second, ptr %second_words)
  %no_values = icmp eq ptr %values, null
  br i1 %no_values, label %describe_bias, label %read_values
read_values:
  %values_words = getelementptr i64, ptr %key, i64 $KEY_VALUES
  call void @measure(ptr %block, ptr %values, ptr %values_words)
  br label %describe_bias
describe_bias:
  %no_bias = icmp eq ptr %bias, null
  br i1 %no_bias, label %look_up, label %read_bias
read_bias:
  %bias_words = getelementptr i64, ptr %key, i64 $KEY_BIAS
  call void @describe(ptr %block, ptr %bias, ptr %bias_words)
  br label %look_up
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
  set ptr %made, %tensors, 4
  %not_made = icmp eq ptr %made, null
  br i1 %not_made, label %failed, label %second_output
second_output:
  %get_data = word ptr %block, $BLOCK_DATA
  %has_two = icmp sgt i32 %outputs, 1
  br i1 %has_two, label %allocate_bias, label %given_bias
allocate_bias:
  %bias_bytes = word i64 %record, $RECORD_BIAS_BYTES
  %bias_dims = getelementptr i64, ptr %record, i64 $RECORD_BIAS_DIMS
  %made_bias = call ptr @allocate(ptr %block, ptr %context, i32 1, ptr %record, i32 1, i64 %bias_bytes,
                                  ptr %bias_dims, ptr %status)
  set ptr %made_bias, %tensors, 5
  %bias_not_made = icmp eq ptr %made_bias, null
  br i1 %bias_not_made, label %failed, label %bias_address
given_bias:
  br i1 %no_bias, label %run, label %bias_address
bias_address:
  %bias_tensor = phi ptr [ %made_bias, %allocate_bias ], [ %bias, %given_bias ]
  %bias_data = call ptr %get_data(ptr %bias_tensor)
  br label %run
run:
  %bias_at = phi ptr [ null, %given_bias ], [ %bias_data, %bias_address ]
  %first_at = call ptr %get_data(ptr %first)
  %second_at = call ptr %get_data(ptr %second)
  %made_at = call ptr %get_data(ptr %made)
  %program = word ptr %record, $RECORD_PROGRAM
  %entry_function = word ptr %block, $BLOCK_RUN
  set ptr %first_at, %addresses, 0
  set ptr %second_at, %addresses, 1
  set ptr %made_at, %addresses, 2
  set ptr %bias_at, %addresses, 3
  %ran = call i64 %entry_function(ptr %program, ptr %addresses)
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
  call void @release(ptr %block, ptr %tensors, i64 6, ptr %status)
  ret void
}

; Say that two inputs have four dimensions, and the result too; its first is that of the input `batch_of`.
define internal void @infer(ptr %context, ptr %status, i32 %at_first, i32 %at_second, i32 %batch_of) nounwind {
entry:
  %block = load ptr, ptr @where, align 8
  %new_shape = word ptr %block, $BLOCK_NEW_SHAPE
  %given = call ptr %new_shape()
  %ranked = call ptr %new_shape()
  %batch = call ptr %new_shape()
  %two = call ptr %new_shape()
  %three = call ptr %new_shape()
  %four = call ptr %new_shape()
  %vector = word ptr %block, $BLOCK_SHAPE_VECTOR
  ; A size that is not known is -1, and each is one of its own: the same handle would say that they are equal.
  %any = call ptr %vector(ptr %context, i64 -1)
  %any_two = call ptr %vector(ptr %context, i64 -1)
  %any_three = call ptr %vector(ptr %context, i64 -1)
  %any_four = call ptr %vector(ptr %context, i64 -1)
  %shape_input = word ptr %block, $BLOCK_SHAPE_INPUT
  %shape_rank = word ptr %block, $BLOCK_SHAPE_RANK
  %get_code = word ptr %block, $BLOCK_GET_CODE
  call void %shape_input(ptr %context, i32 %at_first, ptr %given, ptr %status)
  call void %shape_rank(ptr %context, ptr %given, i64 $DIMS, ptr %ranked, ptr %status)
  %code_first = call i32 %get_code(ptr %status)
  %fine_first = icmp eq i32 %code_first, 0
  br i1 %fine_first, label %second, label %done
second:
  call void %shape_input(ptr %context, i32 %at_second, ptr %given, ptr %status)
  call void %shape_rank(ptr %context, ptr %given, i64 $DIMS, ptr %ranked, ptr %status)
  %code_second = call i32 %get_code(ptr %status)
  %fine_second = icmp eq i32 %code_second, 0
  br i1 %fine_second, label %which, label %done
which:
  %has_batch = icmp sge i32 %batch_of, 0
  br i1 %has_batch, label %images, label %filter
images:
  call void %shape_input(ptr %context, i32 %batch_of, ptr %given, ptr %status)
  call void %shape_rank(ptr %context, ptr %given, i64 $DIMS, ptr %ranked, ptr %status)
  %part = word ptr %block, $BLOCK_SHAPE_PART
  call void %part(ptr %context, ptr %ranked, i64 0, i64 1, ptr %batch, ptr %status)
  br label %put_together
filter:
  br label %put_together
put_together:
  %leading = phi ptr [ %batch, %images ], [ %any, %filter ]
  %join = word ptr %block, $BLOCK_SHAPE_JOIN
  call void %join(ptr %context, ptr %leading, ptr %any_two, ptr %two, ptr %status)
  call void %join(ptr %context, ptr %two, ptr %any_three, ptr %three, ptr %status)
  call void %join(ptr %context, ptr %three, ptr %any_four, ptr %four, ptr %status)
  %output = word ptr %block, $BLOCK_SHAPE_OUTPUT
  call void %output(ptr %context, i32 0, ptr %four, ptr %status)
  br label %done
done:
  %delete = word ptr %block, $BLOCK_DELETE_SHAPE
  call void %delete(ptr %given)
  call void %delete(ptr %ranked)
  call void %delete(ptr %batch)
  call void %delete(ptr %two)
  call void %delete(ptr %three)
  call void %delete(ptr %four)
  call void %delete(ptr %any)
  call void %delete(ptr %any_two)
  call void %delete(ptr %any_three)
  call void %delete(ptr %any_four)
  ret void
}
"""

COMPUTE = """
define dso_local void @$COMPUTE(ptr %node, ptr %context) nounwind {
entry:
  %block = load ptr, ptr @where, align 8
  %at_work = getelementptr i64, ptr %block, i64 $BLOCK_AT_WORK
  %came = atomicrmw add ptr %at_work, i64 1 seq_cst, align 8
  call void @serve(ptr %node, ptr %context, i32 $AT_FIRST, i32 $AT_SECOND, i32 $AT_VALUES, i32 $AT_BIAS,
                   i32 $AT_OUTPUTS)
  %went = atomicrmw sub ptr %at_work, i64 1 seq_cst, align 8
  ret void
}
"""

SHAPE = """
define dso_local void @$SHAPE(ptr %context, ptr %status) nounwind {
entry:
  call void @infer(ptr %context, ptr %status, i32 $AT_FIRST, i32 $AT_SECOND, i32 $AT_BATCH_OF)
  ret void
}
"""
