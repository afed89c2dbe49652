// The pool: every chunk once, on workers with numbers of their own, from several threads at once, in a forked child, and
// where no thread can be started. OpenMP promises none of the last two.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "convgrad/cc/threads.h"

#if defined(__linux__) && !defined(CONVGRAD_THREADS_OPENMP)
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
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

#if defined(__linux__) && !defined(CONVGRAD_THREADS_OPENMP)
bool Child() {
  const pid_t child = fork();
  if (child == 0) _exit(CoveredOften(100) ? 0 : 1);
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
}

// In a child, since a limit cannot be lifted again: no thread more, and the loop runs all the same.
bool NoThreads() {
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_NPROC, &none);
    _exit(CoveredOften(50) ? 0 : 1);
  }
  int status = 1;
  return waitpid(child, &status, 0) == child && status == 0;
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
#if defined(__linux__) && !defined(CONVGRAD_THREADS_OPENMP)
  say("no threads", NoThreads());  // before the pool is started
#endif
  say("often", CoveredOften(3000));
  say("failure", Failure());
  say("many callers", ManyCallers());
#if defined(__linux__) && !defined(CONVGRAD_THREADS_OPENMP)
  say("child", Child());
#endif
  say("again", CoveredOften(100));
  return wrong;
}
