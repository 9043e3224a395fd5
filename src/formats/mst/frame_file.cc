// Frames as the original makes them: in one stream a tensor, without content size and checksum, so
// that with the same libzstd the same bytes come out. A grouped tensor begins with byte 0 of all
// its elements; so it has to be there as a whole. For others only a piece is in memory.
#include "formats/mst/frame_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/little_endian.h"
#include "formats/mst/dtypes.h"
#include "formats/mst/parse.h"
#include "formats/source/byte_grouping.h"
#include "json/writer.h"
#include "thalia/files.h"
#include "thalia/tensor.h"

namespace thalia::formats::mst {
namespace {

constexpr std::uint64_t kDefaultSpool = 256ull << 20;
// Stays in a core's cache between grouping and compressing.
constexpr std::uint64_t kGroupedPart = 1 << 18;
// What zstd, and so the original, takes for level 0.
constexpr int kZstdDefaultLevel = 3;

const MstWriteOptions& checked_options(const MstWriteOptions& options) {
  check_option("level", options.level, 0, 22);
  return options;
}

}  // namespace

void check_layout(const std::string& name, const TensorLayout& layout) {
  const auto context = [&](std::string value, std::string bound) {
    return ErrorContext{.field = "dtype",
                        .tensor = printable(name),
                        .value = std::move(value),
                        .bound = std::move(bound)};
  };
  if (layout.encoding != Encoding::dense) {
    throw UnsupportedError(ErrorCode::unsupported_feature, ".mst files hold dense tensors alone",
                           context(std::string(encoding_name(layout.encoding)), "dense"));
  }
  if (mst_dtype_name(layout.dtype).empty()) {
    const std::string dtype(thalia::dtype_name(layout.dtype));
    throw UnsupportedDtypeError(dtype, ".mst files have no such dtype",
                                context(dtype, "f32, f16, bf16, f64, i32, i64, i8, u8 or bool"));
  }
}

FrameFile::FrameFile(const std::filesystem::path& path, const MstWriteOptions& options)
    : options_(checked_options(options)),
      out_(path, options.output, options.work.cancel),
      spool_(options.work.memory_bytes.value_or(kDefaultSpool), folder_of(path)),
      encoder_(options.level == 0 ? kZstdDefaultLevel : options.level) {}

void FrameFile::begin(std::string name, const TensorLayout& layout) {
  MstTensor& tensor = tensors_.emplace_back(
      MstTensor{{std::move(name), layout.dtype, layout.shape, spool_.size()}});
  tensor.uncompressed_size = layout.shape.byte_length(layout.dtype).value();
  written_ = 0;
}

void FrameFile::write(ByteSpan piece) {
  const MstTensor& tensor = tensors_.back();
  if (piece.size() > tensor.uncompressed_size - written_) {
    fail_argument(ErrorCode::size_mismatch, "bytes", "more",
                  fmt::format("{} bytes", tensor.uncompressed_size));
  }
  written_ += piece.size();
  if (!options_.byte_grouping || plane_width(tensor.dtype) == 0) return compress(piece);
  // The usual case needs no copy.
  if (piece.size() == tensor.uncompressed_size) return compress_grouped(piece);
  if (whole_.empty()) whole_.reserve(tensor.uncompressed_size);
  whole_.insert(whole_.end(), piece.begin(), piece.end());
  if (written_ == tensor.uncompressed_size) {
    compress_grouped(whole_);
    whole_ = {};
  }
}

void FrameFile::end() {
  MstTensor& tensor = tensors_.back();
  if (written_ != tensor.uncompressed_size) {
    fail_argument(ErrorCode::size_mismatch, "bytes", fmt::format("{} bytes", written_),
                  std::to_string(tensor.uncompressed_size));
  }
  encoder_.finish([&](ByteSpan bytes) { spool_.append(bytes); });
  tensor.compressed_size = spool_.size() - tensor.offset;
}

void FrameFile::compress(ByteSpan raw) {
  stop_if_cancelled(options_.work.cancel);
  encoder_.write(raw, [&](ByteSpan bytes) { spool_.append(bytes); });
}

void FrameFile::compress_grouped(ByteSpan raw) {
  const unsigned width = plane_width(tensors_.back().dtype);
  for (std::uint64_t begin = 0; begin < raw.size(); begin += kGroupedPart) {
    grouped_.resize(std::min<std::uint64_t>(kGroupedPart, raw.size() - begin));
    gather_planes(raw, {}, width, begin, grouped_);
    compress(grouped_);
  }
}

std::string FrameFile::header(const std::vector<std::size_t>& order) const {
  std::string text;
  JsonWriter json(text);
  std::uint64_t raw = 0;
  json.begin_object().key("tensors").begin_object();
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const MstTensor& tensor = tensors_[order.empty() ? i : order[i]];
    json.key(tensor.name).begin_object().member("dtype", mst_dtype_name(tensor.dtype));
    json.key("shape").begin_array();
    for (const std::uint64_t extent : tensor.shape.extents()) json.value(extent);
    json.end_array().member("compressed_offset", tensor.offset);
    json.member("compressed_size", tensor.compressed_size);
    json.member("uncompressed_size", tensor.uncompressed_size).end_object();
    raw += tensor.uncompressed_size;
  }
  json.end_object().key("compression").begin_object().member("algorithm", "zstd");
  json.member("level", options_.level).member("byte_grouping", options_.byte_grouping).end_object();
  json.key("metadata").begin_object();
  for (const auto& [key, value] : options_.metadata) json.member(key, value);
  json.end_object().member("total_uncompressed_size", raw);
  json.member("total_compressed_size", spool_.size()).end_object();
  return text;
}

std::uint64_t FrameFile::commit(std::uint32_t version,
                                const std::vector<std::size_t>& header_order) {
  const std::string text = header(header_order);
  const MstPrelude prelude = make_prelude(version, text.size());
  out_.write(std::as_bytes(std::span(&prelude, 1)));
  out_.write(as_byte_span(text));
  spool_.take(spool_.size(), [&](ByteSpan piece) { out_.write(piece); });
  const std::uint64_t bytes = out_.size();
  out_.commit();
  return bytes;
}

}  // namespace thalia::formats::mst
