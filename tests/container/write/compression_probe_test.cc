#include "container/write/compression_probe.h"

#include "boost_test.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/reader.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::container;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(compression_probe)

namespace {

constexpr double kGB = 1e9;

Trial lz4(double ratio, double gigabytes) {
  return {Codec::lz4, 1, ratio, gigabytes * kGB};
}
Trial zstd(double ratio, double gigabytes) {
  return {Codec::zstd, 1, ratio, gigabytes * kGB};
}

// 20 MiB in two tensors.
SaveResult save_automatically(const std::filesystem::path& path, ByteSpan half,
                              Durability durability) {
  SaveOptions options{.automatic_codec = true, .output = {.durability = durability}};
  options.timestamp = 1;
  options.file_uuid.emplace();
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "r"});
  for (const char* name : {"a", "b"})
    writer.add_tensor(region, {.name = name, .dtype = DType::u8, .shape = {half.size()}}, half);
  return writer.commit();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_slow_target_takes_the_smallest_and_a_fast_one_nothing) {
  const Trial trials[] = {lz4(1.5, 0.7), zstd(2.0, 0.4)};
  BOOST_TEST((fastest(trials, 0.1 * kGB, 2)->codec == Codec::zstd));
  BOOST_TEST((fastest(trials, 0.7 * kGB, 2)->codec == Codec::lz4));
  BOOST_TEST(!fastest(trials, 3 * kGB, 2));
  BOOST_TEST((fastest(trials, 3 * kGB, 16)->codec == Codec::zstd));
}

BOOST_AUTO_TEST_CASE(what_hardly_shrinks_is_stored_however_slow_the_target) {
  const Trial trials[] = {lz4(1.0, 5), zstd(1.04, 2)};
  BOOST_TEST(!fastest(trials, 1e6, 8));
}

BOOST_AUTO_TEST_CASE(noise_is_stored) {
  const TemporaryFolder folder;
  const SaveResult result =
      save_automatically(folder / "f", random_bytes(10 << 20), Durability::full);
  BOOST_TEST((result.codec == Codec::none));
  BOOST_TEST(Reader::open(folder / "f").tensor("a").is_raw());
}

BOOST_AUTO_TEST_CASE(what_is_not_synced_or_small_is_stored) {
  const TemporaryFolder folder;
  const std::vector<std::byte> zeros(10 << 20);
  BOOST_TEST((save_automatically(folder / "f", zeros, Durability::none).codec == Codec::none));
  BOOST_TEST(
      (save_automatically(folder / "f", ByteSpan(zeros).first(1 << 20), Durability::full).codec ==
       Codec::none));
}

// Which way it goes is the machine's to say; nothing of the trial stays in the file.
BOOST_AUTO_TEST_CASE(the_file_is_the_one_of_the_codec_that_was_chosen) {
  const TemporaryFolder folder;
  const std::vector<std::byte> zeros(10 << 20);
  const SaveResult result = save_automatically(folder / "a", zeros, Durability::data);
  BOOST_TEST(verify(folder / "a").ok());
  const bool has_levels = result.codec == Codec::zstd || result.codec == Codec::lz4;
  SaveOptions options{.compression = {.codec = result.codec, .level = has_levels ? 1 : 0}};
  options.timestamp = 1;
  options.file_uuid.emplace();
  Writer writer(folder / "b", options);
  const RegionId region = writer.add_region({.name = "r"});
  for (const char* name : {"a", "b"})
    writer.add_tensor(region, {.name = name, .dtype = DType::u8, .shape = {zeros.size()}}, zeros);
  writer.commit();
  BOOST_TEST((read_file(folder / "a") == read_file(folder / "b")));
}

BOOST_AUTO_TEST_SUITE_END()
