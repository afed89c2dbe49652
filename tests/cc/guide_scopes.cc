// Scopes: names of ops, of children of scopes, of constants made on the fly, and status.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

// A layer as a function: what it makes is named below the scope it is given.
Output Linear(const Scope& scope, Input x, int width, int seed) {
  auto weights = Const(scope.WithOpName("weights"), Numbers(DT_FLOAT, TensorShape({3, width}), static_cast<unsigned>(seed)));
  auto product = MatMul(scope, x, weights);
  return BiasAdd(scope, product, Const(scope.WithOpName("bias"), 0.5f, {width}));
}

}  // namespace

int main() {
  Scope root = Scope::NewRootScope();
  auto a = Const(root, 1.f);
  auto b = Const(root, 2.f);
  auto c = Const(root, 3.f);
  ShowNames("first", a);
  ShowNames("second", b);
  ShowNames("third", c);
  auto named = Add(root.WithOpName("sum"), a, b);
  auto again = Add(root.WithOpName("sum"), a, b);
  auto fragments = Add(root.WithOpName("sum", 3, "_of_", "all"), named, again);
  ShowNames("fragments", fragments);
  Scope held = root.WithOpName("held");
  ShowNames("held once", Add(held, a, b));
  ShowNames("held twice", Add(held, a, b));

  Scope linear = root.NewSubScope("linear");
  auto x = Placeholder(root.WithOpName("x"), DT_FLOAT, Placeholder::Shape({2, 3}));
  ShowNames("layer", Linear(linear, x, 2, 1));
  ShowNames("same scope", Linear(linear, x, 2, 2));
  ShowNames("new scope", Linear(root.NewSubScope("linear"), x, 2, 3));
  Scope inner = linear.NewSubScope("inner");
  ShowNames("inner", Linear(inner, x, 4, 4));
  ShowNames("inner again", Add(linear.NewSubScope("inner"), a, b));
  ShowNames("inner named", Add(inner.WithOpName("total"), a, b));
  ShowNames("empty child", Add(root.NewSubScope(""), a, b));

  auto fly = Add(root, x, {{1.f, 2.f, 3.f}});
  ShowNames("on the fly", fly);
  ShowNames("on the fly again", Multiply(root, x, 2.f));
  ShowNames("in a child", Multiply(linear, x, 2.f));
  ShowNames("named, on the fly", Multiply(root.WithOpName("scaled"), x, 2.f));
  ShowNames("in a named scope", Const(root.WithOpName("linear"), 1.f));
  ShowNames("taken suffix", Const(root.WithOpName("Const_1"), 1.f));
  ShowNames("next suffix", Const(root, 1.f));

  Show("unique", root.GetUniqueNameForOp("unique"));
  Show("unique again", root.GetUniqueNameForOp("unique"));
  Show("unique below", inner.GetUniqueNameForOp("unique"));
  Show("unique of a named", root.WithOpName("given").GetUniqueNameForOp("unique"));

  Scope controlled = root.WithControlDependencies(std::vector<Operation>{a.op()});
  Show("control dependencies", std::to_string(controlled.control_deps().size()));
  Show("none", std::to_string(controlled.WithNoControlDependencies().control_deps().size()));
  Show("of one output", std::to_string(root.WithControlDependencies(a).control_deps().size()));
  ShowNames("on a device", Const(root.WithOpName("placed").WithDevice("/cpu:0"), 1.f));
  ShowNames("beside", Const(root.WithOpName("beside").ColocateWith(a), 1.f));

  Show("status", root.status());
  Show("ok", root.ok() ? "yes" : "no");
  Show("type of the op", x.node()->type_string());
  Show("inputs of a sum", std::to_string(fragments.z.op().num_inputs()));
  Show("outputs of a sum", std::to_string(fragments.z.op().num_outputs()));
  Show("input type", DataTypeString(fragments.z.op().input_type(0)));
  Show("output type", DataTypeString(fragments.z.op().output_type(0)));
  Show("type of an output", DataTypeString(fragments.z.type()));
  Show("same output", Output(a.op(), 0) == a ? "yes" : "no");
  Show("other output", a == b ? "yes" : "no");
  return 0;
}
