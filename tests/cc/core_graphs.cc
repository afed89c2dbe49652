// Names, gradients, Variables, long chains and threads of the C++ API. Prints nothing and returns 0 if all is well.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "convgrad/cc/convgrad.h"

using namespace convgrad;
using namespace convgrad::ops;

#define EXPECT(x)                                              \
  do {                                                        \
    if (!(x)) {                                               \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #x);     \
      std::exit(1);                                           \
    }                                                         \
  } while (0)

static void Names() {
  const Scope s = Scope::NewRootScope();
  const auto a = Const(s, 1.f);
  EXPECT(Add(s, a, 3.f).node()->input(1).name() == "Const_1/Const:0");
  EXPECT(Neg(s.WithOpName("n", "_", 3), a).node()->name() == "n_3");
  EXPECT(Neg(s.NewSubScope("sub"), a).node()->name() == "sub/Negate");
  EXPECT(Neg(s.NewSubScope("sub"), a).node()->name() == "sub_1/Negate");
  EXPECT(Neg(s, a).node()->type_string() == "Neg");
  EXPECT(s.ok());
  EXPECT(Neg(s.WithOpName("a b"), a).node() == nullptr);
  EXPECT(s.status().ToString() ==
        "INVALID_ARGUMENT: Node 'a b': Node name contains invalid characters");
}

static void Views() {
  Tensor t(DT_FLOAT, TensorShape({2, 3}));
  t.flat<float>().setZero();
  EXPECT(t.flat<int>().size() == 0 && t.flat<int>()(5) == 0);
  EXPECT((t.matrix<float>()(7, 7) == 0.f));
  EXPECT(t.DebugString() == "Tensor<type: float shape: [2,3] values: [0 0 0]...>");
}

static void Variables() {
  const Scope s = Scope::NewRootScope();
  const auto v = Variable(s, {}, DT_FLOAT);
  const auto set = Assign(s, v, 1.f);
  const auto step = ApplyGradientDescent(s, v, 1.f, -1.f);
  const ClientSession session(s);
  std::vector<Tensor> out;
  EXPECT(session.Run({v}, &out).code() == error::FAILED_PRECONDITION);
  EXPECT(session.Run({set}, &out).ok());
  EXPECT(session.Run({}, {v}, {step.operation}, &out).ok() && out[0].scalar<float>()() == 1.f);
  EXPECT(session.Run({v}, &out).ok() && out[0].scalar<float>()() == 2.f);
  const auto after = Const(s.WithControlDependencies(step.out), 5.f);
  EXPECT(session.Run({after}, &out).ok());
  EXPECT(session.Run({v}, &out).ok() && out[0].scalar<float>()() == 3.f);
}

// So long that a call for each node would not fit on the stack.
static void LongChain() {
  const Scope s = Scope::NewRootScope();
  const Output x = Placeholder(s, DT_FLOAT, Placeholder::Shape({}));
  Output y = x;
  for (int i = 0; i < 30000; ++i) y = Neg(s.WithOpName("n", i), y);
  std::vector<Output> grads;
  EXPECT(AddSymbolicGradients(s, {y}, {x}, &grads).ok());
  std::vector<Tensor> out;
  EXPECT(ClientSession(s).Run({{x, 2.f}}, {y, grads[0]}, &out).ok());
  EXPECT(out[0].scalar<float>()() == 2.f && out[1].scalar<float>()() == 1.f);
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
        EXPECT(session.Run({{x, static_cast<float>(i)}}, {y}, &out).ok());
        EXPECT(out[0].scalar<float>()() == static_cast<float>(i * i));
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
  return 0;
}
