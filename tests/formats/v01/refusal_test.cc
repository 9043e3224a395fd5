// What is refused of 0.1 files, what is read with a warning, and what no document can be written
// as.
#include <algorithm>
#include <cstring>
#include <functional>
#include <string>

#include "boost_test.h"
#include "format/v01.h"
#include "formats/v01/files.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/v01.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(v01_refusal)

namespace {

using format::V01RegionEntry;

// The sample as a file, edited and sealed anew.
std::string edited(
    const std::function<void(std::string&, format::V01FileHeader&, V01RegionEntry*)>& edit) {
  std::string file = v01_text(encode_v01(v01_sample()));
  auto& header = *reinterpret_cast<format::V01FileHeader*>(file.data());
  auto* index = reinterpret_cast<V01RegionEntry*>(file.data() + header.region_index_offset);
  edit(file, header, index);
  finalize_v01(file);
  return file;
}

std::string edited_header(const std::function<void(format::V01FileHeader&)>& edit) {
  return edited(
      [&](std::string&, format::V01FileHeader& header, V01RegionEntry*) { edit(header); });
}

std::string edited_entry(const std::function<void(V01RegionEntry&)>& edit) {
  return edited(
      [&](std::string&, format::V01FileHeader&, V01RegionEntry* index) { edit(index[1]); });
}

template <typename E, typename... Parts>
void refuses(const std::string& file, ErrorCode code, Parts... parts) {
  BOOST_CHECK_EXCEPTION(decode_v01(bytes_of(file)), E, says(code, parts...));
}

template <typename... Parts>
void refuses(const std::string& file, ErrorCode code, Parts... parts) {
  refuses<FormatError>(file, code, parts...);
}

// A region with one tensor of these words, before its text.
std::string tensor_file(const std::string& tensor) {
  return v01_file_of("{}", R"({"a":[{"_type":"tensor","_offset":258}]})", tensor);
}

std::string words(std::initializer_list<std::uint32_t> values) {
  std::string text;
  for (const std::uint32_t value : values)
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
  return text;
}

bool any_contains(const std::vector<std::string>& sentences, std::string_view part) {
  return std::ranges::any_of(sentences, [&](const std::string& sentence) {
    return sentence.find(part) != std::string::npos;
  });
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_negative_file_is_refused) {
  const auto files = v01_negatives();
  BOOST_TEST(!files.empty());
  for (const auto& path : files) {
    BOOST_TEST_CONTEXT(path) {
      BOOST_CHECK_EXCEPTION(read_v01(path), Error, [&](const Error& error) {
        const ErrorContext& context = error.context();
        return context.path == path.string() && !context.section.empty() &&
               !context.value.empty() && !context.bound.empty();
      });
    }
  }
}

BOOST_AUTO_TEST_CASE(a_region_index_that_the_original_takes_for_empty_is_refused) {
  BOOST_CHECK_EXCEPTION(read_v01(v01_data("neg_index_offset_oob.thalia")), FormatError,
                        says(ErrorCode::out_of_bounds, "neg_index_offset_oob.thalia",
                             "header.region_index_offset", "1000000000000", "3287"));
}

BOOST_AUTO_TEST_CASE(header_fields_are_checked) {
  refuses(edited_header([](format::V01FileHeader& h) { h.magic[0] = 'F'; }), ErrorCode::bad_magic,
          "header.magic", "FHAL");
  refuses<UnsupportedError>(edited_header([](format::V01FileHeader& h) { h.major_version = 1; }),
                            ErrorCode::unsupported_version, "major_version", "got 1");
  refuses(edited_header([](format::V01FileHeader& h) { h.checksum_type = 2; }),
          ErrorCode::bad_value, "checksum_type", "got 2", "0 or 1");
  refuses(edited_header([](format::V01FileHeader& h) { h.num_regions = 0; }), ErrorCode::bad_value,
          "num_regions");
  refuses(edited_header([](format::V01FileHeader& h) { h.num_regions = 4; }),
          ErrorCode::inconsistent, "num_regions", "got 4", "3, the entries");
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{255}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    refuses(edited_header([&](format::V01FileHeader& h) { h.metadata_offset = offset; }),
            ErrorCode::out_of_bounds, "metadata_offset", std::to_string(offset).c_str());
    refuses(edited_header([&](format::V01FileHeader& h) { h.region_index_offset = offset; }),
            ErrorCode::out_of_bounds, "region_index_offset", std::to_string(offset).c_str());
  }
  for (const std::uint64_t length : {std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    refuses(edited_header([&](format::V01FileHeader& h) { h.metadata_length = length; }),
            ErrorCode::out_of_bounds, std::to_string(length).c_str());
    refuses(edited_header([&](format::V01FileHeader& h) { h.region_index_length = length; }),
            ErrorCode::out_of_bounds, std::to_string(length).c_str());
  }
  // The checksum is no part of the body.
  refuses(edited_header(
              [](format::V01FileHeader& h) { h.region_index_offset = h.region_index_offset + 1; }),
          ErrorCode::out_of_bounds, "region_index_offset");
}

BOOST_AUTO_TEST_CASE(index_entries_are_checked) {
  for (const std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    refuses(edited_entry([&](V01RegionEntry& e) { e.data_offset = offset; }),
            ErrorCode::out_of_bounds, "region 'striatum'", "data_offset");
  }
  refuses(edited_entry([](V01RegionEntry& e) { e.data_length = ~std::uint64_t{0}; }),
          ErrorCode::out_of_bounds, "region 'striatum'");
  refuses(edited_entry([](V01RegionEntry& e) { e.name[2] = 0xFF; }), ErrorCode::bad_name, "UTF-8");
  for (const std::size_t at : {30u, 31u})
    refuses(edited_entry([&](V01RegionEntry& e) { e.name[at] = 'x'; }), ErrorCode::bad_name, "NUL");
  refuses(edited_entry([](V01RegionEntry& e) { e.data_length = e.data_length - 1; }),
          ErrorCode::bad_json, "striatum");
}

BOOST_AUTO_TEST_CASE(checksum_is_verified_whatever_its_type) {
  for (const std::uint32_t type : {0u, 1u}) {
    std::string file = edited_header([&](format::V01FileHeader& h) { h.checksum_type = type; });
    file[300] = static_cast<char>(file[300] ^ 1);
    refuses<IntegrityError>(file, ErrorCode::checksum_mismatch, "checksum.sha256");
  }
}

BOOST_AUTO_TEST_CASE(warns_of_what_it_reads_all_the_same) {
  const auto warned = [](const std::string& file, std::string_view part) {
    const V01File read = decode_v01(bytes_of(file));
    BOOST_TEST(any_contains(read.warnings, part), "no warning with '" << part << "'");
    return read;
  };
  warned(edited_header([](format::V01FileHeader& h) { h.minor_version = 9; }), "0.9.0");
  warned(edited_header([](format::V01FileHeader& h) { h.minor_version = 0; }), "0.0.0");
  warned(edited_header([](format::V01FileHeader& h) { h.patch_version = 3; }), "0.1.3");
  warned(edited_header([](format::V01FileHeader& h) { h.checksum_type = 0; }), "checksum type 0");
  warned(edited_header([](format::V01FileHeader& h) { h.flags = 0x7F; }), "flags 0x007f");
  warned(edited_header([](format::V01FileHeader& h) { h.reserved[155] = 1; }), "reserved bytes");
  warned(edited_header([](format::V01FileHeader& h) { h.connectivity_length = 1; }),
         "connectivity");
  warned(v01_file_of(R"({"thalia_version":"0.3.0"})", "{}"), "version 0.3.0");
  warned(v01_file_of("{}", R"({"t":{"_type":"tensor","_offset":258,"_bytes":9}})",
                     words({0, 0, 0, 0})),
         "16 bytes, not 9");
  std::string longer = v01_text(encode_v01(v01_sample()));
  longer.insert(longer.size() - 32, 7, 'x');
  auto& header = *reinterpret_cast<format::V01FileHeader*>(longer.data());
  header.region_index_length = header.region_index_length + 7;
  finalize_v01(longer);
  BOOST_TEST(warned(longer, "7 bytes after").document.entries.size() == 3u);
}

BOOST_AUTO_TEST_CASE(a_name_cut_inside_a_character_loses_its_beginning) {
  const std::string name = std::string(30, 'n') + "\xC3";
  const std::string file =
      edited_entry([&](V01RegionEntry& e) { std::memcpy(e.name, name.data(), name.size()); });
  const V01File read = decode_v01(bytes_of(file));
  BOOST_TEST(read.document.entries[1].name == std::string(30, 'n'));
  BOOST_TEST(any_contains(read.warnings, "cut inside a character"));
}

BOOST_AUTO_TEST_CASE(tensors_are_checked) {
  const auto dense = words({0, 0, 1, 2, 0, 0});
  BOOST_TEST(decode_v01(bytes_of(tensor_file(dense))).warnings.size() == 1u);
  refuses(tensor_file(words({2, 0, 1, 2, 0, 0})), ErrorCode::bad_value, "region 'r'",
          "tensor 'a[0]'", "encoding", "got 2");
  refuses(tensor_file(words({0, 6, 1, 2, 0, 0})), ErrorCode::bad_value, "dtype", "got 6", "0 to 5");
  refuses(tensor_file(words({0, 0, 9, 1, 1, 1})), ErrorCode::bad_value, "ndim", "got 9");
  refuses(tensor_file(words({0, 0, ~0u, 1, 1, 1})), ErrorCode::bad_value, "ndim");
  refuses(tensor_file(words({0, 0, 1, 500})), ErrorCode::out_of_bounds, "elements", "2000 bytes");
  refuses(tensor_file(words({0, 1, 3, ~0u, ~0u, ~0u})), ErrorCode::out_of_bounds, "shape");
  refuses(tensor_file(words({1, 0, 0, 0, 0})), ErrorCode::bad_value, "ndim", "sparse_coo");
  refuses(tensor_file(words({1, 0, 1, 5, 6, 0})), ErrorCode::bad_value, "nnz", "got 6",
          "at most 5");
  refuses(tensor_file(words({1, 0, 1, 500, 400, 0})), ErrorCode::out_of_bounds, "elements");
  refuses(tensor_file(words({1, 0, 1, 5, ~0u, ~0u})), ErrorCode::bad_value, "nnz");
  decode_v01(bytes_of(tensor_file(words({0, 4, 1, 4, 0x01000100}))));
  refuses(tensor_file(words({0, 4, 1, 4, 0x01000200})), ErrorCode::bad_value, "elements", "0x02");
  const auto sparse = [](std::uint32_t a, std::uint32_t b) {
    return tensor_file(words({1, 0, 1, 5, 2, 0, a, 0, b, 0, 0, 0}));
  };
  decode_v01(bytes_of(sparse(1, 3)));
  refuses(sparse(3, 5), ErrorCode::bad_value, "indices");
  refuses(sparse(3, 3), ErrorCode::bad_value, "indices");
  refuses(sparse(3, 1), ErrorCode::bad_value, "indices");
  refuses(tensor_file(words({1, 0, 1, 5, 1, 0, ~0u, ~0u, 0})), ErrorCode::bad_value, "indices");
}

BOOST_AUTO_TEST_CASE(places_of_tensors_are_checked) {
  for (const char* place : {"", R"(,"_offset":null)", R"(,"_offset":-1)", R"(,"_offset":"258")",
                            R"(,"_offset":1.5)", R"(,"_offset":18446744073709551616)"}) {
    refuses(v01_file_of("{}", std::string(R"({"x":{"_type":"tensor")") + place + "}}"),
            ErrorCode::bad_value, "_offset", "tensor 'x'");
  }
  for (const char* offset : {"18446744073709551615", "18446744073709551604", "1000000", "400"}) {
    refuses(v01_file_of("{}", std::string(R"({"x":{"_type":"tensor","_offset":)") + offset + "}}"),
            ErrorCode::out_of_bounds, "tensor 'x'");
  }
}

BOOST_AUTO_TEST_CASE(tensors_may_overlap_within_bounds) {
  // Two places with one offset are one tensor; ever so many that overlap a little are refused.
  const std::string one = R"({"_type":"tensor","_offset":259})";
  const std::string tensor = " " + words({0, 0, 1, 1, 0});
  const V01File shared =
      decode_v01(bytes_of(v01_file_of("{}", "{\"a\":" + one + ",\"b\":" + one + "}", tensor)));
  const Value& state = shared.document.entries[0].state;
  BOOST_TEST(state.at("a").as_tensor().bytes().data() == state.at("b").as_tensor().bytes().data());

  std::string heads;
  std::string places = "{";
  for (std::uint32_t i = 0; i < 20; ++i) {
    heads += words({0, 5, 1, 30000});
    places += (i == 0 ? "\"" : ",\"") + std::to_string(i) + R"(":{"_type":"tensor","_offset":)" +
              std::to_string(258 + 16 * i) + "}";
  }
  heads.append(62000, '\0');
  refuses(v01_file_of("{}", places + "}", heads), ErrorCode::limit_exceeded, "overlapping");
}

BOOST_AUTO_TEST_CASE(json_is_checked) {
  refuses(v01_file_of("[]", "{}"), ErrorCode::bad_json, "metadata");
  refuses(v01_file_of("{\"a\":nan}", "{}"), ErrorCode::bad_json, "metadata");
  refuses(v01_file_of("{}", "1"), ErrorCode::bad_json, "region 'r'");
  refuses(v01_file_of("{}", ""), ErrorCode::bad_json, "region 'r'");
  const std::string deep = "{\"a\":" + std::string(300, '[') + std::string(300, ']') + "}";
  refuses(v01_file_of("{}", deep), ErrorCode::limit_exceeded, "max_json_depth");
}

BOOST_AUTO_TEST_CASE(limits_of_the_caller_count) {
  const auto bytes = encode_v01(v01_sample());
  const auto limited = [&](const ReadLimits& limits, const char* name) {
    BOOST_CHECK_EXCEPTION(decode_v01(bytes, nullptr, limits), FormatError,
                          says(ErrorCode::limit_exceeded, name));
  };
  limited({.max_file_bytes = bytes.size() - 1}, "max_file_bytes");
  limited({.max_regions = 2}, "max_regions");
  limited({.max_json_bytes = 10}, "max_json_bytes");
  limited({.max_json_depth = 1}, "max_json_depth");
  const auto wrapped = encode_v01(v01_sample(), {.compression = {.codec = Codec::zstd}});
  BOOST_CHECK_EXCEPTION(decode_v01(wrapped, nullptr, {.max_allocation_bytes = 100}), FormatError,
                        says(ErrorCode::limit_exceeded, "max_allocation_bytes"));
}

BOOST_AUTO_TEST_CASE(a_frame_to_skip_stands_in_front_of_the_other) {
  for (const Codec wrapper : {Codec::zstd, Codec::lz4}) {
    const std::string file =
        v01_text(encode_v01(v01_sample(), {.compression = {.codec = wrapper}}));
    const std::string skipped("\x50\x2a\x4d\x18\x04\x00\x00\x00skip", 12);
    const V01File read = decode_v01(bytes_of(skipped + file), nullptr, {});
    BOOST_TEST(bool(read.wrapper == wrapper));
    BOOST_TEST(read.document.entries.size() == v01_sample().entries.size());
    refuses(skipped + skipped + file, ErrorCode::bad_magic, "magic");
  }
}

BOOST_AUTO_TEST_CASE(what_follows_a_frame_is_the_checksum_or_nothing) {
  for (const Codec wrapper : {Codec::zstd, Codec::lz4}) {
    const std::string file =
        v01_text(encode_v01(v01_sample(), {.compression = {.codec = wrapper}}));
    refuses(file + "x", ErrorCode::inconsistent, "33 bytes");
    refuses(file.substr(0, file.size() - 1), ErrorCode::inconsistent, "31 bytes");
    std::string damaged = file;
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    refuses<IntegrityError>(damaged, ErrorCode::checksum_mismatch, "sha256");
    // Without the checksum after it, the last 32 bytes inside have to be one.
    refuses<IntegrityError>(file.substr(0, file.size() - 32), ErrorCode::checksum_mismatch,
                            "sha256");
  }
}

BOOST_AUTO_TEST_CASE(deltas_are_shown_and_not_opened) {
  const auto files = v01_deltas();
  BOOST_TEST(!files.empty());
  for (const auto& path : files) {
    BOOST_TEST_CONTEXT(path) {
      BOOST_CHECK_EXCEPTION(
          read_v01(path), UnsupportedError,
          says(ErrorCode::unsupported_version, "delta.delta_version", "pickle", "never opened"));
      BOOST_TEST(is_v01_delta(path));
      const V01DeltaInfo info = read_v01_delta_info(path);
      BOOST_TEST(info.delta_version == 1u);
      BOOST_TEST_REQUIRE(info.metadata.has_value());
      const Value& facts = info.metadata->at("delta_info");
      BOOST_TEST(facts.at("current_step").as_uint64() == info.current_step);
      BOOST_TEST(facts.at("base_step").as_uint64() == info.base_step);
    }
  }
  const V01DeltaInfo info = read_v01_delta_info(v01_data("delta_stage1.delta.thalia"));
  BOOST_TEST(info.current_step == 2000u);
  BOOST_TEST(!info.early_header);
  BOOST_TEST(info.metadata->at("delta_info").at("base_checkpoint").as_string() ==
             "delta_base.thalia");
  BOOST_TEST(!is_v01_delta(v01_data("full.thalia")));
}

BOOST_AUTO_TEST_CASE(early_deltas_and_deltas_with_a_checksum_are_shown) {
  const TemporaryFolder folder;
  const auto path = folder / "early.delta.thalia";
  std::string file = read_file(v01_data("delta_stage1.delta.thalia"));
  const std::string late = file;
  // Magic of 4 bytes, and every field one byte earlier.
  file = file.substr(0, 4) + file.substr(5, 59) + '\0' + file.substr(64);
  write_file(path, file);
  const V01DeltaInfo info = read_v01_delta_info(path);
  BOOST_TEST(info.early_header);
  BOOST_TEST(info.delta_version == 1u);
  BOOST_TEST(info.current_step == 2000u);
  BOOST_TEST(info.metadata->at("stage").as_uint64() == 1u);
  write_file(path, late + std::string(32, 's'));
  BOOST_TEST(read_v01_delta_info(path).metadata.has_value());
  write_file(path, late.substr(0, late.size() - 1));
  BOOST_TEST(!read_v01_delta_info(path).metadata.has_value());
  write_file(path, late.substr(0, 63));
  BOOST_CHECK_THROW(read_v01_delta_info(path), FormatError);
}

BOOST_AUTO_TEST_CASE(documents_that_0_1_cannot_hold_are_refused) {
  const auto refused = [](const std::function<void(V01Document&)>& edit, auto... parts) {
    V01Document document = v01_sample();
    edit(document);
    BOOST_CHECK_EXCEPTION(encode_v01(document), UnsupportedError,
                          says(ErrorCode::unsupported_feature, parts...));
  };
  for (const DType dtype : {DType::i8, DType::u8, DType::bf16, DType::c64}) {
    refused([&](V01Document& d) { d.entries[0].state["x"]["y"] = Tensor::zeros(dtype, {1}); },
            "region 'cortex'", "tensor 'x.y'", dtype_name(dtype).data());
  }
  refused(
      [](V01Document& d) {
        d.entries[1].state["x"] = Tensor::zeros(DType::f32, {1ull << 32, 0});
      },
      "shape", "2^32");
  refused([](V01Document& d) { d.entries[0].name = std::string(32, 'x'); }, "name", "32 bytes");
  refused([](V01Document& d) { d.entries[0].name = "\xFF"; }, "UTF-8");
  refused([](V01Document& d) { d.entries[0].name = std::string("a\0b", 3); }, "NUL");
  refused([](V01Document& d) { d.entries.clear(); }, "num_regions");
  refused([](V01Document& d) { d.entries[0].state["t"]["_type"] = "tensor"; }, "_type");
  refused([](V01Document& d) { d.metadata["s"] = "\x80"; }, "UTF-8");
}

BOOST_AUTO_TEST_CASE(mistakes_of_the_caller_are_told) {
  V01Document document = v01_sample();
  BOOST_CHECK_EXCEPTION(encode_v01(document, {.compression = {.codec = Codec::zstd, .level = 23}}),
                        UsageError, says(ErrorCode::bad_argument, "compression_level", "23"));
  BOOST_CHECK_EXCEPTION(encode_v01(document, {.compression = {.codec = Codec::lz4, .level = -1}}),
                        UsageError, says(ErrorCode::bad_argument, "compression_level", "1 to 12"));
  BOOST_CHECK_EXCEPTION(encode_v01(document, {.compression = {.level = 3}}), UsageError,
                        says(ErrorCode::bad_argument, "compression_level", "none"));
  BOOST_CHECK_EXCEPTION(encode_v01(document, {.compression = {.codec = Codec::plane_entropy}}),
                        UsageError, says(ErrorCode::bad_argument, "codec", "none, zstd or lz4"));
  document.metadata["config"]["w"] = Tensor::zeros(DType::f32, {1});
  BOOST_CHECK_EXCEPTION(encode_v01(document), UsageError,
                        says(ErrorCode::bad_argument, "config.w", "tensor"));
}

BOOST_AUTO_TEST_SUITE_END()
