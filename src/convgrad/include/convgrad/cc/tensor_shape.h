// TensorShape and PartialTensorShape.
//
// Where TensorFlow ends the process (a negative size, more elements than 63 bits count), the shape
// is kept as it is and says IsValid() == false; a tensor of it has no memory, and a node refuses
// it.
#ifndef CONVGRAD_CC_TENSOR_SHAPE_H_
#define CONVGRAD_CC_TENSOR_SHAPE_H_

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "convgrad/cc/array_slice.h"
#include "convgrad/cc/status.h"
#include "convgrad/cc/types.h"

namespace convgrad {

class TensorShape;
class PartialTensorShape;

namespace detail {

// A list of sizes. Up to eight are inside, so that tensors are copied without asking for memory.
class Sizes {
 public:
  Sizes() = default;
  Sizes(const std::int64_t* data, std::size_t count) { Assign(data, count); }
  void Assign(const std::int64_t* data, std::size_t count) {
    count_ = 0;
    many_.clear();
    if (count > kFew) many_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) Push(data[i]);
  }
  void Push(std::int64_t size) {
    if (count_ == kFew) many_.assign(few_, few_ + kFew);
    if (count_ >= kFew) {
      many_.push_back(size);
    } else {
      few_[count_] = size;
    }
    ++count_;
  }
  void Insert(std::size_t at, std::int64_t size) {
    Push(size);
    std::rotate(data() + at, data() + count_ - 1, data() + count_);
  }
  void Erase(std::size_t from, std::size_t to) {
    std::copy(data() + to, data() + count_, data() + from);
    const std::size_t count = count_ - (to - from);
    if (count_ > kFew && count <= kFew) {
      std::copy(many_.begin(), many_.begin() + static_cast<std::ptrdiff_t>(count), few_);
      many_.clear();
    } else if (count > kFew) {
      many_.resize(count);
    }
    count_ = count;
  }
  std::size_t size() const { return count_; }
  std::int64_t* data() { return count_ > kFew ? many_.data() : few_; }
  const std::int64_t* data() const { return count_ > kFew ? many_.data() : few_; }
  std::int64_t operator[](std::size_t i) const { return data()[i]; }
  const std::int64_t* begin() const { return data(); }
  const std::int64_t* end() const { return data() + count_; }
  bool operator==(const Sizes& other) const {
    return count_ == other.count_ && std::equal(begin(), end(), other.begin());
  }

 private:
  static constexpr std::size_t kFew = 8;
  std::int64_t few_[kFew] = {};
  std::size_t count_ = 0;
  std::vector<std::int64_t> many_;
};

// The product of sizes, -1 if one is not known or negative, -2 if it does not fit 63 bits.
inline std::int64_t Product(const Sizes& sizes) {
  std::int64_t product = 1;
  bool empty = false, over = false;
  for (const std::int64_t size : sizes) {
    if (size < 0) return -1;
    if (size == 0) {
      empty = true;
    } else if (product > std::numeric_limits<std::int64_t>::max() / size) {
      over = true;
    } else {
      product *= size;
    }
  }
  if (over) return -2;  // also with a zero: as many elements as before it could not be counted
  return empty ? 0 : product;
}

}  // namespace detail

struct TensorShapeDim {
  explicit TensorShapeDim(std::int64_t s) : size(s) {}
  std::int64_t size;
};

// One size after the other, as `for (const auto& dim : shape) dim.size`.
class TensorShapeIter {
 public:
  TensorShapeIter(const std::int64_t* at) : at_(at) {}
  TensorShapeDim operator*() const { return TensorShapeDim(*at_); }
  TensorShapeIter& operator++() {
    ++at_;
    return *this;
  }
  bool operator==(const TensorShapeIter& other) const { return at_ == other.at_; }
  bool operator!=(const TensorShapeIter& other) const { return at_ != other.at_; }

 private:
  const std::int64_t* at_;
};

class TensorShape {
 public:
  static constexpr int MaxDimensions() { return 254; }

  TensorShape() = default;
  TensorShape(std::initializer_list<std::int64_t> sizes) : sizes_(sizes.begin(), sizes.size()) {}
  explicit TensorShape(gtl::ArraySlice<std::int64_t> sizes) : sizes_(sizes.data(), sizes.size()) {}
  explicit TensorShape(gtl::ArraySlice<std::int32_t> sizes) {
    for (const std::int32_t size : sizes) sizes_.Push(size);
  }
  explicit TensorShape(const std::vector<std::int64_t>& sizes)
      : sizes_(sizes.data(), sizes.size()) {}

  static Status BuildTensorShape(gtl::ArraySlice<std::int64_t> sizes, TensorShape* out) {
    CONVGRAD_TRY {
      TensorShape found(sizes);
      TF_RETURN_IF_ERROR(found.Check());
      *out = found;
      return Status();
    }
    CONVGRAD_CATCH(return detail::OutOfMemory();)
  }
  static Status BuildTensorShape(std::initializer_list<std::int64_t> sizes, TensorShape* out) {
    return BuildTensorShape(gtl::ArraySlice<std::int64_t>(sizes.begin(), sizes.size()), out);
  }

  int dims() const { return static_cast<int>(sizes_.size()); }
  std::int64_t dim_size(int i) const {
    return i >= 0 && i < dims() ? sizes_[static_cast<std::size_t>(i)] : 0;
  }
  std::vector<std::int64_t> dim_sizes() const { return {sizes_.begin(), sizes_.end()}; }
  std::int64_t num_elements() const { return std::max<std::int64_t>(detail::Product(sizes_), 0); }
  bool IsFullyDefined() const { return true; }
  bool unknown_rank() const { return false; }

  // Whether there can be a tensor of it.
  bool IsValid() const { return dims() <= MaxDimensions() && detail::Product(sizes_) >= 0; }
  Status Check() const {
    if (dims() > MaxDimensions()) {
      return errors::InvalidArgument("Too many dimensions in tensor: ", dims());
    }
    for (const std::int64_t size : sizes_) {
      if (size < 0) {
        return errors::InvalidArgument("Expected shape dimensions to be non-negative, got ", size);
      }
    }
    if (!IsValid()) {
      return errors::InvalidArgument(
          "Encountered overflow when multiplying shape dimensions, shape ", DebugString());
    }
    return Status();
  }

  void Clear() { sizes_ = detail::Sizes(); }
  void AddDim(std::int64_t size) { sizes_.Push(size); }
  Status AddDimWithStatus(std::int64_t size) { return Try([&] { sizes_.Push(size); }); }
  void AppendShape(const TensorShape& other) {
    const detail::Sizes more = other.sizes_;
    for (const std::int64_t size : more) sizes_.Push(size);
  }
  Status AppendShapeWithStatus(const TensorShape& other) {
    return Try([&] { AppendShape(other); });
  }
  void InsertDim(int at, std::int64_t size) {
    if (at >= 0 && at <= dims()) sizes_.Insert(static_cast<std::size_t>(at), size);
  }
  Status InsertDimWithStatus(int at, std::int64_t size) {
    if (at < 0 || at > dims()) {
      return errors::Internal("Expected shape rank to be in range [0, ", dims(), "], got ", at);
    }
    return Try([&] { InsertDim(at, size); });
  }
  void set_dim(int i, std::int64_t size) {
    if (i >= 0 && i < dims()) sizes_.data()[i] = size;
  }
  Status SetDimWithStatus(int i, std::int64_t size) {
    if (i < 0 || i >= dims()) {
      return errors::InvalidArgument("Index must be non-negative and less than ", dims(), ", got ",
                                     i);
    }
    return Try([&] { set_dim(i, size); });
  }
  void RemoveDim(int i) { RemoveDimRange(i, i + 1); }
  void RemoveLastDims(int count) { RemoveDimRange(dims() - count, dims()); }
  // Negative places count from the end, -1 being behind the last.
  void RemoveDimRange(int begin, int end) {
    begin = begin < 0 ? dims() + begin + 1 : begin;
    end = end < 0 ? dims() + end + 1 : end;
    if (begin < 0 || end > dims() || begin >= end) return;
    sizes_.Erase(static_cast<std::size_t>(begin), static_cast<std::size_t>(end));
  }

  TensorShapeIter begin() const { return TensorShapeIter(sizes_.begin()); }
  TensorShapeIter end() const { return TensorShapeIter(sizes_.end()); }

  bool IsSameSize(const TensorShape& other) const { return sizes_ == other.sizes_; }
  bool operator==(const TensorShape& other) const { return sizes_ == other.sizes_; }
  bool operator!=(const TensorShape& other) const { return !(*this == other); }

  std::string DebugString() const {
    std::string text = "[";
    for (int i = 0; i < dims(); ++i) {
      if (i) text += ',';
      text += std::to_string(dim_size(i));
    }
    return text + "]";
  }

 private:
  friend class PartialTensorShape;

  template <class F>
  Status Try(F change) {
    CONVGRAD_TRY {
      const detail::Sizes before = sizes_;
      change();
      const Status status = Check();
      if (!status.ok()) sizes_ = before;
      return status;
    }
    CONVGRAD_CATCH(return detail::OutOfMemory();)
  }

  detail::Sizes sizes_;
};

inline std::ostream& operator<<(std::ostream& stream, const TensorShape& shape) {
  return stream << shape.DebugString();
}

// A shape of which sizes (-1), or even their number, may not be known yet.
class PartialTensorShape {
 public:
  PartialTensorShape() = default;
  PartialTensorShape(std::initializer_list<std::int64_t> sizes)
      : sizes_(sizes.begin(), sizes.size()), known_(true) {}
  explicit PartialTensorShape(gtl::ArraySlice<std::int64_t> sizes)
      : sizes_(sizes.data(), sizes.size()), known_(true) {}
  explicit PartialTensorShape(const std::vector<std::int64_t>& sizes)
      : sizes_(sizes.data(), sizes.size()), known_(true) {}
  PartialTensorShape(const TensorShape& shape) : sizes_(shape.sizes_), known_(true) {}

  int dims() const { return known_ ? static_cast<int>(sizes_.size()) : -1; }
  std::int64_t dim_size(int i) const {
    return i >= 0 && i < dims() ? sizes_[static_cast<std::size_t>(i)] : -1;
  }
  std::vector<std::int64_t> dim_sizes() const { return {sizes_.begin(), sizes_.end()}; }
  bool unknown_rank() const { return !known_; }
  bool IsFullyDefined() const {
    return known_ && std::none_of(sizes_.begin(), sizes_.end(), [](auto size) { return size < 0; });
  }
  std::int64_t num_elements() const { return known_ ? detail::Product(sizes_) : -1; }
  // -1 is a size that is not known; no other may be negative.
  bool IsValid() const {
    return dims() <= TensorShape::MaxDimensions() && detail::Product(sizes_) != -2 &&
           std::none_of(sizes_.begin(), sizes_.end(), [](auto size) { return size < -1; });
  }
  bool AsTensorShape(TensorShape* shape) const {
    if (!IsFullyDefined()) return false;
    shape->sizes_ = sizes_;
    return true;
  }

  void AddDim(std::int64_t size) {
    if (known_) sizes_.Push(size);
  }
  void set_dim(int i, std::int64_t size) {
    if (i >= 0 && i < dims()) sizes_.data()[i] = size;
  }
  PartialTensorShape Concatenate(std::int64_t size) const {
    PartialTensorShape found = *this;
    found.AddDim(size);
    return found;
  }
  PartialTensorShape Concatenate(const PartialTensorShape& other) const {
    if (!known_ || !other.known_) return PartialTensorShape();
    PartialTensorShape found = *this;
    for (const std::int64_t size : other.sizes_) found.AddDim(size);
    return found;
  }

  bool IsCompatibleWith(const PartialTensorShape& other) const {
    if (!known_ || !other.known_) return true;
    if (dims() != other.dims()) return false;
    for (int i = 0; i < dims(); ++i) {
      const std::int64_t a = dim_size(i), b = other.dim_size(i);
      if (a >= 0 && b >= 0 && a != b) return false;
    }
    return true;
  }
  bool IsIdenticalTo(const PartialTensorShape& other) const {
    return known_ == other.known_ && sizes_ == other.sizes_;
  }
  Status MergeWith(const PartialTensorShape& other, PartialTensorShape* result) const {
    CONVGRAD_TRY {
      if (!known_ || !other.known_) {
        *result = known_ ? *this : other;
        return Status();
      }
      if (dims() != other.dims()) {
        return errors::InvalidArgument("PartialTensorShape: Incompatible ranks during merge: ",
                                       dims(), " vs. ", other.dims());
      }
      if (!IsCompatibleWith(other)) {
        return errors::InvalidArgument("PartialTensorShape: Incompatible shapes during merge: ",
                                       DebugString(), " vs. ", other.DebugString());
      }
      PartialTensorShape found = *this;
      for (int i = 0; i < dims(); ++i) found.set_dim(i, std::max(dim_size(i), other.dim_size(i)));
      *result = found;
      return Status();
    }
    CONVGRAD_CATCH(return detail::OutOfMemory();)
  }
  // Two sizes that are not known may differ.
  bool operator==(const PartialTensorShape& other) const { return IsIdenticalTo(other); }
  bool operator!=(const PartialTensorShape& other) const { return !IsIdenticalTo(other); }

  static Status MakePartialShape(const std::int64_t* sizes, int count, PartialTensorShape* out) {
    CONVGRAD_TRY {
      PartialTensorShape found(
          gtl::ArraySlice<std::int64_t>(sizes, static_cast<std::size_t>(std::max(count, 0))));
      if (!found.IsValid()) {
        return errors::InvalidArgument("Shape ", found.DebugString(), " is not valid");
      }
      *out = found;
      return Status();
    }
    CONVGRAD_CATCH(return detail::OutOfMemory();)
  }

  std::string DebugString() const {
    if (!known_) return "<unknown>";
    std::string text = "[";
    for (int i = 0; i < dims(); ++i) {
      if (i) text += ',';
      text += dim_size(i) < 0 ? "?" : std::to_string(dim_size(i));
    }
    return text + "]";
  }

 private:
  detail::Sizes sizes_;
  bool known_ = false;
};

inline std::ostream& operator<<(std::ostream& stream, const PartialTensorShape& shape) {
  return stream << shape.DebugString();
}

class TensorShapeUtils {
 public:
  static bool IsScalar(const TensorShape& shape) { return shape.dims() == 0; }
  static bool IsVector(const TensorShape& shape) { return shape.dims() == 1; }
  static bool IsVectorOrHigher(const TensorShape& shape) { return shape.dims() >= 1; }
  static bool IsMatrix(const TensorShape& shape) { return shape.dims() == 2; }
  static bool IsMatrixOrHigher(const TensorShape& shape) { return shape.dims() >= 2; }
  static bool IsSquareMatrix(const TensorShape& shape) {
    return shape.dims() == 2 && shape.dim_size(0) == shape.dim_size(1);
  }
  static bool IsSingleElement(const TensorShape& shape) {
    return shape.dims() == 0 || (shape.dims() == 1 && shape.dim_size(0) == 1);
  }
  static bool StartsWith(const TensorShape& shape, const TensorShape& prefix) {
    if (shape.dims() < prefix.dims()) return false;
    for (int i = 0; i < prefix.dims(); ++i) {
      if (shape.dim_size(i) != prefix.dim_size(i)) return false;
    }
    return true;
  }
  static bool EndsWith(const TensorShape& shape, const TensorShape& suffix) {
    const int skipped = shape.dims() - suffix.dims();
    if (skipped < 0) return false;
    for (int i = 0; i < suffix.dims(); ++i) {
      if (shape.dim_size(skipped + i) != suffix.dim_size(i)) return false;
    }
    return true;
  }
  template <class T>
  static Status MakeShape(const T* sizes, std::int64_t count, TensorShape* out) {
    CONVGRAD_TRY {
      TensorShape found;
      for (std::int64_t i = 0; i < count; ++i) found.AddDim(static_cast<std::int64_t>(sizes[i]));
      TF_RETURN_IF_ERROR(found.Check());
      *out = found;
      return Status();
    }
    CONVGRAD_CATCH(return detail::OutOfMemory();)
  }
  template <class T>
  static Status MakeShape(gtl::ArraySlice<T> sizes, TensorShape* out) {
    return MakeShape(sizes.data(), static_cast<std::int64_t>(sizes.size()), out);
  }
  static std::string ShapeListString(gtl::ArraySlice<TensorShape> shapes) {
    std::string text = "[";
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      text += (i ? ", " : "") + shapes[i].DebugString();
    }
    return text + "]";
  }
};

}  // namespace convgrad

#endif  // CONVGRAD_CC_TENSOR_SHAPE_H_
