"""The handlers of `handler` as LLVM IR text.

Names in capitals behind a dollar are numbers of `handler`; lines that load and store words are shorter than LLVM
has them (`written` of `_runtime/records.py`).
"""

from __future__ import annotations

PARTS = """
$BLOCK = external global i8
@where = internal constant ptr $BLOCK, align 8

; Write what matters of a tensor to nine words; 0 if it has not as many dimensions as it should.
define internal i1 @describe(ptr %block, ptr %tensor, i64 %wanted, ptr %words) nounwind {
entry:
  %dim_at = alloca i64, align 8
  %list_at = alloca ptr, align 8
  %dtype_at = alloca i32, align 8
  %get_dim = word ptr %block, $BLOCK_GET_DIM
  %dim_status = call i32 %get_dim(ptr %tensor, ptr %dim_at)
  %dim = load i64, ptr %dim_at, align 8
  %dim_fine = icmp eq i32 %dim_status, 0
  %as_wanted = icmp eq i64 %dim, %wanted
  %usable = and i1 %dim_fine, %as_wanted
  br i1 %usable, label %type, label %no
type:
  %get_dtype = word ptr %block, $BLOCK_GET_DTYPE
  %dtype_status = call i32 %get_dtype(ptr %tensor, ptr %dtype_at)
  %dtype32 = load i32, ptr %dtype_at, align 8
  %dtype = sext i32 %dtype32 to i64
  store i64 %dtype, ptr %words, align 8
  %get_sizes = word ptr %block, $BLOCK_GET_SIZES
  %sizes_status = call i32 %get_sizes(ptr %tensor, ptr %list_at)
  %sizes = load ptr, ptr %list_at, align 8
  %get_strides = word ptr %block, $BLOCK_GET_STRIDES
  %strides_status = call i32 %get_strides(ptr %tensor, ptr %list_at)
  %strides = load ptr, ptr %list_at, align 8
  %two_statuses = or i32 %dtype_status, %sizes_status
  %statuses = or i32 %two_statuses, %strides_status
  %known = icmp eq i32 %statuses, 0
  br i1 %known, label %copy, label %no
copy:
  %i = phi i64 [ 0, %type ], [ %next, %copy ]
  %size = word i64 %sizes, %i
  %stride = word i64 %strides, %i
  %size_to = add i64 %i, 1
  set i64 %size, %words, %size_to
  %stride_to = add i64 %i, 5
  set i64 %stride, %words, %stride_to
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %wanted
  br i1 %more, label %copy, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; Allocate what a record wants; 0 if that was not possible, and then nothing is left behind.
define internal i1 @make(ptr %block, ptr %record, ptr %places, ptr %made) nounwind {
entry:
  %tensor_at = alloca ptr, align 8
  %data_at = alloca ptr, align 8
  %wanted = word i64 %record, $RECORD_MADE
  %body = getelementptr i64, ptr %record, i64 $RECORD_BODY
  br label %make
make:
  %i = phi i64 [ 0, %entry ], [ %next, %ready ]
  %skip = mul i64 %i, $MADE_WORDS
  %row = getelementptr i64, ptr %body, i64 %skip
  %dims = word i64 %row, 0
  %absent = icmp slt i64 %dims, 0
  br i1 %absent, label %undefined, label %allocate
undefined:
  %new_undefined = word ptr %block, $BLOCK_UNDEFINED
  %undefined_status = call i32 %new_undefined(ptr %tensor_at)
  store ptr null, ptr %data_at, align 8
  br label %made_one
allocate:
  %dtype = word i64 %row, 1
  %dtype32 = trunc i64 %dtype to i32
  %sizes = getelementptr i64, ptr %row, i64 2
  %strides = getelementptr i64, ptr %row, i64 6
  %empty = word ptr %block, $BLOCK_EMPTY
  %status = call i32 %empty(i64 %dims, ptr %sizes, ptr %strides, i32 %dtype32, i32 0, i32 -1, ptr %tensor_at)
  %fine = icmp eq i32 %status, 0
  br i1 %fine, label %address, label %failed
address:
  %fresh = load ptr, ptr %tensor_at, align 8
  %write_at = word ptr %block, $BLOCK_WRITE_AT
  %write_status = call i32 %write_at(ptr %fresh, ptr %data_at)
  br label %made_one
made_one:
  %tensor = load ptr, ptr %tensor_at, align 8
  set ptr %tensor, %made, %i
  %data = load ptr, ptr %data_at, align 8
  %place = add i64 %i, $GIVEN
  set ptr %data, %places, %place
  br label %ready
ready:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %wanted
  br i1 %more, label %make, label %done
done:
  ret i1 true
failed:
  call void @drop(ptr %block, ptr %made, i64 0, i64 %i)
  ret i1 false
}

; Run the programs of a record on what was made, and drop what is not returned; 0 if that was not possible, and then
; nothing is left behind.
define internal i1 @run_all(ptr %block, ptr %record, ptr %places, ptr %made) nounwind {
entry:
  %addresses = alloca [$MOST_PLACES x ptr], align 16
  %wanted = word i64 %record, $RECORD_MADE
  %outputs = word i64 %record, $RECORD_OUTPUTS
  %runs = word i64 %record, $RECORD_RUNS
  %body = getelementptr i64, ptr %record, i64 $RECORD_BODY
  %past = mul i64 %wanted, $MADE_WORDS
  %program_rows = getelementptr i64, ptr %body, i64 %past
  %run = word ptr %block, $BLOCK_RUN
  br label %step
step:
  %r = phi i64 [ 0, %entry ], [ %r_next, %ran ]
  %step_row = phi ptr [ %program_rows, %entry ], [ %following, %ran ]
  %program = word ptr %step_row, 0
  %count = word i64 %step_row, 1
  br label %place
place:
  %p = phi i64 [ 0, %step ], [ %p_next, %placed ]
  %p_from = add i64 %p, 2
  %number = word i64 %step_row, %p_from
  %nowhere = icmp slt i64 %number, 0
  br i1 %nowhere, label %placed, label %somewhere
somewhere:
  %there = word ptr %places, %number
  br label %placed
placed:
  %address = phi ptr [ null, %place ], [ %there, %somewhere ]
  set ptr %address, %addresses, %p
  %p_next = add i64 %p, 1
  %p_more = icmp ult i64 %p_next, %count
  br i1 %p_more, label %place, label %call
call:
  %run_status = call i64 %run(ptr %program, ptr %addresses)
  %ran_fine = icmp eq i64 %run_status, 0
  br i1 %ran_fine, label %ran, label %failed
ran:
  %row_words = add i64 %count, 2
  %following = getelementptr i64, ptr %step_row, i64 %row_words
  %r_next = add i64 %r, 1
  %r_more = icmp ult i64 %r_next, %runs
  br i1 %r_more, label %step, label %done
done:
  call void @drop(ptr %block, ptr %made, i64 %outputs, i64 %wanted)
  ret i1 true
failed:
  call void @drop(ptr %block, ptr %made, i64 0, i64 %wanted)
  ret i1 false
}

; Delete tensors from one number up to another.
define internal void @drop(ptr %block, ptr %tensors, i64 %from, i64 %to) nounwind {
entry:
  %any = icmp ult i64 %from, %to
  br i1 %any, label %one, label %done
one:
  %i = phi i64 [ %from, %entry ], [ %next, %one ]
  %tensor = word ptr %tensors, %i
  %delete = word ptr %block, $BLOCK_DELETE_TENSOR
  %status = call i32 %delete(ptr %tensor)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %to
  br i1 %more, label %one, label %done
done:
  ret void
}

"""
"""What all handlers are made of: reading tensors, making them, running programs."""

SERVE = """
; Copy a list of integers or truth values to words; 0 if it has not as many as it should.
define internal i1 @unlist(ptr %block, ptr %list, i64 %wanted, ptr %words) nounwind {
entry:
  %size_at = alloca i64, align 8
  %list_size = word ptr %block, $BLOCK_LIST_SIZE
  %status = call i32 %list_size(ptr %list, ptr %size_at)
  %size = load i64, ptr %size_at, align 8
  %fits = icmp eq i64 %size, %wanted
  br i1 %fits, label %copy, label %no
copy:
  %i = phi i64 [ 0, %entry ], [ %next, %copy ]
  %to = getelementptr i64, ptr %words, i64 %i
  %list_item = word ptr %block, $BLOCK_LIST_ITEM
  %item_status = call i32 %list_item(ptr %list, i64 %i, ptr %to)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %wanted
  br i1 %more, label %copy, label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; Serve a call; returns whether it failed.
define internal i1 @serve(ptr %stack, i64 %operation) nounwind {
entry:
  %key = alloca [$KEY_WORDS x i64], align 16
  %places = alloca [$PLACES x ptr], align 16
  %made = alloca [$MOST_MADE x ptr], align 16
  %given = alloca [$GIVEN x ptr], align 16
  %flag = alloca i8, align 8
  %block = load ptr, ptr @where, align 8
  call void @clear(ptr %key)
  %one = word ptr %stack, 0
  %two = word ptr %stack, 1
  %three = word ptr %stack, 2
  %is_operator = icmp eq i64 %operation, 0
  %is_layer = icmp eq i64 %operation, $IS_LAYER
  %is_forward = or i1 %is_operator, %is_layer
  %backward_word = zext i1 %is_forward to i64
  %kind = sub i64 1, %backward_word
  set i64 %kind, %key, $KEY_OPERATION
  %settings = word i64 %block, $BLOCK_SETTINGS
  set i64 %settings, %key, $KEY_SETTINGS
  %third_key = getelementptr i64, ptr %key, i64 $KEY_THIRD
  br i1 %is_forward, label %forward, label %backward
forward:
  %no_bias = icmp eq ptr %three, null
  br i1 %no_bias, label %plain, label %optional
plain:
  store i64 $ABSENT, ptr %third_key, align 8
  br label %tensors
optional:
  ; An optional tensor is a pointer to its handle, and the tensor may be undefined all the same.
  %bias = load ptr, ptr %three, align 8
  %is_defined = word ptr %block, $BLOCK_IS_DEFINED
  store i8 0, ptr %flag, align 8
  %defined_status = call i32 %is_defined(ptr %bias, ptr %flag)
  %defined = load i8, ptr %flag, align 8
  %is_bias = icmp ne i8 %defined, 0
  br i1 %is_bias, label %biased, label %plain
biased:
  %bias_fine = call i1 @describe(ptr %block, ptr %bias, i64 1, ptr %third_key)
  br i1 %bias_fine, label %tensors, label %decline
backward:
  %grad_fine = call i1 @describe(ptr %block, ptr %one, i64 4, ptr %third_key)
  br i1 %grad_fine, label %tensors, label %decline
tensors:
  %third = phi ptr [ null, %plain ], [ %bias, %biased ], [ %one, %backward ]
  %input = select i1 %is_forward, ptr %one, ptr %two
  %weight = select i1 %is_forward, ptr %two, ptr %three
  set ptr %input, %given, 0
  set ptr %weight, %given, 1
  set ptr %third, %given, 2
  %input_key = getelementptr i64, ptr %key, i64 $KEY_INPUT
  %input_fine = call i1 @describe(ptr %block, ptr %input, i64 4, ptr %input_key)
  br i1 %input_fine, label %weights, label %decline
weights:
  %weight_key = getelementptr i64, ptr %key, i64 $KEY_WEIGHT
  %weight_fine = call i1 @describe(ptr %block, ptr %weight, i64 4, ptr %weight_key)
  br i1 %weight_fine, label %lists, label %decline

lists:
  ; aten::convolution_backward has the sizes of the bias before the settings.
  %is_aten = icmp eq i64 %operation, 2
  %more_arguments = zext i1 %is_aten to i64
  %at_stride = add i64 %more_arguments, 3
  %at_padding = add i64 %more_arguments, 4
  %at_dilation = add i64 %more_arguments, 5
  %at_transposed = add i64 %more_arguments, 6
  %at_output_padding = add i64 %more_arguments, 7
  %at_groups = add i64 %more_arguments, 8
  %at_mask = add i64 %more_arguments, 9
  %stride_key = getelementptr i64, ptr %key, i64 $KEY_STRIDE
  br i1 %is_layer, label %numbered, label %listed
numbered:
  %row = word i64 %stack, 3
  %rows = word i64 %block, $BLOCK_LAYER_COUNT
  %row_known = icmp ult i64 %row, %rows
  br i1 %row_known, label %settle, label %decline
settle:
  %layers = word ptr %block, $BLOCK_LAYERS
  %row_skip = mul i64 %row, $LAYER_WORDS
  %row_at = getelementptr i64, ptr %layers, i64 %row_skip
  br label %setting
setting:
  %s = phi i64 [ 0, %settle ], [ %s_next, %setting ]
  %s_word = word i64 %row_at, %s
  set i64 %s_word, %stride_key, %s
  %s_next = add i64 %s, 1
  %s_more = icmp ult i64 %s_next, $LAYER_WORDS
  br i1 %s_more, label %setting, label %hash
listed:
  %stride_list = word ptr %stack, %at_stride
  %padding_list = word ptr %stack, %at_padding
  %dilation_list = word ptr %stack, %at_dilation
  %transposed_word = word i64 %stack, %at_transposed
  %output_padding_list = word ptr %stack, %at_output_padding
  %groups = word i64 %stack, %at_groups
  %transposed = and i64 %transposed_word, 1
  set i64 %transposed, %key, $KEY_TRANSPOSED
  set i64 %groups, %key, $KEY_GROUPS
  %stride_fine = call i1 @unlist(ptr %block, ptr %stride_list, i64 2, ptr %stride_key)
  br i1 %stride_fine, label %paddings, label %decline
paddings:
  %padding_key = getelementptr i64, ptr %key, i64 $KEY_PADDING
  %padding_fine = call i1 @unlist(ptr %block, ptr %padding_list, i64 2, ptr %padding_key)
  br i1 %padding_fine, label %dilations, label %decline
dilations:
  %dilation_key = getelementptr i64, ptr %key, i64 $KEY_DILATION
  %dilation_fine = call i1 @unlist(ptr %block, ptr %dilation_list, i64 2, ptr %dilation_key)
  br i1 %dilation_fine, label %output_paddings, label %decline
output_paddings:
  %op_key = getelementptr i64, ptr %key, i64 $KEY_OUTPUT_PADDING
  %op_fine = call i1 @unlist(ptr %block, ptr %output_padding_list, i64 2, ptr %op_key)
  br i1 %op_fine, label %masked, label %decline
masked:
  br i1 %is_forward, label %hash, label %mask
mask:
  %mask_list = word ptr %stack, %at_mask
  %mask_key = getelementptr i64, ptr %key, i64 $KEY_MASK
  %mask_fine = call i1 @unlist(ptr %block, ptr %mask_list, i64 3, ptr %mask_key)
  br i1 %mask_fine, label %mask_bits, label %decline
mask_bits:
  ; A truth value fills one byte of its word.
  %m = phi i64 [ 0, %mask ], [ %m_next, %mask_bits ]
  %mask_word = word i64 %mask_key, %m
  %mask_bit = and i64 %mask_word, 1
  set i64 %mask_bit, %mask_key, %m
  %m_next = add i64 %m, 1
  %m_more = icmp ult i64 %m_next, 3
  br i1 %m_more, label %mask_bits, label %hash

hash:
  %h = call i64 @hash(ptr %key)
  %buckets = word ptr %block, $BLOCK_BUCKETS
  %known = call ptr @find(ptr %buckets, ptr %key, i64 %h)
  %unknown = icmp eq ptr %known, null
  br i1 %unknown, label %ask, label %have
ask:
  %miss = word ptr %block, $BLOCK_MISS
  %learnt = call ptr %miss(ptr %key, i64 %h)
  %nothing_learnt = icmp eq ptr %learnt, null
  br i1 %nothing_learnt, label %decline, label %have
have:
  %record = phi ptr [ %known, %hash ], [ %learnt, %ask ]
  %runs = word i64 %record, $RECORD_RUNS
  %declined = icmp eq i64 %runs, 0
  br i1 %declined, label %decline, label %address
address:
  %a = phi i64 [ 0, %have ], [ %a_next, %addressed ]
  %a_tensor = word ptr %given, %a
  %a_absent = icmp eq ptr %a_tensor, null
  br i1 %a_absent, label %addressed, label %ask_address
ask_address:
  %a_to = getelementptr ptr, ptr %places, i64 %a
  %read_at = word ptr %block, $BLOCK_READ_AT
  %a_status = call i32 %read_at(ptr %a_tensor, ptr %a_to)
  %a_address = load i64, ptr %a_to, align 8
  %alignment = word i64 %record, $RECORD_ALIGNMENT
  %a_low = and i64 %a_address, %alignment
  %a_crooked = icmp ne i64 %a_low, 0
  ; Records are of tensors with elements: one without an address has been robbed of its memory.
  %a_failed = icmp ne i32 %a_status, 0
  %a_null = icmp eq i64 %a_address, 0
  %a_nowhere = or i1 %a_failed, %a_null
  %a_unusable = or i1 %a_crooked, %a_nowhere
  br i1 %a_unusable, label %decline, label %addressed
addressed:
  %a_next = add i64 %a, 1
  %a_more = icmp ult i64 %a_next, $GIVEN
  br i1 %a_more, label %address, label %compute
compute:
  %room = call i1 @make(ptr %block, ptr %record, ptr %places, ptr %made)
  br i1 %room, label %run, label %decline
run:
  %computed = call i1 @run_all(ptr %block, ptr %record, ptr %places, ptr %made)
  br i1 %computed, label %finish, label %decline

finish:
  ; The handles of arguments are ours to delete; results go where the arguments were.
  %delete_list = word ptr %block, $BLOCK_DELETE_LIST
  %delete_value = word ptr %block, $BLOCK_DELETE_VALUE
  br i1 %is_layer, label %drop_bias, label %delete_lists
delete_lists:
  %old_stride = word ptr %stack, %at_stride
  %d1 = call i32 %delete_list(ptr %old_stride)
  %old_padding = word ptr %stack, %at_padding
  %d2 = call i32 %delete_list(ptr %old_padding)
  %old_dilation = word ptr %stack, %at_dilation
  %d3 = call i32 %delete_list(ptr %old_dilation)
  %old_output_padding = word ptr %stack, %at_output_padding
  %d4 = call i32 %delete_list(ptr %old_output_padding)
  br i1 %is_forward, label %drop_bias, label %drop_lists
drop_bias:
  %was_plain = icmp eq ptr %three, null
  call void @drop(ptr %block, ptr %given, i64 0, i64 2)
  br i1 %was_plain, label %results, label %drop_optional
drop_optional:
  call void @drop(ptr %block, ptr %three, i64 0, i64 1)
  %d5 = call i32 %delete_value(ptr %three)
  br label %results
drop_lists:
  %mask_again = word ptr %stack, %at_mask
  %d6 = call i32 %delete_list(ptr %mask_again)
  call void @drop(ptr %block, ptr %given, i64 0, i64 3)
  br i1 %is_aten, label %drop_sizes, label %results
drop_sizes:
  %sizes_value = word ptr %stack, 3
  %no_sizes = icmp eq ptr %sizes_value, null
  br i1 %no_sizes, label %results, label %drop_size_list
drop_size_list:
  %size_list = load ptr, ptr %sizes_value, align 8
  %d7 = call i32 %delete_list(ptr %size_list)
  %d8 = call i32 %delete_value(ptr %sizes_value)
  br label %results
results:
  %outputs = word i64 %record, $RECORD_OUTPUTS
  br label %result
result:
  %o = phi i64 [ 0, %results ], [ %o_next, %result ]
  %o_tensor = word ptr %made, %o
  set ptr %o_tensor, %stack, %o
  %o_next = add i64 %o, 1
  %o_more = icmp ult i64 %o_next, %outputs
  br i1 %o_more, label %result, label %served
served:
  ret i1 false

decline:
  ; The operator takes the arguments over, and leaves its results in their place.
  %name_number = add i64 %operation, $BLOCK_DECLINED_FORWARD
  %name = word ptr %block, %name_number
  %overload = word ptr %block, $BLOCK_NOTHING
  %version = word i64 %block, $BLOCK_VERSION
  %dispatch = word ptr %block, $BLOCK_DISPATCH
  %dispatched = call i32 %dispatch(ptr %name, ptr %overload, ptr %stack, i64 %version)
  %failed = icmp ne i32 %dispatched, 0
  ret i1 %failed
}

define internal ptr @said() noinline nounwind {
  %block = load ptr, ptr @where, align 8
  %what = word ptr %block, $BLOCK_WHAT
  %message = call ptr %what()
  ret ptr %message
}
"""

HANDLER = """
define dso_local void @$NAME(ptr %stack, i64 %arguments, i64 %outputs) {
entry:
  %block_here = load ptr, ptr @where, align 8
  %at_work = getelementptr i64, ptr %block_here, i64 $BLOCK_AT_WORK
  %came = atomicrmw add ptr %at_work, i64 1 seq_cst, align 8
  %failed = call i1 @serve(ptr %stack, i64 $OPERATION)
  %went = atomicrmw sub ptr %at_work, i64 1 seq_cst, align 8
  br i1 %failed, label %raise, label %done
done:
  ret void
raise:
  %message = call ptr @said()
  %block = load ptr, ptr @where, align 8
  %nothing = word ptr %block, $BLOCK_NOTHING
  %check = word ptr %block, $BLOCK_CHECK
  tail call void %check(i1 zeroext false, ptr %nothing, ptr %nothing, i32 0, ptr %message)
  ret void
}
"""
