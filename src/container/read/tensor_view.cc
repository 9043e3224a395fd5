// A view is made only of an entry that validate_tensor_entry() accepted, so its shape, lengths and
// place are facts: accessors return them unchecked, and byte counts do not overflow. Payloads are
// verified when they are asked for. Whatever throws here runs in with_names(), so that errors say
// which tensor of which region it was.
#include "thalia/tensor.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/fail.h"
#include "base/inside.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "container/file/open_file.h"
#include "container/read/chunk_reader.h"
#include "container/read/tensor_reading.h"
#include "format/chunk.h"
#include "format/directory.h"
#include "format/payload.h"
#include "format/tensor.h"
#include "format/validate_directory.h"
#include "io/file/read_ahead.h"

namespace thalia {

TensorView detail::OpenFile::tensor_view(std::uint32_t region, std::uint32_t number) const {
  const format::DirectoryRegion& record = directory_region(region);
  const format::TensorEntry& entry = tensor_entry(number);
  named([&] {
    format::validate_tensor_entry(entry, tensor_entry_offset(number), *directory_,
                                  owner_extent(region));
  });
  return Inside::make<TensorView>(shared_from_this(), name(record.name_offset, record.name_length),
                                  &entry);
}

TensorView::TensorView(std::shared_ptr<const detail::OpenFile> file, std::string_view region,
                       const format::TensorEntry* entry)
    : file_(std::move(file)), entry_(entry), region_(region) {
  name_ = file_->name(entry_->name_offset, entry_->name_length);
  shape_ = format::shape_of(*entry_);
  element_count_ = shape_.element_count().value_or(0);  // validated: it does not overflow
}

Role TensorView::role() const noexcept {
  return entry_->role;
}
Encoding TensorView::encoding() const noexcept {
  return entry_->encoding;
}
DType TensorView::dtype() const noexcept {
  return entry_->dtype;
}
std::uint64_t TensorView::nnz() const noexcept {
  return entry_->nnz;
}
bool TensorView::wide_indices() const noexcept {
  return (entry_->flags & format::kTensorWideIndices) != 0;
}
std::uint64_t TensorView::logical_bytes() const noexcept {
  return entry_->logical_length;
}
std::uint64_t TensorView::stored_bytes() const noexcept {
  return entry_->stored_length;
}
std::uint64_t TensorView::stored_offset() const noexcept {
  return entry_->stored_offset;
}
std::uint32_t TensorView::chunk_count() const noexcept {
  return entry_->chunk_count;
}
std::uint32_t TensorView::crc32() const noexcept {
  return entry_->crc32;
}
Digest128 TensorView::content_hash() const noexcept {
  return entry_->content_hash;
}

std::vector<Codec> TensorView::codecs() const {
  return container::with_names(*file_, region_, name_, [&] {
    std::array<bool, kCodecCount> found{};
    if (is_raw()) found[static_cast<std::size_t>(Codec::none)] = true;
    for (std::uint32_t i = 0; i < entry_->chunk_count; ++i) {
      const std::uint32_t number = entry_->first_chunk + i;
      const std::uint8_t code = format::code_of(file_->chunk_entry(number).codec);
      // Chunk entries are handed out unchecked, so the code may not exist.
      if (code >= found.size()) {
        fail_field(ErrorCode::bad_value, "directory", "codec",
                   file_->chunk_entry_offset(number) + offsetof(format::ChunkEntry, codec),
                   std::to_string(code), fmt::format("at most {}", found.size() - 1));
      }
      found[code] = true;
    }
    std::vector<Codec> out;
    for (std::size_t code = 0; code < found.size(); ++code) {
      if (found[code]) out.push_back(static_cast<Codec>(code));
    }
    return out;
  });
}

namespace container {

void fail_unresolved(Encoding encoding) {
  const char* why = "this version cannot resolve the encoding";
  if (needs_base(encoding)) {
    why = "the tensor is not in this file alone, but a change of its base's; resolve the delta";
  } else if (encoding == Encoding::quantized) {
    why = "the tensor is quantized: its elements are nowhere in the file; read_dense() restores it";
  }
  throw UnsupportedError(ErrorCode::unsupported_feature, why,
                         {.field = "encoding",
                          .value = std::string(encoding_name(encoding)),
                          .bound = "dense, csr or coo"});
}

void require_encoding(const TensorView& tensor, Encoding wanted) {
  if (tensor.encoding() != wanted) {
    fail_argument(ErrorCode::wrong_state, "encoding", std::string(encoding_name(tensor.encoding())),
                  std::string(encoding_name(wanted)));
  }
}

void require_raw(const TensorView& tensor, std::string_view other_way) {
  if (tensor.is_raw()) return;
  fail_argument(ErrorCode::wrong_state, "tensor",
                fmt::format("{} compressed chunks", tensor.chunk_count()),
                fmt::format("a tensor that is stored raw; {} decompresses", other_way));
}

void require_aligned(MutableByteSpan storage) {
  const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
  if (address % 8 != 0) {
    fail_argument(ErrorCode::bad_argument, "storage", fmt::format("address {:#x}", address),
                  "a multiple of 8");
  }
}

namespace {

// Below this, starting threads takes longer than copying.
constexpr std::uint64_t kSharedCopy = 4 << 20;
// What a thread copies at a time, 1 MiB or a block of the tree if that is larger: it fits into a
// cache.
constexpr unsigned kCopyLog2 = 20;
// How far the kernel is asked to read ahead of the copy: page faults alone read a disk slowly.
constexpr std::uint64_t kReadAhead = 16 << 20;

// Cuts the payload at multiples of the block size, so that each block is hashed by one thread and
// copied while it is in the cache of that core.
void copy_payload(const detail::OpenFile& file, const format::TensorEntry& entry,
                  MutableByteSpan out) {
  const std::uint64_t begin = entry.stored_offset;
  const std::uint64_t end = begin + entry.stored_length;
  file.verified_payload(entry, begin, 0);  // checks tensors as a whole, where blocks are not
  const unsigned log2 = std::max<unsigned>(kCopyLog2, file.header().integrity_block_log2);
  const std::uint64_t first = begin >> log2;
  const unsigned threads = out.size() < kSharedCopy ? 1 : file.options().work.threads;
  // A smaller one the system reads ahead by itself, at the first page fault.
  if (out.size() >= io::ReadAhead::kLeast)
    file.mapping().advise(begin, std::min(end - begin, kReadAhead), io::Advice::will_need);
  parallel_for(((end - 1) >> log2) - first + 1, threads, [&](std::size_t i) {
    const std::uint64_t from = std::max(begin, (first + i) << log2);
    const std::uint64_t to = std::min(end, (first + i + 1) << log2);
    if (from + kReadAhead < end)
      file.mapping().advise(from + kReadAhead, std::min(to - from, end - from - kReadAhead),
                            io::Advice::will_need);
    file.read_verified(from, out.subspan(from - begin, to - from));
  });
}

}  // namespace

void read_logical(const TensorView& tensor, const detail::OpenFile& file,
                  const format::TensorEntry& entry, MutableByteSpan out) {
  if (out.size() != tensor.logical_bytes()) {
    fail_argument(ErrorCode::size_mismatch, "out", fmt::format("{} bytes", out.size()),
                  std::to_string(tensor.logical_bytes()));
  }
  if (out.empty()) return;
  if (!tensor.is_raw()) return ChunkReader(file, entry).decode_all(out);
  try {
    copy_payload(file, entry, out);
  } catch (const IntegrityError&) {
    // The block may be damaged beside the tensor. Reads all of it once more, into `out`.
    if (!file.read_despite_blocks(entry, out)) throw;
  }
}

}  // namespace container

ByteSpan TensorView::bytes() const {
  return container::with_names(*file_, region_, name_, [&] {
    container::require_raw(*this, "read()");
    if (!container::is_plain(encoding())) container::fail_unresolved(encoding());
    return file_->verified_payload(*entry_, entry_->stored_offset, entry_->stored_length);
  });
}

void TensorView::prefetch() const {
  file_->mapping().advise(stored_offset(), stored_bytes(), io::Advice::will_need);
}

void TensorView::populate() const {
  // Not in with_names(): if the file was cut, reading the name raises SIGBUS too.
  file_->populate(stored_offset(), stored_bytes());
}

void TensorView::release() const {
  file_->mapping().advise(stored_offset(), stored_bytes(), io::Advice::dont_need);
}

void TensorView::check_typed(DType wanted) const {
  container::with_names(*file_, region_, name_, [&] {
    if (dtype() != wanted) {
      fail_argument(ErrorCode::dtype_mismatch, "dtype", std::string(dtype_name(wanted)),
                    std::string(dtype_name(dtype())));
    }
    if (encoding() != Encoding::dense) {
      fail_argument(ErrorCode::wrong_state, "encoding", std::string(encoding_name(encoding())),
                    encoding() == Encoding::quantized
                        ? "dense; read_dense() restores quantized tensors"
                        : "dense; csr() and coo() view sparse tensors");
    }
  });
}

// Compilers take a bool to be 0 or 1, so any other byte would make the caller's program undefined.
void TensorView::check_booleans(ByteSpan raw) const {
  const auto bad =
      std::find_if(raw.begin(), raw.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad == raw.end()) return;
  container::with_names(*file_, region_, name_, [&] {
    fail_field(ErrorCode::bad_value, "payload", "bool",
               stored_offset() + static_cast<std::uint64_t>(bad - raw.begin()),
               std::to_string(std::to_integer<int>(*bad)), "0 or 1");
  });
}

ByteSpan TensorView::rows(std::uint64_t begin, std::uint64_t end) const {
  return container::with_names(*file_, region_, name_, [&] {
    if (!is_raw() || encoding() != Encoding::dense) {
      fail_argument(ErrorCode::wrong_state, "tensor",
                    fmt::format("{}, {} chunks", encoding_name(encoding()), chunk_count()),
                    "dense and stored raw; read_slice() reads others");
    }
    if (shape_.rank() == 0 || begin > end || end > shape_[0]) {
      fail_argument(ErrorCode::bad_argument, "rows", fmt::format("[{}, {})", begin, end),
                    shape_.rank() == 0 ? "a tensor of rank 1 or more"
                                       : fmt::format("within [0, {})", shape_[0]));
    }
    if (begin == end || element_count_ == 0) return ByteSpan();
    const std::uint64_t row_bits = element_count_ / shape_[0] * dtype_bits(dtype());
    // A span cannot begin within a byte.
    if (row_bits % 8 != 0) {
      fail_argument(ErrorCode::bad_argument, "rows", fmt::format("rows of {} bits", row_bits),
                    "rows that start on a byte; read_slice() unpacks");
    }
    const std::uint64_t row_bytes = row_bits / 8;
    return file_->verified_payload(*entry_, entry_->stored_offset + begin * row_bytes,
                                   (end - begin) * row_bytes);
  });
}

void TensorView::read(MutableByteSpan out) const {
  container::with_names(*file_, region_, name_, [&] {
    if (!container::is_plain(encoding())) container::fail_unresolved(encoding());
    container::read_logical(*this, *file_, *entry_, out);
  });
}

}  // namespace thalia
