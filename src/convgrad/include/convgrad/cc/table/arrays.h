// Shapes and orders of elements.
#ifndef CONVGRAD_CC_TABLE_ARRAYS_H_
#define CONVGRAD_CC_TABLE_ARRAYS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

inline Status CheckSizesHeld(const Sizes& sizes, DataType out_type) {
  if (out_type != DT_INT32) return Status();
  for (const std::int64_t size : sizes) {
    if (size > std::numeric_limits<std::int32_t>::max()) {
      return errors::InvalidArgument("Shape output type is 32-bit but dim of shape ", Text(sizes),
                                     " is ", size);
    }
  }
  return Status();
}

inline Status InferShape(InferenceContext* c) {
  const DataType dtype = c->attrs().Type("out_type");
  if (!IsIndex(dtype)) {
    return errors::InvalidArgument("Value for attr 'out_type' of ", DataTypeString(dtype),
                                   " is not in the list of allowed values: int32, int64");
  }
  const MaybeSizes sizes = SizesOf(c->input(0).shape);
  if (!sizes) return Result(c, dtype, Sizes{kUnknown});
  TF_RETURN_IF_ERROR(CheckSizesHeld(*sizes, dtype));
  TF_RETURN_IF_ERROR(Result(c, dtype, Sizes{static_cast<std::int64_t>(sizes->size())}));
  if (static_cast<std::int64_t>(sizes->size()) <= kMostNumbers) {
    Sizes numbers = *sizes;
    std::replace(numbers.begin(), numbers.end(), kUnknown, kUnknownNumber);
    c->output(0).numbers = std::move(numbers);
  }
  return Status();
}

inline Status ComputeShape(KernelContext* c) {
  const DataType dtype = c->attrs().Type("out_type");
  const Sizes sizes = SizesOf(c->input(0));
  TF_RETURN_IF_ERROR(CheckSizesHeld(sizes, dtype));
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape({static_cast<std::int64_t>(sizes.size())}, &shape));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, dtype, shape, &out));
  for (std::size_t at = 0; at < sizes.size(); ++at) {
    if (dtype == DT_INT32) {
      MutableData<std::int32_t>(out)[at] = static_cast<std::int32_t>(sizes[at]);
    } else {
      MutableData<std::int64_t>(out)[at] = sizes[at];
    }
  }
  return Status();
}

// The shape a reshape gives: at most one -1, as many elements as before. `count` is -1 if it is unknown.
inline Status FilledSizes(std::int64_t count, const Sizes& wanted, Sizes* found) {
  std::int64_t hole = -1;
  bool unknown = false, empty = false;
  Sizes rest;
  *found = wanted;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    const std::int64_t size = wanted[at];
    const std::int64_t place = static_cast<std::int64_t>(at);
    if (size == kUnknownNumber) {
      unknown = true;
      (*found)[at] = kUnknown;
    } else if (size == -1) {
      if (hole >= 0) {
        return errors::InvalidArgument("Only one input size may be -1, not both ", hole, " and ",
                                       place);
      }
      hole = place;
      (*found)[at] = kUnknown;
    } else if (size < 0) {
      return errors::InvalidArgument("Size ", place, " must be non-negative, not ", size);
    } else {
      empty = empty || size == 0;
      rest.push_back(size);
    }
  }
  if (empty) rest = {0};
  const std::optional<std::int64_t> product = Product(rest);
  if (!product) {
    return errors::InvalidArgument("Shape ", Text(*found), " has too many elements");
  }
  if (count < 0 || (unknown && !empty)) return Status();
  if (hole < 0) {
    if (*product == count) return Status();
    return errors::InvalidArgument("Cannot reshape a tensor with ", count, " elements to shape ",
                                   Text(*found), " (", *product, " elements)");
  }
  if (*product == 0 && count == 0) {
    return errors::InvalidArgument(
        "reshape cannot infer the missing input size for an empty tensor unless all specified "
        "input sizes are non-zero");
  }
  if (*product == 0) {
    return errors::InvalidArgument("Cannot reshape a tensor with ", count, " elements to shape ",
                                   Text(*found), " (0 elements)");
  }
  if (count % *product != 0) {
    return errors::InvalidArgument("Dimension size must be evenly divisible by ", *product,
                                   " but is ", count);
  }
  (*found)[static_cast<std::size_t>(hole)] = count / *product;
  return Status();
}

inline Status InferReshape(InferenceContext* c) {
  const Spec& tensor = c->input(0);
  MaybeSizes wanted;
  TF_RETURN_IF_ERROR(Vector(c, 1, &wanted));
  if (!wanted) return Result(c, tensor.dtype, std::nullopt);
  const MaybeSizes before = SizesOf(tensor.shape);
  Sizes sizes;
  TF_RETURN_IF_ERROR(FilledSizes(before ? CountOf(*before) : kUnknown, *wanted, &sizes));
  TF_RETURN_IF_ERROR(Result(c, tensor.dtype, sizes));
  if (sizes.size() == 1 && tensor.shape.dims() == 1) c->output(0).numbers = tensor.numbers;
  return Status();
}

inline Status ComputeReshape(KernelContext* c) {
  const Tensor& tensor = c->input(0);
  const Tensor& shape_input = c->input(1);
  if (shape_input.dims() != 1) {
    return errors::InvalidArgument("sizes input must be 1-D, not ", Text(SizesOf(shape_input)));
  }
  Sizes wanted, sizes;
  TF_RETURN_IF_ERROR(ShapeInput(shape_input, &wanted));
  for (std::size_t at = 0; at < wanted.size(); ++at) {  // to a rule this is a size nobody knows
    if (wanted[at] == kUnknownNumber) {
      return errors::InvalidArgument("Size ", at, " must be non-negative, not ", wanted[at]);
    }
  }
  const Status status = FilledSizes(tensor.NumElements(), wanted, &sizes);
  if (!status.ok()) {  // TensorFlow's kernel has other words than its rule
    const std::int64_t rest = [&] {
      Sizes known = wanted;
      known.erase(std::remove(known.begin(), known.end(), -1), known.end());
      return std::all_of(known.begin(), known.end(), [](std::int64_t s) { return s >= 0; })
                 ? CountOf(known)
                 : kUnknown;
    }();
    const auto holes = std::count(wanted.begin(), wanted.end(), -1);
    if (rest < 0 || holes > 1 || (rest == 0 && tensor.NumElements() == 0)) return status;
    return errors::InvalidArgument("Input to reshape is a tensor with ", tensor.NumElements(),
                                   " values, but the requested shape ",
                                   holes == 1 && rest != 0 ? "requires a multiple of " : "has ",
                                   rest);
  }
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape(sizes, &shape));
  Tensor result;
  if (!result.CopyFrom(tensor, shape)) {
    return errors::Internal("Reshape cannot share the memory of its input");
  }
  c->set_output(0, result);
  return Status();
}

inline Status GradReshape(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                          std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "Reshape", {grads[0], ShapeOp(scope, op.input(0))}),
                            Output()});
}

// Whether each of 0 to n - 1 is there once.
inline Status CheckPermutation(const Sizes& order) {
  const std::int64_t rank = static_cast<std::int64_t>(order.size());
  std::vector<bool> seen(order.size(), false);
  for (const std::int64_t axis : order) {
    if (axis < 0 || axis >= rank) {
      return errors::InvalidArgument(axis, " is out of range [0 .. ", rank, ")");
    }
    seen[static_cast<std::size_t>(axis)] = true;
  }
  for (std::size_t at = 0; at < seen.size(); ++at) {
    if (seen[at]) continue;
    std::string text;
    for (const std::int64_t axis : order) text += (text.empty() ? "" : ",") + std::to_string(axis);
    return errors::InvalidArgument(at, " is missing from {", text, "}.");
  }
  return Status();
}

inline bool AllKnown(const Sizes& numbers) {
  return std::find(numbers.begin(), numbers.end(), kUnknownNumber) == numbers.end();
}

inline Status InferTranspose(InferenceContext* c) {
  const DataType dtype = c->input(0).dtype;
  const MaybeSizes x = SizesOf(c->input(0).shape);
  MaybeSizes perm;
  TF_RETURN_IF_ERROR(Vector(c, 1, &perm));
  if (!perm) return Result(c, dtype, x ? MaybeSizes(Sizes(x->size(), kUnknown)) : std::nullopt);
  if (x && perm->size() != x->size()) {
    return errors::InvalidArgument("Dimension must be ", x->size(), " but is ", perm->size());
  }
  if (!AllKnown(*perm)) return Result(c, dtype, Sizes(perm->size(), kUnknown));
  for (const std::int64_t axis : *perm) {
    if (axis < 0 || axis >= static_cast<std::int64_t>(perm->size())) {
      return errors::InvalidArgument("perm dim ", axis, " is out of range of input rank ",
                                     perm->size());
    }
  }
  TF_RETURN_IF_ERROR(CheckPermutation(*perm));
  if (!x) return Result(c, dtype, std::nullopt);
  Sizes sizes;
  for (const std::int64_t axis : *perm) sizes.push_back((*x)[static_cast<std::size_t>(axis)]);
  return Result(c, dtype, sizes);
}

inline Status ComputeTranspose(KernelContext* c) {
  const Tensor& x = c->input(0);
  const Tensor& perm_input = c->input(1);
  if (perm_input.dims() != 1) {
    return errors::InvalidArgument("perm must be rank 1, got shape ", Text(SizesOf(perm_input)));
  }
  if (perm_input.NumElements() != x.dims()) {
    return errors::InvalidArgument("transpose expects a vector of size ", x.dims(),
                                   ". But input(1) is a vector of size ",
                                   perm_input.NumElements());
  }
  Sizes perm = Integers(perm_input);
  for (std::int64_t& axis : perm) {  // counted from the back
    if (axis < 0 && axis >= -x.dims()) axis += x.dims();
  }
  TF_RETURN_IF_ERROR(CheckPermutation(perm));
  const Sizes from = SizesOf(x);
  Sizes steps(from.size(), 1), sizes;
  for (std::size_t at = from.size(); at-- > 1;) steps[at - 1] = steps[at] * from[at];
  std::vector<WalkAxis> axes;  // of the output, the last first
  for (const std::int64_t axis : perm) {
    const std::size_t at = static_cast<std::size_t>(axis);
    sizes.push_back(from[at]);
    axes.insert(axes.begin(), WalkAxis{from[at], steps[at], 0});
  }
  if (axes.empty()) axes.push_back({1, 1, 0});
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape(sizes, &shape));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, x.dtype(), shape, &out));
  return ForWidth(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const T* data = Data<T>(x);
    T* to = MutableData<T>(out);
    Walk(axes, [&](std::int64_t at, std::int64_t, std::int64_t out_at) {
      for (std::int64_t i = 0; i < axes[0].size; ++i) {
        to[out_at + i] = data[at + i * axes[0].x_step];
      }
    });
    return Status();
  });
}

inline Status GradTranspose(const Scope& scope, const Operation& op,
                            const std::vector<Output>& grads, std::vector<Output>* out) {
  const Output back = AddOp(scope, "InvertPermutation", {op.input(1)});
  return Grads(scope, out, {AddOp(scope, "Transpose", {grads[0], back}), Output()});
}

inline Sizes Inverted(const Sizes& order) {
  Sizes found(order.size());
  for (std::size_t at = 0; at < order.size(); ++at) {
    found[static_cast<std::size_t>(order[at])] = static_cast<std::int64_t>(at);
  }
  return found;
}

// As CheckPermutation, in the words of InvertPermutation.
inline Status CheckInvertible(const Sizes& order) {
  const std::int64_t count = static_cast<std::int64_t>(order.size());
  std::vector<bool> seen(order.size(), false);
  for (const std::int64_t axis : order) {
    if (axis < 0 || axis >= count) {
      return errors::InvalidArgument(axis, " is not between 0 and ", count);
    }
    if (seen[static_cast<std::size_t>(axis)]) {
      return errors::InvalidArgument(axis, " is duplicated in the input.");
    }
    seen[static_cast<std::size_t>(axis)] = true;
  }
  return Status();
}

inline Status InferInvertPermutation(InferenceContext* c) {
  Sizes one;
  TF_RETURN_IF_ERROR(InferSame(c));
  if (!SizesOf(c->input(0).shape)) return Status();
  TF_RETURN_IF_ERROR(OfRank(c, 0, 1, &one));
  const std::optional<Sizes>& numbers = c->input(0).numbers;
  if (!numbers || !AllKnown(*numbers)) return Status();
  TF_RETURN_IF_ERROR(CheckInvertible(*numbers));
  c->output(0).numbers = Inverted(*numbers);
  return Status();
}

inline Status ComputeInvertPermutation(KernelContext* c) {
  const Tensor& x = c->input(0);
  if (x.dims() != 1) return errors::InvalidArgument("invert_permutation expects a 1D vector.");
  const Sizes order = Integers(x);
  TF_RETURN_IF_ERROR(CheckInvertible(order));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, x.dtype(), x.shape(), &out));
  const Sizes found = Inverted(order);
  for (std::size_t at = 0; at < found.size(); ++at) {
    if (x.dtype() == DT_INT32) {
      MutableData<std::int32_t>(out)[at] = static_cast<std::int32_t>(found[at]);
    } else {
      MutableData<std::int64_t>(out)[at] = found[at];
    }
  }
  return Status();
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_ARRAYS_H_
