// The guide's first program: a matrix times a vector, named "v", logged and printed.
#include <iostream>

#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor.h"

int main() {
  using namespace tensorflow;
  using namespace tensorflow::ops;
  Scope root = Scope::NewRootScope();
  auto matrix = Const(root, {{3.f, 2.f}, {-1.f, 0.f}});
  auto vector = Const(root, {{3.f, 5.f}});
  auto v = MatMul(root.WithOpName("v"), matrix, vector, MatMul::TransposeB(true));
  std::vector<Tensor> outputs;
  ClientSession session(root);
  TF_CHECK_OK(session.Run({v}, &outputs));
  LOG(INFO) << outputs[0].matrix<float>();
  std::cout << outputs[0].DebugString() << "\n";
  std::cout << outputs[0].matrix<float>()(0, 0) << " " << outputs[0].matrix<float>()(1, 0) << "\n";
  std::cout << outputs[0].flat<float>().size() << "\n";
  std::cout << v.node()->name() << " " << v.product.name() << "\n";
  return 0;
}
