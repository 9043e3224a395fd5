// What every fuzz target is: one function over bytes, run by libFuzzer (-Dfuzzers=true, a program
// for each) or by the corpus driver (one program with all). It returns for any input; an exception
// that a caller of the library would not expect, a broken invariant or a sanitizer's finding ends
// the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

using FuzzTarget = void (*)(const std::uint8_t* data, std::size_t size);

#ifdef THALIA_LIBFUZZER
#define FUZZ_TARGET(name)                                                             \
  extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { \
    name##_target::run(data, size);                                                   \
    return 0;                                                                         \
  }
#else
/// Makes `target` known to the corpus driver.
struct NamedFuzzTarget {
  NamedFuzzTarget(const char* name, FuzzTarget target);
};
/// The function run() of the namespace <name>_target.
#define FUZZ_TARGET(name) static const NamedFuzzTarget name##_named(#name, &name##_target::run);
#endif

/// Also in builds without assertions.
#define FUZZ_REQUIRE(condition)                                                              \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
