// Leases: what followers say of themselves, so that what they hold is kept for as long as they
// live. docs/format/store.md, "Followers".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/run/run_folder.h"

namespace thalia::store {

/// How long a lease counts after it was renewed; it is renewed three times in that.
inline constexpr std::uint64_t kLeaseSeconds = 60;
inline constexpr std::uint64_t kMostLeaseSeconds = 86'400;
/// Beyond that, the others of a phase are not looked at.
inline constexpr std::size_t kMostLeases = 4096;

/// A file in PHASE/followers/.
struct Lease {
  std::string name{};  ///< of the file, without its ending; not written
  std::string file{};  ///< the checkpoint that the follower holds; empty: none yet
  std::uint64_t step = 0;
  std::uint64_t renewed_at = 0;  ///< seconds since 1970
  std::uint64_t valid_seconds = kLeaseSeconds;
  std::string host{};  ///< for people, as is the process
  std::uint64_t process = 0;

  friend bool operator==(const Lease&, const Lease&) = default;
};

std::string lease_text(const Lease& lease);
/// @throws FormatError (bad_json, bad_value) that names the member; (limit_exceeded).
Lease parse_lease(std::string_view text);
/// Renewed no longer ago than it says. One of a time that is still to come, by as much, is not: a
/// clock was wrong.
bool is_live(const Lease& lease, std::uint64_t now) noexcept;

/// Those of a phase that are live, in the order of their names. What is no lease is passed over.
/// @throws IoError; UsageError (not_found) for a phase.
std::vector<Lease> live_leases(const RunFolder& run, std::string_view phase, std::uint64_t now);

/// The deltas that lead from a file to the latest, the newest first; none if the latest is not
/// based on it.
std::vector<std::string> links_after(const RunListing& listing, const std::string& file);

/// Says of entries that a follower holds them, or needs them on its way to the latest. @throws as
/// above.
void protect_followed(const RunFolder& run, std::string_view phase, RunListing& listing);

/// Removes what followers that were killed have left more than a day ago. @throws IoError.
void sweep_leases(const RunFolder& run, std::string_view phase, std::uint64_t now);

/// A follower's own lease: renewed by a thread, and removed at the end. Externally synchronised. In
/// a forked child it does nothing.
class HeldLease {
 public:
  /// Writes nothing yet. @param run is copied. @throws UsageError (not_found) for a phase,
  /// (bad_argument) for `valid_seconds` of 0 or beyond kMostLeaseSeconds.
  HeldLease(const RunFolder& run, std::string_view phase,
            std::uint64_t valid_seconds = kLeaseSeconds);
  ~HeldLease();
  HeldLease(HeldLease&&) noexcept;
  HeldLease& operator=(HeldLease&&) = delete;

  /// HOST.PROCESS.RANDOM: no two followers have the same.
  const std::string& name() const noexcept;
  /// From now on this file is kept. A file that was removed just before is not: take the lease,
  /// then open the file. @param file empty: none is held. @throws IoError; of a folder that this
  /// process may not write EACCES or EROFS.
  void hold(const std::string& file, std::uint64_t step);
  /// At once, beside what the thread does. Nothing happens before hold(). @throws IoError.
  void renew();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace thalia::store
