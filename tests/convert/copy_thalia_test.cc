// .thalia to .thalia: convert() and extract().
#include <string>
#include <vector>

#include "boost_test.h"
#include "checkpoint/checkpoints.h"
#include "formats/samples.h"
#include "support/files.h"
#include "thalia/error.h"
#include "thalia/formats/convert.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(copy_thalia)

namespace {

ConvertOptions fixed(SaveOptions save = {}) {
  return {.save = fixed_identity(std::move(save))};
}

constexpr const char* kLongName = "hippocampus.ca3.recurrent.collaterals.layer";

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_says_all_that_the_original_says) {
  const TemporaryFolder folder;
  write_rich_checkpoint(folder / "a.thalia", fixed_identity());
  const std::string original = describe(folder / "a.thalia");
  const SaveOptions saves[] = {{.checksum = ChecksumType::none},
                               {.checksum = ChecksumType::sha256},
                               {.checksum = ChecksumType::crc32},
                               {.leaves = LeafAlgorithm::sha256, .block_log2 = 12},
                               {.compression = {.codec = Codec::zstd, .chunk_bytes = 4096}},
                               {.compression = {.codec = Codec::lz4}}};
  for (const SaveOptions& save : saves) {
    const ConvertResult there = convert(folder / "a.thalia", folder / "b.thalia", fixed(save));
    BOOST_TEST(there.losses.empty());
    BOOST_TEST(there.output_bytes == std::filesystem::file_size(folder / "b.thalia"));
    BOOST_TEST((describe(folder / "b.thalia") == original));
    // Back from whatever it was stored as to raw: the very bytes of the original.
    convert(folder / "b.thalia", folder / "c.thalia", fixed());
    BOOST_TEST((read_file(folder / "c.thalia") == read_file(folder / "a.thalia")));
  }
}

BOOST_AUTO_TEST_CASE(compressed_files_can_be_compressed_otherwise) {
  const TemporaryFolder folder;
  write_rich_checkpoint(folder / "a.thalia",
                        fixed_identity({.compression = {.codec = Codec::zstd}}));
  convert(folder / "a.thalia", folder / "b.thalia", fixed({.compression = {.codec = Codec::lz4}}));
  BOOST_TEST((describe(folder / "b.thalia") == describe(folder / "a.thalia")));
}

BOOST_AUTO_TEST_CASE(a_file_without_regions_is_copied) {
  const TemporaryFolder folder;
  convert(golden("none.safetensors"), folder / "a.thalia", fixed());
  convert(folder / "a.thalia", folder / "b.thalia", fixed());
  BOOST_TEST((read_file(folder / "a.thalia") == read_file(folder / "b.thalia")));
}

BOOST_AUTO_TEST_CASE(decompression_is_bounded) {
  const TemporaryFolder folder;
  const std::vector<std::byte> zeros(100'000);
  {
    Writer writer(folder / "a.thalia", {.compression = {.codec = Codec::zstd}});
    writer.add_tensor(writer.add_region({.name = "r"}),
                      {.name = "w", .dtype = DType::u8, .shape = {zeros.size()}}, zeros);
    writer.commit();
  }
  ConvertOptions options = fixed();
  options.chain.read.input.limits.max_allocation_bytes = 99'999;
  BOOST_CHECK_EXCEPTION(
      convert(folder / "a.thalia", folder / "b.thalia", options), FormatError,
      [](const FormatError& error) { return error.code() == ErrorCode::limit_exceeded; });
  BOOST_TEST(!std::filesystem::exists(folder / "b.thalia"));
  options.chain.read.input.limits.max_allocation_bytes = 100'000;
  convert(folder / "a.thalia", folder / "b.thalia", options);
}

BOOST_AUTO_TEST_CASE(extract_copies_the_named_regions_and_the_connections_among_them) {
  const TemporaryFolder folder;
  write_rich_checkpoint(folder / "a.thalia", fixed_identity());
  const ConvertResult result =
      extract(folder / "a.thalia", {"v1", "empty", "v1"}, folder / "b.thalia", fixed());
  BOOST_TEST(result.losses == (std::vector<std::string>{"connections to regions left out: "
                                                        "'v1->hippocampus.ca3.recurr~a0bf5c44'"}),
             boost::test_tools::per_element());
  const Reader whole = Reader::open(folder / "a.thalia");
  const Reader part = Reader::open(folder / "b.thalia");
  BOOST_TEST(part.region_count() == 2u);
  BOOST_TEST(part.connection_count() == 1u);
  BOOST_TEST(part.find_connection("v1", "v1").has_value());
  BOOST_TEST(part.region("v1").tensor_count() == whole.region("v1").tensor_count());
  const std::string text = describe(folder / "b.thalia");
  const std::string all = describe(whole);
  // Each line of the extract is in the original.
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start) + 1;
    BOOST_TEST((all.find(text.substr(start, end - start)) != std::string::npos));
    start = end;
  }
}

BOOST_AUTO_TEST_CASE(extract_keeps_the_order_of_the_file) {
  const TemporaryFolder folder;
  write_rich_checkpoint(folder / "a.thalia", fixed_identity());
  extract(folder / "a.thalia", {kLongName, "empty", "v1"}, folder / "b.thalia", fixed());
  BOOST_TEST((read_file(folder / "b.thalia") == read_file(folder / "a.thalia")));
}

BOOST_AUTO_TEST_CASE(extract_of_an_absent_region_leaves_nothing) {
  const TemporaryFolder folder;
  write_rich_checkpoint(folder / "a.thalia", fixed_identity());
  BOOST_CHECK_EXCEPTION(
      extract(folder / "a.thalia", {"v1", "v2"}, folder / "b.thalia", fixed()), UsageError,
      [](const UsageError& error) { return error.code() == ErrorCode::not_found; });
  BOOST_TEST(!std::filesystem::exists(folder / "b.thalia"));
}

BOOST_AUTO_TEST_SUITE_END()
