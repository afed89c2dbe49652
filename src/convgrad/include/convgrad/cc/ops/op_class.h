// What the generated op classes have in common.
//
// Attrs ask for no memory, so making and copying them cannot fail before an op's constructor is
// entered. Words are the exception: one of 16 letters and more, which no attribute allows, is kept in
// memory, and a std::bad_alloc of it leaves from the caller's own expression.
#ifndef CONVGRAD_CC_OPS_OP_CLASS_H_
#define CONVGRAD_CC_OPS_OP_CLASS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>
#include <vector>

#include "convgrad/cc/scope.h"
#if !defined(CONVGRAD_SEPARATE) || defined(CONVGRAD_IMPLEMENTATION)
#include "convgrad/cc/table/rows.h"
#endif

namespace convgrad {
namespace detail {

// A list that Attrs own, where TensorFlow's look at one that may be gone. It asks for no memory; of
// a list longer than any op takes it keeps so much that the op refuses it.
class IntList {
 public:
  IntList() = default;
  IntList(std::initializer_list<int> list)
      : IntList(gtl::ArraySlice<int>(list.begin(), list.size())) {}
  IntList(const gtl::ArraySlice<int>& list) : size_(std::min(list.size(), kMost)) {
    std::copy_n(list.data(), size_, list_);
  }
  const int* data() const { return list_; }
  std::size_t size() const { return size_; }
  const int* begin() const { return list_; }
  const int* end() const { return list_ + size_; }

 private:
  static constexpr std::size_t kMost = 32;
  int list_[kMost] = {};
  std::size_t size_ = 0;
};

inline std::vector<std::int64_t> Numbers(const gtl::ArraySlice<int>& list) {
  return std::vector<std::int64_t>(list.begin(), list.end());
}

inline Operation Make(const Scope& scope, std::string_view name, const std::vector<Input>& inputs,
                      Attributes attrs) {
  return AddNode(scope, *FindRow(name), inputs, std::move(attrs));
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_OPS_OP_CLASS_H_
