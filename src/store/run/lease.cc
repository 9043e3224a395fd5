// A lease may be wrong in one way only: it may keep files for a little longer than a follower needs
// them. So what cannot be read holds nothing, a follower that was killed holds nothing once its
// time is over, and a follower that could not write one finds at worst that a file has gone, for
// which every follower is prepared.
#include "store/run/lease.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "base/fail.h"
#include "io/output/temporary_file.h"
#include "io/system/posix_error.h"
#include "io/system/process.h"
#include "io/system/random.h"
#include "store/run/config_text.h"
#include "store/run/fields.h"
#include "store/run/names.h"
#include "thalia/state/value.h"
#include "thalia/text.h"

namespace thalia::store {
namespace {

constexpr std::uint64_t kMaxLeaseBytes = 4096;
constexpr std::uint64_t kMostOfAny = ~std::uint64_t{0};
constexpr std::uint64_t kSweptAfter = 86'400;
constexpr std::size_t kLongestHost = 32;
constexpr std::string_view kEnding = ".json";
constexpr unsigned kRenewalsInTime = 3;

std::filesystem::path leases_of(const RunFolder& run, std::string_view phase) {
  return run.phase(phase).parent_path() / kFollowers;
}

// The names of what may be leases.
std::vector<std::string> lease_names(const io::Folder& folder) {
  std::vector<std::string> names;
  for (const io::FolderEntry& found : folder.entries()) {
    if (found.kind != io::EntryKind::file || !found.name.ends_with(kEnding)) continue;
    std::string name = found.name.substr(0, found.name.size() - kEnding.size());
    if (is_name(name)) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

std::optional<Lease> read_lease(const io::Folder& folder, const std::string& name) {
  try {
    const auto text = read_text(folder, name + std::string(kEnding), kMaxLeaseBytes);
    if (!text) return std::nullopt;
    Lease lease = parse_lease(*text);
    lease.name = name;
    return lease;
  } catch (const Error& error) {
    if (io::is_out_of_resources(error)) throw;
    // What is no lease holds nothing.
    return std::nullopt;
  }
}

const CheckpointEntry* listed(const RunListing& listing, std::string_view file) {
  const auto found = std::ranges::find(listing.entries, file, &CheckpointEntry::file);
  return found == listing.entries.end() ? nullptr : &*found;
}

}  // namespace

std::vector<std::string> links_after(const RunListing& listing, const std::string& file) {
  std::vector<std::string> links;
  const CheckpointEntry* link = listing.latest ? listed(listing, *listing.latest) : nullptr;
  while (link != nullptr && link->file != file) {
    if (!link->is_delta()) return {};
    links.push_back(link->file);
    const CheckpointEntry* const base = listed(listing, link->base);
    // Only a journal that somebody wrote can have a circle, and a file of it is no less deep.
    if (base != nullptr && base->depth >= link->depth) return {};
    link = base;
  }
  return link == nullptr ? std::vector<std::string>{} : links;
}

namespace {

std::string new_name(std::string host, std::uint64_t process) {
  for (char& c : host)
    if (!is_name(std::string(1, 'a') + c)) c = '_';
  host.resize(std::min(host.size(), kLongestHost));
  std::array<std::uint8_t, 4> random;
  io::fill_random(std::as_writable_bytes(std::span(random)));
  if (!is_name(host)) host = "follower";
  return fmt::format("{}.{}.{}", host, process, hex(random));
}

}  // namespace

std::string lease_text(const Lease& lease) {
  Value object = Value::object();
  object.add("file", lease.file);
  object.add("step", lease.step);
  object.add("renewed_at", lease.renewed_at);
  object.add("valid_seconds", lease.valid_seconds);
  object.add("host", lease.host);
  object.add("process", lease.process);
  return pretty_json(object);
}

Lease parse_lease(std::string_view text) {
  if (text.size() > kMaxLeaseBytes)
    throw FormatError(ErrorCode::limit_exceeded, {},
                      {.value = fmt::format("{} bytes", text.size()),
                       .bound = fmt::format("{} bytes at most", kMaxLeaseBytes)});
  const Value object = parse_json(text);
  Fields fields(object);
  const auto need = [&](std::string_view name, std::optional<std::uint64_t> value) {
    if (!value) fields.fail(name, "nothing", "a number");
    return *value;
  };
  Lease lease;
  lease.file = fields.text("file").value_or("");
  lease.step = fields.integer("step", 0, kMaxStep).value_or(0);
  lease.renewed_at = need("renewed_at", fields.integer("renewed_at", 0, kMostOfAny));
  lease.valid_seconds =
      need("valid_seconds", fields.integer("valid_seconds", 1, kMostLeaseSeconds));
  lease.host = fields.text("host").value_or("");
  lease.process = fields.integer("process", 0, kMostOfAny).value_or(0);
  return lease;
}

bool is_live(const Lease& lease, std::uint64_t now) noexcept {
  const std::uint64_t apart =
      now > lease.renewed_at ? now - lease.renewed_at : lease.renewed_at - now;
  return apart <= lease.valid_seconds;
}

std::vector<Lease> live_leases(const RunFolder& run, std::string_view phase, std::uint64_t now) {
  std::vector<Lease> live;
  const std::optional<io::Folder> folder = run.files().find_folder(leases_of(run, phase));
  if (!folder) return live;
  std::vector<std::string> names = lease_names(*folder);
  if (names.size() > kMostLeases) names.resize(kMostLeases);
  for (const std::string& name : names) {
    std::optional<Lease> lease = read_lease(*folder, name);
    if (lease && is_live(*lease, now)) live.push_back(*std::move(lease));
  }
  return live;
}

void protect_followed(const RunFolder& run, std::string_view phase, RunListing& listing) {
  for (const Lease& lease : live_leases(run, phase, now_seconds())) {
    if (listed(listing, lease.file) == nullptr) continue;
    std::vector<std::string> held = links_after(listing, lease.file);
    held.push_back(lease.file);
    for (CheckpointEntry& entry : listing.entries)
      if (std::ranges::find(held, entry.file) != held.end())
        entry.protected_by.push_back("follower " + lease.name);
  }
}

void sweep_leases(const RunFolder& run, std::string_view phase, std::uint64_t now) {
  const std::optional<io::Folder> folder = run.files().find_folder(leases_of(run, phase));
  if (!folder) return;
  const auto is_old = [&](std::uint64_t seconds) {
    return now > seconds && now - seconds > kSweptAfter;
  };
  for (const std::string& name : lease_names(*folder)) {
    const std::optional<Lease> lease = read_lease(*folder, name);
    if (lease && !is_live(*lease, now) && is_old(lease->renewed_at))
      folder->remove(name + std::string(kEnding));
  }
  for (const io::FolderEntry& found : folder->entries()) {
    if (found.kind != io::EntryKind::file || !io::temporary_process(found.name)) continue;
    const std::optional<io::EntryFacts> facts = folder->facts(found.name);
    if (facts && is_old(facts->modified_ns / 1'000'000'000)) folder->remove(found.name);
  }
}

class HeldLease::Impl {
 public:
  Impl(const RunFolder& run, std::string_view phase, std::uint64_t valid_seconds)
      : run_(run), folder_(leases_of(run, phase)) {
    check_option("valid_seconds", valid_seconds, 1, kMostLeaseSeconds);
    lease_.valid_seconds = valid_seconds;
    lease_.host = io::host_name();
    lease_.process = static_cast<std::uint64_t>(io::process_id());
    lease_.name = new_name(lease_.host, lease_.process);
  }
  ~Impl() {
    if (!is_taken_) return;
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    if (renewer_.joinable()) renewer_.join();
    try {
      run_.files().remove(path());
    } catch (const Error&) {
      // Its time ends.
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool is_foreign() const noexcept { return !mutex_.process().is_this(); }
  const std::string& name() const noexcept { return lease_.name; }

  void hold(const std::string& file, std::uint64_t step) {
    const std::lock_guard lock(mutex_);
    if (!is_taken_) run_.files().make_folders(folder_, Durability::none);
    lease_.file = file;
    lease_.step = step;
    is_taken_ = true;
    write();
    if (!renewer_.joinable()) renewer_ = std::thread([this] { work(); });
  }

  void renew() {
    const std::lock_guard lock(mutex_);
    if (is_taken_) write();
  }

 private:
  std::filesystem::path path() const { return folder_ / (lease_.name + std::string(kEnding)); }

  // A lease need not outlive the machine's power: what it is about does not either.
  void write() {
    lease_.renewed_at = now_seconds();
    run_.files().write_text(path(), lease_text(lease_), Durability::none);
  }

  void work() noexcept {
    const std::chrono::milliseconds pause(lease_.valid_seconds * 1000 / kRenewalsInTime);
    std::unique_lock lock(mutex_);
    while (!changed_.wait_for(lock, pause, [&] { return is_over_; })) {
      try {
        write();
      } catch (const std::exception&) {
        // The next time, perhaps.
      }
    }
  }

  const RunFolder run_;
  const std::filesystem::path folder_;
  Lease lease_;
  bool is_taken_ = false;
  io::ProcessMutex mutex_{"the lease"};
  std::condition_variable_any changed_;
  bool is_over_ = false;
  std::thread renewer_;
};

HeldLease::HeldLease(const RunFolder& run, std::string_view phase, std::uint64_t valid_seconds)
    : impl_(std::make_unique<Impl>(run, phase, valid_seconds)) {}
// In a forked child the thread is not there, and the lease is the parent's.
HeldLease::~HeldLease() {
  if (impl_ && impl_->is_foreign()) static_cast<void>(impl_.release());
}
HeldLease::HeldLease(HeldLease&&) noexcept = default;

const std::string& HeldLease::name() const noexcept {
  return impl_->name();
}

void HeldLease::hold(const std::string& file, std::uint64_t step) {
  impl_->hold(file, step);
}

void HeldLease::renew() {
  impl_->renew();
}

}  // namespace thalia::store
