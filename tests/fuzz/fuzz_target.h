// What every fuzz target is: one function over bytes, run by libFuzzer (-Dfuzzers=true) or by the
// corpus driver. It returns for any input; an exception that a caller of the library would not
// expect, a broken invariant or a sanitizer's finding ends the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Also in builds without assertions.
#define FUZZ_REQUIRE(condition)                                                              \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                          \
    }                                                                                        \
  } while (false)
