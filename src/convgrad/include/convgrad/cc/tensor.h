// Tensor: a type, a shape, and memory that copies share. Memory is 64-byte aligned.
#ifndef CONVGRAD_CC_TENSOR_H_
#define CONVGRAD_CC_TENSOR_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <new>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "convgrad/cc/tensor_memory.h"
#include "convgrad/cc/summary.h"
#include "convgrad/cc/tensor_shape.h"
#include "convgrad/cc/view.h"

namespace convgrad {

// A view of another type or number of dimensions than the tensor's is empty, where TensorFlow ends
// the process.
class Tensor {
 public:
  Tensor() : Tensor(DT_FLOAT) {}
  explicit Tensor(DataType type) : type_(type) { shape_.AddDim(0); }
  // IsInitialized() says whether there was memory for it. Its elements are not set.
  Tensor(DataType type, const TensorShape& shape) : type_(type) {
    CONVGRAD_TRY { shape_ = shape; }
    CONVGRAD_CATCH(shape_ = TensorShape({0}); return;)
    std::size_t bytes = 0;
    if (detail::BytesOf(type, shape_, &bytes)) memory_ = detail::Memory::Allocate(bytes);
  }

  explicit Tensor(float value) : Tensor(value, Element()) {}
  explicit Tensor(double value) : Tensor(value, Element()) {}
  explicit Tensor(half value) : Tensor(value, Element()) {}
  explicit Tensor(bfloat16 value) : Tensor(value, Element()) {}
  explicit Tensor(std::int8_t value) : Tensor(value, Element()) {}
  explicit Tensor(std::int16_t value) : Tensor(value, Element()) {}
  explicit Tensor(std::int32_t value) : Tensor(value, Element()) {}
  explicit Tensor(long value) : Tensor(value, Element()) {}
  explicit Tensor(long long value) : Tensor(value, Element()) {}
  explicit Tensor(std::uint8_t value) : Tensor(value, Element()) {}
  explicit Tensor(std::uint16_t value) : Tensor(value, Element()) {}
  explicit Tensor(std::uint32_t value) : Tensor(value, Element()) {}
  explicit Tensor(unsigned long value) : Tensor(value, Element()) {}
  explicit Tensor(unsigned long long value) : Tensor(value, Element()) {}
  explicit Tensor(bool value) : Tensor(value, Element()) {}
  // There is no memory for strings: a tensor of one is not initialized, and nodes refuse it.
  explicit Tensor(const tstring&) : Tensor(DT_STRING, TensorShape()) {}
  explicit Tensor(const char*) : Tensor(DT_STRING, TensorShape()) {}

  static Status BuildTensor(DataType type, const TensorShape& shape, Tensor* out) {
    TF_RETURN_IF_ERROR(shape.Check());
    if (DataTypeSize(type) == 0 || IsRefType(type)) {
      return errors::InvalidArgument("Type not set or not offered: ", DataTypeString(type));
    }
    Tensor made(type, shape);
    if (!made.IsInitialized()) return detail::NoRoom(type, shape);
    *out = std::move(made);
    return Status();
  }

  DataType dtype() const { return type_; }
  const TensorShape& shape() const { return shape_; }
  int dims() const { return shape_.dims(); }
  std::int64_t dim_size(int i) const { return shape_.dim_size(i); }
  std::int64_t NumElements() const { return shape_.num_elements(); }
  bool IsSameSize(const Tensor& other) const { return shape_ == other.shape_; }
  bool SharesBufferWith(const Tensor& other) const { return memory_.SharedWith(other.memory_); }
  bool IsInitialized() const {
    return shape_.IsValid() && (NumElements() == 0 || memory_.data() != nullptr);
  }
  std::size_t TotalBytes() const {
    std::size_t bytes = 0;
    return detail::BytesOf(type_, shape_, &bytes) ? bytes : 0;
  }
  std::size_t AllocatedBytes() const { return memory_.bytes(); }
  bool IsAligned() const { return reinterpret_cast<std::uintptr_t>(data()) % 64 == 0; }
  // Whether nobody else has this memory: who holds the only tensor of it may write over it.
  bool RefCountIsOne() const { return memory_.Alone(); }

  bool CopyFrom(const Tensor& other, const TensorShape& shape) {
    CONVGRAD_TRY {
      if (!shape.IsValid() || other.NumElements() != shape.num_elements()) return false;
      Tensor copy = other;
      copy.shape_ = shape;
      *this = std::move(copy);
      return true;
    }
    CONVGRAD_CATCH(return false;)
  }
  // Elements [from, to) of the first dimension, in the same memory. Empty where there are no such.
  Tensor Slice(std::int64_t from, std::int64_t to) const {
    if (dims() < 1 || from < 0 || from > to || to > dim_size(0)) return Tensor(type_);
    Tensor part = *this;
    part.shape_.set_dim(0, to - from);
    part.offset_ += static_cast<std::size_t>(from) * BytesOfOne();
    return part;
  }
  // One element of the first dimension, without that dimension.
  Tensor SubSlice(std::int64_t index) const {
    if (dims() < 1 || index < 0 || index >= dim_size(0)) return Tensor(type_);
    Tensor part = Slice(index, index + 1);
    part.shape_.RemoveDim(0);
    return part;
  }

  void* data() const {
    char* start = memory_.data();
    return start == nullptr ? nullptr : start + offset_;
  }
  std::string_view tensor_data() const {
    const void* start = data();
    if (start == nullptr) return std::string_view();
    return std::string_view(static_cast<const char*>(start), TotalBytes());
  }

  template <class T>
  auto flat() {
    return Map<T, 1>({NumElements()});
  }
  template <class T>
  auto flat() const {
    return Map<const T, 1>({NumElements()});
  }
  template <class T>
  auto vec() {
    return tensor<T, 1>();
  }
  template <class T>
  auto vec() const {
    return tensor<T, 1>();
  }
  template <class T>
  auto matrix() {
    return tensor<T, 2>();
  }
  template <class T>
  auto matrix() const {
    return tensor<T, 2>();
  }
  template <class T, std::size_t kDims>
  auto tensor() {
    return Map<T, static_cast<int>(kDims)>(Own<static_cast<int>(kDims)>());
  }
  template <class T, std::size_t kDims>
  auto tensor() const {
    return Map<const T, static_cast<int>(kDims)>(Own<static_cast<int>(kDims)>());
  }
  template <class T>
  auto scalar() {
    return detail::MakeView<T, 0>(NumElements() == 1 ? As<T>() : nullptr, {});
  }
  template <class T>
  auto scalar() const {
    return detail::MakeView<const T, 0>(NumElements() == 1 ? As<const T>() : nullptr, {});
  }
  template <class T, std::size_t kDims>
  auto shaped(gtl::ArraySlice<std::int64_t> sizes) {
    return Map<T, static_cast<int>(kDims)>(Given<static_cast<int>(kDims)>(sizes));
  }
  template <class T, std::size_t kDims>
  auto shaped(gtl::ArraySlice<std::int64_t> sizes) const {
    return Map<const T, static_cast<int>(kDims)>(Given<static_cast<int>(kDims)>(sizes));
  }
  // All dimensions but the last kDims - 1 in one.
  template <class T, std::size_t kDims = 2>
  auto flat_inner_dims() {
    return Map<T, static_cast<int>(kDims)>(Inner<static_cast<int>(kDims)>());
  }
  template <class T, std::size_t kDims = 2>
  auto flat_inner_dims() const {
    return Map<const T, static_cast<int>(kDims)>(Inner<static_cast<int>(kDims)>());
  }
  // All dimensions but the first kDims - 1 in one.
  template <class T, std::size_t kDims = 2>
  auto flat_outer_dims() {
    return Map<T, static_cast<int>(kDims)>(Outer<static_cast<int>(kDims)>());
  }
  template <class T, std::size_t kDims = 2>
  auto flat_outer_dims() const {
    return Map<const T, static_cast<int>(kDims)>(Outer<static_cast<int>(kDims)>());
  }

  std::string SummarizeValue(std::int64_t most, bool print_v2 = false) const {
    if (!IsInitialized()) {
      return strings::StrCat("uninitialized Tensor of ", NumElements(), " elements of type ",
                             static_cast<int>(type_));
    }
    return detail::Summary(type_, shape_, data(), most, print_v2);
  }
  std::string DebugString(int most) const {
    return strings::StrCat("Tensor<type: ", DataTypeString(type_), " shape: ", shape_.DebugString(),
                           " values: ", SummarizeValue(most), ">");
  }
  std::string DebugString() const { return DebugString(3); }

 private:
  struct Element {};
  template <class T>
  Tensor(T value, Element) : Tensor(DataTypeToEnum<T>::value, TensorShape()) {
    if (data() != nullptr) std::memcpy(data(), &value, sizeof value);
  }

  // Memory as elements, null if they are of another type.
  template <class T>
  T* As() const {
    using Plain = std::remove_const_t<T>;
    return DataTypeToEnum<Plain>::value == type_ ? static_cast<T*>(data()) : nullptr;
  }
  template <class T, int kDims>
  auto Map(const detail::Extents<kDims>& sizes) const {
    T* start = As<T>();
    for (const std::int64_t size : sizes) {
      if (size < 0) start = nullptr;
    }
    return detail::MakeView<T, kDims>(start, sizes);
  }
  template <int kDims>
  static detail::Extents<kDims> None() {
    detail::Extents<kDims> sizes{};
    sizes.fill(-1);
    return sizes;
  }
  template <int kDims>
  detail::Extents<kDims> Own() const {
    if (dims() != kDims) return None<kDims>();
    detail::Extents<kDims> sizes{};
    for (int i = 0; i < kDims; ++i) sizes[static_cast<std::size_t>(i)] = dim_size(i);
    return sizes;
  }
  template <int kDims>
  detail::Extents<kDims> Given(gtl::ArraySlice<std::int64_t> given) const {
    detail::Extents<kDims> sizes{};
    if (given.size() != sizes.size()) return None<kDims>();
    const detail::Sizes checked(given.data(), given.size());
    if (detail::Product(checked) != NumElements()) return None<kDims>();
    std::copy(given.begin(), given.end(), sizes.begin());
    return sizes;
  }
  template <int kDims>
  detail::Extents<kDims> Inner() const {
    detail::Extents<kDims> sizes{};
    sizes.fill(1);
    for (int i = 0; i < dims(); ++i) {
      sizes[static_cast<std::size_t>(std::max(kDims - 1 - i, 0))] *= dim_size(dims() - 1 - i);
    }
    return sizes;
  }
  template <int kDims>
  detail::Extents<kDims> Outer() const {
    detail::Extents<kDims> sizes{};
    sizes.fill(1);
    for (int i = 0; i < dims(); ++i) {
      sizes[static_cast<std::size_t>(std::min(i, kDims - 1))] *= dim_size(i);
    }
    return sizes;
  }
  std::size_t BytesOfOne() const {
    return dim_size(0) == 0 ? 0 : TotalBytes() / static_cast<std::size_t>(dim_size(0));
  }

  DataType type_;
  TensorShape shape_;
  detail::Memory memory_;
  std::size_t offset_ = 0;
};

namespace detail {

// The same numbers in memory of their own; without memory, a tensor that is not initialized.
inline Tensor DeepCopy(const Tensor& tensor) {
  const std::string_view bytes = tensor.tensor_data();
  if (bytes.empty()) return tensor;
  Tensor copy(tensor.dtype(), tensor.shape());
  if (copy.data() != nullptr) std::memcpy(copy.data(), bytes.data(), bytes.size());
  return copy;
}

}  // namespace detail

inline std::ostream& operator<<(std::ostream& stream, const Tensor& tensor) {
  return stream << tensor.DebugString();
}

}  // namespace convgrad

#endif  // CONVGRAD_CC_TENSOR_H_
