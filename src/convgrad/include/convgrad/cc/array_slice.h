// gtl::ArraySlice: somebody else's array, looked at. Nothing here keeps one: attributes own their
// lists.
#ifndef CONVGRAD_CC_ARRAY_SLICE_H_
#define CONVGRAD_CC_ARRAY_SLICE_H_

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace convgrad {
namespace gtl {

template <class T>
class ArraySlice {
 public:
  using value_type = T;
  using const_iterator = const T*;
  using iterator = const T*;
  using size_type = std::size_t;

  ArraySlice() = default;
  ArraySlice(const T* data, std::size_t size) : data_(data), size_(size) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"  // it lives as long as the call
#endif
  ArraySlice(std::initializer_list<T> list) : data_(list.begin()), size_(list.size()) {}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  template <std::size_t kSize>
  ArraySlice(const T (&array)[kSize]) : data_(array), size_(kSize) {}
  // Vectors, arrays and whatever else has data() and size().
  template <
      class C,
      class = std::enable_if_t<
          std::is_convertible_v<decltype(std::declval<const C&>().data()), const T*> &&
          std::is_convertible_v<decltype(std::declval<const C&>().size()), std::size_t>>>
  ArraySlice(const C& container) : data_(container.data()), size_(container.size()) {}

  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  const T* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::size_t length() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return data_[i]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

 private:
  const T* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace gtl
}  // namespace convgrad

#endif  // CONVGRAD_CC_ARRAY_SLICE_H_
