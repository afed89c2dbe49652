// Shares that add up to 1 along the last dimension, their logarithms, and the cross entropy of them.
//
// The largest logit is subtracted first, so nothing overflows. Half and bfloat16 are computed in
// float; exponentials are summed in double, with what each sum loses added at its end: rows are long
// where there are many classes, and an error of the sum is one of every share.
#ifndef CONVGRAD_CC_TABLE_SOFTMAX_H_
#define CONVGRAD_CC_TABLE_SOFTMAX_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

// Logarithms of the shares of a row, which may be one logit that stands for all (`step` 0).
template <class T, class W>
void LogShares(const T* logits, std::int64_t step, std::int64_t count, W* logs) {
  W largest = -std::numeric_limits<W>::infinity();
  for (std::int64_t i = 0; i < count; ++i) {
    logs[i] = static_cast<W>(logits[i * step]);
    if (!(logs[i] <= largest)) largest = logs[i];  // so is what is no number, and then all are none
    if (largest != largest) break;
  }
  double sum = 0, lost = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    logs[i] = static_cast<W>(logits[i * step]) - largest;
    const double term = static_cast<double>(std::exp(logs[i]));
    const double next = sum + term;
    lost += sum >= term ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  const W log_of_sum = std::log(static_cast<W>(sum + lost));
  for (std::int64_t i = 0; i < count; ++i) logs[i] -= log_of_sum;
}

inline Status InferLogits(InferenceContext* c) {
  TF_RETURN_IF_ERROR(AtLeastRank(SizesOf(c->input(0).shape), 1));
  return InferSame(c);
}

inline Status ComputeShares(KernelContext* c, bool logarithms) {
  const Tensor& x = c->input(0);
  if (x.dims() < 1) return errors::InvalidArgument("logits must have >= 1 dimension, got []");
  const std::int64_t count = x.dim_size(x.dims() - 1);
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, x.dtype(), x.shape(), &out));
  if (x.NumElements() == 0) return Status();
  return ForFloats(x.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    using W = WorkingType<T>;
    Scratch<W> logs(count);
    TF_RETURN_IF_ERROR(logs.status());
    for (std::int64_t at = 0; at < x.NumElements(); at += count) {
      LogShares(Data<T>(x) + at, 1, count, logs.data());
      T* to = MutableData<T>(out) + at;
      for (std::int64_t i = 0; i < count; ++i) {
        to[i] = static_cast<T>(logarithms ? logs.data()[i] : std::exp(logs.data()[i]));
      }
    }
    return Status();
  });
}

inline Status InferSoftmax(InferenceContext* c) { return InferLogits(c); }
inline Status InferLogSoftmax(InferenceContext* c) { return InferLogits(c); }
inline Status ComputeSoftmax(KernelContext* c) { return ComputeShares(c, false); }
inline Status ComputeLogSoftmax(KernelContext* c) { return ComputeShares(c, true); }

// The sum along the last dimension, which stays.
inline Output RowSum(const Scope& scope, const Output& x) {
  Attributes attrs;
  attrs.Set("keep_dims", true);
  return AddOp(scope, "Sum", {x, IntegersOp(scope, {-1})}, std::move(attrs));
}

// (g - sum(g * y)) * y
inline Output ThroughSoftmax(const Scope& scope, const Output& g, const Output& y) {
  const Output sum = RowSum(scope, AddOp(scope, "Multiply", {g, y}));
  return AddOp(scope, "Multiply", {AddOp(scope, "Subtract", {g, sum}), y});
}

inline Status GradSoftmax(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                          std::vector<Output>* out) {
  return Grads(scope, out, {ThroughSoftmax(scope, grads[0], op.output(0))});
}

inline Status GradLogSoftmax(const Scope& scope, const Operation& op,
                             const std::vector<Output>& grads, std::vector<Output>* out) {
  const Output shares = AddOp(scope, "Softmax", {op.input(0)});
  const Output rest = AddOp(scope, "Multiply", {RowSum(scope, grads[0]), shares});
  return Grads(scope, out, {AddOp(scope, "Subtract", {grads[0], rest})});
}

inline Status InferSoftmaxCrossEntropyWithLogits(InferenceContext* c) {
  Sizes features, labels, both;
  for (int input = 0; input < 2; ++input) {
    const int rank = c->input(input).shape.dims();
    if (rank >= 0 && rank != 2) {
      return errors::InvalidArgument("Shape must be broadcasted with rank 2, but is rank ", rank);
    }
  }
  TF_RETURN_IF_ERROR(OfRank(c, 0, 2, &features));
  TF_RETURN_IF_ERROR(OfRank(c, 1, 2, &labels));
  TF_RETURN_IF_ERROR(BroadcastSizes(features, labels, &both));
  c->output(1).dtype = c->input(0).dtype;
  TF_RETURN_IF_ERROR(SetShape(&c->output(1), both));
  return Result(c, c->input(0).dtype, Sizes{both[0]});
}

inline Status ComputeSoftmaxCrossEntropyWithLogits(KernelContext* c) {
  const Tensor &features = c->input(0), &labels = c->input(1);
  if (features.dims() != 2 || labels.dims() != 2) {
    return errors::InvalidArgument(
        "logits and labels must be either 2-dimensional, or broadcasted to be 2-dimensional");
  }
  Sizes both;
  if (!BroadcastSizes(SizesOf(features), SizesOf(labels), &both).ok()) {
    return errors::InvalidArgument("logits and labels must be broadcastable: logits_size=",
                                   Text(SizesOf(features)), " labels_size=",
                                   Text(SizesOf(labels)));
  }
  TensorShape rows_shape, shape;
  TF_RETURN_IF_ERROR(MakeShape({both[0]}, &rows_shape));
  TF_RETURN_IF_ERROR(MakeShape(both, &shape));
  Tensor *loss = nullptr, *back = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, features.dtype(), rows_shape, &loss));
  TF_RETURN_IF_ERROR(c->allocate_output(1, features.dtype(), shape, &back));
  const std::int64_t rows = both[0], columns = both[1];
  const std::int64_t feature_step = features.dim_size(1) == 1 ? 0 : 1;
  const std::int64_t label_step = labels.dim_size(1) == 1 ? 0 : 1;
  return ForFloats(features.dtype(), [&](auto zero) -> Status {
    using T = decltype(zero);
    using W = WorkingType<T>;
    Scratch<W> logs(columns);
    TF_RETURN_IF_ERROR(logs.status());
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t feature_row = features.dim_size(0) == 1 ? 0 : row;
      const std::int64_t label_row = labels.dim_size(0) == 1 ? 0 : row;
      const T* wanted = Data<T>(labels) + label_row * labels.dim_size(1);
      LogShares(Data<T>(features) + feature_row * features.dim_size(1), feature_step, columns,
                logs.data());
      T* to = MutableData<T>(back) + row * columns;
      double sum = 0;
      for (std::int64_t i = 0; i < columns; ++i) {
        const W label = static_cast<W>(wanted[i * label_step]);
        sum += static_cast<double>(label * logs.data()[i]);
        to[i] = static_cast<T>(std::exp(logs.data()[i]) - label);
      }
      MutableData<T>(loss)[row] = static_cast<T>(static_cast<W>(-sum));
    }
    return Status();
  });
}

inline Output Together(const Scope& scope, const std::vector<Output>& parts,
                       const Output& operand) {
  if (!scope.ok()) return Output();
  const Output whole = parts.size() == 1 ? parts[0] : AddOp(scope, "Add", {parts[0], parts[1]});
  return Unbroadcast(scope, whole, operand);
}

// The loss's gradient is the second output; the second's own goes through softmax.
inline Status GradSoftmaxCrossEntropyWithLogits(const Scope& scope, const Operation& op,
                                                const std::vector<Output>& grads,
                                                std::vector<Output>* out) {
  const Output features = op.input(0), labels = op.input(1);
  const MaybeSizes given = SizesOf(features), result = SizesOf(op.output(1));
  const bool alike = given && result && given->size() == 2 && result->size() == 2 &&
                     (*given)[1] >= 0 && (*given)[1] == (*result)[1];
  const Output logits =
      alike ? features
            : AddOp(scope, "BroadcastTo", {features, ShapeOp(scope, op.output(1))});
  std::vector<Output> to_features, to_labels;
  if (grads[0].node() != nullptr) {
    const Output column = AddOp(scope, "Reshape", {grads[0], IntegersOp(scope, {-1, 1})});
    to_features.push_back(AddOp(scope, "Multiply", {column, op.output(1)}));
    const Output logs = AddOp(scope, "LogSoftmax", {logits});
    to_labels.push_back(
        AddOp(scope, "Negate", {AddOp(scope, "Multiply", {column, logs})}));
  }
  if (grads.size() > 1 && grads[1].node() != nullptr) {
    to_features.push_back(ThroughSoftmax(scope, grads[1], AddOp(scope, "Softmax", {logits})));
    to_labels.push_back(AddOp(scope, "Negate", {grads[1]}));
  }
  if (to_features.empty()) return Grads(scope, out, {Output(), Output()});
  return Grads(scope, out,
               {Together(scope, to_features, features), Together(scope, to_labels, labels)});
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_SOFTMAX_H_
