// Headers that break a rule under a CRC that holds. docs/format/format.md, "Header" and
// "Directory".
#include "boost_test.h"
#include "container/file/edit_check.h"
#include "container/read/damage_check.h"
#include "format/header.h"
#include "support/errors.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(edited_header)

namespace {

constexpr std::uint64_t kAll = ~0ull;

using Apply = void (*)(format::Header&);

std::vector<Edit> header_edits(const FieldEdits<format::Header>& fields) {
  return edits_of<format::Header>(&EditableFile::header, fields);
}

ErrorCode code_of_open(const std::string& bytes, Apply apply) {
  EditableFile file(bytes);
  apply(file.header());
  file.reseal();
  const DamagedFile damaged(file.bytes());
  try {
    Reader::open(damaged.path());
  } catch (const Error& error) {
    BOOST_TEST(error.context().section == "header");
    BOOST_TEST(error.context().path == damaged.path().string());
    return error.code();
  }
  return ErrorCode::wrong_state;
}

}  // namespace

BOOST_AUTO_TEST_CASE(broken_fields_are_refused) {
  using H = format::Header;
  check_edits(
      varied_bytes(), Readers::refuse,
      header_edits({
          {"magic", [](H& h) { h.magic[3] = 'X'; }},
          {"major_version", [](H& h) { h.major_version = 2; }},
          {"major_version", [](H& h) { h.major_version = 0; }},
          {"flags", [](H& h) { h.flags = 1 << 7; }},
          {"flags", [](H& h) { h.flags = 1 << 15; }},
          {"incompatible_features", [](H& h) { h.incompatible_features = 1; }},
          {"incompatible_features", [](H& h) { h.incompatible_features = 1u << 31; }},
          {"zero_d2", [](H& h) { h.zero_d2[1] = 1; }},
          {"zero_dc", [](H& h) { h.zero_dc[35] = 1; }},
          {"generation", [](H& h) { h.generation = 0; }},
          {"checksum_type", [](H& h) { h.checksum_type = ChecksumType{4}; }},
          {"integrity_block_log2", [](H& h) { h.checksum_type = ChecksumType{1}; }},
          {"integrity_block_log2", [](H& h) { h.integrity_block_log2 = 11; }},
          {"integrity_block_log2", [](H& h) { h.integrity_block_log2 = 31; }},
          {"integrity_block_log2", [](H& h) { h.integrity_block_log2 = 255; }},
          {"leaf_algorithm", [](H& h) { h.leaf_algorithm = LeafAlgorithm{0}; }},
          {"leaf_algorithm", [](H& h) { h.leaf_algorithm = LeafAlgorithm{3}; }},
          {"integrity_length", [](H& h) { h.leaf_algorithm = LeafAlgorithm{2}; }},
          {"file_length", [](H& h) { h.file_length = h.file_length + 1; }},
          {"integrity_offset", [](H& h) { h.file_length = h.file_length - 1; }},
          {"file_length", [](H& h) { h.file_length = 0; }},
          {"file_length", [](H& h) { h.file_length = kAll; }},
          {"integrity_offset", [](H& h) { h.integrity_offset = h.integrity_offset + 64; }},
          {"integrity_offset", [](H& h) { h.integrity_offset = 0; }},
          {"integrity_offset", [](H& h) { h.integrity_offset = kAll; }},
          {"integrity_offset", [](H& h) { h.integrity_length = kAll; }},
          {"metadata_offset", [](H& h) { h.metadata_offset = 257; }},
          {"metadata_offset", [](H& h) { h.metadata_offset = 0; }},
          {"metadata_offset", [](H& h) { h.metadata_offset = kAll - 63; }},
          {"metadata_offset", [](H& h) { h.metadata_length = kAll; }},
          {"metadata_offset", [](H& h) { h.metadata_length = 1 << 20; }},
          {"metadata_offset", [](H& h) { h.metadata_length = 0; }},
          {"connectivity_offset", [](H& h) { h.connectivity_length = 0; }},
          {"region_index_length", [](H& h) { h.region_index_length = 0; }},
          {"region_index_length", [](H& h) { h.num_regions = 0; }},
          {"region_index_length", [](H& h) { h.num_regions = 0xFFFFFFFE; }},
          {"num_regions", [](H& h) { h.num_regions = 0xFFFFFFFF; }},
          {"region_index_offset", [](H& h) { h.region_index_offset = 256; }},
          {"region_index_offset", [](H& h) { h.region_index_offset = kAll - 63; }},
          {"connectivity_offset", [](H& h) { h.connectivity_offset = h.connectivity_offset + 1; }},
          {"connectivity_offset", [](H& h) { h.connectivity_length = kAll; }},
          {"directory_offset", [](H& h) { h.directory_offset = 0; }},
          {"directory_offset", [](H& h) { h.directory_offset = kAll - 63; }},
          {"directory_offset", [](H& h) { h.directory_length = kAll; }},
          {"integrity_offset",
           [](H& h) {
             h.region_index_offset = 0;
             h.region_index_length = 0;
             h.num_regions = 0;
           }},
      }));
}

BOOST_AUTO_TEST_CASE(a_directory_shorter_than_its_header_is_refused) {
  check_edits(varied_bytes(), Readers::refuse,
              {{"directory_length 127", "directory",
                [](EditableFile& file) { file.header().directory_length = 127; }},
               {"connectivity_length 31", "connectivity",
                [](EditableFile& file) { file.header().connectivity_length = 31; }}});
}

BOOST_AUTO_TEST_CASE(errors_of_open_have_their_codes) {
  using H = format::Header;
  const std::string& bytes = varied_bytes();
  const auto code = [&](Apply apply) { return code_of_open(bytes, apply); };
  BOOST_TEST(bool(code([](H& h) { h.magic[0] = 0; }) == ErrorCode::bad_magic));
  BOOST_TEST(bool(code([](H& h) { h.major_version = 9; }) == ErrorCode::unsupported_version));
  BOOST_TEST(
      bool(code([](H& h) { h.incompatible_features = 2; }) == ErrorCode::unsupported_feature));
  BOOST_TEST(bool(code([](H& h) { h.flags = 0x80; }) == ErrorCode::bad_value));
  BOOST_TEST(bool(code([](H& h) { h.file_length = h.file_length + 64; }) == ErrorCode::truncated));
  BOOST_TEST(bool(code([](H& h) { h.num_regions = 1u << 25; }) == ErrorCode::bad_value));
  BOOST_TEST(bool(code([](H& h) { h.metadata_length = kAll; }) == ErrorCode::out_of_bounds));

  EditableFile file(bytes);
  file.header().training_steps = 5;
  const DamagedFile unsealed(file.bytes());
  BOOST_CHECK_EXCEPTION(Reader::open(unsealed.path()), IntegrityError,
                        says(ErrorCode::checksum_mismatch, "header.header_crc32"));
}

// What the file has room for, and the limits have not.
BOOST_AUTO_TEST_CASE(what_is_beyond_a_limit_is_refused_as_that) {
  const DamagedFile file(varied_bytes());
  const auto check = [&](const ReadLimits& limits, const std::string& name) {
    BOOST_CHECK_EXCEPTION(Reader::open(file.path(), {.input = {.limits = limits}}), FormatError,
                          says(ErrorCode::limit_exceeded, name));
  };
  const Reader reader = Reader::open(file.path());
  check({.max_file_bytes = varied_bytes().size() - 1}, "max_file_bytes");
  check({.max_regions = reader.region_count() - 1}, "max_regions");
  check({.max_tensors = 1}, "max_tensors");
  check({.max_json_bytes = 1}, "max_json_bytes");
}

BOOST_AUTO_TEST_CASE(wrong_totals_are_reported) {
  using H = format::Header;
  check_edits(varied_bytes(), Readers::need_not,
              header_edits({
                  {"total_neurons", [](H& h) { h.total_neurons = h.total_neurons + 1; }},
                  {"total_neurons", [](H& h) { h.total_neurons = 0; }},
                  {"total_synapses", [](H& h) { h.total_synapses = h.total_synapses - 1; }},
              }));
}

BOOST_AUTO_TEST_CASE(flags_that_contradict_the_directory_are_reported) {
  std::vector<Edit> edits;
  for (unsigned bit = 0; bit < 6; ++bit) {
    edits.push_back({"flags, bit " + std::to_string(bit), "flags", [bit](EditableFile& file) {
                       format::Header& h = file.header();
                       h.flags = static_cast<std::uint16_t>(h.flags ^ (1u << bit));
                     }});
  }
  check_edits(varied_bytes(), Readers::need_not, edits);
  check_edits(chunked_bytes(), Readers::need_not, edits);
}

BOOST_AUTO_TEST_CASE(a_commit_record_that_differs_is_reported) {
  EditableFile file(varied_bytes());
  file.reseal();
  BOOST_TEST(bool(file.bytes() == varied_bytes()));
  file.commit_record().training_steps = 5;
  const DamagedFile damaged(file.bytes());
  const VerifyReport report = verify_damaged(damaged.path());
  BOOST_TEST(!report.ok());
  BOOST_TEST(describe(report).find("commit record") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_a_newer_minor_version_may_change_is_a_warning) {
  EditableFile file(varied_bytes());
  file.header().minor_version = 1;
  file.header().patch_version = 77;
  file.header().compatible_features = 1u << 4;
  file.reseal();
  const DamagedFile newer(file.bytes());
  BOOST_TEST(walk_file(newer.path(), Verification::on_first_touch).errors == 0u);
  const VerifyReport report = verify_damaged(newer.path());
  BOOST_TEST(report.ok());
  BOOST_TEST_REQUIRE(report.findings.size() == 2u, describe(report));
  for (const Finding& finding : report.findings) {
    BOOST_TEST(bool(finding.severity == Severity::warning));
    BOOST_TEST(finding.section == "header");
  }
}

BOOST_AUTO_TEST_SUITE_END()
