#include "container/write/same_as_sample.h"

#include <algorithm>
#include <cstring>

#include "boost_test.h"
#include "container/file/short_name.h"
#include "support/bytes.h"
#include "support/files.h"
#include "thalia/verify.h"

namespace thalia::test {
namespace {

// The arrays of a sparse view one after the other, as they lie in the payload.
void check_arrays(ByteSpan payload, ByteSpan indices, ByteSpan values, std::uint64_t skipped) {
  BOOST_TEST(same_bytes(indices, payload.subspan(skipped, indices.size())));
  BOOST_TEST(same_bytes(values, payload.last(values.size())));
}

void check_sparse_view(const TensorView& view, const SampleTensor& tensor) {
  const auto check_width = [&](auto arrays) {
    using Index = typename decltype(arrays.indices)::value_type;
    BOOST_TEST((sizeof(Index) == 8) == tensor.spec.wide_indices);
  };
  if (tensor.spec.encoding == Encoding::csr) {
    std::visit(
        [&](auto arrays) {
          check_width(CooArrays<typename decltype(arrays.row_pointers)::value_type>{});
          BOOST_TEST(arrays.row_pointers.size() == tensor.spec.shape[0] + 1);
          BOOST_TEST(arrays.column_indices.size() == tensor.spec.nnz);
          const ByteSpan pointers = std::as_bytes(arrays.row_pointers);
          BOOST_TEST(same_bytes(pointers, ByteSpan(tensor.payload).first(pointers.size())));
          check_arrays(tensor.payload, std::as_bytes(arrays.column_indices), arrays.values,
                       pointers.size());
        },
        view.csr());
  } else {
    std::visit(
        [&](auto arrays) {
          check_width(arrays);
          BOOST_TEST(arrays.indices.size() == tensor.spec.nnz * tensor.spec.shape.rank());
          check_arrays(tensor.payload, std::as_bytes(arrays.indices), arrays.values, 0);
        },
        view.coo());
  }
}

void check_dense_view(const TensorView& view, const SampleTensor& tensor) {
  const Shape& shape = tensor.spec.shape;
  std::vector<SliceRange> whole;
  for (const std::uint64_t extent : shape.extents()) whole.push_back({0, extent});
  std::vector<std::byte> out(view.slice_bytes(whole));
  view.read_slice(whole, out);
  BOOST_TEST(same_bytes(out, tensor.payload));
  const bool whole_bytes = !dtype_is_packed(view.dtype());
  if (view.is_raw() && shape.rank() > 0 && whole_bytes)
    BOOST_TEST(same_bytes(view.rows(0, shape[0]), tensor.payload));
}

void check_texts(const Reader& reader, const Sample& sample) {
  BOOST_TEST(reader.metadata_json() == sample.metadata);
  BOOST_TEST(reader.region_count() == sample.regions.size());
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionSpec& spec = sample.regions[r].spec;
    const RegionView region = reader.region(r);
    BOOST_TEST(region.name() == spec.name);
    BOOST_TEST(region.config_json() == spec.config_json);
    BOOST_TEST(region.metadata_json() == spec.metadata_json);
    BOOST_TEST(region.n_neurons() == spec.n_neurons);
    BOOST_TEST(region.n_inputs() == spec.n_inputs);
    BOOST_TEST(bool(region.neuron_type() == spec.neuron_type));
    const auto& tensors = sample.regions[r].tensors;
    const bool homeostatic = std::ranges::any_of(
        tensors, [](const SampleTensor& t) { return t.spec.role == Role::homeostatic; });
    BOOST_TEST(region.homeostatic_updated().has_value() == homeostatic);
    if (homeostatic) BOOST_TEST(*region.homeostatic_updated() == spec.homeostatic_updated);
  }
}

void check_connections(const Reader& reader, const Sample& sample) {
  BOOST_TEST_REQUIRE(reader.connection_count() == sample.connections.size());
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const SampleConnection& expected = sample.connections[i];
    const ConnectionView found = reader.connection(i);
    const auto shown = [](std::string_view name) {
      return std::string(reinterpret_cast<const char*>(container::short_name(name).data()));
    };
    BOOST_TEST(found.source == shown(expected.source));
    BOOST_TEST(found.target == shown(expected.target));
    check_same(found.weights, expected.weights);
    BOOST_TEST_REQUIRE(found.delays.has_value() == expected.delays.has_value());
    if (found.delays) check_same(*found.delays, *expected.delays);
    const auto by_name = reader.find_connection(expected.source, expected.target);
    BOOST_TEST_REQUIRE(by_name.has_value());
    BOOST_TEST(by_name->weights.stored_offset() == found.weights.stored_offset());
  }
}

}  // namespace

void check_same(const TensorView& view, const SampleTensor& tensor) {
  const TensorSpec& spec = tensor.spec;
  BOOST_TEST(bool(view.dtype() == spec.dtype));
  BOOST_TEST(bool(view.shape() == spec.shape));
  BOOST_TEST(bool(view.role() == spec.role));
  BOOST_TEST(bool(view.encoding() == spec.encoding));
  BOOST_TEST(view.nnz() == spec.nnz);
  BOOST_TEST(view.wide_indices() == spec.wide_indices);
  BOOST_TEST_REQUIRE(view.logical_bytes() == tensor.payload.size());

  std::vector<std::byte> out(tensor.payload.size());
  view.read(out);
  BOOST_TEST(same_bytes(out, tensor.payload));
  const std::vector<std::byte> dense = densified(tensor);
  BOOST_TEST_REQUIRE(view.dense_bytes() == dense.size());
  out.assign(dense.size(), std::byte{0xEE});
  view.read_dense(out);
  BOOST_TEST(same_bytes(out, dense));
  if (view.is_raw()) {
    const ByteSpan bytes = view.bytes();
    BOOST_TEST(same_bytes(bytes, tensor.payload));
    BOOST_TEST(view.stored_offset() % (tensor.payload.size() >= 65536 ? 4096 : 64) == 0u);
    if (!bytes.empty()) BOOST_TEST(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64 == 0u);
    if (spec.encoding != Encoding::dense) check_sparse_view(view, tensor);
  }
  if (spec.encoding == Encoding::dense) check_dense_view(view, tensor);
}

void check_same(const Reader& reader, const Sample& sample) {
  check_texts(reader, sample);
  std::uint64_t logical = 0;
  std::uint32_t count = 0;
  for (const SampleRegion& expected : sample.regions) {
    const RegionView region = reader.region(expected.spec.name);
    BOOST_TEST(region.tensor_count() == expected.tensors.size());
    for (const SampleTensor& tensor : expected.tensors) {
      BOOST_TEST_CONTEXT("region " << expected.spec.name << ", tensor " << tensor.spec.name) {
        const TensorView view = region.at(tensor.spec.name);
        BOOST_TEST(view.name() == tensor.spec.name);
        BOOST_TEST(Reader::region_name(view) == expected.spec.name);
        check_same(view, tensor);
      }
      logical += tensor.payload.size();
      ++count;
    }
    // The directory's order is that of the names' bytes.
    for (std::uint32_t i = 1; i < region.tensor_count(); ++i)
      BOOST_TEST(bool(region.tensor(i - 1).name() < region.tensor(i).name()));
  }
  check_connections(reader, sample);
  for (const SampleConnection& connection : sample.connections) {
    logical += connection.weights.payload.size();
    if (connection.delays) logical += connection.delays->payload.size();
    count += connection.delays ? 2 : 1;
  }
  BOOST_TEST(reader.tensor_count() == count);
  BOOST_TEST(reader.logical_bytes() == logical);
  BOOST_TEST(reader.header().training_steps == sample.training_steps);
}

std::string check_round_trip(const Sample& sample, const SaveOptions& options) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "f.thalia";
  const SaveResult result = save(path, sample, options);
  const std::string bytes = read_file(path);
  BOOST_TEST(result.file_bytes == bytes.size());
  const VerifyReport report = verify(path);
  BOOST_TEST(report.ok());
  for (const Finding& finding : report.findings) {
    BOOST_TEST_ERROR(finding.section << " " << finding.region << " " << finding.tensor << " at "
                                     << finding.offset << ": " << finding.message);
  }
  BOOST_TEST(report.tensors == result.tensors);
  for (const ReadOptions& read :
       {ReadOptions{}, ReadOptions{.input = {.access = Access::copied}},
        ReadOptions{.input = {.access = Access::copied}, .verification = Verification::off}}) {
    const Reader reader = Reader::open(path, read);
    BOOST_TEST(bool(reader.closing_checksum() == result.closing_checksum));
    check_same(reader, sample);
  }
  return bytes;
}

}  // namespace thalia::test
