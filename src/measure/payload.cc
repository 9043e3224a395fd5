#include "measure/payload.h"

#include <algorithm>

#include "measure/disk.h"
#include "thalia/error.h"

namespace thalia::measure {

std::string tensor_name(std::uint64_t i) {
  return "layers." + std::to_string(i / 8) + ".w" + std::to_string(i % 8);
}

void add_tensors(Writer& writer, ByteSpan payload, DType dtype, std::uint64_t tensor_bytes) {
  const RegionId region = writer.add_region({.name = "model"});
  const std::uint64_t element_bytes = dtype_bits(dtype) / 8;
  for (std::uint64_t at = 0, i = 0; at < payload.size(); at += tensor_bytes, ++i) {
    const ByteSpan part =
        payload.subspan(at, std::min<std::uint64_t>(tensor_bytes, payload.size() - at));
    writer.add_tensor(
        region, {.name = tensor_name(i), .dtype = dtype, .shape = {part.size() / element_bytes}},
        part);
  }
}

SaveResult save(const std::filesystem::path& path, ByteSpan payload, DType dtype,
                std::uint64_t tensor_bytes, const SaveOptions& options) {
  Writer writer(path, options);
  add_tensors(writer, payload, dtype, tensor_bytes);
  return writer.commit();
}

void load(const Reader& reader, MutableByteSpan out, const std::stop_token& stop) {
  const RegionView region = reader.region("model");
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
    throw_if_stopped(stop);
    const TensorView tensor = region.tensor(i);
    tensor.read(out.first(tensor.logical_bytes()));
    out = out.subspan(tensor.logical_bytes());
  }
}

void stream(const Reader& reader, MutableByteSpan out, StreamOptions options) {
  const auto next = [&](const TensorView&, std::uint64_t bytes) {
    const MutableByteSpan part = out.first(bytes);
    out = out.subspan(part.size());
    return part;
  };
  options.destination = next;
  StreamReader stream(reader, options);
  while (stream.next()) {
  }
}

void verify(const std::filesystem::path& path, const VerifyOptions& options) {
  const VerifyReport report = thalia::verify(path, options);
  if (report.ok()) return;
  throw IntegrityError(ErrorCode::checksum_mismatch, report.findings.front().message,
                       {.path = path.string()});
}

}  // namespace thalia::measure
