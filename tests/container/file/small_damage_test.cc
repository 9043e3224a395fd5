// Small files of which a byte is damaged: what does not hold it can still be read, without being
// asked for in another way. And the sizes of blocks that make it so.
#include <algorithm>
#include <cstring>

#include "boost_test.h"
#include "container/file/block_choice.h"
#include "container/read/damage_check.h"
#include "container/write/same_as_sample.h"
#include "format/header.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/append.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/stream.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(small_damage)

namespace {

// As somebody saves who knows nothing of blocks.
SaveOptions plain_options() {
  SaveOptions options = steady_options();
  options.block_log2.reset();
  return options;
}

Sample two_regions() {
  Sample sample;
  sample.metadata = R"({"run":"of a small network"})";
  sample.regions = {{{.name = "cortex",
                      .config_json = R"({"layers":3})",
                      .metadata_json = R"({"why":"behind the payloads"})",
                      .n_neurons = 20},
                     {dense_tensor("w", DType::f32, {20, 30}, Role::weights, 1),
                      csr_tensor("sparse", DType::f32, {20, 30}, false, 2),
                      dense_tensor("trace", DType::f16, {200}, Role::region_state, 3)}},
                    {{.name = "thalamus", .config_json = R"({"relay":true})", .n_neurons = 7},
                     {dense_tensor("w", DType::u8, {7, 300}, Role::weights, 4),
                      dense_tensor("v", DType::f32, {7}, Role::homeostatic, 5)}}};
  sample.connections = {{.source = "cortex",
                         .target = "thalamus",
                         .weights = dense_tensor("", DType::f32, {7, 20}, Role::weights, 6),
                         .delays = {}},
                        {.source = "thalamus",
                         .target = "cortex",
                         .weights = dense_tensor("", DType::f32, {20, 7}, Role::weights, 7),
                         .delays = {}}};
  return sample;
}

unsigned block_log2_of(const std::filesystem::path& path) {
  return Reader::open(path).header().block_log2;
}

void check_texts(const RegionView& region, const RegionSpec& spec) {
  BOOST_TEST(region.name() == spec.name);
  BOOST_TEST(region.n_neurons() == spec.n_neurons);
  BOOST_TEST(region.config_json() == spec.config_json);
  BOOST_TEST(region.metadata_json() == spec.metadata_json);
}

// What a connection's matrix is called in the directory.
struct Place {
  std::string region;  ///< "": a connection
  std::string tensor;
};

void check_refused(const TensorView& tensor, const Place& place) {
  std::vector<std::byte> out(tensor.logical_bytes());
  BOOST_CHECK_EXCEPTION(tensor.read(out), IntegrityError,
                        says(ErrorCode::checksum_mismatch, place.region, place.tensor));
}

// Everything but the tensor at `damaged` is as it was saved. If leaves are SHA-256, what
// shares a block with the damage does not count: tensors of the same region.
void check_all_but(const Reader& reader, const Sample& sample, const Place& damaged,
                   bool beside_too) {
  BOOST_TEST(reader.metadata_json() == sample.metadata);
  BOOST_TEST_REQUIRE(reader.region_count() == sample.regions.size());
  for (const SampleRegion& expected : sample.regions) {
    const RegionView region = reader.region(expected.spec.name);
    const bool hit = expected.spec.name == damaged.region;
    if (!hit) check_texts(region, expected.spec);
    for (const SampleTensor& tensor : expected.tensors) {
      const TensorView view = region.at(tensor.spec.name);
      if (hit && tensor.spec.name == damaged.tensor) {
        check_refused(view, damaged);
      } else if (!hit || beside_too) {
        check_same(view, tensor);
      }
    }
  }
  BOOST_TEST_REQUIRE(reader.connection_count() == sample.connections.size());
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    BOOST_TEST(connection.source == sample.connections[i].source);
    const bool hit = damaged.region.empty();
    if (hit && damaged.tensor == std::to_string(i)) {
      check_refused(connection.weights, {"", std::to_string(i) + ".weights"});
    } else if (!hit || beside_too) {
      check_same(connection.weights, sample.connections[i].weights);
    }
  }
}

struct Target {
  Place place;
  std::uint64_t offset;
  std::uint64_t length;
};

std::vector<Target> targets_of(const Reader& reader) {
  std::vector<Target> out;
  const auto add = [&](std::string region, std::string name, const TensorView& tensor) {
    out.push_back(
        {{std::move(region), std::move(name)}, tensor.stored_offset(), tensor.stored_bytes()});
  };
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t)
      add(std::string(region.name()), std::string(region.tensor(t).name()), region.tensor(t));
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i)
    add("", std::to_string(i), reader.connection(i).weights);
  return out;
}

}  // namespace

// A byte of each line of each payload, and each payload's last one.
BOOST_AUTO_TEST_CASE(a_damaged_tensor_of_a_small_file_takes_nothing_else_along) {
  const Sample sample = two_regions();
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    for (const LeafAlgorithm leaves : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
      SaveOptions options = plain_options();
      options.compression.codec = codec;
      options.leaves = leaves;
      DamagedFile file(saved(sample, options));
      const std::vector<Target> targets = targets_of(Reader::open(file.path()));
      BOOST_TEST(targets.size() == 7u);
      for (const Target& target : targets) {
        for (std::uint64_t at = 0; at < target.length; at += 64) {
          const std::uint64_t offset = target.offset + std::min(at + at % 63, target.length - 1);
          BOOST_TEST_CONTEXT("codec " << int(codec) << ", leaves " << int(leaves) << ", byte "
                                      << offset << " in " << target.place.region << "/"
                                      << target.place.tensor) {
            file.flip(offset, 0x10);
            for (const Access access : {Access::mapped, Access::copied}) {
              check_all_but(Reader::open(file.path(), {.input = {.access = access}}), sample,
                            target.place, leaves == LeafAlgorithm::xxh3_128);
            }
            const VerifyReport report = verify_damaged(file.path());
            BOOST_TEST(std::ranges::any_of(report.findings,
                                           [&](const Finding& finding) {
                                             return finding.code == ErrorCode::checksum_mismatch &&
                                                    finding.region == target.place.region &&
                                                    finding.tensor.starts_with(target.place.tensor);
                                           }),
                       describe(report));
            file.flip(offset, 0x10);
          }
        }
      }
      check_all_but(Reader::open(file.path()), sample, {"none", "none"}, true);
    }
  }
}

// The ends of payloads, where other things follow.
BOOST_AUTO_TEST_CASE(the_ends_of_larger_payloads_share_no_block_with_what_follows) {
  for (const auto& [bytes, log2] : {std::pair(1u << 20, 14), std::pair(3u << 20, 16)}) {
    Sample sample = two_regions();
    for (SampleRegion& region : sample.regions)
      region.tensors.push_back(dense_tensor("large", DType::u8, {bytes}, Role::other, 8));
    DamagedFile file(saved(sample, plain_options()));
    BOOST_TEST(int(block_log2_of(file.path())) == log2);
    for (const Target& target : targets_of(Reader::open(file.path()))) {
      for (const std::uint64_t offset : {target.offset, target.offset + target.length - 1}) {
        file.flip(offset, 0x10);
        check_all_but(Reader::open(file.path()), sample, target.place, true);
        file.flip(offset, 0x10);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_directory_is_refused_as_ever) {
  DamagedFile file(saved(two_regions(), plain_options()));
  const format::Header header = EditableFile(read_file(file.path())).layout();
  file.flip(header.directory_offset + header.directory_length - 1, 1);
  BOOST_CHECK_EXCEPTION(Reader::open(file.path()).region("cortex"), IntegrityError,
                        has_code(ErrorCode::checksum_mismatch));
}

BOOST_AUTO_TEST_CASE(blocks_are_as_large_as_the_file_asks_for) {
  const auto log2 = [](std::uint64_t covered) { return container::block_log2_for(covered); };
  BOOST_TEST(log2(512) == 12u);
  BOOST_TEST(log2(1 << 20) == 12u);
  BOOST_TEST(log2((1 << 20) + 1) == 14u);
  BOOST_TEST(log2(4 << 20) == 14u);
  BOOST_TEST(log2((4 << 20) + 1) == 16u);
  BOOST_TEST(log2(16 << 20) == 16u);
  BOOST_TEST(log2((16 << 20) + 1) == 20u);
  BOOST_TEST(log2(1ull << 40) == 20u);
}

// In each way to the disk: leaves are made before the size of the file is known.
BOOST_AUTO_TEST_CASE(every_way_of_saving_makes_the_leaves_of_the_size_that_comes_out) {
  constexpr std::uint64_t kMiB = 1 << 20;
  for (const auto& [bytes, log2] :
       {std::pair(kMiB / 2, 12), std::pair(kMiB - 20'000, 12), std::pair(kMiB, 14),
        std::pair(3 * kMiB, 14), std::pair(6 * kMiB, 16), std::pair(16 * kMiB - 200'000, 16),
        std::pair(17 * kMiB, 20)}) {
    const Sample sample{
        .regions = {{{.name = "r"}, {dense_tensor("w", DType::u8, {bytes}, Role::weights, 9)}}},
        .connections = {}};
    for (const Codec codec : {Codec::none, Codec::zstd}) {
      for (const IoMode io : {IoMode::buffered, IoMode::direct}) {
        for (const bool streamed : {false, true}) {
          BOOST_TEST_CONTEXT(bytes << " bytes, codec " << int(codec) << ", io " << int(io)
                                   << ", streamed " << streamed) {
            const TemporaryFolder folder;
            SaveOptions options = plain_options();
            options.compression.codec = codec;
            options.compression.level = codec == Codec::zstd ? 1 : 0;
            options.io = io;
            Writer writer(folder / "f", options);
            const RegionId region = writer.add_region(sample.regions[0].spec);
            const SampleTensor& tensor = sample.regions[0].tensors[0];
            if (streamed) {
              writer.write(writer.add_tensor(region, tensor.spec), tensor.payload);
            } else {
              writer.add_tensor(region, tensor.spec, tensor.payload);
            }
            writer.commit();
            BOOST_TEST(int(block_log2_of(folder / "f")) == log2);
            BOOST_TEST(verify(folder / "f").ok());
            BOOST_TEST(Reader::open(folder / "f").dead_bytes() == 0u);
          }
        }
      }
    }
  }
}

// Gaps are a share of the file, and none if somebody chose the blocks, or there are none.
BOOST_AUTO_TEST_CASE(gaps_cost_little) {
  Sample many;
  for (int i = 0; i < 500; ++i)
    many.regions.push_back({{.name = std::to_string(i)}, {dense_tensor("w", DType::f32, {10})}});
  const SaveOptions plain = plain_options();
  const auto size_with = [&](const SaveOptions& options) { return saved(many, options).size(); };
  const std::size_t without = size_with(steady_options());
  BOOST_TEST(size_with(plain) > without);
  BOOST_TEST(size_with(plain) <= without + (16 << 10) + without / 16);
  for (const auto type : {ChecksumType::none, ChecksumType::crc32}) {
    SaveOptions options = plain;
    options.checksum = type;
    SaveOptions chosen = options;
    chosen.block_log2 = 12;
    BOOST_TEST(size_with(options) == size_with(chosen));
  }
  BOOST_TEST(saved({}, plain).size() == saved({}, steady_options()).size());
}

BOOST_AUTO_TEST_CASE(compaction_keeps_blocks_that_somebody_chose) {
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  for (const auto& [chosen, expected] :
       {std::pair(20u, 20), std::pair(12u, 12), std::pair(13u, 13)}) {
    options.block_log2 = chosen;
    save(folder / "f", two_regions(), options);
    compact(folder / "f", {.output = {.durability = Durability::none}});
    BOOST_TEST(int(block_log2_of(folder / "f")) == expected);
    check_same(Reader::open(folder / "f"), two_regions());
  }
}

BOOST_AUTO_TEST_SUITE_END()
