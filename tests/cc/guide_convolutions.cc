// The six convolution ops, with attributes as `Attrs()` chains and as static setters.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/nn_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

void Run(const Scope& root, const std::string& label, const Output& output) {
  Show(label + " is ok", root.status());
  if (!root.ok()) return;
  ClientSession session(root);
  std::vector<Tensor> outputs;
  const Status status = session.Run({output}, &outputs);
  if (status.ok()) {
    Show(label, outputs[0]);
  } else {
    Show(label, status);
  }
}

void RunAll(DataType dtype) {
  Scope root = Scope::NewRootScope();
  const std::string name = DataTypeString(dtype) + " ";
  auto image = Const(root, Numbers(dtype, {2, 5, 6, 3}, 1));
  auto filter = Const(root, Numbers(dtype, {3, 2, 3, 2}, 2));
  auto half_size = Const(root, Numbers(dtype, {2, 3, 3, 2}, 3));
  auto depthwise_half = Const(root, Numbers(dtype, {2, 3, 3, 6}, 4));

  Run(root, name + "Conv2D", Conv2D(root, image, filter, {1, 2, 2, 1}, "SAME"));
  Run(root, name + "Conv2D valid", Conv2D(root, image, filter, {1, 1, 1, 1}, "VALID", Conv2D::DataFormat("NHWC")));
  Run(root, name + "Conv2D dilated",
      Conv2D(root, image, filter, {1, 1, 1, 1}, "SAME", Conv2D::Attrs().UseCudnnOnGpu(false).Dilations({1, 2, 2, 1})));
  Run(root, name + "Conv2D explicit",
      Conv2D(root, image, filter, {1, 1, 2, 1}, "EXPLICIT", Conv2D::ExplicitPaddings({0, 0, 2, 1, 0, 1, 0, 0})));
  Run(root, name + "Conv2DBackpropInput",
      Conv2DBackpropInput(root, {2, 5, 6, 3}, filter, half_size, {1, 2, 2, 1}, "SAME"));
  Run(root, name + "Conv2DBackpropInput explicit",
      Conv2DBackpropInput(root, Const(root, {2, 5, 5, 3}), filter, half_size, {1, 2, 2, 1}, "EXPLICIT",
                          Conv2DBackpropInput::Attrs().ExplicitPaddings({0, 0, 1, 1, 0, 1, 0, 0})));
  Run(root, name + "Conv2DBackpropFilter",
      Conv2DBackpropFilter(root, image, {3, 2, 3, 2}, half_size, {1, 2, 2, 1}, "SAME"));
  Run(root, name + "Conv2DBackpropFilter formatted",
      Conv2DBackpropFilter(root, image, {3, 2, 3, 2}, half_size, {1, 2, 2, 1}, "SAME",
                           Conv2DBackpropFilter::UseCudnnOnGpu(true).DataFormat("NHWC")));
  Run(root, name + "DepthwiseConv2dNative", DepthwiseConv2dNative(root, image, filter, {1, 2, 2, 1}, "SAME"));
  Run(root, name + "DepthwiseConv2dNative valid",
      DepthwiseConv2dNative(root, image, filter, {1, 1, 1, 1}, "VALID", DepthwiseConv2dNative::DataFormat("NHWC")));
  Run(root, name + "DepthwiseConv2dNative explicit",
      DepthwiseConv2dNative(root, image, filter, {1, 1, 1, 1}, "EXPLICIT",
                            DepthwiseConv2dNative::ExplicitPaddings({0, 0, 1, 2, 1, 0, 0, 0})));
  Run(root, name + "DepthwiseConv2dNativeBackpropInput",
      DepthwiseConv2dNativeBackpropInput(root, {2, 5, 6, 3}, filter, depthwise_half, {1, 2, 2, 1}, "SAME"));
  Run(root, name + "DepthwiseConv2dNativeBackpropFilter",
      DepthwiseConv2dNativeBackpropFilter(root, image, {3, 2, 3, 2}, depthwise_half, {1, 2, 2, 1}, "SAME"));
}

}  // namespace

int main() {
  RunAll(DT_FLOAT);
  RunAll(DT_DOUBLE);
  RunAll(DT_HALF);
  RunAll(DT_BFLOAT16);
  return 0;
}
