// One look at the folder leads to at most one update: the newest that can be read and is newer than
// what is held. It is made out of what is held and the deltas over that, else of its own files;
// where neither can be read, the next older one is tried, and what is held stays rather than that
// the follower goes back. Only a run that goes back itself, by its pointer, takes the follower
// along.
#include "thalia/store/follow.h"

#include <algorithm>
#include <mutex>
#include <set>
#include <stop_token>
#include <utility>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/utf8.h"
#include "io/folder/watch.h"
#include "io/system/posix_error.h"
#include "io/system/process.h"
#include "store/follow/choice.h"
#include "store/follow/followed_states.h"
#include "store/follow/held_tensors.h"
#include "store/follow/into_file.h"
#include "store/load/checked_file.h"
#include "store/run/lease.h"
#include "thalia/error.h"
#include "thalia/files.h"

namespace thalia {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kLongestInterval{86'400'000};

double seconds_since(std::uint64_t ns) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return static_cast<double>(now - static_cast<std::int64_t>(ns)) / 1e9;
}

}  // namespace

class store::FollowerImpl {
 public:
  FollowerImpl(const std::filesystem::path& folder, const FollowOptions& options)
      : options_(checked(options)),
        stop_(options.chain.read.work.cancel),
        folder_(folder, options_),
        watch_(options_.polling, FollowedFolder::may_lead),
        into_(options_),
        states_(options_, folder_, into_) {
    if (states_.has_file()) {
      options_.output.replace = true;
      for (const std::filesystem::path& watched : folder_.watched()) {
        if (resolved_path(watched) != resolved_path(folder_of(options_.into))) continue;
        fail_argument(ErrorCode::bad_argument, "into", printable(options_.into.string()),
                      "a file outside of the folder that is followed");
      }
    }
  }

  // Where memory may be added now.
  TensorChoice& open_choice() {
    process_.require(kWhat);
    if (number_ != 0 || pending_ || states_.has_file())
      throw UsageError(ErrorCode::wrong_state, "memory is registered before the first update");
    return states_.tensors();
  }

  std::optional<FollowUpdate> prepare(std::optional<milliseconds> timeout,
                                      const std::stop_token& stop);
  FollowUpdate apply(const FollowHooks& hooks);

  std::shared_ptr<const FollowedState> current() const {
    const std::lock_guard lock(mutex_);
    return current_;
  }
  void wake() noexcept {
    if (process_.is_this()) watch_.wake();
  }
  bool is_polling() const noexcept { return watch_.is_polling(); }

 private:
  static FollowOptions checked(FollowOptions options) {
    check_option("interval", options.interval.count(), milliseconds::rep{1},
                 kLongestInterval.count());
    return options;
  }
  std::optional<FollowUpdate> prepare_within(std::optional<milliseconds> timeout);
  void look();
  bool try_choice(const FollowChoice& choice, const io::EntryFacts& facts, std::string& reason);
  void hold(const FollowChoice& choice);
  void warn(const std::string& sentence);
  void adopt(const PreparedState& state);
  std::shared_ptr<const FollowedState> followed(PreparedState& state) const;

  static constexpr std::string_view kWhat = "the follower";

  const io::OwnProcess process_{};
  FollowOptions options_;  ///< its stop is that of the call that is under way
  const std::stop_token stop_;
  FollowedFolder folder_;
  io::FolderWatch watch_;
  IntoFile into_;
  FollowedStates states_;

  std::uint64_t number_ = 0;
  std::optional<PreparedState> pending_;

  Clock::time_point next_look_ = Clock::time_point::min();
  std::string failed_;  ///< what was looked at in vain
  std::set<std::string> warned_;
  std::string leased_phase_;
  std::unique_ptr<HeldLease> lease_;

  mutable io::ThreadLock mutex_;
  std::shared_ptr<const FollowedState> current_;
};

namespace store {

void FollowerImpl::warn(const std::string& sentence) {
  // Each once, however often it is looked.
  if (warned_.size() > 1000) warned_.clear();
  if (warned_.insert(sentence).second && options_.on_warning) options_.on_warning(sentence);
}

// Before the file is opened: what goes before that is not found, and the next is taken.
void FollowerImpl::hold(const FollowChoice& choice) {
  if (folder_.run() == nullptr || !options_.lease) return;
  try {
    if (!lease_ || leased_phase_ != choice.phase) {
      lease_.reset();
      lease_ = std::make_unique<HeldLease>(*folder_.run(), choice.phase);
      leased_phase_ = choice.phase;
    }
    lease_->hold(choice.name, choice.step);
  } catch (const IoError& error) {
    warn(fmt::format("the run does not know of this follower: {}", error.what()));
  }
}

// True if an update is pending afterwards. `reason` gets what went wrong.
bool FollowerImpl::try_choice(const FollowChoice& choice, const io::EntryFacts& facts,
                              std::string& reason) {
  for (const bool with_held : {true, false}) {
    if (with_held && !states_.held()) continue;
    const Stopwatch watch;
    try {
      pending_ = states_.read(choice, facts, with_held, with_held || reason.empty());
      pending_->update.seconds = watch.seconds();
      return true;
    } catch (const CancelledError&) {
      throw;
    } catch (const Error& error) {
      // The file's next state, if one was prepared, is gone.
      into_.discard();
      if (states_.has_file()) pending_.reset();
      if (states_.is_final(error) || io::is_out_of_resources(error)) throw;
      if (reason.empty()) reason = error.what();
      warn(fmt::format("passed over: {}", error.what()));
    }
  }
  return false;
}

void FollowerImpl::adopt(const PreparedState& state) {
  states_.adopt(state);
  hold(state.taken.choice);
}

void FollowerImpl::look() {
  // First, so that what comes while it looks is reported.
  for (const std::filesystem::path& folder : folder_.watched()) watch_.add(folder);
  const FollowChoices choices = folder_.look();
  if (choices.files.empty() || choices.fingerprint == failed_) return;
  failed_.clear();
  const FollowChoice& newest = choices.files.front();
  const std::optional<TakenCheckpoint>& held = states_.held();
  const bool same_phase = held && held->choice.phase == newest.phase;
  const bool goes_back =
      same_phase && choices.is_led && newest.has_step && newest.step < held->choice.step;
  std::string reason;
  for (const FollowChoice& choice : choices.files) {
    const auto facts = folder_.facts(choice);
    if (!facts) continue;
    // What is held is the newest that can be read.
    if (held && held->is(choice, *facts)) break;
    if (same_phase && !goes_back && choice.step < held->choice.step) {
      // What cannot be read may be of any step: what is wrong with it is found out.
      if (&choice != &newest || !choices.is_led || choice.has_step) break;
    }
    if (pending_ && pending_->taken.is(choice, *facts)) return;
    if (!held) hold(choice);
    if (!try_choice(choice, *facts, reason)) continue;
    FollowUpdate& update = pending_->update;
    update.fell_back = !reason.empty();
    update.reason = reason;
    update.went_back = goes_back;
    update.number = number_ + 1;
    const bool is_same_state = number_ != 0 && update.changed.empty() && update.removed.empty() &&
                               same_phase && update.step == held->choice.step;
    // Another file of the same state, as of a delta that became a full file.
    if (is_same_state && (states_.has_file() ? !pending_->writes : !update.fell_back)) {
      adopt(*pending_);
      pending_.reset();
    }
    return;
  }
  if (!reason.empty()) failed_ = choices.fingerprint;
}

// The stop of the options and that of the call, as one.
std::optional<FollowUpdate> FollowerImpl::prepare(std::optional<milliseconds> timeout,
                                                  const std::stop_token& stop) {
  process_.require(kWhat);
  std::stop_source either;
  const auto request = [&] { either.request_stop(); };
  const std::stop_callback by_options(stop_, request);
  const std::stop_callback by_call(stop, request);
  options_.chain.read.work.cancel = either.get_token();
  folder_.set_stop(either.get_token());
  return prepare_within(timeout);
}

std::optional<FollowUpdate> FollowerImpl::prepare_within(std::optional<milliseconds> timeout) {
  if (pending_ && pending_->has_begun)
    throw UsageError(ErrorCode::wrong_state, "an update is half applied: call apply() again");
  const Clock::time_point begin = Clock::now();
  const Clock::time_point end =
      timeout && *timeout < kLongestInterval * 365 ? begin + *timeout : Clock::time_point::max();
  const auto until = [](Clock::time_point when) {
    const Clock::time_point now = Clock::now();
    return when <= now ? milliseconds(0)
                       : std::chrono::ceil<milliseconds>(
                             std::min<Clock::duration>(when - now, kLongestInterval));
  };
  if (states_.has_file() && number_ == 0 && !pending_) into_.find();
  while (true) {
    const milliseconds patience =
        pending_ ? milliseconds(0) : std::min(until(next_look_), until(end));
    const io::Woken woken = watch_.wait(patience, options_.chain.read.work.cancel);
    if (woken == io::Woken::called) return std::nullopt;
    if (woken == io::Woken::changed) failed_.clear();
    if (woken == io::Woken::changed || Clock::now() >= next_look_) {
      look();
      next_look_ = Clock::now() + options_.interval;
    }
    if (pending_) return pending_->update;
    if (Clock::now() >= end) return std::nullopt;
  }
}

std::shared_ptr<const FollowedState> FollowerImpl::followed(PreparedState& state) const {
  auto made = std::make_shared<FollowedState>();
  made->step_ = state.update.step;
  made->phase_ = state.update.phase;
  made->file_ = state.update.file;
  made->metadata_json_ = std::move(state.metadata_json);
  for (FollowedValue& value : *state.values) {
    value.pieces = {};
    made->tensors_.push_back(value.facts);
    made->values_.push_back(value.value);
  }
  return made;
}

FollowUpdate FollowerImpl::apply(const FollowHooks& hooks) {
  process_.require(kWhat);
  if (!pending_)
    throw UsageError(ErrorCode::wrong_state, "nothing is prepared that could be applied");
  const Stopwatch watch;
  PreparedState& pending = *pending_;
  try {
    states_.show(pending, hooks);
  } catch (...) {
    // What goes into a file is read and written again; memory is gone on with.
    if (states_.has_file()) {
      pending_.reset();
      next_look_ = Clock::time_point::min();
    }
    throw;
  }
  if (pending.values) {
    // The old one goes, if nobody holds it, when nobody waits for the lock.
    std::shared_ptr<const FollowedState> next = followed(pending);
    const std::lock_guard lock(mutex_);
    current_.swap(next);
  }
  adopt(pending);
  ++number_;
  FollowUpdate update = std::move(pending.update);
  update.seconds += watch.seconds();
  update.latency = seconds_since(update.saved_ns);
  pending_.reset();
  return update;
}

}  // namespace store

Follower::Follower(const std::filesystem::path& folder, const FollowOptions& options)
    : impl_(std::make_unique<store::FollowerImpl>(folder, options)) {}
Follower::~Follower() = default;
Follower::Follower(Follower&&) noexcept = default;
Follower& Follower::operator=(Follower&&) noexcept = default;

void Follower::add_memory(std::string_view region, std::string_view name,
                          const ServerMemory& memory) {
  impl_->open_choice().add_memory(region, name, memory);
}

void Follower::add_memory(std::span<const std::string> names, const ServerMemory& memory) {
  impl_->open_choice().add_memory(names, memory);
}

std::optional<FollowUpdate> Follower::wait(std::optional<milliseconds> timeout,
                                           const std::stop_token& stop) {
  if (!impl_->prepare(timeout, stop)) return std::nullopt;
  return impl_->apply({});
}

std::optional<FollowUpdate> Follower::prepare(std::optional<milliseconds> timeout,
                                              const std::stop_token& stop) {
  return impl_->prepare(timeout, stop);
}

FollowUpdate Follower::apply(const FollowHooks& hooks) {
  return impl_->apply(hooks);
}

std::shared_ptr<const FollowedState> Follower::current() const {
  return impl_->current();
}

void Follower::wake() noexcept {
  if (impl_) impl_->wake();
}

bool Follower::is_polling() const noexcept {
  return impl_ && impl_->is_polling();
}

}  // namespace thalia
