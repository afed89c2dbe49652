"""The handlers of `fused_handler` as LLVM IR text, in the manner of `handler_text`."""

from __future__ import annotations

SERVE = """
; Write what matters of a tensor of one or four dimensions to words that are zero; 0 if it is none.
define internal i1 @describe_any(ptr %block, ptr %tensor, ptr %words) nounwind {
entry:
  %dim_at = alloca i64, align 8
  %get_dim = word ptr %block, $BLOCK_GET_DIM
  %status = call i32 %get_dim(ptr %tensor, ptr %dim_at)
  %dim = load i64, ptr %dim_at, align 8
  %fine = icmp eq i32 %status, 0
  %is_vector = icmp eq i64 %dim, 1
  %is_image = icmp eq i64 %dim, 4
  %either = or i1 %is_vector, %is_image
  %usable = and i1 %fine, %either
  br i1 %usable, label %read, label %no
read:
  %described = call i1 @describe(ptr %block, ptr %tensor, i64 %dim, ptr %words)
  %dtype = load i64, ptr %words, align 8
  %more = mul i64 %dim, $DIMENSION
  %both = add i64 %dtype, %more
  store i64 %both, ptr %words, align 8
  ret i1 %described
no:
  ret i1 false
}

; Delete the arguments: a tensor that may be absent is null or a pointer to its handle.
define internal void @clear_stack(ptr %block, ptr %stack) nounwind {
entry:
  %delete_value = word ptr %block, $BLOCK_DELETE_VALUE
  br label %one
one:
  %i = phi i64 [ 0, %entry ], [ %next, %gone ]
  %value = word ptr %stack, %i
  %absent = icmp eq ptr %value, null
  br i1 %absent, label %gone, label %delete
delete:
  call void @drop(ptr %block, ptr %value, i64 0, i64 1)
  %status = call i32 %delete_value(ptr %value)
  br label %gone
gone:
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, $GIVEN
  br i1 %more, label %one, label %done
done:
  ret void
}

; Serve a call that returns so many tensors, all undefined if it has no record or there is no memory.
define internal void @serve(ptr %stack, i64 %outputs, i64 %operation) nounwind {
entry:
  %key = alloca [$KEY_WORDS x i64], align 16
  %places = alloca [$PLACES x ptr], align 16
  %made = alloca [$MOST_MADE x ptr], align 16
  %given = alloca [$GIVEN x ptr], align 16
  %scalars = alloca [$SCALARS x i64], align 16
  %flag = alloca i8, align 8
  %block = load ptr, ptr @where, align 8
  call void @clear(ptr %key)
  set i64 %operation, %key, $KEY_OPERATION
  %settings = word i64 %stack, $ARGUMENT_SETTINGS
  set i64 %settings, %key, $KEY_SETTINGS
  %row = word i64 %stack, $ARGUMENT_ROW
  set i64 %row, %key, $KEY_ROW
  %wanted = word i64 %stack, $ARGUMENT_WANTED
  set i64 %wanted, %key, $KEY_WANTED
  %tensors_key = getelementptr i64, ptr %key, i64 $KEY_TENSORS
  %is_defined = word ptr %block, $BLOCK_IS_DEFINED
  br label %tensor

tensor:
  %t = phi i64 [ 0, %entry ], [ %t_next, %described ]
  %t_skip = mul i64 %t, $TENSOR_WORDS
  %t_words = getelementptr i64, ptr %tensors_key, i64 %t_skip
  %t_value = word ptr %stack, %t
  %t_none = icmp eq ptr %t_value, null
  br i1 %t_none, label %absent, label %present
present:
  %t_handle = load ptr, ptr %t_value, align 8
  store i8 0, ptr %flag, align 8
  %defined_status = call i32 %is_defined(ptr %t_handle, ptr %flag)
  %defined = load i8, ptr %flag, align 8
  %is_there = icmp ne i8 %defined, 0
  br i1 %is_there, label %there, label %absent
there:
  set ptr %t_handle, %given, %t
  %t_fine = call i1 @describe_any(ptr %block, ptr %t_handle, ptr %t_words)
  br i1 %t_fine, label %described, label %unserved
absent:
  set ptr null, %given, %t
  store i64 $ABSENT, ptr %t_words, align 8
  br label %described
described:
  %t_next = add i64 %t, 1
  %t_more = icmp ult i64 %t_next, $GIVEN
  br i1 %t_more, label %tensor, label %look

look:
  %h = call i64 @hash(ptr %key)
  %buckets = word ptr %block, $BLOCK_FUSED_BUCKETS
  %known = call ptr @find(ptr %buckets, ptr %key, i64 %h)
  %unknown = icmp eq ptr %known, null
  br i1 %unknown, label %ask, label %have
ask:
  %miss = word ptr %block, $BLOCK_FUSED_MISS
  %learnt = call ptr %miss(ptr %key, i64 %h)
  %nothing_learnt = icmp eq ptr %learnt, null
  br i1 %nothing_learnt, label %unserved, label %have
have:
  %record = phi ptr [ %known, %look ], [ %learnt, %ask ]
  %runs = word i64 %record, $RECORD_RUNS
  %nothing = icmp eq i64 %runs, 0
  br i1 %nothing, label %unserved, label %address

address:
  %a = phi i64 [ 0, %have ], [ %a_next, %addressed ]
  %a_to = getelementptr ptr, ptr %places, i64 %a
  %a_tensor = word ptr %given, %a
  %a_absent = icmp eq ptr %a_tensor, null
  br i1 %a_absent, label %nowhere, label %somewhere
nowhere:
  store ptr null, ptr %a_to, align 8
  br label %addressed
somewhere:
  ; A tensor that is written to may share its memory until then.
  %written = icmp uge i64 %a, $WRITTEN
  %read_at = word ptr %block, $BLOCK_READ_AT
  %write_at = word ptr %block, $BLOCK_WRITE_AT
  %ask_at = select i1 %written, ptr %write_at, ptr %read_at
  %a_status = call i32 %ask_at(ptr %a_tensor, ptr %a_to)
  %a_address = load i64, ptr %a_to, align 8
  %alignment = word i64 %record, $RECORD_ALIGNMENT
  %a_low = and i64 %a_address, %alignment
  %a_crooked = icmp ne i64 %a_low, 0
  ; Records are of tensors with elements: one without an address has been robbed of its memory.
  %a_failed = icmp ne i32 %a_status, 0
  %a_null = icmp eq i64 %a_address, 0
  %a_nowhere = or i1 %a_failed, %a_null
  %a_unusable = or i1 %a_crooked, %a_nowhere
  br i1 %a_unusable, label %unserved, label %addressed
addressed:
  %a_next = add i64 %a, 1
  %a_more = icmp ult i64 %a_next, $GIVEN
  br i1 %a_more, label %address, label %make
make:
  %room = call i1 @make(ptr %block, ptr %record, ptr %places, ptr %made)
  br i1 %room, label %number, label %unserved

number:
  %n = phi i64 [ 0, %make ], [ %n_next, %number ]
  %n_from = add i64 %n, $RECORD_SCALARS
  %n_word = word i64 %record, %n_from
  set i64 %n_word, %scalars, %n
  %n_next = add i64 %n, 1
  %n_more = icmp ult i64 %n_next, $SCALARS
  br i1 %n_more, label %number, label %numbered
numbered:
  %momentum = word i64 %stack, $ARGUMENT_MOMENTUM
  set i64 %momentum, %scalars, $MOMENTUM
  set ptr %scalars, %places, $SCALARS_PLACE
  br label %run
run:
  %computed = call i1 @run_all(ptr %block, ptr %record, ptr %places, ptr %made)
  br i1 %computed, label %finish, label %unserved

finish:
  call void @clear_stack(ptr %block, ptr %stack)
  br label %result
result:
  %o = phi i64 [ 0, %finish ], [ %o_next, %result ]
  %o_tensor = word ptr %made, %o
  set ptr %o_tensor, %stack, %o
  %o_next = add i64 %o, 1
  %o_more = icmp ult i64 %o_next, %outputs
  br i1 %o_more, label %result, label %done

unserved:
  call void @clear_stack(ptr %block, ptr %stack)
  %new_undefined = word ptr %block, $BLOCK_UNDEFINED
  br label %nothing_made
nothing_made:
  %u = phi i64 [ 0, %unserved ], [ %u_next, %nothing_made ]
  %u_to = getelementptr ptr, ptr %stack, i64 %u
  %u_status = call i32 %new_undefined(ptr %u_to)
  %u_next = add i64 %u, 1
  %u_more = icmp ult i64 %u_next, %outputs
  br i1 %u_more, label %nothing_made, label %done
done:
  ret void
}
"""

HANDLER = """
define dso_local void @$NAME(ptr %stack, i64 %arguments, i64 %outputs) nounwind {
entry:
  %block = load ptr, ptr @where, align 8
  %at_work = getelementptr i64, ptr %block, i64 $BLOCK_AT_WORK
  %came = atomicrmw add ptr %at_work, i64 1 seq_cst, align 8
  call void @serve(ptr %stack, i64 %outputs, i64 $OPERATION)
  %went = atomicrmw sub ptr %at_work, i64 1 seq_cst, align 8
  ret void
}
"""
