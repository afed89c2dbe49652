// Shape rules, checks and gradients that several rows share.
//
// Rules work on vectors of sizes, -1 where one is unknown. All arithmetic on sizes is checked: they come from callers.
#ifndef CONVGRAD_CC_TABLE_RULES_H_
#define CONVGRAD_CC_TABLE_RULES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "convgrad/cc/graph.h"
#include "convgrad/cc/op_row.h"
#include "convgrad/cc/scope.h"
#include "convgrad/cc/status.h"
#include "convgrad/cc/tensor.h"
#include "convgrad/cc/tensor_shape.h"
#include "convgrad/cc/types.h"

namespace convgrad {
namespace detail {
namespace table {

using Sizes = std::vector<std::int64_t>;
using MaybeSizes = std::optional<Sizes>;  // nothing: even the rank is unknown

constexpr std::int64_t kMostDims = 254;  // as TensorFlow has it

inline bool IsIndex(DataType dtype) { return dtype == DT_INT32 || dtype == DT_INT64; }
inline bool IsFloat(DataType dtype) {
  return dtype == DT_HALF || dtype == DT_BFLOAT16 || dtype == DT_FLOAT || dtype == DT_DOUBLE;
}

inline MaybeSizes SizesOf(const PartialTensorShape& shape) {
  if (shape.dims() < 0) return std::nullopt;
  Sizes found;
  for (int at = 0; at < shape.dims(); ++at) found.push_back(shape.dim_size(at));
  return found;
}

inline Sizes SizesOf(const TensorShape& shape) {
  Sizes found;
  for (int at = 0; at < shape.dims(); ++at) found.push_back(shape.dim_size(at));
  return found;
}

inline Sizes SizesOf(const Tensor& tensor) { return SizesOf(tensor.shape()); }

inline std::string Text(const Sizes& sizes) {
  std::string text = "[";
  for (const std::int64_t size : sizes) {
    if (text.size() > 1) text += ',';
    text += size < 0 ? "?" : std::to_string(size);
  }
  return text + "]";
}

inline std::string Text(const MaybeSizes& sizes) { return sizes ? Text(*sizes) : "?"; }

// Their product, or nothing where 64 bits do not hold it; sizes must be known.
inline std::optional<std::int64_t> Product(const Sizes& sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (size != 0 && product > std::numeric_limits<std::int64_t>::max() / size) return std::nullopt;
    product *= size;
  }
  return product;
}

// The number of elements, -1 if it is unknown; a size 0 is enough to know it.
inline std::int64_t CountOf(const Sizes& sizes) {
  if (std::find(sizes.begin(), sizes.end(), 0) != sizes.end()) return 0;
  if (std::find(sizes.begin(), sizes.end(), kUnknown) != sizes.end()) return kUnknown;
  return Product(sizes).value_or(kUnknown);
}

// The shape of a result: refuses negative sizes, and more elements than can be counted.
inline Status MakeShape(const Sizes& sizes, TensorShape* shape) {
  if (static_cast<std::int64_t>(sizes.size()) > kMostDims) {
    return errors::InvalidArgument("Shape must have at most ", kMostDims, " dimensions, got ",
                                   sizes.size());
  }
  for (const std::int64_t size : sizes) {
    if (size < 0) return errors::InvalidArgument("Dimension ", size, " must be >= 0");
  }
  if (!Product(sizes)) {
    return errors::InvalidArgument("Shape ", Text(sizes),
                                   " would have more than 2**63 - 1 elements");
  }
  *shape = TensorShape();
  for (const std::int64_t size : sizes) shape->AddDim(size);
  return Status();
}

inline Status SetShape(Spec* spec, const MaybeSizes& sizes) {
  if (!sizes) {
    spec->shape = PartialTensorShape();
    return Status();
  }
  Sizes known;
  for (const std::int64_t size : *sizes) {
    if (size >= 0) known.push_back(size);
  }
  if (static_cast<std::int64_t>(sizes->size()) > kMostDims || !Product(known)) {
    return errors::InvalidArgument("Shape ", Text(*sizes),
                                   " would have more than 2**63 - 1 elements");
  }
  return PartialTensorShape::MakePartialShape(sizes->data(), static_cast<int>(sizes->size()),
                                              &spec->shape);
}

// Sets the first output.
inline Status Result(InferenceContext* c, DataType dtype, const MaybeSizes& sizes) {
  c->output(0).dtype = dtype;
  return SetShape(&c->output(0), sizes);
}

inline Status InferSame(InferenceContext* c) {
  c->output(0).dtype = c->input(0).dtype;
  c->output(0).shape = c->input(0).shape;
  return Status();
}

// Of a source whose dtype and shape are attributes.
inline Status InferAttribute(InferenceContext* c) {
  c->output(0).dtype = c->attrs().Type("dtype");
  c->output(0).shape = c->attrs().Shape("shape");
  return Status();
}

// An input's sizes, all unknown if its rank is; refuses another rank.
inline Status OfRank(const MaybeSizes& given, int rank, Sizes* found) {
  if (given && static_cast<int>(given->size()) != rank) {
    return errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", given->size());
  }
  *found = given ? *given : Sizes(static_cast<std::size_t>(rank), kUnknown);
  return Status();
}

inline Status OfRank(InferenceContext* c, int input, int rank, Sizes* found) {
  return OfRank(SizesOf(c->input(input).shape), rank, found);
}

inline Status AtLeastRank(const MaybeSizes& given, int rank) {
  if (given && static_cast<int>(given->size()) < rank) {
    return errors::InvalidArgument("Shape must be at least rank ", rank, " but is rank ",
                                   given->size());
  }
  return Status();
}

inline Status IsScalar(InferenceContext* c, int input) {
  Sizes none;
  return OfRank(c, input, 0, &none);
}

// The number of an integer scalar, if it is known.
inline std::optional<std::int64_t> Number(const Spec& spec) {
  if (!spec.numbers || spec.shape.dims() != 0 || spec.numbers->size() != 1) return std::nullopt;
  if (spec.numbers->front() == kUnknownNumber) return std::nullopt;
  return spec.numbers->front();
}

// The numbers of a vector, kUnknownNumber for those that are not known; nothing if their count is not.
inline Status Vector(InferenceContext* c, int input, MaybeSizes* found) {
  const Spec& spec = c->input(input);
  found->reset();
  const MaybeSizes sizes = SizesOf(spec.shape);
  if (!sizes) return Status();
  Sizes one;
  Status status = OfRank(sizes, 1, &one);
  if (!status.ok()) return status;
  if (spec.numbers) {
    *found = *spec.numbers;
    return status;
  }
  if (one[0] < 0) return status;
  if (one[0] > kMostDims) {
    return errors::InvalidArgument("Shape must have at most ", kMostDims, " dimensions, got ",
                                   one[0]);
  }
  *found = Sizes(static_cast<std::size_t>(one[0]), kUnknownNumber);
  return status;
}

// A vector that says a shape, with -1 where a size is unknown.
inline Status ShapeVector(InferenceContext* c, int input, MaybeSizes* found) {
  Status status = Vector(c, input, found);
  if (!status.ok() || !*found) return status;
  for (std::int64_t& size : **found) {
    if (size == kUnknownNumber) {
      size = kUnknown;
    } else if (size == -1) {
      return errors::InvalidArgument("Dimension -1 must be >= 0");
    } else if (size < 0) {
      return errors::InvalidArgument("Invalid value in tensor used for shape: ", size);
    }
  }
  return status;
}

inline bool Fits(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }

// What two descriptions of one shape know together.
inline Status Merge(const MaybeSizes& a, const MaybeSizes& b, MaybeSizes* merged) {
  *merged = a ? a : b;
  if (!a || !b) return Status();
  if (a->size() != b->size()) {
    return errors::InvalidArgument("Shapes must be equal rank, but are ", a->size(), " and ",
                                   b->size());
  }
  for (std::size_t at = 0; at < a->size(); ++at) {
    if (!Fits((*a)[at], (*b)[at])) {
      return errors::InvalidArgument("Dimension ", at, " in both shapes must be equal, but are ",
                                     (*a)[at], " and ", (*b)[at], ". Shapes are ", Text(a), " and ",
                                     Text(b), ".");
    }
    if ((*a)[at] < 0) (**merged)[at] = (*b)[at];
  }
  return Status();
}

// The sizes of a result of two operands, element by element.
inline Status BroadcastSizes(const Sizes& a, const Sizes& b, Sizes* result) {
  const std::size_t rank = std::max(a.size(), b.size());
  result->assign(rank, 1);
  for (std::size_t back = 1; back <= rank; ++back) {
    const std::int64_t x = back <= a.size() ? a[a.size() - back] : 1;
    const std::int64_t y = back <= b.size() ? b[b.size() - back] : 1;
    const bool x_fixed = x >= 0 && x != 1, y_fixed = y >= 0 && y != 1;
    if (x_fixed && y_fixed && x != y) {
      return errors::InvalidArgument("Dimensions must be equal, but are ", x, " and ", y);
    }
    // Of ones and unknown sizes any may be larger.
    (*result)[rank - back] = x_fixed ? x : y_fixed ? y : (x < 0 || y < 0) ? kUnknown : 1;
  }
  return Status();
}

inline Status BroadcastSizes(const MaybeSizes& a, const MaybeSizes& b, MaybeSizes* result) {
  result->reset();
  if (!a || !b) return Status();
  Sizes found;
  Status status = BroadcastSizes(*a, *b, &found);
  if (status.ok()) *result = std::move(found);
  return status;
}

// Integers of an int32, int64 or uint8 tensor.
inline Sizes Integers(const Tensor& tensor) {
  Sizes found(static_cast<std::size_t>(tensor.NumElements()));
  const void* data = tensor.data();
  for (std::size_t at = 0; at < found.size(); ++at) {
    if (tensor.dtype() == DT_INT64) {
      found[at] = static_cast<const std::int64_t*>(data)[at];
    } else if (tensor.dtype() == DT_INT32) {
      found[at] = static_cast<const std::int32_t*>(data)[at];
    } else {
      found[at] = static_cast<const std::uint8_t*>(data)[at];
    }
  }
  return found;
}

// A vector of sizes in a run.
inline Status ShapeInput(const Tensor& tensor, Sizes* found) {
  if (tensor.dims() != 1) {
    return errors::InvalidArgument("shape must be a vector of {int32,int64}, got shape ",
                                   Text(SizesOf(tensor)));
  }
  if (tensor.NumElements() > kMostDims) {
    return errors::InvalidArgument("Shape must have at most ", kMostDims, " dimensions, got ",
                                   tensor.NumElements());
  }
  *found = Integers(tensor);
  return Status();
}

// Axes counted from the front, in order; refuses what is outside or named twice.
inline Status CheckedAxes(const Sizes& given, std::int64_t rank, Sizes* axes) {
  axes->clear();
  for (const std::int64_t axis : given) {
    if (axis < -rank || axis >= rank) {
      return errors::InvalidArgument("Invalid reduction dimension ", axis, " for input with ", rank,
                                     " dimensions.");
    }
    const std::int64_t from_front = axis < 0 ? axis + rank : axis;
    if (std::find(axes->begin(), axes->end(), from_front) != axes->end()) {
      return errors::InvalidArgument(
          "Invalid reduction arguments: Axes contains duplicate dimension: ", from_front);
    }
    axes->push_back(from_front);
  }
  std::sort(axes->begin(), axes->end());
  return Status();
}

// The axes an input names, nothing if they are unknown.
inline Status AxesOf(InferenceContext* c, int input, std::size_t rank, MaybeSizes* axes) {
  const Spec& spec = c->input(input);
  axes->reset();
  if (spec.shape.dims() > 1) {
    return errors::InvalidArgument("Shape must be at most rank 1 but is rank ", spec.shape.dims());
  }
  if (!spec.numbers) return Status();
  for (const std::int64_t number : *spec.numbers) {
    if (number == kUnknownNumber) return Status();
  }
  Sizes found;
  Status status = CheckedAxes(*spec.numbers, static_cast<std::int64_t>(rank), &found);
  if (status.ok()) *axes = std::move(found);
  return status;
}

inline Status AxesInput(const Tensor& tensor, int rank, Sizes* axes) {
  if (tensor.dims() > 1) {
    return errors::InvalidArgument("Shape must be at most rank 1 but is rank ", tensor.dims());
  }
  return CheckedAxes(Integers(tensor), rank, axes);
}

// For gradients.

// Behind an error outputs have no node: nothing is known of them.
inline MaybeSizes SizesOf(const Output& output) {
  if (output.node() == nullptr) return std::nullopt;
  return SizesOf(output.node()->spec(output.index()).shape);
}
inline DataType TypeOf(const Output& output) {
  return output.node() == nullptr ? DT_INVALID : output.node()->spec(output.index()).dtype;
}

inline bool KnownToBeAlike(const Output& a, const Output& b) {
  const MaybeSizes x = SizesOf(a), y = SizesOf(b);
  return x && y && *x == *y && std::find(x->begin(), x->end(), kUnknown) == x->end();
}

inline Output ShapeOp(const Scope& scope, const Output& tensor) {
  return AddOp(scope, "Shape", {tensor});
}

// A gradient summed over what its operand was repeated along.
inline Output Unbroadcast(const Scope& scope, const Output& grad, const Output& operand) {
  if (!scope.ok() || KnownToBeAlike(grad, operand)) return grad;
  return AddOp(scope, "SumToShape", {grad, ShapeOp(scope, operand)});
}

inline Output ConstOp(const Scope& scope, Tensor value) {
  Attributes attrs;
  attrs.Set("value", std::move(value));
  return AddOp(scope, "Const", {}, std::move(attrs));
}

// A constant scalar of a tensor's dtype.
inline Output NumberOp(const Scope& scope, float value, const Output& like) {
  if (!scope.ok()) return Output();
  const DataType dtype = TypeOf(like);
  if (dtype == DT_DOUBLE) return ConstOp(scope, Tensor(static_cast<double>(value)));
  if (dtype == DT_HALF) return ConstOp(scope, Tensor(static_cast<half>(value)));
  if (dtype == DT_BFLOAT16) return ConstOp(scope, Tensor(static_cast<bfloat16>(value)));
  return ConstOp(scope, Tensor(value));
}

// A constant vector of int32.
inline Output IntegersOp(const Scope& scope, const std::vector<std::int32_t>& values) {
  Tensor numbers(DT_INT32, TensorShape({static_cast<std::int64_t>(values.size())}));
  if (numbers.data() != nullptr) {
    std::copy(values.begin(), values.end(), static_cast<std::int32_t*>(numbers.data()));
  }
  return ConstOp(scope, std::move(numbers));
}

// Zeros of a tensor's shape and dtype.
inline Output ZerosOp(const Scope& scope, const Output& like) {
  return AddOp(scope, "BroadcastTo", {NumberOp(scope, 0.0f, like), ShapeOp(scope, like)});
}

// What a rule hands back; AddSymbolicGradients asks none without a gradient of the first output, unless there are two.
inline Status Grads(const Scope& scope, std::vector<Output>* grad_inputs,
                    std::vector<Output> found) {
  *grad_inputs = std::move(found);
  return scope.status();
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_RULES_H_
