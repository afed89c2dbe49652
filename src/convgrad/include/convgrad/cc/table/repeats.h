// Tensors repeated to a shape and summed back to one, and rows of one-hot values.
#ifndef CONVGRAD_CC_TABLE_REPEATS_H_
#define CONVGRAD_CC_TABLE_REPEATS_H_

#include <cstdint>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

inline Status InferOneHot(InferenceContext* c) {
  for (int input = 1; input < 4; ++input) {
    if (c->input(input).shape.dims() > 0) {
      return errors::InvalidArgument("Input must be scalar but has rank ",
                                     c->input(input).shape.dims());
    }
  }
  const std::optional<std::int64_t> depth = Number(c->input(1));
  const std::int64_t axis = c->attrs().Int("axis");
  if (axis < -1) return errors::InvalidArgument("axis must be >= -1");
  if (depth && *depth < 0) {
    return errors::InvalidArgument(
        "Dimension size, given by scalar input 1, must be non-negative but is ", *depth);
  }
  const DataType dtype = c->input(2).dtype;
  MaybeSizes sizes = SizesOf(c->input(0).shape);
  if (!sizes) return Result(c, dtype, std::nullopt);
  const std::int64_t rank = static_cast<std::int64_t>(sizes->size());
  if (axis > rank) {
    return errors::InvalidArgument("Expected axis to be -1 or between [0, ", rank + 1,
                                   ").  But received: ", axis);
  }
  const std::int64_t at = axis == -1 ? rank : axis;
  sizes->insert(sizes->begin() + at, depth ? *depth : kUnknown);
  return Result(c, dtype, sizes);
}

inline Status ComputeOneHot(KernelContext* c) {
  static constexpr const char* kNames[] = {"indices", "depth", "on_value", "off_value"};
  for (int input = 1; input < 4; ++input) {
    if (c->input(input).dims() != 0) {
      return errors::InvalidArgument(kNames[input], " must be a scalar, but got: ",
                                     Text(SizesOf(c->input(input))));
    }
  }
  const Tensor& indices = c->input(0);
  const std::int64_t depth = Integers(c->input(1))[0];
  if (depth < 0) return errors::InvalidArgument("depth must be non-negative, got: ", depth);
  const std::int64_t axis = c->attrs().Int("axis");
  if (axis < -1 || axis > indices.dims()) {
    return errors::InvalidArgument("Expected axis to be -1 or between [0, ", indices.dims() + 1,
                                   ").  But received: ", axis);
  }
  const std::int64_t at = axis == -1 ? indices.dims() : axis;
  Sizes sizes = SizesOf(indices);
  std::int64_t behind = 1;  // indices that lie behind the new dimension
  for (std::size_t i = static_cast<std::size_t>(at); i < sizes.size(); ++i) behind *= sizes[i];
  sizes.insert(sizes.begin() + at, depth);
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape(sizes, &shape));
  const DataType dtype = c->input(2).dtype();
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, dtype, shape, &out));
  if (out->NumElements() == 0) return Status();
  const Sizes places = Integers(indices);
  return ForWidth(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T on = Data<T>(c->input(2))[0], off = Data<T>(c->input(3))[0];
    T* to = MutableData<T>(out);
    for (std::int64_t i = 0; i < out->NumElements(); ++i) to[i] = off;
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] < 0 || places[i] >= depth) continue;
      const std::int64_t number = static_cast<std::int64_t>(i);
      to[(number / behind * depth + places[i]) * behind + number % behind] = on;
    }
    return Status();
  });
}

// Whether sizes broadcast to the wanted ones, which must not grow.
inline bool Reaches(const Sizes& from, const Sizes& wanted) {
  if (from.size() > wanted.size()) return false;
  for (std::size_t back = 1; back <= from.size(); ++back) {
    const std::int64_t a = from[from.size() - back], b = wanted[wanted.size() - back];
    if (a >= 0 && b >= 0 && a != b && a != 1) return false;
  }
  return true;
}

// The first sizes that keep one shape from being repeated to another, in the words of TensorFlow's rule.
inline Status CheckReaches(const Sizes& from, const Sizes& wanted) {
  if (from.size() > wanted.size()) {
    return errors::InvalidArgument("Shape must be at most rank ", wanted.size(), " but is rank ",
                                   from.size());
  }
  for (std::size_t back = 1; back <= from.size(); ++back) {
    const std::int64_t a = from[from.size() - back], b = wanted[wanted.size() - back];
    if (a >= 0 && b >= 0 && a != b && a != 1) {
      return errors::InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
    }
  }
  return Status();
}

inline Status InferBroadcastTo(InferenceContext* c) {
  MaybeSizes wanted;
  TF_RETURN_IF_ERROR(ShapeVector(c, 1, &wanted));
  const MaybeSizes given = SizesOf(c->input(0).shape);
  if (given && wanted) TF_RETURN_IF_ERROR(CheckReaches(*given, *wanted));
  return Result(c, c->input(0).dtype, wanted);
}

inline Status ComputeBroadcastTo(KernelContext* c) {
  const Tensor& x = c->input(0);
  Sizes wanted;
  TensorShape shape;
  TF_RETURN_IF_ERROR(ShapeInput(c->input(1), &wanted));
  TF_RETURN_IF_ERROR(MakeShape(wanted, &shape));
  const Sizes given = SizesOf(x);
  if (given.size() > wanted.size()) {
    return errors::InvalidArgument("Rank of input (", given.size(),
                                   ") must be no greater than rank of output shape (",
                                   wanted.size(), ").");
  }
  Sizes both;
  if (!BroadcastSizes(given, wanted, &both).ok()) {
    return errors::InvalidArgument("Incompatible shapes: ", Text(given), " vs. ", Text(wanted));
  }
  if (!Reaches(given, wanted)) {
    return errors::InvalidArgument("Unable to broadcast tensor of shape ", Text(given),
                                   " to tensor of shape ", Text(wanted));
  }
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, x.dtype(), shape, &out));
  return Repeat(x, given, out);
}

inline Status GradBroadcastTo(const Scope& scope, const Operation& op,
                              const std::vector<Output>& grads, std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "SumToShape", {grads[0], ShapeOp(scope, op.input(0))}),
                            Output()});
}

inline Status InferSumToShape(InferenceContext* c) {
  MaybeSizes wanted;
  TF_RETURN_IF_ERROR(ShapeVector(c, 1, &wanted));
  const MaybeSizes given = SizesOf(c->input(0).shape);
  if (given && wanted) TF_RETURN_IF_ERROR(CheckReaches(*wanted, *given));
  return Result(c, c->input(0).dtype, wanted);
}

inline Status ComputeSumToShape(KernelContext* c) {
  const Tensor& x = c->input(0);
  Sizes wanted;
  TensorShape shape;
  TF_RETURN_IF_ERROR(ShapeInput(c->input(1), &wanted));
  TF_RETURN_IF_ERROR(MakeShape(wanted, &shape));
  const Sizes given = SizesOf(x);
  if (!Reaches(wanted, given)) {
    return errors::InvalidArgument("Incompatible shapes: ", Text(given), " vs. ", Text(wanted));
  }
  if (given == wanted) {
    c->set_output(0, x);
    return Status();
  }
  Sizes axes;
  const std::size_t extra = given.size() - wanted.size();
  for (std::size_t at = 0; at < given.size(); ++at) {
    if (at < extra || wanted[at - extra] == 1) axes.push_back(static_cast<std::int64_t>(at));
  }
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, x.dtype(), shape, &out));
  return SumInto(x, axes, out);
}

inline Status GradSumToShape(const Scope& scope, const Operation& op,
                             const std::vector<Output>& grads, std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "BroadcastTo", {grads[0], ShapeOp(scope, op.input(0))}),
                            Output()});
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_REPEATS_H_
