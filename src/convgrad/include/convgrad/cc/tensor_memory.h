// Memory of tensors: asked for without exceptions, shared by counting.
#ifndef CONVGRAD_CC_TENSOR_MEMORY_H_
#define CONVGRAD_CC_TENSOR_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>

#include "convgrad/cc/tensor_shape.h"

namespace convgrad {
namespace detail {

constexpr std::size_t kAlignment = 64;

class Memory {
 public:
  Memory() = default;
  Memory(const Memory& other) noexcept : block_(other.block_) {
    if (block_ != nullptr) block_->owners.fetch_add(1, std::memory_order_relaxed);
  }
  Memory(Memory&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Memory& operator=(Memory other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Memory() {
    if (block_ == nullptr || block_->owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    block_->~Block();
    ::operator delete(static_cast<void*>(block_), std::align_val_t{kAlignment}, std::nothrow);
  }

  // Nothing where there is none, or none is asked for.
  static Memory Allocate(std::size_t bytes) noexcept {
    Memory found;
    if (bytes == 0 || bytes > static_cast<std::size_t>(PTRDIFF_MAX) - 2 * kAlignment) return found;
    // The count is in front; what is behind is rounded up, so that whole vectors may be read.
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* start = ::operator new(kAlignment + rounded, std::align_val_t{kAlignment}, std::nothrow);
    if (start != nullptr) found.block_ = new (start) Block(bytes);
    return found;
  }

  char* data() const {
    return block_ == nullptr ? nullptr : reinterpret_cast<char*>(block_) + kAlignment;
  }
  std::size_t bytes() const { return block_ == nullptr ? 0 : block_->bytes; }
  bool SharedWith(const Memory& other) const {
    return block_ != nullptr && block_ == other.block_;
  }
  bool Alone() const {
    return block_ != nullptr && block_->owners.load(std::memory_order_acquire) == 1;
  }

 private:
  struct Block {
    explicit Block(std::size_t count) : bytes(count) {}
    std::atomic<std::int64_t> owners{1};
    std::size_t bytes;
  };
  static_assert(sizeof(Block) <= kAlignment, "the count fits in front of the data");

  Block* block_ = nullptr;
};

// The bytes of a tensor; false if there can be none such.
inline bool BytesOf(DataType type, const TensorShape& shape, std::size_t* bytes) {
  const std::int64_t size = DataTypeSize(type);
  if (size == 0 || IsRefType(type) || !shape.IsValid()) return false;
  const std::int64_t count = shape.num_elements();
  if (count > std::numeric_limits<std::int64_t>::max() / size) return false;
  const auto whole = static_cast<std::uint64_t>(count * size);
  if (whole > std::numeric_limits<std::size_t>::max()) return false;
  *bytes = static_cast<std::size_t>(whole);
  return true;
}

// TensorFlow's words where a tensor does not fit.
inline Status NoRoom(DataType type, const TensorShape& shape) {
  return errors::ResourceExhausted("OOM when allocating tensor with shape", shape.DebugString(),
                                   " and type ", DataTypeString(type),
                                   " on /job:localhost/replica:0/task:0/device:CPU:0",
                                   " by allocator cpu");
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_TENSOR_MEMORY_H_
