// Slices against one element at a time, and the bytes that reading one touches.
#include <random>

#include "boost_test.h"
#include "container/read/damage_check.h"
#include "format/chunk.h"
#include "support/bytes.h"
#include "support/damage.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/reader.h"

using namespace thalia;
using namespace thalia::test;

BOOST_AUTO_TEST_SUITE(slice)

namespace {

bool bit_at(ByteSpan bytes, std::uint64_t bit) {
  return (std::to_integer<unsigned>(bytes[bit / 8]) >> bit % 8) & 1;
}

// Element by element, bit by bit.
std::vector<std::byte> naive_slice(const SampleTensor& tensor,
                                   const std::vector<SliceRange>& ranges) {
  const Shape& shape = tensor.spec.shape;
  const unsigned bits = dtype_bits(tensor.spec.dtype);
  std::uint64_t count = 1;
  for (const SliceRange& range : ranges) count *= range.end - range.begin;
  std::vector<std::byte> out((count * bits + 7) / 8);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t rest = i;
    std::uint64_t element = 0;
    std::uint64_t step = 1;
    for (unsigned d = shape.rank(); d-- > 0;) {
      const std::uint64_t extent = ranges[d].end - ranges[d].begin;
      element += (ranges[d].begin + rest % extent) * step;
      rest /= extent;
      step *= shape[d];
    }
    for (unsigned b = 0; b < bits; ++b) {
      if (bit_at(tensor.payload, element * bits + b))
        out[(i * bits + b) / 8] |= std::byte(1u << (i * bits + b) % 8);
    }
  }
  return out;
}

std::vector<SliceRange> random_ranges(const Shape& shape, std::mt19937_64& random) {
  std::vector<SliceRange> ranges;
  for (const std::uint64_t extent : shape.extents()) {
    const std::uint64_t a = random() % (extent + 1);
    const std::uint64_t b = random() % (extent + 1);
    // Now and then the whole dimension, which joins the run before it.
    ranges.push_back(random() % 3 == 0 ? SliceRange{0, extent}
                                       : SliceRange{std::min(a, b), std::max(a, b)});
  }
  return ranges;
}

void check_random_slices(const Reader& reader, const Sample& sample, int count) {
  std::mt19937_64 random(7);
  for (const SampleTensor& tensor : sample.regions[0].tensors) {
    const TensorView view = reader.tensor(tensor.spec.name);
    for (int i = 0; i < count; ++i) {
      const std::vector<SliceRange> ranges = random_ranges(tensor.spec.shape, random);
      const std::vector<std::byte> expected = naive_slice(tensor, ranges);
      BOOST_TEST_REQUIRE(view.slice_bytes(ranges) == expected.size());
      std::vector<std::byte> out(expected.size(), std::byte{0xEE});
      view.read_slice(ranges, out);
      BOOST_TEST(same_bytes(out, expected), tensor.spec.name);
    }
  }
}

// Every width, at ranks that put rows on and off byte boundaries.
Sample sliced_sample() {
  SampleRegion region{.spec = {.name = "r"}, .tensors = {}};
  for (const DType dtype : {DType::binary, DType::ternary, DType::u4, DType::f6_e2m3, DType::u8,
                            DType::bf16, DType::f32, DType::f64, DType::c128}) {
    const std::string name(dtype_name(dtype));
    region.tensors.push_back(dense_tensor(name + ".0", dtype, {}));
    region.tensors.push_back(dense_tensor(name + ".1", dtype, {1021}));
    region.tensors.push_back(dense_tensor(name + ".2", dtype, {13, 31}));
    region.tensors.push_back(dense_tensor(name + ".4", dtype, {3, 5, 4, 7}));
    region.tensors.push_back(dense_tensor(name + ".8", dtype, {2, 3, 1, 2, 3, 2, 1, 3}));
    region.tensors.push_back(dense_tensor(name + ".e", dtype, {3, 0, 2}));
  }
  return {.regions = {std::move(region)}, .connections = {}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(random_slices_are_those_of_single_elements) {
  const Sample sample = sliced_sample();
  const TemporaryFolder folder;
  save(folder / "f", sample);
  check_random_slices(Reader::open(folder / "f"), sample, 40);
}

BOOST_AUTO_TEST_CASE(random_slices_of_chunks_are_those_of_single_elements) {
  // Payloads that shrink, and of more than one chunk: elements of 6 and 128 bits cross their ends.
  Sample sample = {.regions = {{.spec = {.name = "r"}, .tensors = {}}}, .connections = {}};
  for (const DType dtype : {DType::binary, DType::f6_e2m3, DType::u4, DType::c128, DType::u16}) {
    const std::uint64_t columns = 9 * 4096ull * 8 / dtype_bits(dtype) / 37;
    SampleTensor tensor = dense_tensor(std::string(dtype_name(dtype)), dtype, {37, columns});
    for (std::size_t i = 0; i + 1 < tensor.payload.size(); ++i)
      if (i % 50 != 0) tensor.payload[i] = std::byte(i / 200);
    sample.regions[0].tensors.push_back(std::move(tensor));
  }
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.compression.codec = Codec::zstd;
  options.compression.chunk_bytes = 4096;
  save(folder / "f", sample, options);
  const Reader reader = Reader::open(folder / "f");
  for (const SampleTensor& tensor : sample.regions[0].tensors)
    BOOST_TEST(reader.tensor(tensor.spec.name).chunk_count() == 9u);
  check_random_slices(reader, sample, 6);
}

BOOST_AUTO_TEST_CASE(a_slice_decodes_the_chunks_it_lies_in_and_no_other) {
  SampleTensor tensor = dense_tensor("t", DType::u8, {8, 4096});
  for (std::size_t i = 0; i < tensor.payload.size(); ++i) tensor.payload[i] = std::byte(i / 64);
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.compression.codec = Codec::lz4;
  options.compression.chunk_bytes = 4096;
  save(folder / "f", {.regions = {{{.name = "r"}, {tensor}}}, .connections = {}}, options);
  EditableFile editable(read_file(folder / "f"));
  BOOST_TEST(editable.tensor("t").chunk_count == 8u);
  editable.bytes()[editable.chunk(3).offset + 9] ^= 1;
  const DamagedFile file(editable.bytes());
  const TensorView view =
      Reader::open(file.path(), {.verification = Verification::off}).tensor("t");
  std::vector<std::byte> out(4096);
  for (std::uint64_t row = 0; row < 8; ++row) {
    const SliceRange ranges[] = {{row, row + 1}, {0, 4096}};
    if (row == 3) {
      BOOST_CHECK_EXCEPTION(view.read_slice(ranges, out), IntegrityError,
                            says(ErrorCode::checksum_mismatch, "'t'"));
    } else {
      view.read_slice(ranges, out);
      BOOST_TEST(same_bytes(out, naive_slice(tensor, {{row, row + 1}, {0, 4096}})));
    }
  }
  std::vector<std::byte> all(tensor.payload.size());
  BOOST_CHECK_EXCEPTION(view.read(all), IntegrityError, has_code(ErrorCode::checksum_mismatch));
}

// However a slice lies, no byte of any chunk is read that holds none of its own.
BOOST_AUTO_TEST_CASE(a_slice_across_chunks_reads_no_chunk_beyond_its_ends) {
  SampleTensor tensor = dense_tensor("t", DType::u8, {8 * 4096});
  for (std::size_t i = 0; i < tensor.payload.size(); ++i) tensor.payload[i] = std::byte(i / 64);
  const TemporaryFolder folder;
  SaveOptions options = steady_options();
  options.compression.codec = Codec::lz4;
  options.compression.chunk_bytes = 4096;
  save(folder / "f", {.regions = {{{.name = "r"}, {tensor}}}, .connections = {}}, options);
  EditableFile layout(read_file(folder / "f"));
  for (const auto& [begin, end] : {std::pair(4095u, 4097u), std::pair(5000u, 20'000u),
                                   std::pair(8192u, 12'288u), std::pair(100u, 32'768u)}) {
    DamagedFile file(layout.bytes());
    for (std::uint32_t i = 0; i < 8; ++i) {
      if (i >= begin / 4096 && i <= (end - 1) / 4096) continue;
      const format::ChunkEntry& chunk = layout.chunk(i);
      file.overwrite(chunk.offset, std::string(chunk.stored_length, 'x'));
    }
    for (const Access access : {Access::mapped, Access::copied}) {
      const Reader reader = Reader::open(
          file.path(), {.input = {.access = access}, .verification = Verification::off});
      const SliceRange range[] = {{begin, end}};
      std::vector<std::byte> out(end - begin);
      reader.tensor("t").read_slice(range, out);
      BOOST_TEST(same_bytes(out, naive_slice(tensor, {{begin, end}})));
    }
  }
}

BOOST_AUTO_TEST_CASE(rows_are_a_view_of_the_rows) {
  const Sample sample = sliced_sample();
  const TemporaryFolder folder;
  save(folder / "f", sample);
  const Reader reader = Reader::open(folder / "f");
  for (const SampleTensor& tensor : sample.regions[0].tensors) {
    const TensorView view = reader.tensor(tensor.spec.name);
    if (view.shape().rank() == 0 || dtype_is_packed(view.dtype())) continue;
    const std::uint64_t rows = view.shape()[0];
    const std::uint64_t width = tensor.payload.size() / rows;
    for (std::uint64_t begin = 0; begin <= rows; begin += 2) {
      const ByteSpan expected =
          ByteSpan(tensor.payload).subspan(begin * width, (rows - begin) * width);
      const ByteSpan got = view.rows(begin, rows);
      BOOST_TEST(same_bytes(got, expected));
      if (!got.empty()) BOOST_TEST(got.data() == view.bytes().data() + begin * width);
    }
  }
  // Packed rows of whole bytes are views too.
  BOOST_TEST(reader.tensor("ternary.4").rows(1, 2).size() == 35u);
  BOOST_CHECK_EXCEPTION(reader.tensor("binary.4").rows(1, 2), UsageError,
                        has_code(ErrorCode::bad_argument));
}

BOOST_AUTO_TEST_SUITE_END()
