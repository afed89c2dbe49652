// Const in all its forms.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

void Run(const Scope& root, const char* label, const Output& output) {
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
  Show(std::string(label) + " " + output.name(), outputs[0]);
  Show(std::string(label) + " as text", outputs[0].DebugString());
}

}  // namespace

int main() {
  Scope root = Scope::NewRootScope();
  Run(root, "float", Const(root, 3.5f));
  Run(root, "double", Const(root, 3.5));
  Run(root, "int", Const(root, 42));
  Run(root, "long", Const(root, static_cast<int64>(1) << 40));
  Run(root, "bool", Const(root, true));
  Run(root, "list", Const(root, {1, 2, 3}));
  Run(root, "list of floats", Const(root, {1.5f, 2.5f}));
  Run(root, "list of one", Const(root, {7.0}));
  Run(root, "matrix", Const(root, {{1, 2}, {3, 4}, {5, 6}}));
  Run(root, "three deep", Const(root, {{{1.f, 2.f}, {3.f, 4.f}}, {{5.f, 6.f}, {7.f, 8.f}}}));
  Run(root, "four deep", Const(root, {{{{1.f}, {2.f}}}, {{{3.f}, {4.f}}}}));
  Run(root, "row", Const(root, {{3.f, 5.f}}));
  Run(root, "filled", Const(root, 2.5f, {2, 3}));
  Run(root, "filled by int", Const(root, 9, TensorShape({4})));
  Run(root, "filled, no size", Const(root, 9, TensorShape({0, 3})));
  Run(root, "list and shape", Const(root, {1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3}));
  Run(root, "list and three sizes", Const(root, {1, 2, 3, 4}, {2, 1, 2}));
  Run(root, "float from int", Const<float>(root, 3));
  Run(root, "double from float list", Const<double>(root, {1.5f, 2.5f}));
  Run(root, "long from matrix", Const<int64>(root, {{1, 2}, {3, 4}}));
  Run(root, "half", Const<Eigen::half>(root, {1.5f, -2.f}));
  Run(root, "bfloat16", Const<bfloat16>(root, {1.5f, -2.f}));
  Run(root, "same type", Const<float>(root, 3.f));
  Tensor tensor(DT_FLOAT, TensorShape({2, 2}));
  auto values = tensor.matrix<float>();
  values(0, 0) = 1;
  values(0, 1) = 2;
  values(1, 0) = 3;
  values(1, 1) = 4;
  Run(root, "tensor", Const(root, tensor));
  Run(root, "initializer of a tensor", Const(root, Input::Initializer(tensor)));
  Run(root, "initializer", Const(root, Input::Initializer({1.f, 2.f, 3.f, 4.f}, TensorShape({4, 1}))));
  Run(root, "scalar tensor", Const(root, Tensor(2.25f)));
  Run(root, "named", Const(root.WithOpName("named"), {1.f}));
  Run(root, "many", Const(root, 1.f, {3, 4}));
  Show("status", root.status());
  {
    Scope other = Scope::NewRootScope();
    Const(other, {1.f, 2.f, 3.f}, {2, 2});
    Show("too few", other.status());
  }
  {
    Scope other = Scope::NewRootScope();
    Const(other, {{1.f, 2.f}, {3.f}});
    Show("ragged", other.status());
  }
  {
    Scope other = Scope::NewRootScope();
    Const(other, {Input::Initializer(1.f), Input::Initializer(1)});
    Show("mixed", other.status());
  }
  return 0;
}
