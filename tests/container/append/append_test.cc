// Appends that end well: what readers find, and what stays byte for byte.
#include "thalia/append.h"

#include <algorithm>
#include <cstring>

#include "boost_test.h"
#include "container/append/check.h"
#include "container/write/same_as_sample.h"
#include "format/header.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "support/sanitizers.h"
#include "thalia/error.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(append)

namespace {

SampleRegion large_region(const std::string& name, std::uint64_t bytes, std::uint64_t seed) {
  return {{.name = name, .n_neurons = 10},
          {dense_tensor("large", DType::u8, {bytes}, Role::weights, seed),
           dense_tensor("state", DType::f32, {10}, Role::region_state, seed)}};
}

format::Header header_of(const std::string& bytes) {
  format::Header header;
  std::memcpy(&header, bytes.data(), sizeof header);
  return header;
}

}  // namespace

BOOST_AUTO_TEST_CASE(replaced_removed_and_added_regions_are_what_readers_find) {
  const SavedFile file(small_sample());
  append_change(file.path, steady_append());
  check_state(file.path, changed_sample(), 2);
}

BOOST_AUTO_TEST_CASE(every_checksum_type_and_leaf_holds_after_an_append) {
  for (const ChecksumType type :
       {ChecksumType::none, ChecksumType::sha256, ChecksumType::crc32, ChecksumType::block_tree}) {
    for (const auto leaves : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
      BOOST_TEST_CONTEXT("type " << int(type) << ", leaves " << int(leaves)) {
        SaveOptions options = steady_options();
        options.checksum = type;
        options.leaves = leaves;
        const SavedFile file(small_sample(), options);
        append_change(file.path, steady_append());
        check_state(file.path, changed_sample(), 2);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(appends_follow_appends) {
  Sample sample = varied_sample();
  const SavedFile file(sample);
  for (std::uint64_t i = 0; i < 6; ++i) {
    const SampleRegion grown = large_region("grown", 3000 * (i + 1), i);
    Appender appender(file.path, steady_append());
    const RegionId id =
        i == 0 ? appender.add_region(grown.spec) : appender.replace_region(grown.spec);
    declare_tensors(appender, id, grown);
    const AppendResult result = appender.commit();
    if (i == 0) sample.regions.push_back(grown);
    sample.regions.back() = grown;
    BOOST_TEST(result.generation == i + 2);
    BOOST_TEST(result.file_bytes == std::filesystem::file_size(file.path));
    BOOST_TEST(bool(result.closing_checksum == Reader::open(file.path).closing_checksum()));
    check_state(file.path, sample, i + 2);
  }
}

// The old end falls into every place of a block, on its bounds too.
BOOST_AUTO_TEST_CASE(blocks_in_which_old_and_new_bytes_meet_get_new_leaves) {
  for (std::uint64_t bytes = 1; bytes < 9000; bytes += 613) {
    for (const unsigned log2 : {12u, 13u, 20u}) {
      BOOST_TEST_CONTEXT(bytes << " bytes, blocks of 2^" << log2) {
        SaveOptions options = steady_options();
        options.block_log2 = log2;
        Sample sample = small_sample();
        sample.regions.push_back(large_region("old", bytes, 1));
        const SavedFile file(sample, options);
        const std::string before = read_file(file.path);
        sample.regions.push_back(large_region("new", 10'000 - bytes, 2));
        Appender appender(file.path, steady_append());
        declare_tensors(appender, appender.add_region(sample.regions.back().spec),
                        sample.regions.back());
        appender.commit();
        check_state(file.path, sample, 2);

        const std::string after = read_file(file.path);
        const format::Header old = header_of(before);
        const format::Header now = header_of(after);
        const std::uint64_t kept = (old.integrity_offset >> log2) * 16;
        BOOST_TEST(after.substr(now.integrity_offset, kept) ==
                   before.substr(old.integrity_offset, kept));
        BOOST_TEST(after.substr(256, old.file_length - 256) == before.substr(256));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(an_old_end_on_a_block_boundary_leaves_every_leaf) {
  SaveOptions options = steady_options();
  options.block_log2 = 12;
  // The size of a payload at which the blocks end where the integrity table begins.
  for (std::uint64_t bytes = 64; bytes < 8192; bytes += 64) {
    Sample sample = {.regions = {large_region("old", bytes, 1)}};
    const SavedFile file(sample, options);
    const std::string before = read_file(file.path);
    if (header_of(before).integrity_offset % 4096 != 0) continue;
    Appender appender(file.path, steady_append());
    appender.set_training_steps(99);
    sample.training_steps = 99;
    appender.commit();
    check_state(file.path, sample, 2);
    const std::string after = read_file(file.path);
    const std::uint64_t length = header_of(before).integrity_length;
    BOOST_TEST(after.substr(header_of(after).integrity_offset, length) ==
               before.substr(header_of(before).integrity_offset, length));
    return;
  }
  BOOST_TEST_ERROR("no size met a boundary");
}

// From blocks of 4 KiB to those of 1 MiB.
BOOST_AUTO_TEST_CASE(blocks_grow_with_the_file) {
  for (const auto leaves : {LeafAlgorithm::xxh3_128, LeafAlgorithm::sha256}) {
    for (const Access access : {Access::mapped, Access::copied}) {
      SaveOptions options = steady_options();
      options.block_log2.reset();
      options.leaves = leaves;
      Sample sample = small_sample();
      const SavedFile file(sample, options);
      const Reader before = Reader::open(file.path);
      BOOST_TEST(int(before.header().block_log2) == 12);
      std::uint64_t generation = 1;
      for (const auto& [bytes, log2] :
           {std::pair(5'000u, 12), std::pair(2u << 20, 14), std::pair(3'000u, 14),
            std::pair(3u << 20, 16), std::pair(12u << 20, 20)}) {
        const auto region = large_region(std::to_string(bytes), bytes, generation);
        AppendOptions append = steady_append();
        append.change.input.access = access;
        Appender appender(file.path, append);
        declare_tensors(appender, appender.add_region(region.spec), region);
        const AppendResult result = appender.commit();
        sample.regions.push_back(region);
        check_state(file.path, sample, ++generation);
        const Reader reader = Reader::open(file.path);
        BOOST_TEST(int(reader.header().block_log2) == log2);
        BOOST_TEST(reader.dead_bytes() == result.dead_bytes);
      }
      // Who opened the first state goes on with its leaves.
      check_same(before, small_sample());
      before.verify_all();
    }
  }
}

BOOST_AUTO_TEST_CASE(blocks_that_somebody_chose_stay) {
  for (const unsigned log2 : {13u, 20u}) {
    SaveOptions options = steady_options();
    options.block_log2 = log2;
    Sample sample = small_sample();
    const SavedFile file(sample, options);
    sample.regions.push_back(large_region("large", 2 << 20, 1));
    Appender appender(file.path, steady_append());
    declare_tensors(appender, appender.add_region(sample.regions.back().spec),
                    sample.regions.back());
    appender.commit();
    check_state(file.path, sample, 2);
    BOOST_TEST(unsigned{Reader::open(file.path).header().block_log2} == log2);
  }
}

// Larger blocks need new leaves for old bytes, and these would vouch for damage.
BOOST_AUTO_TEST_CASE(blocks_over_damage_do_not_grow) {
  SaveOptions options = steady_options();
  options.block_log2.reset();
  Sample sample = small_sample();
  sample.regions.push_back(large_region("old", 50'000, 1));
  const SavedFile file(sample, options);
  std::string bytes = read_file(file.path);
  bytes[Reader::open(file.path).region("old").at("large").stored_offset() + 20'000] ^= 1;
  write_file(file.path, bytes);
  const SampleRegion region = large_region("new", 2 << 20, 2);
  Appender appender(file.path, steady_append());
  declare_tensors(appender, appender.add_region(region.spec), region);
  appender.commit();
  const Reader reader = Reader::open(file.path);
  BOOST_TEST(int(reader.header().block_log2) == 12);
  check_same(reader.region("new").at("large"), region.tensors[0]);
  BOOST_CHECK_THROW(reader.region("old").at("large").bytes(), IntegrityError);
  const VerifyReport report = verify(file.path);
  BOOST_TEST_REQUIRE(report.findings.size() == 1u);
  BOOST_TEST(report.findings[0].region == "old");
}

BOOST_AUTO_TEST_CASE(damage_in_a_region_that_stays_is_neither_read_nor_hidden) {
  Sample sample = small_sample();
  sample.regions.push_back(large_region("old", 50'000, 1));
  const SavedFile file(sample);
  std::string bytes = read_file(file.path);
  const std::uint64_t offset =
      Reader::open(file.path).region("old").at("large").stored_offset() + 20'000;
  bytes[offset] ^= 1;
  write_file(file.path, bytes);
  append_change(file.path, steady_append());
  const VerifyReport report = verify(file.path);
  BOOST_TEST_REQUIRE(report.findings.size() == 1u);
  BOOST_TEST(report.findings[0].region == "old");
  BOOST_CHECK_THROW(Reader::open(file.path).region("old").at("large").bytes(), IntegrityError);
}

BOOST_AUTO_TEST_CASE(refuses_to_carry_over_what_is_damaged) {
  const auto refused = [](const SavedFile& file, std::uint64_t offset) {
    std::string bytes = read_file(file.path);
    bytes[offset] ^= 1;
    write_file(file.path, bytes);
    BOOST_CHECK_THROW(append_change(file.path, steady_append()), IntegrityError);
    BOOST_TEST(bool(read_file(file.path) == bytes));
  };
  Sample sample = small_sample();
  sample.regions.push_back(large_region("old", 50'000, 1));
  for (const int where : {0, 1, 2, 3}) {
    BOOST_TEST_CONTEXT("place " << where) {
      const SavedFile file(sample);
      const format::Header header = header_of(read_file(file.path));
      const std::uint64_t block = header.integrity_offset / 4096 * 4096;
      const std::uint64_t places[] = {header.integrity_offset, header.file_length - 1,
                                      header.directory_offset + 200, block};
      refused(file, places[where]);
    }
  }
  SaveOptions options = steady_options();
  options.checksum = ChecksumType::crc32;
  const SavedFile file(sample, options);
  refused(file, Reader::open(file.path).region("old").at("large").stored_offset() + 20'000);
}

BOOST_AUTO_TEST_CASE(connections_change_one_by_one) {
  Sample sample = varied_sample();
  const SavedFile file(sample);
  const SampleConnection self{"cortex", "cortex", csr_tensor("", DType::f32, {40, 40}, false, 9),
                              std::nullopt};
  {
    Appender appender(file.path, steady_append());
    declare_connection(appender, self);
    appender.commit();
  }
  sample.connections.push_back(self);
  check_state(file.path, sample, 2);
  {
    Appender appender(file.path, steady_append());
    BOOST_CHECK_EXCEPTION(appender.add_connection("cortex", "cortex"), UsageError,
                          has_code(ErrorCode::duplicate));
    appender.remove_connection("cortex", sample.regions[2].spec.name);
    BOOST_CHECK_EXCEPTION(appender.remove_connection("cortex", "empty"), UsageError,
                          has_code(ErrorCode::not_found));
    sample.connections[0].weights = csr_tensor("", DType::f32, {40, 30}, false, 10);
    declare_connection(appender, sample.connections[0]);
    appender.commit();
  }
  std::rotate(sample.connections.begin(), sample.connections.begin() + 1, sample.connections.end());
  check_state(file.path, sample, 3);
  {
    Appender appender(file.path, steady_append());
    appender.remove_region("cortex");
    appender.commit();
  }
  sample.regions.erase(sample.regions.begin());
  sample.connections.clear();
  check_state(file.path, sample, 4);
}

BOOST_AUTO_TEST_CASE(compressed_tensors_are_added_kept_and_moved) {
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    options.compression.chunk_bytes = 4096;
    Sample sample = varied_sample();
    const SavedFile file(sample, options);
    AppendOptions appending = steady_append();
    appending.compression.codec = codec;
    appending.compression.chunk_bytes = 4096;
    SampleRegion ramp = sample.regions[0];
    ramp.spec.name = "second";
    sample.connections.push_back({"second", "cortex", ramp.tensors[0], std::nullopt});
    sample.connections.back().weights.spec.role = Role::weights;
    Appender appender(file.path, appending);
    declare_tensors(appender, appender.add_region(ramp.spec), ramp);
    declare_connection(appender, sample.connections.back());
    appender.commit();
    sample.regions.push_back(ramp);
    check_state(file.path, sample, 2);
    const Reader reader = Reader::open(file.path);
    BOOST_TEST(!reader.region("second").at("ramp").is_raw());
    BOOST_TEST(reader.header().flags.lz4 == (codec == Codec::lz4));
  }
}

BOOST_AUTO_TEST_CASE(a_region_of_another_file_comes_as_it_is_stored) {
  for (const Codec codec : {Codec::none, Codec::zstd}) {
    SaveOptions options = steady_options();
    options.compression.codec = codec;
    options.compression.chunk_bytes = 4096;
    const SavedFile from(varied_sample(), options);
    Sample sample = small_sample();
    const SavedFile file(sample);
    {
      const Reader reader = Reader::open(from.path);
      Appender appender(file.path, steady_append());
      appender.copy_region(reader.region("cortex"));
      appender.commit();
    }
    sample.regions.push_back(varied_sample().regions[0]);
    check_state(file.path, sample, 2);
    const TensorView source = Reader::open(from.path).tensor("ramp");
    const TensorView copy = Reader::open(file.path).tensor("ramp");
    BOOST_TEST(copy.is_raw() == (codec == Codec::none));
    BOOST_TEST(copy.stored_bytes() == source.stored_bytes());
    BOOST_TEST(bool(copy.content_hash() == source.content_hash()));
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_of_another_file_comes_as_it_is_stored) {
  SaveOptions options = steady_options();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  const SavedFile from(varied_sample(), options);
  const SavedFile file(small_sample());
  const Reader reader = Reader::open(from.path);
  const RegionView cortex = reader.region("cortex");
  {
    Appender appender(file.path, steady_append());
    const RegionId region = appender.add_region({.name = "copies"});
    for (std::uint32_t i = 0; i < cortex.tensor_count(); ++i)
      appender.copy_tensor(region, cortex, i);
    BOOST_CHECK_EXCEPTION(appender.copy_tensor(region, cortex, 0), UsageError,
                          has_code(ErrorCode::duplicate));
    BOOST_CHECK_EXCEPTION(appender.copy_tensor({7}, cortex, 0), UsageError,
                          has_code(ErrorCode::bad_argument));
    BOOST_CHECK_EXCEPTION(appender.copy_tensor(region, cortex, cortex.tensor_count()), UsageError,
                          has_code(ErrorCode::not_found));
    appender.commit();
  }
  BOOST_TEST(verify(file.path).ok());
  const RegionView copies = Reader::open(file.path).region("copies");
  BOOST_REQUIRE(copies.tensor_count() == cortex.tensor_count());
  for (std::uint32_t i = 0; i < cortex.tensor_count(); ++i) {
    BOOST_TEST(copies.tensor(i).name() == cortex.tensor(i).name());
    BOOST_TEST(copies.tensor(i).stored_bytes() == cortex.tensor(i).stored_bytes());
    BOOST_TEST(bool(copies.tensor(i).content_hash() == cortex.tensor(i).content_hash()));
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_region_of_another_file_is_refused) {
  for (const Verification mode : {Verification::off, Verification::on_first_touch}) {
    const SavedFile from(varied_sample());
    const SavedFile file(small_sample());
    std::string bytes = read_file(from.path);
    bytes[Reader::open(from.path).tensor("ramp").stored_offset() + 100] ^= 4;
    write_file(from.path, bytes);
    const Reader reader = Reader::open(from.path, {.verification = mode});
    Appender appender(file.path, steady_append());
    BOOST_CHECK_THROW(appender.copy_region(reader.region("cortex")), IntegrityError);
  }
}

BOOST_AUTO_TEST_CASE(an_open_reader_stays_on_its_generation) {
  for (const ChecksumType type :
       {ChecksumType::block_tree, ChecksumType::sha256, ChecksumType::crc32}) {
    SaveOptions options = steady_options();
    options.checksum = type;
    const SavedFile file(small_sample(), options);
    const Reader old = Reader::open(file.path);
    append_change(file.path, steady_append());
    BOOST_TEST(old.header().generation == 1u);
    old.verify_all();
    check_same(old, small_sample());
  }
}

BOOST_AUTO_TEST_CASE(nothing_is_written_before_commit) {
  const SavedFile file(small_sample());
  const std::string before = read_file(file.path);
  {
    const std::vector<std::byte> payload(100'000);
    Appender appender(file.path, steady_append());
    const RegionId id = appender.add_region({.name = "c"});
    appender.add_tensor(id, {.name = "t", .dtype = DType::u8, .shape = {payload.size()}}, payload);
    BOOST_TEST(bool(read_file(file.path) == before));
  }
  BOOST_TEST(bool(read_file(file.path) == before));
}

BOOST_AUTO_TEST_CASE(debris_is_written_over_and_cut) {
  const SavedFile file(small_sample());
  const std::string before = read_file(file.path);
  for (const std::size_t debris : {1u, 64u, 5'000u, 200'000u}) {
    write_file(file.path, before + std::string(debris, '\xA5'));
    append_change(file.path, steady_append());
    check_state(file.path, changed_sample(), 2);
    BOOST_TEST(std::filesystem::file_size(file.path) == Reader::open(file.path).file_bytes());
  }
}

BOOST_AUTO_TEST_CASE(dead_bytes_are_those_of_what_went) {
  Sample sample = small_sample();
  sample.regions.push_back(large_region("old", 300'000, 1));
  const SavedFile file(sample);
  BOOST_TEST(Reader::open(file.path).dead_bytes() == 0u);
  Appender appender(file.path, steady_append());
  appender.remove_region("old");
  const AppendResult result = appender.commit();
  BOOST_TEST(result.dead_bytes == Reader::open(file.path).dead_bytes());
  BOOST_TEST(result.dead_bytes > 300'000u);
  BOOST_TEST(result.dead_bytes < 320'000u);
}

// Looking through all of them for each one would take minutes.
BOOST_AUTO_TEST_CASE(many_connections_are_found_and_removed) {
  const Sample sample = connected_sample(kSanitized ? 100 : 250);
  const TemporaryFolder folder;
  save(folder / "f", sample);
  {
    const Reader reader = Reader::open(folder / "f", {.verification = Verification::off});
    for (std::size_t i = sample.connections.size(); i-- > 0;) {
      const auto& [source, target, weights, delays] = sample.connections[i];
      const auto found = reader.find_connection(source, target);
      BOOST_REQUIRE(found.has_value());
      BOOST_REQUIRE(found->source == source);
      BOOST_REQUIRE(found->target == target);
    }
    BOOST_TEST(!reader.find_connection("region 1", "region 250").has_value());
    BOOST_TEST(!reader.find_connection("region", "region 1").has_value());
  }
  Appender appender(folder / "f", {.change = {.output = {.durability = Durability::none},
                                              .work = {.threads = 1}}});
  for (std::size_t i = sample.connections.size(); i-- > 1;)
    appender.remove_connection(sample.connections[i].source, sample.connections[i].target);
  expect<UsageError>([&] { appender.remove_connection("region 1", "region 1"); },
                     ErrorCode::not_found);
  appender.commit();
  BOOST_TEST(Reader::open(folder / "f").connection_count() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
