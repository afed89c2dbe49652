// The pool: every chunk once, on workers with numbers of their own, from several threads at once, in a forked child, and
// where no thread can be started. Linked with -Wl,--wrap=pthread_create and CONVGRAD_TEST_WRAPPED for the last, which a
// limit of the system would not do: it does not bind root.
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "convgrad/cc/threads.h"

#if defined(__linux__)
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#ifdef CONVGRAD_TEST_WRAPPED
static std::atomic<int> allowed{1 << 20};

extern "C" int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*start)(void*), void* argument);
extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*start)(void*), void* argument) {
  if (allowed.fetch_sub(1) <= 0) return EAGAIN;
  return __real_pthread_create(thread, attributes, start, argument);
}
#endif

using namespace convgrad::detail;

namespace {

// Whether each chunk ran once, by a worker below `workers` whom nobody shared its number with.
bool Covered(std::int64_t chunks, int workers) {
  std::vector<int> times(static_cast<std::size_t>(chunks), 0);
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(workers));
  std::atomic<int> wrong{0};
  ForChunks(chunks, workers, [&](std::int64_t chunk, int worker) {
    if (worker < 0 || worker >= workers) {
      ++wrong;
      return;
    }
    if (busy[static_cast<std::size_t>(worker)].fetch_add(1) != 0) ++wrong;
    ++times[static_cast<std::size_t>(chunk)];
    busy[static_cast<std::size_t>(worker)].fetch_sub(1);
  });
  for (const int each : times) wrong += each != 1;
  return wrong == 0;
}

bool CoveredOften(int rounds) {
  for (int round = 0; round < rounds; ++round) {
    if (!Covered(1 + round % 37, 1 + round % 9)) return false;
  }
  return true;
}

bool Failure() {
  const ChunkFunc body = [](const void*, std::int64_t chunk, int) { return chunk == 5 ? 7 : 0; };
  return ParallelFor(100, 4, body, nullptr) == 7 && ParallelFor(5, 4, body, nullptr) == 0 &&
         ParallelFor(0, 4, body, nullptr) == 0;
}

bool ManyCallers() {
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] { wrong += CoveredOften(500) ? 0 : 1; });
  }
  for (std::thread& each : callers) each.join();
  return wrong == 0;
}

#if defined(__linux__)
bool Child() {
  const pid_t child = fork();
  if (child == 0) _exit(CoveredOften(100) ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}
#endif

#ifdef CONVGRAD_TEST_WRAPPED
// Before the pool has threads: none, then two, and the loops run all the same.
bool FewThreads() {
  for (const int threads : {0, 2}) {
    allowed = threads;
    if (!CoveredOften(50) || ThreadPool::Started() != threads) return false;
  }
  allowed = 1 << 20;
  return true;
}
#endif

// Runs when the pool's own end is over, or before: either must do.
struct Late {
  ~Late() {
    if (!CoveredOften(20)) std::printf("late: wrong\n");
  }
};
Late late;

}  // namespace

int main() {
  int wrong = 0;
  const auto say = [&](const char* what, bool right) {
    std::printf("%s: %s\n", what, right ? "right" : "wrong");
    wrong += right ? 0 : 1;
  };
#ifdef CONVGRAD_TEST_WRAPPED
  say("few threads", FewThreads());
#endif
  say("often", CoveredOften(3000));
  say("failure", Failure());
  say("many callers", ManyCallers());
#if defined(__linux__)
  say("child", Child());
#endif
  say("again", CoveredOften(100));
  return wrong;
}
