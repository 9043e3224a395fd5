// What the tests of background saves save.
#pragma once

#include <filesystem>

#include "support/sample.h"
#include "thalia/writer.h"

namespace thalia::test {

/// Every encoding, and a tensor of several extents; all payload bytes depend on the seed.
inline Sample large_sample(std::uint64_t seed = 1) {
  Sample sample = small_sample();
  sample.training_steps = seed;
  sample.regions[0].tensors.push_back(
      dense_tensor("large", DType::u8, {5 << 20}, Role::weights, seed));
  return sample;
}

/// Everything is declared; the sample's payloads are borrowed.
inline Writer declared(const std::filesystem::path& path, const Sample& sample,
                       const SaveOptions& options = steady_options()) {
  Writer writer(path, options);
  declare(writer, sample);
  return writer;
}

inline SaveOptions with_progress(Progress progress) {
  SaveOptions options = steady_options();
  options.work.progress = std::move(progress);
  return options;
}

}  // namespace thalia::test
