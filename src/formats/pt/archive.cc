// What a later step relies on is checked when the archive is opened: one folder for all records, a
// version that torch reads, a byte order. A record's checksum is compared once, and an inflated
// record is shared while somebody holds it. sound_, inflated_ and held_ go by a record's place in
// the directory; once threads share the archive they change under lock_ alone.
#include "formats/pt/archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "format/foreign_file.h"

namespace thalia::formats::pt {
namespace {

// torch reads no later version, kMaxSupportedFileFormatVersion of caffe2/serialize/versions.h.
constexpr unsigned kLatestVersion = 10;
constexpr std::uint64_t kSmallRecord = 4096;

void refuse_other_files(ByteSpan file) {
  if (file.empty()) {
    throw FormatError(ErrorCode::truncated, std::string(format::kEmptyFile),
                      {.section = "archive", .offset = 0});
  }
  if (file.size() >= 2 && file[0] == std::byte{'P'} && file[1] == std::byte{'K'}) return;
  const std::string_view what =
      format::foreign_file(file.first(std::min(file.size(), format::kForeignStart)));
  if (what.empty()) return;
  throw UnsupportedError(ErrorCode::unsupported_version, std::string(what), {.section = "archive"});
}

ZipDirectory parse_archive(ByteSpan file, const ReadLimits& limits) {
  refuse_other_files(file);
  return ZipDirectory::parse(file, limits);
}

[[noreturn]] void fail_record(ErrorCode code, std::string_view record, std::string value,
                              std::string bound, std::string message = {}) {
  throw FormatError(code, std::move(message),
                    {.section = "archive",
                     .field = printable(record),
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

}  // namespace

PtArchive::PtArchive(StoredBytes file, const ReadOptions& options)
    : file_(std::move(file)),
      limits_(options.input.limits),
      verifies_(options.verification != Verification::off),
      zip_(parse_archive(file_.bytes, limits_)) {
  // torch.serialization.set_crc32_options(False) writes none.
  if (std::ranges::all_of(zip_.members(), [](const ZipMember& one) { return one.crc32 == 0; }))
    zip_.ignore_checksums();
  // One folder for all, as torch takes it from the first name.
  for (const ZipMember& member : zip_.members()) {
    const std::size_t slash = member.name.find('/');
    const std::string_view folder = std::string_view(member.name).substr(0, slash);
    if (slash == std::string::npos || (!folder_.empty() && folder != folder_)) {
      fail_record(ErrorCode::bad_name, member.name, "", "",
                  "a record outside of the archive's one folder");
    }
    folder_ = folder;
  }
  if (find("data.pkl") == nullptr) {
    fail_record(ErrorCode::bad_value, "data.pkl", "", "",
                "the record is missing: no archive of torch.save");
  }
  script_ = find("constants.pkl") != nullptr;
  version_ = text_of("version");
  while (version_.ends_with('\n')) version_.pop_back();
  unsigned version = 0;
  for (const char digit : version_) {
    if (digit < '0' || digit > '9' || version > kLatestVersion) version = kLatestVersion + 1;
    version = version * 10 + static_cast<unsigned>(digit - '0');
  }
  if (version_.empty()) fail_record(ErrorCode::bad_value, "version", "", "a number");
  if (version > kLatestVersion) {
    throw UnsupportedError(ErrorCode::unsupported_version, {},
                           {.section = "archive",
                            .field = "version",
                            .value = printable(version_),
                            .bound = fmt::format("at most {}", kLatestVersion)});
  }
  const std::string order = text_of("byteorder");
  big_endian_ = order == "big";
  if (!big_endian_ && !order.empty() && order != "little")
    fail_record(ErrorCode::bad_value, "byteorder", printable(order), "little or big");
  inflated_.resize(zip_.members().size());
  held_.resize(zip_.members().size());
  keeps_.resize(zip_.members().size());
  sound_.resize(zip_.members().size());
}

const ZipMember* PtArchive::find(std::string_view record) const {
  return zip_.find(folder_ + '/' + std::string(record));
}

std::string PtArchive::text_of(std::string_view record) const {
  const ZipMember* const member = find(record);
  if (member == nullptr) return {};
  if (member->raw_bytes > kSmallRecord) {
    fail_record(ErrorCode::limit_exceeded, record, fmt::format("{} bytes", member->raw_bytes),
                std::to_string(kSmallRecord));
  }
  io::MemoryBudget budget(limits_, file_bytes());
  const std::vector<std::byte> bytes = zip_.read(*member, budget);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void PtArchive::keep(const ZipMember& member, io::MemoryBudget& budget) {
  const auto place = static_cast<std::size_t>(&member - zip_.members().data());
  if (member.method == ZipMethod::stored || keeps_[place]) return;
  keeps_[place] = true;
  budget.take(printable(record_name(member)), member.raw_bytes);
}

StoredBytes PtArchive::bytes_of(const ZipMember& member, io::MemoryBudget& budget) const {
  if (member.method == ZipMethod::stored) {
    if (verifies_) check_crc(member);
    return {.bytes = zip_.stored(member), .owner = file_.owner};
  }
  const auto place = static_cast<std::size_t>(&member - zip_.members().data());
  const std::lock_guard lock(lock_);
  std::shared_ptr<const std::vector<std::byte>> bytes = inflated_[place].lock();
  if (!bytes) {
    // One that stays was counted when the file was opened.
    io::MemoryBudget own(limits_, member.stored_bytes);
    bytes = std::make_shared<const std::vector<std::byte>>(
        zip_.read(member, keeps_[place] ? own : budget));
    inflated_[place] = bytes;
    if (keeps_[place]) held_[place] = bytes;
  } else if (!keeps_[place]) {
    budget.take("zip member", member.raw_bytes);
  }
  return {.bytes = *bytes, .owner = bytes};
}

void PtArchive::check_crc(const ZipMember& member) const {
  const auto place = static_cast<std::size_t>(&member - zip_.members().data());
  {
    const std::lock_guard lock(lock_);
    if (sound_[place]) return;
  }
  zip_.check_crc(member);
  const std::lock_guard lock(lock_);
  sound_[place] = true;
}

StoredBytes PtArchive::checked(const ZipMember& member, io::MemoryBudget& budget) const {
  if (member.method == ZipMethod::stored) check_crc(member);
  return bytes_of(member, budget);
}

std::vector<const ZipMember*> place_storages(const PtArchive& archive, const Graph& graph,
                                             std::string_view prefix) {
  std::vector<const ZipMember*> members;
  members.reserve(graph.storages.size());
  for (const Storage& storage : graph.storages) {
    const std::string record = std::string(prefix) + std::string(storage.key);
    const ZipMember* const member = archive.find(record);
    if (member == nullptr)
      fail_record(ErrorCode::out_of_bounds, record, "", "", "the storage has no record");
    if (member->raw_bytes != storage.bytes) {
      fail_record(ErrorCode::inconsistent, record, fmt::format("{} bytes", member->raw_bytes),
                  fmt::format("{}, as the pickle says", storage.bytes));
    }
    members.push_back(member);
  }
  return members;
}

}  // namespace thalia::formats::pt
