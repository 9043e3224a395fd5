// Wrapped files of tests: contents that compress in part, and seek tables that are read apart from
// the library's own reader.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "format/wrapper.h"
#include "support/files.h"
#include "support/sample.h"
#include "thalia/compress.h"

namespace thalia::test {

inline constexpr Codec kWrappers[] = {Codec::zstd, Codec::lz4};

inline std::string ending(Codec codec) {
  return codec == Codec::zstd ? ".zst" : ".lz4";
}

/// Runs of equal bytes and runs that look random, the same each time.
inline std::string mixed_contents(std::size_t length) {
  std::string text;
  std::uint64_t state = 1;
  while (text.size() < length) {
    for (int i = 0; i < 500; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += static_cast<char>(state >> 33);
    }
    text.append(1500, static_cast<char>(state >> 40));
  }
  text.resize(length);
  return text;
}

/// One thread, frames of 4 KiB, no wait for the disk.
inline CompressOptions small_frames() {
  return {.frame_bytes = 4096, .output = {.durability = Durability::none}, .work = {.threads = 1}};
}
inline DecompressOptions quickly() {
  return {.output = {.durability = Durability::none}, .work = {.threads = 1}};
}

/// `text` wrapped with `options`, as the bytes of the file.
inline std::string wrapped(const std::string& text, Codec codec,
                           CompressOptions options = small_frames()) {
  const TemporaryFolder folder;
  write_file(folder / "plain", text);
  options.compression.codec = codec;
  compress_checkpoint(folder / "plain", folder / "wrapped", options);
  return read_file(folder / "wrapped");
}

/// The seek table at the end of a wrapped file, as format.md says, for editing.
struct TableEditor {
  explicit TableEditor(std::string file) : bytes(std::move(file)) {
    std::memcpy(&footer, &bytes[bytes.size() - sizeof footer], sizeof footer);
    entries.resize(footer.frame_count);
    begin =
        bytes.size() - sizeof footer - entries.size() * sizeof(format::SeekEntry) - sizeof header;
    std::memcpy(&header, &bytes[begin], sizeof header);
    std::memcpy(entries.data(), &bytes[begin + sizeof header],
                entries.size() * sizeof(format::SeekEntry));
  }
  /// The file with the table as it is now; lengths that follow are made right.
  std::string file() {
    const std::size_t stride = sizeof(format::SeekEntry) + (checksums.empty() ? 0 : 4);
    header.length = static_cast<std::uint32_t>(entries.size() * stride + sizeof footer);
    footer.descriptor = checksums.empty() ? 0 : format::kSeekChecksums;
    return as_it_is();
  }
  std::string as_it_is() const {
    std::string out = bytes.substr(0, begin);
    out.append(reinterpret_cast<const char*>(&header), sizeof header);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      out.append(reinterpret_cast<const char*>(&entries[i]), sizeof entries[i]);
      if (!checksums.empty())
        out.append(reinterpret_cast<const char*>(&checksums[i]), sizeof checksums[i]);
    }
    out.append(reinterpret_cast<const char*>(&footer), sizeof footer);
    return out;
  }

  std::string bytes;
  std::size_t begin;
  format::SkippableHeader header;
  std::vector<format::SeekEntry> entries;
  std::vector<std::uint32_t> checksums;  ///< one an entry, or none
  format::SeekFooter footer;
};

/// A wrapped file without its seek table.
inline std::string without_table(const std::string& file) {
  return file.substr(0, TableEditor(file).begin);
}

/// A file of these bytes, for as long as it lives.
struct File : TemporaryFolder {
  explicit File(const std::string& contents) : path(*this / "f") { write_file(path, contents); }
  std::filesystem::path path;
};

}  // namespace thalia::test
