// Which packs a processor takes, and which of two it asks first. Prints nothing and returns 0 if all is well.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "convgrad/cc/packs.h"

using convgrad::RegisterPack;
using convgrad::detail::FindEntry;
using convgrad::detail::FindProcessorFeatures;
using convgrad::detail::PackRank;
using convgrad::detail::ProcessorFeatures;

#define CHECK(x)                                          \
  do {                                                    \
    if (!(x)) {                                           \
      std::printf("%s:%d: %s\n", __FILE__, __LINE__, #x); \
      std::exit(1);                                       \
    }                                                     \
  } while (0)

namespace {

constexpr char kAvx512[] = "avx512v512 x86_64-unknown-linux-gnu";
constexpr char kNarrow[] = "avx512v256 x86_64-pc-windows-msvc";
constexpr char kAvx2[] = "avx2v256 x86_64-unknown-linux-gnu";
constexpr char kSse2[] = "sse2v128 x86_64-unknown-linux-gnu";
constexpr char kNeon[] = "neonv128 aarch64-unknown-linux-gnu";
constexpr char kRiscv[] = "riscv64vv128 riscv64-unknown-linux-gnu";

ProcessorFeatures Processor(bool avx2, bool avx512) {
  ProcessorFeatures made;
  made.avx2 = avx2;
  made.avx512 = avx512;
  return made;
}

void Ranks() {
  const ProcessorFeatures none = Processor(false, false), some = Processor(true, false),
                          all = Processor(true, true);
  for (const char* each : {kAvx512, kNarrow}) {
    CHECK(PackRank(each, none) < 0);
    CHECK(PackRank(each, some) < 0);
    CHECK(PackRank(each, all) > PackRank(kAvx2, all));
  }
  CHECK(PackRank(kAvx2, none) < 0);
  CHECK(PackRank(kAvx2, some) > PackRank(kSse2, some));
  for (const char* each : {kSse2, kNeon, kRiscv, "", "something else"}) {
    CHECK(PackRank(each, none) == PackRank(kSse2, none));
  }
}

cg_problem Problem() {
  cg_problem made;
  std::memset(&made, 0, sizeof made);
  return made;
}

cg_entry entry = [] {
  cg_entry made;
  std::memset(&made, 0, sizeof made);
  made.problem = Problem();
  return made;
}();
const cg_entry* const entries[] = {&entry};

cg_pack Pack(const char* target) {
  cg_pack made;
  std::memset(&made, 0, sizeof made);
  made.magic = CG_MAGIC;
  made.version = CG_VERSION;
  made.name = target;
  made.target = target;
  made.entries = entries;
  made.count = 1;
  return made;
}

const cg_pack avx512 = Pack(kAvx512), avx2 = Pack(kAvx2), sse2 = Pack(kSse2);

const cg_pack* Chosen() {
  const cg_pack* pack = nullptr;
  CHECK(FindEntry(Problem(), &pack) == &entry);
  return pack;
}

void Registered() {
  const ProcessorFeatures here = FindProcessorFeatures();
  CHECK(RegisterPack(&sse2));
  CHECK(Chosen() == &sse2);
  CHECK(RegisterPack(&avx2) == here.avx2);
  CHECK(Chosen() == (here.avx2 ? &avx2 : &sse2));
  CHECK(RegisterPack(&avx512) == here.avx512);
  CHECK(Chosen() == (here.avx512 ? &avx512 : here.avx2 ? &avx2 : &sse2));
  const cg_pack* const best = Chosen();
  CHECK(RegisterPack(&sse2));  // once more changes nothing
  CHECK(Chosen() == best);
  static cg_pack later = Pack(kSse2);
  ++later.version;
  CHECK(!RegisterPack(&later));
  CHECK(!RegisterPack(nullptr));
}

}  // namespace

int main() {
  Ranks();
  Registered();
  return 0;
}
