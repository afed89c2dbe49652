// The floating-point mode that ops compute in: the default one, whatever the caller's is.
//
// Rounding and flushing of subnormal numbers belong to a thread. A program that was linked with
// -ffast-math flushes on all of its threads, and one may have set them on some. Kernels of packs see
// to it themselves; this is for what these headers compute.
//
// wasm has one mode only. Microsoft's compiler for ARM64 gets none of this.
#ifndef CONVGRAD_CC_FP_MODE_H_
#define CONVGRAD_CC_FP_MODE_H_

#include <cstdint>

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace convgrad {
namespace detail {

// Sets the default mode: round to nearest even, keep subnormals, no traps. Its end puts the caller's
// back, flags included.
class DefaultMode {
 public:
  DefaultMode() : found_(Get()) {
    Set(Usual(found_));
    Fence();
  }
  ~DefaultMode() {
    Fence();
    Set(found_);
  }
  DefaultMode(const DefaultMode&) = delete;
  DefaultMode& operator=(const DefaultMode&) = delete;

 private:
#if defined(__SSE__) || defined(_M_X64)
  using Word = unsigned;
  static Word Get() { return _mm_getcsr(); }
  static void Set(Word word) { _mm_setcsr(word); }
  static Word Usual(Word) { return 0x1f80; }
#elif defined(__aarch64__) && defined(__GNUC__)
  using Word = std::uint64_t;  // FPCR, and the flags, FPSR, above it
  static Word Get() {
    Word mode, flags;
    __asm__ __volatile__("mrs %0, fpcr" : "=r"(mode));
    __asm__ __volatile__("mrs %0, fpsr" : "=r"(flags));
    return flags << 32 | (mode & 0xffffffff);
  }
  static void Set(Word word) {
    __asm__ __volatile__("msr fpcr, %0" : : "r"(word & 0xffffffff));
    __asm__ __volatile__("msr fpsr, %0" : : "r"(word >> 32));
  }
  // Without FIZ, AH, NEP, traps, EBF, FZ16, RMode, FZ, DN and AHP.
  static Word Usual(Word found) { return found & ~Word{0x07c8bf07}; }
#elif defined(__arm__) && defined(__ARM_FP) && defined(__GNUC__)
  using Word = std::uint32_t;
  static Word Get() {
    Word word;
    __asm__ __volatile__("vmrs %0, fpscr" : "=r"(word));
    return word;
  }
  static void Set(Word word) { __asm__ __volatile__("vmsr fpscr, %0" : : "r"(word)); }
  static Word Usual(Word found) { return found & ~Word{0x07c89f00}; }
#elif defined(__riscv_flen) && defined(__GNUC__)
  using Word = std::uintptr_t;
  static Word Get() {
    Word word;
    __asm__ __volatile__("frcsr %0" : "=r"(word));
    return word;
  }
  static void Set(Word word) { __asm__ __volatile__("fscsr %0" : : "r"(word)); }
  static Word Usual(Word) { return 0; }
#else
  using Word = int;
  static Word Get() { return 0; }
  static void Set(Word) {}
  static Word Usual(Word) { return 0; }
#endif

  // Keeps a compiler from moving reads of operands before the change, and writes of results behind
  // the way back; arithmetic stands between the two.
  static void Fence() {
#if defined(__GNUC__)
    __asm__ __volatile__("" : : : "memory");
#endif
  }

  const Word found_;
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_FP_MODE_H_
