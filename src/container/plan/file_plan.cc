// What a reader would refuse in names, texts, shapes and counts is refused here, when it is
// declared: before anything is written, and where the caller can tell which call was wrong. Each
// call checks everything first and then changes the plan: a caller may catch a UsageError and go
// on.
#include "container/plan/file_plan.h"

#include <limits>
#include <numeric>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/file/short_name.h"
#include "format/constants.h"
#include "format/payload.h"
#include "json/reader.h"
#include "thalia/options.h"

namespace thalia::container {
namespace {

void check_name(const char* field, std::string_view name) {
  if (name.size() > format::kMaxNameLength) {
    fail_argument(ErrorCode::bad_argument, field, fmt::format("{} bytes", name.size()),
                  std::to_string(format::kMaxNameLength));
  }
  const std::size_t invalid = find_invalid_utf8(name);
  if (invalid != std::string_view::npos) {
    fail_argument(ErrorCode::bad_argument, field, fmt::format("'{}'", printable(name)),
                  "valid UTF-8", fmt::format("byte {} starts no character", invalid));
  }
}

// Texts that a reader with these limits would refuse are refused here.
void check_json(const char* field, std::string_view text, const ReadLimits& limits) {
  if (text.size() > limits.max_json_bytes) {
    fail_argument(ErrorCode::bad_argument, field, fmt::format("{} bytes", text.size()),
                  fmt::format("{} or less", limits.max_json_bytes));
  }
  try {
    json::check_object(text, limits.max_json_depth);
  } catch (const FormatError& error) {
    if (error.code() == ErrorCode::limit_exceeded) {
      fail_argument(ErrorCode::bad_argument, field, "a depth of " + error.context().value,
                    fmt::format("{} or less", limits.max_json_depth));
    }
    fail_argument(ErrorCode::bad_argument, field, fmt::format("'{}'", printable(text, 60)),
                  "a JSON object", error.message());
  }
}

void check_count(const char* what, std::uint64_t count, std::uint64_t most) {
  if (count > most)
    fail_argument(ErrorCode::bad_argument, what, std::to_string(count), std::to_string(most));
}

// The logical length follows from dtype, shape, encoding and nnz; a payload of another length is
// refused. All products are checked, since shapes come from callers.
std::uint64_t checked_length(const TensorSpec& spec, const format::QuantizedSideData* quantized) {
  const auto refuse = [&](std::string bound) {
    fail_argument(ErrorCode::bad_argument, "tensor",
                  fmt::format("'{}', {} {} of shape {} with nnz {}", printable(spec.name),
                              encoding_name(spec.encoding), dtype_name(spec.dtype),
                              spec.shape.to_string(), spec.nnz),
                  std::move(bound));
  };
  const bool sparse = is_sparse(spec.encoding);
  if (!sparse && spec.encoding != Encoding::dense && quantized == nullptr)
    refuse("dense, csr or coo");
  if (!sparse && (spec.nnz != 0 || spec.wide_indices))
    refuse("nnz 0 and narrow indices for a dense tensor");
  const auto elements = spec.shape.element_count();
  if (!elements || !spec.shape.byte_length(spec.dtype)) refuse("fewer than 2^64 bytes");
  if (spec.nnz > *elements) refuse(fmt::format("nnz at most {}", *elements));
  if (quantized != nullptr) {
    const auto parts = format::quantized_parts(spec.dtype, spec.shape, quantized->bits,
                                               quantized->group_size, quantized->code_length);
    if (!parts) refuse("f32, f16, f64 or bf16 of a quantized tensor");
    return parts->length;
  }
  const TensorLayout layout = spec.layout();
  const auto length = format::payload_length(layout);
  if (!length) refuse("csr: rank 2, coo: rank 1 or more, no packed dtype");
  if (!spec.wide_indices && !format::narrow_indices_fit(layout))
    refuse("wide_indices for an extent, or stored elements of csr, of 2^32 or more");
  return *length;
}

}  // namespace

void check_codes(const TensorSpec& spec) {
  if (format::code_of(spec.dtype) >= kDTypeCount || format::code_of(spec.role) >= kRoleCount ||
      format::code_of(spec.encoding) >= kEncodingCount) {
    fail_argument(ErrorCode::bad_argument, "tensor", fmt::format("'{}'", printable(spec.name)),
                  "a dtype, a role and an encoding that exist");
  }
}

ByteSpan zero_bytes() {
  static constexpr std::byte kZeros[8192] = {};
  return kZeros;
}

void FilePlan::set_metadata(std::string json) {
  check_json("metadata", json, limits);
  metadata = std::move(json);
}

std::uint32_t FilePlan::add_region(RegionSpec spec) {
  check_count("regions", regions.size() + 1, limits.max_regions);
  check_name("region name", spec.name);
  if (spec.name.empty() || spec.name.find('\0') != std::string::npos) {
    fail_argument(ErrorCode::bad_argument, "region name", fmt::format("'{}'", printable(spec.name)),
                  "1 or more bytes without NUL");
  }
  if (spec.neuron_type > NeuronType::none) {
    fail_argument(ErrorCode::bad_argument, "neuron_type",
                  std::to_string(format::code_of(spec.neuron_type)), "0 to 2");
  }
  check_json("config_json", spec.config_json, limits);
  if (!spec.metadata_json.empty()) check_json("metadata_json", spec.metadata_json, limits);
  if (!region_names_.insert(spec.name).second) {
    fail_argument(ErrorCode::duplicate, "region name",
                  fmt::format("'{}' twice", printable(spec.name)), "unique names");
  }
  regions.push_back({.spec = std::move(spec)});
  return static_cast<std::uint32_t>(regions.size() - 1);
}

std::uint32_t FilePlan::add_tensor(std::uint32_t region, TensorSpec spec, PayloadPieces pieces,
                                   bool streamed) {
  return add_named(region, std::move(spec), std::move(pieces), streamed, nullptr);
}

std::uint32_t FilePlan::add_quantized(std::uint32_t region, TensorSpec spec,
                                      const format::QuantizedSideData& side, ByteSpan payload) {
  spec.encoding = Encoding::quantized;
  return add_named(region, std::move(spec), payload, false, &side);
}

// The table keeps places, not names: a state may have a million tensors.
bool FilePlan::has_tensor(const RegionPlan& region, std::string_view name,
                          std::uint32_t hash) const {
  return region.tensor_names.contains(
      hash, [&](std::uint32_t place) { return tensors[region.tensors[place]].spec.name == name; });
}

void FilePlan::check_region(std::uint32_t region) const {
  if (region < regions.size()) return;
  fail_argument(ErrorCode::bad_argument, "region", std::to_string(region),
                fmt::format("one of the {} that add_region returned", regions.size()));
}

void FilePlan::check_unique(std::uint32_t region, std::string_view name, std::uint32_t hash) const {
  if (!has_tensor(regions[region], name, hash)) return;
  fail_argument(ErrorCode::duplicate, "tensor name", fmt::format("'{}' twice", printable(name)),
                "unique names in a region");
}

// Enters tensors.back() into its region. @return its number.
std::uint32_t FilePlan::join_region(std::uint32_t region, std::uint32_t hash) {
  RegionPlan& owner = regions[region];
  const auto id = static_cast<std::uint32_t>(tensors.size() - 1);
  owner.tensor_names.insert(hash, static_cast<std::uint32_t>(owner.tensors.size()));
  owner.tensors.push_back(id);
  return id;
}

std::uint32_t FilePlan::add_copy(std::uint32_t region, TensorPlan tensor) {
  check_region(region);
  check_count("tensors", tensors.size() + 1, limits.max_tensors);
  check_name("tensor name", tensor.spec.name);
  check_unique(region, tensor.spec.name, NameTable::hash_of(tensor.spec.name));
  return append_tensor(region, std::move(tensor));
}

std::uint32_t FilePlan::append_tensor(std::uint32_t region, TensorPlan tensor) {
  tensors.push_back(std::move(tensor));
  tensors.back().region = region;
  return join_region(region, NameTable::hash_of(tensors.back().spec.name));
}

// What is declared while the training waits goes through here: 100,000 small tensors are to take no
// longer than their copy. So the name is hashed once, and its slot comes from memory during the
// checks.
std::uint32_t FilePlan::add_named(std::uint32_t region, TensorSpec&& spec, PayloadPieces&& pieces,
                                  bool streamed, const format::QuantizedSideData* quantized) {
  check_region(region);
  try {
    const std::uint32_t hash = NameTable::hash_of(spec.name);
    regions[region].tensor_names.prefetch(hash);
    check_name("tensor name", spec.name);
    const std::uint64_t length = check_tensor(spec, pieces, streamed, quantized);
    check_unique(region, spec.name, hash);
    TensorPlan& tensor = store(region, std::move(spec), std::move(pieces), streamed, length);
    if (quantized != nullptr) {
      tensor.quantized = std::make_unique<format::QuantizedSideData>(*quantized);
    }
    return join_region(region, hash);
  } catch (Error& error) {
    error.add_region(printable(regions[region].spec.name));
    throw;
  }
}

// Returns the logical bytes.
std::uint64_t FilePlan::check_tensor(const TensorSpec& spec, const PayloadPieces& pieces,
                                     bool streamed,
                                     const format::QuantizedSideData* quantized) const {
  check_count("tensors", tensors.size() + 1, limits.max_tensors);
  check_codes(spec);
  const std::uint64_t length = checked_length(spec, quantized);
  if (streamed) return length;
  const std::uint64_t given =
      std::accumulate(pieces.begin(), pieces.end(), std::uint64_t{0},
                      [](std::uint64_t sum, ByteSpan piece) { return sum + piece.size(); });
  if (given != length) {
    fail_argument(
        ErrorCode::size_mismatch, "payload",
        fmt::format("{} bytes for tensor '{}'", given, printable(spec.name)),
        fmt::format("{} for {} {}{}", length, dtype_name(spec.dtype), spec.shape.to_string(),
                    spec.encoding == Encoding::dense ? "" : fmt::format(" with nnz {}", spec.nnz)));
  }
  return length;
}

TensorPlan& FilePlan::store(std::uint32_t region, TensorSpec&& spec, PayloadPieces&& pieces,
                            bool streamed, std::uint64_t length) {
  TensorPlan& tensor = tensors.emplace_back();
  tensor.spec = std::move(spec);
  tensor.region = region;
  tensor.logical_length = length;
  // There is nothing to stream for a tensor without bytes; so nobody has to write it.
  tensor.streamed = streamed && length != 0;
  if (!streamed) tensor.pieces = std::move(pieces);
  return tensor;
}

namespace {

// Connections know regions by their short names, which hold no NUL, so that a pair has one
// spelling.
std::string connection_key(std::string_view source, std::string_view target) {
  return short_name_string(source) + '\0' + short_name_string(target);
}

}  // namespace

void FilePlan::note_region(std::string_view name) {
  region_names_.emplace(name);
}
void FilePlan::forget_region(std::string_view name) {
  region_names_.erase(std::string(name));
}
void FilePlan::note_connection(std::string_view source, std::string_view target) {
  connection_names_.insert(connection_key(source, target));
}
void FilePlan::forget_connection(std::string_view source, std::string_view target) {
  connection_names_.erase(connection_key(source, target));
}

std::uint32_t FilePlan::add_connection(std::string_view source, std::string_view target) {
  for (const auto& [field, name] :
       {std::pair("source_region", source), std::pair("target_region", target)}) {
    if (!region_names_.contains(std::string(name))) {
      fail_argument(ErrorCode::not_found, field, fmt::format("'{}'", printable(name)),
                    "a declared region");
    }
  }
  if (!connection_names_.insert(connection_key(source, target)).second) {
    fail_argument(ErrorCode::duplicate, "connection",
                  fmt::format("'{}' to '{}' twice", printable(source), printable(target)),
                  "one a pair of regions");
  }
  connections.push_back({.source = std::string(source), .target = std::string(target)});
  return static_cast<std::uint32_t>(connections.size() - 1);
}

namespace {

ConnectionPlan& connection_at(std::vector<ConnectionPlan>& connections, std::uint32_t i) {
  if (i >= connections.size()) {
    fail_argument(ErrorCode::bad_argument, "connection", std::to_string(i),
                  fmt::format("one of the {} that add_connection returned", connections.size()));
  }
  return connections[i];
}

}  // namespace

std::uint32_t FilePlan::add_matrix(TensorSpec&& spec, ByteSpan payload) {
  const std::uint64_t length = check_tensor(spec, payload, false, nullptr);
  store(kConnectivity, std::move(spec), payload, false, length);
  return static_cast<std::uint32_t>(tensors.size() - 1);
}

std::uint32_t FilePlan::add_connection_weights(std::uint32_t connection, TensorSpec spec,
                                               ByteSpan payload) {
  ConnectionPlan& entry = connection_at(connections, connection);
  if (entry.weights != ConnectionPlan::kNone) {
    fail_argument(ErrorCode::duplicate, "weights", fmt::format("connection {} twice", connection),
                  "one matrix");
  }
  // Matrices are found by the connection's number, so their names are made from it.
  spec.name = fmt::format("{}.weights", connection);
  spec.role = Role::weights;
  return entry.weights = add_matrix(std::move(spec), payload);
}

std::uint32_t FilePlan::add_connection_delays(std::uint32_t connection, TensorSpec spec,
                                              ByteSpan payload) {
  ConnectionPlan& entry = connection_at(connections, connection);
  if (entry.delays != ConnectionPlan::kNone) {
    fail_argument(ErrorCode::duplicate, "delays", fmt::format("connection {} twice", connection),
                  "one matrix");
  }
  spec.name = fmt::format("{}.delays", connection);
  spec.role = Role::other;
  return entry.delays = add_matrix(std::move(spec), payload);
}

// Counts are checked once more: what an append keeps was added without a check.
void FilePlan::check_complete() const {
  check_count("regions", regions.size(), limits.max_regions);
  check_count("tensors", tensors.size(), limits.max_tensors);
  for (std::size_t i = 0; i < connections.size(); ++i) {
    if (connections[i].weights == ConnectionPlan::kNone) {
      fail_argument(ErrorCode::wrong_state, "connection",
                    fmt::format("{} ('{}' to '{}') without weights", i,
                                printable(connections[i].source), printable(connections[i].target)),
                    "add_connection_weights before commit");
    }
  }
}

}  // namespace thalia::container
