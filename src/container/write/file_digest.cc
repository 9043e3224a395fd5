// SHA-256 cannot be cut into parts, so one thread follows the writers in file order and waits for
// each extent's flag. The flag's release and acquire hand over the bytes. The header comes from
// memory, since the image has zeros in its place. If no thread can be had, finish_extents() does
// the pass afterwards.
#include "container/write/file_digest.h"

#include <algorithm>
#include <exception>
#include <string>
#include <system_error>

#include "container/write/sha256_ending.h"
#include "io/folder/folder.h"
#include "io/output/atomic_file.h"
#include "thalia/files.h"
#include "thalia/text.h"

namespace thalia::container {

FileDigest::FileDigest(const FilePieces& image, ByteSpan prefix, ByteSpan header, std::uint64_t end,
                       std::uint64_t extent_bytes)
    : image_(image),
      prefix_(prefix),
      header_(header),
      end_(end),
      extent_bytes_(extent_bytes),
      extents_((end + extent_bytes - 1) / extent_bytes),
      final_(std::make_unique<std::atomic<bool>[]>(extents_)) {
  try {
    thread_ = std::jthread([this] { follow(); });
  } catch (const std::system_error&) {
    // No more threads to be had: finish_extents() does it.
  }
}

FileDigest::~FileDigest() {
  stopped_ = true;
  // Wakes the thread wherever it waits; it sees stopped_ and ends.
  for (std::uint64_t extent = 0; extent < extents_; ++extent) extent_is_final(extent);
}

void FileDigest::extent_is_final(std::uint64_t extent) noexcept {
  final_[extent].store(true, std::memory_order_release);
  final_[extent].notify_one();
}

void FileDigest::follow() {
  try {
    for (std::uint64_t extent = 0; extent < extents_; ++extent) {
      final_[extent].wait(false, std::memory_order_acquire);
      if (stopped_) return;
      hash(extent * extent_bytes_, std::min((extent + 1) * extent_bytes_, end_));
    }
  } catch (...) {
    error_ = std::current_exception();
  }
}

void FileDigest::hash(std::uint64_t begin, std::uint64_t end) {
  if (begin == 0) {
    hasher_.update(prefix_);
    hasher_.update(header_);
    begin = header_.size();
  }
  image_.for_each(begin, end, [&](ByteSpan piece) { hasher_.update(piece); });
}

void FileDigest::finish_extents() {
  if (thread_.joinable()) {
    thread_.join();
  } else {
    follow();
  }
  if (error_) std::rethrow_exception(error_);
}

Digest256 FileDigest::finish(std::uint64_t length) {
  hash(end_, length);
  return hasher_.finish();
}

namespace {

std::filesystem::path sha256_path(std::filesystem::path path) {
  path += kSha256Ending;
  return path;
}

}  // namespace

void check_sha256_name(const std::filesystem::path& path, const OutputOptions& output) {
  io::check_output_name(sha256_path(path), output.beside());
}

void remove_sha256_file(const std::filesystem::path& path, const OutputOptions& output) {
  const io::Folder folder(folder_of(path), output.within);
  if (!folder.remove(sha256_path(path).filename().string())) return;
  if (output.durability == Durability::full) folder.sync();
}

void write_sha256_file(const std::filesystem::path& path, const Digest256& digest,
                       const OutputOptions& output) {
  std::string line = hex(digest.bytes) + "  ";
  // sha256sum escapes names that would break the line, and marks such a line with a backslash in
  // front.
  std::string name;
  for (const char c : path.filename().string()) {
    name += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : c == '\r' ? "\\r" : std::string(1, c);
  }
  if (name != path.filename()) line.insert(0, "\\");
  line += name + "\n";

  OutputFile out(sha256_path(path), output.beside());
  out.write(as_byte_span(line));
  out.commit();
}

}  // namespace thalia::container
