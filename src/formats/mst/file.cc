// Reads .mst files and the streams and wrappers of the program that writes them. The format has no
// checksums: damage shows only where a frame or a length does not fit. An open file is immutable
// and its copies share it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "codec/frame/frame.h"
#include "codec/frame/zstd_frame.h"
#include "format/little_endian.h"
#include "formats/mst/dtypes.h"
#include "formats/mst/parse.h"
#include "formats/source/byte_grouping.h"
#include "io/file/file_bytes.h"
#include "state/tensor/counted_tensor.h"
#include "thalia/formats/mithril.h"

namespace thalia {
namespace {

// Grouped bytes cannot be put in order in place, and a difference needs the base beside it.
constexpr bool needs_a_copy(unsigned width, bool delta) {
  return width != 0 || delta;
}

// The original's frames need not tell their content's size. So the size in the header is checked
// against the most that a frame of this length can decode to, before memory is asked for.
void check_length(ByteSpan frame, std::uint64_t raw_bytes) {
  const std::uint64_t most = codec::most_content(codec::FrameKind::zstd, frame.size());
  if (raw_bytes > most) {
    throw CompressionError("zstd", "more content than the frame's bytes can hold",
                           {.field = "uncompressed_size",
                            .value = fmt::format("{} bytes", raw_bytes),
                            .bound = fmt::format("{} bytes", most)});
  }
}

// Undoes compressing and grouping. For a delta, `raw` holds the base on entry.
void decode(ByteSpan frame, unsigned width, bool delta, MutableByteSpan raw,
            io::MemoryBudget& budget) {
  if (!needs_a_copy(width, delta)) return codec::zstd_decode(frame, raw, false);
  auto coded = budget.vector<std::byte>("header", raw.size());
  codec::zstd_decode(frame, coded, false);
  formats::scatter_planes(coded, width, 0, delta, raw);
}

struct Wrapper {
  MithrilWrapper kind;
  std::string_view magic;
  std::size_t size_bytes;
};
// Magic, a version byte, the content's size in 8 or 4 bytes, then one zstd frame.
constexpr std::array kWrappers{Wrapper{MithrilWrapper::dcp, "MCPT", 8},
                               Wrapper{MithrilWrapper::deepspeed, "MDSC", 4}};
constexpr std::byte kWrapperVersion{1};

// Told by the magic alone; the version is checked when the content is wanted.
const Wrapper* find_wrapper(ByteSpan start) noexcept {
  for (const Wrapper& wrapper : kWrappers) {
    if (start.size() >= wrapper.magic.size() &&
        std::memcmp(start.data(), wrapper.magic.data(), wrapper.magic.size()) == 0)
      return &wrapper;
  }
  return nullptr;
}

}  // namespace

struct MstFile::Impl {
  StoredBytes stored;
  std::string name;
  ReadLimits limits;
  formats::ParsedMst parsed;
  std::unordered_map<std::string_view, std::size_t> places;
};

MstFile MstFile::from_bytes(StoredBytes bytes, std::string name, const ReadLimits& limits) {
  auto impl = std::make_shared<Impl>();
  impl->stored = std::move(bytes);
  impl->name = std::move(name);
  impl->limits = limits;
  with_path(impl->name, [&] { impl->parsed = formats::parse_mst(impl->stored.bytes, limits); });
  for (std::size_t i = 0; i < impl->parsed.tensors.size(); ++i)
    impl->places.emplace(impl->parsed.tensors[i].name, i);
  MstFile file;
  file.impl_ = std::move(impl);
  return file;
}

MstFile MstFile::open(const std::filesystem::path& path, const ReadOptions& options) {
  const auto file = io::FileBytes::open_whole(path, options.input.access, options.work.cancel);
  return from_bytes({.bytes = file->bytes(), .owner = file}, path.string(), options.input.limits);
}

const std::vector<MstTensor>& MstFile::tensors() const noexcept {
  return impl_->parsed.tensors;
}

const std::vector<std::pair<std::string, std::string>>& MstFile::metadata() const noexcept {
  return impl_->parsed.metadata;
}

bool MstFile::byte_grouping() const noexcept {
  return impl_->parsed.byte_grouping;
}

const std::vector<std::size_t>& MstFile::header_order() const noexcept {
  return impl_->parsed.header_order;
}

const std::vector<std::string>& MstFile::unknown_members() const noexcept {
  return impl_->parsed.other_members;
}

bool MstFile::has_other_bytes() const noexcept {
  return impl_->parsed.other_bytes;
}

std::uint32_t MstFile::version() const noexcept {
  return impl_->parsed.version;
}

int MstFile::level() const noexcept {
  return impl_->parsed.level;
}

std::uint64_t MstFile::file_bytes() const noexcept {
  return impl_->stored.bytes.size();
}

Tensor MstFile::read(std::string_view name) const {
  const auto found = impl_->places.find(name);
  if (found == impl_->places.end()) {
    throw UsageError(
        ErrorCode::not_found,
        "no such tensor" + suggestion_among(name, impl_->parsed.tensors, &MstTensor::name),
        {.path = impl_->name, .tensor = printable(name)});
  }
  const MstTensor& tensor = impl_->parsed.tensors[found->second];
  try {
    const ByteSpan frame = impl_->stored.bytes.subspan(tensor.offset, tensor.compressed_size);
    const unsigned width = byte_grouping() ? formats::mst::plane_width(tensor.dtype) : 0;
    check_length(frame, tensor.uncompressed_size);
    io::MemoryBudget budget(impl_->limits, frame.size());
    return state::counted_tensor(
        budget, "header", {.dtype = tensor.dtype, .shape = tensor.shape},
        [&](MutableByteSpan raw) { decode(frame, width, false, raw, budget); });
  } catch (Error& error) {
    error.add_path(impl_->name);
    error.add_tensor(printable(name));
    throw;
  }
}

std::vector<std::byte> decode_mithril_stream(ByteSpan stream, DType dtype, std::uint64_t raw_bytes,
                                             ByteSpan previous, bool byte_grouping,
                                             const ReadLimits& limits) {
  const unsigned width = byte_grouping ? formats::mst::plane_width(dtype) : 0;
  if (width != 0 && raw_bytes % width != 0) {
    fail_argument(ErrorCode::size_mismatch, "raw_bytes", std::to_string(raw_bytes),
                  fmt::format("a multiple of {}", width));
  }
  if (!previous.empty() && previous.size() != raw_bytes) {
    fail_argument(ErrorCode::size_mismatch, "previous", fmt::format("{} bytes", previous.size()),
                  std::to_string(raw_bytes));
  }
  check_length(stream, raw_bytes);
  io::MemoryBudget budget(limits, stream.size());
  auto raw = budget.vector<std::byte>("header", raw_bytes);
  std::ranges::copy(previous, raw.begin());
  decode(stream, width, !previous.empty(), raw, budget);
  return raw;
}

std::optional<MithrilWrapper> mithril_wrapper(ByteSpan start) noexcept {
  const Wrapper* const wrapper = find_wrapper(start);
  return wrapper == nullptr ? std::nullopt : std::optional(wrapper->kind);
}

std::vector<std::byte> unwrap_mithril(ByteSpan file, const ReadLimits& limits) {
  const Wrapper* const wrapper = find_wrapper(file);
  if (wrapper == nullptr)
    fail_field(ErrorCode::bad_magic, "prelude", "magic", 0, "other bytes", "MCPT or MDSC");
  const std::size_t prelude = wrapper->magic.size() + 1 + wrapper->size_bytes;
  if (file.size() < prelude) {
    fail_field(ErrorCode::truncated, "prelude", "original_size", wrapper->magic.size() + 1,
               fmt::format("{} bytes", file.size()), fmt::format("at least {}", prelude));
  }
  const std::byte version = file[wrapper->magic.size()];
  if (version != kWrapperVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "prelude",
                            .field = "version",
                            .offset = wrapper->magic.size(),
                            .value = std::to_string(std::to_integer<int>(version)),
                            .bound = "1"});
  }
  // Zeroed first: the shorter field fills only its lower bytes, and the order is little endian.
  format::le64 size(0);
  std::memcpy(&size, file.data() + wrapper->magic.size() + 1, wrapper->size_bytes);
  const ByteSpan frame = file.subspan(prelude);
  check_length(frame, size);
  io::MemoryBudget budget(limits, frame.size());
  auto content = budget.vector<std::byte>("header", size);
  codec::zstd_decode(frame, content, false);
  return content;
}

}  // namespace thalia
