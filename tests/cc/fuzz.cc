// Random calls of the C++ API, most of them wrong. Whatever is passed must end in a Status: no crash, no exception, no
// read or write out of bounds (built with sanitizers). Sizes are either small or far too large, so that it stays quick.
//
//   fuzz SEED GRAPHS    runs that many graphs
//   fuzz SEED 0 MINUTES runs as many as fit
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <limits>

#include "show.h"
#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/ops/standard_ops.h"

using namespace tensorflow;
using namespace tensorflow::ops;

namespace {

class Random {
 public:
  explicit Random(uint64 seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64 Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  size_t Below(size_t count) { return static_cast<size_t>((Next() >> 11) % count); }
  bool OneIn(size_t count) { return Below(count) == 0; }
  template <class T>
  const T& Of(const std::vector<T>& list) {
    return list[Below(list.size())];
  }

 private:
  uint64 state_;
};

constexpr int64 kMost = std::numeric_limits<int64>::max();
constexpr int64 kLeast = std::numeric_limits<int64>::min();

class Fuzz {
 public:
  explicit Fuzz(uint64 seed) : random_(seed), root_(Scope::NewRootScope()), other_(Scope::NewRootScope()) {}

  // Builds, differentiates and runs one graph; returns how many steps were refused.
  int Go() {
    pool_.push_back(Const(root_, Numbers(DT_FLOAT, {1, 5, 5, 2}, 1)));
    pool_.push_back(Const(root_, Numbers(DT_FLOAT, {3, 3, 2, 2}, 2)));
    pool_.push_back(Placeholder(root_, DT_FLOAT));
    const size_t steps = 3 + random_.Below(10);
    for (size_t i = 0; i < steps; ++i) {
      Scope scope = Named();
      const Output made = AnyOp(scope);
      if (scope.ok()) {
        pool_.push_back(made);
      } else {
        Refused(scope.status());
        StartAgain();
      }
    }
    if (random_.OneIn(3)) Differentiate();
    const size_t runs = 1 + random_.Below(3);
    for (size_t i = 0; i < runs; ++i) Run();
    return refused_;
  }

 private:
  // A scope keeps its first error: what comes next goes into a new graph, and the old one's outputs are strangers.
  void StartAgain() {
    strangers_ = pool_;  // those of `other_` before end with it
    other_ = root_;
    root_ = Scope::NewRootScope();
    pool_.clear();
    pool_.push_back(Const(root_, Numbers(DT_FLOAT, {1, 5, 5, 2}, 1)));
  }

  void Refused(const Status& status) {
    ++refused_;
    if (status.ToString().size() < 8) {
      std::printf("an error without words: %s\n", status.ToString().c_str());
      std::abort();
    }
  }

  Scope Named() {
    switch (random_.Below(12)) {
      case 0: return root_.WithOpName("a");
      case 1: return root_.NewSubScope("b");
      case 2: return root_.WithOpName("a", 1, "b");
      case 3: return random_.OneIn(8) ? root_.WithOpName("a b\n%s") : root_;
      case 4: return random_.OneIn(8) ? root_.NewSubScope("/") : root_;
      case 5: return random_.OneIn(4) ? root_.WithOpName(std::string(3000, 'x')) : root_;
      default: return root_;
    }
  }

  int64 Size() {
    static const std::vector<int64> small = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7};
    static const std::vector<int64> odd = {-1, -2, int64{1} << 31, int64{1} << 40, int64{1} << 62, kMost, kLeast, -kMost};
    return random_.OneIn(25) ? random_.Of(odd) : random_.Of(small);
  }

  int Number() {
    static const std::vector<int> small = {1, 1, 1, 2, 2, 3, 0};
    static const std::vector<int> odd = {-1, std::numeric_limits<int>::max(), std::numeric_limits<int>::min(), 1 << 20, 65536};
    return random_.OneIn(12) ? random_.Of(odd) : random_.Of(small);
  }

  std::vector<int> Numbers4() {
    std::vector<int> list(random_.OneIn(15) ? random_.Below(9) : 4, 1);
    if (random_.OneIn(2)) {
      const int both = Number();
      if (list.size() == 4) list[1] = list[2] = both;
    } else if (random_.OneIn(3)) {
      for (int& each : list) each = Number();
    }
    return list;
  }

  std::vector<int> Paddings() {
    std::vector<int> list(random_.OneIn(10) ? random_.Below(12) : 8, 0);
    if (list.size() == 8) {
      for (size_t i = 2; i < 6; ++i) list[i] = Number();
    }
    if (random_.OneIn(10)) {
      for (int& each : list) each = Number();
    }
    return list;
  }

  StringPiece Padding() {
    static const std::vector<std::string> all = {"SAME", "VALID", "EXPLICIT", "SAME", "VALID", "same", "", "\xff\n%n", std::string(5000, 'V')};
    return random_.Of(all);
  }

  StringPiece Format() {
    static const std::vector<std::string> all = {"NHWC", "NHWC", "NCHW", "NCHW", "NHWC", "HWCN", ""};
    return random_.Of(all);
  }

  DataType Type() {
    static const std::vector<DataType> all = {DT_FLOAT, DT_FLOAT, DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT32, DT_INT64, DT_BOOL, DT_UINT8, DT_INT8,
                                              DT_INVALID, DT_STRING, DT_RESOURCE, DT_FLOAT_REF, static_cast<DataType>(-5), static_cast<DataType>(100000)};
    return random_.Of(all);
  }

  DataType GoodType() {
    static const std::vector<DataType> all = {DT_FLOAT, DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT32, DT_INT64, DT_BOOL, DT_UINT8};
    return random_.Of(all);
  }

  TensorShape SmallShape() {
    TensorShape shape;
    const size_t rank = random_.Below(6);
    for (size_t i = 0; i < rank; ++i) shape.AddDim(static_cast<int64>(random_.Below(5)));
    return shape;
  }

  PartialTensorShape AnyShape() {
    if (random_.OneIn(8)) return PartialTensorShape();
    std::vector<int64> sizes;
    const size_t rank = random_.OneIn(30) ? 300 : random_.Below(6);
    for (size_t i = 0; i < rank; ++i) sizes.push_back(Size());
    PartialTensorShape shape;
    const Status status = PartialTensorShape::MakePartialShape(sizes.data(), static_cast<int>(sizes.size()), &shape);
    if (!status.ok()) Refused(status);
    return shape;
  }

  Tensor AnyTensor() {
    const DataType dtype = random_.OneIn(6) ? Type() : GoodType();
    if (random_.OneIn(12)) return Tensor();
    Tensor tensor(dtype, SmallShape());
    if (random_.OneIn(30)) tensor = Tensor(dtype, TensorShape({int64{1} << 20, int64{1} << 20}));  // there is no such memory
    const auto bytes = tensor.tensor_data();
    for (size_t i = 0; i < bytes.size(); ++i) {
      const_cast<char*>(bytes.data())[i] = dtype == DT_BOOL ? static_cast<char>(random_.Below(2)) : static_cast<char>(random_.Below(4));
    }
    return tensor;
  }

  Output AnyOutput() {
    if (random_.OneIn(40)) return Output();
    if (random_.OneIn(40) && !strangers_.empty()) return random_.Of(strangers_);
    const Output& one = random_.Of(pool_);
    if (random_.OneIn(60)) return Output(one.op(), static_cast<int>(random_.Below(4)) - 1);
    return one;
  }

  Input AnyInput() {
    switch (random_.Below(random_.OneIn(3) ? 12 : 4)) {
      case 4: return Input(AnyTensor());
      case 5: return Input(1.5f);
      case 6: return Input({1, 2, 3});
      case 7: return Input({{1.f, 2.f}, {3.f, 4.f}});
      case 8: return Input({Input::Initializer(1.f), Input::Initializer({1.f, 2.f})});
      case 9: return Input(Input::Initializer({1.f}, TensorShape({3, 3})));
      case 10: return Input(Size());
      case 11: return Input(std::initializer_list<Input::Initializer>{});
      default: return Input(AnyOutput());
    }
  }

  // Of rank 4 more often than not.
  Input Image() {
    if (random_.OneIn(4)) return AnyInput();
    TensorShape shape;
    for (int i = 0; i < 4; ++i) shape.AddDim(1 + static_cast<int64>(random_.Below(i == 3 ? 3 : 6)));
    const DataType dtype = random_.OneIn(3) ? GoodType() : DT_FLOAT;
    return Input(Numbers(dtype, shape, static_cast<unsigned>(random_.Below(100))));
  }

  Input Sizes() {
    if (random_.OneIn(6)) return AnyInput();
    Tensor sizes(DT_INT32, TensorShape({random_.OneIn(10) ? static_cast<int64>(random_.Below(7)) : 4}));
    for (int64 i = 0; i < sizes.NumElements(); ++i) sizes.flat<int32>()(i) = random_.OneIn(3) ? Number() : static_cast<int>(random_.Below(5));
    return Input(sizes);
  }

  Input Axes() {
    if (random_.OneIn(6)) return AnyInput();
    Tensor axes(random_.OneIn(3) ? DT_INT64 : DT_INT32, TensorShape({static_cast<int64>(random_.Below(4))}));
    for (int64 i = 0; i < axes.NumElements(); ++i) {
      const int axis = random_.OneIn(10) ? Number() : static_cast<int>(random_.Below(6)) - 2;
      if (axes.dtype() == DT_INT64) {
        axes.flat<int64>()(i) = axis;
      } else {
        axes.flat<int32>()(i) = axis;
      }
    }
    return Input(axes);
  }

  template <class Op>
  Output Convolution(const Scope& scope, const Input& a, const Input& b) {
    typename Op::Attrs attrs;
    if (random_.OneIn(3)) attrs = attrs.DataFormat(Format());
    if (random_.OneIn(3)) attrs = attrs.Dilations(Numbers4());
    const StringPiece padding = Padding();
    if (padding == "EXPLICIT" || random_.OneIn(20)) attrs = attrs.ExplicitPaddings(Paddings());
    return Op(scope, a, b, Numbers4(), padding, attrs).output;
  }

  template <class Op>
  Output Backprop(const Scope& scope, const Input& a, const Input& b, const Input& c) {
    typename Op::Attrs attrs;
    if (random_.OneIn(3)) attrs = attrs.DataFormat(Format());
    if (random_.OneIn(3)) attrs = attrs.Dilations(Numbers4());
    const StringPiece padding = Padding();
    if (padding == "EXPLICIT" || random_.OneIn(20)) attrs = attrs.ExplicitPaddings(Paddings());
    return Op(scope, a, b, c, Numbers4(), padding, attrs).output;
  }

  Output AnyOp(const Scope& scope) {
    switch (random_.Below(44)) {
      case 0:
      case 1: return Convolution<Conv2D>(scope, Image(), Image());
      case 2:
      case 3: return Convolution<DepthwiseConv2dNative>(scope, Image(), Image());
      case 4: return Backprop<Conv2DBackpropInput>(scope, Sizes(), Image(), Image());
      case 5: return Backprop<Conv2DBackpropFilter>(scope, Image(), Sizes(), Image());
      case 6: return Backprop<DepthwiseConv2dNativeBackpropInput>(scope, Sizes(), Image(), Image());
      case 7:
      case 8: return Backprop<DepthwiseConv2dNativeBackpropFilter>(scope, Image(), Sizes(), Image());
      case 9: return Add(scope, AnyInput(), AnyInput());
      case 10: return Subtract(scope, AnyInput(), AnyInput());
      case 11: return Multiply(scope, AnyInput(), AnyInput());
      case 12: return Div(scope, AnyInput(), AnyInput());
      case 13: return AddN(scope, InputList(std::initializer_list<Input>{AnyInput(), AnyInput()}));
      case 14: return AddN(scope, InputList(std::initializer_list<Input>{}));
      case 15: return Equal(scope, AnyInput(), AnyInput());
      case 16: return Negate(scope, AnyInput());
      case 17: return Square(scope, AnyInput());
      case 18: return Sqrt(scope, AnyInput());
      case 19: return Exp(scope, AnyInput());
      case 20: return Log(scope, AnyInput());
      case 21: return Tanh(scope, AnyInput());
      case 22: return Sigmoid(scope, AnyInput());
      case 23: return MatMul(scope, AnyInput(), AnyInput(), MatMul::TransposeA(random_.OneIn(2)).TransposeB(random_.OneIn(2)));
      case 24: return Sum(scope, AnyInput(), Axes(), Sum::KeepDims(random_.OneIn(2)));
      case 25: return Mean(scope, AnyInput(), Axes());
      case 26: return L2Loss(scope, AnyInput());
      case 27: return ArgMax(scope, AnyInput(), AnyInput());
      case 28: return Relu(scope, AnyInput());
      case 29: return BiasAdd(scope, AnyInput(), AnyInput(), BiasAdd::DataFormat(Format()));
      case 30: return Softmax(scope, AnyInput());
      case 31: return LogSoftmax(scope, AnyInput());
      case 32: return SoftmaxCrossEntropyWithLogits(scope, AnyInput(), AnyInput()).loss;
      case 33: return MaxPool(scope, Image(), Numbers4(), Numbers4(), Padding(), MaxPool::DataFormat(Format()));
      case 34: return Shape(scope, AnyInput());
      case 35: return Reshape(scope, AnyInput(), Sizes());
      case 36: return Transpose(scope, AnyInput(), Axes());
      case 37: return Cast(scope, AnyInput(), Type());
      case 38: return OneHot(scope, AnyInput(), AnyInput(), AnyInput(), AnyInput(), OneHot::Axis(Number()));
      case 39: return BroadcastTo(scope, AnyInput(), Sizes());
      case 40: return random_.OneIn(2) ? Output(RandomNormal(scope, Sizes(), Type())) : Output(RandomUniform(scope, Sizes(), Type()));
      case 41: return Range(scope, AnyInput(), AnyInput(), AnyInput());
      case 42: {
        auto variable = Variable(scope, AnyShape(), Type());
        if (random_.OneIn(2)) return Assign(scope, variable, AnyInput());
        return ApplyGradientDescent(scope, variable, AnyInput(), AnyInput());
      }
      default: {
        if (random_.OneIn(3)) return Const(scope, AnyTensor());
        if (random_.OneIn(3)) return Assign(scope, AnyInput(), AnyInput());
        return Placeholder(scope, Type(), Placeholder::Shape(AnyShape()));
      }
    }
  }

  std::vector<Output> Some(size_t most) {
    std::vector<Output> list;
    const size_t count = random_.Below(most + 1);
    for (size_t i = 0; i < count; ++i) list.push_back(AnyOutput());
    return list;
  }

  void Differentiate() {
    std::vector<Output> grads;
    Status status;
    if (random_.OneIn(3)) {
      status = AddSymbolicGradients(root_, Some(2), Some(2), Some(2), &grads);
    } else {
      status = AddSymbolicGradients(root_, {AnyOutput()}, {AnyOutput()}, &grads);
    }
    if (!status.ok()) {
      Refused(status);
    } else {
      for (const Output& each : grads) {
        if (each.node() != nullptr) pool_.push_back(each);
      }
    }
    if (!root_.ok()) StartAgain();
  }

  void Run() {
    SessionOptions options;
    options.config.set_intra_op_parallelism_threads(random_.OneIn(10) ? Number() : 2);
    ClientSession session(root_, options);
    ClientSession::FeedType feeds;
    const size_t count = random_.Below(3);
    for (size_t i = 0; i < count; ++i) {
      if (random_.OneIn(6)) {
        feeds.emplace(AnyOutput(), Input::Initializer({Input::Initializer(1.f), Input::Initializer({1, 2})}));
      } else {
        feeds.emplace(AnyOutput(), Input::Initializer(AnyTensor()));
      }
    }
    std::vector<Operation> targets;
    if (random_.OneIn(4)) targets.push_back(AnyOutput().op());
    if (random_.OneIn(30)) targets.push_back(Operation());
    std::vector<Tensor> outputs;
    const Status status = session.Run(feeds, Some(4), targets, random_.OneIn(20) ? nullptr : &outputs);
    if (!status.ok()) Refused(status);
    for (const Tensor& each : outputs) {
      if (each.DebugString(10).empty()) std::abort();
    }
  }

  Random random_;
  Scope root_;
  Scope other_;
  std::vector<Output> pool_;
  std::vector<Output> strangers_;
  int refused_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const uint64 seed = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1;
  uint64 graphs = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100;
  const double minutes = argc > 3 ? std::strtod(argv[3], nullptr) : 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(minutes * 60);
  uint64 done = 0;
  int64 refused = 0;
  while (done < graphs || (minutes > 0 && std::chrono::steady_clock::now() < end)) {
    if (std::getenv("FUZZ_TRACE") != nullptr) {
      std::printf("seed %llu\n", static_cast<unsigned long long>(seed * 1000003 + done));
      std::fflush(stdout);
    }
    refused += Fuzz(seed * 1000003 + done).Go();
    ++done;
  }
  std::printf("%llu graphs, %lld refusals\n", static_cast<unsigned long long>(done), static_cast<long long>(refused));
  return 0;
}
