// Truncated and flipped files: refused or reported, never a crash, and what verify says of them.
#include <random>
#include <set>
#include <string>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "format/header.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "support/sanitizers.h"
#include "thalia/error.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(corruption)

namespace {

SaveOptions options_with(ChecksumType checksum) {
  SaveOptions options = steady_options();
  options.checksum = checksum;
  return options;
}

// A copy of the file is refused and reported as the mapping is.
void check_copied(const DamagedFile& file, const Walk& walk, const VerifyReport& report) {
  const Walk copied = walk_file(file.path(), Verification::on_first_touch, Access::copied);
  BOOST_TEST(copied.errors == walk.errors);
  BOOST_TEST(copied.first_error == walk.first_error);
  BOOST_TEST(describe(verify_damaged(file.path(), Access::copied)) == describe(report));
}

// `bytes` with each byte of [begin, end) flipped in turn, by each of three masks; under sanitizers
// by one of them, another in each round. `thin`: each eighth byte alone.
void check_every_flip(const std::string& bytes, std::uint64_t begin, std::uint64_t end,
                      std::uint64_t round, bool thin = false) {
  constexpr unsigned kMasks[] = {0x01, 0x80, 0xFF};
  DamagedFile file(bytes);
  for (std::uint64_t offset = begin; offset < end; ++offset) {
    if (thin && offset % 8 != 0) continue;
    const unsigned chosen = kMasks[(offset + round) % 3];
    for (const unsigned mask : kMasks) {
      if (kSanitized && mask != chosen) continue;
      file.flip(offset, mask);
      const VerifyReport report = verify_damaged(file.path());
      if (report.ok()) BOOST_ERROR("byte " << offset << " ^ " << mask << " was not reported");
      walk_file(file.path(), Verification::off, Access::mapped, offset % 16 == 0);
      const Walk walk =
          walk_file(file.path(), Verification::on_first_touch, Access::mapped, offset % 16 == 0);
      if (walk.errors == 0) BOOST_ERROR("byte " << offset << " ^ " << mask << " was handed out");
      if (mask == chosen && offset % 16 == 0) check_copied(file, walk, report);
      file.flip(offset, mask);
    }
  }
}

// The names of the tensor whose payload or payload header holds a byte.
struct Owner {
  std::uint64_t begin;
  std::uint64_t end;
  std::string region;
  std::string tensor;
};

std::vector<Owner> payload_owners(const std::filesystem::path& path) {
  const Reader reader = Reader::open(path);
  std::vector<Owner> owners;
  const auto add = [&](const TensorView& tensor) {
    owners.push_back({tensor.stored_offset() - 32, tensor.stored_offset() + tensor.stored_bytes(),
                      std::string(Reader::region_name(tensor)), std::string(tensor.name())});
  };
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    for (std::uint32_t i = 0; i < reader.region(r).tensor_count(); ++i)
      add(reader.region(r).tensor(i));
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    add(reader.connection(i).weights);
    if (reader.connection(i).delays) add(*reader.connection(i).delays);
  }
  return owners;
}

bool names_tensor(const VerifyReport& report, const Owner& owner) {
  for (const Finding& finding : report.findings) {
    if (finding.section == "payload" && finding.region == owner.region &&
        finding.tensor == owner.tensor)
      return true;
  }
  return false;
}

void check_random_flips(const SaveOptions& options, int count) {
  const std::string bytes = saved(varied_sample(), options);
  DamagedFile file(bytes);
  const std::vector<Owner> owners = payload_owners(file.path());
  std::mt19937_64 random(20261121);
  int named = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint64_t offset = random() % bytes.size();
    const unsigned mask = 1u << random() % 8;
    file.flip(offset, mask);
    const VerifyReport report = verify_damaged(file.path());
    if (report.ok()) BOOST_ERROR("bit " << mask << " of byte " << offset << " was not found");
    for (const Owner& owner : owners) {
      if (offset < owner.begin || offset >= owner.end) continue;
      ++named;
      if (!names_tensor(report, owner))
        BOOST_ERROR("byte " << offset << " of " << owner.tensor << ": " << describe(report));
    }
    file.flip(offset, mask);
  }
  BOOST_TEST(named > count / 4);  // or the sample has no payload to speak of
  BOOST_TEST(verify_damaged(file.path()).ok());
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_truncation_is_refused_and_reported) {
  for (const ChecksumType checksum :
       {ChecksumType::block_tree, ChecksumType::sha256, ChecksumType::crc32}) {
    const std::string bytes = saved(small_sample(), options_with(checksum));
    DamagedFile file(bytes);
    // What checksums there are does not change how a length is read. Under sanitizers, one of the
    // three is tried with every length.
    const bool thin = kSanitized && checksum != ChecksumType::block_tree;
    for (std::size_t length = bytes.size(); length-- > 0;) {
      if (thin && length % 16 != 0) continue;
      file.truncate(length);
      BOOST_TEST_CONTEXT("length " << length) {
        BOOST_CHECK_EXCEPTION(Reader::open(file.path(), {.verification = Verification::off}),
                              FormatError, [&](const FormatError& error) {
                                return error.code() == ErrorCode::truncated &&
                                       error.context().path == file.path().string();
                              });
        BOOST_TEST(!verify_damaged(file.path()).ok());
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(every_flipped_byte_of_header_directory_and_index_is_found) {
  std::uint64_t round = 0;
  for (const ChecksumType checksum :
       {ChecksumType::block_tree, ChecksumType::sha256, ChecksumType::crc32}) {
    const EditableFile file(saved(small_sample(), options_with(checksum)));
    const format::Header& header = file.layout();
    BOOST_TEST_CONTEXT("checksum " << int(checksum)) {
      const std::string bytes = EditableFile(file).bytes();
      check_every_flip(bytes, 0, sizeof header, round);
      check_every_flip(bytes, header.directory_offset, header.file_length, round,
                       kSanitized && checksum != ChecksumType::block_tree);
    }
    ++round;
  }
}

BOOST_AUTO_TEST_CASE(random_flips_are_found_and_payloads_named) {
  check_random_flips(options_with(ChecksumType::block_tree), random_cases(10'000));
}

BOOST_AUTO_TEST_CASE(random_flips_are_found_with_every_checksum_and_codec) {
  check_random_flips(options_with(ChecksumType::sha256), random_cases(1'000));
  check_random_flips(options_with(ChecksumType::crc32), random_cases(1'000));
  SaveOptions options = steady_options();
  options.leaves = LeafAlgorithm::sha256;
  check_random_flips(options, random_cases(1'000));
  for (const Codec codec : {Codec::zstd, Codec::lz4}) {
    options = steady_options();
    options.compression.codec = codec;
    options.compression.chunk_bytes = 4096;
    check_random_flips(options, random_cases(1'000));
  }
}

BOOST_AUTO_TEST_CASE(bad_indices_of_compressed_tensors_are_reported_and_refused) {
  SampleTensor tensor = csr_tensor("s", DType::u8, {64, 64});
  tensor.payload[4 * 65] = std::byte{64};  // the first column index
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  Writer writer(folder / "f", options);
  writer.write(writer.add_tensor(writer.add_region({.name = "r"}), tensor.spec), tensor.payload);
  writer.commit();
  const TensorView view = Reader::open(folder / "f").tensor("s");
  BOOST_TEST(view.chunk_count() == 2u);
  std::vector<std::byte> out(view.dense_bytes());
  BOOST_CHECK_EXCEPTION(view.read_dense(out), FormatError,
                        says(ErrorCode::bad_value, "column_indices[0] is 64"));
  const VerifyReport report = verify_damaged(folder / "f");
  BOOST_TEST(!report.ok());
  BOOST_TEST(describe(report).find("column_indices[0] is 64") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(debris_behind_the_end_is_a_warning) {
  const std::string bytes = saved(small_sample());
  DamagedFile file(bytes + "debris");
  const VerifyReport report = verify_damaged(file.path());
  BOOST_TEST(report.ok());
  BOOST_TEST_REQUIRE(report.findings.size() == 1u);
  BOOST_TEST(bool(report.findings[0].severity == Severity::warning));
  BOOST_TEST(report.findings[0].section == "file");
  BOOST_TEST(report.findings[0].offset == bytes.size());
  BOOST_TEST(report.findings[0].length == 6u);
  BOOST_TEST(walk_file(file.path(), Verification::on_first_touch).errors == 0u);
}

BOOST_AUTO_TEST_CASE(findings_use_the_section_names_of_the_format) {
  const std::set<std::string> sections = {"header",   "commit_record", "metadata",  "region_index",
                                          "region",   "directory",     "integrity", "connectivity",
                                          "checksum", "padding",       "payload",   "file"};
  const std::string bytes = saved(varied_sample());
  DamagedFile file(bytes);
  for (std::uint64_t offset = 0; offset < bytes.size(); offset += kSanitized ? 130 : 13) {
    file.flip(offset, 0x10);
    for (const Finding& finding : verify_damaged(file.path()).findings)
      BOOST_TEST(sections.contains(finding.section), finding.section << ": " << finding.message);
    file.flip(offset, 0x10);
  }
}

BOOST_AUTO_TEST_SUITE_END()
