// Packs that were linked into the program, and who computes a convolution: a pack, else plain loops.
//
//   #include "mobilenet.h"            // written by `convgrad export`
//   CONVGRAD_USE_PACK(mobilenet)      // once, at namespace scope
//
// or convgrad::RegisterPack(&mobilenet) before the first session runs.
#ifndef CONVGRAD_CC_PACKS_H_
#define CONVGRAD_CC_PACKS_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <string_view>

#include "convgrad/cc/memory.h"
#include "convgrad/cc/plain_loops.h"
#include "convgrad/cc/record.h"
#include "convgrad/cc/threads.h"
#include "convgrad_pack.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#endif

// Registers a pack before main begins.
#define CONVGRAD_USE_PACK(name) \
  [[maybe_unused]] static const bool convgrad_uses_pack_##name = ::convgrad::RegisterPack(&name);

namespace convgrad {

// How many convolutions ran in this process, on packs and on plain loops. Empty ones, whose result is
// zeros, are not counted.
struct ConvolutionCounts {
  std::int64_t packs = 0;
  std::int64_t plain = 0;
};

namespace detail {

struct PackLink {
  const cg_pack* pack;
  int rank;  // wider vectors first
  std::atomic<PackLink*> next;
};

// Read without a lock, since every convolution does. Links are never freed: sessions may run behind
// main.
struct PackRegistry {
  std::atomic<PackLink*> first{nullptr};
  std::mutex lock;  // of those who write
  std::atomic<std::int64_t> on_packs{0}, on_loops{0};

  static PackRegistry& Get() {
    static PackRegistry registry;
    return registry;
  }
};

// What of x86-64 the rows of packs may need beyond its baseline.
struct ProcessorFeatures {
  bool avx2 = false;    // with FMA and conversions of halves
  bool avx512 = false;  // F, BW, DQ and VL, with all of avx2
};

inline ProcessorFeatures FindProcessorFeatures() {
  ProcessorFeatures found;
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_cpu_init();  // packs may be registered before anything else has run
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  // Asked directly: not every compiler's __builtin_cpu_supports knows this one.
  const bool halves = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> 29 & 1) != 0;
  found.avx2 = halves && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  found.avx512 = found.avx2 && __builtin_cpu_supports("avx512f") &&
                 __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                 __builtin_cpu_supports("avx512vl");
#elif defined(__x86_64__) || defined(_M_X64)
  found.avx2 = found.avx512 = true;  // this compiler cannot ask: whoever links a pack must know
#endif
  return found;
}

// The row of a pack's target, which reads "avx2v256 x86_64-unknown-linux-gnu": a row, the bits of
// its vectors, and a system.
inline std::string_view PackRow(std::string_view target) {
  const std::string_view label = target.substr(0, target.find(' '));
  return label.substr(0, label.rfind('v'));
}

// How wide a pack's vectors are, or -1 if a processor cannot run it.
inline int PackRank(std::string_view target, const ProcessorFeatures& processor) {
  const std::string_view row = PackRow(target);
  if (row == "avx512") return processor.avx512 ? 3 : -1;
  if (row == "avx2") return processor.avx2 ? 2 : -1;
  return 1;
}

inline bool LinkPack(const cg_pack* pack, int rank) {
  PackRegistry& registry = PackRegistry::Get();
  std::lock_guard<std::mutex> hold(registry.lock);
  std::atomic<PackLink*>* at = &registry.first;
  std::atomic<PackLink*>* place = nullptr;
  for (PackLink* link = at->load(); link != nullptr; link = at->load()) {
    if (link->pack == pack) return true;
    if (place == nullptr && link->rank < rank) place = at;
    at = &link->next;
  }
  if (place == nullptr) place = at;
  PackLink* const made = new (std::nothrow) PackLink{pack, rank, {place->load()}};
  if (made == nullptr) return false;
  place->store(made, std::memory_order_release);
  return true;
}

inline const cg_entry* FindEntry(const cg_problem& problem, const cg_pack** pack) {
  const PackLink* link = PackRegistry::Get().first.load(std::memory_order_acquire);
  for (; link != nullptr; link = link->next.load(std::memory_order_acquire)) {
    const cg_entry* const entry = cg_find(link->pack, &problem);
    if (entry != nullptr) {
      *pack = link->pack;
      return entry;
    }
  }
  return nullptr;
}

// The loop that a pack shares its chunks by.
inline int PackLoop(void*, std::int64_t chunks, int workers, cg_task task, const cg_job* job) {
  struct Call {
    cg_task task;
    const cg_job* job;
  };
  const Call call{task, job};
  const ChunkFunc body = [](const void* context, std::int64_t chunk, int worker) {
    const Call& what = *static_cast<const Call*>(context);
    return what.task(what.job, chunk, worker);
  };
  return ParallelFor(chunks, workers, body, &call);
}

inline Status RunEntry(const cg_entry& entry, const void* first, const void* second, void* result,
                       int threads) {
  const std::size_t bytes = cg_scratch_bytes(&entry, threads);
  const ThreadScratch scratch(bytes);
  if (!scratch.ok()) {
    return errors::ResourceExhausted("OOM when allocating ", bytes, " bytes of scratch for ",
                                     entry.name);
  }
  void* const memory = bytes == 0 ? nullptr : scratch.data();
  const int code = cg_run_parallel(&entry, first, second, result, memory, bytes, threads, PackLoop,
                                   nullptr);
  if (code == CG_OK) return Status();
  return errors::Internal("pack entry ", entry.name, ": ", cg_error_text(code));
}

template <class T>
inline Status LoopsOf(const Convolution& conv, const void* first, const void* second, void* result,
                      int threads) {
  return RunPlainLoops(conv, static_cast<const T*>(first), static_cast<const T*>(second),
                       static_cast<T*>(result), threads);
}

inline Status RunLoops(const Convolution& conv, const void* first, const void* second, void* result,
                       int threads) {
  const DataType dtype = static_cast<DataType>(conv.problem.dtype);
  switch (dtype) {
    case DT_FLOAT:
      return LoopsOf<float>(conv, first, second, result, threads);
    case DT_DOUBLE:
      return LoopsOf<double>(conv, first, second, result, threads);
    case DT_HALF:
      return LoopsOf<half>(conv, first, second, result, threads);
    case DT_BFLOAT16:
      return LoopsOf<bfloat16>(conv, first, second, result, threads);
    case DT_INT32:
      return LoopsOf<std::int32_t>(conv, first, second, result, threads);
    default:
      return errors::Unimplemented("there are no convolutions of ", DataTypeString(dtype));
  }
}

// Computes a convolution of operands and a result that have exactly its shapes.
inline Status RunConvolution(const Convolution& conv, const void* first, const void* second,
                             void* result, std::size_t result_bytes, int threads) {
  if (conv.IsEmpty()) {
    if (result_bytes != 0) std::memset(result, 0, result_bytes);
    return Status();
  }
  PackRegistry& registry = PackRegistry::Get();
  const cg_pack* pack = nullptr;
  const cg_entry* const entry = FindEntry(conv.problem, &pack);
  if (Chronicle* const chronicle = Chronicle::Get()) {
    chronicle->Tell(conv, entry == nullptr ? "plain loops" : pack->name, entry == nullptr);
  }
  threads = NumThreads(threads);
  if (entry != nullptr) {
    registry.on_packs.fetch_add(1, std::memory_order_relaxed);
    return RunEntry(*entry, first, second, result, threads);
  }
  registry.on_loops.fetch_add(1, std::memory_order_relaxed);
  return RunLoops(conv, first, second, result, threads);
}

}  // namespace detail

// Lets sessions use a pack, for as long as the process runs. False, and nothing changes, for a pack
// that is null, was made for another convgrad_pack.h or for a processor this is not, and without
// memory. Packs with wider vectors are asked first. A pack that is registered already stays once.
inline bool RegisterPack(const cg_pack* pack) {
  if (pack == nullptr || pack->magic != CG_MAGIC || pack->version != CG_VERSION) return false;
  const std::string_view target = pack->target == nullptr ? "" : pack->target;
  const int rank = detail::PackRank(target, detail::FindProcessorFeatures());
  if (rank < 0) return false;
  return detail::LinkPack(pack, rank);
}

inline ConvolutionCounts Convolutions() {
  const detail::PackRegistry& registry = detail::PackRegistry::Get();
  return ConvolutionCounts{registry.on_packs.load(), registry.on_loops.load()};
}

}  // namespace convgrad

#endif  // CONVGRAD_CC_PACKS_H_
