// Two parts that both include everything: linked, or loaded from two shared libraries, also after a fork.
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "review_parts.h"

#ifdef LINKED
extern "C" Part Part1;
extern "C" Part Part2;
#endif

namespace {

int Both(Part* first, Part* second) {
  Made one{}, two{};
  int failed = first(nullptr, &one);
  if (failed == 0) failed = second(nullptr, &two);
  std::fflush(stdout);
  const pid_t child = fork();  // with threads that only the parent has
  if (child == 0) {
    alarm(120);
    _exit(first(&two, &one));
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 9;
  if (failed == 0) failed = WEXITSTATUS(status);
  if (failed == 0) failed = first(&two, &one);
  return failed;
}

}  // namespace

int main(int argc, char** argv) {
  int failed = 8;
#ifdef LINKED
  static_cast<void>(argc);
  static_cast<void>(argv);
  failed = Both(Part1, Part2);
#else
  if (argc < 3) return 2;
  void* libraries[2];
  Part* parts[2];
  const char* const names[2] = {"Part1", "Part2"};
  for (int i = 0; i < 2; ++i) {
    libraries[i] = dlopen(argv[i + 1], RTLD_NOW | RTLD_LOCAL);
    if (libraries[i] == nullptr) {
      std::printf("%s\n", dlerror());
      return 3;
    }
    parts[i] = reinterpret_cast<Part*>(dlsym(libraries[i], names[i]));
    if (parts[i] == nullptr) return 4;
  }
  failed = Both(parts[0], parts[1]);
  for (void* library : libraries) dlclose(library);
#endif
  std::printf(failed == 0 ? "ok\n" : "failed with %d\n", failed);
  return failed;
}
