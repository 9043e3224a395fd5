// Texts of a header are changed within the header's own text, so that what another program wrote
// stays as it is. The new text takes the old one's room where it can: what is too long eats spaces,
// what is too short leaves some. Then tensors keep their places, and need not be written:
//
//   1. A clone shares all blocks with the file, gets the new header, and replaces the file: atomic.
//   2. On file systems without clones, bytes that differ within one sector are written in place.
//   3. Else a new file is written.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "formats/safetensors/header.h"
#include "formats/safetensors/metadata_slot.h"
#include "formats/safetensors/parse.h"
#include "io/file/file_bytes.h"
#include "io/file/posix_file.h"
#include "io/folder/clone_file.h"
#include "io/output/atomic_file.h"
#include "json/writer.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/formats/safetensors.h"

namespace thalia::formats::safetensors {
namespace {

// The least that a disk writes at once.
constexpr std::uint64_t kSector = 512;
// Payloads are copied in pieces of this size.
constexpr std::size_t kCopied = 8 << 20;
// A file of which tensors begin at a multiple of this or less keeps that.
constexpr std::uint64_t kKeptAlignment = 4096;

SafetensorsMetadata changed(const std::optional<SafetensorsMetadata>& metadata,
                            const SafetensorsMetadataChanges& changes) {
  SafetensorsMetadata texts = metadata.value_or(SafetensorsMetadata());
  std::set<std::string_view> keys;
  for (const auto& [key, text] : changes) {
    if (!is_valid_utf8(key) || (text && !is_valid_utf8(*text)))
      fail_argument(ErrorCode::bad_argument, "changes", printable(key), "", "not UTF-8");
    if (!keys.insert(key).second)
      fail_argument(ErrorCode::duplicate, "changes", printable(key), "", "two of this key");
    const auto found = std::ranges::find(texts, key, &SafetensorsMetadata::value_type::first);
    if (found == texts.end()) {
      if (text) texts.emplace_back(key, *text);
    } else if (text) {
      found->second = *text;
    } else {
      texts.erase(found);
    }
  }
  return texts;
}

std::string object_of(const SafetensorsMetadata& texts) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  for (const auto& [key, value] : texts) json.member(key, value);
  json.end_object();
  return text;
}

// The header around the texts: what comes before their object, and after it.
struct Frame {
  std::string front;
  std::string back;        ///< without the spaces at the end of the header
  std::size_t spaces = 0;  ///< that may be between the two, where they did
};

Frame frame_of(const ParsedSafetensors& parsed) {
  const std::string_view header = parsed.header.substr(0, parsed.header.find_last_not_of(' ') + 1);
  if (const auto slot = find_metadata_slot(header)) {
    return {.front = std::string(header.substr(0, slot->begin)),
            .back = std::string(header.substr(slot->end)),
            .spaces = slot->end - slot->begin};
  }
  const bool is_empty = parsed.tensors.empty();
  return {.front = fmt::format("{{\"{}\":", kSafetensorsMetadataKey),
          .back = (is_empty ? "" : ",") + std::string(header.substr(1))};
}

struct NewHeader {
  std::string bytes;     ///< with the length in front
  std::string in_place;  ///< the same with spaces after the texts, so that fewer bytes differ;
                         ///< empty if that cannot be
  bool fits = false;     ///< in the room of the old one
};

NewHeader new_header(const ParsedSafetensors& parsed, const SafetensorsMetadata& texts,
                     std::uint64_t max_header_bytes) {
  const Frame frame = frame_of(parsed);
  const std::string object = object_of(texts);
  NewHeader made{.bytes =
                     std::string(kSafetensorsPrefix, '\0') + frame.front + object + frame.back};
  const std::uint64_t old_size = kSafetensorsPrefix + parsed.header.size();
  made.fits = made.bytes.size() <= old_size;
  if (made.fits) {
    if (object.size() <= frame.spaces) {
      made.in_place = std::string(kSafetensorsPrefix, '\0') + frame.front + object +
                      std::string(frame.spaces - object.size(), ' ') + frame.back;
      made.in_place.resize(old_size, ' ');
      finish_header(made.in_place, max_header_bytes);
    }
    made.bytes.resize(old_size, ' ');
  } else {
    // As aligned as it was made to be, which takes eight spaces or more.
    const std::size_t text_end = parsed.header.find_last_not_of(' ') + 1;
    std::uint64_t align = 8;
    if (parsed.header.size() - text_end >= 8)
      while (align < kKeptAlignment && old_size % (align * 2) == 0) align *= 2;
    made.bytes.resize((made.bytes.size() + align - 1) / align * align, ' ');
  }
  finish_header(made.bytes, max_header_bytes);
  return made;
}

// The one sector in which all differences lie, as [begin, end) of what differs.
std::optional<std::pair<std::size_t, std::size_t>> difference(ByteSpan old, std::string_view now) {
  std::size_t begin = 0, end = now.size();
  const auto same = [&](std::size_t i) { return old[i] == static_cast<std::byte>(now[i]); };
  while (begin < end && same(begin)) ++begin;
  while (end > begin && same(end - 1)) --end;
  if (begin < end && begin / kSector != (end - 1) / kSector) return std::nullopt;
  return std::pair(begin, end);
}

bool write_clone(const io::FileBytes& file, const std::filesystem::path& path,
                 const std::string& header, const SafetensorsEditOptions& options) {
  io::AtomicFile out(path, {.output = options.output, .cancel = options.work.cancel});
  if (!io::clone_file(file.fd(), out.fd())) return false;
  io::pwrite_all(out.fd(), 0, as_byte_span(header), path);
  out.commit();
  return true;
}

bool write_in_place(const io::FileBytes& file, const std::filesystem::path& path,
                    const std::string& header, const SafetensorsEditOptions& options) {
  const auto part = difference(file.bytes().first(header.size()), header);
  if (!part) return false;
  const io::UniqueFd fd = io::open_for_update(path);
  // What was parsed is another file than the one that would be written to.
  if (!io::is_at_path(file.fd(), path) || io::file_size(fd.get(), path) != file.bytes().size())
    return false;
  const std::string_view bytes =
      std::string_view(header).substr(part->first, part->second - part->first);
  io::pwrite_all(fd.get(), part->first, as_byte_span(bytes), path);
  if (options.output.durability != Durability::none) io::sync_file(fd.get(), false, path);
  return true;
}

// A piece of the file. A copied file is read through a buffer: what is touched in it stays in
// memory.
ByteSpan piece_of(const io::FileBytes& file, std::uint64_t at, std::size_t length,
                  std::vector<std::byte>& buffer) {
  if (file.access() != Access::copied) {
    file.read_ahead(at, length);
    return file.bytes().subspan(at, length);
  }
  buffer.resize(length);
  file.read(at, buffer);
  return buffer;
}

void write_anew(const io::FileBytes& file, const std::filesystem::path& path,
                const std::string& header, ByteSpan data, const SafetensorsEditOptions& options) {
  OutputFile out(path, options.output, options.work.cancel);
  out.write(as_byte_span(header));
  const std::uint64_t begin = static_cast<std::uint64_t>(data.data() - file.bytes().data());
  std::vector<std::byte> buffer;
  for (std::size_t at = 0; at < data.size(); at += kCopied) {
    const std::size_t length = std::min(kCopied, data.size() - at);
    out.write(piece_of(file, begin + at, length, buffer));
    if (options.work.progress) options.work.progress(at + length, data.size());
  }
  out.commit();
}

SafetensorsEdit edit(const std::filesystem::path& path, const SafetensorsMetadataChanges& changes,
                     SafetensorsEditOptions options) {
  options.output.replace = true;  // what is edited is there
  const auto file = io::FileBytes::open(path, options.access);
  return with_path(path.native(), [&] {
    const ParsedSafetensors parsed = parse_safetensors(
        file->bytes(), options.max_header_bytes, options.limits,
        [&](std::uint64_t begin, std::uint64_t length) { file->touch(begin, length); });
    const SafetensorsMetadata texts = changed(parsed.metadata, changes);
    if (texts == parsed.metadata.value_or(SafetensorsMetadata())) return SafetensorsEdit::unchanged;
    const NewHeader header = new_header(parsed, texts, options.max_header_bytes);
    stop_if_cancelled(options.work.cancel);
    if (header.fits) {
      if (write_clone(*file, path, header.bytes, options)) return SafetensorsEdit::cloned;
      if (options.in_place) {
        for (const std::string* const form : {&header.bytes, &header.in_place})
          if (!form->empty() && write_in_place(*file, path, *form, options))
            return SafetensorsEdit::in_place;
      }
    }
    const ByteSpan data = file->bytes().subspan(kSafetensorsPrefix + parsed.header.size());
    write_anew(*file, path, header.bytes, data, options);
    return SafetensorsEdit::rewritten;
  });
}

}  // namespace
}  // namespace thalia::formats::safetensors

namespace thalia {

SafetensorsEdit edit_safetensors_metadata(const std::filesystem::path& path,
                                          const SafetensorsMetadataChanges& changes,
                                          const SafetensorsEditOptions& options) {
  return formats::safetensors::edit(path, changes, options);
}

}  // namespace thalia
