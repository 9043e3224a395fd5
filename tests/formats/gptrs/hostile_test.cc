// Checkpoints and archives that lie: every length of a truncated file, every flipped byte, and
// fields set by hand. gpt.rs aborts on some, as it allocates what a count asks for.
#include <limits>
#include <string>

#include "boost_test.h"
#include "formats/gptrs/samples.h"
#include "support/errors.h"

using namespace thalia;
using test::gptrs_compatible;
using test::gptrs_from;
using test::gptrs_vector;
using test::HandEntry;
using test::HandFile;
using test::with_number;

BOOST_AUTO_TEST_SUITE(gptrs_hostile)

namespace {

constexpr std::uint64_t kHuge = std::numeric_limits<std::uint64_t>::max();

// False where the file or one of its tensors is refused; nothing else may happen.
bool reads_whole(const std::string& bytes, GptrsReadOptions options = {}) {
  options.input.limits.max_allocation_bytes = 1 << 20;
  try {
    const GptrsFile file = gptrs_from(bytes, options);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      const Tensor tensor = file.read_entry(i);
      BOOST_REQUIRE((tensor.owned() == tensor));  // touches every byte
    }
    return true;
  } catch (const FormatError& error) {
    BOOST_REQUIRE(std::string_view(error.what()).find('\n') == std::string_view::npos);
  } catch (const UnsupportedError&) {
  }
  return false;
}

GptrsReadOptions everything() {
  return {.strict = false, .version_1 = true, .untagged_config = true};
}

struct Refusal {
  const char* what;
  std::string bytes;
  ErrorCode code;
  const char* says;
};

std::string one_entry(const HandEntry& entry, bool is_archive = false) {
  return HandFile{.entries = {entry}, .is_archive = is_archive}.bytes();
}

// Where the fields of a HandFile with its own config and one entry "w" lie.
constexpr std::size_t kConfigLength = 12, kIndexLength = 42, kCount = 46, kNameLength = 50,
                      kRank = 71, kDim = 75;

}  // namespace

BOOST_AUTO_TEST_CASE(no_truncated_file_is_read) {
  for (const char* const name : {"rust_gpt_small.gptrschk", "py_mixed.gptrsten",
                                 "legacy_v1.gptrschk", "legacy_v1.gptrsten"}) {
    const std::string whole = gptrs_vector(name);
    BOOST_TEST(reads_whole(whole, everything()));
    for (std::size_t length = 0; length < whole.size(); ++length)
      BOOST_TEST(!reads_whole(whole.substr(0, length), everything()), name << " " << length);
  }
}

// There are no checksums, so a flip may go unseen: nothing worse may come of it.
BOOST_AUTO_TEST_CASE(every_flipped_byte_is_survived) {
  for (const char* const name :
       {"rust_gpt_small.gptrschk", "py_mixed.gptrsten", "cfg_runtime.gptrschk",
        "legacy_v1.gptrschk", "legacy_v1.gptrsten"}) {
    const std::string whole = gptrs_vector(name);
    unsigned read = 0, strict = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
      for (const int bit : {0, 3, 7}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
        read += reads_whole(damaged, everything()) ? 1u : 0u;
        strict += reads_whole(damaged) ? 1u : 0u;
      }
    BOOST_TEST(strict <= read);
    BOOST_TEST(read < 3 * whole.size());
  }
}

BOOST_AUTO_TEST_CASE(lengths_and_counts_that_lie_are_refused_in_both_modes) {
  const std::string good = HandFile{}.bytes();
  BOOST_TEST(reads_whole(good));
  const std::uint32_t most = 0xffffffff;
  HandFile no_index;
  no_index.entries.clear();
  const std::string empty = no_index.bytes();
  const Refusal kCases[] = {
      {"empty file", "", ErrorCode::truncated, "empty"},
      {"config", with_number(good, kConfigLength, most), ErrorCode::truncated, "config_len"},
      {"index", with_number(good, kIndexLength, most), ErrorCode::truncated, "index_len"},
      {"index without count", with_number(empty, kIndexLength, std::uint32_t{3}),
       ErrorCode::truncated, "tensor_count"},
      {"count", with_number(good, kCount, most), ErrorCode::out_of_bounds, "tensor_count"},
      {"one entry too many", with_number(good, kCount, std::uint32_t{2}), ErrorCode::out_of_bounds,
       "got 2, expected at most 1"},
      {"name", with_number(good, kNameLength, most), ErrorCode::truncated, "name_len"},
      {"rank", with_number(good, kRank, most), ErrorCode::truncated, "dims"},
      {"product", one_entry({.dims = {1ull << 32, 1ull << 32}, .length = 0}),
       ErrorCode::out_of_bounds, "dims"},
      {"bytes", with_number(good, kDim, std::uint64_t{1} << 62), ErrorCode::out_of_bounds, "dims"},
      {"9 dimensions", one_entry({.dims = std::vector<std::uint64_t>(9, 1), .length = 4}),
       ErrorCode::unsupported_feature, "rank"},
      {"tag", one_entry({.tag = 4}), ErrorCode::unsupported_dtype, "dtype_tag"},
      {"id", one_entry({.id = "0123456789abcdef"}), ErrorCode::inconsistent, "stored_base_id"},
      {"name in Latin-1", one_entry({.name = "h\xe9"}), ErrorCode::bad_name, "h\\xe9"},
      {"name in Latin-1", one_entry({.name = "h\xe9"}, true), ErrorCode::bad_name, "UTF-8"},
  };
  for (const Refusal& one : kCases) BOOST_TEST_CONTEXT(one.what) {
      BOOST_CHECK_EXCEPTION(gptrs_from(one.bytes), Error,
                            test::says(one.code, one.says, "test.gptrs"));
      BOOST_CHECK_EXCEPTION(gptrs_from(one.bytes, gptrs_compatible()), Error,
                            test::says(one.code, one.says, "test.gptrs"));
    }
}

BOOST_AUTO_TEST_CASE(places_that_lie_are_refused_at_once_or_when_they_are_read) {
  const Refusal kCases[] = {
      {"after the end", one_entry({.offset = 1}), ErrorCode::out_of_bounds, "byte_len"},
      {"far behind", one_entry({.offset = kHuge - 1000}), ErrorCode::out_of_bounds, "offset_abs"},
      {"short", one_entry({.length = 4}), ErrorCode::inconsistent, "byte_len"},
      {"no whole element", one_entry({.length = 7}), ErrorCode::inconsistent, "byte_len"},
      {"huge", one_entry({.length = kHuge}), ErrorCode::inconsistent, "byte_len"},
      {"of the other width", one_entry({.tag = 1}), ErrorCode::inconsistent, "8, expected 4"},
      {"large for the file", one_entry({.dims = {1ull << 40}, .length = 1ull << 42}),
       ErrorCode::out_of_bounds, "byte_len"},
      {"empty after the end", one_entry({.dims = {0}, .offset = 9, .length = 0}),
       ErrorCode::out_of_bounds, "offset_abs"},
  };
  for (const Refusal& one : kCases) BOOST_TEST_CONTEXT(one.what) {
      BOOST_CHECK_EXCEPTION(gptrs_from(one.bytes), FormatError,
                            test::says(one.code, one.says, "test.gptrs", "'w'"));
      const GptrsFile file = gptrs_from(one.bytes, gptrs_compatible());
      BOOST_CHECK_EXCEPTION(file.read("w"), FormatError,
                            test::says(one.code, one.says, "test.gptrs", "'w'"));
    }
}

BOOST_AUTO_TEST_CASE(payloads_that_overlap_are_refused_where_strict) {
  HandFile file;
  file.entries = {{.name = "a"}, {.name = "b", .offset = 8}};
  file.data += file.data;
  BOOST_TEST(reads_whole(file.bytes()));
  for (const std::uint64_t offset : {0u, 1u, 7u}) {
    file.entries[1].offset = offset;
    BOOST_CHECK_EXCEPTION(gptrs_from(file.bytes()), FormatError,
                          test::says(ErrorCode::out_of_bounds, "overlaps 'a'", "'b'"));
    BOOST_TEST(reads_whole(file.bytes(), gptrs_compatible()));
  }
  // Tensors without bytes overlap nothing.
  file.entries[1] = {.name = "b", .dims = {3, 0}, .offset = 4, .length = 0};
  BOOST_TEST(reads_whole(file.bytes()));
}

BOOST_AUTO_TEST_CASE(a_payload_in_front_of_the_data_is_refused_where_strict) {
  const std::string bytes = one_entry({.offset = kHuge - 7});  // wraps to 8 bytes before
  BOOST_CHECK_EXCEPTION(gptrs_from(bytes), FormatError,
                        test::says(ErrorCode::out_of_bounds, "before the data"));
  BOOST_TEST(gptrs_from(bytes, gptrs_compatible()).read("w").bytes().size() == 8u);
}

BOOST_AUTO_TEST_CASE(gaps_and_bytes_behind_the_data_are_taken) {
  HandFile file;
  file.entries = {{.name = "b", .offset = 100}, {.name = "a", .offset = 17}};
  file.data = std::string(150, 'x');
  BOOST_TEST(reads_whole(file.bytes()));
  BOOST_TEST(gptrs_from(file.bytes()).tensors()[0].name == "b");
}

BOOST_AUTO_TEST_CASE(the_limits_of_the_caller_hold) {
  const std::string bytes = gptrs_vector("rust_gpt_small.gptrschk");
  const auto refused = [&](const ReadLimits& limits, const char* limit) {
    BOOST_CHECK_EXCEPTION(gptrs_from(bytes, {.input = {.limits = limits}}), FormatError,
                          test::says(ErrorCode::limit_exceeded, limit));
  };
  refused({.max_file_bytes = 1258}, "max_file_bytes");
  refused({.max_tensors = 6}, "max_tensors");
  refused({.max_json_bytes = 129}, "max_json_bytes");
  refused({.max_json_depth = 1}, "depth");
  refused({.max_allocation_bytes = 64}, "max_allocation_bytes");
}

BOOST_AUTO_TEST_SUITE_END()
