// What tensors give to look into them: own views, or Eigen's maps with CONVGRAD_WITH_EIGEN.
#ifndef CONVGRAD_CC_VIEW_H_
#define CONVGRAD_CC_VIEW_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <type_traits>

#include "convgrad/cc/types.h"

#ifdef CONVGRAD_WITH_EIGEN
#include <unsupported/Eigen/CXX11/Tensor>
#endif

namespace convgrad {
namespace detail {

template <int kDims>
using Extents = std::array<std::int64_t, static_cast<std::size_t>(kDims)>;

// What Eigen::TensorMap is to most programs: (i, j, ...), size(), dimension(i), data(), setZero(),
// setConstant(v), =. An index outside gives an element of nobody's, never memory that is not the
// tensor's.
template <class T, int kDims>
class View {
 public:
  using Scalar = std::remove_const_t<T>;
  using Index = std::int64_t;
  static constexpr int NumDimensions = kDims;

  View(T* data, const Extents<kDims>& sizes) : data_(data), sizes_(sizes) {
    if (data == nullptr && kDims > 0) sizes_.fill(0);
    size_ = data == nullptr ? 0 : 1;
    for (const std::int64_t each : sizes_) size_ *= each;
  }
  View(const View&) = default;
  View& operator=(const View& other) {
    Copy(other);
    return *this;
  }
  template <class U>
  View& operator=(const View<U, kDims>& other) {
    Copy(other);
    return *this;
  }

  template <class... Indices>
  T& operator()(Indices... indices) const {
    static_assert(sizeof...(Indices) == static_cast<std::size_t>(kDims),
                  "as many indices as dimensions");
    std::int64_t at = 0;
    std::size_t axis = 0;
    bool inside = data_ != nullptr;
    ((Step(static_cast<std::int64_t>(indices), axis++, &at, &inside)), ...);
    return inside ? data_[at] : Nowhere();
  }
  T& operator[](std::int64_t at) const {
    return at >= 0 && at < size_ ? data_[at] : Nowhere();
  }
  T& operator()(const Extents<kDims>& indices) const {
    std::int64_t at = 0;
    bool inside = data_ != nullptr;
    for (std::size_t axis = 0; axis < indices.size(); ++axis) {
      Step(indices[axis], axis, &at, &inside);
    }
    return inside ? data_[at] : Nowhere();
  }

  std::int64_t size() const { return size_; }
  int rank() const { return kDims; }
  std::int64_t dimension(std::size_t i) const { return i < sizes_.size() ? sizes_[i] : 0; }
  const Extents<kDims>& dimensions() const { return sizes_; }
  T* data() const { return data_; }
  T* begin() const { return data_; }
  T* end() const { return data_ + size_; }

  const View& setZero() const { return setConstant(Scalar()); }
  const View& setConstant(const Scalar& value) const {
    std::fill(begin(), end(), value);
    return *this;
  }
  // Numbers of a list in order; a list of another length changes nothing.
  const View& setValues(std::initializer_list<Scalar> values) const {
    if (static_cast<std::int64_t>(values.size()) == size_) {
      std::copy(values.begin(), values.end(), data_);
    }
    return *this;
  }

 private:
  void Step(std::int64_t index, std::size_t axis, std::int64_t* at, bool* inside) const {
    *inside = *inside && index >= 0 && index < sizes_[axis];
    *at = *inside ? *at * sizes_[axis] + index : 0;
  }
  static T& Nowhere() {
    thread_local Scalar element{};
    element = Scalar{};
    return element;
  }
  template <class U>
  void Copy(const View<U, kDims>& other) {
    if (other.size() == size_) std::copy(other.begin(), other.end(), data_);
  }

  T* data_;
  Extents<kDims> sizes_;
  std::int64_t size_ = 0;
};

// The elements in lines, one per index of all dimensions but the last.
template <class T, int kDims>
std::ostream& operator<<(std::ostream& stream, const View<T, kDims>& view) {
  std::int64_t width = 1;
  if constexpr (kDims > 1) width = view.dimension(kDims - 1);
  for (std::int64_t at = 0; at < view.size(); ++at) {
    if (at > 0) stream << (at % width == 0 ? '\n' : ' ');
    stream << view[at];
  }
  return stream;
}

}  // namespace detail

template <class T, int kDims = 1, class IndexType = std::int64_t>
struct TTypes {
#ifdef CONVGRAD_WITH_EIGEN
  template <class U, int kCount>
  using Map = Eigen::TensorMap<Eigen::Tensor<U, kCount, Eigen::RowMajor, Eigen::DenseIndex>>;
  using Scalar = Eigen::TensorMap<Eigen::TensorFixedSize<T, Eigen::Sizes<>, Eigen::RowMajor>>;
  using ConstScalar =
      Eigen::TensorMap<Eigen::TensorFixedSize<const T, Eigen::Sizes<>, Eigen::RowMajor>>;
#else
  template <class U, int kCount>
  using Map = detail::View<U, kCount>;
  using Scalar = Map<T, 0>;
  using ConstScalar = Map<const T, 0>;
#endif
  using Tensor = Map<T, kDims>;
  using ConstTensor = Map<const T, kDims>;
  using UnalignedTensor = Tensor;
  using UnalignedConstTensor = ConstTensor;
  using Flat = Map<T, 1>;
  using ConstFlat = Map<const T, 1>;
  using Vec = Flat;
  using ConstVec = ConstFlat;
  using Matrix = Map<T, 2>;
  using ConstMatrix = Map<const T, 2>;
};

namespace detail {

// The map or view of `kDims` sizes; of nothing where data is null.
template <class T, int kDims>
auto MakeView(T* data, const Extents<kDims>& sizes) {
#ifdef CONVGRAD_WITH_EIGEN
  using Plain = std::remove_const_t<T>;
  static Plain nothing{};
  if constexpr (kDims == 0) {
    using Map = std::conditional_t<std::is_const_v<T>, typename TTypes<Plain>::ConstScalar,
                                   typename TTypes<Plain>::Scalar>;
    return Map(data == nullptr ? &nothing : data);
  } else {
    using Map = std::conditional_t<std::is_const_v<T>, typename TTypes<Plain, kDims>::ConstTensor,
                                   typename TTypes<Plain, kDims>::Tensor>;
    Eigen::DSizes<Eigen::DenseIndex, kDims> extents;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      extents[i] = data == nullptr ? 0 : static_cast<Eigen::DenseIndex>(sizes[i]);
    }
    return Map(data == nullptr ? &nothing : data, extents);
  }
#else
  return View<T, kDims>(data, sizes);
#endif
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_VIEW_H_
