// Whole files as values: what a test asks a writer for, and compares a reader with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "thalia/options.h"
#include "thalia/region.h"
#include "thalia/tensor.h"
#include "thalia/writer.h"

namespace thalia::test {

struct SampleTensor {
  TensorSpec spec;
  std::vector<std::byte> payload;  ///< the logical bytes
};
struct SampleRegion {
  RegionSpec spec;
  std::vector<SampleTensor> tensors;
};
struct SampleConnection {
  std::string source;
  std::string target;
  SampleTensor weights;
  std::optional<SampleTensor> delays;
};
struct Sample {
  std::string metadata = "{}";
  std::uint64_t training_steps = 0;
  std::vector<SampleRegion> regions;
  std::vector<SampleConnection> connections;
};

/// Timestamp and identity fixed, no wait for the disk, one thread, blocks of 4 KiB.
SaveOptions steady_options();

/// Declares everything with its payload; the caller commits while `sample` lives.
void declare(Writer& writer, const Sample& sample);
SaveResult save(const std::filesystem::path& path, const Sample& sample,
                const SaveOptions& options = steady_options());
/// The bytes of a saved file.
std::string saved(const Sample& sample, const SaveOptions& options = steady_options());

// Tensors with legal elements that are the same for the same seed.
SampleTensor dense_tensor(std::string name, DType dtype, Shape shape, Role role = Role::weights,
                          std::uint64_t seed = 1);
/// f32 without NaN and infinities.
SampleTensor ramp_tensor(std::string name, Shape shape);
/// About a third of the elements are stored.
SampleTensor csr_tensor(std::string name, DType dtype, Shape shape, bool wide = false,
                        std::uint64_t seed = 1);
SampleTensor coo_tensor(std::string name, DType dtype, Shape shape, bool wide = false,
                        std::uint64_t seed = 1);
/// The elements of a dense, csr or coo tensor, row-major, zeros where nothing is stored. Computed
/// from the payload alone.
std::vector<std::byte> densified(const SampleTensor& tensor);

/// A few tensors of every encoding and a connection, in as few bytes as that takes.
Sample small_sample();
/// Every role, packed and empty tensors, long names, a region without tensors, connections with and
/// without delays.
Sample varied_sample();

/// So many regions without tensors, and a connection between any two.
Sample connected_sample(unsigned regions);

}  // namespace thalia::test
