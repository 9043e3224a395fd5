// Such a file is compressed as a whole, so all of its parts are in memory before a byte is written,
// and are counted together. Tensors and metadata are held against each other first: what was not
// read of such a file is refused, and nothing is quantized here.
#include "formats/mithril_quantized/sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/checked_sum.h"
#include "base/fail.h"
#include "base/utf8.h"
#include "format/payload.h"
#include "formats/mithril_quantized/parts.h"
#include "formats/mithril_quantized/source_metadata.h"
#include "formats/source/lost_metadata.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/files.h"

namespace thalia::formats {
namespace mithril_quantized {
namespace {

struct Places {
  std::optional<std::size_t> codes, scales, zero_points;
};

[[noreturn]] void fail_foreign(std::string message, std::string field, std::string value = {},
                               std::string bound = {}) {
  throw UnsupportedError(
      ErrorCode::unsupported_feature, std::move(message),
      {.field = std::move(field), .value = std::move(value), .bound = std::move(bound)});
}

Places find_places(const SinkInput& input) {
  Places places;
  for (std::size_t i = 0; i < input.tensors.size(); ++i) {
    const std::string& name = input.tensors[i].name;
    if (name == kCodes) {
      places.codes = i;
    } else if (name == kScales) {
      places.scales = i;
    } else if (name == kZeroPoints) {
      places.zero_points = i;
    } else {
      fail_foreign("another tensor than those of a mithril quantized file", "name", printable(name),
                   "codes, scales and zero_points");
    }
  }
  if (!places.codes || !places.scales)
    fail_foreign("no quantized tensor of mithril", "name", "", "codes and scales");
  return places;
}

// The length of an array that lies beside the codes.
std::uint64_t count_of(const SinkTensor& tensor, DType dtype) {
  const TensorLayout& layout = tensor.layout;
  if (layout != TensorLayout{.dtype = dtype, .shape = layout.shape} || layout.shape.rank() != 1) {
    fail_foreign("an array that such a file has in another form", tensor.name,
                 fmt::format("{} {}", dtype_name(layout.dtype), layout.shape.to_string()),
                 fmt::format("{} of one dimension", dtype_name(dtype)));
  }
  return layout.shape[0];
}

void check_outline(const SinkInput& input, const Places& places,
                   const MithrilSourceMetadata& source) {
  Outline outline{.method = source.method,
                  .original_dtype = source.original_dtype,
                  .group_size = source.group_size,
                  .codes = input.tensors[*places.codes].layout,
                  .scales = count_of(input.tensors[*places.scales], DType::f32)};
  if (places.zero_points)
    outline.zero_points = count_of(input.tensors[*places.zero_points], DType::i8);
  if (auto misfit = find_misfit(outline)) {
    fail_foreign("tensors that do not fit together", std::move(misfit->field),
                 std::move(misfit->value), std::move(misfit->bound));
  }
}

int level_of(const SinkOptions& options, const MithrilSourceMetadata& source) {
  const Compression& compression = options.save.compression;
  if (compression.codec && *compression.codec != Codec::zstd)
    fail_argument(ErrorCode::bad_argument, "codec", "another", "zstd",
                  "of a quantized file of mithril");
  check_option("level", compression.level, 0, 22);
  return compression.level == 0 ? source.level : compression.level;
}

void collect(MutableByteSpan out, std::size_t i, const EmitPayload& emit) {
  emit(i, [&](ByteSpan piece) {
    if (piece.size() > out.size())
      fail_argument(ErrorCode::size_mismatch, "payload", "more", "what its layout says");
    std::ranges::copy(piece, out.begin());
    out = out.subspan(piece.size());
  });
  if (!out.empty())
    fail_argument(ErrorCode::size_mismatch, "payload", "less", "what its layout says");
}

std::uint64_t payload_bytes(const SinkInput& input) {
  CheckedSum bytes;
  for (const SinkTensor& tensor : input.tensors)
    bytes += format::payload_length(tensor.layout).value_or(UINT64_MAX);
  return bytes.value().value_or(UINT64_MAX);
}

std::uint64_t write(const std::filesystem::path& output, const SinkInput& input,
                    const SinkOptions& options, const EmitPayload& emit) {
  const ReadSourceMetadata read =
      source_metadata_from_json(input.metadata, options.limits.max_json_depth);
  const Places places = with_path(output.native(), [&] {
    if (!read.source)
      fail_foreign("not what was read of a quantized file of mithril", "metadata", "",
                   "a member mithril-quantized");
    const Places found = find_places(input);
    check_outline(input, found, *read.source);
    return found;
  });
  const int level = level_of(options, *read.source);
  std::vector<std::string> losses;
  add_lost_metadata(losses, input, read.other_members);
  if (options.announce) options.announce(losses);

  MithrilQuantized tensor{.method = read.source->method,
                          .original_dtype = read.source->original_dtype,
                          .shape = input.tensors[*places.codes].layout.shape,
                          .group_size = read.source->group_size};
  // All parts, then what they are together before it is compressed.
  const std::uint64_t bytes_of_parts = payload_bytes(input);
  io::MemoryBudget budget(options.limits, bytes_of_parts);
  tensor.scales = budget.vector<float>("scales", input.tensors[*places.scales].layout.shape[0]);
  if (places.zero_points) {
    tensor.zero_points = budget.vector<std::int8_t>(
        "zero_points", input.tensors[*places.zero_points].layout.shape[0]);
  }
  // In the order that they were given in.
  for (std::size_t i = 0; i < input.tensors.size(); ++i) {
    if (i == places.codes) {
      tensor.codes = state::counted_tensor(budget, "codes", input.tensors[i].layout,
                                           [&](MutableByteSpan out) { collect(out, i, emit); });
    } else {
      collect(i == places.scales ? std::as_writable_bytes(std::span(tensor.scales))
                                 : std::as_writable_bytes(std::span(*tensor.zero_points)),
              i, emit);
    }
  }
  budget.take("content", bytes_of_parts);
  const std::vector<std::byte> bytes = encode_mithril_quantized(tensor, level);
  OutputFile out(output, options.save.output, options.save.work.cancel);
  out.write(bytes);
  out.commit();
  return bytes.size();
}

}  // namespace
}  // namespace mithril_quantized

std::uint64_t write_mithril_quantized(const std::filesystem::path& output, const SinkInput& input,
                                      const SinkOptions& options, const EmitPayload& emit) {
  return mithril_quantized::write(output, input, options, emit);
}

}  // namespace thalia::formats
