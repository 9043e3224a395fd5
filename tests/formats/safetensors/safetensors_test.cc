#include "thalia/formats/safetensors.h"

#include <algorithm>
#include <random>
#include <string>

#include "boost_test.h"
#include "formats/samples.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/error.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(safetensors)

namespace {

std::optional<SafetensorsMetadata> metadata_of(const SafetensorsFile& file) {
  return file.has_metadata() ? std::optional(file.metadata()) : std::nullopt;
}

// The message that saving these is refused with; nothing may be left behind.
std::string refusal(std::vector<NamedArray> tensors,
                    const std::optional<SafetensorsMetadata>& metadata = std::nullopt) {
  const TemporaryFolder folder;
  try {
    save_safetensors(folder / "out", std::move(tensors), metadata,
                     {.durability = Durability::none});
    return "saved";
  } catch (const Error& error) {
    BOOST_TEST(list_folder(folder.path()).empty());
    return std::string(error_code_name(error.code())) + ": " + error.message();
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(rewrites_every_file_of_the_reference_byte_for_byte) {
  const TemporaryFolder folder;
  std::mt19937 random(1);
  for (const char* name : {"dtypes", "names", "metadata", "metadata_empty", "ranks", "none"}) {
    BOOST_TEST_CONTEXT(name) {
      const auto path = golden(std::string(name) + ".safetensors");
      const SafetensorsFile file = SafetensorsFile::open(path);
      std::vector<NamedArray> shuffled = file.tensors();
      std::shuffle(shuffled.begin(), shuffled.end(), random);
      const auto bytes = save_safetensors(folder / "out", shuffled, metadata_of(file));
      BOOST_TEST(bytes == file.file_bytes());
      BOOST_TEST((read_file(folder / "out") == read_file(path)));
    }
  }
}

BOOST_AUTO_TEST_CASE(keeps_every_dtype_rank_and_empty_shape) {
  std::vector<OwnedTensor> tensors;
  for (const DType dtype : safetensors_dtypes()) {
    const std::string name(dtype_name(dtype));
    // Eight elements in the last dimension are whole bytes of every dtype.
    std::vector<std::uint64_t> extents;
    for (unsigned rank = 1; rank <= Shape::kMaxRank; ++rank) {
      extents.assign(rank, rank > 5 ? 1 : 2);
      extents.back() = 8;
      tensors.push_back(make_tensor(name + std::to_string(rank), dtype, Shape(extents)));
      extents.front() = 0;
      tensors.push_back(make_tensor(name + std::to_string(rank) + "e", dtype, Shape(extents)));
    }
    if (!dtype_is_packed(dtype)) tensors.push_back(make_tensor(name + "0", dtype, {}));
  }
  const TemporaryFolder folder;
  save_safetensors(folder / "out", borrow(tensors));
  const SafetensorsFile file = SafetensorsFile::open(folder / "out");
  BOOST_TEST(file.tensors().size() == tensors.size());
  for (const OwnedTensor& tensor : tensors) {
    const auto found = std::ranges::find(file.tensors(), tensor.name, &NamedArray::name);
    BOOST_TEST_REQUIRE((found != file.tensors().end()));
    BOOST_TEST((found->dtype == tensor.dtype));
    BOOST_TEST((found->shape == tensor.shape));
    BOOST_TEST(same_bytes(found->bytes, tensor.bytes));
  }
}

BOOST_AUTO_TEST_CASE(a_view_outlives_nothing_but_its_file_object) {
  const TemporaryFolder folder;
  const OwnedTensor tensor = make_tensor("w", DType::f32, {1000});
  save_safetensors(folder / "out", borrow({tensor}));
  SafetensorsFile copy = [&] {
    const SafetensorsFile file = SafetensorsFile::open(folder / "out");
    return file;
  }();
  std::filesystem::remove(folder / "out");
  BOOST_TEST(same_bytes(copy.tensors()[0].bytes, tensor.bytes));
}

BOOST_AUTO_TEST_CASE(large_and_small_payloads_land_at_their_offsets) {
  std::vector<OwnedTensor> tensors;
  for (unsigned i = 0; i < 40; ++i) {
    tensors.push_back(make_tensor("t" + std::to_string(i), DType::u8,
                                  {i % 7 == 0   ? (1u << 20) + i
                                   : i % 3 == 0 ? 300'000
                                                : i}));
  }
  const TemporaryFolder folder;
  save_safetensors(folder / "out", borrow(tensors), SafetensorsMetadata{{"a", "b"}});
  const SafetensorsFile file = SafetensorsFile::open(folder / "out");
  for (const OwnedTensor& tensor : tensors) {
    const auto found = std::ranges::find(file.tensors(), tensor.name, &NamedArray::name);
    BOOST_TEST(same_bytes(found->bytes, tensor.bytes));
  }
  std::string memory;
  const auto room = [&](std::uint64_t bytes) {
    memory.resize(bytes);
    return std::as_writable_bytes(std::span(memory));
  };
  serialize_safetensors(borrow(tensors), SafetensorsMetadata{{"a", "b"}}, room);
  BOOST_TEST((memory == read_file(folder / "out")));
  BOOST_CHECK_THROW(serialize_safetensors({{.name = "a", .shape = {2}}}, {}, room), UsageError);
}

BOOST_AUTO_TEST_CASE(an_error_names_the_file) {
  const TemporaryFolder folder;
  write_file(folder / "bad", "123");
  BOOST_CHECK_EXCEPTION(
      SafetensorsFile::open(folder / "bad"), FormatError,
      [&](const FormatError& error) { return error.context().path == (folder / "bad").string(); });
  BOOST_CHECK_THROW(SafetensorsFile::open(folder / "absent"), IoError);
}

BOOST_AUTO_TEST_CASE(refuses_what_the_format_lacks) {
  for (const DType dtype :
       {DType::i4, DType::u4, DType::i2, DType::u2, DType::ternary, DType::binary, DType::c128}) {
    BOOST_TEST(refusal(borrow({make_tensor("w", dtype, {8})})) ==
               "unsupported_feature: safetensors has no such dtype");
  }
  BOOST_TEST(refusal(borrow({make_tensor("w", DType::f4_e2m1, {3})})) ==
             "unsupported_feature: safetensors needs whole bytes, this many f4_e2m1 elements are "
             "none");
  BOOST_TEST(refusal(borrow({make_tensor("w", DType::u8, {~0ull, 2, 0})})) ==
             "unsupported_feature: safetensors has no shape whose extents multiply past 2^64 - 1 "
             "bits");
}

BOOST_AUTO_TEST_CASE(refuses_the_callers_mistakes) {
  const OwnedTensor w = make_tensor("w", DType::f32, {2});
  BOOST_TEST(refusal(borrow({w, w})) == "duplicate: two tensors have this name");
  // If they have different dtypes, they are not neighbours in the file.
  BOOST_TEST(
      refusal(borrow({w, make_tensor("x", DType::u8, {1}), make_tensor("w", DType::u8, {1})})) ==
      "duplicate: two tensors have this name");
  const std::vector<OwnedTensor> owned = {w};
  auto short_payload = borrow(owned);
  short_payload[0].bytes = short_payload[0].bytes.first(7);
  BOOST_TEST(refusal(short_payload) ==
             "size_mismatch: payload of another size than dtype and shape ask for");
  BOOST_TEST(refusal(borrow({make_tensor("__metadata__", DType::f32, {2})})) ==
             "bad_argument: safetensors keeps this name for itself");
  BOOST_TEST(refusal(borrow({make_tensor("\xff", DType::f32, {2})})) ==
             "bad_argument: the name is not UTF-8");
  BOOST_TEST(refusal({}, SafetensorsMetadata{{"a", "1"}, {"a", "2"}}) ==
             "duplicate: two of this key");
  BOOST_TEST(refusal({}, SafetensorsMetadata{{"a", "\xff"}}) == "bad_argument: not UTF-8");
}

BOOST_AUTO_TEST_CASE(refuses_a_header_that_readers_would_refuse) {
  BOOST_TEST(refusal({}, SafetensorsMetadata{{"a", std::string(100'000'001, 'x')}}) ==
             "unsupported_feature: readers of safetensors refuse a header of this many bytes");
}

BOOST_AUTO_TEST_CASE(replaces_a_file_only_when_all_is_written) {
  const TemporaryFolder folder;
  write_file(folder / "out", "old");
  const std::vector<OwnedTensor> owned(2, make_tensor("a", DType::f32, {2}));
  auto tensors = borrow(owned);
  BOOST_CHECK_THROW(save_safetensors(folder / "out", tensors), UsageError);
  BOOST_TEST(read_file(folder / "out") == "old");
  tensors.pop_back();
  save_safetensors(folder / "out", tensors);
  BOOST_TEST(SafetensorsFile::open(folder / "out").tensors().size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
