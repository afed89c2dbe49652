// Random numbers by counting: Philox 4x32-10 (Salmon et al., 2011), as TensorFlow's random ops use it.
//
// A number depends on the two seeds and on its place alone.
#ifndef CONVGRAD_CC_PHILOX_H_
#define CONVGRAD_CC_PHILOX_H_

#include <array>
#include <cstdint>

namespace convgrad {
namespace detail {

// Hands out 32-bit words, four for each count of the counter, which begins at 0.
class Philox {
 public:
  Philox(std::int64_t seed, std::int64_t seed2)
      : seed_(static_cast<std::uint64_t>(seed)), seed2_(static_cast<std::uint64_t>(seed2)) {}

  std::uint32_t Next() {
    if (used_ == 4) {
      words_ = Group(counter_++);
      used_ = 0;
    }
    return words_[used_++];
  }

 private:
  static std::uint32_t Low(std::uint64_t x) { return static_cast<std::uint32_t>(x & 0xFFFFFFFFu); }
  static std::uint32_t High(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

  std::array<std::uint32_t, 4> Group(std::uint64_t counter) const {
    std::uint32_t a = Low(counter), b = High(counter), c = Low(seed2_), d = High(seed2_);
    std::uint32_t first = Low(seed_), second = High(seed_);
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t left = std::uint64_t{a} * 0xD2511F53u;
      const std::uint64_t right = std::uint64_t{c} * 0xCD9E8D57u;
      a = High(right) ^ b ^ first;
      b = Low(right);
      c = High(left) ^ d ^ second;
      d = Low(left);
      first += 0x9E3779B9u;
      second += 0xBB67AE85u;
    }
    return {a, b, c, d};
  }

  std::uint64_t seed_, seed2_, counter_ = 0;
  std::array<std::uint32_t, 4> words_{};
  unsigned used_ = 4;
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_PHILOX_H_
