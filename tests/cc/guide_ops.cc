// The other ops: each with its attributes, on several dtypes and shapes, empty ones and broadcasts among them.
#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/ops/array_ops.h"
#include "tensorflow/cc/ops/const_op.h"
#include "tensorflow/cc/ops/math_ops.h"
#include "tensorflow/cc/ops/nn_ops.h"
#include "tensorflow/cc/ops/random_ops.h"
#include "tensorflow/cc/ops/state_ops.h"
#include "tensorflow/cc/ops/training_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

void Run(const Scope& root, const std::string& label, const Output& output) {
  if (!root.ok()) {
    Show(label, root.status());
    return;
  }
  ClientSession session(root);
  std::vector<Tensor> outputs;
  const Status status = session.Run({output}, &outputs);
  if (status.ok()) {
    Show(label, outputs[0]);
  } else {
    Show(label, status);
  }
}

void Floats(DataType dtype) {
  Scope root = Scope::NewRootScope();
  const std::string t = DataTypeString(dtype) + " ";
  auto a = Const(root, Numbers(dtype, {2, 3}, 1));
  auto b = Const(root, Numbers(dtype, {2, 3}, 2));
  auto row = Const(root, Numbers(dtype, {3}, 3));
  auto none = Const(root, Numbers(dtype, {0, 3}, 3));
  auto positive = Add(root, Square(root, a), Cast(root, 0.5f, dtype));
  Run(root, t + "Add", Add(root, a, b));
  Run(root, t + "Add row", Add(root, a, row));
  Run(root, t + "Add none", Add(root, none, row));
  Run(root, t + "Subtract", Subtract(root, a, row));
  Run(root, t + "Sub", Sub(root, row, a));
  Run(root, t + "Multiply", Multiply(root, a, b));
  Run(root, t + "Mul", Mul(root, a, row));
  Run(root, t + "Div", Div(root, a, positive));
  Run(root, t + "AddN", AddN(root, std::initializer_list<Input>{a, b, a}));
  Run(root, t + "Equal", Equal(root, a, a));
  Run(root, t + "Negate", Negate(root, a));
  Run(root, t + "Neg", Neg(root, a));
  Run(root, t + "Square", Square(root, a));
  Run(root, t + "Sqrt", Sqrt(root, positive));
  Run(root, t + "Exp", Exp(root, a));
  Run(root, t + "Log", Log(root, positive));
  Run(root, t + "Tanh", Tanh(root, a));
  Run(root, t + "Sigmoid", Sigmoid(root, a));
  Run(root, t + "MatMul", MatMul(root, a, b, MatMul::TransposeB(true)));
  Run(root, t + "MatMul transposed", MatMul(root, a, b, MatMul::TransposeA(true).TransposeB(false)));
  Run(root, t + "Sum all", Sum(root, a, {0, 1}));
  Run(root, t + "Sum kept", Sum(root, a, 1, Sum::KeepDims(true)));
  Run(root, t + "Sum from behind", Sum(root, a, -1));
  Run(root, t + "Sum of none", Sum(root, none, 0));
  Run(root, t + "Sum over nothing", Sum(root, a, Const(root, Tensor(DT_INT32, {0}))));
  Run(root, t + "ReduceSum", ReduceSum(root, a, 0));
  Run(root, t + "Mean", Mean(root, a, 0));
  Run(root, t + "ReduceMean kept", ReduceMean(root, a, {0, 1}, ReduceMean::KeepDims(true)));
  Run(root, t + "L2Loss", L2Loss(root, a));
  Run(root, t + "ArgMax", ArgMax(root, a, 1));
  Run(root, t + "ArgMax int32", ArgMax(root, a, 0, ArgMax::OutputType(DT_INT32)));
  Run(root, t + "Relu", Relu(root, a));
  Run(root, t + "BiasAdd", BiasAdd(root, a, row));
  Run(root, t + "BiasAdd NCHW", BiasAdd(root, Const(root, Numbers(dtype, {1, 3, 2, 2}, 5)), row, BiasAdd::DataFormat("NCHW")));
  Run(root, t + "Softmax", Softmax(root, a));
  Run(root, t + "LogSoftmax", LogSoftmax(root, a));
  auto cross = SoftmaxCrossEntropyWithLogits(root, a, Softmax(root, b));
  Run(root, t + "SoftmaxCrossEntropyWithLogits", cross.loss);
  Run(root, t + "its gradient", cross.backprop);
  auto image = Const(root, Numbers(dtype, {1, 5, 4, 2}, 6));
  Run(root, t + "MaxPool", MaxPool(root, image, {1, 2, 2, 1}, {1, 2, 2, 1}, "SAME"));
  Run(root, t + "MaxPool valid", MaxPool(root, image, {1, 3, 2, 1}, {1, 1, 2, 1}, "VALID", MaxPool::DataFormat("NHWC")));
  Run(root, t + "OneHot", OneHot(root, {0, 2, -1}, 3, Cast(root, 5.f, dtype), Cast(root, 0.f, dtype)));
  Run(root, t + "BroadcastTo", BroadcastTo(root, row, {2, 3}));
  Run(root, t + "Reshape", Reshape(root, a, {3, -1}));
  Run(root, t + "Transpose", Transpose(root, a, {1, 0}));
  Run(root, t + "Shape", Shape(root, a));
  Run(root, t + "Shape int64", Shape(root, a, Shape::OutType(DT_INT64)));
  Run(root, t + "Cast to int", Cast(root, a, DT_INT32));
  Run(root, t + "Cast to bool", Cast(root, a, DT_BOOL));
  Run(root, t + "Cast to half", Cast(root, a, DT_HALF));
}

void Integers() {
  Scope root = Scope::NewRootScope();
  Run(root, "int Add", Add(root, {1, 2}, {3, 4}));
  Run(root, "int Div", Div(root, {7, -7}, {2, 2}));
  Run(root, "int MatMul", MatMul(root, {{1, 2}}, {{3}, {4}}));
  Run(root, "int Square", Square(root, {3, -4}));
  Run(root, "int Sum", Sum(root, {{1, 2}, {3, 4}}, 0));
  Run(root, "int Mean", Mean(root, {1, 2, 4}, 0));
  Run(root, "int ArgMax", ArgMax(root, {1, 5, 5}, 0));
  Run(root, "int Equal", Equal(root, {1, 2}, {1, 3}));
  Run(root, "bool Equal", Equal(root, true, {true, false}));
  Run(root, "int Conv2D", Conv2D(root, Const(root, 2, {1, 3, 3, 1}), Const(root, 3, {2, 2, 1, 1}), {1, 1, 1, 1}, "VALID"));
  Run(root, "Range", Range(root, 0, 10, 3));
  Run(root, "Range down", Range(root, 5, 0, -2));
  Run(root, "Range of floats", Range(root, 0.f, 1.f, 0.25f));
  Run(root, "Range of none", Range(root, 3, 3, 1));
  Run(root, "Cast from bool", Cast(root, {true, false}, DT_FLOAT));
  Run(root, "Cast from double", Cast(root, {1.75, -1.75}, DT_INT32));
  Run(root, "RandomNormal shape", Shape(root, RandomNormal(root, {2, 3}, DT_FLOAT)));
  Run(root, "RandomUniform seeded", RandomUniform(root, {4}, DT_FLOAT, RandomUniform::Seed(7).Seed2(9)));
  Run(root, "RandomNormal seeded", RandomNormal(root, {4}, DT_FLOAT, RandomNormal::Seed(7).Seed2(9)));
  Run(root, "RandomUniform of doubles", RandomUniform(root, {3}, DT_DOUBLE, RandomUniform::Attrs().Seed(1)));
  Run(root, "RandomNormal of halves", RandomNormal(root, {3}, DT_HALF, RandomNormal::Attrs().Seed2(5)));
}

}  // namespace

int main() {
  Floats(DT_FLOAT);
  Floats(DT_DOUBLE);
  Floats(DT_HALF);
  Floats(DT_BFLOAT16);
  Integers();
  return 0;
}
