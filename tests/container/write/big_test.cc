// Files of more than 4 GiB, most of them holes: offsets, rows, slices and indices past 2^32.
#include <unistd.h>

#include <cstring>

#include "boost_test.h"
#include "format/header.h"
#include "format/tensor.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

// Runs if it is named, in the slow suite.
BOOST_AUTO_TEST_SUITE(big, *boost::unit_test::disabled())

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::uint64_t kRowBytes = 1 << 20;
constexpr std::uint64_t kRows = 4096 + 256;  // 4.25 GiB

SaveOptions big_options() {
  SaveOptions options = steady_options();
  options.block_log2 = 22;
  options.work.threads = 0;
  return options;
}

std::byte row_mark(std::uint64_t row) {
  return std::byte(row * 37 + 1);
}

// Rows of zeros, the first byte of each marked; then a small tensor after 2^32.
void stream_rows(const std::filesystem::path& path, const SaveOptions& options) {
  Writer writer(path, options);
  const RegionId region = writer.add_region({.name = "big"});
  const TensorId rows =
      writer.add_tensor(region, {.name = "rows", .dtype = DType::u8, .shape = {kRows, kRowBytes}});
  const float last[] = {1, 2, 3};
  writer.add_tensor(region, {.name = "z", .shape = {3}, .role = Role::other}, as_byte_span(last));
  std::vector<std::byte> row(kRowBytes);
  for (std::uint64_t i = 0; i < kRows; ++i) {
    row[0] = row_mark(i);
    writer.write(rows, row);
  }
  writer.commit();
}

void check_rows(const TensorView& rows) {
  for (const std::uint64_t row : {0ull, 1ull, 4095ull, 4096ull, 4097ull, kRows - 1ull}) {
    std::vector<std::byte> out(4);
    const SliceRange ranges[] = {{row, row + 1}, {0, 4}};
    rows.read_slice(ranges, out);
    BOOST_TEST(bool(out == std::vector{row_mark(row), std::byte{}, std::byte{}, std::byte{}}));
    if (rows.is_raw()) BOOST_TEST(bool(rows.rows(row, kRows)[0] == row_mark(row)));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_tensor_of_more_than_4_gib_is_read_past_4_gib) {
  const TemporaryFolder folder;
  stream_rows(folder / "f", big_options());
  const Reader reader = Reader::open(folder / "f");
  const TensorView rows = reader.tensor("rows");
  BOOST_TEST(rows.logical_bytes() == kRows * kRowBytes);
  check_rows(rows);
  const TensorView last = reader.tensor("z");
  BOOST_TEST(last.stored_offset() > 4 * kGiB);
  BOOST_TEST(last.as<float>()[2] == 3.0f);
  BOOST_TEST(verify(folder / "f").ok());

  // A flip past 4 GiB is found, and the tensor named.
  const std::uint64_t at = rows.stored_offset() + 4 * kGiB + 12'345;
  std::FILE* file = std::fopen((folder / "f").c_str(), "r+b");
  BOOST_TEST_REQUIRE((file != nullptr && ::fseeko(file, static_cast<off_t>(at), SEEK_SET) == 0));
  std::fputc(1, file);
  std::fclose(file);
  const VerifyReport report = verify(folder / "f");
  BOOST_TEST_REQUIRE(report.findings.size() == 1u);
  BOOST_TEST(report.findings[0].tensor == "rows");
  BOOST_TEST(report.findings[0].offset <= at);
  BOOST_TEST(report.findings[0].offset + (1 << 22) > at);
  BOOST_CHECK_EXCEPTION(Reader::open(folder / "f").tensor("rows").rows(4096, 4097), IntegrityError,
                        says(ErrorCode::checksum_mismatch, "rows"));
}

BOOST_AUTO_TEST_CASE(a_compressed_tensor_of_more_than_4_gib_is_read_past_4_gib) {
  const TemporaryFolder folder;
  SaveOptions options = big_options();
  options.compression.codec = Codec::lz4;
  stream_rows(folder / "f", options);
  BOOST_TEST(std::filesystem::file_size(folder / "f") < kGiB / 8);
  check_rows(Reader::open(folder / "f").tensor("rows"));
}

BOOST_AUTO_TEST_CASE(sparse_tensors_have_indices_past_4_gib) {
  constexpr std::uint64_t kColumns = 3ull << 40;
  const std::uint64_t pointers[] = {0, 2, 3};
  const std::uint64_t columns[] = {5, kColumns - 1, 1ull << 33};
  const double values[] = {1, 2, 3};
  const std::uint64_t coordinates[] = {7, 1ull << 35, 9, 4};
  const TemporaryFolder folder;
  Writer writer(folder / "f", steady_options());
  const RegionId region = writer.add_region({.name = "r"});
  writer.add_csr<std::uint64_t>(region,
                                {.name = "csr", .dtype = DType::f64, .shape = {2, kColumns}},
                                {pointers, columns, as_byte_span(values)});
  writer.add_coo<std::uint64_t>(region,
                                {.name = "coo", .dtype = DType::f64, .shape = {1ull << 36, 10}},
                                {coordinates, as_byte_span(values).first(16)});
  writer.commit();
  BOOST_TEST(verify(folder / "f").ok());
  const Reader reader = Reader::open(folder / "f");
  const auto csr = std::get<CsrArrays<std::uint64_t>>(reader.tensor("csr").csr());
  BOOST_TEST(csr.column_indices[1] == kColumns - 1);
  const auto coo = std::get<CooArrays<std::uint64_t>>(reader.tensor("coo").coo());
  BOOST_TEST(coo.indices[1] == 1ull << 35);
  BOOST_TEST(reader.tensor("csr").dense_bytes() == 2 * 8 * kColumns);
}

BOOST_AUTO_TEST_CASE(offsets_past_a_hole_of_many_gib_are_followed) {
  constexpr std::uint64_t kHole = 64 * kGiB;
  const TemporaryFolder folder;
  save(folder / "f", {.regions = {{{.name = "r"}, {dense_tensor("t", DType::u8, {kRowBytes})}}},
                      .connections = {}});
  // The tail moves after the hole; everything that points at it is edited.
  EditableFile editable(read_file(folder / "f"));
  const format::Header layout = editable.layout();
  format::TensorEntry& entry = editable.tensor("t");
  const std::uint64_t grown = kHole;
  entry.shape[0] = kRowBytes + grown;
  entry.logical_length = kRowBytes + grown;
  entry.stored_length = kRowBytes + grown;
  editable.payload_header("t").shape[0] = kRowBytes + grown;
  editable.region_index(0).data_length = editable.region_index(0).data_length + grown;
  editable.region_header(0).weights_length = editable.region_header(0).weights_length + grown;
  editable.directory_region(0).logical_bytes = kRowBytes + grown;
  editable.directory_region(0).stored_bytes = kRowBytes + grown;
  format::Header& header = editable.header();
  header.directory_offset = header.directory_offset + grown;
  header.region_index_offset = header.region_index_offset + grown;
  header.checksum_type = ChecksumType::none;
  header.integrity_block_log2 = 0;
  header.leaf_algorithm = {};
  header.integrity_offset = header.integrity_offset + grown;
  header.file_length = header.integrity_offset + 32;
  header.integrity_length = 0;
  header.total_synapses = kRowBytes + grown;
  editable.reseal();
  const std::string& bytes = editable.bytes();
  const std::filesystem::path path = folder / "holes";
  write_file(path, bytes.substr(0, layout.directory_offset));
  std::filesystem::resize_file(path, header.file_length);
  std::FILE* file = std::fopen(path.c_str(), "r+b");
  BOOST_TEST_REQUIRE(file != nullptr);
  BOOST_TEST_REQUIRE(
      ::fseeko(file, static_cast<off_t>(layout.directory_offset + grown), SEEK_SET) == 0);
  std::fwrite(&bytes[layout.directory_offset], 1, layout.integrity_offset - layout.directory_offset,
              file);
  std::fclose(file);

  const Reader reader = Reader::open(path, {.verification = Verification::off});
  const TensorView tensor = reader.tensor("t");
  BOOST_TEST(tensor.logical_bytes() == kHole + kRowBytes);
  BOOST_TEST(bool(tensor.rows(kHole + 5, kHole + 6)[0] == std::byte{0}));
  BOOST_TEST(bool(tensor.bytes().back() == std::byte{0}));
  VerifyOptions quick;
  quick.quick = true;
  const VerifyReport report = verify(path, quick);
  for (const Finding& finding : report.findings) BOOST_TEST_MESSAGE(finding.message);
  BOOST_TEST(report.ok());
}

BOOST_AUTO_TEST_SUITE_END()
