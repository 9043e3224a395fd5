// One tensor as the original's serde and bincode lay it out: fields in the order of its structure,
// counts of 8 bytes, enumerations of 4. Nothing in a file says what it is, so every field is held
// against the others.
#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "codec/frame/frame.h"
#include "codec/frame/zstd_encoder.h"
#include "format/little_endian.h"
#include "formats/mithril_quantized/parts.h"
#include "io/file/file_bytes.h"
#include "io/memory/allocation_limit.h"
#include "thalia/types.h"

namespace thalia::formats::mithril_quantized {
namespace {

// Bincode 1 with fixed-width integers, read out of a zstd frame whose content size is not known.

/// Lengths are compared with the most that the frame can decode to, and with the budget, before
/// anything is allocated. Externally synchronised.
class BincodeReader {
 public:
  /// @param budget outlives the reader. @throws CompressionError for what is no zstd frame.
  BincodeReader(ByteSpan frame, io::MemoryBudget& budget);

  /// @throws FormatError (truncated) where the content ends before; CompressionError.
  void read(std::string_view field, MutableByteSpan out);
  std::uint8_t read_u8(std::string_view field);
  std::uint32_t read_u32(std::string_view field);
  std::uint64_t read_u64(std::string_view field);
  /// 0 or 1. @throws FormatError (bad_value).
  bool read_option(std::string_view field);
  /// A count, and as many elements.
  template <typename T>
  std::vector<T> read_sequence(std::string_view field) {
    auto elements = budget_.vector<T>("content", read_count(field, sizeof(T)));
    read(field, std::as_writable_bytes(std::span(elements)));
    return elements;
  }
  /// The count of a sequence of elements of so many bytes each, which the frame may hold.
  std::uint64_t read_count(std::string_view field, std::uint64_t element_bytes);
  /// @throws FormatError where content or bytes are left.
  void finish();

 private:
  bool fill(MutableByteSpan out, std::size_t& done);

  ByteSpan frame_;
  std::uint64_t stored_;
  io::MemoryBudget& budget_;
  std::unique_ptr<codec::FrameDecoder> decoder_;
  std::uint64_t position_ = 0;  ///< in the content
  bool ended_ = false;
};

/// Appends to bytes.
class BincodeWriter {
 public:
  void write(ByteSpan bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
  void write_u8(std::uint8_t value) { bytes_.push_back(std::byte{value}); }
  void write_u32(std::uint32_t value) { write_number(format::le32(value)); }
  void write_u64(std::uint64_t value) { write_number(format::le64(value)); }
  const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  template <typename T>
  void write_number(const T& value) {
    write(std::as_bytes(std::span(&value, 1)));
  }
  std::vector<std::byte> bytes_;
};

BincodeReader::BincodeReader(ByteSpan frame, io::MemoryBudget& budget)
    : frame_(frame), stored_(frame.size()), budget_(budget) {
  if (codec::frame_kind(frame) != codec::FrameKind::zstd)
    throw CompressionError("zstd", "not a zstd frame", {.section = "frame", .offset = 0});
  decoder_ = codec::FrameDecoder::create(Codec::zstd);
}

// False where the content ends before `out` is full.
bool BincodeReader::fill(MutableByteSpan out, std::size_t& done) {
  while (done < out.size() && !ended_) {
    const auto step = decoder_->decode(frame_, out.subspan(done));
    frame_ = frame_.subspan(step.consumed);
    done += step.written;
    position_ += step.written;
    ended_ = step.frame_ended;
    if (!ended_ && step.consumed == 0 && step.written == 0)
      throw CompressionError("zstd", "the frame ends too early", {.section = "frame"});
  }
  return done == out.size();
}

void BincodeReader::read(std::string_view field, MutableByteSpan out) {
  std::size_t done = 0;
  if (fill(out, done)) return;
  throw FormatError(ErrorCode::truncated, "the content ends too early",
                    {.section = "content",
                     .field = std::string(field),
                     .offset = position_,
                     .value = fmt::format("{} bytes", done),
                     .bound = std::to_string(out.size())});
}

std::uint8_t BincodeReader::read_u8(std::string_view field) {
  std::array<std::byte, 1> byte{};
  read(field, byte);
  return std::to_integer<std::uint8_t>(byte[0]);
}

std::uint32_t BincodeReader::read_u32(std::string_view field) {
  format::le32 value(0);
  read(field, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

std::uint64_t BincodeReader::read_u64(std::string_view field) {
  format::le64 value(0);
  read(field, std::as_writable_bytes(std::span(&value, 1)));
  return value;
}

bool BincodeReader::read_option(std::string_view field) {
  const std::uint64_t at = position_;
  const std::uint8_t tag = read_u8(field);
  if (tag > 1)
    fail_field(ErrorCode::bad_value, "content", field, at, std::to_string(tag), "0 or 1");
  return tag == 1;
}

std::uint64_t BincodeReader::read_count(std::string_view field, std::uint64_t element_bytes) {
  const std::uint64_t at = position_;
  const std::uint64_t count = read_u64(field);
  const std::uint64_t most = codec::most_content(codec::FrameKind::zstd, stored_);
  const std::uint64_t left = most - std::min(most, position_);
  if (count > left / element_bytes) {
    fail_field(ErrorCode::out_of_bounds, "content", field, at, std::to_string(count),
               fmt::format("at most {}, by the frame's bytes", left / element_bytes));
  }
  return count;
}

void BincodeReader::finish() {
  std::array<std::byte, 1> more{};
  std::size_t done = 0;
  if (fill(more, done))
    fail_field(ErrorCode::inconsistent, "content", "", position_ - 1, "more bytes", "its end");
  if (!frame_.empty()) {
    throw CompressionError("zstd", "bytes follow the frame",
                           {.section = "frame",
                            .offset = stored_ - frame_.size(),
                            .value = fmt::format("{} bytes", frame_.size()),
                            .bound = "0"});
  }
}

constexpr int kUsualLevel = 3;

Shape read_shape_of(BincodeReader& in) {
  const std::uint64_t rank = in.read_count("shape", sizeof(std::uint64_t));
  if (rank > Shape::kMaxRank) {
    throw UnsupportedError(ErrorCode::unsupported_feature, "too many dimensions",
                           {.section = "content",
                            .field = "shape",
                            .value = std::to_string(rank),
                            .bound = fmt::format("at most {}", Shape::kMaxRank)});
  }
  std::vector<std::uint64_t> extents(rank);
  for (std::uint64_t& extent : extents) extent = in.read_u64("shape");
  return Shape(extents);
}

DType read_dtype_of(BincodeReader& in) {
  const std::uint32_t variant = in.read_u32("original_dtype");
  const auto dtype = dtype_from_variant(variant);
  if (!dtype) {
    throw FormatError(ErrorCode::bad_value, {},
                      {.section = "content",
                       .field = "original_dtype",
                       .value = std::to_string(variant),
                       .bound = "0 to 8"});
  }
  return *dtype;
}

MithrilMethod read_method(BincodeReader& in) {
  const std::uint32_t method = in.read_u32("method");
  if (method > static_cast<std::uint32_t>(MithrilMethod::dynamic_int8)) {
    throw FormatError(ErrorCode::bad_value, {},
                      {.section = "content",
                       .field = "method",
                       .value = std::to_string(method),
                       .bound = "0 to 3"});
  }
  return static_cast<MithrilMethod>(method);
}

// The codes come first in the file, and what they are last.
Tensor codes_of(const MithrilQuantized& tensor, std::vector<std::byte> data) {
  const TensorLayout layout = codes_layout(tensor.method, tensor.shape);
  const auto length = layout.shape.byte_length(layout.dtype);
  if (length != data.size()) {
    throw FormatError(
        ErrorCode::inconsistent, {},
        {.section = "content",
         .field = "data",
         .value = fmt::format("{} bytes", data.size()),
         .bound = length ? std::to_string(*length) : "a shape of less than 2^64 bytes"});
  }
  const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(data));
  return Tensor::adopt(layout, *owner, owner);
}

}  // namespace
}  // namespace thalia::formats::mithril_quantized

namespace thalia {

using formats::mithril_quantized::BincodeReader;
using formats::mithril_quantized::BincodeWriter;

MithrilQuantized formats::mithril_quantized::decode(ByteSpan file, const ReadLimits& limits,
                                                    io::MemoryBudget& budget) {
  io::check_file_bytes("frame", file.size(), limits);
  BincodeReader in(file, budget);
  MithrilQuantized tensor;
  auto data = in.read_sequence<std::byte>("data");
  tensor.scales = in.read_sequence<float>("scales");
  if (in.read_option("zero_points"))
    tensor.zero_points = in.read_sequence<std::int8_t>("zero_points");
  tensor.original_dtype = formats::mithril_quantized::read_dtype_of(in);
  tensor.shape = formats::mithril_quantized::read_shape_of(in);
  tensor.method = formats::mithril_quantized::read_method(in);
  if (in.read_option("group_size")) tensor.group_size = in.read_u64("group_size");
  in.finish();
  tensor.codes = formats::mithril_quantized::codes_of(tensor, std::move(data));
  if (auto misfit =
          formats::mithril_quantized::find_misfit(formats::mithril_quantized::outline_of(tensor))) {
    throw FormatError(ErrorCode::inconsistent, {},
                      {.section = "content",
                       .field = std::move(misfit->field),
                       .value = std::move(misfit->value),
                       .bound = std::move(misfit->bound)});
  }
  return tensor;
}

MithrilQuantized decode_mithril_quantized(ByteSpan file, const ReadLimits& limits) {
  io::MemoryBudget budget(limits, file.size());
  return formats::mithril_quantized::decode(file, limits, budget);
}

MithrilQuantized open_mithril_quantized(const std::filesystem::path& path,
                                        const ReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  return with_path(path.native(),
                   [&] { return decode_mithril_quantized(file->bytes(), options.input.limits); });
}

std::vector<std::byte> encode_mithril_quantized(const MithrilQuantized& tensor, int level) {
  check_option("level", level, 1, 22);
  if (auto misfit =
          formats::mithril_quantized::find_misfit(formats::mithril_quantized::outline_of(tensor)))
    fail_argument(ErrorCode::bad_argument, misfit->field, misfit->value, misfit->bound);
  BincodeWriter out;
  out.write_u64(tensor.codes.bytes().size());
  out.write(tensor.codes.bytes());
  out.write_u64(tensor.scales.size());
  out.write(std::as_bytes(std::span(tensor.scales)));
  out.write_u8(tensor.zero_points ? 1 : 0);
  if (tensor.zero_points) {
    out.write_u64(tensor.zero_points->size());
    out.write(std::as_bytes(std::span(*tensor.zero_points)));
  }
  out.write_u32(*formats::mithril_quantized::dtype_variant(tensor.original_dtype));
  out.write_u64(tensor.shape.rank());
  for (const std::uint64_t extent : tensor.shape.extents()) out.write_u64(extent);
  out.write_u32(static_cast<std::uint32_t>(tensor.method));
  out.write_u8(tensor.group_size ? 1 : 0);
  if (tensor.group_size) out.write_u64(*tensor.group_size);

  std::vector<std::byte> frame;
  codec::ZstdEncoder encoder(level);
  const auto append = [&](ByteSpan piece) {
    frame.insert(frame.end(), piece.begin(), piece.end());
  };
  encoder.write(out.bytes(), append);
  encoder.finish(append);
  return frame;
}

// RFC 8878, "Frame_Header_Descriptor" and "Window_Descriptor". The windows are those that libzstd
// chooses for content whose size it does not know.
int mithril_quantized_level(ByteSpan file) noexcept {
  constexpr std::byte kSingleSegment{0x20};
  if (file.size() < 6 || (file[4] & kSingleSegment) != std::byte{0})
    return formats::mithril_quantized::kUsualLevel;
  switch (std::to_integer<unsigned>(file[5])) {
    case 9u << 3:
      return 1;
    case 10u << 3:
      return 2;
    case 12u << 3:
      return 9;
    case 13u << 3:
      return 19;
    case 15u << 3:
      return 20;
    case 16u << 3:
      return 21;
    case 17u << 3:
      return 22;
    default:
      return formats::mithril_quantized::kUsualLevel;
  }
}

}  // namespace thalia
