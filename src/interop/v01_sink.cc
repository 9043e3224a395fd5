#include "interop/v01_sink.h"

#include <algorithm>

#include "integrity/sha256.h"
#include "io/posix_file.h"

namespace thalia::interop {
namespace {

constexpr std::size_t kPiece = 1 << 20;

}  // namespace

V01FileSink::V01FileSink(const std::filesystem::path& path, Durability durability)
    : file_(path, {.durability = durability}) {}

void V01FileSink::write(ByteSpan bytes) {
  if (gathered_.size() + bytes.size() > kPiece) flush();
  if (bytes.size() >= kPiece) {
    io::pwrite_all(file_.fd(), offset_, bytes, file_.path());
    offset_ += bytes.size();
    return;
  }
  gathered_.insert(gathered_.end(), bytes.begin(), bytes.end());
}

void V01FileSink::overwrite(std::uint64_t offset, ByteSpan bytes) {
  flush();
  io::pwrite_all(file_.fd(), offset, bytes, file_.path());
}

Digest256 V01FileSink::checksum() {
  flush();
  integrity::Sha256 sha;
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kPiece, offset_));
  for (std::uint64_t at = 0; at < offset_;) {
    const auto piece =
        MutableByteSpan(buffer).first(std::min<std::uint64_t>(buffer.size(), offset_ - at));
    io::pread_all(file_.fd(), at, piece, file_.path());
    sha.update(piece);
    at += piece.size();
  }
  return sha.finish();
}

void V01FileSink::commit() {
  flush();
  file_.commit();
}

void V01FileSink::flush() {
  io::pwrite_all(file_.fd(), offset_, gathered_, file_.path());
  offset_ += gathered_.size();
  gathered_.clear();
}

}  // namespace thalia::interop
