#include "formats/v01/binary.h"

#include <array>

#include "boost_test.h"
#include "format/v01.h"
#include "formats/v01/files.h"
#include "formats/v01/header.h"
#include "support/errors.h"
#include "support/files.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(v01_binary)

namespace {

// The sample's file, piece by piece.
Digest256 write_pieces(const std::filesystem::path& path, const V01Document& document) {
  BinaryWriter writer(path, {.durability = Durability::none});
  format::V01FileHeader header = formats::to_disk(document.header);
  header.metadata_length = writer.write_json(document.metadata).length;
  std::vector<V01IndexEntry> entries;
  for (const V01Entry& entry : document.entries)
    entries.push_back({entry.name, writer.write_json(entry.state)});
  const V01Extent index = writer.write_index(entries);
  header.region_index_offset = index.offset;
  header.region_index_length = index.length;
  header.num_regions = static_cast<std::uint32_t>(entries.size());
  writer.write_header(header);
  return writer.finalize();
}

}  // namespace

BOOST_AUTO_TEST_CASE(pieces_make_the_same_file_as_a_document) {
  const TemporaryFolder folder;
  const auto path = folder / "pieces.thalia";
  const Digest256 checksum = write_pieces(path, v01_sample());
  const std::string file = read_file(path);
  BOOST_TEST((file == v01_text(encode_v01(v01_sample()))));
  BOOST_TEST((file.substr(file.size() - 32) == text_of(as_byte_span(checksum.bytes))));
}

BOOST_AUTO_TEST_CASE(reader_gives_the_pieces) {
  for (const char* name : {"full.thalia", "full.thalia.lz4", "eraA_full.thalia.zst"}) {
    const BinaryReader reader(v01_data(name));
    BOOST_TEST(reader.validate_checksum());
    const format::V01FileHeader header = reader.read_header();
    const Value metadata = reader.read_json(header.metadata_offset, header.metadata_length);
    BOOST_TEST(metadata.at("experiment").as_string() == "vectors");
    const auto index = reader.read_index();
    BOOST_TEST(index.size() == header.num_regions);
    const Value cortex = reader.read_json(index[0].json.offset, index[0].json.length);
    const Value& place = cortex.at("weights").at("w_ff");
    BOOST_TEST(place.at("_type").as_string() == "tensor");
    const Tensor w = reader.read_tensor(place.at("_offset").as_uint64());
    BOOST_TEST((w.shape() == Shape{4, 3}));
    BOOST_TEST(w.as<float>()[1] == -0.875f);
  }
}

BOOST_AUTO_TEST_CASE(sparse_is_chosen_by_the_originals_rule_on_request) {
  const TemporaryFolder folder;
  BinaryWriter writer(folder / "f", {.durability = Durability::none});
  const Tensor zeros = Tensor::zeros(DType::f32, {101});
  BOOST_TEST(writer.write_tensor(zeros).length == 16u + 404u);
  BOOST_TEST(writer.write_tensor(zeros, /*sparse=*/true).length == 24u);
  BOOST_TEST((writer.write_tensor(Tensor::zeros(DType::f32, {100}), true) ==
              V01Extent{256 + 420 + 24, 416}));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_read_and_does_not_validate) {
  const TemporaryFolder folder;
  std::string file = v01_text(encode_v01(v01_sample()));
  file[file.size() - 40] = static_cast<char>(file[file.size() - 40] ^ 1);
  write_file(folder / "damaged.thalia", file);
  const BinaryReader reader(folder / "damaged.thalia");
  BOOST_TEST(!reader.validate_checksum());
  BOOST_TEST(reader.read_header().training_steps == 77u);
}

BOOST_AUTO_TEST_CASE(reader_bounds_every_request) {
  const BinaryReader reader(v01_data("full.thalia"));
  const auto refused = [](const auto& call) {
    BOOST_CHECK_EXCEPTION(call(), FormatError, says(ErrorCode::out_of_bounds, "full.thalia"));
  };
  refused([&] { reader.read_json(8288, 1); });
  refused([&] { reader.read_json(1, ~std::uint64_t{0}); });
  refused([&] { reader.read_tensor(8280); });
  refused([&] { reader.read_tensor(~std::uint64_t{0}); });
}

BOOST_AUTO_TEST_CASE(a_reader_that_was_moved_from_says_so) {
  BinaryReader reader(v01_data("full.thalia"));
  const BinaryReader other = std::move(reader);
  BOOST_TEST(other.validate_checksum());
  const auto refused = [](const auto& call) {
    BOOST_CHECK_EXCEPTION(call(), UsageError, says(ErrorCode::wrong_state, "moved from"));
  };
  refused([&] { reader.read_header(); });
  refused([&] { reader.read_index(); });
  refused([&] { reader.read_tensor(0); });
  refused([&] { reader.read_json(0, 1); });
  refused([&] { reader.validate_checksum(); });
}

BOOST_AUTO_TEST_CASE(nothing_is_at_the_path_before_the_end) {
  const TemporaryFolder folder;
  const auto path = folder / "f.thalia";
  {
    BinaryWriter writer(path, {.durability = Durability::none});
    writer.write_tensor(Tensor::zeros(DType::f32, {3}));
    BOOST_CHECK_EXCEPTION(writer.finalize(), UsageError, has_code(ErrorCode::wrong_state));
    BOOST_TEST(!std::filesystem::exists(path));
  }
  BOOST_TEST(list_folder(folder.path()).empty());
  write_pieces(path, v01_sample());
  BOOST_TEST(std::filesystem::exists(path));
}

BOOST_AUTO_TEST_CASE(a_finished_writer_takes_no_more) {
  const TemporaryFolder folder;
  BinaryWriter writer(folder / "f", {.durability = Durability::none});
  writer.write_header(formats::to_disk({}));
  writer.finalize();
  BOOST_CHECK_EXCEPTION(writer.write_json(Value::object()), UsageError,
                        has_code(ErrorCode::wrong_state));
  BOOST_CHECK_EXCEPTION(writer.finalize(), UsageError, has_code(ErrorCode::wrong_state));
}

BOOST_AUTO_TEST_SUITE_END()
