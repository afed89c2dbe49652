// Prints what programs of this folder compare: the same text whether TensorFlow or convgrad is underneath.
#ifndef CONVGRAD_TESTS_CC_SHOW_H_
#define CONVGRAD_TESTS_CC_SHOW_H_

#include <cstdio>
#include <string>
#include <vector>

#include "tensorflow/cc/framework/ops.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/status.h"

template <typename T>
void ShowValues(const tensorflow::Tensor& tensor) {
  const auto flat = tensor.flat<T>();
  for (tensorflow::int64 i = 0; i < tensor.NumElements(); ++i) {
    std::printf(" %.9g", static_cast<double>(flat(i)));
  }
}

inline void Show(const std::string& label, const tensorflow::Tensor& tensor) {
  std::printf("%s = %s %s:", label.c_str(), tensorflow::DataTypeString(tensor.dtype()).c_str(),
              tensor.shape().DebugString().c_str());
  switch (tensor.dtype()) {
    case tensorflow::DT_FLOAT: ShowValues<float>(tensor); break;
    case tensorflow::DT_DOUBLE: ShowValues<double>(tensor); break;
    case tensorflow::DT_HALF: ShowValues<Eigen::half>(tensor); break;
    case tensorflow::DT_BFLOAT16: ShowValues<tensorflow::bfloat16>(tensor); break;
    case tensorflow::DT_INT32: ShowValues<tensorflow::int32>(tensor); break;
    case tensorflow::DT_INT64: ShowValues<tensorflow::int64>(tensor); break;
    case tensorflow::DT_INT8: ShowValues<tensorflow::int8>(tensor); break;
    case tensorflow::DT_UINT8: ShowValues<tensorflow::uint8>(tensor); break;
    case tensorflow::DT_BOOL: ShowValues<bool>(tensor); break;
    default: std::printf(" (not shown)");
  }
  std::printf("\n");
}

inline void Show(const std::string& label, const std::string& text) {
  std::printf("%s = %s\n", label.c_str(), text.c_str());
}

inline void Show(const std::string& label, const char* text) { Show(label, std::string(text)); }

inline void Show(const std::string& label, const tensorflow::Status& status) {
  Show(label, status.ok() ? std::string("OK") : status.ToString());
}

// The name of a tensor and of everything it is computed from, depth first.
inline void ShowNames(const std::string& label, const tensorflow::Output& output) {
  Show(label, output.name());
  const tensorflow::Operation op = output.op();
  for (tensorflow::int32 i = 0; i < op.num_inputs(); ++i) ShowNames(label + "." + std::to_string(i), op.input(i));
}

// Numbers nobody wrote down, the same on every machine: multiples of 1/8 between -2 and 2.
inline tensorflow::Tensor Numbers(tensorflow::DataType dtype, const tensorflow::TensorShape& shape,
                                  unsigned seed) {
  tensorflow::Tensor tensor(dtype, shape);
  unsigned state = seed * 2654435761u + 12345u;
  for (tensorflow::int64 i = 0; i < tensor.NumElements(); ++i) {
    state = state * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<int>(state >> 27) - 16) / 8.0f;
    if (dtype == tensorflow::DT_FLOAT) tensor.flat<float>()(i) = value;
    if (dtype == tensorflow::DT_DOUBLE) tensor.flat<double>()(i) = static_cast<double>(value);
    if (dtype == tensorflow::DT_HALF) tensor.flat<Eigen::half>()(i) = static_cast<Eigen::half>(value);
    if (dtype == tensorflow::DT_BFLOAT16) tensor.flat<tensorflow::bfloat16>()(i) = static_cast<tensorflow::bfloat16>(value);
  }
  return tensor;
}

#endif  // CONVGRAD_TESTS_CC_SHOW_H_
