// Train the network of digits_graph.py in C++: a depthwise-separable CNN on 8x8 digits.
//
// Every line is TensorFlow's C++ API, so the same text compiles against TensorFlow and against
// convgrad's headers. digits.sh builds it twice, on plain loops and on a pack, and compares.
//
//   digits DATA [EPOCHS]
//
// DATA is written by digits_data.py. Exits with 1 if fewer than 97% of the test images are
// recognised.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/cc/client/client_session.h"
#include "tensorflow/cc/framework/gradients.h"
#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/cc/framework/scope.h"
#include "tensorflow/cc/ops/standard_ops.h"
#include "tensorflow/core/framework/tensor.h"

using namespace tensorflow;       // NOLINT: as in TensorFlow's own examples
using namespace tensorflow::ops;  // NOLINT

namespace {

constexpr int kSide = 8, kPixels = kSide * kSide, kClasses = 10;
constexpr int kTest = 360;   // images held out
constexpr int kBatch = 60;   // divides kTest: training and testing share their shapes
constexpr double kRequired = 0.97;

using Floats = std::vector<float>;

Tensor TensorOf(const TensorShape& shape, const Floats& values) {
  Tensor tensor(DT_FLOAT, shape);
  std::copy(values.begin(), values.end(), tensor.flat<float>().data());
  return tensor;
}

struct Digits {
  std::vector<Floats> images;  // of 0 to 1
  std::vector<int> labels;
};

// A file of 65 bytes per image: its digit, then its pixels, of 0 to 16.
bool Read(const char* path, Digits* digits) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() < (kTest + kBatch) * (kPixels + 1) || bytes.size() % (kPixels + 1)) return false;
  for (auto at = bytes.begin(); at != bytes.end(); at += kPixels + 1) {
    digits->labels.push_back(*at);
    Floats image;
    for (auto pixel = at + 1; pixel != at + 1 + kPixels; ++pixel) {
      image.push_back(static_cast<float>(*pixel) / 16);
    }
    digits->images.push_back(std::move(image));
  }
  return true;
}

class Network {
 public:
  explicit Network(unsigned seed) : random_(seed), scope_(Scope::NewRootScope()) {
    images = Placeholder(scope_, DT_FLOAT, Placeholder::Shape({kBatch, kSide, kSide, 1}));
    labels = Placeholder(scope_, DT_INT32, Placeholder::Shape({kBatch}));
    rate = Placeholder(scope_, DT_FLOAT, Placeholder::Shape({}));
    // Training and testing normalise differently and share every parameter.
    trained_ = tested_ = images;
    Convolution(3, 1, 16);
    const int blocks[3][3] = {{16, 32, 1}, {32, 64, 2}, {64, 64, 1}};
    for (const auto& block : blocks) {
      Depthwise(block[0], block[2]);
      Convolution(1, block[0], block[1]);
    }
    Classify(64);
    auto hot = OneHot(scope_, labels, kClasses, 1.0f, 0.0f);
    auto entropy = SoftmaxCrossEntropyWithLogits(scope_, trained_, hot);
    loss = Mean(scope_, entropy.loss, 0);
    digits = ArgMax(scope_, tested_, 1);
    std::vector<Output> gradients;
    scope_.UpdateStatus(AddSymbolicGradients(scope_, {loss}, parameters_, &gradients));
    for (std::size_t i = 0; scope_.ok() && i < parameters_.size(); ++i) {
      Adam(parameters_[i], shapes_[i], gradients[i]);
    }
  }

  const Scope& scope() const { return scope_; }

  Output images, labels, rate, loss, digits;
  std::vector<Operation> initial, updates;

 private:
  Output Var(const std::string& name, const TensorShape& shape, const Floats& start) {
    auto variable = Variable(scope_.WithOpName(name), shape, DT_FLOAT);
    initial.push_back(Assign(scope_, variable, TensorOf(shape, start)).operation);
    return variable;
  }

  Output Filled(const std::string& name, const TensorShape& shape, float value) {
    return Var(name, shape, Floats(static_cast<std::size_t>(shape.num_elements()), value));
  }

  Output Parameter(const std::string& name, const TensorShape& shape, const Floats& start) {
    parameters_.push_back(Var(name, shape, start));
    shapes_.push_back(shape);
    return parameters_.back();
  }

  Output Weights(const std::string& name, const TensorShape& shape, int terms) {
    std::normal_distribution<float> normal(0, std::sqrt(2.0f / static_cast<float>(terms)));
    Floats start(static_cast<std::size_t>(shape.num_elements()));
    std::generate(start.begin(), start.end(), [&] { return normal(random_); });
    return Parameter(name, shape, start);
  }

  void Convolution(int size, int inputs, int outputs) {
    Output weights = Weights("filter", {size, size, inputs, outputs}, size * size * inputs);
    trained_ = Conv2D(scope_, trained_, weights, {1, 1, 1, 1}, "SAME");
    tested_ = Conv2D(scope_, tested_, weights, {1, 1, 1, 1}, "SAME");
    Normalize(outputs);
  }

  void Depthwise(int channels, int stride) {
    Output weights = Weights("depthwise_filter", {3, 3, channels, 1}, 9);
    trained_ = DepthwiseConv2dNative(scope_, trained_, weights, {1, stride, stride, 1}, "SAME");
    tested_ = DepthwiseConv2dNative(scope_, tested_, weights, {1, stride, stride, 1}, "SAME");
    Normalize(channels);
  }

  // Batch normalisation: statistics of the batch in training, running averages in use.
  void Normalize(int channels) {
    const TensorShape shape({channels});
    const Floats ones(static_cast<std::size_t>(channels), 1), zeros(ones.size(), 0);
    Output scale = Parameter("scale", shape, ones), shift = Parameter("shift", shape, zeros);
    Output usual = Var("mean", shape, zeros), spread = Var("variance", shape, ones);
    Output mean = Mean(scope_, trained_, {0, 1, 2});
    Output away = Subtract(scope_, trained_, mean);
    Output variance = Mean(scope_, Square(scope_, away), {0, 1, 2});
    for (const auto& pair : {std::make_pair(usual, mean), std::make_pair(spread, variance)}) {
      auto step = Multiply(scope_, 0.1f, Subtract(scope_, pair.second, pair.first));
      updates.push_back(Assign(scope_, pair.first, Add(scope_, pair.first, step)).operation);
    }
    trained_ = Scaled(away, variance, scale, shift);
    tested_ = Scaled(Subtract(scope_, tested_, usual), spread, scale, shift);
  }

  Output Scaled(Output x, Output variance, Output scale, Output shift) {
    auto factor = Div(scope_, scale, Sqrt(scope_, Add(scope_, variance, 1e-5f)));
    return Relu(scope_, Add(scope_, Multiply(scope_, x, factor), shift));
  }

  // The mean of each channel over the image, then a score for each digit.
  void Classify(int channels) {
    Output weights = Weights("weights", {channels, kClasses}, 2 * channels);
    Output bias = Parameter("bias", {kClasses}, Floats(kClasses, 0));
    for (Output* x : {&trained_, &tested_}) {
      auto means = Mean(scope_, *x, {1, 2});
      *x = BiasAdd(scope_, MatMul(scope_, means, weights), bias);
    }
  }

  // Moves a parameter against its mean gradient, measured in the gradient's own typical size.
  void Adam(Output parameter, const TensorShape& shape, Output gradient) {
    Output mean = Filled("moment", shape, 0), square = Filled("square", shape, 0);
    auto to_mean = Multiply(scope_, 0.1f, Subtract(scope_, gradient, mean));
    auto means = Assign(scope_, mean, Add(scope_, mean, to_mean));
    auto to_square =
        Multiply(scope_, 0.001f, Subtract(scope_, Square(scope_, gradient), square));
    auto squares = Assign(scope_, square, Add(scope_, square, to_square));
    auto size = Add(scope_, Sqrt(scope_, squares), 1e-8f);
    updates.push_back(
        ApplyGradientDescent(scope_, parameter, rate, Div(scope_, means, size)).operation);
  }

  std::mt19937 random_;
  Scope scope_;
  Output trained_, tested_;
  std::vector<Output> parameters_;
  std::vector<TensorShape> shapes_;
};

// The image moved by up to one pixel each way: more to learn from than 1437 images.
void Shift(const Floats& from, int down, int right, float* to) {
  for (int row = 0; row < kSide; ++row) {
    for (int col = 0; col < kSide; ++col) {
      const int y = row - down, x = col - right;
      const bool inside = y >= 0 && y < kSide && x >= 0 && x < kSide;
      *to++ = inside ? from[static_cast<std::size_t>(y * kSide + x)] : 0;
    }
  }
}

double Accuracy(const ClientSession& session, const Network& network, const Digits& digits) {
  int right = 0;
  for (std::size_t at = 0; at < kTest; at += kBatch) {
    Tensor x(DT_FLOAT, TensorShape({kBatch, kSide, kSide, 1}));
    for (std::size_t i = 0; i < kBatch; ++i) {
      Shift(digits.images[at + i], 0, 0, x.flat<float>().data() + i * kPixels);
    }
    std::vector<Tensor> found;
    TF_CHECK_OK(session.Run({{network.images, x}}, {network.digits}, &found));
    for (int i = 0; i < kBatch; ++i) {
      right += found[0].flat<std::int64_t>()(i) == digits.labels[at + static_cast<std::size_t>(i)];
    }
  }
  return static_cast<double>(right) / kTest;
}

double Train(const Digits& digits, int epochs) {
  Network network(0);
  TF_CHECK_OK(network.scope().status());
  ClientSession session(network.scope());
  TF_CHECK_OK(session.Run({}, {}, network.initial, nullptr));

  std::mt19937 random(1);
  std::uniform_int_distribution<int> moves(-1, 1);
  std::vector<std::size_t> order(digits.labels.size() - kTest);
  std::iota(order.begin(), order.end(), std::size_t{kTest});
  const std::size_t batches = order.size() / kBatch;
  const auto started = std::chrono::steady_clock::now();
  double found = 0, steps = 0;
  std::printf("epoch   loss   test   seconds\n");
  for (int epoch = 0; epoch < epochs; ++epoch) {
    std::shuffle(order.begin(), order.end(), random);
    double losses = 0;
    for (std::size_t batch = 0; batch < batches; ++batch) {
      Tensor x(DT_FLOAT, TensorShape({kBatch, kSide, kSide, 1})), y(DT_INT32, TensorShape({kBatch}));
      for (int i = 0; i < kBatch; ++i) {
        const std::size_t image = order[batch * kBatch + static_cast<std::size_t>(i)];
        Shift(digits.images[image], moves(random), moves(random), x.flat<float>().data() + i * kPixels);
        y.flat<std::int32_t>()(i) = digits.labels[image];
      }
      steps += 1;
      const double share = (epoch + static_cast<double>(batch) / static_cast<double>(batches)) / epochs;
      double rate = 0.02 * (0.5 + 0.5 * std::cos(3.14159265358979 * share));  // down to 0
      rate *= std::sqrt(1 - std::pow(0.999, steps)) / (1 - std::pow(0.9, steps));
      std::vector<Tensor> out;
      TF_CHECK_OK(session.Run({{network.images, x},
                               {network.labels, y},
                               {network.rate, static_cast<float>(rate)}},
                              {network.loss}, network.updates, &out));
      losses += static_cast<double>(out[0].scalar<float>()());
    }
    found = Accuracy(session, network, digits);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - started;
    std::printf("%5d  %.3f %5.2f%%   %7.1f\n", epoch + 1, losses / static_cast<double>(batches),
                100 * found, took.count());
  }
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  Digits digits;
  if (argc < 2 || !Read(argv[1], &digits)) {
    std::fprintf(stderr, "usage: digits DATA [EPOCHS], DATA as digits_data.py writes it\n");
    return 2;
  }
  const double found = Train(digits, argc > 2 ? std::max(1, std::atoi(argv[2])) : 20);
  const bool learnt = found >= kRequired;
  std::printf("verdict: %s, %.2f%% of the test images are recognised, %.0f%% are required\n",
              learnt ? "ok" : "NOT LEARNT", 100 * found, 100 * kRequired);
  return learnt ? 0 : 1;
}
