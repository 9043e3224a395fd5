#include "format/validate_header.h"

#include <algorithm>

#include "boost_test.h"
#include "format/constants.h"
#include "format/header.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::format;

BOOST_AUTO_TEST_SUITE(validate_header_)

namespace {

// Metadata at 256, connections at 320, one region at 512, the tables from 768 on.
Header sound_header() {
  Header header{};
  std::copy(std::begin(kMagic), std::end(kMagic), header.magic);
  header.major_version = kMajorVersion;
  header.generation = 1;
  header.metadata_offset = 256;
  header.metadata_length = 64;
  header.connectivity_offset = 320;
  header.connectivity_length = 128;
  header.num_regions = 1;
  header.directory_offset = 768;
  header.directory_length = 200;
  header.region_index_offset = 1024;
  header.region_index_length = 48;
  header.integrity_offset = 1088 + 256;
  header.file_length = header.integrity_offset + 32;
  return header;
}

std::string refused_field(const Header& header) {
  try {
    validate_header(header, header.file_length, {});
  } catch (const Error& error) {
    return error.context().field;
  }
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(sound_header_passes) {
  BOOST_TEST(refused_field(sound_header()) == "");
}

BOOST_AUTO_TEST_CASE(metadata_and_connectivity_come_in_either_order) {
  Header header = sound_header();
  header.metadata_offset = 448;
  BOOST_TEST(refused_field(header) == "");
}

BOOST_AUTO_TEST_CASE(metadata_and_connectivity_do_not_overlap) {
  Header header = sound_header();
  header.metadata_length = 65;
  BOOST_TEST(refused_field(header) == "connectivity_offset");
}

BOOST_AUTO_TEST_CASE(data_sections_lie_before_the_directory) {
  Header header = sound_header();
  header.metadata_offset = 704;
  header.metadata_length = 65;
  BOOST_TEST(refused_field(header) == "metadata_offset");
  header = sound_header();
  header.connectivity_length = 449;
  BOOST_TEST(refused_field(header) == "connectivity_offset");
  header.connectivity_length = UINT64_MAX - 300;
  BOOST_TEST(refused_field(header) == "connectivity_offset");
}

BOOST_AUTO_TEST_CASE(absent_sections_have_offset_and_length_zero) {
  Header header = sound_header();
  header.metadata_offset = 0;
  header.metadata_length = 0;
  header.connectivity_offset = 0;
  header.connectivity_length = 0;
  BOOST_TEST(refused_field(header) == "");
  header.connectivity_length = 128;
  BOOST_TEST(refused_field(header) == "connectivity_offset");
}

BOOST_AUTO_TEST_CASE(region_index_follows_the_directory) {
  Header header = sound_header();
  header.region_index_offset = 960;
  BOOST_TEST(refused_field(header) == "region_index_offset");
  header = sound_header();
  header.num_regions = 2;
  BOOST_TEST(refused_field(header) == "region_index_length");
}

BOOST_AUTO_TEST_CASE(commit_record_is_directly_behind_the_region_index) {
  Header header = sound_header();
  header.integrity_offset = header.integrity_offset + 64;
  header.file_length = header.file_length + 64;
  BOOST_TEST(refused_field(header) == "integrity_offset");
}

BOOST_AUTO_TEST_SUITE_END()
