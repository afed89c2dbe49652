// Training: a straight line, then a network of two layers, both by ApplyGradientDescent on Variables.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

void FitLine() {
  Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT, Placeholder::Shape({-1, 1}));
  auto y = Placeholder(root, DT_FLOAT, Placeholder::Shape({-1, 1}));
  auto slope = Variable(root.WithOpName("slope"), {1, 1}, DT_FLOAT);
  auto offset = Variable(root.WithOpName("offset"), {1}, DT_FLOAT);
  auto set_slope = Assign(root, slope, Const(root, {{0.f}}));
  auto set_offset = Assign(root, offset, {0.f});
  auto error = Sub(root, BiasAdd(root, MatMul(root, x, slope), offset), y);
  auto loss = Mean(root, Square(root, error), {0, 1});
  std::vector<Output> grads;
  TF_CHECK_OK(AddSymbolicGradients(root, {loss}, {slope, offset}, &grads));
  auto step_slope = ApplyGradientDescent(root, slope, 0.1f, grads[0]);
  auto step_offset = ApplyGradientDescent(root, offset, 0.1f, grads[1]);

  ClientSession session(root);
  TF_CHECK_OK(session.Run({set_slope, set_offset}, nullptr));
  std::vector<Tensor> outputs;
  const ClientSession::FeedType feeds = {{x, {{-1.f}, {0.f}, {1.f}, {2.f}}}, {y, {{-3.f}, {-1.f}, {1.f}, {3.f}}}};
  for (int step = 0; step < 40; ++step) {
    TF_CHECK_OK(session.Run(feeds, {loss, grads[0], grads[1]}, &outputs));
    // Fed back: TensorFlow may otherwise change one Variable before the other's gradient is computed.
    TF_CHECK_OK(session.Run({{grads[0], outputs[1]}, {grads[1], outputs[2]}}, {}, {step_slope.out.op(), step_offset.out.op()}, nullptr));
    if (step % 10 == 0) Show("line, step " + std::to_string(step), outputs[0]);
  }
  TF_CHECK_OK(session.Run(feeds, {loss, slope, offset}, &outputs));
  Show("loss below 0.01", outputs[0].scalar<float>()() < 0.01f ? "yes" : "no");
  Show("slope", outputs[1]);
  Show("offset", outputs[2]);
}

void FitNetwork() {
  Scope scope = Scope::NewRootScope();
  auto x = Placeholder(scope, DT_FLOAT);
  auto y = Placeholder(scope, DT_FLOAT);
  auto w1 = Variable(scope, {3, 3}, DT_FLOAT);
  auto assign_w1 = Assign(scope, w1, Numbers(DT_FLOAT, {3, 3}, 1));
  auto w2 = Variable(scope, {3, 2}, DT_FLOAT);
  auto assign_w2 = Assign(scope, w2, Numbers(DT_FLOAT, {3, 2}, 2));
  auto b1 = Variable(scope, {1, 3}, DT_FLOAT);
  auto assign_b1 = Assign(scope, b1, Const(scope, 0.1f, {1, 3}));
  auto layer_1 = Tanh(scope, Tanh(scope, Add(scope, MatMul(scope, x, w1), b1)));
  auto layer_2 = Tanh(scope, MatMul(scope, layer_1, w2));
  auto penalty = AddN(scope, std::initializer_list<Input>{L2Loss(scope, w1), L2Loss(scope, w2)});
  auto loss = Add(scope, ReduceMean(scope, Square(scope, Sub(scope, layer_2, y)), {0, 1}),
                  Mul(scope, Cast(scope, 0.01, DT_FLOAT), penalty));
  std::vector<Output> grads;
  TF_CHECK_OK(AddSymbolicGradients(scope, {loss}, {w1, w2, b1}, &grads));
  auto apply_w1 = ApplyGradientDescent(scope, w1, Cast(scope, 0.05, DT_FLOAT), {grads[0]});
  auto apply_w2 = ApplyGradientDescent(scope, w2, Cast(scope, 0.05, DT_FLOAT), {grads[1]});
  auto apply_b1 = ApplyGradientDescent(scope, b1, Cast(scope, 0.05, DT_FLOAT), {grads[2]});

  ClientSession session(scope);
  TF_CHECK_OK(session.Run({assign_w1, assign_w2, assign_b1}, nullptr));
  const Tensor data = Numbers(DT_FLOAT, {5, 3}, 7);
  const Tensor wanted = Numbers(DT_FLOAT, {5, 2}, 8);
  std::vector<Tensor> outputs;
  TF_CHECK_OK(session.Run({{x, data}, {y, wanted}}, {loss, grads[0], grads[1], grads[2]}, &outputs));
  Show("first loss", outputs[0]);
  Show("gradient of w1", outputs[1]);
  Show("gradient of w2", outputs[2]);
  Show("gradient of b1", outputs[3]);
  for (int step = 0; step < 20; ++step) {
    TF_CHECK_OK(session.Run({{x, data}, {y, wanted}}, grads, &outputs));
    TF_CHECK_OK(session.Run({{grads[0], outputs[0]}, {grads[1], outputs[1]}, {grads[2], outputs[2]}}, {apply_w1, apply_w2, apply_b1}, nullptr));
  }
  TF_CHECK_OK(session.Run({{x, data}, {y, wanted}}, {loss, w1, w2, b1, layer_2}, &outputs));
  Show("last loss", outputs[0]);
  Show("w1", outputs[1]);
  Show("w2", outputs[2]);
  Show("b1", outputs[3]);
  Show("layer 2", outputs[4]);
}

}  // namespace

int main() {
  FitLine();
  FitNetwork();
  return 0;
}
