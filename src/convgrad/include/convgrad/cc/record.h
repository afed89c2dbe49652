// What was met and ran without a pack: CONVGRAD_RECORD=file appends each such problem once, in the
// text that `convgrad export` reads. CONVGRAD_VERBOSE=1 says on stderr what ran each new problem.
#ifndef CONVGRAD_CC_RECORD_H_
#define CONVGRAD_CC_RECORD_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "convgrad/cc/convolution.h"

namespace convgrad {
namespace detail {

// Problems that have been seen. Where there is no memory, problems are seen again.
class SeenProblems {
 public:
  // Whether a problem is new.
  bool Add(const cg_problem& problem) {
    Link** at = &heads_[Hash(problem) % kHeads];
    for (; *at != nullptr; at = &(*at)->next) {
      if (cg_order(&(*at)->problem, &problem) == 0) return false;
    }
    *at = new (std::nothrow) Link{problem, nullptr};
    return true;
  }

 private:
  struct Link {
    cg_problem problem;
    Link* next;
  };
  static constexpr std::uint64_t kHeads = 256;

  static std::uint64_t Hash(const cg_problem& p) {
    std::uint64_t hash = static_cast<std::uint64_t>(p.kind * 4 + p.layout * 2 + p.depthwise);
    for (const std::int64_t size : {p.batch, p.in_h, p.in_w, p.in_c, p.out_c, p.filter_h}) {
      hash = (hash ^ static_cast<std::uint64_t>(size)) * 0x100000001b3u;
    }
    return hash ^ (hash >> 32);
  }

  Link* heads_[kHeads] = {};
};

// What is told about convolutions, one line each. Kept to the end of the process and never freed: a
// thread may still be computing then.
class Chronicle {
 public:
  // Null where nothing is to be told, which is looked up once.
  static Chronicle* Get() {
    static Chronicle* const chronicle = Make();
    return chronicle;
  }

  void Tell(const Convolution& conv, const char* what, bool plain) {
    std::lock_guard<std::mutex> hold(lock_);
    if (!seen_.Add(conv.problem)) return;
    const ProblemText text(conv);
    if (verbose_) {
      static_cast<void>(std::fprintf(stderr, "convgrad: %s: %s\n", text.c_str(), what));
    }
    // Packs hold no int32, so that a recording with such a line could not be exported.
    if (!plain || file_ == nullptr || conv.problem.dtype == static_cast<std::int32_t>(DT_INT32)) {
      return;
    }
    static_cast<void>(std::fprintf(file_, "%s\n", text.c_str()));
    static_cast<void>(std::fflush(file_));
  }

 private:
  static Chronicle* Make() {
    const char* const path = std::getenv("CONVGRAD_RECORD");
    const char* const word = std::getenv("CONVGRAD_VERBOSE");
    const bool verbose = word != nullptr && *word != '\0' && !(*word == '0' && word[1] == '\0');
    std::FILE* file = nullptr;
    if (path != nullptr && *path != '\0') {
      file = std::fopen(path, "a");
      if (file == nullptr) {
        static_cast<void>(std::fprintf(
            stderr, "convgrad: CONVGRAD_RECORD must name a file that can be written, got %s\n", path));
      }
    }
    if (file == nullptr && !verbose) return nullptr;
    return new (std::nothrow) Chronicle(file, verbose);
  }

  Chronicle(std::FILE* file, bool verbose) : file_(file), verbose_(verbose) {}

  std::mutex lock_;
  SeenProblems seen_;
  std::FILE* file_;
  bool verbose_;
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_RECORD_H_
