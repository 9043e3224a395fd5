// Side files: all that a file says of itself, none of its payloads, and no byte that was not there.
#include "thalia/side_file.h"

#include <cstring>

#include "boost_test.h"
#include "container/wrap/check.h"
#include "format/meta.h"
#include "integrity/crc32.h"
#include "integrity/sha256.h"
#include "support/errors.h"
#include "support/sample.h"
#include "thalia/append.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/recover.h"
#include "thalia/stream.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;
using format::MetaExtent;
using format::MetaHeader;

BOOST_AUTO_TEST_SUITE(meta_file)

namespace {

// A file, and beside it its side file.
struct Pair : TemporaryFolder {
  explicit Pair(const Sample& sample, const SaveOptions& options = steady_options())
      : source(*this / "f.thalia"), side(*this / "f.thalia.meta") {
    save(source, sample, options);
    result = write_metadata_file(source, side, {.output = {.durability = Durability::none}});
  }
  std::filesystem::path source;
  std::filesystem::path side;
  MetadataFileResult result;
};

std::string texts_of(const RegionView& region) {
  std::string text(region.name());
  return text.append(region.config_json()).append(region.metadata_json()) +
         std::to_string(region.n_neurons()) + " " + std::to_string(region.n_inputs()) + " " +
         std::to_string(region.homeostatic_updated().value_or(7));
}

// Everything that both tell, alike.
void check_tells_the_same(const Reader& side, const Reader& source) {
  BOOST_TEST(side.header().training_steps == source.header().training_steps);
  BOOST_TEST(side.header().generation == source.header().generation);
  BOOST_TEST((side.header().file_uuid == source.header().file_uuid));
  BOOST_TEST((side.header().flags == source.header().flags));
  BOOST_TEST(side.file_bytes() == source.file_bytes());
  BOOST_TEST(side.metadata_json() == source.metadata_json());
  BOOST_TEST((side.closing_checksum() == source.closing_checksum()));
  BOOST_TEST(side.logical_bytes() == source.logical_bytes());
  BOOST_TEST(side.dead_bytes() == source.dead_bytes());
  BOOST_REQUIRE(side.region_count() == source.region_count());
  for (std::uint32_t r = 0; r < source.region_count(); ++r) {
    const RegionView region = side.region(r), expected = source.region(r);
    BOOST_TEST(texts_of(region) == texts_of(expected));
    BOOST_REQUIRE(region.tensor_count() == expected.tensor_count());
    for (std::uint32_t t = 0; t < expected.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t), other = expected.tensor(t);
      BOOST_TEST(tensor.name() == other.name());
      BOOST_TEST((tensor.shape() == other.shape()));
      BOOST_TEST((tensor.dtype() == other.dtype()));
      BOOST_TEST((tensor.role() == other.role()));
      BOOST_TEST((tensor.encoding() == other.encoding()));
      BOOST_TEST(tensor.nnz() == other.nnz());
      BOOST_TEST(tensor.stored_bytes() == other.stored_bytes());
      BOOST_TEST((tensor.content_hash() == other.content_hash()));
    }
  }
  BOOST_REQUIRE(side.connection_count() == source.connection_count());
  for (std::uint32_t c = 0; c < source.connection_count(); ++c) {
    BOOST_TEST(side.connection(c).source == source.connection(c).source);
    BOOST_TEST(side.connection(c).target == source.connection(c).target);
    BOOST_TEST((side.connection(c).weights.shape() == source.connection(c).weights.shape()));
  }
}

// A side file laid over its bytes, sealed anew after an edit.
struct Editor {
  explicit Editor(std::string file) : bytes(std::move(file)) {}
  MetaHeader& header() { return *reinterpret_cast<MetaHeader*>(bytes.data()); }
  MetaExtent& extent(std::size_t i) {
    return *reinterpret_cast<MetaExtent*>(&bytes.at(sizeof(MetaHeader) + i * sizeof(MetaExtent)));
  }
  std::string sealed(std::size_t extents) {
    header().meta_crc32 = 0;
    header().meta_crc32 =
        integrity::crc32(bytes_of(bytes).first(sizeof(MetaHeader) + extents * sizeof(MetaExtent)));
    const Digest256 digest = integrity::sha256(bytes_of(bytes).first(bytes.size() - 32));
    std::memcpy(&bytes[bytes.size() - 32], digest.bytes, 32);
    return bytes;
  }
  std::string bytes;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_side_file_tells_what_its_source_tells_but_for_payloads) {
  for (const Sample& sample : {small_sample(), varied_sample()}) {
    for (const auto type : {ChecksumType::block_tree, ChecksumType::sha256, ChecksumType::crc32,
                            ChecksumType::none}) {
      SaveOptions options = steady_options();
      options.checksum = type;
      const Pair files(sample, options);
      const Reader source = Reader::open(files.source);
      for (const Verification verification :
           {Verification::off, Verification::on_first_touch, Verification::at_open})
        check_tells_the_same(Reader::open(files.side, {.verification = verification}), source);
      BOOST_TEST(files.result.input_bytes == source.file_bytes());
      BOOST_TEST(files.result.output_bytes == std::filesystem::file_size(files.side));
      BOOST_TEST(files.result.regions == source.region_count());
      BOOST_TEST(files.result.tensors == source.tensor_count());
      BOOST_TEST(is_metadata_file(files.side));
      BOOST_TEST(!is_metadata_file(files.source));
      const VerifyReport report = verify(files.side);
      BOOST_TEST(report.findings.empty());
      BOOST_TEST(report.tensors == source.tensor_count());
    }
  }
}

BOOST_AUTO_TEST_CASE(it_is_small_beside_a_large_source) {
  Sample sample;
  sample.regions.push_back({{.name = "r"}, {dense_tensor("w", DType::u8, {3'000'000})}});
  const Pair files(sample, SaveOptions{.output = {.durability = Durability::none}});
  BOOST_TEST(files.result.input_bytes > 3'000'000u);
  BOOST_TEST(files.result.output_bytes < 5000u);
}

BOOST_AUTO_TEST_CASE(the_bytes_are_those_of_the_format) {
  const Pair files(small_sample());
  std::string side = read_file(files.side);
  const std::string source = read_file(files.source);
  Editor editor(side);
  const MetaHeader header = editor.header();
  BOOST_TEST(side.substr(0, 8) == std::string("TMET\1\0\0\0", 8));
  BOOST_TEST(header.source_length == source.size());
  BOOST_TEST(header.meta_length == side.size());
  BOOST_TEST(std::memcmp(header.source_checksum.bytes, &source[source.size() - 32], 32) == 0);
  std::size_t at = sizeof header + header.extent_count * sizeof(MetaExtent);
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < header.extent_count; ++i) {
    const MetaExtent extent = editor.extent(i);
    BOOST_TEST(extent.offset >= end);
    end = extent.offset + extent.length;
    BOOST_TEST((side.substr(at, extent.length) == source.substr(extent.offset, extent.length)));
    at += extent.length;
  }
  BOOST_TEST(end == source.size());
  BOOST_TEST(at + 32 == side.size());
  const std::string before = side;
  BOOST_TEST((editor.sealed(header.extent_count) == before));  // CRC-32 and SHA-256
}

BOOST_AUTO_TEST_CASE(whoever_asks_for_a_payload_is_told_that_there_is_none) {
  const Sample sample = varied_sample();
  const Pair files(sample);
  const Reader reader = Reader::open(files.side);
  const auto refused = says(ErrorCode::unsupported_feature, files.side.string(), "no payloads");
  std::size_t asked = 0;
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t);
      if (tensor.stored_bytes() == 0) continue;
      ++asked;
      std::vector<std::byte> out(tensor.logical_bytes());
      BOOST_CHECK_EXCEPTION(tensor.read(out), UnsupportedError, refused);
      if (tensor.is_raw()) BOOST_CHECK_EXCEPTION(tensor.bytes(), UnsupportedError, refused);
    }
  }
  BOOST_TEST(asked > 5u);
  BOOST_CHECK_EXCEPTION(reader.verify_all(), UnsupportedError, refused);
  BOOST_CHECK_EXCEPTION(StreamReader{reader}, UnsupportedError, refused);
  BOOST_CHECK_EXCEPTION(compact(files.side, files / "out"), UnsupportedError, refused);
  const auto not_in_place = has_code(ErrorCode::unsupported_feature);
  BOOST_CHECK_EXCEPTION(Appender{files.side}, UnsupportedError, not_in_place);
  BOOST_CHECK_EXCEPTION(compact(files.side), UnsupportedError, not_in_place);
  BOOST_CHECK_EXCEPTION(recover(files.side), UnsupportedError, not_in_place);
}

BOOST_AUTO_TEST_CASE(side_files_of_appended_wrapped_and_side_files_are_as_good) {
  const TemporaryFolder folder;
  save(folder / "f", small_sample());
  {
    Appender appender(folder / "f", {.change = {.output = {.durability = Durability::none}}});
    appender.add_region({.name = "more", .config_json = R"({"a":1})"});
    appender.commit();
  }
  write_file(folder / "f", read_file(folder / "f") + "debris");
  const MetadataFileOptions options{.output = {.durability = Durability::none}};
  write_metadata_file(folder / "f", folder / "f.meta", options);
  const Reader source = Reader::open(folder / "f");
  BOOST_TEST(source.header().generation == 2u);
  check_tells_the_same(Reader::open(folder / "f.meta"), source);

  CompressOptions wrap = small_frames();
  wrap.compression.codec = Codec::zstd;
  compress_checkpoint(folder / "f", folder / "f.zst", wrap);
  write_metadata_file(folder / "f.zst", folder / "g.meta", options);
  BOOST_TEST((read_file(folder / "g.meta") == read_file(folder / "f.meta")));
  write_metadata_file(folder / "f.meta", folder / "h.meta", options);
  BOOST_TEST((read_file(folder / "h.meta") == read_file(folder / "f.meta")));
  compress_checkpoint(folder / "f.meta", folder / "m.zst", wrap);  // in frames it is not one
  BOOST_CHECK_EXCEPTION(Reader::open(folder / "m.zst"), FormatError,
                        has_code(ErrorCode::bad_magic));
  BOOST_CHECK_EXCEPTION(write_metadata_file(folder / "f", folder / "f", options), UsageError,
                        has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(what_is_taken_over_is_verified) {
  const Pair files(small_sample());
  std::string bytes = read_file(files.source);
  const std::size_t at = bytes.find(Reader::open(files.source).metadata_json());
  bytes[at + 1] = static_cast<char>(bytes[at + 1] ^ 1);
  write_file(files.source, bytes);
  const std::string before = read_file(files.side);
  BOOST_CHECK_THROW(write_metadata_file(files.source, files.side), IntegrityError);
  BOOST_TEST((read_file(files.side) == before));
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_flip_is_refused) {
  const Pair files(small_sample());
  const std::string side = read_file(files.side);
  const auto refused = [&](const std::string& bytes) {
    write_file(files.side, bytes);
    try {
      Reader::open(files.side);
      return false;
    } catch (const FormatError&) {
    } catch (const IntegrityError&) {
    } catch (const UnsupportedError&) {
    }
    return !verify(files.side).ok();
  };
  for (std::size_t length = 0; length < side.size(); ++length)
    BOOST_TEST(refused(side.substr(0, length)), length);
  BOOST_TEST(refused(side + "x"));
  for (std::size_t at = 0; at < side.size(); ++at) {
    std::string flipped = side;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x41);
    BOOST_TEST(refused(flipped), at);
  }
}

BOOST_AUTO_TEST_CASE(fields_that_mislead_are_refused_under_a_right_checksum) {
  const Pair files(small_sample());
  const std::string side = read_file(files.side);
  const std::size_t extents = Editor(side).header().extent_count;
  const auto refuses = [&](auto edit, ErrorCode code, const char* field, std::size_t sealed) {
    Editor editor(side);
    edit(editor);
    write_file(files.side, editor.sealed(sealed));
    BOOST_CHECK_EXCEPTION(Reader::open(files.side), Error, says(code, "side_file", field));
  };
  constexpr auto kBounds = ErrorCode::out_of_bounds;
  refuses([](Editor& e) { e.header().meta_version = 2; }, ErrorCode::unsupported_version,
          "meta_version", extents);
  refuses([](Editor& e) { e.header().extent_count = 0xffffffff; }, kBounds, "extent_count",
          extents);
  refuses([](Editor& e) { e.header().extent_count = 0; }, kBounds, "extent_count", 0);
  refuses([&](Editor& e) { e.header().extent_count = static_cast<std::uint32_t>(extents - 1); },
          ErrorCode::inconsistent, "extent_count", extents - 1);
  refuses([](Editor& e) { e.header().source_length = 255; }, kBounds, "source_length", extents);
  refuses([](Editor& e) { e.header().source_length = ~0ull; }, ErrorCode::limit_exceeded,
          "source_length", extents);
  refuses([](Editor& e) { e.header().source_length = e.header().source_length - 1; }, kBounds,
          "extent", extents);
  refuses([](Editor& e) { e.extent(1).offset = 255; }, kBounds, "extent", extents);
  refuses([](Editor& e) { e.extent(1).offset = ~0ull; }, kBounds, "extent", extents);
  refuses([](Editor& e) { e.extent(1).length = 0; }, kBounds, "extent", extents);
  refuses([](Editor& e) { e.extent(1).length = ~0ull; }, kBounds, "extent", extents);
  refuses([](Editor& e) { e.header().source_checksum.bytes[0] ^= 1; }, ErrorCode::inconsistent,
          "source_checksum", extents);
}

BOOST_AUTO_TEST_SUITE_END()
