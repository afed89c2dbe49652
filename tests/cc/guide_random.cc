// Random settings of the six convolution ops, all that TensorFlow computes on CPUs. Each prints its shape and three sums.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

unsigned state = 2463534242u;

int Below(int count) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return static_cast<int>(state % static_cast<unsigned>(count));
}

template <typename T>
Tensor Sums(const Tensor& tensor) {
  double sums[3] = {0, 0, 0};
  const auto flat = tensor.flat<T>();
  for (int64 i = 0; i < tensor.NumElements(); ++i) {
    const double value = static_cast<double>(flat(i));
    sums[0] += value;
    sums[1] += value * static_cast<double>(i % 7 + 1);
    sums[2] += value * static_cast<double>(i % 5 - 2);
  }
  Tensor found(DT_DOUBLE, TensorShape({3}));
  for (int i = 0; i < 3; ++i) found.flat<double>()(i) = sums[i];
  return found;
}

struct Setting {
  int n, h, w, c, k, rows, cols, stride, dilation;
  std::string padding;
  std::vector<int> paddings;
};

int OutSize(int size, int filter, int stride, int dilation, const std::string& padding, int before, int after) {
  if (padding == "SAME") return (size + stride - 1) / stride;
  return (size + before + after - (filter - 1) * dilation - 1) / stride + 1;
}

Setting Pick(bool undilated) {
  Setting s;
  s.n = 1 + Below(2);
  s.rows = 1 + Below(4);
  s.cols = 1 + Below(3);
  s.stride = 1 + Below(3);
  s.dilation = undilated ? 1 : 1 + Below(2);
  s.h = (s.rows - 1) * s.dilation + 1 + Below(6);
  s.w = (s.cols - 1) * s.dilation + 1 + Below(6);
  s.c = 1 + Below(4);
  s.k = 1 + Below(3);
  const int kind = Below(3);
  s.padding = kind == 0 ? "SAME" : kind == 1 ? "VALID" : "EXPLICIT";
  s.paddings.assign(8, 0);
  for (size_t i = 2; i < 6; ++i) s.paddings[i] = Below(3);
  return s;
}

template <class Attrs>
Attrs AttrsOf(const Setting& s, const std::vector<int>& dilations) {
  Attrs attrs;
  attrs = attrs.Dilations(dilations);
  if (s.padding == "EXPLICIT") attrs = attrs.ExplicitPaddings(s.paddings);
  return attrs;
}

void Try(int number) {
  const int op = Below(6);
  const bool depthwise = op > 2;
  const Setting s = Pick(op != 0);
  const DataType dtype = Below(2) == 0 ? DT_FLOAT : DT_DOUBLE;
  const std::vector<int> strides = {1, s.stride, s.stride, 1};
  const std::vector<int> dilations = {1, s.dilation, s.dilation, 1};
  const bool padded = s.padding == "EXPLICIT";
  const int out_h = OutSize(s.h, s.rows, s.stride, s.dilation, s.padding, padded ? s.paddings[2] : 0, padded ? s.paddings[3] : 0);
  const int out_w = OutSize(s.w, s.cols, s.stride, s.dilation, s.padding, padded ? s.paddings[4] : 0, padded ? s.paddings[5] : 0);
  const unsigned seed = static_cast<unsigned>(number);
  Scope root = Scope::NewRootScope();
  auto image = Const(root, Numbers(dtype, {s.n, s.h, s.w, s.c}, seed));
  auto filter = Const(root, Numbers(dtype, {s.rows, s.cols, s.c, s.k}, seed + 1000));
  auto gradient = Const(root, Numbers(dtype, {s.n, out_h, out_w, depthwise ? s.c * s.k : s.k}, seed + 2000));
  auto image_sizes = Const(root, {s.n, s.h, s.w, s.c});
  auto filter_sizes = Const(root, {s.rows, s.cols, s.c, s.k});
  Output output;
  switch (op) {
    case 0: output = Conv2D(root, image, filter, strides, s.padding, AttrsOf<Conv2D::Attrs>(s, dilations)); break;
    case 1: output = Conv2DBackpropInput(root, image_sizes, filter, gradient, strides, s.padding, AttrsOf<Conv2DBackpropInput::Attrs>(s, dilations)); break;
    case 2: output = Conv2DBackpropFilter(root, image, filter_sizes, gradient, strides, s.padding, AttrsOf<Conv2DBackpropFilter::Attrs>(s, dilations)); break;
    case 3: output = DepthwiseConv2dNative(root, image, filter, strides, s.padding, AttrsOf<DepthwiseConv2dNative::Attrs>(s, dilations)); break;
    case 4: output = DepthwiseConv2dNativeBackpropInput(root, image_sizes, filter, gradient, strides, s.padding, AttrsOf<DepthwiseConv2dNativeBackpropInput::Attrs>(s, dilations)); break;
    default: output = DepthwiseConv2dNativeBackpropFilter(root, image, filter_sizes, gradient, strides, s.padding, AttrsOf<DepthwiseConv2dNativeBackpropFilter::Attrs>(s, dilations));
  }
  const std::string label = std::to_string(number) + " " + (root.ok() ? output.node()->type_string() : std::string("?")) + " " + DataTypeString(dtype);
  if (!root.ok()) {
    Show(label, root.status());
    return;
  }
  ClientSession session(root);
  std::vector<Tensor> outputs;
  const Status status = session.Run({output}, &outputs);
  if (!status.ok()) {
    Show(label, status);
    return;
  }
  Show(label + " shape", outputs[0].shape().DebugString());
  Show(label, dtype == DT_FLOAT ? Sums<float>(outputs[0]) : Sums<double>(outputs[0]));
}

}  // namespace

int main() {
  for (int i = 0; i < 200; ++i) Try(i);
  return 0;
}
