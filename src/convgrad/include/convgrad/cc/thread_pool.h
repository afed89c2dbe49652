// A pool of threads that one loop at a time is shared with.
//
// Its threads are started when a loop first wants them, and stay. A thread that cannot be started is
// done without. A caller that finds the pool busy with another loop does its own work alone, as does
// every caller in a forked child, where only the forking thread lives on, and behind the end of main.
#ifndef CONVGRAD_CC_THREAD_POOL_H_
#define CONVGRAD_CC_THREAD_POOL_H_

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <new>
#include <thread>

#include "convgrad/cc/config.h"
#include "convgrad/cc/fp_mode.h"

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace convgrad {
namespace detail {

class ThreadPool {
 public:
  using Body = int (*)(const void* context, std::int64_t chunk, int worker);

  // Shares a loop; false if nothing was done because the pool cannot take it.
  static bool Run(std::int64_t chunks, int workers, Body body, const void* context, int* code) {
    if (Gone().load(std::memory_order_acquire)) return false;
    ThreadPool* pool = Get();
    if (pool == nullptr || pool->busy_.exchange(true, std::memory_order_acquire)) return false;
    const bool ran = pool->Share(chunks, workers, body, context, code);
    pool->busy_.store(false, std::memory_order_release);
    return ran;
  }

  // Threads that were started, the callers' own not counted.
  static int Started() {
    ThreadPool* pool = Gone().load() ? nullptr : Get();
    if (pool == nullptr) return 0;
    std::lock_guard<std::mutex> hold(pool->lock_);
    return pool->started_;
  }

 private:
  static constexpr int kMost = 255;
#if !defined(_WIN32)
  using Handle = pthread_t;
#else
  using Handle = std::thread;
#endif

  // Whether there is no pool any more: behind main, or in a forked child.
  static std::atomic<bool>& Gone() {
    static std::atomic<bool> gone{false};
    return gone;
  }

  // The pool's memory is never freed, so that a thread still running at the end of the process does
  // not meet freed locks. Its threads are joined by `AtExit`.
  static ThreadPool* Get() {
    static ThreadPool* const pool = Make();
    return pool;
  }

  static ThreadPool* Make() {
    ThreadPool* pool = new (std::nothrow) ThreadPool;
#if !defined(_WIN32)
    if (pthread_atfork(nullptr, nullptr, [] { Gone().store(true); }) != 0) {
      delete pool;  // without it a child would wait for threads it has not got
      return nullptr;
    }
#endif
    static const AtExit at_exit{pool};
    return pool;
  }

  struct AtExit {
    ThreadPool* pool;
    ~AtExit() {
      if (pool != nullptr && !Gone().exchange(true)) pool->Stop();
    }
  };

  // How many looks at a number a thread takes before it sleeps: some ten to fifty microseconds, about what
  // waking it costs.
  static constexpr int kLooks = 1000;

  static void Pause() {
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
    __asm__ __volatile__("yield");
#endif
  }

  bool Share(std::int64_t chunks, int workers, Body body, const void* context, int* code) {
    {
      std::lock_guard<std::mutex> hold(lock_);
      if (stopping_) return false;
      while (started_ < workers - 1 && started_ < kMost && Start()) {
      }
      if (started_ == 0) return false;
      body_ = body;
      context_ = context;
      chunks_ = chunks;
      next_.store(0, std::memory_order_relaxed);
      failed_.store(0, std::memory_order_relaxed);
      places_ = std::min(workers - 1, started_);
      joined_ = 0;
      loop_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    Work(0);
    // Whoever has not joined by now comes too late; whoever has is waited for.
    {
      std::lock_guard<std::mutex> hold(lock_);
      places_ = 0;
    }
    for (int look = 0; look < kLooks && running_.load(std::memory_order_acquire) != 0; ++look) {
      Pause();
    }
    if (running_.load(std::memory_order_acquire) != 0) {
      std::unique_lock<std::mutex> hold(lock_);
      done_.wait(hold, [this] { return running_.load(std::memory_order_acquire) == 0; });
    }
    *code = failed_.load(std::memory_order_relaxed);
    return true;
  }

  void Work(int worker) {
    for (;;) {
      const std::int64_t chunk = next_.fetch_add(1, std::memory_order_relaxed);
      if (chunk >= chunks_ || failed_.load(std::memory_order_relaxed) != 0) return;
      const int found = body_(context_, chunk, worker);
      if (found != 0) failed_.store(found, std::memory_order_relaxed);
    }
  }

  void Serve() {
    const DefaultMode mode;  // a thread begins with that of whoever starts it
    std::uint64_t seen = 0;
    for (;;) {
      for (int look = 0; look < kLooks && loop_.load(std::memory_order_acquire) == seen; ++look) {
        Pause();
      }
      int worker = 0;
      {
        std::unique_lock<std::mutex> hold(lock_);
        wake_.wait(hold, [&] { return stopping_ || loop_.load() != seen; });
        if (stopping_) return;
        seen = loop_.load();
        if (places_ == 0) continue;
        --places_;
        worker = ++joined_;
        running_.fetch_add(1, std::memory_order_relaxed);
      }
      Work(worker);
      if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
        // With the lock, or the caller could look before and sleep behind this call.
        std::lock_guard<std::mutex> hold(lock_);
        done_.notify_one();
      }
    }
  }

  // Starts one thread more, with the lock held.
  bool Start() {
#if !defined(_WIN32)
    // Not std::thread, which ends the process where it cannot throw. Signals are for the program's
    // own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto serve = [](void* pool) -> void* {
      static_cast<ThreadPool*>(pool)->Serve();
      return nullptr;
    };
    const bool ok = pthread_create(&threads_[started_], nullptr, serve, this) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
#else
    bool ok = false;
    CONVGRAD_TRY {
      threads_[started_] = std::thread([this] { Serve(); });
      ok = true;
    }
    CONVGRAD_CATCH(ok = false;)
#endif
    if (ok) ++started_;
    return ok;
  }

  void Stop() {
    int started = 0;
    {
      std::lock_guard<std::mutex> hold(lock_);
      stopping_ = true;
      started = started_;
    }
    wake_.notify_all();
    for (int i = 0; i < started; ++i) {
#if !defined(_WIN32)
      pthread_join(threads_[i], nullptr);
#else
      threads_[i].join();
#endif
    }
  }

  std::atomic<bool> busy_{false};
  std::mutex lock_;
  std::condition_variable wake_, done_;
  Handle threads_[kMost];
  int started_ = 0;
  bool stopping_ = false;
  // The loop. Written with the lock held while nobody runs it.
  Body body_ = nullptr;
  const void* context_ = nullptr;
  std::int64_t chunks_ = 0;
  int places_ = 0, joined_ = 0;  // threads that may still join it, and that have
  std::atomic<std::uint64_t> loop_{0};
  std::atomic<int> running_{0};
  alignas(64) std::atomic<std::int64_t> next_{0};
  alignas(64) std::atomic<int> failed_{0};
};

}  // namespace detail
}  // namespace convgrad

#endif  // CONVGRAD_CC_THREAD_POOL_H_
