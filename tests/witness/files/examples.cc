// Writes the files that the short examples of the document are taken from.
#include <cstring>
#include <filesystem>
#include <vector>

#include "parts.h"
#include "sample.h"
#include "thalia/compress.h"
#include "thalia/side_file.h"
#include "thalia/state/delta.h"
#include "thalia/state/quantization.h"

namespace witness::examples {

namespace {

using namespace thalia;
namespace fs = std::filesystem;

constexpr std::uint64_t kFew = 20;

// A coo tensor, and one that is quantized in two groups.
void write_arrays(const fs::path& folder) {
  const fs::path plain = folder / "plain.thalia";
  Writer writer(plain, example_options());
  const RegionId region = writer.add_region({.name = "r"});
  const std::vector<std::uint32_t> indices{0, 0, 1, 0, 2, 2, 1, 0, 3};
  const std::vector<double> values{1, -2, 0.5};
  writer.add_coo(region, {.name = "coo", .dtype = DType::f64, .shape = {2, 3, 4}},
                 CooArrays<std::uint32_t>{indices, as_byte_span(values)});
  const std::vector<float> numbers{0, 0.25F, 0.5F, 0.75F, 1, 1.25F, 1.5F, 1.75F, -1, 1};
  writer.add_tensor(region, {.name = "quantized", .shape = {2, 5}}, as_byte_span(numbers));
  writer.commit();
  quantize_file(plain, folder / "arrays.thalia",
                {.bits = 3, .group_size = 8, .include = {"quantized"}, .min_elements = 1},
                {.save = example_options()});
  fs::remove(plain);
}

// Numbers without a pattern, of which three are others in the second state.
void write_step(const fs::path& path, int step) {
  Writer writer(path, example_options());
  writer.set_training_steps(static_cast<std::uint64_t>(step) * 1000);
  const RegionId region = writer.add_region({.name = "r"});
  Bytes numbers = noise(kFew * sizeof(float), 1);
  if (step == 2) {
    const float moved[] = {1.5F, -2.5F, 0.25F};
    const std::size_t places[] = {3, 7, 19};
    for (std::size_t i = 0; i < std::size(moved); ++i)
      std::memcpy(numbers.data() + places[i] * sizeof(float), &moved[i], sizeof(float));
  }
  writer.add_tensor(region, {.name = "few", .shape = {kFew}}, numbers);
  const Bytes rest = noise(4096, 2);
  writer.add_tensor(region, {.name = "rest", .dtype = DType::u8, .shape = {4096}}, rest);
  writer.commit();
}

void write_delta_of_steps(const fs::path& folder) {
  const fs::path base = folder / "step_1.thalia", next = folder / "step_2.thalia";
  write_step(base, 1);
  write_step(next, 2);
  const SaveOptions plain = example_options();
  DeltaOptions options{.save = plain, .pack = false};
  options.save.compression.codec = Codec::none;
  options.save.block_log2.reset();
  options.save.file_uuid->back() = 2;
  write_delta(state_source(ChainReader::open(next)), ChainReader::open(base),
              folder / "step_2.delta.thalia", options);
}

}  // namespace

void run(const std::filesystem::path& folder) {
  write_arrays(folder);
  write_delta_of_steps(folder);
  compress_checkpoint(folder / "step_1.thalia", folder / "step_1.thalia.zst",
                      {.frame_bytes = 4096, .output = {.durability = Durability::none}});
  write_metadata_file(folder / "arrays.thalia", folder / "arrays.thalia.meta",
                      {.output = {.durability = Durability::none}});
}

}  // namespace witness::examples
