// Edits of a delta: places and values that are put there, as they are and with all checksums made
// anew, so that what stands behind a checksum is reached too. Opens, verifies and resolves what
// comes out.

#include <array>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "fuzz/fuzz_target.h"
#include "integrity/crc32.h"
#include "model/delta_sample.h"
#include "support/damage.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/format/delta.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

namespace {

namespace fs = std::filesystem;

SampleState sample(bool changed) {
  std::mt19937_64 random(1);
  const auto weights = [&](const Shape& shape) {
    Tensor tensor = Tensor::zeros(DType::f32, shape);
    for (float& value : tensor.mutable_as<float>())
      value = static_cast<float>(random() % 1000) / 1000;
    return tensor;
  };
  Tensor listed = weights({20, 60});
  Tensor moved = weights({900});
  Tensor grown = weights({10, 10});
  SampleState state{.regions = {{"a", {{"same", {weights({70})}}}}, {"b", {}}}};
  if (changed) {
    listed.mutable_as<float>()[7] = 9;
    for (float& value : moved.mutable_as<float>()) value *= 1.001f;
    grown = Tensor::zeros(DType::f32, {12, 10});
  }
  state.regions["a"]["listed"].tensor = listed;
  state.regions["a"]["moved"].tensor = moved;
  state.regions["a"]["grown"].tensor = grown;
  state.regions["a"]["csr"].tensor = Tensor::zeros(DType::f32, {8, 8}).to_csr();
  state.connections[{"a", "b"}] = listed;
  return state;
}

// A base and a delta on it, in a folder that goes with the program.
struct Files {
  Files() {
    const SaveOptions save{.timestamp = 1,
                           .file_uuid = std::array<std::uint8_t, 16>{},
                           .durability = Durability::none};
    save_full(sample(false), folder / "base.thalia", save);
    save_delta(sample(true), folder / "base.thalia", path,
               {.timestamp = 1, .file_uuid = std::array<std::uint8_t, 16>{}});
    bytes = read_file(path);
  }
  TemporaryFolder folder;
  fs::path path = folder / "one.delta.thalia";
  std::string bytes;
};

bool is_sound(const fs::path& path) {
  try {
    return verify(path, {.limits = tight_limits(), .threads = 1, .progress = {}}).ok();
  } catch (const FormatError& error) {
    FUZZ_REQUIRE(error.code() == ErrorCode::limit_exceeded);
    return false;
  }
}

// Everything that a chain gives, or a typed error.
void read_chain(const fs::path& path, Verification mode) {
  try {
    const ChainReader chain = ChainReader::open(
        path, {.read = {.verification = mode, .limits = tight_limits(), .threads = 1}});
    const DeltaState state = delta_state(chain);
    for (const DeltaRegionSource& region : state.regions) {
      for (const DeltaTensorSource& tensor : region.tensors) {
        try {
          tensor.load();
        } catch (const Error&) {
          continue;
        }
      }
    }
  } catch (const Error& error) {
    FUZZ_REQUIRE(error.code() != ErrorCode::io || error.context().field == "base");
  }
}

void check(const Files& files, const std::string& bytes) {
  write_file(files.path, bytes);
  is_sound(files.path);
  for (const Verification mode : {Verification::off, Verification::on_first_touch})
    read_chain(files.path, mode);
}

void reseal_prefix(std::string& bytes, std::size_t length) {
  format::DeltaReference reference;
  std::memcpy(&reference, bytes.data() + sizeof(format::DeltaHeader), sizeof reference);
  reference.crc32 = 0u;
  std::memcpy(bytes.data() + sizeof(format::DeltaHeader), &reference, sizeof reference);
  reference.crc32 = integrity::crc32(bytes_of(bytes).first(length));
  std::memcpy(bytes.data() + sizeof(format::DeltaHeader), &reference, sizeof reference);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Files files;
  constexpr std::size_t kPrefix = 4096;
  std::string bytes = files.bytes;
  // Three bytes say where, one what.
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::size_t at = data[i] | data[i + 1] << 8 | data[i + 2] << 16;
    bytes[at % bytes.size()] = static_cast<char>(data[i + 3]);
  }
  check(files, bytes);
  std::string container = bytes.substr(kPrefix);
  format::Header layout;
  std::memcpy(&layout, container.data(), sizeof layout);
  reseal(container, layout);
  bytes.replace(kPrefix, container.size(), container);
  reseal_prefix(bytes, kPrefix);
  check(files, bytes);
  return 0;
}
