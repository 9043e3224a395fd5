// Making many things on several threads, and taking them one after the other.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/parallel.h"

namespace thalia::state {

/// Things per thread that are made before the first of them is taken: one to work on, one ready.
inline constexpr std::size_t kMadeAhead = 2;

/// Calls make(i, thing) for every i in [0, count), on up to `threads` threads, and take(thing) for
/// each of them in order on the caller's. `thing` is a Thing that was used before or is new; no
/// more than kMadeAhead a thread exist. `things` are those that stay for the next call. @throws
/// what either throws.
template <typename Thing, typename Make, typename Take>
void for_each_in_order(std::size_t count, unsigned threads, std::vector<Thing>& things, Make make,
                       Take take) {
  const std::size_t batch = kMadeAhead * resolve_threads(threads);
  if (things.size() < std::min(batch, count)) things.resize(std::min(batch, count));
  for (std::size_t begin = 0; begin < count; begin += batch) {
    const std::size_t now = std::min(batch, count - begin);
    parallel_for(now, threads, [&](std::size_t i) { make(begin + i, things[i]); });
    for (std::size_t i = 0; i < now; ++i) take(things[i]);
  }
}

/// The same, of things that go at the end.
template <typename Thing, typename Make, typename Take>
void for_each_in_order(std::size_t count, unsigned threads, Make make, Take take) {
  std::vector<Thing> things;
  for_each_in_order(count, threads, things, make, take);
}

}  // namespace thalia::state
