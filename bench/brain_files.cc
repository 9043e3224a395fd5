// brain_files FOLDER NEURONS: one brain in files of each kind, for sizes.py to compare with what
// torch.save makes of the same state. Half of its matrices are dense, half 95 % zeros.
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "measure/samples.h"
#include "thalia/formats/convert.h"
#include "thalia/state/checkpoint.h"

namespace {

using namespace thalia;
using thalia::measure::normal_f32;

constexpr std::uint32_t kInputs = 400;
constexpr std::uint64_t kPruned = 20;  // one weight in so many is left

BrainState make_brain(std::uint32_t neurons) {
  BrainState brain;
  const Shape matrix{neurons, kInputs};
  for (const char* name : {"dense", "pruned"}) {
    BrainRegion& region = brain.regions.add(name, {.n_neurons = neurons, .n_inputs = kInputs});
    const auto weights = normal_f32(std::uint64_t{neurons} * kInputs * sizeof(float));
    Tensor w = Tensor::copy_of<float>(matrix, weights);
    if (region.n_neurons != 0 && std::string(name) == "pruned") {
      const auto values = w.mutable_as<float>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (i * 0x9E3779B97F4A7C15u >> 32 >= (1ull << 32) / kPruned) values[i] = 0;
      }
    }
    region.weights()[std::string("w_") + name] = std::move(w);
    region.region_state()["membrane"] = Tensor::zeros(DType::f32, {neurons});
  }
  return brain;
}

int run(const std::filesystem::path& folder, std::uint32_t neurons) {
  const BrainState brain = make_brain(neurons);
  const auto save = [&](const char* name, BrainSaveOptions options) {
    options.save.output.durability = Durability::none;
    BrainCheckpoint::save(brain, folder / name, options);
  };
  save("dense.thalia", {.sparse = SparseStorage::dense});
  save("dense.fp16.thalia",
       {.precision_policy = parse_precision_policy("fp16"), .sparse = SparseStorage::dense});
  save("sparse.thalia", {});
  save("sparse.fp16.thalia", {.precision_policy = parse_precision_policy("fp16")});
  save("sparse.zstd.thalia", {.save = {.compression = {.codec = Codec::zstd}}});
  save("sparse.fp16.zstd.thalia", {.precision_policy = parse_precision_policy("fp16"),
                                   .save = {.compression = {.codec = Codec::zstd}}});
  convert(folder / "dense.thalia", folder / "dense.safetensors");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 3) throw std::invalid_argument("usage: brain_files FOLDER NEURONS");
    return run(argv[1], static_cast<std::uint32_t>(std::stoul(argv[2])));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "brain_files: %s\n", error.what());
    return 1;
  }
}
