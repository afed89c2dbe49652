// Functions of one operand, element by element.
#ifndef CONVGRAD_CC_TABLE_FUNCTIONS_H_
#define CONVGRAD_CC_TABLE_FUNCTIONS_H_

#include <cmath>
#include <cstdint>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

using UnaryRun = void (*)(const void* x, void* y, std::int64_t count);

// F::Of takes and gives a number of the working type.
template <class T, class F>
void UnaryLoop(const void* xs, void* ys, std::int64_t count) {
  using W = WorkingType<T>;
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  for (std::int64_t i = 0; i < count; ++i) {
    y[i] = static_cast<T>(F::template Of<T>(static_cast<W>(x[i])));
  }
}

inline Status ComputeUnary(KernelContext* c, UnaryRun run) {
  const Tensor& x = c->input(0);
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_over({0}, 0, x.dtype(), x.shape(), &out));
  if (x.NumElements() > 0) run(Data<char>(x), MutableData<char>(out), x.NumElements());
  return Status();
}

template <class F>
Status ComputeOfFloats(KernelContext* c) {
  UnaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForFloats(c->input(0).dtype(), [&](auto zero) {
    run = UnaryLoop<decltype(zero), F>;
    return Status();
  }));
  return ComputeUnary(c, run);
}

template <class F>
Status ComputeOfNumbers(KernelContext* c) {
  UnaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForArithmetic(c->input(0).dtype(), [&](auto zero) {
    run = UnaryLoop<decltype(zero), F>;
    return Status();
  }));
  return ComputeUnary(c, run);
}

struct NegateCell {
  template <class T, class W>
  static W Of(W x) {
    if constexpr (std::is_floating_point_v<W>) {
      return -x;
    } else {
      return W(0) - x;
    }
  }
};
struct SquareCell {
  template <class T, class W>
  static W Of(W x) {
    return x * x;
  }
};
struct SqrtCell {
  template <class T, class W>
  static W Of(W x) {
    return std::sqrt(x);
  }
};
struct ExpCell {
  template <class T, class W>
  static W Of(W x) {
    return std::exp(x);
  }
};
struct LogCell {
  template <class T, class W>
  static W Of(W x) {
    return std::log(x);
  }
};
struct TanhCell {
  template <class T, class W>
  static W Of(W x) {
    return std::tanh(x);
  }
};
// 1 / (1 + exp(-x)), each step rounded to the type.
struct SigmoidCell {
  template <class T, class W>
  static W Of(W x) {
    const W power = static_cast<W>(static_cast<T>(std::exp(-x)));
    return W(1) / static_cast<W>(static_cast<T>(W(1) + power));
  }
};

inline Status InferNegate(InferenceContext* c) { return InferSame(c); }
inline Status InferSquare(InferenceContext* c) { return InferSame(c); }
inline Status InferSqrt(InferenceContext* c) { return InferSame(c); }
inline Status InferExp(InferenceContext* c) { return InferSame(c); }
inline Status InferLog(InferenceContext* c) { return InferSame(c); }
inline Status InferTanh(InferenceContext* c) { return InferSame(c); }
inline Status InferSigmoid(InferenceContext* c) { return InferSame(c); }
inline Status ComputeNegate(KernelContext* c) { return ComputeOfNumbers<NegateCell>(c); }
inline Status ComputeSquare(KernelContext* c) { return ComputeOfNumbers<SquareCell>(c); }
inline Status ComputeSqrt(KernelContext* c) { return ComputeOfFloats<SqrtCell>(c); }
inline Status ComputeExp(KernelContext* c) { return ComputeOfFloats<ExpCell>(c); }
inline Status ComputeLog(KernelContext* c) { return ComputeOfFloats<LogCell>(c); }
inline Status ComputeTanh(KernelContext* c) { return ComputeOfFloats<TanhCell>(c); }
inline Status ComputeSigmoid(KernelContext* c) { return ComputeOfFloats<SigmoidCell>(c); }

inline Status GradNegate(const Scope& scope, const Operation&, const std::vector<Output>& grads,
                         std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "Negate", {grads[0]})});
}

inline Status GradSquare(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                         std::vector<Output>* out) {
  const Output x = op.input(0);
  const Output slope = AddOp(scope, "Multiply", {x, NumberOp(scope, 2.0f, x)});
  return Grads(scope, out, {AddOp(scope, "Multiply", {grads[0], slope})});
}

inline Status GradSqrt(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                       std::vector<Output>* out) {
  const Output y = op.output(0);
  const Output part = AddOp(scope, "Multiply", {grads[0], NumberOp(scope, 0.5f, y)});
  return Grads(scope, out, {AddOp(scope, "Div", {part, y})});
}

inline Status GradExp(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                      std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "Multiply", {grads[0], op.output(0)})});
}

inline Status GradLog(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                      std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "Div", {grads[0], op.input(0)})});
}

inline Status GradTanh(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                       std::vector<Output>* out) {
  const Output y = op.output(0);
  const Output squared = AddOp(scope, "Square", {y});
  const Output rest = AddOp(scope, "Subtract", {NumberOp(scope, 1.0f, y), squared});
  return Grads(scope, out, {AddOp(scope, "Multiply", {grads[0], rest})});
}

inline Status GradSigmoid(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                          std::vector<Output>* out) {
  const Output y = op.output(0);
  const Output rest = AddOp(scope, "Subtract", {NumberOp(scope, 1.0f, y), y});
  const Output slope = AddOp(scope, "Multiply", {y, rest});
  return Grads(scope, out, {AddOp(scope, "Multiply", {grads[0], slope})});
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_FUNCTIONS_H_
