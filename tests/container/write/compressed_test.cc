// Chunks of every codec and filter, through files. docs/format/format.md, "Chunks".
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "container/write/same_as_sample.h"
#include "container/write/skewed_tensor.h"
#include "format/chunk.h"
#include "integrity/crc32.h"
#include "support/bytes.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/append.h"
#include "thalia/stream.h"
#include "thalia/verify.h"

using namespace thalia;
using namespace thalia::test;
using format::Filter;

BOOST_AUTO_TEST_SUITE(compressed)

namespace {

constexpr std::array kCodecs{Codec::zstd, Codec::lz4, Codec::plane_entropy,
                             Codec::packed_exponents};

SaveOptions with(Codec codec, std::uint32_t chunk_bytes) {
  SaveOptions options = steady_options();
  options.compression.codec = codec;
  options.compression.chunk_bytes = chunk_bytes;
  return options;
}

Sample sample_of(std::vector<SampleTensor> tensors) {
  return {.regions = {{{.name = "r"}, std::move(tensors)}}, .connections = {}};
}

// Odd numbers of elements, and of bytes where elements straddle them.
Sample every_dtype() {
  std::vector<SampleTensor> tensors;
  for (std::uint8_t code = 0; code < kDTypeCount; ++code) {
    const DType dtype{code};
    const std::string name(dtype_name(dtype));
    tensors.push_back(skewed_tensor(name, dtype, {3, 2001}, code));
    tensors.push_back(skewed_tensor(name + ".1", dtype, {1}, code));
    tensors.push_back(skewed_tensor(name + ".0", dtype, {0, 5}, code));
    if (dtype_is_packed(dtype)) continue;
    for (const bool wide : {false, true}) {
      const std::string form = wide ? ".wide" : ".narrow";
      tensors.push_back(csr_tensor(name + form + ".csr", dtype, {301, 17}, wide, code));
      tensors.push_back(coo_tensor(name + form + ".coo", dtype, {30, 10, 11}, wide, code));
    }
  }
  return sample_of(std::move(tensors));
}

// 8 chunks of floats, through planes where the codec is one for bytes.
class EightChunks {
 public:
  explicit EightChunks(Codec codec)
      : tensor_(skewed_tensor("t", DType::f32, {8 * 1024})), file_([&] {
          const TemporaryFolder folder;
          save(folder / "f", sample_of({tensor_}), with(codec, 4096));
          return read_file(folder / "f");
        }()) {
    BOOST_TEST_REQUIRE(file_.tensor("t").chunk_count == 8u);
  }

  const SampleTensor& tensor() const { return tensor_; }
  EditableFile& file() { return file_; }
  std::byte* chunk(std::uint32_t i) {
    return reinterpret_cast<std::byte*>(&file_.bytes()[file_.chunk(i).offset]);
  }

 private:
  SampleTensor tensor_;
  EditableFile file_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_dtype_comes_back_from_every_codec_in_chunks_of_every_size) {
  const Sample sample = every_dtype();
  for (const Codec codec : kCodecs) {
    for (const std::uint32_t chunk_bytes : {4096u, 12'288u, 1u << 20})
      check_round_trip(sample, with(codec, chunk_bytes));
  }
}

BOOST_AUTO_TEST_CASE(levels_and_threads_come_back_too) {
  const Sample sample = every_dtype();
  for (const auto& [codec, level] : {std::pair(Codec::zstd, 22), std::pair(Codec::lz4, 12)}) {
    SaveOptions options = with(codec, 8192);
    options.compression.level = level;
    options.work.threads = 3;
    check_round_trip(sample, options);
  }
}

BOOST_AUTO_TEST_CASE(equal_input_gives_equal_bytes_on_any_number_of_threads) {
  const Sample sample = every_dtype();
  const TemporaryFolder folder;
  for (const Codec codec : kCodecs) {
    SaveOptions options = with(codec, 4096);
    save(folder / "a", sample, options);
    options.work.threads = 3;
    save(folder / "b", sample, options);
    BOOST_TEST((read_file(folder / "a") == read_file(folder / "b")));
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_tells_what_its_chunks_are_stored_with) {
  const TemporaryFolder folder;
  for (const Codec codec : kCodecs) {
    SampleTensor half = skewed_tensor("half", DType::u8, {8192});
    std::ranges::copy(random_bytes(4096), half.payload.begin());
    save(folder / "f",
         sample_of({skewed_tensor("whole", DType::u8, {8192}), half,
                    dense_tensor("noise", DType::u8, {8192}), skewed_tensor("e", DType::f32, {0})}),
         with(codec, 4096));
    const Reader reader = Reader::open(folder / "f");
    BOOST_TEST((reader.tensor("noise").codecs() == std::vector{Codec::none}));
    BOOST_TEST((reader.tensor("e").codecs() == std::vector{Codec::none}));
    if (codec == Codec::lz4) continue;  // has no code shorter than a byte
    BOOST_TEST(reader.tensor("whole").codecs().size() == 1u);
    BOOST_TEST((reader.tensor("whole").codecs().front() != Codec::none));
    BOOST_TEST((reader.tensor("half").codecs().front() == Codec::none));
    BOOST_TEST(reader.tensor("half").codecs().size() == 2u);
  }
}

BOOST_AUTO_TEST_CASE(a_chunk_entry_of_no_codec_is_refused_where_codecs_are_asked_for) {
  EightChunks eight(Codec::zstd);
  eight.file().chunk(5).codec = Codec{kCodecCount};
  eight.file().reseal();
  const DamagedFile damaged(eight.file().bytes());
  const Reader reader = Reader::open(damaged.path());
  BOOST_CHECK_EXCEPTION(reader.tensor("t").codecs(), FormatError,
                        says(ErrorCode::bad_value, "codec", "'t'"));
}

BOOST_AUTO_TEST_CASE(compressing_makes_no_file_larger) {
  std::vector<SampleTensor> tensors;
  for (std::uint64_t size : {1u, 20u, 60u, 5000u, 70'000u, 200'000u})
    tensors.push_back(dense_tensor("noise." + std::to_string(size), DType::u8, {size}));
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64, DType::i8, DType::i32}) {
    for (const std::uint64_t size : {1u, 7u, 20u, 60u, 3000u, 40'000u}) {
      const std::string name = std::string(dtype_name(dtype)) + std::to_string(size);
      tensors.push_back(dense_tensor(name, dtype, {size}));
      tensors.push_back(skewed_tensor(name + ".skewed", dtype, {size}));
      tensors.push_back(csr_tensor(name + ".csr", dtype, {size / 7 + 1, 7}));
    }
  }
  const TemporaryFolder folder;
  for (SampleTensor& tensor : tensors) {
    const std::string name = tensor.spec.name;
    const Sample sample = sample_of({std::move(tensor)});
    const std::uint64_t raw = save(folder / "f", sample).file_bytes;
    for (const Codec codec : kCodecs)
      BOOST_TEST(save(folder / "f", sample, with(codec, 4096)).file_bytes <= raw, name);
  }
}

BOOST_AUTO_TEST_CASE(appends_store_and_compact_keeps_chunks_of_every_codec) {
  const std::vector<SampleTensor> tensors{skewed_tensor("w", DType::bf16, {20'000}, 7),
                                          skewed_tensor("s", DType::f32, {30, 100}, 8),
                                          csr_tensor("csr", DType::f64, {900, 5})};
  const TemporaryFolder folder;
  for (const Codec codec : kCodecs) {
    save(folder / "f", every_dtype(), with(codec, 4096));
    Appender appender(folder / "f", {.compression = {.codec = codec, .chunk_bytes = 8192},
                                     .timestamp = 1,
                                     .change = {.output = {.durability = Durability::none}}});
    const RegionId more = appender.add_region({.name = "more"});
    for (const SampleTensor& tensor : tensors)
      appender.add_tensor(more, tensor.spec, tensor.payload);
    appender.commit();
    const auto check = [&] {
      BOOST_TEST(verify(folder / "f").ok());
      const Reader reader = Reader::open(folder / "f");
      const RegionView region = reader.region("more");
      for (const SampleTensor& tensor : tensors) {
        check_same(region.at(tensor.spec.name), tensor);
        if (codec != Codec::lz4) BOOST_TEST(!region.at(tensor.spec.name).is_raw());
      }
    };
    check();
    compact(folder / "f", {.output = {.durability = Durability::none}});
    check();
  }
}

BOOST_AUTO_TEST_CASE(damage_is_found_before_anything_is_decoded) {
  for (const Codec codec : kCodecs) {
    EightChunks eight(codec);
    std::fill_n(eight.chunk(2), std::uint32_t{eight.file().chunk(2).stored_length},
                std::byte{0xFF});  // no stream of any codec
    const DamagedFile damaged(eight.file().bytes());
    const auto is_mismatch = says(ErrorCode::checksum_mismatch, "crc32", "'t'");
    for (const Access access : {Access::mapped, Access::copied}) {
      const Reader reader = Reader::open(
          damaged.path(), {.input = {.access = access}, .verification = Verification::off});
      std::vector<std::byte> out(eight.tensor().payload.size());
      BOOST_CHECK_EXCEPTION(reader.tensor("t").read(out), IntegrityError, is_mismatch);
      const SliceRange range[] = {{2500, 2501}};
      BOOST_CHECK_EXCEPTION(reader.tensor("t").read_slice(range, MutableByteSpan(out).first(4)),
                            IntegrityError, is_mismatch);
      StreamReader stream(reader);
      BOOST_CHECK_EXCEPTION(while (stream.next()){}, IntegrityError, is_mismatch);
    }
  }
}

// The chunk's CRC-32 holds: the decoder has the word.
BOOST_AUTO_TEST_CASE(forged_chunks_are_refused_or_decode_to_their_length) {
  for (const Codec codec : kCodecs) {
    EightChunks eight(codec);
    const std::uint32_t length = eight.file().chunk(0).stored_length;
    std::vector<std::byte> out(eight.tensor().payload.size());
    unsigned refused = 0;
    for (std::uint32_t at = 0; at < length; at += at < 64 ? 1 : 61) {
      eight.chunk(0)[at] ^= std::byte{0x55};
      eight.file().chunk(0).crc32 = integrity::crc32({eight.chunk(0), length});
      const DamagedFile damaged(eight.file().bytes());
      const Reader reader = Reader::open(damaged.path(), {.verification = Verification::off});
      try {
        reader.tensor("t").read(out);
        BOOST_TEST(
            std::equal(out.begin() + 4096, out.end(), eight.tensor().payload.begin() + 4096));
      } catch (const CompressionError&) {
        ++refused;
      }
      eight.chunk(0)[at] ^= std::byte{0x55};
    }
    BOOST_TEST(refused > 0u);
  }
}

BOOST_AUTO_TEST_CASE(a_slice_reads_no_chunk_beyond_its_ends) {
  for (const Codec codec : kCodecs) {
    EightChunks eight(codec);
    for (const auto& [begin, end] : {std::pair(1023u, 1025u), std::pair(1500u, 5000u),
                                     std::pair(2048u, 3072u), std::pair(9u, 8192u)}) {
      DamagedFile damaged(eight.file().bytes());
      for (std::uint32_t i = 0; i < 8; ++i) {
        if (i >= begin / 1024 && i <= (end - 1) / 1024) continue;
        const format::ChunkEntry& chunk = eight.file().chunk(i);
        damaged.overwrite(chunk.offset, std::string(chunk.stored_length, 'x'));
      }
      const Reader reader = Reader::open(damaged.path(), {.verification = Verification::off});
      const SliceRange range[] = {{begin, end}};
      std::vector<std::byte> out(4 * (end - begin));
      reader.tensor("t").read_slice(range, out);
      BOOST_TEST(
          same_bytes(out, ByteSpan(eight.tensor().payload).subspan(4 * begin, 4 * (end - begin))));
    }
  }
}

BOOST_AUTO_TEST_CASE(floats_are_stored_in_planes_and_index_arrays_as_differences) {
  const TemporaryFolder folder;
  SampleTensor csr = csr_tensor("csr", DType::f32, {30'000, 4}, true);
  save(folder / "f",
       sample_of({skewed_tensor("a", DType::bf16, {9000}), skewed_tensor("b", DType::f32, {9000}),
                  skewed_tensor("c", DType::f64, {9000}), csr}),
       with(Codec::zstd, 1 << 16));
  EditableFile file(read_file(folder / "f"));
  const auto filter_of = [&](const char* name) {
    return Filter{file.chunk(file.tensor(name).first_chunk).filter};
  };
  BOOST_TEST((filter_of("a") == Filter::byte_planes_2));
  BOOST_TEST((filter_of("b") == Filter::byte_planes_4));
  BOOST_TEST((filter_of("c") == Filter::byte_planes_8));
  BOOST_TEST((filter_of("csr") == Filter::difference_planes_8));
}

BOOST_AUTO_TEST_SUITE_END()
