// What a delta costs in memory: a bound, whatever the size of its tensors.
#include <cstring>

#include "boost_test.h"
#include "state/delta/sample.h"
#include "support/fault.h"
#include "support/files.h"
#include "support/private_memory.h"
#include "support/sanitizers.h"
#include "thalia/state/delta.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(delta_peak)

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kTensor = (kSanitized ? 40 : 88) * kMiB;
constexpr std::uint64_t kMemory = kTensor / 10;  // what the options allow
// Beside the options' memory: pieces that threads make, and what the allocator keeps.
constexpr std::uint64_t kSlack = 56 * kMiB;

// In a process of its own, where nothing else has taken memory or given it back.
void check_peak(const std::function<void()>& work) {
  const Outcome outcome = run_with_faults({}, [&] {
    const std::uint64_t peak = peak_of(work);
    if (!kSanitized && peak > kMemory + kSlack)
      throw std::runtime_error(std::to_string(peak / kMiB) + " MiB of private memory");
  });
  BOOST_TEST(outcome.kind == Outcome::Kind::returned, outcome.message);
}

// Numbers without a pattern.
float scattered(std::uint64_t element, std::uint64_t step) {
  return static_cast<float>((element * 0x9E3779B97F4A7C15 + step * 0xC2B2AE3D27D4EB4F) >> 40);
}

// A tensor of f32 in the state of a step: a pattern that compresses, of which each `every`-th
// element moves with the step.
void fill(std::uint64_t begin, MutableByteSpan out, std::uint64_t step, std::uint64_t every) {
  for (std::size_t i = 0; i + 4 <= out.size(); i += 4) {
    const std::uint64_t element = (begin + i) / 4;
    auto value = static_cast<float>(element % 64);
    if (every == 1) value += static_cast<float>(step) / 7;
    if (every != 1 && element % every == 0) value = scattered(element, step);
    std::memcpy(out.data() + i, &value, sizeof value);
  }
}

// A difference, a list that is longer than may be kept, a sparse list, and a tensor that grows.
StateSource state(std::uint64_t step) {
  const auto source = [&](const char* name, std::uint64_t rows, std::uint64_t every) {
    return TensorSource{.spec = {.name = name, .shape = {rows, 1 << 10}},
                        .load = nullptr,
                        .open = [step, every]() -> PartReader {
                          return [step, every](std::uint64_t begin, MutableByteSpan out) {
                            fill(begin, out, step, every);
                          };
                        }};
  };
  StateSource out{.training_steps = step, .regions = {}};
  RegionSource& region = out.regions.emplace_back();
  region.spec.name = "large";
  const std::uint64_t rows = kTensor / 4096;
  region.tensors.push_back(source("difference", rows, 1));
  region.tensors.push_back(source("list", rows, 13));
  region.tensors.push_back(source("grown", rows + 1000 * step, 1 << 20));
  return out;
}

void save_base(const fs::path& path, std::uint64_t step) {
  Writer writer(path,
                {.compression = {.codec = Codec::lz4}, .output = {.durability = Durability::none}});
  writer.set_training_steps(step);
  const StateSource all = state(step);
  const RegionId region = writer.add_region(all.regions[0].spec);
  std::vector<TensorId> ids;
  for (const TensorSource& tensor : all.regions[0].tensors)
    ids.push_back(writer.add_tensor(region, tensor.spec));
  std::vector<std::byte> piece;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const TensorSource& tensor = all.regions[0].tensors[i];
    const std::uint64_t size = *tensor.spec.shape.element_count() * 4;
    const PartReader read = tensor.open();
    for (std::uint64_t at = 0; at < size; at += piece.size()) {
      piece.resize(std::min<std::uint64_t>(kMiB, size - at));
      read(at, piece);
      writer.write(ids[i], piece);
    }
  }
  writer.commit();
}

DeltaOptions delta_options() {
  return {.save = {.compression = {.codec = Codec::lz4},
                   .output = {.durability = Durability::none},
                   .work = {.threads = 2, .memory_bytes = kMemory}}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_delta_of_large_tensors_is_written_and_resolved_in_little_memory) {
  const TemporaryFolder folder;
  save_base(folder / "0.thalia", 0);
  const ChainOptions chain{.read = {.work = {.threads = 2}}};
  check_peak([&] {
    const ChainReader base = ChainReader::open(folder / "0.thalia", chain);
    write_delta(state(1), base, folder / "1.delta.thalia", delta_options());
  });
  // Over a delta, with lists in it.
  check_peak([&] {
    const ChainReader base = ChainReader::open(folder / "1.delta.thalia", chain);
    write_delta(state(2), base, folder / "2.delta.thalia", delta_options());
  });
  const Reader top = Reader::open(folder / "2.delta.thalia");
  BOOST_TEST((top.region("large").at("list").encoding() == Encoding::sparse_delta));
  BOOST_TEST(top.region("large").at("list").logical_bytes() > kMemory);
  BOOST_TEST((top.region("large").at("difference").encoding() != Encoding::dense));
  check_peak([&] {
    resolve(folder / "2.delta.thalia", folder / "full.thalia", chain,
            {.compression = {.codec = Codec::lz4},
             .output = {.durability = Durability::none},
             .work = {.threads = 2, .memory_bytes = kMemory}});
  });
  const ChainReader full = ChainReader::open(folder / "full.thalia");
  const TensorView grown = full.reader().region("large").at("grown");
  std::vector<std::byte> expected(100'001);
  std::vector<std::byte> found(expected.size());
  const std::uint64_t begin = grown.logical_bytes() / 8 * 4 + 4;
  fill(begin, MutableByteSpan(expected).first(100'000), 2, 1 << 20);
  full.read_part(grown, begin, MutableByteSpan(found).first(100'000));
  BOOST_TEST((found == expected));
}

BOOST_AUTO_TEST_SUITE_END()
