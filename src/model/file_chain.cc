#include "model/file_chain.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/carried_tensor.h"
#include "container/delta_prefix.h"
#include "format/fixed_name.h"
#include "thalia/paths.h"

namespace thalia::model {
namespace {

namespace fs = std::filesystem;

std::string hex(const std::uint8_t (&bytes)[32]) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Short names hold no NUL, so that a pair has one spelling.
std::string pair_of(std::string_view source, std::string_view target) {
  return std::string(source) + '\0' + std::string(target);
}

// Where a base may be, likely places first, none twice.
std::vector<fs::path> candidates(const fs::path& delta, const fs::path& base,
                                 const std::vector<fs::path>& search) {
  std::vector<fs::path> found;
  const auto add = [&](const fs::path& path) {
    fs::path plain = path.lexically_normal();
    if (std::find(found.begin(), found.end(), plain) == found.end())
      found.push_back(std::move(plain));
  };
  add(delta.parent_path() / base);                 // an absolute one stays itself
  add(resolved_path(delta).parent_path() / base);  // of a symbolic link, from what it names
  add(delta.parent_path() / base.filename());
  for (const fs::path& folder : search) add(folder / base.filename());
  return found;
}

[[noreturn]] void fail_missing(const fs::path& delta, const fs::path& base,
                               const std::vector<fs::path>& tried) {
  std::string names;
  for (const fs::path& path : tried)
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", printable(path.string()));
  throw MissingBaseError(
      base.string(),
      {.path = delta.string(), .field = "base", .value = names, .bound = "a file at one of them"});
}

bool is_wanted_base(const container::DeltaPrefix& prefix, const detail::OpenFile& base) {
  const auto& [header, reference, path] = prefix;
  return std::memcmp(header.base_checkpoint_hash, base.closing_checksum().data(),
                     sizeof header.base_checkpoint_hash) == 0 &&
         std::memcmp(reference.base_uuid, base.header().file_uuid, sizeof reference.base_uuid) ==
             0 &&
         reference.base_generation == base.header().generation;
}

[[noreturn]] void fail_wrong(const detail::OpenFile& delta, const container::DeltaPrefix& prefix,
                             const detail::OpenFile& base) {
  std::uint8_t found[32];
  std::memcpy(found, base.closing_checksum().data(), sizeof found);
  throw IntegrityError(
      ErrorCode::checksum_mismatch,
      fmt::format("'{}' is not the base that the delta was taken against",
                  printable(base.mapping().path().string())),
      {.path = delta.mapping().path().string(),
       .section = "delta",
       .field = "base_checkpoint_hash",
       .offset = offsetof(format::DeltaHeader, base_checkpoint_hash),
       .value =
           fmt::format("{} of generation {}", hex(found), std::uint64_t{base.header().generation}),
       .bound = fmt::format("{} of generation {}", hex(prefix.header.base_checkpoint_hash),
                            std::uint64_t{prefix.reference.base_generation})});
}

unsigned depth_of(const detail::OpenFile& file) {
  const ByteSpan prefix = file.mapping().before();
  return prefix.empty() ? 0 : unsigned{container::checked_delta_prefix(prefix).reference.depth};
}

}  // namespace

std::optional<TensorPlace> ChainLink::find(const TensorKey& key) const {
  const detail::OpenFile& file = *file_;
  if (!key.region.empty()) {
    const auto region = file.find_region(key.region);
    if (!region) return std::nullopt;
    const auto number = file.find_tensor(*region, key.name);
    if (!number) return std::nullopt;
    return TensorPlace{*region, *number};
  }
  std::call_once(connections_once_, [&] {
    std::unordered_map<std::string, std::uint32_t> found;
    for (std::uint32_t i = 0; i < file.connection_count(); ++i) {
      const format::ConnectionEntry& entry = file.connection_entry(i);
      found.emplace(
          pair_of(format::fixed_name(entry.source_region), format::fixed_name(entry.target_region)),
          i);
    }
    connections_ = std::move(found);
  });
  const auto connection = connections_.find(pair_of(key.source, key.target));
  if (connection == connections_.end()) return std::nullopt;
  const auto stored = container::stored_connection(file, connection->second);
  const std::uint32_t number = key.delays ? stored.delays : stored.weights;
  if (number == container::DraftConnection::kNone) return std::nullopt;
  return TensorPlace{file.region_count(), number};
}

FileChain::FileChain(std::shared_ptr<const detail::OpenFile> top_file, const ChainOptions& options)
    : options_(options) {
  links_.push_back(std::make_unique<ChainLink>(std::move(top_file)));
  while (true) {
    const detail::OpenFile& top = file(size() - 1);
    const unsigned depth = depth_of(top);
    if (depth == 0 && (top.header().flags & format::kFlagDelta) != 0) {
      throw FormatError(ErrorCode::inconsistent,
                        "a delta's container without what tells of its base",
                        {.path = top.mapping().path().string(), .section = "delta"});
    }
    if (depth == 0) break;
    if (depth > options.max_depth)
      top.named([&] { fail_limit("delta", "max_depth", depth, options.max_depth); });
    links_.push_back(std::make_unique<ChainLink>(open_base(top)));
    if (const unsigned found = depth_of(file(size() - 1)); found != depth - 1) {
      throw FormatError(ErrorCode::inconsistent,
                        "the base is not as deep in its chain as it should be",
                        {.path = top.mapping().path().string(),
                         .section = "delta",
                         .field = "depth",
                         .value = std::to_string(found),
                         .bound = std::to_string(depth - 1)});
    }
  }
}

std::shared_ptr<const detail::OpenFile> FileChain::open_base(const detail::OpenFile& delta) const {
  const container::DeltaPrefix prefix = container::checked_delta_prefix(delta.mapping().before());
  const fs::path& own = delta.mapping().path();
  const auto tried = candidates(own, fs::path(prefix.path), options_.search);
  std::shared_ptr<const detail::OpenFile> wrong;
  for (const fs::path& path : tried) {
    if (!is_file(path)) continue;
    for (const auto& link : links_) {
      if (!is_same_file(path, link->file()->mapping().path())) continue;
      throw FormatError(ErrorCode::inconsistent,
                        fmt::format("the chain is a cycle: its base '{}' is based on it",
                                    printable(path.string())),
                        {.path = own.string(), .section = "delta", .field = "path"});
    }
    auto found = detail::OpenFile::open(path, options_.read);
    if (is_wanted_base(prefix, *found)) return found;
    if (!wrong) wrong = std::move(found);
  }
  if (wrong) fail_wrong(delta, prefix, *wrong);
  fail_missing(own, fs::path(prefix.path), tried);
}

TensorKey tensor_key(const detail::OpenFile& file, std::string_view region, std::string_view name) {
  TensorKey key{
      .region = std::string(region), .name = std::string(name), .source = {}, .target = {}};
  if (!region.empty()) return key;
  std::uint32_t connection = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), connection);
  const std::string_view what(end, static_cast<std::size_t>(name.data() + name.size() - end));
  if (error != std::errc() || (what != ".weights" && what != ".delays") ||
      connection >= file.connection_count()) {
    throw FormatError(ErrorCode::inconsistent, "a matrix of no connection",
                      {.path = file.mapping().path().string(),
                       .section = "connectivity",
                       .tensor = printable(name)});
  }
  const format::ConnectionEntry& entry = file.connection_entry(connection);
  key.source = format::fixed_name(entry.source_region);
  key.target = format::fixed_name(entry.target_region);
  key.delays = what == ".delays";
  return key;
}

}  // namespace thalia::model
