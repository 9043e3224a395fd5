// An untrusted model may name any file of the machine. So a location must lead down from the
// model's folder, and what it leads to, links followed, must lie in it: else a model would read
// /etc/passwd into a tensor, and a conversion would hand it on.
#include "formats/onnx/data_folder.h"

#include <fmt/format.h>

#include <cerrno>

#include "base/fail.h"
#include "base/utf8.h"
#include "integrity/sha1.h"
#include "io/memory/allocation_limit.h"
#include "io/path/base_file.h"

namespace thalia::formats::onnx {
namespace {

[[noreturn]] void refuse_location(std::string_view location, std::string bound,
                                  const std::string& reason = {}) {
  throw FormatError(ErrorCode::out_of_bounds,
                    reason.empty() ? "a model may only name files in its folder" : reason,
                    {.section = "external_data",
                     .field = "location",
                     .value = printable(location),
                     .bound = std::move(bound)});
}

}  // namespace

void DataFolder::check_location(std::string_view location) {
  const std::filesystem::path path(location);
  if (location.empty() || location.find('\0') != std::string_view::npos || path.is_absolute() ||
      !path.has_filename())
    refuse_location(location, "a path below the model's folder");
  for (const std::filesystem::path& name : path)
    if (name == "..") refuse_location(location, "a path without '..'");
}

std::shared_ptr<const io::FileBytes> DataFolder::open(const std::string& location) const {
  if (folder_.empty()) {
    throw UnsupportedError(ErrorCode::unsupported_feature,
                           "a model in memory has no files beside it",
                           {.section = "external_data", .value = printable(location)});
  }
  check_location(location);
  const std::lock_guard lock(lock_);
  const auto found = open_.find(location);
  if (found != open_.end()) return found->second;
  const std::filesystem::path place = folder_ / location;
  io::BaseFile opened{.bytes = nullptr, .outside = true};
  for (auto within = within_.begin(); opened.outside && within != within_.end(); ++within)
    opened = io::open_base(place, input_.access, {.absolute = true, .folder = *within});
  if (opened.outside) {
    refuse_location(location, "a file in the model's folder, once links are followed",
                    "outside the folder that external data may lie in");
  }
  if (opened.bytes == nullptr && opened.reason.empty())
    throw IoError("open", ENOENT, {.path = place.native(), .section = "external_data"});
  if (opened.bytes == nullptr) refuse_location(location, "a file in the folder", opened.reason);
  io::check_file_bytes("external_data", opened.bytes->bytes().size(), input_.limits);
  if (open_.size() < kMostOpen) open_.emplace(location, opened.bytes);
  return opened.bytes;
}

DataFolder::Part DataFolder::part(const ExternalData& data, std::uint64_t bytes) const {
  if (bytes == 0) return {};
  const auto file = open(data.location);
  return with_path(file->path().native(), [&]() -> Part {
    if (!format::lies_within({data.offset, bytes}, 0, file->bytes().size())) {
      throw FormatError(ErrorCode::out_of_bounds, {},
                        {.section = "external_data",
                         .field = "offset",
                         .value = fmt::format("{} bytes at {}", bytes, data.offset),
                         .bound = fmt::format("{} bytes", file->bytes().size())});
    }
    return {file->touched(data.offset, bytes), file};
  });
}

void DataFolder::check_sum(const ExternalData& data) const {
  if (data.checksum.empty()) return;
  const auto known = [&]() -> std::string {
    const std::lock_guard lock(lock_);
    const auto found = sums_.find(data.location);
    return found == sums_.end() ? std::string() : found->second;
  };
  std::string sum = known();
  if (sum.empty()) {
    const auto file = open(data.location);
    file->touch_whole({});
    sum = integrity::sha1_hex(file->bytes());
    const std::lock_guard lock(lock_);
    sums_.emplace(data.location, sum);
  }
  std::string expected = data.checksum;
  for (char& digit : expected)
    if (digit >= 'A' && digit <= 'F') digit = static_cast<char>(digit - 'A' + 'a');
  if (expected == sum) return;
  throw IntegrityError(ErrorCode::checksum_mismatch, "the data file has another SHA-1",
                       {.path = (folder_ / data.location).native(),
                        .section = "external_data",
                        .field = "checksum",
                        .value = sum,
                        .bound = printable(expected)});
}

std::uint64_t DataFolder::size(const std::string& location) const noexcept {
  try {
    return open(location)->bytes().size();
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace thalia::formats::onnx
