// What writing a version of slime's takes: a few pieces a thread, however much changed.
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/private_memory.h"
#include "support/sanitizers.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/safetensors.h"
#include "thalia/formats/weight_delta.h"

using namespace thalia;

BOOST_AUTO_TEST_SUITE(slime_memory)

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;
// All frames together are as large, as nothing of them can be compressed.
constexpr std::uint64_t kModel = 64 * kMiB;
// What two threads keep, their encoders, and what the allocator keeps.
constexpr std::uint64_t kMost = 32 * kMiB;

std::vector<std::byte> save_model(const fs::path& path, std::uint64_t seed,
                                  const std::vector<std::uint64_t>& sizes) {
  std::vector<std::byte> bytes = test::random_bytes(kModel, seed);
  std::vector<NamedArray> tensors;
  std::uint64_t at = 0;
  for (const std::uint64_t size : sizes) {
    tensors.push_back({.name = "w" + std::to_string(tensors.size()),
                       .dtype = DType::u8,
                       .shape = Shape{size},
                       .bytes = ByteSpan(bytes).subspan(at, size)});
    at += size;
  }
  save_safetensors(path, tensors, std::nullopt, {.durability = Durability::none});
  return bytes;
}

// In a process of its own, where nothing else has taken memory or given it back.
void check(const std::vector<std::uint64_t>& sizes, const std::string& encoding) {
  const test::TemporaryFolder folder;
  save_model(folder / "before.safetensors", 1, sizes);
  const std::vector<std::byte> after = save_model(folder / "after.safetensors", 2, sizes);
  const fs::path version = folder / "weight_v000001";
  const test::Outcome outcome = test::run_with_faults({}, [&] {
    const std::uint64_t peak = test::peak_of([&] {
      write_weight_delta(folder / "before.safetensors", folder / "after.safetensors", version,
                         {.kind = WeightDeltaKind::slime,
                          .encoding = encoding,
                          .output = {.durability = Durability::none},
                          .work = {.threads = 2}});
    });
    if (!test::kSanitized && peak > kMost)
      throw std::runtime_error(std::to_string(peak / kMiB) + " MiB of private memory");
  });
  BOOST_REQUIRE_MESSAGE((outcome.kind == test::Outcome::Kind::returned), outcome.message);
  fs::create_directory(folder / "weight_v000000");
  fs::rename(folder / "before.safetensors", folder / "weight_v000000/model.safetensors");
  const AnyFile found = open_any(version);
  BOOST_REQUIRE(found.tensors().size() == sizes.size());
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    BOOST_TEST(test::same_bytes(found.read(i).bytes(), ByteSpan(after).subspan(at, sizes[i])));
    at += sizes[i];
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(frames_of_many_tensors_are_not_kept) {
  check({kModel / 8, kModel / 8, kModel / 4, kModel / 4, kModel / 4}, "xor");
}

BOOST_AUTO_TEST_CASE(the_frame_of_one_large_tensor_is_not_kept) {
  check({kModel}, "xor");
}

BOOST_AUTO_TEST_CASE(a_list_of_bytes_is_not_kept) {
  check({kModel / 2, kModel / 2}, "overwrite");
}

BOOST_AUTO_TEST_SUITE_END()
