// Packed deltas: what comes out is the delta that was packed, byte for byte, and what was cut,
// damaged or made to mislead is refused. docs/format/packed.md.
#include <cstring>
#include <map>
#include <string>

#include "container/wrap/packed.h"
#include "format/constants.h"
#include "format/delta.h"
#include "format/packed.h"
#include "state/delta/check.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/compress.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(packed_delta)

namespace {

namespace fs = std::filesystem;

// Everything that a delta can hold: unchanged, listed, in steps, moved, whole, sparse, of low rank,
// in pieces of a region of all kinds, compressed or not, and connections.
SampleState sample(int step) {
  std::mt19937_64 random(7);
  SampleState state{.steps = 1000 + static_cast<std::uint64_t>(step),
                    .metadata = "{\"step\":" + std::to_string(step) + "}"};
  const Tensor weights = normal_tensor({60, 40}, random);
  Tensor listed = weights;
  Tensor moved = normal_tensor({20, 30}, random);
  Tensor low_rank = weights;
  std::map<DType, Tensor> stepped;
  for (const DType dtype : {DType::bf16, DType::f8_e4m3, DType::i8, DType::u16}) {
    Tensor& tensor = stepped[dtype] = random_tensor(dtype, {300}, random);
    const MutableByteSpan bytes = tensor.mutable_bytes();
    for (std::size_t i = 0; i < bytes.size(); i += 16)
      bytes[i] = static_cast<std::byte>(std::to_integer<int>(bytes[i]) + step);
  }
  if (step > 0) {
    listed.mutable_as<float>()[7] = static_cast<float>(step);
    for (float& value : moved.mutable_as<float>()) value *= 1 + 1e-3f * static_cast<float>(step);
    for (std::size_t i = 0; i < 2400; ++i)
      low_rank.mutable_as<float>()[i] +=
          static_cast<float>(step) * static_cast<float>(i / 40) * static_cast<float>(i % 40) / 99;
  }
  for (const char* name : {"layer.0", "layer.1", "a region with a name of more than 31 bytes"}) {
    auto& region = state.regions[name];
    region["same"] = {weights};
    region["listed"] = {listed};
    region["moved"] = {moved, Role::optimizer};
    region["low_rank"] = {low_rank};
    region["thresholds"] = {listed, Role::homeostatic};
    region["phase"] = {moved, Role::oscillator};
    region["v"] = {listed, Role::region_state};
    region["scalar"] = {Tensor::zeros(DType::f64, {})};
    for (const auto& [dtype, tensor] : stepped)
      region[std::string(name) + "." + std::string(dtype_name(dtype))] = {tensor};
    region["empty"] = {Tensor::zeros(DType::f32, {0, 3}), Role::bias};
    region["sparse"] = {listed.to_csr()};
    region["whole"] = {random_tensor(DType::u8, {100 + static_cast<std::uint64_t>(step)}, random)};
  }
  state.regions["none"];
  state.connections[{"layer.0", "layer.1"}] = listed;
  state.connections[{"layer.1", "layer.1"}] = weights;
  return state;
}

DeltaOptions packed() {
  DeltaOptions options{.save = {.timestamp = 1800000000, .work = {.threads = 1}}, .pack = true};
  options.loss.low_rank =
      LowRankOptions{.bits_per_element = 2, .include = {"low_rank"}, .min_elements = 1};
  return options;
}

struct Files {
  Files() { save_full(sample(0), base); }
  DeltaResult save(int step, DeltaOptions options = packed()) {
    return save_delta(sample(step), base, delta, std::move(options));
  }
  TemporaryFolder folder;
  fs::path base = folder / "base.thalia";
  fs::path delta = folder / "1.delta.thalia";
};

std::string contents_of(const std::string& file) {
  const ByteSpan bytes = as_byte_span(file);
  std::string out(container::packed_contents_length(bytes), '\0');
  container::unpack(bytes, std::as_writable_bytes(std::span(out)), {});
  return out;
}

bool is_refused(const std::string& file) {
  try {
    contents_of(file);
  } catch (const FormatError&) {
    return true;
  } catch (const IntegrityError&) {
    return true;
  } catch (const UnsupportedError&) {
    return true;
  }
  return false;
}

format::PackedHeader header_of(const std::string& file) {
  format::PackedHeader header;
  std::memcpy(&header, file.data(), sizeof header);
  return header;
}

std::string with_header(std::string file, const format::PackedHeader& header) {
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_was_packed_comes_out_byte_for_byte) {
  Files files;
  const DeltaResult result = files.save(1);
  BOOST_TEST(result.packed);
  BOOST_TEST(result.file_bytes == fs::file_size(files.delta));
  BOOST_TEST(container::begins_packed(as_byte_span(read_file(files.delta))));
  const fs::path plain = files.folder / "plain.delta.thalia";
  const WrapResult wrap = decompress_checkpoint(files.delta, plain);
  BOOST_TEST(wrap.input_bytes == result.file_bytes);
  BOOST_TEST(wrap.output_bytes == fs::file_size(plain));
  BOOST_TEST(wrap.output_bytes > 2 * result.file_bytes);
  // Neither is a loss of the other, and both are the file that the save says.
  for (const fs::path& path : {files.delta, plain}) {
    BOOST_TEST(verify_chain(path).ok());
    const ChainReader chain = ChainReader::open(path);
    BOOST_TEST((chain.reader().closing_checksum() == result.closing_checksum));
    BOOST_TEST(chain.reader().file_bytes() == result.identity.file_length);
  }
  const ChainReader left = ChainReader::open(files.delta);
  const ChainReader right = ChainReader::open(plain);
  for (std::uint32_t r = 0; r < left.reader().region_count(); ++r) {
    for (std::uint32_t t = 0; t < left.reader().region(r).tensor_count(); ++t)
      BOOST_TEST((left.read(left.reader().region(r).tensor(t)) ==
                  right.read(right.reader().region(r).tensor(t))));
  }
}

BOOST_AUTO_TEST_CASE(a_state_comes_back_through_packed_deltas_and_plain_ones) {
  Files files;
  DeltaOptions exact = packed();
  exact.loss = {};
  BOOST_TEST(files.save(1, exact).packed);
  check_chain(ChainReader::open(files.delta), sample(1));
  // Over a packed one, whose side data is brief: again packed, plain, and plain of what is equal.
  const fs::path second = files.folder / "2.delta.thalia";
  for (const bool pack : {true, false}) {
    for (const int step : {2, 1}) {
      exact.pack = pack;
      const DeltaResult result = save_delta(sample(step), files.delta, second, exact);
      BOOST_TEST(result.packed == pack);
      BOOST_TEST(verify_chain(second).ok());
      check_chain(ChainReader::open(second), sample(step));
      const fs::path full = files.folder / "full.thalia";
      resolve(second, full);
      check_chain(ChainReader::open(full), sample(step));
    }
  }
}

// The first bytes of steps are in the head alone, so that a head of other ones makes another file.
BOOST_AUTO_TEST_CASE(headers_of_steps_are_in_the_head) {
  Files files;
  DeltaOptions exact = packed();
  exact.loss = {};
  const DeltaResult result = files.save(1, exact);
  BOOST_TEST_REQUIRE(result.packed);
  BOOST_TEST(result.steps == 12u);
  const std::string file = read_file(files.delta);
  const std::string contents = contents_of(file);
  const Reader reader = Reader::open(files.delta);
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      const TensorView tensor = region.tensor(t);
      if (tensor.encoding() != Encoding::step_delta) continue;
      const std::string stored =
          contents.substr(format::kPageAlignment + tensor.stored_offset(), tensor.stored_bytes());
      BOOST_TEST(file.find(stored) == std::string::npos);
      BOOST_TEST(file.find(stored.substr(sizeof(format::StepDeltaHeader))) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_state_in_memory_is_a_base_whatever_digests_it_has) {
  Files files;
  DeltaOptions exact = packed();
  exact.loss = {};
  const DeltaResult first = files.save(1, exact);
  SavedState saved{.path = files.delta,
                   .identity = first.identity,
                   .state = state_source(sample(1)),
                   .digests = first.digests};
  const fs::path second = files.folder / "2.delta.thalia";
  for (const bool known : {true, false}) {
    if (!known) {
      for (TensorDigest& digest : saved.digests) digest.crc32 = 0;
    }
    for (const bool pack : {true, false}) {
      exact.pack = pack;
      write_delta(state_source(sample(2)), saved, second, exact);
      BOOST_TEST(verify_chain(second).ok());
      check_chain(ChainReader::open(second), sample(2));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_chain_that_is_turned_has_packed_deltas) {
  Files files;
  DeltaOptions exact = packed();
  exact.loss = {};
  files.save(1, exact);
  const RebaseResult result =
      rebase({files.delta}, {.save = {.output = {.durability = Durability::none}}});
  BOOST_TEST_REQUIRE(result.files.size() == 2u);
  BOOST_TEST(!read_wrapper(files.delta).has_value());
  BOOST_TEST_REQUIRE(read_wrapper(files.base).has_value());
  BOOST_TEST(read_wrapper(files.base)->packed);
  BOOST_TEST(result.files[1].bytes == fs::file_size(files.base));
  check_chain(ChainReader::open(files.delta), sample(1));
  check_chain(ChainReader::open(files.base), sample(0));
  BOOST_TEST(verify_chain(files.base).ok());
  // And back: what was packed is full again.
  rebase({files.base}, {.save = {.output = {.durability = Durability::none}}});
  check_chain(ChainReader::open(files.delta), sample(1));
  check_chain(ChainReader::open(files.base), sample(0));
  rebase({files.delta}, {.save = {.output = {.durability = Durability::none}}, .pack = false});
  BOOST_TEST(!read_wrapper(files.base).has_value());
  check_chain(ChainReader::open(files.base), sample(0));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_packed_or_does_not_pay_is_plain) {
  Files files;
  DeltaOptions options = packed();
  options.save.checksum = ChecksumType::sha256;
  BOOST_TEST(!files.save(1, options).packed);
  options = packed();
  options.save.sha256 = true;
  BOOST_TEST(!files.save(2, options).packed);
  // More than is made in memory.
  options = packed();
  options.save.work.memory_bytes = 4 << 20;
  SampleState large = sample(1);
  std::mt19937_64 random(1);
  large.regions["layer.0"]["large"] = {random_tensor(DType::u8, {5 << 20}, random)};
  BOOST_TEST(!save_delta(large, files.base, files.delta, options).packed);
  BOOST_TEST(verify_chain(files.delta).ok());
  // Mostly payload.
  options.save.work.memory_bytes = 16 << 20;
  BOOST_TEST(!save_delta(large, files.base, files.delta, options).packed);
  BOOST_TEST(verify_chain(files.delta).ok());
}

BOOST_AUTO_TEST_CASE(a_packed_delta_is_described_and_not_changed_in_place) {
  Files files;
  files.save(1);
  const auto info = read_wrapper(files.delta);
  BOOST_REQUIRE(info.has_value());
  BOOST_TEST(info->packed);
  BOOST_TEST(info->content_bytes == contents_of(read_file(files.delta)).size());
  BOOST_CHECK_THROW(Appender{files.delta}, UnsupportedError);
  // Readers take no packed delta in frames.
  const fs::path frames = files.folder / "1.delta.thalia.zst";
  BOOST_CHECK_THROW(compress_checkpoint(files.delta, frames), UnsupportedError);
  BOOST_TEST(!fs::exists(frames));
  BOOST_TEST(ChainReader::open(files.delta).disk_bytes() ==
             fs::file_size(files.delta) + fs::file_size(files.base));
  DecompressOptions options;
  options.input.limits.max_file_bytes = 1000;
  BOOST_CHECK_THROW(decompress_checkpoint(files.delta, files.folder / "out", options), FormatError);
  BOOST_TEST(!fs::exists(files.folder / "out"));
}

BOOST_AUTO_TEST_CASE(every_truncation_and_every_changed_byte_is_refused) {
  Files files;
  files.save(1);
  const std::string file = read_file(files.delta);
  const std::string contents = contents_of(file);
  // What follows the digests is payload, of which a few places are enough.
  for (std::size_t length = 0; length < file.size(); length += length < 4096 ? 1 : 997) {
    BOOST_TEST(is_refused(file.substr(0, length)), length);
    std::string changed = file;
    changed[length] = static_cast<char>(changed[length] ^ (1 << length % 8));
    // A few bits of a frame mean nothing.
    BOOST_TEST((is_refused(changed) || contents_of(changed) == contents), length);
  }
  BOOST_TEST(is_refused(file + "x"));
}

BOOST_AUTO_TEST_CASE(lengths_that_mislead_are_refused_before_anything_is_made) {
  Files files;
  files.save(1);
  const std::string file = read_file(files.delta);
  const format::PackedHeader header = header_of(file);
  for (const std::uint32_t length :
       {0u, 1u, 64u, 4096u, std::uint32_t(file.size()), header.contents_length - 1u,
        header.contents_length + 1u, header.contents_length + 4096u, format::kMaxPackedContents}) {
    format::PackedHeader changed = header;
    changed.contents_length = length;
    BOOST_TEST(is_refused(with_header(file, changed)), length);
  }
  for (const std::uint32_t length : {0u, 1u, header.frame_length - 1u, header.frame_length + 1u,
                                     std::uint32_t(file.size()), 0xFFFFFFFFu}) {
    format::PackedHeader changed = header;
    changed.frame_length = length;
    BOOST_TEST(is_refused(with_header(file, changed)), length);
  }
  for (const auto& [field, length] :
       {std::pair("contents_length", std::uint32_t{format::kMaxPackedContents + 1}),
        std::pair("contents_length", 0xFFFFFFFFu)}) {
    format::PackedHeader changed = header;
    changed.contents_length = length;
    BOOST_CHECK_EXCEPTION(
        container::packed_contents_length(as_byte_span(with_header(file, changed))), FormatError,
        says(ErrorCode::out_of_bounds, "wrapper", field, std::to_string(length).c_str()));
  }
  format::PackedHeader changed = header;
  changed.packed_version = 2;
  write_file(files.delta, with_header(file, changed));
  BOOST_CHECK_THROW(Reader::open(files.delta), UnsupportedError);
  BOOST_TEST(!verify(files.delta).ok());
  // A file that is longer than what it claims to stand for is not read to its end.
  changed = header;
  changed.contents_length = 4096;
  write_file(files.delta, with_header(file, changed));
  BOOST_CHECK_THROW(Reader::open(files.delta), FormatError);
}

BOOST_AUTO_TEST_SUITE_END()
