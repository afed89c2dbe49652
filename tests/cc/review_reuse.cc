// Element-wise nodes write over inputs that nobody needs any more, and over no others.
#include <cstdio>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;       // NOLINT
using namespace tensorflow::ops;  // NOLINT

namespace {

int failures = 0;

void Expect(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

bool Is(const Tensor& tensor, const std::vector<float>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.flat<float>()(static_cast<int>(i)) != values[i]) return false;
  }
  return tensor.NumElements() == static_cast<std::int64_t>(values.size());
}

Tensor Fed(float a, float b) {
  Tensor tensor(DT_FLOAT, TensorShape({2}));
  tensor.flat<float>()(0) = a;
  tensor.flat<float>()(1) = b;
  return tensor;
}

// A chain of steps takes the memory of its first, and what is fed keeps its own.
void Chains() {
  const Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT);
  auto y = Add(root, x, x);
  Output chain = Square(root, y);
  for (int i = 0; i < 3; ++i) chain = Negate(root, Add(root, chain, {1.0f, 1.0f}));
  auto twice = Multiply(root, y, y);
  auto shared = Subtract(root, Reshape(root, twice, {2}), Reshape(root, twice, {2}));
  auto sum = AddN(root, std::initializer_list<Input>{twice, x, shared});
  auto biased = BiasAdd(root, Reshape(root, sum, {1, 2}), sum);
  const ClientSession session(root);
  const Tensor fed = Fed(1, 2);
  std::vector<Tensor> out;
  for (int i = 0; i < 2; ++i) {
    TF_CHECK_OK(session.Run({{x, fed}}, {chain, y, sum, twice, biased}, &out));
    Expect(Is(out[0], {-5, -17}), "the chain");
    Expect(Is(out[1], {2, 4}), "what is fetched stays");
    Expect(Is(out[2], {5, 18}), "the sum");
    Expect(Is(out[3], {4, 16}), "what the sum read stays");
    Expect(Is(out[4], {10, 36}), "a tensor and a reshape of it");
    Expect(Is(fed, {1, 2}), "what was fed stays");
    TF_CHECK_OK(session.Run({{x, fed}}, {biased, chain}, &out));
    Expect(Is(out[0], {10, 36}) && Is(out[1], {-5, -17}), "with nothing else fetched");
    Expect(Is(fed, {1, 2}), "what was fed stays again");
  }
}

// Variables and constants keep their values, whatever is computed from them.
void Variables() {
  const Scope root = Scope::NewRootScope();
  auto v = Variable(root, {2}, DT_FLOAT);
  auto constant = Const(root, {3.0f, 5.0f});
  auto start = Assign(root, v, Negate(root, constant));
  auto next = Assign(root, v, Sqrt(root, Square(root, Multiply(root, v, constant))));
  auto step = ApplyGradientDescent(root, v, 0.5f, Square(root, v));
  const ClientSession session(root);
  std::vector<Tensor> out;
  TF_CHECK_OK(session.Run({start}, &out));
  Expect(Is(out[0], {-3, -5}), "the first value");
  for (int i = 0; i < 2; ++i) {
    TF_CHECK_OK(session.Run({Negate(root, v), Relu(root, v), Square(root, constant)}, &out));
    Expect(Is(out[0], {3, 5}) && Is(out[1], {0, 0}) && Is(out[2], {9, 25}), "from the Variable");
    TF_CHECK_OK(session.Run({v, constant}, &out));
    Expect(Is(out[0], {-3, -5}) && Is(out[1], {3, 5}), "the Variable and the constant");
  }
  const Tensor held = out[0];
  TF_CHECK_OK(session.Run({step}, &out));
  Expect(Is(out[0], {-7.5f, -17.5f}) && Is(held, {-3, -5}), "a step");
  TF_CHECK_OK(session.Run({next}, &out));
  Expect(Is(out[0], {22.5f, 87.5f}), "the next value");
}

// Many gradients arrive at one tensor: types of a long list are compared once each.
void Many() {
  const Scope root = Scope::NewRootScope();
  auto x = Placeholder(root, DT_FLOAT, Placeholder::Shape({2}));
  Output y = x;
  constexpr int kCount = 20000;
  for (int i = 1; i < kCount; ++i) y = Add(root, y, x);
  std::vector<Output> grads;
  TF_CHECK_OK(AddSymbolicGradients(root, {y}, {x}, &grads));
  const ClientSession session(root);
  std::vector<Tensor> out;
  TF_CHECK_OK(session.Run({{x, {1.0f, 2.0f}}}, {y, grads[0]}, &out));
  Expect(Is(out[0], {kCount, 2 * kCount}), "a long chain");
  Expect(Is(out[1], {kCount, kCount}), "its gradient");
}

}  // namespace

int main() {
  Chains();
  Variables();
  Many();
  std::puts(failures == 0 ? "ok" : "failed");
  return failures == 0 ? 0 : 1;
}
