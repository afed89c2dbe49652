// The six operations: what their shapes are before they run, how they run, and their gradients.
//
// Shape rules refuse exactly what TensorFlow's refuse, in its words. What TensorFlow finds out when a
// kernel runs is found out then here, too.
#ifndef CONVGRAD_CC_TABLE_CONVOLUTIONS_H_
#define CONVGRAD_CC_TABLE_CONVOLUTIONS_H_

#include <vector>

#include "convgrad/cc/scope.h"
#include "convgrad/cc/table/convolution_kernels.h"
#include "convgrad/cc/table/convolution_shapes.h"

namespace convgrad {
namespace detail {
namespace table {

// y = conv(x, f) is linear in x and in f, and so are both gradients in what they are made of: the
// three sums are each other's gradients, to any order. Unlike TensorFlow's C++ gradients, these keep
// dilations and explicit paddings, and every one of the six has its own.

struct ConvNames {
  const char *forward, *to_input, *to_filter;
};

inline ConvNames NamesOf(bool depthwise) {
  const ConvRow* const rows = kConvRows + (depthwise ? 3 : 0);
  return {rows[0].op, rows[1].op, rows[2].op};
}

inline Output BackToInput(const Scope& scope, const ConvNames& names, const Operation& op,
                          const Output& x, const Output& f, const Output& g) {
  return AddOp(scope, names.to_input, {Input(AddOp(scope, "Shape", {Input(x)})), Input(f), Input(g)},
               op.node()->attrs());
}

inline Output BackToFilter(const Scope& scope, const ConvNames& names, const Operation& op,
                           const Output& x, const Output& f, const Output& g) {
  if (!DataTypeIsFloating(BaseType(g.type()))) return Output(nullptr, -1);  // int32 has no filter gradient
  return AddOp(scope, names.to_filter,
               {Input(x), Input(AddOp(scope, "Shape", {Input(f)})), Input(g)}, op.node()->attrs());
}

inline Output Forward(const Scope& scope, const ConvNames& names, const Operation& op,
                      const Output& x, const Output& f) {
  return AddOp(scope, names.forward, {Input(x), Input(f)}, op.node()->attrs());
}

template <int kRow>
Status GradConvolution(const Scope& scope, const Operation& op, const std::vector<Output>& grads,
                       std::vector<Output>* to) {
  constexpr ConvRow row = kConvRows[kRow];
  const ConvNames names = NamesOf(row.depthwise);
  const Output& u = grads[0];
  if (row.kind == CG_FORWARD) {
    const Output x = op.input(0), f = op.input(1);
    to->push_back(BackToInput(scope, names, op, x, f, u));
    to->push_back(BackToFilter(scope, names, op, x, f, u));
  } else if (row.kind == CG_INPUT_GRADIENT) {
    const Output f = op.input(1), g = op.input(2);
    to->push_back(Output(nullptr, -1));
    to->push_back(BackToFilter(scope, names, op, u, f, g));
    to->push_back(Forward(scope, names, op, u, f));
  } else {
    const Output x = op.input(0), g = op.input(2);
    to->push_back(BackToInput(scope, names, op, x, u, g));
    to->push_back(Output(nullptr, -1));
    to->push_back(Forward(scope, names, op, x, u));
  }
  return scope.status();
}

inline Status GradConv2D(const Scope& s, const Operation& op, const std::vector<Output>& grads,
                         std::vector<Output>* to) {
  return GradConvolution<0>(s, op, grads, to);
}
inline Status GradConv2DBackpropInput(const Scope& s, const Operation& op,
                                      const std::vector<Output>& grads, std::vector<Output>* to) {
  return GradConvolution<1>(s, op, grads, to);
}
inline Status GradConv2DBackpropFilter(const Scope& s, const Operation& op,
                                       const std::vector<Output>& grads, std::vector<Output>* to) {
  return GradConvolution<2>(s, op, grads, to);
}
inline Status GradDepthwiseConv2dNative(const Scope& s, const Operation& op,
                                        const std::vector<Output>& grads, std::vector<Output>* to) {
  return GradConvolution<3>(s, op, grads, to);
}
inline Status GradDepthwiseConv2dNativeBackpropInput(const Scope& s, const Operation& op,
                                                     const std::vector<Output>& grads,
                                                     std::vector<Output>* to) {
  return GradConvolution<4>(s, op, grads, to);
}
inline Status GradDepthwiseConv2dNativeBackpropFilter(const Scope& s, const Operation& op,
                                                      const std::vector<Output>& grads,
                                                      std::vector<Output>* to) {
  return GradConvolution<5>(s, op, grads, to);
}

}  // namespace table
}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TABLE_CONVOLUTIONS_H_
