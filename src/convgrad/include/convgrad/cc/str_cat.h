// StrCat, which prints numbers as TensorFlow's messages have them.
#ifndef CONVGRAD_CC_STR_CAT_H_
#define CONVGRAD_CC_STR_CAT_H_

#include <cstdint>
#include <cstdio>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

namespace convgrad {

using std::string;
using StringPiece = std::string_view;
using int8 = std::int8_t;
using int16 = std::int16_t;
using int32 = std::int32_t;
using int64 = std::int64_t;
using uint8 = std::uint8_t;
using uint16 = std::uint16_t;
using uint32 = std::uint32_t;
using uint64 = std::uint64_t;

namespace detail {

// Six digits at most: what a message is read for.
inline std::string ShortNumber(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

template <class T>
void AppendText(std::string* to, const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    *to += value ? '1' : '0';
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    const std::string_view text = value;
    to->append(text.data(), text.size());
  } else if constexpr (std::is_floating_point_v<T>) {
    *to += ShortNumber(static_cast<double>(value));
  } else if constexpr (std::is_enum_v<T>) {
    *to += std::to_string(static_cast<std::underlying_type_t<T>>(value));
  } else if constexpr (std::is_integral_v<T>) {
    *to += std::to_string(value);
  } else {
    std::ostringstream stream;
    stream << value;
    *to += stream.str();
  }
}

}  // namespace detail

namespace strings {

template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::string text;
  (detail::AppendText(&text, parts), ...);
  return text;
}

template <class... Parts>
void StrAppend(std::string* to, const Parts&... parts) {
  (detail::AppendText(to, parts), ...);
}

}  // namespace strings
}  // namespace convgrad

#endif  // CONVGRAD_CC_STR_CAT_H_
