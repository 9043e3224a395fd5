// Stored bytes go from file to file as they are, chunks among them, with the digests that the
// directory has. So they must be what those digests say: each byte is verified before it is taken,
// or a copy would pass damage on with a new leaf that vouches for it. Chunk entries count from the
// payload's first byte until the tensor is placed.
#include "container/append/copied_tensor.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/read/chunk_reader.h"
#include "container/read/stored_connection.h"
#include "container/read/tensor_reading.h"
#include "format/chunk.h"
#include "format/constants.h"
#include "format/directory.h"
#include "format/header.h"
#include "format/quantized.h"
#include "format/tensor.h"
#include "integrity/crc32.h"
#include "thalia/reader.h"
#include "thalia/text.h"

namespace thalia::container {
namespace {

#define HEADER_AT(field) #field, offsetof(format::Header, field)

[[noreturn]] void fail_feature(const char* field, std::size_t at, std::string value,
                               std::string bound) {
  throw UnsupportedError(ErrorCode::unsupported_feature,
                         "the file has what this version could not keep",
                         {.section = "header",
                          .field = field,
                          .offset = at,
                          .value = std::move(value),
                          .bound = std::move(bound)});
}

void check_digest(const TensorPlan& tensor, ByteSpan bytes, unsigned threads) {
  const integrity::ContentDigest found = integrity::content_digest(bytes, threads);
  if (found.crc32 != tensor.digest.crc32 || found.hash != tensor.digest.hash) {
    throw IntegrityError(ErrorCode::checksum_mismatch,
                         "the payload is not the one that was written",
                         {.section = "payload", .offset = tensor.stored_offset});
  }
}

// The entries of a tensor's chunks, with offsets from its payload's first byte.
std::vector<format::ChunkEntry> relative_chunks(const detail::OpenFile& file,
                                                const format::TensorEntry& entry) {
  std::vector<format::ChunkEntry> chunks;
  if (entry.chunk_count == 0) return chunks;
  ChunkReader(file, entry).check_entries();
  chunks.reserve(entry.chunk_count);
  for (std::uint32_t i = 0; i < entry.chunk_count; ++i) {
    chunks.push_back(file.chunk_entry(entry.first_chunk + i));
    chunks.back().offset = chunks.back().offset - entry.stored_offset;
  }
  return chunks;
}

// The directory sorts tensors by name. Their order in the file is that in which they were declared,
// and so a copy is laid out like its source.
std::vector<std::uint32_t> tensors_by_offset(const detail::OpenFile& file, std::uint32_t region) {
  const format::DirectoryRegion& record = file.directory_region(region);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
  for (std::uint32_t i = record.first_tensor; i < record.first_tensor + record.tensor_count; ++i)
    found.emplace_back(file.tensor_entry(i).stored_offset, i);
  std::sort(found.begin(), found.end());
  std::vector<std::uint32_t> numbers;
  for (const auto& [offset, number] : found) numbers.push_back(number);
  return numbers;
}

// docs/format/format.md, "Names". Who looks at a file is shown them as they are.
[[noreturn]] void fail_name(std::string_view name, const char* bound,
                            std::string_view region = {}) {
  throw FormatError(ErrorCode::bad_name, "",
                    {.section = "directory",
                     .field = "name_offset",
                     .region = printable(region),
                     .value = "'" + printable(name) + "'",
                     .bound = bound});
}

void require_utf8(std::string_view name, std::string_view region = {}) {
  if (!is_valid_utf8(name)) fail_name(name, "valid UTF-8", region);
}

// Calls make(entry, tensor) with what the directory says of a tensor, checked. Refuses encodings
// that need a base: their bytes mean nothing elsewhere.
template <typename Make>
TensorPlan from_entry(const detail::OpenFile& file, std::uint32_t region, std::uint32_t number,
                      Make make) {
  const TensorView view = file.tensor_view(region, number);
  return with_names(file, Reader::region_name(view), view.name(), [&] {
    const bool quantized = view.encoding() == Encoding::quantized;
    if (!quantized && !is_plain(view.encoding())) fail_unresolved(view.encoding());
    const format::TensorEntry& entry = file.tensor_entry(number);
    TensorPlan tensor;
    tensor.spec = TensorSpec::of(name_to_write(view), view.layout(), view.role());
    if (quantized) {
      tensor.quantized = std::make_unique<format::QuantizedSideData>(file.quantized_tensor(entry));
    }
    tensor.logical_length = view.logical_bytes();
    tensor.digested = true;
    tensor.digest = {view.crc32(), view.content_hash()};
    tensor.stored_offset = view.stored_offset();
    tensor.stored_length = view.stored_bytes();
    tensor.chunks = relative_chunks(file, entry);
    make(entry, tensor);
    return tensor;
  });
}

}  // namespace

// Bytes that this version does not know could not be carried over: better no file than one that has
// lost something.
void check_can_be_rewritten(const format::Header& header) {
  if (header.minor_version > format::kMinorVersion) {
    fail_feature(HEADER_AT(minor_version), std::to_string(header.minor_version),
                 fmt::format("at most {}", format::kMinorVersion));
  }
  if (header.compatible_features != 0) {
    fail_feature(HEADER_AT(compatible_features),
                 fmt::format("{:#010x}", std::uint32_t{header.compatible_features}), "0");
  }
  const bool has_base = (header.flags & format::kFlagDelta) != 0 || header.base_step != 0 ||
                        header.base_checksum != Digest256{};
  if (has_base)
    fail_feature(HEADER_AT(base_checksum), "a delta", "a full file; resolve the delta first");
}

#undef HEADER_AT

TensorPlan tensor_in_place(const detail::OpenFile& file, std::uint32_t region,
                           std::uint32_t number) {
  return from_entry(file, region, number, [](const format::TensorEntry&, TensorPlan& tensor) {
    tensor.in_place = true;
    tensor.move_chunks(tensor.stored_offset);
  });
}

TensorPlan tensor_to_copy(const detail::OpenFile& file, std::uint32_t region,
                          std::uint32_t number) {
  return from_entry(
      file, region, number, [&](const format::TensorEntry& entry, TensorPlan& tensor) {
        const ByteSpan stored =
            file.verified_payload(entry, tensor.stored_offset, tensor.stored_length);
        tensor.pieces = stored;
        tensor.in_chunks = !tensor.chunks.empty();
        // With verification on, the bytes above are checked already.
        if (!tensor.in_chunks && file.options().verification == Verification::off)
          check_digest(tensor, stored, file.options().work.threads);
        for (const format::ChunkEntry& chunk : tensor.chunks) {
          if (integrity::crc32(stored.subspan(chunk.offset, chunk.stored_length)) != chunk.crc32) {
            throw IntegrityError(ErrorCode::checksum_mismatch,
                                 "the chunk is not the one that was written",
                                 {.section = "payload",
                                  .field = "crc32",
                                  .offset = tensor.stored_offset + chunk.offset});
          }
        }
      });
}

RegionSpec region_spec(const RegionView& region) {
  return {.name = std::string(region.name()),
          .config_json = std::string(region.config_json()),
          .metadata_json = std::string(region.metadata_json()),
          .n_neurons = region.n_neurons(),
          .n_inputs = region.n_inputs(),
          .neuron_type = region.neuron_type(),
          .homeostatic_updated = region.homeostatic_updated().value_or(0)};
}

RegionSpec region_to_write(const RegionView& region) {
  RegionSpec spec = region_spec(region);
  if (spec.name.find('\0') != std::string::npos) fail_name(spec.name, "a name without NUL");
  require_utf8(spec.name);
  return spec;
}

std::string name_to_write(const TensorView& tensor) {
  std::string name(tensor.name());
  require_utf8(name, Reader::region_name(tensor));
  return name;
}

std::vector<TensorPlan> region_to_copy(const detail::OpenFile& file, const RegionView& region) {
  std::vector<TensorPlan> tensors;
  for (const std::uint32_t number : tensors_by_offset(file, region.index()))
    tensors.push_back(tensor_to_copy(file, region.index(), number));
  return tensors;
}

void add_copied(FilePlan& plan, std::uint32_t id, std::vector<TensorPlan> tensors) {
  for (TensorPlan& tensor : tensors) plan.append_tensor(id, std::move(tensor));
}

// Appended without a check: the file's own names and shapes were checked when they were read.
void set_matrices(FilePlan& plan, TensorPlan weights, std::optional<TensorPlan> delays) {
  const std::size_t number = plan.connections.size() - 1;
  const auto add = [&](TensorPlan tensor, const char* what) {
    tensor.region = kConnectivity;
    tensor.spec.name = fmt::format("{}.{}", number, what);
    plan.tensors.push_back(std::move(tensor));
    return static_cast<std::uint32_t>(plan.tensors.size() - 1);
  };
  plan.connections.back().weights = add(std::move(weights), "weights");
  if (delays) plan.connections.back().delays = add(*std::move(delays), "delays");
}

void add_stored_connection(FilePlan& plan, const detail::OpenFile& file, std::uint32_t number,
                           TakeTensor& take) {
  const StoredConnection stored = stored_connection(file, number);
  const std::uint32_t matrices = file.region_count();
  plan.connections.push_back({.source = stored.source, .target = stored.target});
  std::optional<TensorPlan> delays;
  if (stored.delays) delays = take(file, matrices, *stored.delays);
  set_matrices(plan, take(file, matrices, stored.weights), std::move(delays));
}

FilePlan copied_file(const detail::OpenFile& file,
                     const std::function<void(const RegionView&, TensorPlan&)>& change) {
  const format::Header& header = file.header();
  check_can_be_rewritten(header);
  FilePlan plan;
  if (header.metadata_length != 0)
    plan.metadata = file.json({header.metadata_offset, header.metadata_length}, "metadata");
  plan.training_steps = header.training_steps;
  for (std::uint32_t r = 0; r < file.region_count(); ++r) {
    const RegionView region = file.region_view(r);
    std::vector<TensorPlan> tensors = region_to_copy(file, region);
    if (change) {
      for (TensorPlan& tensor : tensors) change(region, tensor);
    }
    add_copied(plan, plan.add_region(region_to_write(region)), std::move(tensors));
  }
  for (std::uint32_t i = 0; i < file.connection_count(); ++i)
    add_stored_connection(plan, file, i, tensor_to_copy);
  return plan;
}

}  // namespace thalia::container
