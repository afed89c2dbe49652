// Element by element, with NumPy's broadcasting. Integers wrap; half and bfloat16 are rounded once per operation.
#ifndef CONVGRAD_CC_TABLE_ARITHMETIC_H_
#define CONVGRAD_CC_TABLE_ARITHMETIC_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

// Two operands. `kSigned` says whether an integer's sign matters to the result.
struct AddCells {
  static constexpr bool kSigned = false;
  template <class W>
  static W Of(W x, W y) {
    return x + y;
  }
};
struct SubtractCells {
  static constexpr bool kSigned = false;
  template <class W>
  static W Of(W x, W y) {
    return x - y;
  }
};
struct MultiplyCells {
  static constexpr bool kSigned = false;
  template <class W>
  static W Of(W x, W y) {
    return x * y;
  }
};
struct EqualCells {
  static constexpr bool kSigned = false;
  template <class W>
  static bool Of(W x, W y) {
    return x == y;
  }
};
struct DivideCells {
  static constexpr bool kSigned = true;
  template <class W>
  static W Of(W x, W y) {
    if constexpr (std::is_floating_point_v<W>) {
      return x / y;
    } else if constexpr (std::is_signed_v<W>) {
      // The smallest number has no opposite; it stays as it is.
      if (y == -1) return static_cast<W>(0 - static_cast<WorkingType<W>>(x));
      return static_cast<W>(x / y);
    } else {
      return static_cast<W>(x / y);
    }
  }
};

inline Status InferBinary(InferenceContext* c) {
  MaybeSizes sizes;
  TF_RETURN_IF_ERROR(
      BroadcastSizes(SizesOf(c->input(0).shape), SizesOf(c->input(1).shape), &sizes));
  return Result(c, c->input(0).dtype, sizes);
}

inline Status ComputeBinary(KernelContext* c, DataType dtype, BinaryRun run) {
  const Tensor &x = c->input(0), &y = c->input(1);
  const Sizes xs = SizesOf(x), ys = SizesOf(y);
  Sizes sizes;
  if (!BroadcastSizes(xs, ys, &sizes).ok()) {
    return errors::InvalidArgument("Incompatible shapes: ", Text(xs), " vs. ", Text(ys));
  }
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape(sizes, &shape));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_over({0, 1}, 0, dtype, shape, &out));
  RunBinary(x, xs, y, ys, out, run);
  return Status();
}

template <class F>
Status ComputeArithmetic(KernelContext* c) {
  BinaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForArithmetic(c->input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    run = BinaryLoop<T, T, F>;
    return Status();
  }));
  return ComputeBinary(c, c->input(0).dtype(), run);
}

inline Status InferAdd(InferenceContext* c) { return InferBinary(c); }
inline Status InferSubtract(InferenceContext* c) { return InferBinary(c); }
inline Status InferMultiply(InferenceContext* c) { return InferBinary(c); }
inline Status InferDiv(InferenceContext* c) { return InferBinary(c); }
inline Status ComputeAdd(KernelContext* c) { return ComputeArithmetic<AddCells>(c); }
inline Status ComputeSubtract(KernelContext* c) { return ComputeArithmetic<SubtractCells>(c); }
inline Status ComputeMultiply(KernelContext* c) { return ComputeArithmetic<MultiplyCells>(c); }

inline Status ComputeDiv(KernelContext* c) {
  const Tensor& y = c->input(1);
  BinaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForNumbers(y.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    if constexpr (!kIsFloat<T>) {
      for (std::int64_t i = 0; i < y.NumElements(); ++i) {
        if (Data<T>(y)[i] == 0) return errors::InvalidArgument("Integer division by zero");
      }
    }
    run = BinaryLoop<T, T, DivideCells>;
    return Status();
  }));
  return ComputeBinary(c, y.dtype(), run);
}

inline Status InferEqual(InferenceContext* c) {
  TF_RETURN_IF_ERROR(InferBinary(c));
  c->output(0).dtype = DT_BOOL;
  return Status();
}

inline Status ComputeEqual(KernelContext* c) {
  BinaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForArithmetic(c->input(0).dtype(), [&](auto zero) {
    run = BinaryLoop<decltype(zero), bool, EqualCells>;
    return Status();
  }));
  return ComputeBinary(c, DT_BOOL, run);
}

inline Status GradAdd(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                      std::vector<Output>* out) {
  return Grads(scope, out, {Unbroadcast(scope, grads[0], op.input(0)),
                            Unbroadcast(scope, grads[0], op.input(1))});
}

inline Status GradSubtract(const Scope& scope, const Operation& op,
                           const std::vector<Output>& grads, std::vector<Output>* out) {
  const Output to_x = Unbroadcast(scope, grads[0], op.input(0));
  const Output to_y = Unbroadcast(scope, grads[0], op.input(1));
  return Grads(scope, out, {to_x, AddOp(scope, "Negate", {to_y})});
}

inline Status GradMultiply(const Scope& scope, const Operation& op,
                           const std::vector<Output>& grads, std::vector<Output>* out) {
  const Output x = op.input(0), y = op.input(1), g = grads[0];
  const Output to_x = Unbroadcast(scope, AddOp(scope, "Multiply", {g, y}), x);
  const Output to_y = Unbroadcast(scope, AddOp(scope, "Multiply", {g, x}), y);
  return Grads(scope, out, {to_x, to_y});
}

inline Status GradDiv(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                      std::vector<Output>* out) {
  const Output x = op.input(0), y = op.input(1), g = grads[0];
  const Output slope = AddOp(scope, "Negate", {AddOp(scope, "Div", {op.output(0), y})});
  const Output to_x = Unbroadcast(scope, AddOp(scope, "Div", {g, y}), x);
  const Output to_y = Unbroadcast(scope, AddOp(scope, "Multiply", {g, slope}), y);
  return Grads(scope, out, {to_x, to_y});
}

inline Status InferAddN(InferenceContext* c) {
  if (c->num_inputs() == 0) {
    return errors::InvalidArgument("Need at least one input to AddN");
  }
  MaybeSizes sizes = SizesOf(c->input(0).shape);
  for (int input = 1; input < c->num_inputs(); ++input) {
    MaybeSizes merged;
    const Status status = Merge(sizes, SizesOf(c->input(input).shape), &merged);
    if (!status.ok()) {
      return errors::InvalidArgument(status.message(), "\n\tFrom merging shape ", input - 1,
                                     " with other shapes.");
    }
    sizes = std::move(merged);
  }
  return Result(c, c->input(0).dtype, sizes);
}

// Sums of half and bfloat16 are kept in float and rounded once.
inline Status ComputeAddN(KernelContext* c) {
  const Tensor& first = c->input(0);
  for (int input = 1; input < c->num_inputs(); ++input) {
    if (SizesOf(c->input(input)) != SizesOf(first)) {
      return errors::InvalidArgument("Inputs to operation ", c->node_name(),
                                     " of type AddN must have the same size and shape.  Input 0: ",
                                     Text(SizesOf(first)), " != input ", input, ": ",
                                     Text(SizesOf(c->input(input))));
    }
  }
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_over({0}, 0, first.dtype(), first.shape(), &out));
  return ForArithmetic(first.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using W = WorkingType<T>;
    constexpr std::int64_t kRun = 512;
    W sums[kRun];
    const std::int64_t total = first.NumElements();
    for (std::int64_t at = 0; at < total; at += kRun) {
      const std::int64_t count = std::min(kRun, total - at);
      for (std::int64_t i = 0; i < count; ++i) sums[i] = static_cast<W>(Data<T>(first)[at + i]);
      for (int input = 1; input < c->num_inputs(); ++input) {
        const T* x = Data<T>(c->input(input)) + at;
        for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<W>(x[i]);
      }
      T* to = MutableData<T>(out) + at;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(sums[i]);
    }
    return Status();
  });
}

inline Status GradAddN(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                       std::vector<Output>* out) {
  return Grads(scope, out,
               std::vector<Output>(static_cast<std::size_t>(op.num_inputs()), grads[0]));
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_ARITHMETIC_H_
