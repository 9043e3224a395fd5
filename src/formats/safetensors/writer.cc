// Header first, then payloads in the header's order, straight through: the sizes are known from
// dtype and shape, so nothing is kept or written twice. The header is made before the output, so a
// tensor that cannot be stored leaves no temporary file.
#include "formats/safetensors/writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/parse.h"
#include "thalia/error.h"
#include "thalia/files.h"

namespace thalia::formats {
std::uint64_t write_safetensors(const std::filesystem::path& path,
                                const std::vector<NamedArray>& tensors,
                                const std::optional<SafetensorsMetadata>& metadata,
                                const SafetensorsWriteOptions& options, const EmitPayload& emit) {
  const SafetensorsHeader header = with_path(path.native(), [&] {
    return make_safetensors_header(tensors, metadata, options.max_header_bytes, options.align);
  });
  safetensors::Written written{.total = header.data_bytes};
  return safetensors::write_file(path, header, options.output, options.work, written, emit);
}

namespace safetensors {

std::uint64_t write_file(const std::filesystem::path& path, const SafetensorsHeader& header,
                         const OutputOptions& output, const Work& work, Written& written,
                         const EmitPayload& emit) {
  OutputFile out(path, output, work.cancel);
  out.write(as_byte_span(header.bytes));
  for (const std::size_t i : header.order) {
    emit(i, [&](ByteSpan piece) {
      out.write(piece);
      written.done += piece.size();
      if (work.progress) work.progress(written.done, written.total);
    });
  }
  // Payloads come from callers who have checked their lengths; offsets in the header rely on it.
  assert(out.size() == header.bytes.size() + header.data_bytes);
  out.commit();
  return header.bytes.size() + header.data_bytes;
}

void check_payload_size(const std::filesystem::path& path, const NamedArray& tensor) {
  const auto expected = tensor.shape.byte_length(tensor.dtype);
  if (expected == tensor.bytes.size()) return;
  throw UsageError(ErrorCode::size_mismatch, "payload of another size than dtype and shape ask for",
                   {.path = path.string(),
                    .tensor = printable(tensor.name),
                    .value = fmt::format("{} bytes", tensor.bytes.size()),
                    .bound = expected ? std::to_string(*expected) : std::string("2^64 - 1")});
}

void check_payload_sizes(const std::filesystem::path& path,
                         const std::vector<NamedArray>& tensors) {
  for (const NamedArray& tensor : tensors) check_payload_size(path, tensor);
}

}  // namespace safetensors
}  // namespace thalia::formats

namespace thalia {

std::uint64_t save_safetensors(const std::filesystem::path& path, std::vector<NamedArray> tensors,
                               const std::optional<SafetensorsMetadata>& metadata,
                               const OutputOptions& output, std::uint64_t align) {
  // Before the output is created; offsets in the header follow from the shapes alone.
  formats::safetensors::check_payload_sizes(path, tensors);
  return formats::write_safetensors(
      path, tensors, metadata,
      {.max_header_bytes = formats::kSafetensorsHeaderLimit, .output = output, .align = align},
      [&](std::size_t i, const formats::PieceSink& sink) { sink(tensors[i].bytes); });
}

void serialize_safetensors(std::vector<NamedArray> tensors,
                           const std::optional<SafetensorsMetadata>& metadata,
                           const std::function<MutableByteSpan(std::uint64_t bytes)>& room,
                           std::uint64_t align) {
  formats::safetensors::check_payload_sizes({}, tensors);
  const formats::SafetensorsHeader header =
      formats::make_safetensors_header(tensors, metadata, formats::kSafetensorsHeaderLimit, align);
  MutableByteSpan left = room(header.bytes.size() + header.data_bytes);
  assert(left.size() == header.bytes.size() + header.data_bytes);
  const auto put = [&](ByteSpan bytes) {
    std::ranges::copy(bytes, left.begin());
    left = left.subspan(bytes.size());
  };
  put(as_byte_span(header.bytes));
  for (const std::size_t i : header.order) put(tensors[i].bytes);
}

}  // namespace thalia
