// Names, gradients, Variables, long chains and threads of the C++ API. Prints nothing and returns 0 if all is well.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "convgrad/cc/convgrad.h"

using namespace convgrad;
using namespace convgrad::ops;

#define CHECK(x)                                              \
  do {                                                        \
    if (!(x)) {                                               \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #x);     \
      std::exit(1);                                           \
    }                                                         \
  } while (0)

static void Names() {
  const Scope s = Scope::NewRootScope();
  const auto a = Const(s, 1.f);
  CHECK(Add(s, a, 3.f).node()->input(1).name() == "Const_1/Const:0");
  CHECK(Neg(s.WithOpName("n", "_", 3), a).node()->name() == "n_3");
  CHECK(Neg(s.NewSubScope("sub"), a).node()->name() == "sub/Negate");
  CHECK(Neg(s.NewSubScope("sub"), a).node()->name() == "sub_1/Negate");
  CHECK(Neg(s, a).node()->type_string() == "Neg");
  CHECK(s.ok());
  CHECK(Neg(s.WithOpName("a b"), a).node() == nullptr);
  CHECK(s.status().ToString() ==
        "INVALID_ARGUMENT: Node 'a b': Node name contains invalid characters");
}

static void Views() {
  Tensor t(DT_FLOAT, TensorShape({2, 3}));
  t.flat<float>().setZero();
  CHECK(t.flat<int>().size() == 0 && t.flat<int>()(5) == 0);
  CHECK((t.matrix<float>()(7, 7) == 0.f));
  CHECK(t.DebugString() == "Tensor<type: float shape: [2,3] values: [0 0 0]...>");
}

static void Variables() {
  const Scope s = Scope::NewRootScope();
  const auto v = Variable(s, {}, DT_FLOAT);
  const auto set = Assign(s, v, 1.f);
  const auto step = ApplyGradientDescent(s, v, 1.f, -1.f);
  const ClientSession session(s);
  std::vector<Tensor> out;
  CHECK(session.Run({v}, &out).code() == error::FAILED_PRECONDITION);
  CHECK(session.Run({set}, &out).ok());
  CHECK(session.Run({}, {v}, {step.operation}, &out).ok() && out[0].scalar<float>()() == 1.f);
  CHECK(session.Run({v}, &out).ok() && out[0].scalar<float>()() == 2.f);
  const auto after = Const(s.WithControlDependencies(step.out), 5.f);
  CHECK(session.Run({after}, &out).ok());
  CHECK(session.Run({v}, &out).ok() && out[0].scalar<float>()() == 3.f);
}

static void LongChain() {
  const Scope s = Scope::NewRootScope();
  const Output x = Placeholder(s, DT_FLOAT, Placeholder::Shape({}));
  Output y = x;
  for (int i = 0; i < 100000; ++i) y = Neg(s.WithOpName("n", i), y);
  std::vector<Output> grads;
  CHECK(AddSymbolicGradients(s, {y}, {x}, &grads).ok());
  std::vector<Tensor> out;
  CHECK(ClientSession(s).Run({{x, 2.f}}, {y, grads[0]}, &out).ok());
  CHECK(out[0].scalar<float>()() == 2.f && out[1].scalar<float>()() == 1.f);
}

static void Threads() {
  const Scope s = Scope::NewRootScope();
  const auto x = Placeholder(s, DT_FLOAT);
  const auto y = Square(s, x);
  const ClientSession session(s);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int j = 0; j < 200; ++j) {
        std::vector<Tensor> out;
        CHECK(session.Run({{x, static_cast<float>(i)}}, {y}, &out).ok());
        CHECK(out[0].scalar<float>()() == static_cast<float>(i * i));
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

int main() {
  Names();
  Views();
  Variables();
  LongChain();
  Threads();
}
