#include "checkpoint/checkpoints.h"

#include <cstdint>
#include <sstream>
#include <vector>

#include "boost_test.h"
#include "formats/samples.h"
#include "thalia/verify.h"
#include "thalia/writer.h"

namespace thalia::test {
namespace {

// Arrays one after the other, each at a multiple of its element's alignment.
class Arrays {
 public:
  template <typename T>
  Arrays& add(const std::vector<T>& values) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const ByteSpan more = as_byte_span(values);
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return *this;
  }
  ByteSpan bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

constexpr const char* kLongName = "hippocampus.ca3.recurrent.collaterals.layer";

void describe_tensor(std::ostream& out, const TensorView& tensor) {
  out << "  tensor " << tensor.name() << " " << role_name(tensor.role()) << " "
      << encoding_name(tensor.encoding()) << " " << dtype_name(tensor.dtype()) << " "
      << tensor.shape().to_string() << " nnz " << tensor.nnz() << " wide " << tensor.wide_indices()
      << " bytes";
  std::vector<std::byte> bytes(tensor.logical_bytes());
  tensor.read(bytes);
  for (const std::byte byte : bytes) out << " " << std::to_integer<unsigned>(byte);
  out << "\n";
}

}  // namespace

SaveOptions fixed_identity(SaveOptions options) {
  options.timestamp = 1'700'000'000;
  options.file_uuid = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  options.output.durability = Durability::none;
  return options;
}

void write_rich_checkpoint(const std::filesystem::path& path, const SaveOptions& options) {
  const std::vector<std::uint32_t> narrow_rows = {0, 2, 2, 3};
  const std::vector<std::uint32_t> narrow_columns = {0, 3, 1};
  const std::vector<std::uint64_t> wide_rows = {0, 1};
  const std::vector<std::uint64_t> wide_columns = {1ull << 40};
  const std::vector<std::uint32_t> coordinates = {0, 1, 1, 2, 0, 1};
  const std::vector<float> values = {1, 2, 3};
  Arrays csr, wide, coo, connection;
  csr.add(narrow_rows).add(narrow_columns).add(values);
  wide.add(wide_rows).add(wide_columns).add(std::vector<double>{4});
  coo.add(coordinates).add(values);
  connection.add(narrow_rows).add(narrow_columns).add(values);
  const auto borrowed = [](const OwnedTensor& tensor) { return ByteSpan(tensor.bytes); };

  Writer writer(path, options);
  writer.set_metadata(R"({ "run" : 7, "format":"other","tags":["a"] })");
  writer.set_training_steps(12345);
  const RegionId v1 = writer.add_region({.name = "v1",
                                         .config_json = R"({"dt": 0.5})",
                                         .metadata_json = R"({"note":"kept"})",
                                         .n_neurons = 3,
                                         .n_inputs = 4,
                                         .neuron_type = NeuronType{0},
                                         .homeostatic_updated = 1'600'000'000});
  writer.add_region({.name = "empty"});
  const RegionId far = writer.add_region({.name = kLongName});

  std::vector<OwnedTensor> tensors;
  tensors.reserve(kRoleCount + 4);
  for (std::uint8_t role = 0; role < kRoleCount; ++role) {
    tensors.push_back(make_tensor("z" + std::to_string(9 - role), DType::f32, {3, 5}));
    writer.add_tensor(
        v1, {.name = tensors.back().name, .dtype = DType::f32, .shape = {3, 5}, .role = Role{role}},
        borrowed(tensors.back()));
  }
  writer.add_tensor(
      v1,
      {.name = "csr", .dtype = DType::f32, .shape = {3, 4}, .encoding = Encoding::csr, .nnz = 3},
      csr.bytes());
  writer.add_tensor(far,
                    {.name = "wide",
                     .dtype = DType::f64,
                     .shape = {1, 1ull << 41},
                     .encoding = Encoding::csr,
                     .nnz = 1,
                     .wide_indices = true},
                    wide.bytes());
  writer.add_tensor(
      far,
      {.name = "coo", .dtype = DType::f32, .shape = {2, 3}, .encoding = Encoding::coo, .nnz = 3},
      coo.bytes());
  tensors.push_back(make_tensor("packed", DType::i4, {4}));
  writer.add_tensor(far, {.name = "packed", .dtype = DType::i4, .shape = {4}},
                    borrowed(tensors.back()));
  writer.add_tensor(far, {.name = "nothing", .dtype = DType::i16, .shape = {0, 3}}, {});
  tensors.push_back(make_tensor("large", DType::u8, {100'000}));
  writer.add_tensor(far, {.name = "large", .dtype = DType::u8, .shape = {100'000}},
                    borrowed(tensors.back()));

  const TensorSpec matrix{
      .dtype = DType::f32, .shape = {3, 4}, .encoding = Encoding::csr, .nnz = 3};
  const ConnectionId there = writer.add_connection("v1", kLongName);
  writer.add_connection_weights(there, matrix, connection.bytes());
  tensors.push_back(make_tensor("delays", DType::u8, {3}));
  writer.add_connection_delays(there, {.dtype = DType::u8, .shape = {3}}, borrowed(tensors.back()));
  const ConnectionId loop = writer.add_connection("v1", "v1");
  writer.add_connection_weights(loop, matrix, connection.bytes());
  writer.commit();
}

std::string describe(const Reader& reader) {
  std::ostringstream out;
  out << "metadata " << reader.metadata_json() << "\nsteps " << reader.header().training_steps
      << "\n";
  for (std::uint32_t r = 0; r < reader.region_count(); ++r) {
    const RegionView region = reader.region(r);
    out << "region " << region.name() << " " << region.config_json() << " "
        << region.metadata_json() << " neurons " << region.n_neurons() << " inputs "
        << region.n_inputs() << " type " << neuron_type_name(region.neuron_type()) << " updated "
        << region.homeostatic_updated().value_or(0) << "\n";
    for (std::uint32_t t = 0; t < region.tensor_count(); ++t) {
      describe_tensor(out, region.tensor(t));
    }
  }
  for (std::uint32_t i = 0; i < reader.connection_count(); ++i) {
    const ConnectionView connection = reader.connection(i);
    out << "connection " << connection.source << " to " << connection.target << "\n";
    describe_tensor(out, connection.weights);
    if (connection.delays) describe_tensor(out, *connection.delays);
  }
  return out.str();
}

std::string describe(const std::filesystem::path& path) {
  const VerifyReport report = verify(path);
  for (const Finding& finding : report.findings) BOOST_ERROR(finding.message);
  return describe(Reader::open(path));
}

}  // namespace thalia::test
