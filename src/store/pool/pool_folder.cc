// The next version is above every number that a name, the log or VERSION knows: none is given
// twice. An eviction goes in an order that a crash cannot hurt: the log's line, the file, then what
// lies beside it. What is left of it the next writer sweeps up.
#include "store/pool/pool_folder.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "io/folder/folder.h"
#include "io/folder/line_log.h"
#include "io/output/temporary_file.h"
#include "store/pool/member_text.h"
#include "store/run/names.h"
#include "store/run/sidecar.h"

namespace thalia::store {
namespace {

// A log of a million versions.
constexpr std::uint64_t kMaxLogBytes = 1ull << 30;

std::string meta_name(std::string_view file) {
  return std::string(file) + std::string(kMetaEnding);
}

class PoolReading {
 public:
  explicit PoolReading(const RunFolder& run) : run_(run), path_(run.pool()) {
    listing_.view.config = *run.config().pool;
  }

  PoolListing run() {
    if (const std::optional<io::Folder> folder = run_.files().find_folder(path_))
      read_versions(*folder);
    read_anchors();
    count();
    read("the roster cannot be read", kRoster, kMaxTextBytes, [&](const std::string& text) {
      listing_.roster = text;
      for (PoolMember& anchor : listing_.view.anchors) read_anchor_rating(text, anchor);
    });
    return std::move(listing_);
  }

 private:
  // A text that cannot be read is reported, and counts as none.
  template <typename Read>
  void read(const char* what, std::string_view name, std::uint64_t limit,
            const Read& read_text_of) {
    const std::filesystem::path path = path_ / name;
    try {
      if (const std::optional<std::string> text = run_.files().read_text(path, limit))
        read_text_of(*text);
    } catch (const FormatError& error) {
      const std::string said = error.message().empty() ? error.details() : error.message();
      listing_.damaged.push_back({path, fmt::format("{}: {}", what, said)});
    }
  }

  void read_versions(const io::Folder& folder) {
    std::vector<std::string> beside;
    for (io::FolderEntry& found : folder.entries()) {
      if (found.kind != io::EntryKind::file) continue;
      if (io::temporary_process(found.name)) {
        listing_.temporaries.push_back(std::move(found.name));
      } else if (const auto name = parse_pool_name(found.name, run_.config().extension)) {
        add_version(folder, *name, found.name);
      } else if (found.name.ends_with(kDigestEnding) || found.name.ends_with(kMetaEnding)) {
        beside.push_back(std::move(found.name));
      }
    }
    std::ranges::sort(listing_.view.versions, {}, [](const PoolMember& member) {
      return std::pair(member.version, member.step);
    });
    for (std::string& name : beside) {
      const bool is_digest = name.ends_with(kDigestEnding);
      const std::string file =
          name.substr(0, name.size() - (is_digest ? kDigestEnding : kMetaEnding).size());
      const bool is_of_pool = parse_pool_name(file, run_.config().extension).has_value();
      if (is_of_pool && !folder.facts(file)) listing_.lone.push_back(std::move(name));
    }
    std::ranges::sort(listing_.lone);
  }

  void add_version(const io::Folder& folder, const PoolName& name, const std::string& file) {
    const std::optional<io::EntryFacts> facts = folder.facts(file);
    if (!facts) return;  // gone since
    if (name.version == 0 || name.version > kMaxVersion) {
      listing_.damaged.push_back({path_ / file, "the name has a number that is no version"});
      return;
    }
    PoolMember member{
        {.phase = listing_.view.config.phase, .step = name.step, .bytes = facts->bytes},
        {.rated_at = facts->modified_ns / 1'000'000'000},
        name.version,
        file,
        path_ / file,
        facts->modified_ns / 1'000'000'000};
    read("the version has the rating of a new model", meta_name(file), kMaxTextBytes,
         [&](const std::string& text) { read_meta(text, member); });
    if (!folder.facts(meta_name(file))) listing_.without_meta.push_back(member);
    listing_.view.versions.push_back(std::move(member));
  }

  void read_anchors() {
    const PoolConfig& config = listing_.view.config;
    std::vector<std::string> names = config.anchors;
    // It is drawn by its own weight, whether it is named among them or not.
    if (!config.baseline.empty() && std::ranges::find(names, config.baseline) == names.end())
      names.push_back(config.baseline);
    const std::vector<GateEntry> gates = run_.list_gates();
    for (const std::string& name : names) {
      const auto gate = std::ranges::find(gates, name, &GateEntry::name);
      if (gate == gates.end()) continue;
      listing_.view.anchors.push_back({*gate,
                                       {},
                                       0,
                                       name,
                                       run_.gates() / gate->file,
                                       gate->promoted_at,
                                       /*is_anchor=*/true});
    }
  }

  void count() {
    std::uint64_t given = 0;
    read("the numbers that were given are told by names and by the log alone", kVersionFile,
         kMaxTextBytes, [&](const std::string& text) { given = parse_version(text); });
    std::uint64_t last = given;
    read("the log of evictions cannot be read", kEvictions, kMaxLogBytes,
         [&](const std::string& text) { last = std::max(last, last_evicted(text)); });
    if (!listing_.view.versions.empty())
      last = std::max(last, listing_.view.versions.back().version);
    listing_.is_version_behind = given < last;
    listing_.view.next_version = last + 1;
  }

  const RunFolder& run_;
  const std::filesystem::path path_;
  PoolListing listing_;
};

}  // namespace

PoolListing list_pool(const RunFolder& run) {
  return PoolReading(run).run();
}

void write_version(const SaveSession& session, std::uint64_t version) {
  session.files().write_text(session.run.pool() / kVersionFile, fmt::format("{}\n", version),
                             session.options.durability);
}

void write_meta(const SaveSession& session, const PoolMember& member) {
  session.files().write_text(session.run.pool() / meta_name(member.name), meta_text(member),
                             session.options.durability);
}

void write_roster(const SaveSession& session) {
  const PoolListing listing = list_pool(session.run);
  const std::string text = roster_text(listing.view);
  if (text != listing.roster)
    session.files().write_text(session.run.pool() / kRoster, text, session.options.durability);
}

// The file is gone, on the disk too, before what lies beside it goes: that alone is swept up, and
// is no version.
std::vector<std::string> evict(const SaveSession& session) {
  const PoolListing listing = list_pool(session.run);
  const std::vector<PoolMember>& versions = listing.view.versions;
  const std::size_t keep = listing.view.config.keep;
  std::vector<std::string> evicted;
  if (keep == 0 || versions.size() <= keep) return evicted;
  const io::Folder folder = session.files().folder(session.run.pool());
  std::string log;
  for (std::size_t i = 0; i + keep < versions.size(); ++i) {
    log += eviction_text(versions[i], now_seconds());
    evicted.push_back(versions[i].name);
  }
  io::append_lines(folder, std::string(kEvictions), log, session.options.durability);
  for (const std::string& file : evicted) folder.remove(file);
  if (session.syncs_folders()) folder.sync();
  for (const std::string& file : evicted) {
    folder.remove(sidecar_name(file));
    folder.remove(meta_name(file));
  }
  return evicted;
}

void sweep(const SaveSession& session, const PoolListing& listing) {
  if (listing.temporaries.empty() && listing.lone.empty()) return;
  const io::Folder folder = session.files().folder(session.run.pool());
  for (const auto* const names : {&listing.temporaries, &listing.lone})
    for (const std::string& name : *names) folder.remove(name);
  if (session.syncs_folders()) folder.sync();
}

void reset_ratings(const SaveSession& session) {
  for (PoolMember member : list_pool(session.run).view.versions) {
    rate(member, {.rated_at = now_seconds()});
    write_meta(session, member);
  }
  // Anchors have theirs in the roster alone.
  session.files().remove(session.run.pool() / kRoster);
}

}  // namespace thalia::store
