// Payloads, chunks and texts that break a rule under checksums that hold. docs/format/format.md,
// "Payload headers", "Encodings", "Chunks" and "JSON texts".
#include <cstring>

#include "boost_test.h"
#include "container/file/edit_check.h"
#include "format/chunk.h"
#include "format/tensor.h"
#include "integrity/crc32.h"
#include "support/files.h"
#include "support/sample.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(edited_payload)

namespace {

constexpr std::uint64_t kAll = ~0ull;
constexpr std::uint32_t kAll32 = ~0u;

// An edit of a raw tensor's logical bytes, its CRC-32 and content hash made anew.
Edit payload_edit(std::string name, std::string says, std::string tensor,
                  std::function<void(EditableFile&, std::byte*)> apply) {
  return {std::move(name), std::move(says), [=](EditableFile& file) {
            apply(file, file.payload(tensor).data());
            file.reseal_tensor(tensor);
          }};
}

// Both lengths of a vector agree.
template <std::uint64_t length>
void set_length(format::TensorEntry& tensor) {
  tensor.shape[0] = tensor.logical_length = length;
}

template <typename Index>
void put(std::byte* payload, std::uint64_t i, Index index) {
  std::memcpy(payload + i * sizeof index, &index, sizeof index);
}
template <typename Index>
Index get(const std::byte* payload, std::uint64_t i) {
  Index index;
  std::memcpy(&index, payload + i * sizeof index, sizeof index);
  return index;
}

// The stored bytes of chunk 0 are "ramp"'s.
std::byte* chunk_bytes(EditableFile& file, std::uint32_t chunk) {
  return reinterpret_cast<std::byte*>(&file.bytes()[file.chunk(chunk).offset]);
}

void reseal_chunk(EditableFile& file, std::uint32_t chunk) {
  file.chunk(chunk).crc32 =
      integrity::crc32({chunk_bytes(file, chunk), file.chunk(chunk).stored_length});
}

}  // namespace

BOOST_AUTO_TEST_CASE(payload_headers_that_differ_are_reported) {
  using H = format::TensorHeader;
  for (const char* name : {"w_in", "w_rec", "w_list", "dopamine", "nothing"}) {
    check_edits(varied_bytes(), Readers::need_not,
                edits_of<H>([name](EditableFile& file) -> H& { return file.payload_header(name); },
                            {{name, [](H& h) { h.dtype = DType(format::code_of(h.dtype) ^ 1); }},
                             {name, [](H& h) { h.ndim = h.ndim + 1; }},
                             {name, [](H& h) { h.reserved = h.reserved ^ 1; }},
                             {name, [](H& h) { h.shape[2] = h.shape[2] + 1; }},
                             {name, [](H& h) { h.checksum = h.checksum ^ 1; }}}));
  }
}

BOOST_AUTO_TEST_CASE(broken_csr_indices_are_refused_by_views_and_reported) {
  // 40 rows of 40 columns, u32; entries start after 41 row pointers.
  const auto pointer = [](std::uint64_t row, std::uint32_t value) {
    return [=](EditableFile&, std::byte* p) { put(p, row, value); };
  };
  const auto column = [](std::uint64_t i, std::uint32_t value) {
    return [=](EditableFile&, std::byte* p) { put(p, 41 + i, value); };
  };
  const std::string field = "indices";
  check_edits(
      varied_bytes(), Readers::refuse,
      {payload_edit("first pointer", "row_pointers[0]", "w_rec", pointer(0, 1)),
       payload_edit("last pointer", "row_pointers[40]", "w_rec", pointer(40, kAll32)),
       payload_edit("a pointer past nnz", "row_pointers[20]", "w_rec", pointer(20, kAll32)),
       payload_edit("a pointer that decreases", "row_pointers[21]", "w_rec", pointer(21, 0)),
       payload_edit("a column beyond", "column_indices[0]", "w_rec", column(0, 40)),
       payload_edit("a column far beyond", "column_indices[7]", "w_rec", column(7, kAll32)),
       payload_edit("a column twice", "column_indices[1]", "w_rec",
                    [](EditableFile&, std::byte* p) { put(p, 42, get<std::uint32_t>(p, 41)); }),
       payload_edit("a wide pointer past nnz", "row_pointers[4]", "w_wide",
                    [](EditableFile&, std::byte* p) { put<std::uint64_t>(p, 4, kAll); }),
       payload_edit(
           "a wide column beyond", "column_indices[2]", "w_wide",
           [](EditableFile&, std::byte* p) { put<std::uint64_t>(p, 10 + 2, 1ull << 32); })});
}

BOOST_AUTO_TEST_CASE(broken_coo_indices_are_refused_by_views_and_reported) {
  const auto nnz = [](EditableFile& file) { return std::uint64_t{file.tensor("w_list").nnz}; };
  check_edits(
      varied_bytes(), Readers::refuse,
      {payload_edit("an index beyond", "dimension 0", "w_list",
                    [](EditableFile&, std::byte* p) { put(p, 0, kAll32); }),
       payload_edit("a last index beyond", "dimension 2", "w_list",
                    [=](EditableFile& file, std::byte* p) { put(p, 3 * nnz(file) - 1, 4u); }),
       payload_edit("an entry twice", "coordinates", "w_list",
                    [=](EditableFile& file, std::byte* p) {
                      for (std::uint64_t d = 0; d < 3; ++d)
                        put(p, d * nnz(file) + 1, get<std::uint32_t>(p, d * nnz(file)));
                    }),
       payload_edit("entries out of order", "row-major", "w_list",
                    [](EditableFile&, std::byte* p) { put(p, 0, 2u); })});
}

BOOST_AUTO_TEST_CASE(illegal_elements_are_reported) {
  check_edits(varied_bytes(), Readers::need_not,
              {payload_edit("a bool of 2", "bool", "mask",
                            [](EditableFile&, std::byte* p) { p[12] = std::byte{2}; }),
               payload_edit("a ternary of -2", "ternary", "signs",
                            [](EditableFile&, std::byte* p) { p[0] = std::byte{2}; }),
               payload_edit("a bit behind 43 of binary", "bits", "spikes",
                            [](EditableFile&, std::byte* p) { p[5] |= std::byte{0x08}; }),
               payload_edit("a nibble behind 7 of i4", "bits", "codes",
                            [](EditableFile&, std::byte* p) { p[3] |= std::byte{0x10}; })});
}

BOOST_AUTO_TEST_CASE(illegal_elements_of_sparse_tensors_are_reported) {
  const TemporaryFolder folder;
  save(folder / "f", {.regions = {{{.name = "r"},
                                   {csr_tensor("csr", DType::boolean, {9, 9}),
                                    coo_tensor("coo", DType::boolean, {9, 9})}}},
                      .connections = {}});
  std::vector<Edit> edits;
  for (const char* name : {"csr", "coo"})
    edits.push_back({name, "elements", [name](EditableFile& file) {
                       file.payload(name).back() = std::byte{2};
                       file.reseal_tensor(name);
                     }});
  check_edits(read_file(folder / "f"), Readers::need_not, edits);
}

BOOST_AUTO_TEST_CASE(narrow_indices_of_a_large_extent_are_refused) {
  check_edits(varied_bytes(), Readers::refuse,
              {{"a list of 2^33 rows", "flags", [](EditableFile& file) {
                  file.tensor("w_list").shape[0] = 1ull << 33;
                  file.payload_header("w_list").shape[0] = 1ull << 33;
                }}});
}

BOOST_AUTO_TEST_CASE(padding_that_is_not_zero_is_reported) {
  check_edits(
      varied_bytes(), Readers::need_not,
      {{"behind a payload", "padding",
        [](EditableFile& file) {
          const format::TensorEntry& t = file.tensor("codes");
          file.bytes()[t.stored_offset + t.stored_length] = 1;
        }},
       {"behind the metadata", "padding",
        [](EditableFile& file) { file.bytes()[256 + file.header().metadata_length] = 1; }},
       {"before the commit record", "padding",
        [](EditableFile& file) {
          file.bytes()[file.header().region_index_offset + file.header().region_index_length] = 1;
        }},
       payload_edit("in front of the values", "padding", "w_gap",
                    [](EditableFile& file, std::byte* p) {
                      const std::uint64_t end = 4 * (6 + file.tensor("w_gap").nnz);
                      BOOST_TEST_REQUIRE(end % 8 == 4u);
                      p[end] = std::byte{1};
                    })});
}

BOOST_AUTO_TEST_CASE(broken_chunk_entries_are_refused) {
  using C = format::ChunkEntry;
  check_edits(
      chunked_bytes(), Readers::refuse,
      edits_of<C>([](EditableFile& file) -> C& { return file.chunk(1); },
                  {{"offset", [](C& c) { c.offset = c.offset + 1; }},
                   {"offset", [](C& c) { c.offset = kAll; }},
                   {"offset", [](C& c) { c.offset = 0; }},
                   {"stored_length", [](C& c) { c.stored_length = 0; }},
                   {"stored_length", [](C& c) { c.stored_length = kAll32; }},
                   {"offset", [](C& c) { c.stored_length = c.stored_length - 1; }},
                   {"raw_length", [](C& c) { c.raw_length = 0; }},
                   {"raw_length", [](C& c) { c.raw_length = c.raw_length + 1; }},
                   {"raw_length", [](C& c) { c.raw_length = kAll32; }},
                   {"crc32", [](C& c) { c.crc32 = c.crc32 ^ 1; }},
                   {"codec", [](C& c) { c.codec = Codec{5}; }},
                   {"stored_length", [](C& c) { c.codec = Codec{0}; }},
                   {"plane_entropy", [](C& c) { c.codec = Codec{3}; }},
                   {"packed_exponents", [](C& c) { c.codec = Codec{4}; }},
                   {"lz4", [](C& c) { c.codec = Codec{2}; }},
                   {"filter", [](C& c) { c.filter = format::Filter{format::kFilterCount}; }},
                   {"filter", [](C& c) { c.filter = format::Filter{255}; }},
                   {"zero_16", [](C& c) { c.zero_16 = 1; }}}));
  // Any filter has an inverse for any bytes: only the tensor's CRC-32 tells that it is another.
  check_edits(chunked_bytes(), Readers::need_not,
              edits_of<C>([](EditableFile& file) -> C& { return file.chunk(1); },
                          {{"crc32", [](C& c) { c.filter = format::Filter{2}; }},
                           {"crc32", [](C& c) { c.filter = format::Filter{4}; }}}));
  using T = format::TensorEntry;
  check_edits(chunked_bytes(), Readers::refuse,
              edits_of<T>(entry_of("ramp"),
                          {{"first_chunk", [](T& t) { t.first_chunk = kAll32; }},
                           {"raw_length", [](T& t) { t.first_chunk = t.chunk_count = 1; }},
                           {"raw_length", [](T& t) { t.chunk_count = 2; }},
                           {"first_chunk", [](T& t) { t.chunk_count = kAll32; }},
                           {"stored_length", [](T& t) { t.chunk_count = 0; }},
                           {"stored_length", [](T& t) { t.stored_length = t.stored_length + 1; }},
                           {"raw_length", set_length<4096 * 3 + 1>},
                           {"stored_offset", set_length<1ull << 60>}}));
  // Nothing is decoded for a tensor without bytes.
  check_edits(chunked_bytes(), Readers::need_not,
              edits_of<T>(entry_of("ramp"), {{"raw_length", set_length<0>}}));
}

BOOST_AUTO_TEST_CASE(frames_that_do_not_decode_are_refused) {
  std::vector<Edit> edits;
  const auto damaged = [&](std::string name, std::function<void(EditableFile&)> apply) {
    edits.push_back({std::move(name), "ramp", [apply](EditableFile& file) {
                       apply(file);
                       reseal_chunk(file, 0);
                     }});
  };
  damaged("a frame of another magic",
          [](EditableFile& file) { chunk_bytes(file, 0)[0] ^= std::byte{1}; });
  // Byte 4 of a zstd frame tells how its content size is written, which follows.
  damaged("a frame without content size",
          [](EditableFile& file) { chunk_bytes(file, 0)[4] = std::byte{0}; });
  damaged("a frame of another content size",
          [](EditableFile& file) { chunk_bytes(file, 0)[5] ^= std::byte{1}; });
  damaged("a frame that is cut", [](EditableFile& file) {
    chunk_bytes(file, 0)[file.chunk(0).stored_length - 1] ^= std::byte{0xFF};
    chunk_bytes(file, 0)[8] ^= std::byte{0xFF};
  });
  check_edits(chunked_bytes(), Readers::refuse, edits);
}

BOOST_AUTO_TEST_CASE(texts_that_are_no_json_object_are_refused) {
  const auto metadata = [](std::uint64_t at, char c) {
    return [=](EditableFile& file) { file.bytes()[256 + at] = c; };
  };
  const auto config = [](std::uint64_t at, char c) {
    return
        [=](EditableFile& file) { file.bytes()[file.region_index(0).data_offset + 192 + at] = c; };
  };
  check_edits(varied_bytes(), Readers::refuse,
              {{"an array", "metadata", metadata(0, '[')},
               {"no UTF-8", "metadata", metadata(5, '\xFF')},
               {"NUL", "metadata", metadata(5, '\0')},
               {"a control character", "metadata", metadata(5, '\n')},
               {"no key", "region", config(1, ' ')},
               {"no end", "region", config(0, '"')}});
}

BOOST_AUTO_TEST_SUITE_END()
