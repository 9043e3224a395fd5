// diff() with values.
#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "boost_test.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/error.h"
#include "thalia/state/delta.h"
#include "thalia/state/diff.h"
#include "thalia/state/quantization.h"
#include "thalia/writer.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(diff_values)

namespace {

struct Side {
  TensorSpec spec;
  std::vector<std::byte> bytes;
};

template <typename T>
Side dense(const std::vector<T>& values, Shape shape = {}) {
  if (shape.rank() == 0) shape = {values.size()};
  const ByteSpan bytes = as_byte_span(values);
  return {{.dtype = DTypeOf<T>::value, .shape = shape}, {bytes.begin(), bytes.end()}};
}

Side packed(DType dtype, const std::vector<std::uint8_t>& values, std::uint64_t count) {
  const ByteSpan bytes = as_byte_span(values);
  return {{.dtype = dtype, .shape = {count}}, {bytes.begin(), bytes.end()}};
}

// The non-zero elements of a matrix, or any tensor, given densely.
template <typename Index, typename T>
Side sparse(Encoding encoding, const std::vector<T>& values, const Shape& shape) {
  std::vector<std::vector<Index>> coordinates(shape.rank());
  std::vector<Index> row_pointers{0};
  std::vector<T> stored;
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    if (values[i] != T{}) {
      std::uint64_t rest = i;
      for (unsigned d = shape.rank(); d-- > 0; rest /= shape[d])
        coordinates[d].push_back(static_cast<Index>(rest % shape[d]));
      stored.push_back(values[i]);
    }
    if ((i + 1) % shape[shape.rank() - 1] == 0)
      row_pointers.push_back(static_cast<Index>(stored.size()));
  }
  std::vector<Index> indices;
  if (encoding == Encoding::csr) {
    indices = row_pointers;
    indices.insert(indices.end(), coordinates[1].begin(), coordinates[1].end());
  } else {
    for (const auto& one : coordinates) indices.insert(indices.end(), one.begin(), one.end());
  }
  Side side{{.dtype = DTypeOf<T>::value,
             .shape = shape,
             .encoding = encoding,
             .nnz = stored.size(),
             .wide_indices = sizeof(Index) == 8},
            {}};
  const ByteSpan first = as_byte_span(indices);
  side.bytes.assign(first.begin(), first.end());
  side.bytes.resize((side.bytes.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
  const ByteSpan second = as_byte_span(stored);
  side.bytes.insert(side.bytes.end(), second.begin(), second.end());
  return side;
}

struct How {
  Codec codec = Codec::none;
  unsigned threads = 0;
  ReadLimits limits{};
};

ValueDiff compare(const Side& before, const Side& after, const How& how = {}) {
  const TemporaryFolder folder;
  SaveOptions save{.compression = {.codec = how.codec}, .output = {.durability = Durability::none}};
  save.compression.chunk_bytes = 4096;
  for (const Side* side : {&before, &after}) {
    Writer writer(folder / (side == &before ? "a" : "b"), save);
    TensorSpec spec = side->spec;
    spec.name = "t";
    writer.add_tensor(writer.add_region({.name = "r"}), spec, side->bytes);
    writer.commit();
  }
  const Diff diff = thalia::diff(
      Reader::open(folder / "a"), Reader::open(folder / "b"),
      {.values = true, .input = {.limits = how.limits}, .work = {.threads = how.threads}});
  BOOST_REQUIRE(diff.regions.size() == 1u);
  BOOST_REQUIRE(diff.regions[0].tensors.size() == 1u);
  return diff.regions[0].tensors[0].values.value();
}

void check(const ValueDiff& diff, std::uint64_t elements, std::uint64_t differing,
           std::uint64_t not_finite, double greatest, double rms) {
  BOOST_TEST(diff.skipped == "");
  BOOST_TEST(diff.elements == elements);
  BOOST_TEST(diff.differing == differing);
  BOOST_TEST(diff.not_finite == not_finite);
  BOOST_TEST(diff.max_difference == greatest);
  BOOST_TEST(diff.rms_difference == rms, boost::test_tools::tolerance(1e-14));
}

}  // namespace

BOOST_AUTO_TEST_CASE(connections_whose_names_hide_bytes_are_refused) {
  const TemporaryFolder folder;
  const auto saved = [&](const char* name, std::uint64_t seed) {
    Sample sample = small_sample();
    sample.connections[0].weights = dense_tensor("", DType::f32, {2, 2}, Role::weights, seed);
    sample.connections[0].delays = dense_tensor("", DType::f32, {2, 2}, Role::other, seed);
    save(folder / name, sample);
    return Reader::open(folder / name);
  };
  const Reader before = saved("a", 1);
  const Diff sound = thalia::diff(before, saved("b", 2), {.values = true});
  BOOST_REQUIRE(sound.connections.size() == 1u);
  for (const TensorDiff& matrix : sound.connections[0].matrices)
    BOOST_TEST(matrix.values.value().differing > 0u);
  // After the NUL, and a name without one: what compares equal up to the NUL alone is no name.
  for (const std::size_t at : {30u, 31u}) {
    for (const bool source : {false, true}) {
      EditableFile file(read_file(folder / "b"));
      (source ? file.connection(0).source_region : file.connection(0).target_region)[at] = 'x';
      file.reseal();
      write_file(folder / "c", file.bytes());
      const Reader edited = Reader::open(folder / "c");
      for (const bool later : {false, true}) {
        BOOST_CHECK_EXCEPTION(
            thalia::diff(later ? before : edited, later ? edited : before, {.values = true}),
            FormatError, says(ErrorCode::bad_name, source ? "source_region" : "target_region"));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(differences_are_counted_and_measured) {
  check(compare(dense<float>({1, 2, 3, 4}), dense<float>({1, 2.5f, 3, 1})), 4, 2, 0, 3,
        std::sqrt((0.25 + 9) / 4));
  check(compare(dense<std::int8_t>({-128, 5}), dense<std::int8_t>({127, 5})), 2, 1, 0, 255,
        255 / std::sqrt(2));
  check(compare(dense<std::uint8_t>({0, 5}), dense<std::uint8_t>({255, 5})), 2, 1, 0, 255,
        255 / std::sqrt(2));
}

// Squares of these are no numbers of f64.
BOOST_AUTO_TEST_CASE(differences_of_any_size_are_measured) {
  for (const double unit : {0x1p-1074, 0x1p-1000, 0x1p-660, 0x1p-512, 0x1p512, 0x1p660, 0x1p1021}) {
    check(compare(dense<double>({unit, 3 * unit, 0}), dense<double>({0, unit, 0})), 3, 2, 0,
          2 * unit, unit == 0x1p-1074 ? unit : unit * std::sqrt(5.0 / 3));
  }
  check(compare(dense<double>({1e-300}), dense<double>({-1e-300})), 1, 1, 0, 2e-300, 2e-300);
  check(compare(dense<double>({1e200, 1e-200}), dense<double>({0, 0})), 2, 2, 0, 1e200,
        1e200 / std::sqrt(2));
  // Pieces of different size, and their order.
  std::vector<double> numbers(100'000, 1e-200);
  numbers.back() = 1e200;
  const std::vector<double> zeros(numbers.size());
  const double rms = 1e200 / std::sqrt(static_cast<double>(numbers.size()));
  check(compare(dense(numbers), dense(zeros)), numbers.size(), numbers.size(), 0, 1e200, rms);
  std::reverse(numbers.begin(), numbers.end());
  check(compare(dense(numbers), dense(zeros)), numbers.size(), numbers.size(), 0, 1e200, rms);
}

BOOST_AUTO_TEST_CASE(nan_is_the_same_nan_and_what_is_not_finite_is_counted_apart) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  check(compare(dense<float>({nan, nan, 1, inf, inf, -inf, 0, 3}),
                dense<float>({-nan, 2, nan, inf, -inf, 5, -0.0f, 5})),
        8, 6, 5, 2, std::sqrt(4.0 / 3));
  // The other is of another type, with the same bits once it is widened.
  check(compare(dense<float>({nan, 1}), dense<double>({std::nan(""), 1})), 2, 0, 0, 0, 0);
  // Too far apart for an f64.
  check(compare(dense<double>({1e308, 1}), dense<double>({-1e308, 1})), 2, 1, 1, 0, 0);
  check(compare(dense<std::complex<float>>({{nan, 0}, {nan, 1}}),
                dense<std::complex<float>>({{0, nan}, {nan, 1}})),
        2, 1, 1, 0, 0);
  check(compare(dense<double>({0.0}), dense<double>({-0.0})), 1, 0, 0, 0, 0);
}

BOOST_AUTO_TEST_CASE(integers_of_64_bits_are_compared_exactly) {
  constexpr std::int64_t kLarge = 9007199254740993;  // 2^53 + 1 is no f64
  check(compare(dense<std::int64_t>({kLarge}), dense<std::int64_t>({kLarge - 1})), 1, 1, 0, 1, 1);
  check(compare(dense<std::uint64_t>({~0ull}), dense<std::uint64_t>({~0ull - 3})), 1, 1, 0, 3, 3);
  const double whole = 18446744073709551615.0;
  check(compare(dense<std::int64_t>({std::numeric_limits<std::int64_t>::min()}),
                dense<std::int64_t>({std::numeric_limits<std::int64_t>::max()})),
        1, 1, 0, whole, whole);
}

BOOST_AUTO_TEST_CASE(complex_numbers_differ_by_a_magnitude) {
  check(compare(dense<std::complex<double>>({{1, 2}, {0, 0}}),
                dense<std::complex<double>>({{4, 6}, {0, 0}})),
        2, 1, 0, 5, 5 / std::sqrt(2));
  check(compare(dense<std::complex<float>>({{1, 0}, {3, 4}}), dense<float>({1, 0})), 2, 1, 0, 5,
        5 / std::sqrt(2));
}

BOOST_AUTO_TEST_CASE(tensors_of_different_dtypes_are_compared_by_value) {
  const Side half = packed(DType::f16, {0x00, 0x3C, 0x00, 0x40}, 2);  // 1, 2
  check(compare(dense<float>({1, 2}), half), 2, 0, 0, 0, 0);
  check(compare(half, dense<double>({1, 2.25})), 2, 1, 0, 0.25, 0.25 / std::sqrt(2));
  check(compare(dense<std::int32_t>({-1, 7}), packed(DType::i4, {0x7F}, 2)), 2, 0, 0, 0, 0);
  check(compare(packed(DType::u2, {0b11'10'01'00}, 3), packed(DType::u2, {0b00'00'01'00}, 3)), 3, 1,
        0, 2, 2 / std::sqrt(3));
  check(compare(packed(DType::boolean, {1, 0}, 2), packed(DType::boolean, {1, 1}, 2)), 2, 1, 0, 1,
        std::sqrt(0.5));
}

BOOST_AUTO_TEST_CASE(of_different_shapes_the_common_corner_is_compared) {
  const Side small = dense<float>({1, 2, 3, 4}, {2, 2});
  const Side grown = dense<float>({1, 2, 9, 3, 5, 9, 9, 9, 9}, {3, 3});
  for (const auto& diff : {compare(small, grown), compare(grown, small)}) {
    check(diff, 4, 1, 0, 1, 0.5);
    BOOST_TEST((diff.compared == Shape{2, 2}));
  }
  check(compare(small, dense<float>({}, {0, 5})), 0, 0, 0, 0, 0);
  const ValueDiff ranks = compare(small, dense<float>({1, 2, 3, 4}));
  BOOST_TEST(ranks.skipped == "ranks differ");
  BOOST_TEST(ranks.elements == 0u);
  const ValueDiff sparse_grown =
      compare(small, sparse<std::uint32_t, float>(Encoding::csr, {1, 2, 0, 3, 4, 0}, {2, 3}));
  BOOST_TEST(sparse_grown.skipped == "shapes of sparse tensors differ");
}

BOOST_AUTO_TEST_CASE(sparse_tensors_are_compared_by_the_dense_values_they_stand_for) {
  const std::vector<float> a{0, 0, 3, 0, 1, 0, 0, 2};
  std::vector<float> b = a;
  b[0] = 5;
  b[2] = 0;
  b[7] = 4;
  const Shape shape{2, 4};
  const double rms = std::sqrt((25 + 9 + 4) / 8.0);
  std::vector<Side> before{dense(a, shape)};
  std::vector<Side> after{dense(b, shape)};
  for (const Encoding encoding : {Encoding::csr, Encoding::coo}) {
    before.push_back(sparse<std::uint32_t>(encoding, a, shape));
    before.push_back(sparse<std::uint64_t>(encoding, a, shape));
    after.push_back(sparse<std::uint32_t>(encoding, b, shape));
    after.push_back(sparse<std::uint64_t>(encoding, b, shape));
  }
  for (const Side& x : before) {
    for (const Side& y : after) check(compare(x, y), 8, 3, 0, 5, rms);
    for (const Side& y : before) {
      if (&x != &y) check(compare(x, y), 8, 0, 0, 0, 0);
    }
  }
  check(compare(sparse<std::uint32_t>(Encoding::csr, a, shape),
                sparse<std::uint32_t>(Encoding::csr, std::vector<float>(8), shape)),
        8, 3, 0, 3, std::sqrt((9 + 1 + 4) / 8.0));
  const std::vector<double> as_double(b.begin(), b.end());
  check(compare(sparse<std::uint32_t>(Encoding::csr, a, shape),
                sparse<std::uint32_t>(Encoding::coo, as_double, shape)),
        8, 3, 0, 5, rms);
}

BOOST_AUTO_TEST_CASE(a_sparse_tensor_may_stand_for_more_elements_than_any_memory_holds) {
  const Shape vast{1ull << 20, 1ull << 40};
  const auto side = [&](std::uint64_t row, std::uint64_t column, double value) {
    const std::vector<std::uint64_t> indices{row, column};
    const ByteSpan first = as_byte_span(indices);
    Side made{{.dtype = DType::f64,
               .shape = vast,
               .encoding = Encoding::coo,
               .nnz = 1,
               .wide_indices = true},
              {first.begin(), first.end()}};
    const std::vector<double> values{value};
    const ByteSpan second = as_byte_span(values);
    made.bytes.insert(made.bytes.end(), second.begin(), second.end());
    return made;
  };
  const std::uint64_t last = (1ull << 40) - 1;
  check(compare(side((1 << 20) - 1, last, 4), side((1 << 20) - 1, last, 1)), 1ull << 60, 1, 0, 3,
        3 / std::ldexp(1, 30));
  check(compare(side(0, last, 4), side(1, 0, 3)), 1ull << 60, 2, 0, 4, 5 / std::ldexp(1, 30));
}

// Several pieces, blocks that are not full, and every way in which payloads lie in a file.
BOOST_AUTO_TEST_CASE(large_tensors_are_compared_piece_by_piece_to_one_result) {
  constexpr std::size_t kRows = 413;
  constexpr std::size_t kColumns = 1013;
  std::vector<float> a(kRows * kColumns);
  std::vector<float> b(a.size());
  std::uint64_t differing = 0;
  double squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = i % 5 == 0 ? static_cast<float>(i % 1000) : 0;
    b[i] = i % 7 == 0 ? a[i] + 2 : a[i];
    if (i % 7 == 0) {
      ++differing;
      squares += 4;
    }
  }
  const double rms = std::sqrt(squares / static_cast<double>(a.size()));
  const Shape shape{kRows, kColumns};
  const Side before[] = {dense(a, shape), sparse<std::uint32_t>(Encoding::csr, a, shape),
                         sparse<std::uint32_t>(Encoding::coo, a, shape)};
  const Side after[] = {dense(b, shape), sparse<std::uint32_t>(Encoding::csr, b, shape),
                        sparse<std::uint64_t>(Encoding::coo, b, shape)};
  for (const Codec codec : {Codec::none, Codec::lz4}) {
    for (const Side& x : before) {
      for (const Side& y : after) {
        const ValueDiff one = compare(x, y, {.codec = codec, .threads = 1});
        check(one, a.size(), differing, 0, 2, rms);
        const ValueDiff four = compare(x, y, {.codec = codec, .threads = 4});
        BOOST_TEST(four.rms_difference == one.rms_difference);
        BOOST_TEST(four.differing == one.differing);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(relative_difference_and_cosine_are_of_the_whole_tensors) {
  const ValueDiff diff = compare(dense<float>({3, 0, 4}), dense<float>({3, 4, 0}));
  BOOST_TEST(diff.relative_difference.value() == std::sqrt(32.0) / 5,
             boost::test_tools::tolerance(1e-14));
  BOOST_TEST(diff.cosine.value() == 9.0 / 25, boost::test_tools::tolerance(1e-14));
  // Squares of these are no numbers of f64.
  for (const double unit : {0x1p-600, 0x1p600}) {
    const ValueDiff far = compare(dense<double>({3 * unit, 0}), dense<double>({0, 4 * unit}));
    BOOST_TEST(far.relative_difference.value() == 5.0 / 3, boost::test_tools::tolerance(1e-14));
    BOOST_TEST(far.cosine.value() == 0);
  }
  const ValueDiff none = compare(dense<float>({0, 0}), dense<float>({0, 1}));
  BOOST_TEST((!none.relative_difference && !none.cosine));
  const ValueDiff opposite =
      compare(dense<std::complex<float>>({{1, 1}}), dense<std::complex<float>>({{-2, -2}}));
  BOOST_TEST(opposite.cosine.value() == -1, boost::test_tools::tolerance(1e-14));
}

BOOST_AUTO_TEST_CASE(quantized_tensors_are_compared_restored) {
  const TemporaryFolder folder;
  std::vector<float> values(256);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 256;
  {
    Writer writer(folder / "a", {.output = {.durability = Durability::none}});
    writer.add_tensor(writer.add_region({.name = "r"}), {.name = "t", .shape = {4, 64}},
                      as_byte_span(values));
    writer.commit();
  }
  quantize_file(folder / "a", folder / "b", {.min_elements = 1});
  const Reader a = Reader::open(folder / "a");
  const Reader b = Reader::open(folder / "b");
  BOOST_REQUIRE((b.region("r").at("t").encoding() == Encoding::quantized));
  const Diff found = thalia::diff(a, b, {.values = true});
  BOOST_REQUIRE(found.regions.size() == 1u);
  const ValueDiff& restored = found.regions[0].tensors[0].values.value();
  BOOST_TEST(restored.elements == 256u);
  BOOST_TEST(restored.differing > 0u);
  BOOST_TEST(restored.max_difference < 1.0 / 256);
  BOOST_TEST(thalia::diff(a, b, {.tensors = {"t"}, .absolute_tolerance = 1.0 / 256}).same());
  // Chains of one file, and a delta, say the same.
  const ChainReader base = ChainReader::open(folder / "a");
  write_delta(state_source(ChainReader::open(folder / "b")), base, folder / "d",
              {.save = {.output = {.durability = Durability::none}}});
  for (const char* const name : {"b", "d"}) {
    const Diff chained = thalia::diff(base, ChainReader::open(folder / name), {.values = true});
    BOOST_REQUIRE(chained.regions.size() == 1u);
    BOOST_TEST(chained.regions[0].tensors[0].values->differing == restored.differing);
    BOOST_TEST(chained.regions[0].tensors[0].values->max_difference == restored.max_difference);
  }
}

BOOST_AUTO_TEST_CASE(differences_within_a_tolerance_do_not_count) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, std::vector<float> values, DType dtype) {
    Writer writer(folder / name, {.output = {.durability = Durability::none}});
    const RegionId r = writer.add_region({.name = "r"});
    std::vector<double> wide(values.begin(), values.end());
    const ByteSpan bytes = dtype == DType::f64 ? as_byte_span(wide) : as_byte_span(values);
    writer.add_tensor(r, {.name = "t", .dtype = dtype, .shape = {values.size()}}, bytes);
    writer.commit();
    return Reader::open(folder / name);
  };
  const Reader before = write("a", {1, 100, 0}, DType::f32);
  const Reader after = write("b", {1.25f, 101, 0.25f}, DType::f64);
  const auto same = [&](double absolute, double relative) {
    return thalia::diff(before, after,
                        {.absolute_tolerance = absolute, .relative_tolerance = relative})
        .same();
  };
  BOOST_TEST(same(1, 0));
  BOOST_TEST(!same(0.5, 0));
  BOOST_TEST(same(0.25, 0.0075));
  BOOST_TEST(!same(0, 0.5));
  const Diff some = thalia::diff(before, after, {.absolute_tolerance = 0.5});
  BOOST_TEST(some.regions[0].tensors[0].values->differing == 1u);
  BOOST_TEST(some.regions[0].tensors[0].values->max_difference == 1);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  BOOST_TEST(!thalia::diff(before, write("c", {1, 100, nan}, DType::f32), {.absolute_tolerance = 9})
                  .same());
  BOOST_TEST(!thalia::diff(write("d", {inf, 1, 1}, DType::f32), write("e", {1, 1, 1}, DType::f32),
                           {.relative_tolerance = 1})
                  .same());
  for (const double bad : {-1.0, static_cast<double>(nan), static_cast<double>(inf)})
    BOOST_CHECK_EXCEPTION(thalia::diff(before, after, {.relative_tolerance = bad}), UsageError,
                          has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_CASE(of_deltas_the_states_are_compared) {
  const TemporaryFolder folder;
  std::vector<float> values(100'000, 1.0f);
  const auto write = [&](const char* name) {
    Writer writer(folder / name, {.output = {.durability = Durability::none}});
    writer.add_tensor(writer.add_region({.name = "r"}), {.name = "t", .shape = {100, 1000}},
                      as_byte_span(values));
    writer.commit();
  };
  write("base");
  values[70'000] = 3;
  write("later");
  write_delta(state_source(ChainReader::open(folder / "later")), ChainReader::open(folder / "base"),
              folder / "delta");
  const ChainReader base = ChainReader::open(folder / "base");
  const ChainReader later = ChainReader::open(folder / "later");
  const ChainReader delta = ChainReader::open(folder / "delta");
  BOOST_TEST(thalia::diff(later, delta, {.values = true}).same());
  const Diff found = thalia::diff(base, delta, {.values = true});
  BOOST_REQUIRE(found.regions.size() == 1u);
  check(found.regions[0].tensors.at(0).values.value(), 100'000, 1, 0, 2, 2 / std::sqrt(100'000.0));
  // The corner of another shape.
  values.resize(90'000);
  {
    Writer writer(folder / "small", {.output = {.durability = Durability::none}});
    writer.add_tensor(writer.add_region({.name = "r"}), {.name = "t", .shape = {90, 1000}},
                      as_byte_span(values));
    writer.commit();
  }
  const Diff corner = thalia::diff(ChainReader::open(folder / "small"), delta, {.values = true});
  check(corner.regions.at(0).tensors.at(0).values.value(), 90'000, 0, 0, 0, 0);
}

BOOST_AUTO_TEST_CASE(a_role_alone_changes_no_value) {
  Side later = dense<float>({1, 2});
  later.spec.role = Role::buffer;
  check(compare(dense<float>({1, 2}), later), 2, 0, 0, 0, 0);
}

BOOST_AUTO_TEST_CASE(one_bit_pattern_of_another_dtype_is_another_value) {
  check(compare(dense<std::uint32_t>({0x3F800000}), dense<float>({1})), 1, 1, 0, 1065353215,
        1065353215);
}

BOOST_AUTO_TEST_CASE(decompression_is_bounded) {
  const std::vector<float> a(4096, 1.0f);
  const Side csr = sparse<std::uint32_t>(Encoding::csr, a, {1, 4096});
  How how{.codec = Codec::zstd};
  how.limits.max_allocation_bytes = csr.bytes.size() - 1;
  BOOST_CHECK_EXCEPTION(compare(dense(a, {1, 4096}), csr, how), FormatError,
                        has_code(ErrorCode::limit_exceeded));
  how.limits.max_allocation_bytes = csr.bytes.size();
  check(compare(dense(a, {1, 4096}), csr, how), 4096, 0, 0, 0, 0);
}

BOOST_AUTO_TEST_SUITE_END()
