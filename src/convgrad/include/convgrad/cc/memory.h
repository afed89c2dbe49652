// Memory of kernels: aligned, and asked for without an exception.
#ifndef CONVGRAD_CC_MEMORY_H_
#define CONVGRAD_CC_MEMORY_H_

#include <cstddef>
#include <new>

namespace convgrad {
namespace detail {

constexpr std::size_t kBoundary = 64;

// Bytes on a boundary of 64, freed with the object. Where there is no memory, data() is null.
class Bytes {
 public:
  Bytes() = default;
  Bytes(const Bytes&) = delete;
  Bytes& operator=(const Bytes&) = delete;
  ~Bytes() { Free(); }

  // Makes room for some bytes; what was there is gone. False where there is no memory.
  bool Reserve(std::size_t size) {
    if (size <= size_) return true;
    Free();
    data_ = ::operator new(size, std::align_val_t{kBoundary}, std::nothrow);
    if (data_ != nullptr) size_ = size;
    return data_ != nullptr;
  }
  void Free() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t{kBoundary});
    data_ = nullptr;
    size_ = 0;
  }

  void* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Scratch of the calling thread's kernels. It is kept for the next call, up to some size, since
// asking for fresh memory costs more than a small convolution.
class ThreadScratch {
 public:
  explicit ThreadScratch(std::size_t size) : bytes_(Kept()), ok_(bytes_.Reserve(size)) {}
  ThreadScratch(const ThreadScratch&) = delete;
  ThreadScratch& operator=(const ThreadScratch&) = delete;
  ~ThreadScratch() {
    if (bytes_.size() > kMostKept) bytes_.Free();
  }

  bool ok() const { return ok_; }
  void* data() const { return bytes_.data(); }

 private:
  static constexpr std::size_t kMostKept = std::size_t{64} << 20;
  static Bytes& Kept() {
    static thread_local Bytes kept;
    return kept;
  }

  Bytes& bytes_;
  bool ok_;
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_MEMORY_H_
