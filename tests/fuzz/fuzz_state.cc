// Any text as the metadata of a region with a few tensors. What is accepted as a state is the same
// state after it was saved and loaded again.
#include <cstdint>
#include <string>

#include "fuzz/fuzz_target.h"
#include "state/brain/stored_region.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/writer.h"

using namespace thalia;

namespace {
namespace state_target {

struct File {
  test::TemporaryFolder folder;
  std::filesystem::path path = folder / "state.thalia";

  BrainRegion load() const {
    const StateLoadOptions options{.input = {.limits = {.max_allocation_bytes = 1 << 20}},
                                   .work = {.threads = 1}};
    return state::load_region(Reader::open(path).region("r"), {options, 0});
  }
};

SaveOptions quick() {
  return {.output = {.durability = Durability::none}, .work = {.threads = 1}};
}

bool save_text(const File& file, const std::string& metadata) {
  static const Tensor dense = Tensor::zeros(DType::f32, {10, 11});
  static const Tensor sparse = dense.to_csr();
  static const Tensor scalar = Tensor::zeros(DType::f64, {});
  try {
    Writer writer(file.path, quick());
    const RegionId id = writer.add_region({.name = "r", .metadata_json = metadata});
    writer.add_tensor(id, {.name = "w", .shape = {10, 11}}, dense.bytes());
    writer.add_tensor(id, {.name = "s", .shape = {10, 11}, .encoding = Encoding::csr},
                      sparse.bytes());
    writer.add_tensor(id, {.name = "x", .dtype = DType::f64, .shape = {}}, scalar.bytes());
    writer.commit();
    return true;
  } catch (const UsageError&) {
    return false;  // no JSON object
  }
}

void save_region(const File& file, const BrainRegion& region) {
  const state::StoredRegion stored = state::store_region("r", region, {}, {});
  Writer writer(file.path, quick());
  const RegionId id = writer.add_region(stored.spec);
  for (const state::StoredTensor& tensor : stored.tensors)
    writer.add_tensor(id, tensor.spec, tensor.tensor.bytes());
  writer.commit();
}

void run(const std::uint8_t* data, std::size_t size) {
  static const File first;
  static const File second;
  if (!save_text(first, std::string(reinterpret_cast<const char*>(data), size))) return;
  BrainRegion region;
  try {
    region = first.load();
  } catch (const Error&) {
    return;
  }
  try {
    save_region(second, region);
  } catch (const UsageError&) {
    return;  // a name that no tensor can have
  }
  FUZZ_REQUIRE(second.load() == region);
}

}  // namespace state_target
}  // namespace

FUZZ_TARGET(state)
