// What trainers publish: changes of one tensor, and versions that slime's and TRL's own code wrote,
// in tests/data/formats/slime and trl. weight_delta_test.py writes versions and refuses wrong ones.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "boost_test.h"
#include "formats/weight_sync/byte_change.h"
#include "formats/weight_sync/element_change.h"
#include "formats/weight_sync/slime_index.h"
#include "formats/weight_sync/trl_metadata.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/any_file.h"
#include "thalia/formats/file_facts.h"

using namespace thalia;
using namespace thalia::formats::weight_sync;

BOOST_AUTO_TEST_SUITE(weight_sync)

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

fs::path data(const char* name) {
  return fs::path(THALIA_SOURCE_ROOT) / "tests/data/formats" / name;
}

// How many bytes differ, and the frame.
std::uint64_t encode(ByteEncoding encoding, const Bytes& before, const Bytes& after, Bytes& frame) {
  frame.clear();
  const std::uint64_t changed = encode_bytes(encoding, before, after, [&](ByteSpan piece) {
    frame.insert(frame.end(), piece.begin(), piece.end());
  });
  BOOST_TEST(frame.size() <= most_frame_bytes(encoding, after.size()));
  return changed;
}

void apply(ByteEncoding encoding, const Bytes& frame, Bytes& state) {
  io::MemoryBudget budget({}, frame.size());
  apply_bytes(encoding, frame, state, budget);
}

void check_same(const AnyFile& found, const fs::path& wanted) {
  const AnyFile right = open_any(wanted);
  BOOST_REQUIRE(found.tensors().size() == right.tensors().size());
  for (std::size_t i = 0; i < right.tensors().size(); ++i) {
    BOOST_TEST(found.tensors()[i].name == right.tensors()[i].name);
    BOOST_TEST((found.tensors()[i].layout == right.tensors()[i].layout));
    BOOST_TEST(test::same_bytes(found.read(i).bytes(), right.read(i).bytes()));
  }
}

ChainOptions searching(const fs::path& folder) {
  return {.search = {folder}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_change_of_bytes_comes_back) {
  const Bytes before = test::random_bytes(5000, 1);
  Bytes after = before;
  for (const std::size_t i : {0, 1, 77, 4999}) after[i] ^= std::byte{0x80};
  for (const ByteEncoding encoding : {ByteEncoding::xor_bytes, ByteEncoding::overwrite}) {
    Bytes frame;
    BOOST_TEST(encode(encoding, before, after, frame) == 4u);
    Bytes state = before;
    apply(encoding, frame, state);
    BOOST_TEST((state == after));
    // Cut or damaged, it is refused, or the checksum has to find it: nothing else happens.
    for (std::size_t size = 0; size < frame.size(); ++size) {
      const Bytes cut(frame.begin(), frame.begin() + static_cast<std::ptrdiff_t>(size));
      state = before;
      BOOST_CHECK_THROW(apply(encoding, cut, state), Error);
    }
    BOOST_TEST(encode(encoding, after, after, frame) == 0u);
    BOOST_TEST(encode(encoding, {}, {}, frame) == 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_large_change_is_made_in_parts_and_comes_back) {
  // Parts end within words and lines.
  const Bytes before = test::random_bytes(1'000'003, 3);
  Bytes scattered = before;
  for (std::size_t i = 0; i < scattered.size(); i += 1 + i % 97) scattered[i] ^= std::byte{3};
  for (const Bytes& after : {test::random_bytes(before.size(), 4), scattered}) {
    std::uint64_t changed = 0;
    for (std::size_t i = 0; i < after.size(); ++i) changed += after[i] != before[i] ? 1 : 0;
    for (const ByteEncoding encoding : {ByteEncoding::xor_bytes, ByteEncoding::overwrite}) {
      Bytes frame;
      BOOST_TEST(encode(encoding, before, after, frame) == changed);
      Bytes state = before;
      apply(encoding, frame, state);
      BOOST_TEST((state == after));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_frame_that_claims_more_than_a_change_can_have_takes_no_memory) {
  Bytes frame;
  const Bytes large(1 << 20, std::byte{1});
  encode(ByteEncoding::xor_bytes, Bytes(1 << 20), large, frame);
  Bytes state(16);
  io::MemoryBudget budget({}, frame.size());
  for (const ByteEncoding encoding : {ByteEncoding::xor_bytes, ByteEncoding::overwrite}) {
    BOOST_CHECK_EXCEPTION(apply_bytes(encoding, frame, state, budget), FormatError,
                          test::has_code(ErrorCode::bad_value));
  }
  BOOST_TEST(budget.taken() == 0u);
}

BOOST_AUTO_TEST_CASE(checksums_are_those_of_other_programs) {
  const ByteSpan text = test::bytes_of("abc");
  BOOST_TEST(checksum_text(ByteChecksum::adler32, text) == "024d0127");
  BOOST_TEST(checksum_text(ByteChecksum::adler32, {}) == "00000001");
  BOOST_TEST(checksum_text(ByteChecksum::xxh3_128, text) == "06b05ab6733a618578af5f94892f3950");
  BOOST_TEST(checksum_text(ByteChecksum::blake3, text) ==
             "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85");
}

BOOST_AUTO_TEST_CASE(a_list_of_elements_comes_back) {
  const Bytes before = test::random_bytes(280'000, 2);
  Bytes after = before;
  after[0] ^= std::byte{1};
  after[139'998] ^= std::byte{1};
  for (const DType dtype : {DType::bf16, DType::f32, DType::f8_e4m3}) {
    for (const PositionEncoding encoding : {PositionEncoding::gap_delta, PositionEncoding::raw}) {
      const ElementList list = list_elements(encoding, dtype, before, after);
      BOOST_TEST(list.count == 2u);
      const bool is_near = dtype == DType::f32;
      BOOST_TEST((list.position_type == (encoding == PositionEncoding::raw ? DType::i32
                                         : is_near                         ? DType::u16
                                                                           : DType::u32)));
      Bytes state = before;
      apply_elements(encoding, Tensor::copy_of(list.position_type, {2}, list.positions),
                     Tensor::copy_of(dtype, {2}, list.values), dtype, state);
      BOOST_TEST((state == after));
    }
  }
  BOOST_CHECK_THROW(list_elements(PositionEncoding::raw, DType::f4_e2m1, before, after),
                    UnsupportedDtypeError);
}

BOOST_AUTO_TEST_CASE(positions_that_do_not_ascend_or_lie_outside_are_refused) {
  const auto refused = [](const std::vector<std::int32_t>& positions, std::uint64_t values) {
    Bytes state(8);
    const auto numbers = Tensor::copy_of<std::int32_t>({positions.size()}, positions);
    const auto elements = Tensor::copy_of(DType::bf16, {values}, Bytes(2 * values));
    BOOST_CHECK_THROW(apply_elements(PositionEncoding::raw, numbers, elements, DType::bf16, state),
                      FormatError);
    BOOST_CHECK_THROW(
        apply_elements(PositionEncoding::gap_delta, numbers, elements, DType::bf16, state),
        FormatError);
  };
  refused({1, 1}, 2);
  refused({2, 1}, 2);
  refused({0, 4}, 2);
  refused({-1}, 1);
  refused({0, 1}, 1);
}

BOOST_AUTO_TEST_CASE(the_metadata_of_an_index_are_checked) {
  const std::string right =
      R"({"version":"000003","base_version":"000002","delta_encoding":"overwrite",)"
      R"("compression_format":"zstd","checksum_format":"adler32","total_size":7})";
  const auto index = parse_slime_index(right, 64);
  BOOST_REQUIRE(index.has_value());
  BOOST_TEST(index->version == 3u);
  BOOST_TEST(index->base_version == 2u);
  BOOST_TEST((index->encoding == ByteEncoding::overwrite));
  BOOST_TEST((index->checksum == ByteChecksum::adler32));
  BOOST_TEST(!parse_slime_index("", 64).has_value());
  BOOST_TEST(!parse_slime_index(R"({"total_size":7})", 64).has_value());
  const auto refused = [&](std::string_view from, std::string_view to) {
    std::string text = right;
    text.replace(text.find(from), from.size(), to);
    BOOST_CHECK_THROW(parse_slime_index(text, 64), FormatError);
  };
  refused(R"("000002")", R"("000003")");
  refused(R"("000002")", R"("-1")");
  refused(R"("000003")", "3");
  refused(R"("version":"000003",)", "");
  refused("overwrite", "add");
  refused("zstd", "lz4");
  refused("adler32", "md5");
  refused(R"("total_size":7)", R"("version":"000003")");
}

BOOST_AUTO_TEST_CASE(versions_of_slime_are_read_as_models) {
  const fs::path versions = data("slime/versions");
  const OpenOptions options{.chain = searching(data("slime/base"))};
  for (const fs::path& path : {versions, versions / "weight_v000003"}) {
    const AnyFile newest = open_any(path, options);
    BOOST_TEST((newest.format() == FileFormat::slime));
    check_same(newest, data("slime/newest.safetensors"));
    BOOST_TEST(verify_any(path, {}, options).ok());
  }
  BOOST_CHECK_THROW(open_any(versions), IoError);
}

BOOST_AUTO_TEST_CASE(versions_of_trl_are_read_as_models) {
  const fs::path bucket = data("trl/bucket");
  for (const fs::path& path : {bucket, bucket / "deltas/step_000004.safetensors"}) {
    const AnyFile newest = open_any(path);
    BOOST_TEST((newest.format() == FileFormat::trl));
    check_same(newest, data("trl/newest.safetensors"));
  }
  const AnyFile second = open_any(bucket / "deltas/step_000002.safetensors");
  BOOST_TEST(!test::same_bytes(second.read("b").bytes(),
                               open_any(data("trl/newest.safetensors")).read("b").bytes()));
}

BOOST_AUTO_TEST_SUITE_END()
