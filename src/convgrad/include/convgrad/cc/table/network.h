// What layers of a network need besides convolutions.
#ifndef CONVGRAD_CC_TABLE_NETWORK_H_
#define CONVGRAD_CC_TABLE_NETWORK_H_

#include <cstdint>
#include <vector>

#include "convgrad/cc/table/arithmetic.h"
#include "convgrad/cc/table/functions.h"
#include "convgrad/cc/table/loops.h"

namespace convgrad {
namespace detail {
namespace table {

// The larger of x and 0; what is no number stays.
template <class T>
void ReluRun(const void* xs, void* ys, std::int64_t count) {
  using W = std::conditional_t<kIsFloat<T>, WorkingType<T>, T>;
  const T* x = static_cast<const T*>(xs);
  T* y = static_cast<T*>(ys);
  for (std::int64_t i = 0; i < count; ++i) {
    const W cell = static_cast<W>(x[i]);
    y[i] = cell <= W(0) ? T(W(0)) : x[i];
  }
}

// A product, so that what is no number stays where features are not above 0, as in NumPy.
struct ReluGradCells {
  static constexpr bool kSigned = true;
  template <class W>
  static W Of(W gradient, W feature) {
    if constexpr (std::is_floating_point_v<W>) {
      return gradient * (feature > W(0) ? W(1) : W(0));
    } else {
      return feature > W(0) ? gradient : W(0);
    }
  }
};

inline Status InferRelu(InferenceContext* c) { return InferSame(c); }

inline Status ComputeRelu(KernelContext* c) {
  UnaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForNumbers(c->input(0).dtype(), [&](auto zero) {
    run = ReluRun<decltype(zero)>;
    return Status();
  }));
  return ComputeUnary(c, run);
}

inline Status GradRelu(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                       std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "ReluGrad", {grads[0], op.output(0)})});
}

inline Status InferReluGrad(InferenceContext* c) {
  MaybeSizes merged;
  TF_RETURN_IF_ERROR(Merge(SizesOf(c->input(0).shape), SizesOf(c->input(1).shape), &merged));
  return Result(c, c->input(0).dtype, merged);
}

inline Status ComputeReluGrad(KernelContext* c) {
  const Sizes g = SizesOf(c->input(0)), features = SizesOf(c->input(1));
  if (g != features) {
    return errors::InvalidArgument(
        "Inputs to operation ", c->node_name(),
        " of type ReluGrad must have the same size and shape.  Input 0: ", Text(g),
        " != input 1: ", Text(features));
  }
  BinaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForNumbers(c->input(0).dtype(), [&](auto zero) {
    using T = decltype(zero);
    run = BinaryLoop<T, T, ReluGradCells>;
    return Status();
  }));
  return ComputeBinary(c, c->input(0).dtype(), run);
}

inline Status GradReluGrad(const Scope& scope, const Operation& op,
                           const std::vector<Output>& grads, std::vector<Output>* out) {
  return Grads(scope, out, {AddOp(scope, "ReluGrad", {grads[0], op.input(1)}), Output()});
}

inline std::size_t ChannelsAt(const Attributes& attrs, std::size_t rank) {
  return attrs.String("data_format") == "NCHW" ? 1 : rank - 1;
}

inline Status InferBiasAdd(InferenceContext* c) {
  Sizes bias;
  const DataType dtype = c->input(0).dtype;
  MaybeSizes sizes = SizesOf(c->input(0).shape);
  TF_RETURN_IF_ERROR(AtLeastRank(sizes, 2));
  TF_RETURN_IF_ERROR(OfRank(c, 1, 1, &bias));
  if (!sizes) return Result(c, dtype, std::nullopt);
  std::int64_t& channels = (*sizes)[ChannelsAt(c->attrs(), sizes->size())];
  if (!Fits(channels, bias[0])) {
    return errors::InvalidArgument("Dimensions must be equal, but are ", channels, " and ",
                                   bias[0]);
  }
  if (channels < 0) channels = bias[0];
  return Result(c, dtype, sizes);
}

inline Status ComputeBiasAdd(KernelContext* c) {
  const Tensor &value = c->input(0), &bias = c->input(1);
  const Sizes sizes = SizesOf(value);
  if (sizes.size() < 2) {
    return errors::InvalidArgument("Input tensor must be at least 2D: ", Text(sizes));
  }
  if (bias.dims() != 1) {
    return errors::InvalidArgument("Biases must be 1D: ", Text(SizesOf(bias)));
  }
  const std::size_t at = ChannelsAt(c->attrs(), sizes.size());
  if (bias.dim_size(0) != sizes[at]) {
    return errors::InvalidArgument(
        at + 1 == sizes.size()
            ? "Must provide as many biases as the last dimension of the input tensor: "
            : "Must provide as many biases as the channel dimension of the input tensor: ",
        Text(SizesOf(bias)), " vs. ", Text(sizes));
  }
  Sizes along(sizes.size() - at, 1);
  along[0] = sizes[at];
  BinaryRun run = nullptr;
  TF_RETURN_IF_ERROR(ForArithmetic(value.dtype(), [&](auto zero) {
    using T = decltype(zero);
    run = BinaryLoop<T, T, AddCells>;
    return Status();
  }));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_over({0}, 0, value.dtype(), value.shape(), &out));
  RunBinary(value, sizes, bias, along, out, run);
  return Status();
}

inline Attributes LayoutOf(const Operation& op) {
  Attributes attrs;
  attrs.Set("data_format", op.node()->attrs().String("data_format"));
  return attrs;
}

inline Status GradBiasAdd(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                          std::vector<Output>* out) {
  return Grads(scope, out, {grads[0], AddOp(scope, "BiasAddGrad", {grads[0]}, LayoutOf(op))});
}

inline Status InferBiasAddGrad(InferenceContext* c) {
  const MaybeSizes sizes = SizesOf(c->input(0).shape);
  TF_RETURN_IF_ERROR(AtLeastRank(sizes, 2));
  if (!sizes) return Result(c, c->input(0).dtype, Sizes{kUnknown});
  return Result(c, c->input(0).dtype, Sizes{(*sizes)[ChannelsAt(c->attrs(), sizes->size())]});
}

inline Status ComputeBiasAddGrad(KernelContext* c) {
  const Tensor& g = c->input(0);
  const Sizes sizes = SizesOf(g);
  if (sizes.size() < 2) {
    return errors::InvalidArgument("Input tensor must be at least 2D: ", Text(sizes));
  }
  const std::size_t at = ChannelsAt(c->attrs(), sizes.size());
  Sizes axes;
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (axis != at) axes.push_back(static_cast<std::int64_t>(axis));
  }
  TensorShape shape;
  TF_RETURN_IF_ERROR(MakeShape({sizes[at]}, &shape));
  Tensor* out = nullptr;
  TF_RETURN_IF_ERROR(c->allocate_output(0, g.dtype(), shape, &out));
  return SumInto(g, axes, out);
}

inline Status GradBiasAddGrad(const Scope& scope, const Operation& op,
                              const std::vector<Output>& grads, std::vector<Output>* out) {
  const Output zeros = ZerosOp(scope, op.input(0));
  return Grads(scope, out, {AddOp(scope, "BiasAdd", {zeros, grads[0]}, LayoutOf(op))});
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_NETWORK_H_
