// Attributes of a node, by the names of the table of ops. They own what they hold.
#ifndef CONVGRAD_CC_ATTRIBUTES_H_
#define CONVGRAD_CC_ATTRIBUTES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "convgrad/cc/tensor.h"

namespace convgrad {
namespace detail {

using AttrValue = std::variant<std::monostate, bool, std::int64_t, float, std::string,
                               std::vector<std::int64_t>, DataType, PartialTensorShape, Tensor>;

// A name that is not there, or of another kind, gives an empty value.
class Attributes {
 public:
  void Set(std::string_view name, AttrValue value) {
    for (auto& [known, held] : values_) {
      if (known == name) {
        held = std::move(value);
        return;
      }
    }
    values_.emplace_back(std::string(name), std::move(value));
  }
  bool Has(std::string_view name) const { return Find(name) != nullptr; }
  // Null if there is no such attribute.
  const AttrValue* Find(std::string_view name) const {
    for (const auto& [known, held] : values_) {
      if (known == name) return &held;
    }
    return nullptr;
  }

  bool Bool(std::string_view name) const { return Get<bool>(name); }
  std::int64_t Int(std::string_view name) const { return Get<std::int64_t>(name); }
  float Float(std::string_view name) const { return Get<float>(name); }
  const std::string& String(std::string_view name) const { return Get<std::string>(name); }
  const std::vector<std::int64_t>& Ints(std::string_view name) const {
    return Get<std::vector<std::int64_t>>(name);
  }
  DataType Type(std::string_view name) const { return Get<DataType>(name); }
  const PartialTensorShape& Shape(std::string_view name) const {
    return Get<PartialTensorShape>(name);
  }
  const Tensor& Value(std::string_view name) const { return Get<Tensor>(name); }

 private:
  template <class T>
  const T& Get(std::string_view name) const {
    static const T kNone{};
    const AttrValue* found = Find(name);
    const T* held = found == nullptr ? nullptr : std::get_if<T>(found);
    return held == nullptr ? kNone : *held;
  }

  std::vector<std::pair<std::string, AttrValue>> values_;
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_ATTRIBUTES_H_
