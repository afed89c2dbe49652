// Writes how numbers are rounded and printed; test_review.py knows what they must be.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "convgrad/cc/tensor.h"

using namespace convgrad;  // NOLINT

namespace {

template <class From>
std::vector<From> Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::vector<From> values(bytes.size() / sizeof(From));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

template <class From, class To>
void Convert(const std::string& in, const std::string& out) {
  std::ofstream file(out, std::ios::binary);
  for (const From value : Read<From>(in)) {
    const To made = static_cast<To>(value);
    file.write(reinterpret_cast<const char*>(&made), sizeof made);
  }
}

template <class T>
void Show(const std::vector<T>& values, const TensorShape& shape) {
  Tensor tensor(DataTypeToEnum<T>::value, shape);
  for (std::size_t i = 0; i < values.size(); ++i) tensor.flat<T>().data()[i] = values[i];
  for (const int most : {-1, 0, 1, 2, 3, 5, 100}) {
    std::printf("%s\n%s\n", tensor.SummarizeValue(most).c_str(),
                tensor.SummarizeValue(most, true).c_str());
  }
  std::printf("%s\n%s\n", tensor.DebugString().c_str(), tensor.DebugString(1).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) {
    const std::string folder = argv[1];
    Convert<float, half>(folder + "/float", folder + "/float_half");
    Convert<float, bfloat16>(folder + "/float", folder + "/float_bfloat16");
    Convert<double, half>(folder + "/double", folder + "/double_half");
    Convert<double, bfloat16>(folder + "/double", folder + "/double_bfloat16");
    Convert<half, float>(folder + "/half", folder + "/half_float");
    Convert<bfloat16, float>(folder + "/half", folder + "/bfloat16_float");
    return 0;
  }
  Show<float>({1.0f, 0.1f, 1e10f, -1e-7f, 16777216.0f, 1.0f / 3}, {2, 3});
  Show<float>({1.5f}, {});
  Show<float>({}, {0});
  Show<float>({}, {2, 0, 3});
  Show<double>({0.1, 1e300, 1.0 / 3, -0.0, 5e-324, 123456789012345680.0}, {6});
  Show<std::int32_t>({1, -2, 3, 4, 5, 6, 7, 8}, {2, 2, 2});
  Show<std::int64_t>({1, 2, 3, 4, 5, 6}, {3, 2});
  Show<std::uint8_t>({0, 200, 65}, {3});
  Show<std::int8_t>({-1, 65}, {2});
  Show<half>({half(0.1f), half(65504.0f), half(6e-8f)}, {1, 3});
  Show<bfloat16>({bfloat16(0.1f), bfloat16(3e38f), bfloat16(-1.0f)}, {3});
  Show<std::int32_t>(std::vector<std::int32_t>(36, 7), {2, 3, 6});
  std::printf("%s\n", Tensor(true).DebugString().c_str());
  return 0;
}
