// Symbolic gradients: AddSymbolicGradients in both forms, names and numbers.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

void Fetch(const Scope& root, const std::string& label, const std::vector<Output>& wanted) {
  ClientSession session(root);
  std::vector<Tensor> outputs;
  const Status status = session.Run(wanted, &outputs);
  Show(label, status);
  for (size_t i = 0; i < outputs.size(); ++i) Show(label + " " + std::to_string(i), outputs[i]);
}

}  // namespace

int main() {
  {
    Scope root = Scope::NewRootScope();
    auto x = Const(root, {{1.f, 2.f}, {3.f, 4.f}});
    auto w = Const(root, {{0.5f, -1.f}, {2.f, 0.25f}});
    auto y = MatMul(root, x, w);
    std::vector<Output> grads;
    TF_CHECK_OK(AddSymbolicGradients(root, {y}, {x, w}, &grads));
    Show("matmul", std::to_string(grads.size()));
    Fetch(root, "matmul", {grads[0], grads[1]});
    std::vector<Output> weighted;
    TF_CHECK_OK(AddSymbolicGradients(root, {y}, {w}, {Const(root, {{1.f, 0.f}, {0.f, 1.f}})}, &weighted));
    Fetch(root, "matmul weighted", weighted);
  }
  {
    Scope root = Scope::NewRootScope();
    auto x = Const(root, {0.5f, 1.5f, 2.f});
    auto y = Multiply(root, Tanh(root, x), Exp(root, Negate(root, Square(root, x))));
    auto z = Add(root, y, Sigmoid(root, x));
    auto loss = L2Loss(root, z);
    std::vector<Output> grads;
    Show("elementwise", AddSymbolicGradients(root, {loss}, {x, z}, &grads));
    Fetch(root, "elementwise", grads);
  }
  {
    Scope root = Scope::NewRootScope();
    auto x = Const(root, {{1.f, -2.f, 3.f}, {0.f, 1.f, 1.f}});
    auto b = Const(root, {0.1f, 0.2f, 0.3f});
    auto hidden = Relu(root, BiasAdd(root, x, b));
    auto scores = Softmax(root, hidden);
    auto mean = Mean(root, Multiply(root, scores, {{1.f, 2.f, 4.f}}), {0, 1});
    auto sum = Sum(root, LogSoftmax(root, hidden), 1);
    std::vector<Output> grads;
    Show("two losses", AddSymbolicGradients(root, {mean, sum}, {x, b}, &grads));
    Fetch(root, "two losses", grads);
  }
  {
    Scope root = Scope::NewRootScope();
    auto logits = Const(root, {{1.f, 2.f, 0.f}, {-1.f, 0.5f, 2.f}});
    auto labels = Const(root, {{0.f, 1.f, 0.f}, {0.25f, 0.25f, 0.5f}});
    auto cross = SoftmaxCrossEntropyWithLogits(root, logits, labels);
    auto loss = Mean(root, cross.loss, 0);
    std::vector<Output> grads;
    Show("cross entropy", AddSymbolicGradients(root, {loss}, {logits}, &grads));
    Fetch(root, "cross entropy", {loss, cross.loss, cross.backprop, grads[0]});
  }
  {
    Scope root = Scope::NewRootScope();
    auto image = Const(root, Numbers(DT_FLOAT, {1, 4, 4, 2}, 3));
    auto filter = Const(root, Numbers(DT_FLOAT, {3, 3, 2, 2}, 4));
    auto convolved = Conv2D(root, image, filter, {1, 2, 2, 1}, "SAME");
    auto pooled = MaxPool(root, convolved, {1, 2, 2, 1}, {1, 1, 1, 1}, "VALID");
    auto loss = Sum(root, Square(root, pooled), {0, 1, 2, 3});
    std::vector<Output> grads;
    Show("convolution", AddSymbolicGradients(root, {loss}, {image, filter}, &grads));
    Fetch(root, "convolution", {loss, grads[0], grads[1]});
    Show("type of the gradient", grads[1].node()->type_string());
    Show("of its input", grads[1].op().input(0).node()->type_string());
  }
  {
    Scope root = Scope::NewRootScope();
    auto x = Const(root, {{1.f, 2.f}});
    auto y = Reshape(root, Transpose(root, Cast(root, x, DT_DOUBLE), {1, 0}), {2});
    auto loss = Sum(root, Multiply(root, y, Const<double>(root, {3.0, 5.0})), 0);
    std::vector<Output> grads;
    Show("arrays", AddSymbolicGradients(root, {loss}, {x}, &grads));
    Fetch(root, "arrays", {loss, grads[0]});
  }
  return 0;
}
