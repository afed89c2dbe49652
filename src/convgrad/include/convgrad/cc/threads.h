// Threads that share the chunks of one loop.
//
// Which ones is chosen by macro: CONVGRAD_THREADS_STD (a pool of our own, the default),
// CONVGRAD_THREADS_OPENMP or CONVGRAD_THREADS_NONE. How many is the session's choice, else
// CONVGRAD_NUM_THREADS, else the processors this process may use. Neither changes a bit of a
// result.
//
// A forked child does its loops alone: threads are not forked. GNU's OpenMP does not notice and waits
// for them forever, so this is asked before each of its loops, too. A program that calls OpenMP
// itself in such a child still waits.
#ifndef CONVGRAD_CC_THREADS_H_
#define CONVGRAD_CC_THREADS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>

#include "convgrad/cc/fp_mode.h"

#if !defined(CONVGRAD_THREADS_STD) && !defined(CONVGRAD_THREADS_OPENMP) && \
    !defined(CONVGRAD_THREADS_NONE)
#if defined(__wasm__) && !defined(_REENTRANT)
#define CONVGRAD_THREADS_NONE 1
#else
#define CONVGRAD_THREADS_STD 1
#endif
#endif

#if defined(CONVGRAD_THREADS_OPENMP)
#if !defined(_OPENMP)
#error "CONVGRAD_THREADS_OPENMP needs OpenMP: compile with -fopenmp"
#endif
#include <omp.h>
#if !defined(_WIN32)
#include <pthread.h>
#endif
#endif
#if defined(CONVGRAD_THREADS_STD)
#include "convgrad/cc/thread_pool.h"
#include <thread>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

namespace convgrad {
namespace detail {

// As many as a pack can have workers.
constexpr int kMostThreads = 256;

inline int CountProcessors() {
#if defined(__linux__) && defined(CPU_COUNT)
  cpu_set_t set;  // the standard library counts processors that this process may not use, too
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) {
    return CPU_COUNT(&set);
  }
#endif
#if defined(CONVGRAD_THREADS_STD)
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
#elif defined(CONVGRAD_THREADS_OPENMP)
  return std::max(1, omp_get_num_procs());
#else
  return 1;
#endif
}

// The number in CONVGRAD_NUM_THREADS, or 0 if it says none.
inline int ThreadsOfEnvironment() {
  const char* text = std::getenv("CONVGRAD_NUM_THREADS");
  if (text == nullptr || *text == '\0') return 0;
  char* end = nullptr;
  const long found = std::strtol(text, &end, 10);
  if (*end != '\0' || found < 1) return 0;
  return static_cast<int>(std::min<long>(found, kMostThreads));
}

// How many threads a call uses that was asked for `asked`; 0 and less leave it to the process.
inline int NumThreads(int asked) {
#if defined(CONVGRAD_THREADS_NONE)
  static_cast<void>(asked);
  return 1;
#else
  if (asked > 0) return std::min(asked, kMostThreads);
  static const int usual = [] {
    const int found = ThreadsOfEnvironment();
    return found > 0 ? found : std::min(CountProcessors(), kMostThreads);
  }();
  return usual;
#endif
}

// One call for chunk `chunk` on worker `worker`; anything but 0 is a failure.
using ChunkFunc = int (*)(const void* context, std::int64_t chunk, int worker);

inline int RunAlone(std::int64_t chunks, ChunkFunc body, const void* context) {
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int code = body(context, chunk, 0);
    if (code != 0) return code;
  }
  return 0;
}

#if defined(CONVGRAD_THREADS_OPENMP)
inline std::atomic<bool> in_forked_child{false};

// Whether OpenMP's threads may be waited for: not where its loops began before a fork, nor where
// nobody would say that there was one.
inline bool OpenMpLives() {
#if !defined(_WIN32)
  static const bool told = pthread_atfork(nullptr, nullptr, [] { in_forked_child = true; }) == 0;
  return told && !in_forked_child.load(std::memory_order_relaxed);
#else
  return true;
#endif
}
#endif

// Calls body(context, chunk, worker) once for each chunk of [0, chunks), on at most `workers`
// threads, which call themselves 0 to workers - 1. Returns when all calls have, with 0 or with the
// code of one that failed; the chunks behind a failure may be left out.
inline int ParallelFor(std::int64_t chunks, int workers, ChunkFunc body, const void* context) {
  workers = static_cast<int>(std::min<std::int64_t>(std::min(workers, kMostThreads), chunks));
  if (workers < 2) return RunAlone(chunks, body, context);
#if defined(CONVGRAD_THREADS_OPENMP)
  if (!OpenMpLives()) return RunAlone(chunks, body, context);
  std::atomic<std::int64_t> next{0};
  std::atomic<int> failed{0};
#pragma omp parallel num_threads(workers)
  {
    const DefaultMode mode;  // OpenMP's threads have the mode of whoever had them last
    const int worker = omp_get_thread_num();
    for (;;) {
      const std::int64_t chunk = next.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks || failed.load(std::memory_order_relaxed) != 0) break;
      const int code = body(context, chunk, worker);
      if (code != 0) failed.store(code, std::memory_order_relaxed);
    }
  }
  return failed.load();
#elif defined(CONVGRAD_THREADS_STD)
  int code = 0;
  if (ThreadPool::Run(chunks, workers, body, context, &code)) return code;
  return RunAlone(chunks, body, context);
#else
  return RunAlone(chunks, body, context);
#endif
}

// The same for a callable body(chunk, worker) that cannot fail.
template <class Body>
void ForChunks(std::int64_t chunks, int workers, const Body& body) {
  const ChunkFunc call = [](const void* context, std::int64_t chunk, int worker) {
    (*static_cast<const Body*>(context))(chunk, worker);
    return 0;
  };
  static_cast<void>(ParallelFor(chunks, workers, call, &body));
}

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_THREADS_H_
