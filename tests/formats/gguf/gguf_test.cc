// Reading GGUF files: those of the Python package gguf, and files that no program should write.
#include "thalia/formats/gguf.h"

#include <cmath>
#include <limits>
#include <string>

#include "boost_test.h"
#include "formats/gguf/files.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/formats/any_file.h"

BOOST_AUTO_TEST_SUITE(gguf)

namespace {

using namespace thalia;
using test::bytes_of;
using test::text_of;
using test::gguf::Bytes;
using test::gguf::from_text;
using test::gguf::start;
using test::gguf::vector_path;

template <typename T>
bool holds(const GgufFile& file, const char* key, const T& expected) {
  const GgufValue* const value = file.find(key);
  return value != nullptr && *value == GgufValue(expected);
}
template <typename T>
bool holds_array(const GgufFile& file, const char* key, const std::vector<T>& expected) {
  return holds(file, key, GgufArray(expected));
}

bool reads_whole(const std::string& bytes) {
  ReadLimits limits;
  limits.max_allocation_bytes = 1 << 20;
  try {
    const GgufFile file = from_text(bytes, limits);
    for (const GgufTensor& tensor : file.tensors()) {
      BOOST_TEST(test::same_bytes(file.read(tensor.name).bytes(), tensor.bytes));
      if (ggml_type_facts(tensor.type)->dequantizes)
        static_cast<void>(file.dequantize(tensor.name));
    }
    return true;
  } catch (const FormatError&) {
  } catch (const UnsupportedError&) {
  }
  return false;
}

// One f32 tensor "w" of 8 elements after one key/value.
Bytes whole_file() {
  return start(1, 1)
      .text("k")
      .u32(4)
      .u32(7)
      .tensor("w", {4, 2}, 0, 0)
      .pad()
      .raw(std::string(32, '\1'));
}

}  // namespace

BOOST_AUTO_TEST_CASE(values_of_every_type_are_read_in_order) {
  const GgufFile file = GgufFile::open(vector_path("key_values.gguf"));
  BOOST_TEST(file.version() == 3u);
  BOOST_TEST(file.alignment() == 64u);
  BOOST_TEST(file.file_bytes() == 2048u);
  BOOST_TEST(file.unused_bytes() == 0u);
  BOOST_TEST(file.key_values().size() == 26u);
  BOOST_TEST(file.key_values().front().key == "general.architecture");
  BOOST_TEST(file.key_values().back().key == "general.alignment");
  BOOST_TEST(holds(file, "general.architecture", std::string("test")));
  BOOST_TEST(holds(file, "a.u8", std::uint8_t{255}));
  BOOST_TEST(holds(file, "a.i8", std::int8_t{-128}));
  BOOST_TEST(holds(file, "a.u16", std::uint16_t{65535}));
  BOOST_TEST(holds(file, "a.i16", std::int16_t{-32768}));
  BOOST_TEST(holds(file, "a.u32", std::uint32_t{4294967295u}));
  BOOST_TEST(holds(file, "a.i32", std::numeric_limits<std::int32_t>::min()));
  BOOST_TEST(holds(file, "a.f32", 0.1f));
  BOOST_TEST(holds(file, "a.true", true));
  BOOST_TEST(holds(file, "a.false", false));
  BOOST_TEST(holds(file, "a.string", std::string("grüß\ndich")));
  BOOST_TEST(holds(file, "a.u64", std::numeric_limits<std::uint64_t>::max()));
  BOOST_TEST(holds(file, "a.i64", std::numeric_limits<std::int64_t>::min()));
  BOOST_TEST(holds(file, "a.f64", 0.1));
  BOOST_TEST(std::isnan(std::get<float>(*file.find("a.nan"))));
  BOOST_TEST(std::signbit(std::get<float>(*file.find("a.minus_zero"))));
  BOOST_TEST(holds(file, "a.minus_infinity", -std::numeric_limits<double>::infinity()));
  BOOST_TEST(holds_array<std::string>(file, "b.strings", {"", "a", "▁the"}));
  BOOST_TEST(holds_array<std::int32_t>(file, "b.i32", {1, -2, 3}));
  BOOST_TEST(holds_array<float>(
      file, "b.f32",
      {0.5f, -std::numeric_limits<float>::denorm_min(), std::numeric_limits<float>::max()}));
  BOOST_TEST(holds_array<bool>(file, "b.bool", {true, false}));
  BOOST_TEST(holds_array<std::string>(file, "b.bytes", {"\xff\xfe", "ok"}));
  BOOST_TEST(holds_array<std::uint64_t>(file, "b.u64", {(1ull << 53) + 1, UINT64_MAX}));
  BOOST_TEST(holds_array<double>(file, "b.f64", {0.1, 1e300}));
  BOOST_TEST(holds(file, "c.not_utf8",
                   std::string("\x80"
                               "abc")));
  BOOST_TEST(file.find("a") == nullptr);
  BOOST_TEST(gguf_type_name(*file.find("b.strings")) == "string[]");
  BOOST_TEST(gguf_type_name(*file.find("a.false")) == "bool");
}

BOOST_AUTO_TEST_CASE(elements_are_views_in_the_mapping) {
  const GgufFile file = GgufFile::open(vector_path("key_values.gguf"));
  BOOST_TEST(file.tensors().size() == 11u);
  const Tensor f32 = file.read("t.float32");
  BOOST_TEST((f32.dtype() == DType::f32 && f32.shape() == Shape({2, 3})));
  BOOST_TEST(f32.bytes().data() == file.tensor("t.float32").bytes.data());
  for (unsigned i = 0; i < 6; ++i) BOOST_TEST(f32.as<float>()[i] == static_cast<float>(i));
  BOOST_TEST(file.read("t.float64").as<double>()[5] == 7.0);
  BOOST_TEST(file.read("t.int8").as<std::int8_t>()[0] == 3);
  BOOST_TEST(file.read("t.int16").as<std::int16_t>()[0] == 4);
  BOOST_TEST(file.read("t.int32").as<std::int32_t>()[0] == 5);
  BOOST_TEST(file.read("t.int64").as<std::int64_t>()[5] == 11);
  BOOST_TEST((file.read("t.float16").dtype() == DType::f16));
  const Tensor bf16 = file.read("t.bfloat16");
  BOOST_TEST((bf16.dtype() == DType::bf16 && bf16.shape() == Shape({1, 3})));
  BOOST_TEST((file.read("t.scalar").shape() == Shape{}));
  BOOST_TEST(file.read("t.scalar").as<float>()[0] == 7.0f);
  BOOST_TEST((file.read("t.empty").shape() == Shape({0, 3})));
  BOOST_TEST((file.read("t.last").shape() == Shape({1, 1, 1, 5})));
  BOOST_TEST(file.tensor("t.last").offset % 64 == 0u);
  // What needs no restoring is handed out as it is.
  BOOST_TEST(file.dequantize("t.float32").bytes().data() == f32.bytes().data());
  BOOST_CHECK_EXCEPTION(file.read("t.float23"), UsageError,
                        test::says(ErrorCode::not_found, "t.float32", "key_values.gguf"));
}

BOOST_AUTO_TEST_CASE(blocks_are_bytes_by_rows) {
  const GgufFile file = GgufFile::open(vector_path("blocks.gguf"));
  const GgufTensor& tensor = file.tensor("Q4_K");
  BOOST_TEST((tensor.type == GgmlType::q4_k && tensor.shape == Shape({2, 512})));
  const Tensor blocks = file.read("Q4_K");
  BOOST_TEST((blocks.dtype() == DType::u8 && blocks.shape() == Shape({2, 288})));
  BOOST_TEST(blocks.bytes().data() == tensor.bytes.data());
}

BOOST_AUTO_TEST_CASE(a_tensor_keeps_its_file_open) {
  const Tensor kept = GgufFile::open(vector_path("key_values.gguf")).read("t.float32");
  BOOST_TEST(kept.as<float>()[5] == 5.0f);
}

BOOST_AUTO_TEST_CASE(files_read_into_memory_are_the_same) {
  ReadOptions options;
  options.input.access = Access::copied;
  const GgufFile file = GgufFile::open(vector_path("key_values.gguf"), options);
  BOOST_TEST(file.read("t.int64").as<std::int64_t>()[5] == 11);
}

BOOST_AUTO_TEST_CASE(version_2_is_read_as_version_3) {
  std::string bytes = whole_file().bytes;
  bytes[4] = 2;
  BOOST_TEST(from_text(bytes).version() == 2u);
  BOOST_TEST(reads_whole(bytes));
}

BOOST_AUTO_TEST_CASE(other_versions_and_byte_orders_are_refused_by_name) {
  const auto refused = [](std::uint32_t version, const char* what) {
    BOOST_CHECK_EXCEPTION(from_text(start(0, 0, version).bytes), UnsupportedError,
                          test::says(ErrorCode::unsupported_version, what, "test.gguf"));
  };
  refused(0, "expected 2 or 3");
  refused(1, "version 1");
  refused(4, "expected 2 or 3");
  refused(3u << 24, "big-endian");
}

BOOST_AUTO_TEST_CASE(a_file_without_tensors_may_end_with_its_header) {
  BOOST_TEST(reads_whole(start(0, 0).bytes));
  BOOST_TEST(reads_whole(start(0, 0).pad().bytes));
  BOOST_TEST(from_text(start(0, 0).pad().raw("more").bytes).unused_bytes() == 4u);
}

BOOST_AUTO_TEST_CASE(the_last_tensor_needs_no_padding_behind_it) {
  const Bytes file = start(1, 0).tensor("w", {3}, 0, 0).pad().raw(std::string(12, '\1'));
  BOOST_TEST(reads_whole(file.bytes));
  BOOST_TEST(from_text(file.bytes).unused_bytes() == 0u);
}

BOOST_AUTO_TEST_CASE(gaps_and_another_order_are_read_and_counted) {
  const Bytes file = start(2, 0)
                         .tensor("late", {8}, 0, 96)
                         .tensor("early", {8}, 0, 0)
                         .pad()
                         .raw(std::string(128, '\1'));
  const GgufFile read = from_text(file.bytes);
  BOOST_TEST(read.tensors().front().name == "late");
  BOOST_TEST(read.tensors()[0].offset == read.tensors()[1].offset + 96);
  BOOST_TEST(read.unused_bytes() == 64u);
}

BOOST_AUTO_TEST_CASE(elements_at_odd_addresses_are_copied) {
  Bytes file = start(2, 1)
                   .text("general.alignment")
                   .u32(4)
                   .u32(1)
                   .tensor("bb", {1}, 24, 0)
                   .tensor("w", {2}, 0, 1)
                   .raw("\1");
  const float numbers[] = {1.5f, -2.0f};
  file.raw(text_of(as_byte_span(numbers)));
  const GgufFile read = from_text(file.bytes);
  BOOST_TEST(read.alignment() == 1u);
  const Tensor tensor = read.read("w");
  BOOST_TEST(tensor.as<float>()[0] == 1.5f);
  BOOST_TEST(tensor.as<float>()[1] == -2.0f);

  // A conversion borrows what is in place, and takes all else a piece at a time.
  const test::TemporaryFolder folder;
  test::write_file(folder / "odd.gguf", file.bytes);
  const AnyFile odd = open_any(folder / "odd.gguf");
  BOOST_TEST(odd.tensors()[1].in_place == (*odd.tensors()[1].offset % 4 == 0));
  BOOST_TEST(odd.tensors()[0].in_place);
  BOOST_TEST(*odd.tensors()[1].offset % 4 != 0u);
}

BOOST_AUTO_TEST_CASE(no_truncated_file_is_read) {
  for (const char* const name : {"key_values.gguf", "blocks.gguf"}) {
    const std::string whole = test::read_file(vector_path(name));
    BOOST_TEST(reads_whole(whole));
    const GgufFile file = from_text(whole);
    std::uint64_t end = 0;
    for (const GgufTensor& tensor : file.tensors())
      end = std::max(end, tensor.offset + tensor.bytes.size());
    for (std::size_t length = 0; length < end; ++length)
      if (length < 2048 || length % 61 == 0)
        BOOST_TEST(!reads_whole(whole.substr(0, length)), length);
    BOOST_TEST(reads_whole(whole.substr(0, end)));
  }
}

// There are no checksums, so a flip may go unseen: nothing worse may come of it.
BOOST_AUTO_TEST_CASE(every_flipped_byte_of_a_header_is_survived) {
  for (const char* const name : {"key_values.gguf", "blocks.gguf"}) {
    const std::string whole = test::read_file(vector_path(name));
    const std::size_t header = from_text(whole).tensors().front().offset;
    unsigned read = 0, tried = 0;
    for (std::size_t i = 0; i < header; ++i)
      for (const int mask : {0x01, 0x80, 0xff}) {
        std::string damaged = whole;
        damaged[i] = static_cast<char>(damaged[i] ^ mask);
        read += reads_whole(damaged) ? 1u : 0u;
        ++tried;
      }
    BOOST_TEST(read < tried);
  }
}

BOOST_AUTO_TEST_SUITE_END()
