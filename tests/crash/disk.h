// The disk as a machine finds it after a crash: which parts of what a program did may be there, and
// the folder for each choice of them. docs/contribute/durability.md tells what each mode stands
// for.
//
//   const Disk disk(log, Mode::writeback);
//   Moment moment = disk.at(place);       // the crash: after so many records of the log
//   Choice choice = moment.nothing();     // or everything(), or anything between
//   const Tree tree = moment.state(choice);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crash/call_log.h"

namespace thalia::crash {

enum class Mode {
  ordered,    ///< a journal of names and sizes; a file grows only over bytes that are on the disk
  writeback,  ///< a journal of names and sizes; files grow over whatever was on the disk
  bare,       ///< no journal: every name, size and page by itself
  torn,       ///< as bare, and a sector too may be torn, at any byte
};
inline constexpr Mode kModes[] = {Mode::ordered, Mode::writeback, Mode::bare, Mode::torn};
std::string_view mode_name(Mode mode);

inline constexpr std::size_t kPage = 4096;
inline constexpr std::size_t kSector = 512;
inline constexpr std::size_t kSectors = kPage / kSector;

/// What a file that has grown holds where nothing was written.
enum class Fill { zeros, noise, stale };

/// What of the pending changes is on the disk.
struct Choice {
  std::vector<bool> names;  ///< of Moment::names(), which of them
  /// For each of Moment::pages(): how many of its pending writes each sector has. A sector holds
  /// what it held at one moment since it was last synced.
  std::vector<std::array<std::uint16_t, kSectors>> sectors;
  /// For each file of Moment::grown(): how many of its pending writes have made it longer. With
  /// Mode::ordered the bytes tell.
  std::vector<std::uint16_t> sizes;
  Fill fill = Fill::zeros;
  struct Tear {
    std::size_t page;
    std::size_t sector;
    std::size_t bytes;  ///< of the last write that the sector has, these many
    bool at_end;        ///< the last ones rather than the first
  };
  std::optional<Tear> tear;
};

class Disk;

/// What is pending after so many records of the log. The disk and its log have to outlive it.
class Moment {
 public:
  struct Page {
    std::size_t node;
    std::uint64_t number;
    std::vector<std::size_t> writes;  ///< changes, in order
  };
  struct Grown {
    std::size_t node;
    std::vector<std::size_t> writes;
  };

  /// Changes of names and sizes. With a journal the first ones of them are on the disk, without one
  /// any.
  std::size_t names() const { return groups_.size(); }
  const std::vector<Page>& pages() const { return pages_; }
  const std::vector<Grown>& grown() const { return grown_; }
  Mode mode() const;

  Choice everything() const { return choice(true); }
  Choice nothing() const { return choice(false); }
  Tree state(const Choice& choice) const;

 private:
  friend class Disk;
  struct Builder;
  Moment(const Disk& disk, std::size_t place);
  Choice choice(bool kept) const;

  const Disk* disk_;
  std::size_t place_;
  std::vector<std::vector<std::size_t>> groups_;
  std::vector<Page> pages_;
  std::vector<Grown> grown_;
};

class Disk {
 public:
  /// @param log has to outlive it.
  Disk(const CallLog& log, Mode mode);
  Moment at(std::size_t place) const { return Moment(*this, place); }
  std::size_t places() const { return log_->places + 1; }

 private:
  friend class Moment;
  /// A part of a call that is on the disk or not.
  struct Change {
    enum class Kind { set_name, clear_name, truncate, allocate, data };
    Kind kind;
    std::size_t call;
    std::size_t folder = kNone;    ///< of a name
    std::size_t lasting = kNever;  ///< on the disk for certain once so many records are there
  };
  void add_changes(std::size_t call);
  void sync(const Call& sync);
  bool touches(const Call& call, const Call& sync) const;
  const Call& call_of(const Change& change) const { return log_->calls[change.call]; }

  const CallLog* log_;
  Mode mode_;
  std::vector<Change> changes_;
  std::string stale_;  ///< the longest file that was there before
};

}  // namespace thalia::crash
