// The class of the page: DepthwiseConv2dNativeBackpropFilter, every public member of it.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;

int main() {
  Scope root = Scope::NewRootScope();
  auto input = ops::Placeholder(root.WithOpName("input"), DT_FLOAT);
  auto filter_sizes = ops::Const(root.WithOpName("filter_sizes"), {3, 3, 2, 2});
  auto out_backprop = ops::Placeholder(root.WithOpName("out_backprop"), DT_FLOAT);
  const std::vector<int> strides = {1, 1, 1, 1};
  const StringPiece padding = "SAME";

  ops::DepthwiseConv2dNativeBackpropFilter plain(root, input, filter_sizes, out_backprop, strides, padding);
  auto attrs = ops::DepthwiseConv2dNativeBackpropFilter::Attrs();
  attrs = attrs.DataFormat("NHWC");
  attrs = attrs.Dilations({1, 1, 1, 1});
  ops::DepthwiseConv2dNativeBackpropFilter with(root, input, filter_sizes, out_backprop, strides, padding, attrs);
  ops::DepthwiseConv2dNativeBackpropFilter by_format(
      root, input, filter_sizes, out_backprop, {1, 2, 2, 1}, "VALID",
      ops::DepthwiseConv2dNativeBackpropFilter::DataFormat("NHWC"));
  ops::DepthwiseConv2dNativeBackpropFilter by_dilations(
      root, input, filter_sizes, out_backprop, {1, 1, 1, 1}, "VALID",
      ops::DepthwiseConv2dNativeBackpropFilter::Dilations({1, 1, 1, 1}));
  ops::DepthwiseConv2dNativeBackpropFilter explicitly(
      root, input, filter_sizes, out_backprop, {1, 1, 1, 1}, "EXPLICIT",
      ops::DepthwiseConv2dNativeBackpropFilter::ExplicitPaddings({0, 0, 1, 0, 0, 1, 0, 0}));
  TF_CHECK_OK(root.status());

  const Output as_output = plain;
  const Input as_input = plain;
  Show("name", plain.node()->name());
  Show("type", plain.node()->type_string());
  Show("output", plain.output.name());
  Show("operation", plain.operation.node()->name());
  Show("as output", as_output.name());
  Show("as input", as_input.node()->name());
  Show("second", with.node()->name());
  ShowNames("inputs", plain);

  ClientSession session(root);
  std::vector<Tensor> outputs;
  const Tensor image = Numbers(DT_FLOAT, {2, 5, 6, 2}, 1);
  Show("SAME", session.Run({{input, image}, {out_backprop, Numbers(DT_FLOAT, {2, 5, 6, 4}, 2)}}, {plain, with}, &outputs));
  Show("plain", outputs[0]);
  Show("with attributes", outputs[1]);
  Show("VALID, strided", session.Run({{input, image}, {out_backprop, Numbers(DT_FLOAT, {2, 2, 2, 4}, 3)}}, {by_format}, &outputs));
  Show("by format", outputs[0]);
  Show("VALID", session.Run({{input, image}, {out_backprop, Numbers(DT_FLOAT, {2, 3, 4, 4}, 4)}}, {by_dilations.output}, &outputs));
  Show("by dilations", outputs[0]);
  Show("EXPLICIT", session.Run({{input, image}, {out_backprop, Numbers(DT_FLOAT, {2, 4, 5, 4}, 5)}}, {explicitly.output}, &outputs));
  Show("explicit", outputs[0]);
  return 0;
}
