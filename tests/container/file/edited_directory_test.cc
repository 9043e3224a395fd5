// Directories that break a rule under checksums that hold. docs/format/format.md, "Directory".
#include <cstring>

#include "boost_test.h"
#include "container/file/edit_check.h"
#include "container/read/damage_check.h"
#include "format/directory.h"
#include "format/tensor.h"
#include "support/errors.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(edited_directory)

namespace {

constexpr std::uint64_t kAll = ~0ull;
constexpr std::uint32_t kAll32 = ~0u;

}  // namespace

BOOST_AUTO_TEST_CASE(broken_directory_headers_are_refused) {
  using D = format::DirectoryHeader;
  check_edits(varied_bytes(), Readers::refuse,
              edits_of<D>([](EditableFile& file) -> D& { return file.directory(); },
                          {{"magic", [](D& d) { d.magic[0] = 't'; }},
                           {"directory_version", [](D& d) { d.directory_version = 2; }},
                           {"region_count", [](D& d) { d.region_count = 0; }},
                           {"region_count", [](D& d) { d.region_count = kAll32; }},
                           {"tensors_offset", [](D& d) { d.tensor_count = kAll32; }},
                           {"chunks_offset", [](D& d) { d.tensor_count = d.tensor_count + 1; }},
                           {"chunks_offset", [](D& d) { d.chunk_count = kAll32; }},
                           {"names_offset", [](D& d) { d.chunk_count = 1; }},
                           {"regions_offset", [](D& d) { d.regions_offset = 136; }},
                           {"region_order_offset", [](D& d) { d.region_order_offset = kAll; }},
                           {"tensors_offset", [](D& d) { d.tensors_offset = 0; }},
                           {"chunks_offset", [](D& d) { d.chunks_offset = kAll - 7; }},
                           {"names_offset", [](D& d) { d.names_offset = kAll; }},
                           {"names_offset", [](D& d) { d.names_length = kAll; }},
                           {"side_data_offset", [](D& d) { d.names_length = 0; }},
                           {"side_data_offset", [](D& d) { d.side_data_offset = 8; }},
                           {"side_data_offset", [](D& d) { d.side_data_length = kAll; }},
                           {"side_data_offset", [](D& d) { d.side_data_length = 8; }},
                           {"zero_58", [](D& d) { d.zero_58[39] = 1; }}}));
}

BOOST_AUTO_TEST_CASE(broken_region_records_are_refused) {
  using R = format::DirectoryRegion;
  check_edits(varied_bytes(), Readers::refuse,
              edits_of<R>([](EditableFile& file) -> R& { return file.directory_region(0); },
                          {{"name_offset", [](R& r) { r.name_offset = kAll32; }},
                           {"name_offset", [](R& r) { r.name_length = 65535; }},
                           {"name_length", [](R& r) { r.name_length = 0; }},
                           {"flags", [](R& r) { r.flags = 1; }},
                           {"flags", [](R& r) { r.flags = 2; }},
                           {"first_tensor", [](R& r) { r.first_tensor = kAll32; }},
                           {"first_tensor", [](R& r) { r.tensor_count = kAll32; }}}));
}

BOOST_AUTO_TEST_CASE(inconsistent_region_records_are_reported) {
  using R = format::DirectoryRegion;
  check_edits(varied_bytes(), Readers::need_not,
              edits_of<R>([](EditableFile& file) -> R& { return file.directory_region(0); },
                          {{"logical_bytes", [](R& r) { r.logical_bytes = r.logical_bytes + 1; }},
                           {"stored_bytes", [](R& r) { r.stored_bytes = kAll; }}}));
  // The first tensor of the region belongs to none.
  check_edits(varied_bytes(), Readers::need_not,
              {{"a gap between runs", "first_tensor", [](EditableFile& file) {
                  file.directory_region(0).first_tensor = 1;
                  file.directory_region(0).tensor_count = file.directory_region(0).tensor_count - 1;
                }}});
}

BOOST_AUTO_TEST_CASE(a_region_order_that_is_none_is_refused_or_reported) {
  check_edits(varied_bytes(), Readers::refuse,
              {{"region_order beyond", "region_order",
                [](EditableFile& file) { file.region_order(2) = kAll32; }}});
  check_edits(
      varied_bytes(), Readers::need_not,
      {{"region_order twice", "region_order",
        [](EditableFile& file) { file.region_order(0) = std::uint32_t{file.region_order(1)}; }},
       {"region_order swapped", "region_order",
        [](EditableFile& file) { std::swap(file.region_order(1), file.region_order(2)); }}});
}

BOOST_AUTO_TEST_CASE(broken_tensor_entries_are_refused) {
  using T = format::TensorEntry;
  check_edits(
      varied_bytes(), Readers::refuse,
      edits_of<T>(entry_of("w_in"),
                  {{"name_offset", [](T& t) { t.name_offset = kAll32; }},
                   {"name_offset", [](T& t) { t.name_length = 65535; }},
                   {"role", [](T& t) { t.role = Role{kRoleCount}; }},
                   {"encoding", [](T& t) { t.encoding = Encoding{8}; }},
                   {"encoding", [](T& t) { t.encoding = Encoding{255}; }},
                   {"logical_length", [](T& t) { t.encoding = Encoding{1}; }},
                   {"logical_length", [](T& t) { t.encoding = Encoding{2}; }},
                   {"dtype", [](T& t) { t.dtype = DType{29}; }},
                   {"logical_length", [](T& t) { t.dtype = DType{3}; }},
                   {"ndim", [](T& t) { t.ndim = 9; }},
                   {"shape", [](T& t) { t.ndim = 1; }},
                   {"logical_length", [](T& t) { t.ndim = 3; }},
                   {"flags", [](T& t) { t.flags = 1; }},
                   {"flags", [](T& t) { t.flags = 2; }},
                   {"logical_length", [](T& t) { t.logical_length = t.logical_length + 1; }},
                   {"logical_length", [](T& t) { t.logical_length = kAll; }},
                   {"stored_offset", [](T& t) { t.stored_offset = t.stored_offset + 1; }},
                   {"stored_offset", [](T& t) { t.stored_offset = 0; }},
                   {"stored_offset", [](T& t) { t.stored_offset = kAll - 63; }},
                   {"stored_offset", [](T& t) { t.stored_length = kAll; }},
                   {"stored_length", [](T& t) { t.stored_length = t.stored_length - 1; }},
                   {"first_chunk", [](T& t) { t.first_chunk = 1; }},
                   {"first_chunk", [](T& t) { t.chunk_count = 1; }},
                   {"first_chunk", [](T& t) { t.chunk_count = kAll32; }},
                   {"nnz", [](T& t) { t.nnz = 1; }},
                   {"side_data_length", [](T& t) { t.side_data_length = 1; }},
                   {"side_data_offset", [](T& t) { t.side_data_offset = 8; }},
                   {"zero_54", [](T& t) { t.zero_54 = 1; }},
                   {"zero_98", [](T& t) { t.zero_98[7] = 1; }},
                   {"shape", [](T& t) { t.shape[0] = kAll; }},
                   {"logical_length", [](T& t) { t.shape[0] = 0; }},
                   {"shape", [](T& t) { t.shape[7] = 1; }}}));
}

BOOST_AUTO_TEST_CASE(a_payload_whose_header_leaves_its_region_is_refused) {
  const auto at_the_first_byte = [](const char* name, auto find) {
    return Edit{name, "stored_offset",
                [=](EditableFile& file) { file.tensor(name).stored_offset = find(file); }};
  };
  check_edits(varied_bytes(), Readers::refuse,
              {at_the_first_byte("w_in",
                                 [](EditableFile& file) {
                                   return std::uint64_t{file.region_index(0).data_offset};
                                 }),
               at_the_first_byte("0.weights", [](EditableFile& file) {
                 return std::uint64_t{file.header().connectivity_offset};
               })});
}

BOOST_AUTO_TEST_CASE(sums_of_regions_do_not_wrap) {
  EditableFile file(varied_bytes());
  for (std::uint32_t r = 0; r < 2; ++r) file.directory_region(r).logical_bytes = 1ull << 63;
  file.reseal();
  const DamagedFile damaged(file.bytes());
  const Reader reader = Reader::open(damaged.path(), {.verification = Verification::off});
  BOOST_CHECK_EXCEPTION(
      reader.logical_bytes(), FormatError,
      says(ErrorCode::out_of_bounds, "directory", "logical_bytes", "more than 2^64 - 1"));
}

BOOST_AUTO_TEST_CASE(broken_sparse_entries_are_refused) {
  using T = format::TensorEntry;
  const FieldEdits<T> both = {
      {"encoding", [](T& t) { t.nnz = kAll; }},
      {"logical_length", [](T& t) { t.nnz = t.nnz + 1; }},
      {"logical_length", [](T& t) { t.nnz = 0; }},
      {"encoding", [](T& t) { t.nnz = 1ull << 61; }},
      {"logical_length", [](T& t) { t.flags = t.flags ^ 1; }},
      {"encoding", [](T& t) { t.dtype = DType{21}; }},
      {"shape", [](T& t) { t.shape[0] = kAll; }},
  };
  for (const char* name : {"w_rec", "w_wide", "w_list"})
    check_edits(varied_bytes(), Readers::refuse, edits_of<T>(entry_of(name), both));
  check_edits(
      varied_bytes(), Readers::refuse,
      edits_of<T>(entry_of("w_rec"), {{"encoding",
                                       [](T& t) {
                                         t.ndim = 3;
                                         t.shape[2] = 1;
                                       }},
                                      {"encoding",
                                       [](T& t) {
                                         t.shape[0] = kAll;
                                         t.shape[1] = 0;
                                       }},
                                      {"logical_length", [](T& t) { t.shape[0] = 1ull << 40; }}}));
  check_edits(varied_bytes(), Readers::refuse,
              edits_of<T>(entry_of("w_list"), {{"encoding", [](T& t) {
                                                  t.ndim = 0;
                                                  t.shape[0] = t.shape[1] = t.shape[2] = 0;
                                                }}}));
}

BOOST_AUTO_TEST_CASE(wrong_digests_in_an_entry_are_reported) {
  using T = format::TensorEntry;
  check_edits(varied_bytes(), Readers::need_not,
              edits_of<T>(entry_of("w_in"),
                          {{"checksum", [](T& t) { t.crc32 = 0; }},
                           {"content_hash", [](T& t) { t.content_hash.bytes[15] ^= 1; }},
                           // Another type of the same width: only the payload header tells.
                           {"dtype", [](T& t) { t.dtype = DType{6}; }},
                           {"shape", [](T& t) { std::swap(t.shape[0], t.shape[1]); }}}));
}

BOOST_AUTO_TEST_CASE(bytes_that_no_entry_owns_are_reported) {
  // The name that is last gets shorter by a byte, which stays.
  check_edits(varied_bytes(), Readers::need_not,
              {{"a byte of no name", "padding", [](EditableFile& file) {
                  format::TensorEntry& last = file.tensor("layer.0.weight");
                  last.name_length = last.name_length - 1;
                }}});
}

BOOST_AUTO_TEST_CASE(names_that_break_a_rule_are_reported) {
  check_edits(
      varied_bytes(), Readers::need_not,
      {{"a tensor's name that is no UTF-8", "name",
        [](EditableFile& file) { file.names()[file.tensor("w_rec").name_offset] = '\xFF'; }},
       {"tensors out of order", "name",
        [](EditableFile& file) { file.names()[file.tensor("w_in").name_offset] = 'a'; }},
       {"two tensors of one name", "name",
        [](EditableFile& file) {
          file.tensor("trace").name_offset = std::uint32_t{file.tensor("thresholds").name_offset};
          file.tensor("trace").name_length = std::uint16_t{file.tensor("thresholds").name_length};
        }},
       {"a region's name that is no UTF-8", "name",
        [](EditableFile& file) { file.names()[file.directory_region(1).name_offset] = '\xC0'; }},
       {"a region's name with NUL", "name",
        [](EditableFile& file) { file.names()[file.directory_region(1).name_offset] = 0; }},
       {"a region of another name in the index", "region_name",
        [](EditableFile& file) { file.region_index(1).region_name[0] = 'E'; }}});
}

BOOST_AUTO_TEST_SUITE_END()
