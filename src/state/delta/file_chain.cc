// Opens a delta's bases, one below the other, down to a full file: docs/format/deltas.md,
// "Resolving". Paths come from files that nobody has to trust. A base counts only if its closing
// checksum, identifier and generation are those that the delta names; before that is known nothing
// else of it is used, and an error tells nothing of its contents. Depth falls by one from link to
// link, so that a chain cannot be a cycle.

#include "state/delta/file_chain.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "container/file/delta_prefix.h"
#include "container/file/open_bytes.h"
#include "container/read/stored_connection.h"
#include "format/connectivity.h"
#include "format/delta.h"
#include "format/fixed_name.h"
#include "format/header.h"
#include "io/path/base_file.h"
#include "state/delta/held_base.h"
#include "thalia/files.h"
#include "thalia/text.h"

namespace thalia::state {
namespace {

namespace fs = std::filesystem;

// Short names hold no NUL, so that no two pairs have the same text.
std::string pair_of(std::string_view source, std::string_view target) {
  return std::string(source) + '\0' + std::string(target);
}

[[noreturn]] void fail_missing(const fs::path& delta, const fs::path& base,
                               const std::string& tried) {
  throw MissingBaseError(
      base.string(),
      {.path = delta.string(), .field = "base", .value = tried, .bound = "a file at one of them"});
}

// The 32 bytes are zero in a file of checksum type none, and nothing tells such a file from others.
bool has_identity(const Digest256& closing_checksum) {
  return closing_checksum != Digest256{};
}

bool is_wanted_base(const container::DeltaPrefix& prefix, const FileIdentity& base) {
  return has_identity(base.closing_checksum) &&
         prefix.header.base_checkpoint_hash == base.closing_checksum &&
         prefix.reference.base_uuid == base.file_uuid &&
         prefix.reference.base_generation == base.generation;
}

bool is_wanted_base(const container::DeltaPrefix& prefix, const detail::OpenFile& base) {
  // A side file has tables and no payloads.
  return base.mapping().backing() != io::Backing::partial &&
         is_wanted_base(prefix, identity_of(base, 0));
}

// The file at that place may be anybody's. The error tells nothing of what is in it, not even
// whether it is a checkpoint.
[[noreturn]] void fail_wrong(const detail::OpenFile& delta, const container::DeltaPrefix& prefix,
                             const fs::path& place) {
  throw IntegrityError(
      ErrorCode::checksum_mismatch,
      fmt::format("'{}' is no checkpoint that the delta was taken against",
                  printable(place.string())),
      {.path = delta.mapping().path().string(),
       .section = "delta",
       .field = "base_checkpoint_hash",
       .offset = offsetof(format::DeltaHeader, base_checkpoint_hash),
       .value = "another one, or a damaged file",
       .bound = fmt::format("{} of generation {}", hex(prefix.header.base_checkpoint_hash.bytes),
                            std::uint64_t{prefix.reference.base_generation})});
}

// True if the file is the base and only exceeds limits of the caller. The limits that are lifted
// here guard counts and lengths that nothing is allocated for.
bool is_wanted_beyond_limits(const std::shared_ptr<const io::FileBytes>& bytes,
                             const container::DeltaPrefix& prefix, ReadOptions options) {
  options.input.limits.max_file_bytes = 0;
  options.input.limits.max_regions = options.input.limits.max_tensors =
      std::numeric_limits<std::uint32_t>::max();
  options.input.limits.max_json_bytes = std::numeric_limits<std::uint64_t>::max();
  try {
    return is_wanted_base(
        prefix,
        *detail::OpenFile::over(container::contents_of(bytes, options.input.limits), options));
  } catch (const Error&) {
    return false;
  }
}

// Opens the file, or returns null if it is not the base. A damaged file is not the base as far
// as one can tell. That it exceeds a limit is told only once it is known to be the base.
std::shared_ptr<const detail::OpenFile> open_if_wanted(
    const std::shared_ptr<const io::FileBytes>& bytes, const container::DeltaPrefix& prefix,
    const ReadOptions& options) {
  std::shared_ptr<const detail::OpenFile> file;
  try {
    file = detail::OpenFile::over(container::contents_of(bytes, options.input.limits), options);
    if (!is_wanted_base(prefix, *file)) return nullptr;
  } catch (FormatError& error) {
    if (error.code() != ErrorCode::limit_exceeded ||
        !is_wanted_beyond_limits(bytes, prefix, options))
      return nullptr;
    error.add_path(bytes->path().string());
    throw;
  } catch (const IntegrityError&) {
    return nullptr;
  } catch (const UnsupportedError&) {
    return nullptr;
  }
  // After the check of identity, so that a wrong file is not read to its end.
  if (options.verification == Verification::at_open) file->named([&] { file->verify_all(); });
  return file;
}

unsigned depth_of(const detail::OpenFile& file) {
  const ByteSpan prefix = file.mapping().before();
  return prefix.empty() ? 0 : unsigned{container::checked_delta_prefix(prefix).reference.depth};
}

}  // namespace

std::optional<FilePlace> ChainLink::find(const TensorKey& key) const {
  const detail::OpenFile& file = *file_;
  if (!key.region.empty()) {
    const auto region = file.find_region(key.region);
    if (!region) return std::nullopt;
    const auto number = file.find_tensor(*region, key.name);
    if (!number) return std::nullopt;
    return FilePlace{*region, *number};
  }
  connections_once_.run([&] {
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
  const std::optional<std::uint32_t> number = key.delays ? stored.delays : stored.weights;
  if (!number) return std::nullopt;
  return FilePlace{file.region_count(), *number};
}

FileIdentity identity_of(const detail::OpenFile& file, unsigned depth) {
  const format::Header& header = file.header();
  return {.closing_checksum = file.closing_checksum(),
          .file_uuid = header.file_uuid,
          .generation = header.generation,
          .file_length = header.file_length,
          .training_steps = header.training_steps,
          .depth = depth};
}

FileChain::FileChain(std::shared_ptr<const detail::OpenFile> top_file, const ChainOptions& options,
                     std::shared_ptr<const HeldBase> held)
    : options_(options) {
  links_.push_back(std::make_unique<ChainLink>(std::move(top_file)));
  while (true) {
    const detail::OpenFile& top = file(size() - 1);
    const unsigned depth = depth_of(top);
    if (depth == 0 && (top.header().flags & format::kFlagDelta) != 0) {
      throw FormatError(ErrorCode::inconsistent,
                        "a delta's container without the header that names its base",
                        {.path = top.mapping().path().string(), .section = "delta"});
    }
    if (depth == 0) break;
    // Before the base is opened: a hostile chain costs nothing.
    if (depth > options.max_depth)
      top.named([&] { fail_limit("delta", "max_depth", depth, options.max_depth); });
    if (held &&
        is_wanted_base(container::checked_delta_prefix(top.mapping().before()), held->identity())) {
      held_ = std::move(held);
      break;
    }
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

std::uint64_t FileChain::disk_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& link : links_) sum += link->file()->mapping().disk_bytes();
  return sum;
}

std::shared_ptr<const detail::OpenFile> FileChain::open_base(const detail::OpenFile& delta) const {
  const container::DeltaPrefix prefix = container::checked_delta_prefix(delta.mapping().before());
  const fs::path& own = delta.mapping().path();
  const auto is_link = [&](const fs::path& place) {
    return std::any_of(links_.begin(), links_.end(), [&](const auto& link) {
      return is_same_file(place, link->file()->mapping().path());
    });
  };
  std::string tried;
  fs::path wrong;
  for (const fs::path& place : io::base_places(own, prefix.path, options_.search, options_.bases)) {
    // A file of the chain cannot be a base of it. A delta may have its base's name: the place next
    // to it is then the delta itself.
    if (is_link(place)) continue;
    io::BaseFile found = io::open_base(place, options_.read.input.access, options_.bases);
    if (found.bytes) {
      if (auto base = open_if_wanted(found.bytes, prefix, options_.read)) return base;
      // The first wrong file is what the error names, if no later place has the right one.
      if (wrong.empty()) wrong = place;
    }
    tried += fmt::format("{}'{}'", tried.empty() ? "" : ", ", printable(place.string()));
    if (!found.reason.empty()) tried += fmt::format(" ({})", found.reason);
  }
  if (!wrong.empty()) fail_wrong(delta, prefix, wrong);
  fail_missing(own, fs::path(prefix.path), tried);
}

TensorKey tensor_key(const detail::OpenFile& file, std::string_view region, std::string_view name) {
  TensorKey key{
      .region = std::string(region), .name = std::string(name), .source = {}, .target = {}};
  if (!region.empty()) return key;
  std::uint32_t connection = 0;
  // The reader names a connection's matrix by its number: "12.weights".
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

}  // namespace thalia::state
