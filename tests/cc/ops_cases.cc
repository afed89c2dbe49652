// Runs graphs from a file of cases and prints what came out, for test_companion_ops.py to compare with Python's.
//
// A line is one step: case, op, grad, feed, run. Tensors are `dtype rank sizes... hex`; a name may be `name:1`.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "convgrad/cc/convgrad.h"

namespace {

using convgrad::ClientSession;
using convgrad::DataType;
using convgrad::Output;
using convgrad::Scope;
using convgrad::Status;
using convgrad::Tensor;
using convgrad::TensorShape;

std::vector<std::int64_t> ReadSizes(std::istream& line, std::int64_t count) {
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t size = 0;
    line >> size;
    sizes.push_back(size);
  }
  return sizes;
}

Tensor ReadTensor(std::istream& line) {
  int dtype = 0;
  std::int64_t rank = 0;
  std::string hex;
  line >> dtype >> rank;
  TensorShape shape;
  for (const std::int64_t size : ReadSizes(line, rank)) shape.AddDim(size);
  line >> hex;
  Tensor tensor(static_cast<DataType>(dtype), shape);
  char* to = static_cast<char*>(tensor.data());
  for (std::size_t i = 0; 2 * i + 1 < hex.size() && to != nullptr; ++i) {
    to[i] = static_cast<char>(std::stoi(hex.substr(2 * i, 2), nullptr, 16));
  }
  return tensor;
}

void PrintTensor(const Tensor& tensor) {
  std::cout << "tensor " << static_cast<int>(tensor.dtype()) << ' ' << tensor.dims();
  for (int i = 0; i < tensor.dims(); ++i) std::cout << ' ' << tensor.dim_size(i);
  std::cout << ' ';
  static constexpr char kDigits[] = "0123456789abcdef";
  for (const char byte : tensor.tensor_data()) {
    const unsigned value = static_cast<unsigned char>(byte);
    std::cout << kDigits[value >> 4] << kDigits[value & 15];
  }
  std::cout << '\n';
}

void PrintError(const char* where, const Status& status) {
  std::string text(status.message());
  for (char& letter : text) {
    if (letter == '\n' || letter == '\t') letter = ' ';
  }
  std::cout << "error " << where << ' ' << static_cast<int>(status.code()) << ' ' << text << '\n';
}

convgrad::detail::AttrValue ReadAttribute(std::istream& line) {
  std::string kind;
  line >> kind;
  std::int64_t number = 0;
  if (kind == "tensor") return ReadTensor(line);
  if (kind == "string") {  // '-' before it: it may be empty
    std::string text;
    line >> text;
    return text.substr(1);
  }
  line >> number;
  if (kind == "bool") return number != 0;
  if (kind == "type") return static_cast<DataType>(number);
  if (kind == "ints") return ReadSizes(line, number);
  if (kind == "shape") {
    convgrad::PartialTensorShape shape;
    if (number < 0) return shape;
    const std::vector<std::int64_t> sizes = ReadSizes(line, number);
    const Status status = convgrad::PartialTensorShape::MakePartialShape(
        sizes.data(), static_cast<int>(sizes.size()), &shape);
    if (!status.ok()) PrintError("attribute", status);
    return shape;
  }
  return number;
}

class Case {
 public:
  Case() : scope_(Scope::NewRootScope()) {}

  void Step(const std::string& word, std::istream& line) {
    if (word == "op") AddOp(line);
    if (word == "grad") AddGradients(line);
    if (word == "feed") {
      std::string name;
      line >> name;
      const Output output = Named(name);
      feeds_.emplace(output, ReadTensor(line));
    }
    if (word == "run") Run(line);
  }

 private:
  Output Named(const std::string& name) {
    const std::size_t colon = name.find(':');
    const Output first = outputs_[name.substr(0, colon)];
    if (colon == std::string::npos) return first;
    return Output(first.node(), std::stoi(name.substr(colon + 1)));
  }

  std::vector<Output> ReadNames(std::istream& line) {
    std::size_t count = 0;
    line >> count;
    std::vector<Output> found;
    for (std::size_t i = 0; i < count; ++i) {
      std::string name;
      line >> name;
      found.push_back(Named(name));
    }
    return found;
  }

  void AddOp(std::istream& line) {
    std::string name, op, attribute;
    line >> name >> op;
    std::vector<convgrad::Input> inputs;
    for (const Output& input : ReadNames(line)) inputs.emplace_back(input);
    convgrad::detail::Attributes attrs;
    while (line >> attribute) attrs.Set(attribute, ReadAttribute(line));
    if (!scope_.ok()) return;
    outputs_[name] = convgrad::detail::AddOp(scope_, op, inputs, std::move(attrs));
  }

  void AddGradients(std::istream& line) {
    const std::vector<Output> ys = ReadNames(line), xs = ReadNames(line), seeds = ReadNames(line);
    std::vector<Output> found;
    if (!scope_.ok()) return;
    const Status status =
        seeds.empty() ? convgrad::AddSymbolicGradients(scope_, ys, xs, &found)
                      : convgrad::AddSymbolicGradients(scope_, ys, xs, seeds, &found);
    if (!status.ok()) return PrintError("grad", status);
    std::string name;
    for (std::size_t i = 0; line >> name && i < found.size(); ++i) {
      // Where nothing depends on an x there is no node, as with TensorFlow. Python has zeros there.
      const bool none = found[i].node() == nullptr;
      outputs_[name] =
          none ? convgrad::detail::AddOp(scope_, "Subtract", {xs[i], xs[i]}) : found[i];
    }
  }

  void Run(std::istream& line) {
    if (!scope_.ok()) return PrintError("build", scope_.status());
    const std::vector<Output> fetches = ReadNames(line);
    if (session_ == nullptr) session_ = std::make_unique<ClientSession>(scope_);
    std::vector<Tensor> results;
    const Status status = session_->Run(feeds_, fetches, &results);
    feeds_.clear();
    if (!status.ok()) return PrintError("run", status);
    std::cout << "ok " << results.size() << '\n';
    for (const Tensor& result : results) PrintTensor(result);
  }

  Scope scope_;
  std::unique_ptr<ClientSession> session_;
  std::map<std::string, Output> outputs_;
  ClientSession::FeedType feeds_;
};

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  std::ifstream file(words[1]);
  std::string text, word;
  std::unique_ptr<Case> running;
  while (std::getline(file, text)) {
    std::istringstream line(text);
    line >> word;
    if (word == "case") {
      running = std::make_unique<Case>();
      std::cout << text << '\n';
    } else if (running != nullptr) {
      running->Step(word, line);
    }
  }
  return 0;
}
