// What is said about mistakes. One line each: `label = CODE: message`, newlines as \n.
//
// With a number as argument only that case runs: TensorFlow ends the process in some of them, so that the golden lines
// are taken one process each. Here all run in one.
#include <cstdlib>
#include <functional>
#include <limits>

#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

// The scope's status, or if it is fine that of running what was built.
using Build = std::function<Output(const Scope&)>;

Status Try(const Build& build) {
  Scope root = Scope::NewRootScope();
  const Output output = build(root);
  if (!root.ok()) return root.status();
  ClientSession session(root);
  std::vector<Tensor> outputs;
  return session.Run({output}, &outputs);
}

Output Zeros(const Scope& scope, const TensorShape& shape, DataType dtype = DT_FLOAT) {
  Tensor tensor(dtype, shape);
  auto bytes = tensor.tensor_data();
  std::fill(const_cast<char*>(bytes.data()), const_cast<char*>(bytes.data()) + bytes.size(), '\0');
  return Const(scope, tensor);
}


Status TryHidden(const TensorShape& first, const TensorShape& second,
                 const std::function<Output(const Scope&, Output, Output)>& build) {
  Scope root = Scope::NewRootScope();
  auto a = Placeholder(root.WithOpName("a"), DT_FLOAT);
  auto b = Placeholder(root.WithOpName("b"), DT_FLOAT);
  const Output output = build(root, a, b);
  if (!root.ok()) return root.status();
  ClientSession session(root);
  std::vector<Tensor> outputs;
  Tensor x(DT_FLOAT, first);
  Tensor y(DT_FLOAT, second);
  x.flat<float>().setZero();
  y.flat<float>().setZero();
  return session.Run({{a, x}, {b, y}}, {output}, &outputs);
}

struct Case {
  const char* label;
  std::function<Status()> run;
};

using Depthwise = DepthwiseConv2dNativeBackpropFilter;

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"Conv2D input of rank 3",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D filter of rank 3",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D depths that do not fit",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 3}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D groups that do not fit",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 4}), Zeros(s, {3, 3, 2, 3}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D three strides",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1}, "SAME"); }); }},
      {"Conv2D stride of zero",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 0, 1, 1}, "SAME"); }); }},
      {"Conv2D negative stride",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, -1, 1, 1}, "SAME"); }); }},
      {"Conv2D stride over the batch",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {2, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {2, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D padding that is none",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "FULL"); }); }},
      {"Conv2D format that is none",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME", Conv2D::DataFormat("HWNC2")); }); }},
      {"Conv2D three dilations",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME", Conv2D::Dilations({1, 1, 1})); }); }},
      {"Conv2D dilation of zero",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME", Conv2D::Dilations({1, 0, 1, 1})); }); }},
      {"Conv2D dilation over the batch",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME", Conv2D::Dilations({2, 1, 1, 1})); }); }},
      {"Conv2D no explicit paddings",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "EXPLICIT"); }); }},
      {"Conv2D explicit paddings with SAME",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME", Conv2D::ExplicitPaddings({0, 0, 1, 1, 1, 1, 0, 0})); }); }},
      {"Conv2D negative explicit padding",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "EXPLICIT", Conv2D::ExplicitPaddings({0, 0, -1, 1, 1, 1, 0, 0})); }); }},
      {"Conv2D explicit padding of the batch",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "EXPLICIT", Conv2D::ExplicitPaddings({1, 0, 1, 1, 1, 1, 0, 0})); }); }},
      {"Conv2D filter larger than the image",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 2, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "VALID"); }); }},
      {"Conv2D dtypes that differ",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}, DT_DOUBLE), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D dtype it does not take",
       [] { return Try([](const Scope& s) { return Conv2D(s, Zeros(s, {1, 4, 4, 2}, DT_INT64), Zeros(s, {3, 3, 2, 2}, DT_INT64), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D hidden rank",
       [] { return TryHidden({4, 4, 2}, {3, 3, 2, 2}, [](const Scope& s, Output a, Output b) { return Conv2D(s, a, b, {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D hidden rank of the filter",
       [] { return TryHidden({1, 4, 4, 2}, {3, 3, 2}, [](const Scope& s, Output a, Output b) { return Conv2D(s, a, b, {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D hidden depths",
       [] { return TryHidden({1, 4, 4, 3}, {3, 3, 2, 2}, [](const Scope& s, Output a, Output b) { return Conv2D(s, a, b, {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2D hidden size",
       [] { return TryHidden({1, 2, 2, 2}, {3, 3, 2, 2}, [](const Scope& s, Output a, Output b) { return Conv2D(s, a, b, {1, 1, 1, 1}, "VALID"); }); }},
      {"Conv2DBackpropInput sizes of rank 2",
       [] { return Try([](const Scope& s) { return Conv2DBackpropInput(s, {{1, 4}, {4, 2}}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {1, 4, 4, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropInput three sizes",
       [] { return Try([](const Scope& s) { return Conv2DBackpropInput(s, {1, 4, 4}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {1, 4, 4, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropInput gradient of another size",
       [] { return Try([](const Scope& s) { return Conv2DBackpropInput(s, {1, 4, 4, 2}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {1, 3, 4, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropInput gradient of another batch",
       [] { return Try([](const Scope& s) { return Conv2DBackpropInput(s, {1, 4, 4, 2}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {2, 4, 4, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropInput gradient of another depth",
       [] { return Try([](const Scope& s) { return Conv2DBackpropInput(s, {1, 4, 4, 2}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {1, 4, 4, 3}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropInput sizes of floats",
       [] { return Try([](const Scope& s) { return Conv2DBackpropInput(s, {1.f, 4.f, 4.f, 2.f}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {1, 4, 4, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropFilter depth of another size",
       [] { return Try([](const Scope& s) { return Conv2DBackpropFilter(s, Zeros(s, {1, 4, 4, 3}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropFilter gradient of another size",
       [] { return Try([](const Scope& s) { return Conv2DBackpropFilter(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 2, 2, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"Conv2DBackpropFilter negative size",
       [] { return Try([](const Scope& s) { return Conv2DBackpropFilter(s, Zeros(s, {1, 4, 4, 2}), {3, -3, 2, 2}, Zeros(s, {1, 4, 4, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise strides that differ",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 2, 1}, "SAME"); }); }},
      {"depthwise three strides",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1}, "SAME"); }); }},
      {"depthwise depths that do not fit",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {1, 4, 4, 3}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise rank of the image",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {4, 4, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise rank of the filter",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {1, 4, 4, 2}), Zeros(s, {3, 3, 2}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise dilated",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {1, 6, 6, 2}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME", DepthwiseConv2dNative::Dilations({1, 2, 2, 1})); }); }},
      {"depthwise NCHW",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {1, 2, 6, 6}), Zeros(s, {3, 3, 2, 2}), {1, 1, 1, 1}, "SAME", DepthwiseConv2dNative::DataFormat("NCHW")); }); }},
      {"depthwise int32",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNative(s, Zeros(s, {1, 4, 4, 2}, DT_INT32), Zeros(s, {3, 3, 2, 2}, DT_INT32), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, sizes of rank 2",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {{3, 3}, {2, 2}}, Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, three sizes",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2}, Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, sizes of long",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), Const<int64>(s, {3, 3, 2, 2}), Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, rank of the image",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, rank of the gradient",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, depth",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 3}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, depth of the gradient",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 5}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, rows of the gradient",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 3, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, batch of the gradient",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {2, 4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, strides that differ",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 2, 4}), {1, 1, 2, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, stride of the batch",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {2, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}), {2, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, two strides",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}), {1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, stride of zero",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}), {1, 0, 0, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, padding that is none",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "same"); }); }},
      {"depthwise gradient of the filter, format that is none",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME", Depthwise::DataFormat("NWHC")); }); }},
      {"depthwise gradient of the filter, dtypes that differ",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 4, 4, 4}, DT_HALF), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the filter, explicit paddings with VALID",
       [] { return Try([](const Scope& s) { return Depthwise(s, Zeros(s, {1, 4, 4, 2}), {3, 3, 2, 2}, Zeros(s, {1, 2, 2, 4}), {1, 1, 1, 1}, "VALID", Depthwise::ExplicitPaddings({0, 0, 1, 1, 1, 1, 0, 0})); }); }},
      {"depthwise gradient of the input, three sizes",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNativeBackpropInput(s, {1, 4, 4}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"depthwise gradient of the input, columns of the gradient",
       [] { return Try([](const Scope& s) { return DepthwiseConv2dNativeBackpropInput(s, {1, 4, 4, 2}, Zeros(s, {3, 3, 2, 2}), Zeros(s, {1, 4, 3, 4}), {1, 1, 1, 1}, "SAME"); }); }},
      {"MatMul of a vector", [] { return Try([](const Scope& s) { return MatMul(s, {1.f, 2.f}, {{1.f}, {2.f}}); }); }},
      {"MatMul sizes", [] { return Try([](const Scope& s) { return MatMul(s, {{1.f, 2.f}}, {{1.f}, {2.f}, {3.f}}); }); }},
      {"MatMul hidden sizes", [] { return TryHidden({1, 2}, {3, 1}, [](const Scope& s, Output a, Output b) { return MatMul(s, a, b); }); }},
      {"MatMul of integers and floats", [] { return Try([](const Scope& s) { return MatMul(s, {{1, 2}}, {{1.f}, {2.f}}); }); }},
      {"Add that does not broadcast", [] { return Try([](const Scope& s) { return Add(s, {1.f, 2.f}, {1.f, 2.f, 3.f}); }); }},
      {"Add hidden shapes", [] { return TryHidden({2}, {3}, [](const Scope& s, Output a, Output b) { return Add(s, a, b); }); }},
      {"Add of booleans", [] { return Try([](const Scope& s) { return Add(s, true, false); }); }},
      {"BiasAdd of a matrix", [] { return Try([](const Scope& s) { return BiasAdd(s, {{1.f, 2.f}}, {{1.f, 2.f}}); }); }},
      {"BiasAdd of another size", [] { return Try([](const Scope& s) { return BiasAdd(s, {{1.f, 2.f}}, {1.f, 2.f, 3.f}); }); }},
      {"Reshape to another size", [] { return Try([](const Scope& s) { return Reshape(s, {1.f, 2.f, 3.f}, {2, 2}); }); }},
      {"Reshape with two unknown sizes", [] { return Try([](const Scope& s) { return Reshape(s, {1.f, 2.f, 3.f}, {-1, -1}); }); }},
      {"Reshape to a negative size", [] { return Try([](const Scope& s) { return Reshape(s, {1.f, 2.f, 3.f}, {-2}); }); }},
      {"Transpose by too few", [] { return Try([](const Scope& s) { return Transpose(s, {{1.f, 2.f}}, {0}); }); }},
      {"Transpose by a repeated one", [] { return Try([](const Scope& s) { return Transpose(s, {{1.f, 2.f}}, {0, 0}); }); }},
      {"Transpose out of range", [] { return Try([](const Scope& s) { return Transpose(s, {{1.f, 2.f}}, {0, 2}); }); }},
      {"Sum over an axis that is not there", [] { return Try([](const Scope& s) { return Sum(s, {{1.f, 2.f}}, 2); }); }},
      {"Mean over an axis twice", [] { return Try([](const Scope& s) { return Mean(s, {{1.f, 2.f}}, {0, 0}); }); }},
      {"ArgMax over an axis that is not there", [] { return Try([](const Scope& s) { return ArgMax(s, {{1.f, 2.f}}, 2); }); }},
      {"ArgMax of nothing", [] { return Try([](const Scope& s) { return ArgMax(s, Zeros(s, {0, 2}), 0); }); }},
      {"Softmax of a scalar", [] { return Try([](const Scope& s) { return Softmax(s, 1.f); }); }},
      {"SoftmaxCrossEntropyWithLogits sizes",
       [] { return Try([](const Scope& s) { return SoftmaxCrossEntropyWithLogits(s, {{1.f, 2.f}}, {{1.f, 2.f, 3.f}}).loss; }); }},
      {"MaxPool of rank 3", [] { return Try([](const Scope& s) { return MaxPool(s, Zeros(s, {4, 4, 2}), {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME"); }); }},
      {"MaxPool window over the batch", [] { return Try([](const Scope& s) { return MaxPool(s, Zeros(s, {2, 4, 4, 2}), {2, 2, 2, 1}, {1, 2, 2, 1}, "SAME"); }); }},
      {"MaxPool three sizes", [] { return Try([](const Scope& s) { return MaxPool(s, Zeros(s, {1, 4, 4, 2}), {1, 2, 2}, {1, 2, 2, 1}, "SAME"); }); }},
      {"MaxPool stride of zero", [] { return Try([](const Scope& s) { return MaxPool(s, Zeros(s, {1, 4, 4, 2}), {1, 2, 2, 1}, {1, 0, 2, 1}, "SAME"); }); }},
      {"MaxPool window larger than the image", [] { return Try([](const Scope& s) { return MaxPool(s, Zeros(s, {1, 2, 2, 2}), {1, 3, 3, 1}, {1, 1, 1, 1}, "VALID"); }); }},
      {"OneHot negative depth", [] { return Try([](const Scope& s) { return OneHot(s, {0, 1}, -2, 1.f, 0.f); }); }},
      {"Range of no step", [] { return Try([](const Scope& s) { return Range(s, 0, 10, 0); }); }},
      {"Range the wrong way", [] { return Try([](const Scope& s) { return Range(s, 10, 0, 1); }); }},
      {"AddN of nothing", [] { return Try([](const Scope& s) { return AddN(s, std::initializer_list<Input>{}); }); }},
      {"AddN of several shapes", [] { return Try([](const Scope& s) { return AddN(s, std::initializer_list<Input>{Zeros(s, {2}), Zeros(s, {3})}); }); }},
      {"RandomNormal of a negative size", [] { return Try([](const Scope& s) { return RandomNormal(s, {-1, 2}, DT_FLOAT); }); }},
      {"RandomNormal of integers", [] { return Try([](const Scope& s) { return RandomNormal(s, {1, 2}, DT_INT32); }); }},
      {"Variable not set", [] { return Try([](const Scope& s) { return Square(s, Variable(s.WithOpName("w"), {2}, DT_FLOAT)); }); }},
      {"Assign another shape", [] { return Try([](const Scope& s) { return Assign(s, Variable(s.WithOpName("w"), {2}, DT_FLOAT), {1.f, 2.f, 3.f}); }); }},
      {"Assign another dtype", [] { return Try([](const Scope& s) { return Assign(s, Variable(s.WithOpName("w"), {2}, DT_FLOAT), {1, 2}); }); }},
      {"Assign to a constant", [] { return Try([](const Scope& s) { return Assign(s, Const(s, 1.f), 2.f); }); }},
      {"ApplyGradientDescent of another shape",
       [] { return Try([](const Scope& s) { return ApplyGradientDescent(s, Variable(s.WithOpName("w"), {2}, DT_FLOAT), 0.1f, {1.f, 2.f, 3.f}); }); }},
      {"ApplyGradientDescent with a list of rates",
       [] { return Try([](const Scope& s) { return ApplyGradientDescent(s, Variable(s.WithOpName("w"), {2}, DT_FLOAT), {0.1f, 0.2f}, {1.f, 2.f}); }); }},
      {"Const too few numbers", [] { return Try([](const Scope& s) { return Const(s, {1.f}, {2, 2}); }); }},
      {"Const ragged", [] { return Try([](const Scope& s) { return Const(s, {{1.f, 2.f}, {3.f}}); }); }},
      {"input ragged", [] { return Try([](const Scope& s) { return Add(s, {{1.f, 2.f}, {3.f}}, 1.f); }); }},
      {"name of an op with a blank", [] { return Try([](const Scope& s) { return Const(s.WithOpName("a b"), 1.f); }); }},
      {"name of an op with a slash", [] { return Try([](const Scope& s) { return Const(s.WithOpName("a/b"), 1.f); }); }},
      {"name of an op with an underscore first", [] { return Try([](const Scope& s) { return Const(s.WithOpName("_a"), 1.f); }); }},
      {"name of a scope with a blank", [] { return Try([](const Scope& s) { return Const(s.NewSubScope("a b"), 1.f); }); }},
      {"Placeholder not fed", [] { return Try([](const Scope& s) { return Square(s, Placeholder(s.WithOpName("x"), DT_FLOAT)); }); }},
      {"Placeholder not fed, with a shape",
       [] { return Try([](const Scope& s) { return Square(s, Placeholder(s.WithOpName("x"), DT_FLOAT, Placeholder::Shape({-1, 3}))); }); }},
      {"Placeholder itself not fed", [] { return Try([](const Scope& s) { return Placeholder(s.WithOpName("x"), DT_FLOAT); }); }},
      {"fetch of nothing", [] {
         Scope root = Scope::NewRootScope();
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run(std::vector<Output>{}, &outputs);
       }},
      {"fetch of an output that is not there", [] {
         return Try([](const Scope& s) { return Output(Const(s, 1.f).op(), 3); });
       }},
      {"fetch from another graph", [] {
         Scope root = Scope::NewRootScope();
         Scope other = Scope::NewRootScope();
         const Output stranger = Const(other.WithOpName("stranger"), 1.f);
         const Output own = Const(root, 1.f);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({own, stranger}, &outputs);
       }},
      {"feed to another graph", [] {
         Scope root = Scope::NewRootScope();
         Scope other = Scope::NewRootScope();
         const Output stranger = Placeholder(other.WithOpName("stranger"), DT_FLOAT);
         const Output own = Const(root, 1.f);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({{stranger, 1.f}}, {own}, &outputs);
       }},
      {"target of another graph", [] {
         Scope root = Scope::NewRootScope();
         Scope other = Scope::NewRootScope();
         const Output stranger = Const(other.WithOpName("stranger"), 1.f);
         const Output own = Const(root, 1.f);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({}, {own}, {stranger.op()}, &outputs);
       }},
      {"fed and fetched", [] {
         Scope root = Scope::NewRootScope();
         const Output x = Placeholder(root.WithOpName("x"), DT_FLOAT);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({{x, 1.f}}, {x}, &outputs);
       }},
      {"feed of another dtype", [] {
         Scope root = Scope::NewRootScope();
         const Output x = Placeholder(root.WithOpName("x"), DT_FLOAT);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({{x, 1}}, {Square(root, x)}, &outputs);
       }},
      {"feed of another shape", [] {
         Scope root = Scope::NewRootScope();
         const Output x = Placeholder(root.WithOpName("x"), DT_FLOAT, Placeholder::Shape({2, -1}));
         const Output y = Square(root, x);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({{x, {1.f, 2.f}}}, {y}, &outputs);
       }},
      {"feed of a tensor without a type", [] {
         Scope root = Scope::NewRootScope();
         const Output x = Placeholder(root.WithOpName("x"), DT_FLOAT);
         const Output y = Square(root, x);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({{x, Tensor()}}, {y}, &outputs);
       }},
      {"feed of a ragged list", [] {
         Scope root = Scope::NewRootScope();
         const Output x = Placeholder(root.WithOpName("x"), DT_FLOAT);
         const Output y = Square(root, x);
         ClientSession session(root);
         std::vector<Tensor> outputs;
         return session.Run({{x, {{1.f}, {1.f, 2.f}}}}, {y}, &outputs);
       }},
      {"an input of another graph", [] {
         Scope other = Scope::NewRootScope();
         const Output stranger = Const(other.WithOpName("stranger"), 1.f);
         return Try([&](const Scope& s) { return Square(s, stranger); });
       }},
      {"an input that is no output", [] { return Try([](const Scope& s) { return Square(s, Output()); }); }},
      {"an input after an error", [] {
         return Try([](const Scope& s) {
           auto bad = MatMul(s, {1.f}, {1.f});
           return Square(s, bad);
         });
       }},
      {"an output number that is not there", [] { return Try([](const Scope& s) { return Square(s, Output(Const(s, 1.f).op(), 2)); }); }},
      {"gradient through ArgMax", [] {
         Scope root = Scope::NewRootScope();
         auto x = Const(root, {1.f, 2.f});
         auto y = ArgMax(root, x, 0);
         std::vector<Output> grads;
         return AddSymbolicGradients(root, {y}, {x}, &grads);
       }},
      {"gradient of what does not depend", [] {
         Scope root = Scope::NewRootScope();
         auto x = Const(root, {1.f, 2.f});
         auto y = Square(root, Const(root, 1.f));
         std::vector<Output> grads;
         return AddSymbolicGradients(root, {y}, {x}, &grads);
       }},
      {"gradient with too many weights", [] {
         Scope root = Scope::NewRootScope();
         auto x = Const(root, {1.f, 2.f});
         auto y = Square(root, x);
         std::vector<Output> grads;
         return AddSymbolicGradients(root, {y}, {x}, {Const(root, 1.f), Const(root, 1.f)}, &grads);
       }},
      {"gradient of nothing", [] {
         Scope root = Scope::NewRootScope();
         auto x = Const(root, {1.f, 2.f});
         std::vector<Output> grads;
         return AddSymbolicGradients(root, std::vector<Output>{}, {x}, &grads);
       }},
      {"gradient through a filter's gradient", [] {
         Scope root = Scope::NewRootScope();
         auto x = Zeros(root, {1, 4, 4, 2});
         auto y = Conv2DBackpropFilter(root, x, {3, 3, 2, 2}, Zeros(root, {1, 4, 4, 2}), {1, 1, 1, 1}, "SAME");
         std::vector<Output> grads;
         return AddSymbolicGradients(root, {y}, {x}, &grads);
       }},
      {"gradient through a depthwise filter's gradient", [] {
         Scope root = Scope::NewRootScope();
         auto x = Zeros(root, {1, 4, 4, 2});
         auto y = Depthwise(root, x, {3, 3, 2, 2}, Zeros(root, {1, 4, 4, 4}), {1, 1, 1, 1}, "SAME");
         std::vector<Output> grads;
         return AddSymbolicGradients(root, {y}, {x}, &grads);
       }},
      {"gradient through a ReluGrad", [] {
         Scope root = Scope::NewRootScope();
         auto x = Const(root, {1.f, 2.f});
         std::vector<Output> first;
         const Status status = AddSymbolicGradients(root, {Relu(root, x)}, {x}, &first);
         if (!status.ok()) return status;
         std::vector<Output> grads;
         return AddSymbolicGradients(root, {first[0]}, {x}, &grads);
       }},
  };
  return cases;
}

void Say(const Case& each) {
  const Status status = each.run();
  const std::string text = status.ok() ? std::string("OK") : status.ToString();
  std::string line;
  for (const char letter : text) {
    if (letter == '\n') {
      line += "\\n";
    } else if (letter == '\t') {
      line += "\\t";
    } else {
      line += letter;
    }
  }
  Show(each.label, line);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const size_t at = static_cast<size_t>(std::atoi(argv[1]));
    if (at >= Cases().size()) return 77;
    std::printf("%s\n", Cases()[at].label);
    std::fflush(stdout);
    Say(Cases()[at]);
    return 0;
  }
  for (const Case& each : Cases()) Say(each);
  return 0;
}
