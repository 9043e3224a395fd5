// Which change lasts from when on. A sync covers what had ended before it began: of its file, and
// with a journal all names and sizes up to the last that concern the file or folder, since a
// journal is written in order.
#include "crash/disk.h"

#include <algorithm>

namespace thalia::crash {
namespace {

bool has_journal(Mode mode) {
  return mode == Mode::ordered || mode == Mode::writeback;
}

bool changes_names(const Call& call) {
  switch (call.kind) {
    case Kind::make_file:
    case Kind::make_folder:
    case Kind::make_symlink:
    case Kind::link:
    case Kind::rename:
    case Kind::unlink:
      return true;
    default:
      return false;
  }
}

// Had ended before the sync began, or is what a ring's sync waits for.
bool is_before(const CallLog& log, const Call& call, const Call& sync) {
  if (call.end == kNever) return false;
  return call.end <= sync.begin || (sync.behind != kNone && &log.calls[sync.behind] == &call);
}

}  // namespace

std::string_view mode_name(Mode mode) {
  constexpr std::string_view kNames[] = {"ordered", "writeback", "bare", "torn"};
  return kNames[static_cast<int>(mode)];
}

Disk::Disk(const CallLog& log, Mode mode) : log_(&log), mode_(mode) {
  for (std::size_t i = 0; i < log.calls.size(); ++i) add_changes(i);
  for (const Call& call : log.calls)
    if ((call.kind == Kind::sync || call.kind == Kind::sync_all) && call.end != kNever) sync(call);
  for (const Node& node : log.before.nodes)
    if (node.kind == Node::Kind::file && node.bytes.size() > stale_.size()) stale_ = node.bytes;
}

void Disk::add_changes(std::size_t i) {
  const Call& call = log_->calls[i];
  using enum Change::Kind;
  switch (call.kind) {
    case Kind::make_file:
    case Kind::make_folder:
    case Kind::make_symlink:
    case Kind::link:
      if (call.folder != kNone) changes_.push_back({set_name, i, call.folder});
      break;
    case Kind::rename:
      changes_.push_back({set_name, i, call.other_folder});
      changes_.push_back({clear_name, i, call.folder});
      break;
    case Kind::unlink:
      changes_.push_back({clear_name, i, call.folder});
      break;
    case Kind::truncate:
      changes_.push_back({truncate, i});
      break;
    case Kind::allocate:
      changes_.push_back({allocate, i});
      break;
    case Kind::write:
      changes_.push_back({data, i});
      break;
    default:
      break;
  }
}

// What of the journal has to be written for this sync.
bool Disk::touches(const Call& call, const Call& sync) const {
  if (sync.kind == Kind::sync_all || call.node == sync.node) return true;
  return changes_names(call) && (call.folder == sync.node || call.other_folder == sync.node);
}

void Disk::sync(const Call& sync) {
  const std::size_t from = sync.end + 1;
  std::size_t journalled = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    Change& change = changes_[i];
    const Call& call = call_of(change);
    if (!is_before(*log_, call, sync)) continue;
    const bool is_name =
        change.kind == Change::Kind::set_name || change.kind == Change::Kind::clear_name;
    const bool covered = sync.kind == Kind::sync_all ||
                         (is_name ? change.folder == sync.node : call.node == sync.node);
    if (covered) change.lasting = std::min(change.lasting, from);
    // fdatasync writes the journal for a size, not for a name.
    const bool asks = !sync.data_only || !is_name;
    if (change.kind != Change::Kind::data && asks && touches(call, sync)) journalled = i + 1;
  }
  if (!has_journal(mode_)) return;
  for (std::size_t i = 0; i < journalled; ++i)
    if (changes_[i].kind != Change::Kind::data)
      changes_[i].lasting = std::min(changes_[i].lasting, from);
}

Mode Moment::mode() const {
  return disk_->mode_;
}

Moment::Moment(const Disk& disk, std::size_t place) : disk_(&disk), place_(place) {
  const bool journal = has_journal(disk.mode_);
  std::size_t group_call = kNone;
  for (std::size_t i = 0; i < disk.changes_.size(); ++i) {
    const Disk::Change& change = disk.changes_[i];
    const Call& call = disk.call_of(change);
    if (call.begin >= place || change.lasting <= place) continue;
    if (change.kind != Disk::Change::Kind::data) {
      if (!journal || change.call != group_call) groups_.emplace_back();
      groups_.back().push_back(i);
      group_call = change.call;
      continue;
    }
    if (call.bytes.empty()) continue;
    const std::uint64_t last = (call.offset + call.bytes.size() - 1) / kPage;
    for (std::uint64_t number = call.offset / kPage; number <= last; ++number) {
      auto page = std::find_if(pages_.begin(), pages_.end(), [&](const Page& known) {
        return known.node == call.node && known.number == number;
      });
      if (page == pages_.end()) page = pages_.insert(page, {call.node, number, {}});
      page->writes.push_back(i);
    }
    auto grown = std::find_if(grown_.begin(), grown_.end(),
                              [&](const Grown& known) { return known.node == call.node; });
    if (grown == grown_.end()) grown = grown_.insert(grown, {call.node, {}});
    grown->writes.push_back(i);
  }
}

Choice Moment::choice(bool kept) const {
  Choice choice;
  choice.names.assign(groups_.size(), kept);
  for (const Page& page : pages_) {
    choice.sectors.emplace_back();
    choice.sectors.back().fill(kept ? static_cast<std::uint16_t>(page.writes.size()) : 0);
  }
  for (const Grown& grown : grown_)
    choice.sizes.push_back(kept ? static_cast<std::uint16_t>(grown.writes.size()) : 0);
  return choice;
}

// Plays the changes in their order, each as far as it was chosen.
struct Moment::Builder {
  const Moment& moment;
  const Disk& disk;
  const Choice& choice;
  Tree tree;
  std::vector<bool> kept;  ///< of changes that are no data
  std::vector<std::uint64_t>
      limit;  ///< of nodes: bytes from here on belong to a truncation that is lost

  void run() {
    kept.assign(disk.changes_.size(), false);
    limit.assign(tree.nodes.size(), kNever);
    for (std::size_t group = 0; group < moment.groups_.size(); ++group)
      for (const std::size_t i : moment.groups_[group]) kept[i] = choice.names[group];
    for (std::size_t i = 0; i < disk.changes_.size(); ++i) {
      const Disk::Change& change = disk.changes_[i];
      const Call& call = disk.call_of(change);
      if (call.begin >= moment.place_) break;
      const bool lasting = change.lasting <= moment.place_;
      if (change.kind != Disk::Change::Kind::data) {
        change_node(change, call, lasting || kept[i]);
      } else if (lasting) {
        apply(tree, call);
      } else {
        write(i, call);
      }
    }
  }

  void change_node(const Disk::Change& change, const Call& call, bool done) {
    using enum Disk::Change::Kind;
    if (change.kind == set_name) {
      if (done)
        tree.nodes[change.folder].names[call.kind == Kind::rename ? call.other_name : call.name] =
            call.node;
    } else if (change.kind == clear_name) {
      if (done) tree.nodes[change.folder].names.erase(call.name);
    } else if (change.kind == truncate) {
      std::string& bytes = tree.nodes[call.node].bytes;
      if (done) {
        bytes.resize(call.length);
      } else if (has_journal(disk.mode_)) {
        // What was written there later lies elsewhere on the disk.
        limit[call.node] = std::min(limit[call.node], call.length);
      }
    } else if (done) {
      grow(call.node, call.length, disk.mode_ == Mode::ordered || disk.mode_ == Mode::writeback);
    }
  }

  void grow(std::size_t node, std::uint64_t size, bool zeros) {
    std::string& bytes = tree.nodes[node].bytes;
    const std::size_t old = bytes.size();
    if (size <= old) return;
    bytes.resize(size);
    if (zeros || choice.fill == Fill::zeros) return;
    for (std::size_t i = old; i < size; ++i)
      bytes[i] = choice.fill == Fill::stale && i < disk.stale_.size()
                     ? disk.stale_[i]
                     : static_cast<char>(0xA5 + i * 37);
  }

  void write(std::size_t change, const Call& call) {
    const std::uint64_t end = std::min(call.offset + call.bytes.size(), limit[call.node]);
    if (call.offset >= end) return;
    std::string& bytes = tree.nodes[call.node].bytes;
    if (disk.mode_ != Mode::ordered && is_longer(change, call)) grow(call.node, end, false);
    for (std::size_t i = 0; i < moment.pages_.size(); ++i) {
      const Page& page = moment.pages_[i];
      if (page.node != call.node) continue;
      const auto found = std::find(page.writes.begin(), page.writes.end(), change);
      if (found == page.writes.end()) continue;
      const auto rank = found - page.writes.begin();
      for (std::size_t sector = 0; sector < kSectors; ++sector) {
        const int has = choice.sectors[i][sector];
        if (rank >= has) continue;
        const std::uint64_t start = page.number * kPage + sector * kSector;
        std::uint64_t from = std::max(start, call.offset);
        std::uint64_t to = std::min(start + kSector, end);
        if (choice.tear && choice.tear->page == i && choice.tear->sector == sector &&
            rank + 1 == has) {
          if (choice.tear->at_end) {
            from = std::max(from, start + kSector - choice.tear->bytes);
          } else {
            to = std::min(to, start + choice.tear->bytes);
          }
        }
        if (disk.mode_ == Mode::ordered) {
          if (from < to && bytes.size() < to) bytes.resize(to);
        } else {
          to = std::min<std::uint64_t>(to, bytes.size());
        }
        if (from < to) bytes.replace(from, to - from, call.bytes, from - call.offset, to - from);
      }
    }
  }

  bool is_longer(std::size_t change, const Call& call) const {
    for (std::size_t i = 0; i < moment.grown_.size(); ++i) {
      const Grown& grown = moment.grown_[i];
      if (grown.node != call.node) continue;
      const auto rank = std::find(grown.writes.begin(), grown.writes.end(), change);
      return rank - grown.writes.begin() < choice.sizes[i];
    }
    return false;
  }
};

Tree Moment::state(const Choice& choice) const {
  Builder builder{*this, *disk_, choice, disk_->log_->before, {}, {}};
  builder.run();
  return std::move(builder.tree);
}

}  // namespace thalia::crash
