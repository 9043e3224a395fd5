// Edits of a chain of two deltas: places and values that are put there, as they are and with all
// checksums made anew, so that what follows a checksum is reached too. Places count through
// the lower delta and then the upper one; the upper one's name for the lower follows its edits.
// Opens, verifies and resolves what comes out.

#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>

#include "format/delta.h"
#include "format/header.h"
#include "fuzz/fuzz_target.h"
#include "integrity/crc32.h"
#include "state/delta/sample.h"
#include "support/damage.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

namespace {
namespace delta_target {

namespace fs = std::filesystem;

SampleState sample(int step) {
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
  // Patterns of bits, of which one in five moves at each step, by less than 64 or by much.
  Tensor stepped = Tensor::zeros(DType::bf16, {700});
  for (std::byte& byte : stepped.mutable_bytes()) byte = static_cast<std::byte>(random());
  for (int i = 0; i < step; ++i) {
    for (std::size_t at = static_cast<std::size_t>(i); at < 700; at += 5)
      stepped.mutable_bytes()[2 * at + (at % 35 == 0)] ^= static_cast<std::byte>(1 + at % 32);
  }
  Tensor low_rank = weights({24, 40});
  SampleState state{.regions = {{"a", {{"same", {weights({70})}}}}, {"b", {}}}};
  if (step > 0) {
    listed.mutable_as<float>()[7] = static_cast<float>(8 + step);
    for (float& value : moved.mutable_as<float>()) value *= 1 + 1e-3f * static_cast<float>(step);
    // A column times a row more.
    const std::span<float> elements = low_rank.mutable_as<float>();
    for (std::size_t i = 0; i < elements.size(); ++i)
      elements[i] +=
          static_cast<float>(step) * static_cast<float>(i / 40) * std::sin(float(i % 40));
    grown = Tensor::zeros(DType::f32, {static_cast<std::uint64_t>(11 + step), 10});
  }
  state.regions["a"]["listed"].tensor = listed;
  state.regions["a"]["moved"].tensor = moved;
  state.regions["a"]["grown"].tensor = grown;
  state.regions["a"]["low_rank"].tensor = low_rank;
  state.regions["a"]["stepped"].tensor = stepped;
  state.regions["a"]["csr"].tensor = Tensor::zeros(DType::f32, {8, 8}).to_csr();
  state.connections[{"a", "b"}] = listed;
  return state;
}

// A base and two deltas on it, in a folder that goes with the program.
struct Files {
  Files() {
    const SaveOptions save{.timestamp = 1,
                           .file_uuid = std::array<std::uint8_t, 16>{},
                           .output = {.durability = Durability::none}};
    const DeltaOptions delta{.loss = {.low_rank = LowRankOptions{.bits_per_element = 2,
                                                                 .include = {"low_rank"},
                                                                 .min_elements = 1}},
                             .save = save,
                             .pack = false};
    save_full(sample(0), folder / "base.thalia", save);
    save_delta(sample(1), folder / "base.thalia", lower_path, delta);
    save_delta(sample(2), lower_path, upper_path, delta);
    lower = read_file(lower_path);
    upper = read_file(upper_path);
    for (const fs::path& path : {lower_path, upper_path}) {
      const RegionView a = Reader::open(path).region("a");
      FUZZ_REQUIRE(a.at("low_rank").encoding() == Encoding::low_rank_delta);
      FUZZ_REQUIRE(a.at("stepped").encoding() == Encoding::step_delta);
    }
  }
  TemporaryFolder folder;
  fs::path lower_path = folder / "one.delta.thalia";
  fs::path upper_path = folder / "two.delta.thalia";
  std::string lower;
  std::string upper;
};

bool is_sound(const fs::path& path) {
  try {
    return verify(path,
                  {.input = {.limits = tight_limits()}, .work = {.threads = 1, .progress = {}}})
        .ok();
  } catch (const FormatError& error) {
    FUZZ_REQUIRE(error.code() == ErrorCode::limit_exceeded);
    return false;
  }
}

// Everything that a chain gives, or a typed error.
void read_chain(const fs::path& path, Verification mode) {
  try {
    const ChainReader chain = ChainReader::open(path, {.read = {.input = {.limits = tight_limits()},
                                                                .verification = mode,
                                                                .work = {.threads = 1}}});
    const StateSource state = state_source(chain);
    std::array<std::byte, 16> part;
    for (const RegionSource& region : state.regions) {
      for (const TensorSource& tensor : region.tensors) {
        try {
          tensor.load();
          if (tensor.open) tensor.open()(0, part);
        } catch (const Error&) {
          continue;
        }
      }
    }
  } catch (const Error& error) {
    FUZZ_REQUIRE(error.code() != ErrorCode::io || error.context().field == "base");
  }
}

// What it is squashed to is sound.
void resolve_chain(const Files& files) {
  const fs::path full = files.folder / "full.thalia";
  try {
    resolve(files.upper_path, full,
            {.read = {.input = {.limits = tight_limits()}, .work = {.threads = 1}}},
            {.output = {.durability = Durability::none}, .work = {.threads = 1}});
  } catch (const Error&) {
    return;
  }
  FUZZ_REQUIRE(is_sound(full));
}

void check(const Files& files, const std::string& lower, const std::string& upper) {
  write_file(files.lower_path, lower);
  write_file(files.upper_path, upper);
  for (const fs::path& path : {files.lower_path, files.upper_path}) {
    is_sound(path);
    for (const Verification mode : {Verification::off, Verification::on_first_touch})
      read_chain(path, mode);
  }
  resolve_chain(files);
}

void reseal_prefix(std::string& bytes, std::size_t length) {
  format::DeltaReference reference;
  std::memcpy(&reference, bytes.data() + sizeof(format::DeltaHeader), sizeof reference);
  reference.crc32 = 0u;
  std::memcpy(bytes.data() + sizeof(format::DeltaHeader), &reference, sizeof reference);
  reference.crc32 = integrity::crc32(bytes_of(bytes).first(length));
  std::memcpy(bytes.data() + sizeof(format::DeltaHeader), &reference, sizeof reference);
}

void reseal_delta(std::string& bytes) {
  constexpr std::size_t kPrefix = 4096;
  std::string container = bytes.substr(kPrefix);
  format::Header layout;
  std::memcpy(&layout, container.data(), sizeof layout);
  reseal(container, layout);
  bytes.replace(kPrefix, container.size(), container);
  reseal_prefix(bytes, kPrefix);
}

// Makes the upper delta name its base by what the edited file says of itself.
void rename_base(std::string& upper, const std::string& lower) {
  constexpr std::size_t kPrefix = 4096;
  const std::string checksum = lower.substr(lower.size() - 32);
  upper.replace(offsetof(format::DeltaHeader, base_checkpoint_hash), 32, checksum);
  upper.replace(kPrefix + offsetof(format::Header, base_checksum), 32, checksum);
  upper.replace(sizeof(format::DeltaHeader) + offsetof(format::DeltaReference, base_uuid), 16,
                lower.substr(kPrefix + offsetof(format::Header, file_uuid), 16));
}

void run(const std::uint8_t* data, std::size_t size) {
  static const Files files;
  std::string lower = files.lower;
  std::string upper = files.upper;
  // Three bytes say where, one what.
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    std::size_t at = data[i] | data[i + 1] << 8 | data[i + 2] << 16;
    at %= lower.size() + upper.size();
    std::string& file = at < lower.size() ? lower : upper;
    file[at < lower.size() ? at : at - lower.size()] = static_cast<char>(data[i + 3]);
  }
  check(files, lower, upper);
  reseal_delta(lower);
  rename_base(upper, lower);
  reseal_delta(upper);
  check(files, lower, upper);
}

}  // namespace delta_target
}  // namespace

FUZZ_TARGET(delta)
