#include "thalia/state/tensor_value.h"

#include <array>
#include <atomic>
#include <optional>
#include <thread>
#include <vector>

#include "boost_test.h"
#include "support/bytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "thalia/reader.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(tensor_value)

namespace {

Tensor three() {
  return Tensor::copy_of<float>({3}, std::array<float, 3>{1, 2, 3});
}

}  // namespace

BOOST_AUTO_TEST_CASE(is_a_copy_of_vectors_arrays_and_spans) {
  const std::vector<float> numbers{1, 2, 3, 4};
  const std::array<float, 4> array{1, 2, 3, 4};
  const Tensor tensor = Tensor::copy_of({2, 2}, numbers);
  BOOST_TEST((tensor.dtype() == DType::f32));
  BOOST_TEST((tensor.shape() == Shape{2, 2}));
  BOOST_TEST((tensor == Tensor::copy_of({2, 2}, array)));
  BOOST_TEST((tensor == Tensor::copy_of({2, 2}, std::span<const float>(numbers))));
  BOOST_TEST((Tensor::copy_of({1}, std::vector<std::int64_t>{7}).dtype() == DType::i64));
  BOOST_CHECK_THROW(Tensor::copy_of({3}, numbers), UsageError);
}

BOOST_AUTO_TEST_CASE(default_is_dense_f32_without_elements) {
  const Tensor tensor;
  BOOST_TEST((tensor.shape() == Shape{0}));
  BOOST_TEST(tensor.element_count() == 0);
  BOOST_TEST(tensor.bytes().empty());
  BOOST_TEST(tensor.as<float>().empty());
}

BOOST_AUTO_TEST_CASE(zeros_are_zero_and_aligned_to_64) {
  const Tensor tensor = Tensor::zeros(DType::f64, {3, 5});
  BOOST_TEST(tensor.as<double>().size() == 15);
  for (const double x : tensor.as<double>()) BOOST_TEST(x == 0);
  BOOST_TEST(reinterpret_cast<std::uintptr_t>(tensor.bytes().data()) % 64 == 0);
}

BOOST_AUTO_TEST_CASE(scalar_has_one_element) {
  BOOST_TEST(Tensor::zeros(DType::f32, {}).as<float>().size() == 1);
}

BOOST_AUTO_TEST_CASE(copy_shares_bytes_until_one_is_changed) {
  Tensor a = three();
  const Tensor b = a;
  BOOST_TEST(a.bytes().data() == b.bytes().data());
  a.mutable_as<float>()[0] = 7;
  BOOST_TEST(a.bytes().data() != b.bytes().data());
  BOOST_TEST(a.as<float>()[0] == 7);
  BOOST_TEST(b.as<float>()[0] == 1);
}

// What only a build that watches threads can see: the flag orders nothing, so mutable_bytes() has
// to.
BOOST_AUTO_TEST_CASE(a_write_comes_after_the_reads_of_a_copy_that_another_thread_dropped) {
  Tensor a = three();
  std::atomic<bool> dropped{false};
  float read = 0;
  std::jthread other([&, copy = std::optional(a)]() mutable {
    read = copy->as<float>()[0];
    copy.reset();
    dropped.store(true, std::memory_order_relaxed);
  });
  while (!dropped.load(std::memory_order_relaxed)) std::this_thread::yield();
  a.mutable_as<float>()[0] = 7;
  other.join();
  BOOST_TEST(read == 1);
}

BOOST_AUTO_TEST_CASE(sole_owner_changes_in_place) {
  Tensor a = three();
  const auto* before = a.bytes().data();
  a.mutable_as<float>()[1] = 9;
  BOOST_TEST(a.bytes().data() == before);
}

BOOST_AUTO_TEST_CASE(borrowed_bytes_are_the_callers_and_never_changed) {
  const std::array<float, 2> values{1, 2};
  Tensor tensor = Tensor::borrow(DType::f32, {2}, as_byte_span(values));
  BOOST_TEST(static_cast<const void*>(tensor.bytes().data()) == values.data());
  tensor.mutable_as<float>()[0] = 5;
  BOOST_TEST(values[0] == 1);
  BOOST_TEST(tensor.as<float>()[0] == 5);
}

BOOST_AUTO_TEST_CASE(refuses_bytes_of_another_size) {
  const std::array<float, 2> values{1, 2};
  const auto& error = expect<UsageError>(
      [&] { Tensor::borrow(DType::f32, {3}, as_byte_span(values)); }, ErrorCode::size_mismatch);
  BOOST_TEST(error.context().value == "8 bytes");
  BOOST_TEST(error.context().bound == "12");
}

BOOST_AUTO_TEST_CASE(refuses_shapes_beyond_an_address_space) {
  expect<UsageError>([] { Tensor::zeros(DType::f64, {1ull << 61, 2}); }, ErrorCode::size_mismatch);
  expect<UsageError>([] { Tensor::zeros(DType::f64, {1ull << 60}); }, ErrorCode::size_mismatch);
}

BOOST_AUTO_TEST_CASE(typed_access_asks_for_the_own_type) {
  const Tensor tensor = three();
  expect<UsageError>([&] { tensor.as<double>(); }, ErrorCode::dtype_mismatch);
}

BOOST_AUTO_TEST_CASE(typed_access_refuses_a_borrowed_odd_address) {
  std::vector<std::byte> bytes(9);
  const Tensor tensor = Tensor::borrow(DType::f32, {2}, ByteSpan(bytes).subspan(1));
  expect<UsageError>([&] { tensor.as<float>(); }, ErrorCode::wrong_state);
}

BOOST_AUTO_TEST_CASE(raw_tensor_of_a_file_is_not_copied_and_outlives_the_reader) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const auto bytes = random_bytes(70'000, 3);
  {
    Writer writer(path);
    const RegionId region = writer.add_region({.name = "r"});
    writer.add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {70'000}}, bytes);
    writer.commit();
  }
  Tensor tensor;
  {
    const Reader reader = Reader::open(path);
    tensor = Tensor::from(reader.region("r").at("t"));
    BOOST_TEST(tensor.bytes().data() == reader.region("r").at("t").bytes().data());
  }
  BOOST_TEST((tensor == Tensor::borrow(DType::u8, {70'000}, bytes)));
  tensor.mutable_bytes()[0] ^= std::byte{1};
  BOOST_TEST((tensor.bytes()[0] == (bytes[0] ^ std::byte{1})));
}

BOOST_AUTO_TEST_CASE(compressed_tensor_of_a_file_is_decompressed_within_the_limit) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "a.thalia";
  const std::vector<std::byte> zeros(100'000);
  Writer writer(path, {.compression = {.codec = Codec::zstd}});
  const RegionId region = writer.add_region({.name = "r"});
  writer.add_tensor(region, {.name = "t", .dtype = DType::u8, .shape = {100'000}}, zeros);
  writer.commit();
  const Reader reader = Reader::open(path);
  const TensorView view = reader.region("r").at("t");
  BOOST_TEST((Tensor::from(view) == Tensor::borrow(DType::u8, {100'000}, zeros)));
  const auto& error = expect<FormatError>(
      [&] { Tensor::from(view, {.max_allocation_bytes = 99'999}); }, ErrorCode::limit_exceeded);
  BOOST_TEST(error.context().value == "100000");
}

BOOST_AUTO_TEST_SUITE_END()
