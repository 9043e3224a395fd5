// Each member's start is read when the archive is opened, so that all names and shapes are known
// and nothing that cannot be read comes as a surprise later.
#include "formats/npz/archive.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "formats/npz/array.h"
#include "thalia/text.h"

namespace thalia::formats::npz {
namespace {

// Errors of `call` name the array.
template <typename Call>
decltype(auto) with_array(std::string_view name, const Call& call) {
  try {
    return call();
  } catch (Error& error) {
    error.add_tensor(printable(name));
    throw;
  }
}

}  // namespace

std::string array_name(std::string_view member) {
  if (member.ends_with(kArraySuffix)) member.remove_suffix(kArraySuffix.size());
  return std::string(member);
}

NpzArchive::NpzArchive(StoredBytes bytes, const ReadOptions& options)
    : bytes_(std::move(bytes)),
      options_(options),
      zip_(ZipDirectory::parse(bytes_.bytes, options_.input.limits)) {
  const std::size_t count = zip_.members().size();
  if (count > options_.input.limits.max_tensors)
    fail_limit("zip", "max_tensors", count, options_.input.limits.max_tensors);
  for (std::size_t member = 0; member < count; ++member) {
    stop_if_cancelled(options_.work.cancel);
    with_array(zip_.members()[member].name, [&] { add(member); });
  }
  compared_ = std::vector<std::atomic<bool>>(arrays_.size());
  std::unordered_set<std::string_view> names;
  for (std::size_t i = 0; i < arrays_.size(); ++i) {
    if (names.insert(arrays_[i].name).second) continue;
    throw FormatError(
        ErrorCode::bad_name, "two members are arrays of one name",
        {.section = "zip member", .field = "name", .value = printable(arrays_[i].name)});
  }
}

void NpzArchive::add(std::size_t member) {
  const ZipMember& found = zip_.members()[member];
  const std::vector<std::byte> start = zip_.read_start(found, kMostNpyHeader);
  if (!is_npy(start)) {
    // Whatever is called .npy is meant to be an array.
    if (found.name.ends_with(kArraySuffix))
      fail_field(ErrorCode::bad_magic, "npy header", "magic", 0, "other bytes", "\\x93NUMPY");
    others_.push_back(found.name);
    return;
  }
  const NpyHeader header = parse_npy_header(start, found.raw_bytes);
  NpyArray array = describe_array(array_name(found.name), header);
  array.deflated = found.method == ZipMethod::deflated;
  const std::uint64_t in_front = array.deflated ? 0 : header.header_bytes;
  array.offset = found.offset + in_front;
  array.stored_bytes = found.stored_bytes - in_front;
  arrays_.push_back(std::move(array));
  headers_.push_back(header);
  members_.push_back(member);
}

std::vector<std::byte> NpzArchive::header_text(std::size_t i) const {
  return zip_.read_start(member(i), headers_[i].header_bytes);
}

Tensor NpzArchive::read(std::size_t i) const {
  const ReadLimits& limits = options_.input.limits;
  return with_array(arrays_[i].name, [&] {
    const ByteSpan bytes = zip_.stored_bytes(member(i));
    if (arrays_[i].deflated) return inflate_elements(headers_[i], member(i), bytes, limits);
    if (options_.verification != Verification::off && !compared_[i].load()) {
      zip_.check_crc(member(i));
      compared_[i].store(true);
    }
    return view_elements(headers_[i], bytes.subspan(headers_[i].header_bytes), bytes_.owner,
                         limits);
  });
}

void NpzArchive::visit(std::size_t i, const PieceSink& sink) const {
  if (is_converted(headers_[i])) return sink(read(i).bytes());
  with_array(arrays_[i].name, [&] {
    std::uint64_t header_left = headers_[i].header_bytes;
    const std::size_t width = headers_[i].element_bytes();
    // A header may have any length, so an element may reach from one piece into the next.
    std::vector<std::byte> split;
    const auto hold = [&](ByteSpan part) { split.insert(split.end(), part.begin(), part.end()); };
    zip_.visit(member(i), [&](ByteSpan piece) {
      const std::uint64_t skipped = std::min<std::uint64_t>(header_left, piece.size());
      header_left -= skipped;
      piece = piece.subspan(skipped);
      if (!split.empty()) {
        const std::size_t more = std::min(width - split.size(), piece.size());
        hold(piece.first(more));
        piece = piece.subspan(more);
        if (split.size() == width) sink(std::exchange(split, {}));
      }
      const std::size_t whole = piece.size() - piece.size() % width;
      if (whole != 0) sink(piece.first(whole));
      hold(piece.subspan(whole));
    });
  });
}

void NpzArchive::check(std::size_t i) const {
  with_array(arrays_[i].name, [&] { zip_.check_crc(member(i)); });
}

}  // namespace thalia::formats::npz
