// Runs convolutions of a file, each a line of words and then the bytes of its operands, and writes what came of them:
//
//   RUN op=Conv2D threads=2 strides=1,1,1,1 dilations=1,1,1,1 padding=SAME explicit= format=NHWC in=float:1x5x5x2 in=...
//   INFER op=... in=float:?x5x5x2 in=float:* in=int32:4=1;5;?;2
//
// An answer is `OK dtype shape` with the bytes of the result behind it, `SHAPE shape`, or `CODE message`.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "convgrad/cc/table/convolution_kernels.h"
#include "convgrad/cc/table/convolution_shapes.h"

#ifdef CONVGRAD_TEST_PACK
#include CONVGRAD_TEST_PACK
CONVGRAD_USE_PACK(CONVGRAD_TEST_NAME)
#endif

using namespace convgrad;

namespace {

std::vector<std::int64_t> Numbers(const std::string& text, char sign) {
  std::vector<std::int64_t> found;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, sign);) {
    found.push_back(word == "?" ? detail::kUnknown : std::stoll(word));
  }
  return found;
}

DataType TypeOf(const std::string& name) {
  for (const DataType type : {DT_FLOAT, DT_DOUBLE, DT_HALF, DT_BFLOAT16, DT_INT32, DT_INT64}) {
    if (DataTypeString(type) == name) return type;
  }
  return DT_INVALID;
}

struct Line {
  std::string verb, op;
  int threads = 1;
  detail::Attributes attrs;
  std::vector<std::string> inputs;
};

Line Parse(const std::string& text) {
  Line line;
  std::istringstream stream(text);
  stream >> line.verb;
  for (std::string word; stream >> word;) {
    const std::size_t at = word.find('=');
    const std::string key = word.substr(0, at), value = word.substr(at + 1);
    if (key == "op") line.op = value;
    if (key == "threads") line.threads = std::stoi(value);
    if (key == "strides" || key == "dilations") line.attrs.Set(key, Numbers(value, ','));
    if (key == "explicit") line.attrs.Set("explicit_paddings", Numbers(value, ','));
    if (key == "padding") line.attrs.Set(key, value);
    if (key == "format") line.attrs.Set("data_format", value);
    if (key == "in") line.inputs.push_back(value);
  }
  return line;
}

struct Functions {
  const char* name;
  detail::InferFunc infer;
  detail::ComputeFunc compute;
};

const Functions* Find(const std::string& name) {
  namespace table = detail::table;
  static const Functions kAll[] = {
      {"Conv2D", table::InferConv2D, table::ComputeConv2D},
      {"Conv2DBackpropInput", table::InferConv2DBackpropInput, table::ComputeConv2DBackpropInput},
      {"Conv2DBackpropFilter", table::InferConv2DBackpropFilter,
       table::ComputeConv2DBackpropFilter},
      {"DepthwiseConv2dNative", table::InferDepthwiseConv2dNative,
       table::ComputeDepthwiseConv2dNative},
      {"DepthwiseConv2dNativeBackpropInput", table::InferDepthwiseConv2dNativeBackpropInput,
       table::ComputeDepthwiseConv2dNativeBackpropInput},
      {"DepthwiseConv2dNativeBackpropFilter", table::InferDepthwiseConv2dNativeBackpropFilter,
       table::ComputeDepthwiseConv2dNativeBackpropFilter},
  };
  for (const Functions& each : kAll) {
    if (name == each.name) return &each;
  }
  return nullptr;
}

void Refuse(std::ostream& to, const Status& status) {
  to << static_cast<int>(status.code()) << ' ' << status.message() << '\n';
}

void Infer(const Line& line, const Functions& functions, std::ostream& to) {
  const detail::OpRow row{};
  std::vector<detail::Spec> specs;
  for (const std::string& text : line.inputs) {
    const std::size_t colon = text.find(':'), sign = text.find('=');
    detail::Spec spec;
    spec.dtype = TypeOf(text.substr(0, colon));
    const std::string shape = text.substr(colon + 1, sign == text.npos ? sign : sign - colon - 1);
    if (shape != "*") spec.shape = PartialTensorShape(gtl::ArraySlice<std::int64_t>(Numbers(shape, 'x')));
    if (sign != text.npos) {
      std::vector<std::int64_t> numbers;
      std::istringstream stream(text.substr(sign + 1));
      for (std::string word; std::getline(stream, word, ';');) {
        numbers.push_back(word == "?" ? detail::kUnknownNumber : std::stoll(word));
      }
      spec.numbers = numbers;
    }
    specs.push_back(spec);
  }
  detail::InferenceContext context(row, line.attrs, specs, 1);
  const Status status = functions.infer(&context);
  if (!status.ok()) return Refuse(to, status);
  to << "SHAPE " << context.output(0).shape.DebugString() << '\n';
}

bool Run(const Line& line, const Functions& functions, std::istream& from, std::ostream& to) {
  const detail::OpRow row{};
  std::vector<Tensor> inputs;
  for (const std::string& text : line.inputs) {
    const std::size_t colon = text.find(':');
    const std::vector<std::int64_t> sizes = Numbers(text.substr(colon + 1), 'x');
    Tensor tensor(TypeOf(text.substr(0, colon)), TensorShape(gtl::ArraySlice<std::int64_t>(sizes)));
    if (!tensor.IsInitialized()) return false;
    from.read(static_cast<char*>(tensor.data()), static_cast<std::streamsize>(tensor.TotalBytes()));
    inputs.push_back(tensor);
  }
  const std::string name = "node";
  const DataType dtype = inputs.back().dtype();
  const std::vector<DataType> types = {dtype};
  detail::KernelContext context(row, line.attrs, name, inputs, {}, types, line.threads);
  const Status status = functions.compute(&context);
  if (!status.ok()) {
    Refuse(to, status);
    return true;
  }
  const Tensor& result = context.output(0);
  to << "OK " << DataTypeString(result.dtype()) << ' ' << result.shape().DebugString() << '\n';
  to.write(static_cast<const char*>(result.data()), static_cast<std::streamsize>(result.TotalBytes()));
  return true;
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  std::ifstream from(words[1], std::ios::binary);
  std::ofstream to(words[2], std::ios::binary);
  for (std::string text; std::getline(from, text);) {
    const Line line = Parse(text);
    const Functions* const functions = Find(line.op);
    if (functions == nullptr) return 3;
    if (line.verb == "INFER") {
      Infer(line, *functions, to);
    } else if (!Run(line, *functions, from, to)) {
      return 4;
    }
  }
  const ConvolutionCounts counts = Convolutions();
  std::cout << counts.packs << " on packs, " << counts.plain << " on plain loops\n";
  return 0;
}
