// Tensors as text, as TensorFlow prints them.
#ifndef CONVGRAD_CC_SUMMARY_H_
#define CONVGRAD_CC_SUMMARY_H_

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>

#include "convgrad/cc/tensor_shape.h"

namespace convgrad {
namespace detail {

// As few digits as are read back as the same number: of float six or nine, of double 15 or 17.
inline std::string FloatText(double value, bool is_float) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", is_float ? 6 : 15, value);
  const double back =
      is_float ? static_cast<double>(std::strtof(text, nullptr)) : std::strtod(text, nullptr);
  if (back != value && value == value) {
    std::snprintf(text, sizeof text, "%.*g", is_float ? 9 : 17, value);
  }
  return text;
}

template <class T>
std::string ElementText(T value) {
  if constexpr (std::is_same_v<T, double>) {
    return FloatText(value, false);
  } else if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16> ||
                       std::is_same_v<T, float>) {
    return FloatText(static_cast<double>(static_cast<float>(value)), true);
  } else {
    return std::to_string(value);  // also of bytes, which are numbers here
  }
}

template <class T>
class Printer {
 public:
  Printer(const TensorShape& shape, const T* data) : shape_(shape), data_(data) {}

  // The first `most` elements, rows in brackets.
  std::string Start(std::int64_t most) {
    if (shape_.dims() == 0) {
      if (most > 0) text_ += ElementText(data_[0]);
    } else {
      Rows(0, most);
    }
    if (shape_.num_elements() > most) text_ += "...";
    return text_;
  }

  // `ends` at either end of every dimension, one row below the other.
  std::string Ends(std::int64_t ends) {
    if (shape_.dims() == 0 && ends == 0) return "...";
    Box(0, 0, ends);
    return text_;
  }

 private:
  void Rows(int axis, std::int64_t most) {
    if (at_ >= most) return;
    const bool last = axis == shape_.dims() - 1;
    for (std::int64_t i = 0; i < shape_.dim_size(axis); ++i) {
      if (last) {
        if (at_ >= most) {
          if (axis != 0) text_ += "...";
          return;
        }
        if (i > 0) text_ += ' ';
        text_ += ElementText(data_[at_++]);
      } else {
        const bool opened = at_ < most;
        if (!opened) return;
        text_ += '[';
        Rows(axis + 1, most);
        text_ += ']';
      }
    }
  }

  void Box(int axis, std::int64_t at, std::int64_t ends) {
    if (axis == shape_.dims()) {
      text_ += ElementText(data_[at]);
      return;
    }
    std::int64_t inner = 1;
    for (int i = axis + 1; i < shape_.dims(); ++i) inner *= shape_.dim_size(i);
    const std::int64_t count = shape_.dim_size(axis);
    text_ += '[';
    const bool cut = count > 2 * ends;
    for (std::int64_t i = 0; i < (cut ? ends : count); ++i) {
      if (i > 0) Space(axis);
      Box(axis + 1, at + i * inner, ends);
    }
    if (cut) {
      Space(axis);  // also with nothing before it, as TensorFlow does
      text_ += "...";
    }
    for (std::int64_t i = count - ends; cut && i < count; ++i) {
      Space(axis);
      Box(axis + 1, at + i * inner, ends);
    }
    text_ += ']';
  }
  void Space(int axis) {
    const int below = shape_.dims() - axis - 1;
    if (below == 0) {
      text_ += ' ';
    } else {
      text_.append(static_cast<std::size_t>(below), '\n');
      text_.append(static_cast<std::size_t>(axis) + 1, ' ');
    }
  }

  const TensorShape& shape_;
  const T* data_;
  std::int64_t at_ = 0;
  std::string text_;
};

inline std::string Summary(DataType type, const TensorShape& shape, const void* data,
                           std::int64_t most, bool v2) {
  std::string text;
  ForType(type, [&](auto zero) {
    using T = decltype(zero);
    Printer<T> printer(shape, static_cast<const T*>(data));
    const std::int64_t count = shape.num_elements();
    const std::int64_t limit = most < 0 ? count : std::min(most, count);
    text = v2 ? printer.Ends(limit) : printer.Start(limit);
  }).IgnoreError();
  return text;
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_SUMMARY_H_
