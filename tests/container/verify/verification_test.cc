// When a reader finds a flipped byte: never, when the byte is first handed out, or at open.
#include <algorithm>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "container/verify/findings.h"
#include "support/bytes.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/reader.h"
#include "thalia/stream.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(verification)

namespace {

// Tensors of two blocks each, so that damage to one leaves the other's blocks whole.
Sample two_tensors() {
  return {.regions = {{{.name = "r"},
                       {dense_tensor("whole", DType::u8, {16, 1024}),
                        dense_tensor("damaged", DType::u8, {16, 1024})}}},
          .connections = {}};
}

std::string saved_with(ChecksumType checksum) {
  SaveOptions options = steady_options();
  options.checksum = checksum;
  return saved(two_tensors(), options);
}

Reader open(const DamagedFile& file, Verification verification) {
  return Reader::open(file.path(), {.verification = verification});
}

// In blocks of 64 KiB the first three share one, and the directory lies in a later one.
Sample sharing_a_block() {
  return {.regions = {{{.name = "r"},
                       {dense_tensor("damaged", DType::u8, {16, 1024}),
                        dense_tensor("sound", DType::u8, {16, 1024}),
                        csr_tensor("sparse", DType::f32, {20, 30}),
                        dense_tensor("filler", DType::f32, {16, 4096})}}},
          .connections = {}};
}

std::string damaged_beside_sound(const Sample& sample, bool compressed, LeafAlgorithm leaves) {
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.block_log2 = 16;
  options.leaves = leaves;
  if (compressed) options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  save(folder / "f", sample, options);
  std::string bytes = read_file(folder / "f");
  bytes.at(Reader::open(folder / "f").tensor("damaged").stored_offset() + 100) ^= 0x04;
  return bytes;
}

const auto kDamaged = says(ErrorCode::checksum_mismatch, "damaged", "'r'");

}  // namespace

BOOST_AUTO_TEST_CASE(damage_is_found_when_the_mode_says_so) {
  for (const ChecksumType checksum :
       {ChecksumType::sha256, ChecksumType::crc32, ChecksumType::block_tree}) {
    BOOST_TEST_CONTEXT("checksum " << int(checksum)) {
      DamagedFile file(saved_with(checksum));
      const std::uint64_t at =
          open(file, Verification::off).tensor("damaged").stored_offset() + 8192;
      file.flip(at, 0x04);

      const Reader off = open(file, Verification::off);
      BOOST_TEST(off.tensor("damaged").bytes().size() == 16'384u);
      BOOST_TEST(off.tensor("whole").bytes().size() == 16'384u);
      BOOST_CHECK_EXCEPTION(off.verify_all(), IntegrityError,
                            says(ErrorCode::checksum_mismatch, file.path().string()));

      const Reader touch = open(file, Verification::on_first_touch);
      BOOST_TEST(touch.tensor("whole").bytes().size() == 16'384u);
      const TensorView damaged = touch.tensor("damaged");
      for (int round = 0; round < 2; ++round) {  // a bad block is never taken for a checked one
        BOOST_CHECK_EXCEPTION(damaged.bytes(), IntegrityError, kDamaged);
        BOOST_CHECK_EXCEPTION(damaged.rows(8, 9), IntegrityError, kDamaged);
        std::vector<std::byte> out(16'384);
        BOOST_CHECK_EXCEPTION(damaged.read(out), IntegrityError, kDamaged);
      }
      BOOST_CHECK_EXCEPTION(touch.verify_all(), IntegrityError,
                            has_code(ErrorCode::checksum_mismatch));

      BOOST_CHECK_EXCEPTION(open(file, Verification::at_open), IntegrityError,
                            says(ErrorCode::checksum_mismatch, file.path().string()));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_block_tree_verifies_only_the_rows_that_are_asked_for) {
  DamagedFile file(saved_with(ChecksumType::block_tree));
  const std::uint64_t at = open(file, Verification::off).tensor("damaged").stored_offset() + 8192;
  file.flip(at, 0x04);
  const Reader reader = open(file, Verification::on_first_touch);
  const TensorView damaged = reader.tensor("damaged");
  BOOST_TEST(damaged.rows(0, 3).size() == 3'072u);
  BOOST_TEST(damaged.rows(13, 16).size() == 3'072u);
  BOOST_CHECK_EXCEPTION(damaged.rows(8, 9), IntegrityError, kDamaged);
  std::vector<std::byte> out(1024);
  const SliceRange first[] = {{0, 1}, {0, 1024}};
  damaged.read_slice(first, out);
  const SliceRange eighth[] = {{8, 9}, {0, 1024}};
  BOOST_CHECK_EXCEPTION(damaged.read_slice(eighth, out), IntegrityError, kDamaged);
}

BOOST_AUTO_TEST_CASE(a_sound_tensor_in_a_damaged_block_is_handed_out) {
  for (const bool compressed : {false, true}) {
    BOOST_TEST_CONTEXT("compressed " << compressed) {
      const Sample sample = sharing_a_block();
      const DamagedFile file(damaged_beside_sound(sample, compressed, LeafAlgorithm::xxh3_128));
      for (const Access access : {Access::mapped, Access::copied}) {
        const Reader reader = Reader::open(file.path(), {.input = {.access = access}});
        std::vector<std::byte> out(16'384);
        for (int round = 0; round < 2; ++round) {
          reader.tensor("sound").read(out);
          BOOST_TEST(same_bytes(out, sample.regions[0].tensors[1].payload));
          std::vector<std::byte> dense(20 * 30 * 4);
          reader.tensor("sparse").read_dense(dense);
          BOOST_TEST((dense == densified(sample.regions[0].tensors[2])));
          if (!compressed) {
            const ByteSpan view = reader.tensor("sound").bytes();
            BOOST_TEST(same_bytes(view, out));
            BOOST_TEST(reader.tensor("sound").rows(3, 5).size() == 2048u);
            BOOST_CHECK_EXCEPTION(reader.tensor("damaged").bytes(), IntegrityError, kDamaged);
          }
          BOOST_CHECK_EXCEPTION(reader.tensor("damaged").read(out), IntegrityError, kDamaged);
        }
        BOOST_CHECK_EXCEPTION(reader.verify_all(), IntegrityError,
                              says(ErrorCode::checksum_mismatch, file.path().string()));
      }
      BOOST_TEST(!verify(file.path()).ok());
    }
  }
}

// Who can forge a content hash must not get past leaves of SHA-256.
BOOST_AUTO_TEST_CASE(leaves_of_sha256_have_the_last_word) {
  for (const bool compressed : {false, true}) {
    const DamagedFile file(
        damaged_beside_sound(sharing_a_block(), compressed, LeafAlgorithm::sha256));
    const TensorView sound = open(file, Verification::on_first_touch).tensor("sound");
    std::vector<std::byte> out(16'384);
    BOOST_CHECK_EXCEPTION(sound.read(out), IntegrityError, has_code(ErrorCode::checksum_mismatch));
    if (!compressed) BOOST_CHECK_THROW(sound.bytes(), IntegrityError);
  }
}

// One block holds the whole file, tables and all.
BOOST_AUTO_TEST_CASE(sound_tensors_of_a_damaged_small_file_are_had_where_asked_for) {
  for (const bool compressed : {false, true}) {
    const Sample sample = two_tensors();
    SaveOptions options = steady_options();
    options.block_log2 = 20;
    if (compressed) options.compression.codec = Codec::zstd;
    const TemporaryFolder folder;
    save(folder / "f", sample, options);
    DamagedFile file(read_file(folder / "f"));
    file.flip(open(file, Verification::off).tensor("damaged").stored_offset() + 100, 0x04);
    BOOST_CHECK_EXCEPTION(open(file, Verification::on_first_touch).tensor("whole"), IntegrityError,
                          says(ErrorCode::checksum_mismatch, file.path().string()));
    for (const Access access : {Access::mapped, Access::copied}) {
      const Reader reader = Reader::open(
          file.path(), {.input = {.access = access}, .verification = Verification::by_tensor});
      std::vector<std::byte> out(16'384);
      reader.tensor("whole").read(out);
      BOOST_TEST(same_bytes(out, sample.regions[0].tensors[0].payload));
      BOOST_CHECK_EXCEPTION(reader.tensor("damaged").read(out), IntegrityError, kDamaged);
      const TensorView whole = reader.tensor("whole");
      std::size_t streamed = 0;
      for (const StreamedTensor& tensor : StreamReader(reader, {&whole, 1}))
        streamed += tensor.bytes.size();
      BOOST_TEST(streamed == 16'384u);
      BOOST_CHECK_EXCEPTION(reader.verify_all(), IntegrityError,
                            says(ErrorCode::checksum_mismatch, file.path().string()));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_damaged_directory_is_found_at_the_entry) {
  DamagedFile file(saved_with(ChecksumType::block_tree));
  EditableFile layout(read_file(file.path()));
  const std::uint64_t entry = static_cast<std::uint64_t>(
      reinterpret_cast<char*>(&layout.tensor("damaged").content_hash) - layout.bytes().data());
  file.flip(entry, 1);
  BOOST_CHECK_EXCEPTION(open(file, Verification::on_first_touch).tensor("damaged"), IntegrityError,
                        says(ErrorCode::checksum_mismatch, file.path().string()));
  open(file, Verification::off).tensor("damaged");
}

BOOST_AUTO_TEST_CASE(a_damaged_integrity_table_or_checksum_is_found_at_the_first_touch) {
  const std::string bytes = saved_with(ChecksumType::block_tree);
  for (const std::uint64_t from_end : {1u, 32u, 33u, 48u}) {
    DamagedFile file(bytes);
    file.flip(bytes.size() - from_end, 0x80);
    BOOST_CHECK_EXCEPTION(open(file, Verification::on_first_touch).tensor("whole"), IntegrityError,
                          says(ErrorCode::checksum_mismatch, "closing checksum"));
    BOOST_CHECK_EXCEPTION(open(file, Verification::at_open), IntegrityError,
                          has_code(ErrorCode::checksum_mismatch));
    open(file, Verification::off).tensor("whole").bytes();
  }
}

BOOST_AUTO_TEST_CASE(bytes_without_a_checksum_are_checked_against_their_entry) {
  DamagedFile file(saved_with(ChecksumType::none));
  const std::uint64_t at = open(file, Verification::off).tensor("damaged").stored_offset();
  file.flip(at, 0x04);
  open(file, Verification::at_open);  // there is nothing that could tell
  BOOST_CHECK_EXCEPTION(open(file, Verification::on_first_touch).tensor("damaged").bytes(),
                        IntegrityError, kDamaged);
  const VerifyReport report = verify_damaged(file.path());
  BOOST_TEST_REQUIRE(report.findings.size() == 1u);
  BOOST_TEST(report.findings[0].tensor == "damaged");
}

BOOST_AUTO_TEST_CASE(quick_verification_reads_no_payload) {
  DamagedFile file(saved_with(ChecksumType::block_tree));
  file.flip(open(file, Verification::off).tensor("damaged").stored_offset(), 0x04);
  VerifyOptions options;
  options.quick = true;
  const VerifyReport quick = verify(file.path(), options);
  BOOST_TEST(quick.ok());
  BOOST_TEST(quick.bytes_checked < 4096u);
  BOOST_TEST(!verify_damaged(file.path()).ok());
}

BOOST_AUTO_TEST_CASE(findings_beyond_the_most_are_counted) {
  const std::string bytes = saved_with(ChecksumType::block_tree);
  DamagedFile file(bytes);
  for (std::uint64_t at = 600; at < 30'000; at += 1000) file.flip(at, 1);
  const VerifyReport all = verify_damaged(file.path());
  BOOST_TEST_REQUIRE(all.findings.size() >= 2u);
  VerifyOptions options;
  options.max_findings = 1;
  const VerifyReport one = verify(file.path(), options);
  BOOST_TEST(one.findings.size() == 1u);
  BOOST_TEST(one.suppressed == all.findings.size() - 1);
  BOOST_TEST(!one.ok());
  options.max_findings = 0;
  BOOST_TEST(!verify(file.path(), options).ok());
}

BOOST_AUTO_TEST_CASE(warnings_beyond_the_most_are_no_errors) {
  EditableFile file(saved_with(ChecksumType::block_tree));
  file.header().minor_version = 1;
  file.header().compatible_features = 1u << 4;
  file.reseal();
  const DamagedFile odd(file.bytes() + "debris");
  for (const std::uint64_t most : {0u, 1u, 3u}) {
    VerifyOptions options;
    options.max_findings = most;
    const VerifyReport report = verify(odd.path(), options);
    BOOST_TEST(report.findings.size() == most);
    BOOST_TEST(report.suppressed == 3 - most);
    BOOST_TEST(report.suppressed_errors == 0u);
    BOOST_TEST(report.ok());
  }
}

BOOST_AUTO_TEST_CASE(a_finding_beyond_the_most_is_counted_once) {
  container::Findings findings(1);
  for (const std::uint64_t offset : {0u, 64u, 64u, 0u, 128u, 64u})
    findings.add({.offset = offset, .message = "m"});
  const VerifyReport report = std::move(findings).finish();
  BOOST_TEST(report.findings.size() == 1u);
  BOOST_TEST(report.suppressed == 2u);
  BOOST_TEST(report.suppressed_errors == 2u);
}

BOOST_AUTO_TEST_SUITE_END()
