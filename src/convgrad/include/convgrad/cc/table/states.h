// Variables, which keep their value from run to run, and what changes them.
#ifndef CONVGRAD_CC_TABLE_STATES_H_
#define CONVGRAD_CC_TABLE_STATES_H_

#include <cstdint>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

inline Status InferVariable(InferenceContext* c) { return InferAttribute(c); }

inline Status InferAssign(InferenceContext* c) {
  const MaybeSizes ref = SizesOf(c->input(0).shape), value = SizesOf(c->input(1).shape);
  const DataType dtype = c->input(0).dtype;
  if (!c->attrs().Bool("validate_shape")) return Result(c, dtype, value);
  MaybeSizes merged;
  TF_RETURN_IF_ERROR(Merge(ref, value, &merged));
  return Result(c, dtype, merged);
}

inline Status ComputeAssign(KernelContext* c) {
  const Tensor& value = c->input(1);
  const MaybeSizes wanted = SizesOf(c->input_spec(0).shape);
  MaybeSizes merged;
  if (c->attrs().Bool("validate_shape") && !Merge(wanted, SizesOf(value), &merged).ok()) {
    return errors::InvalidArgument("Assign requires shapes of both tensors to match. lhs shape= ",
                                   Text(wanted), " rhs shape= ", Text(SizesOf(value)));
  }
  c->set_output(0, value);
  return Status();
}

inline Status InferApplyGradientDescent(InferenceContext* c) {
  TF_RETURN_IF_ERROR(IsScalar(c, 1));
  MaybeSizes merged;
  TF_RETURN_IF_ERROR(
      Merge(SizesOf(c->input(0).shape), SizesOf(c->input(2).shape), &merged));
  return Result(c, c->input(0).dtype, merged);
}

inline Status ComputeApplyGradientDescent(KernelContext* c) {
  const Tensor &var = c->input(0), &alpha = c->input(1), &delta = c->input(2);
  if (alpha.dims() != 0) {
    return errors::InvalidArgument("alpha is not a scalar: ", Text(SizesOf(alpha)));
  }
  if (SizesOf(var) != SizesOf(delta)) {
    return errors::InvalidArgument("var and delta do not have the same shape", Text(SizesOf(var)),
                                   " ", Text(SizesOf(delta)));
  }
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_over({2, 0}, 0, var.dtype(), var.shape(), &out));
  return ForFloats(var.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using W = WorkingType<T>;
    const W rate = static_cast<W>(Data<T>(alpha)[0]);
    for (std::int64_t i = 0; i < var.NumElements(); ++i) {
      const T change = static_cast<T>(static_cast<W>(Data<T>(delta)[i]) * rate);
      MutableData<T>(out)[i] =
          static_cast<T>(static_cast<W>(Data<T>(var)[i]) - static_cast<W>(change));
    }
    return Status();
  });
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_STATES_H_
