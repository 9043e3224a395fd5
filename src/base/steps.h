// Several calls that make one thing: if one of them fails, the thing is not handed out.
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include "base/busy.h"
#include "thalia/error.h"

namespace thalia {

/// The state of whatever is made call by call and handed out by the last one: a call that ends in
/// its midst ends everything, so that nothing with a hole in it comes out. Each call that changes
/// something goes through here. Externally synchronised: a call within another one, as from its
/// callback, is a UsageError (wrong_state) that changes nothing.
class Steps {
 public:
  /// @param what is made, for messages. @param path the same, may be empty. @param abandon called
  /// once, where a call fails; does not throw.
  explicit Steps(std::string what, std::string path = {}, std::function<void()> abandon = {})
      : what_(std::move(what)), path_(std::move(path)), abandon_(std::move(abandon)) {}

  bool is_open() const noexcept { return state_ == State::open; }
  /// @throws UsageError (wrong_state) after finish() and after a call that failed.
  void require_open() const {
    if (is_open()) return;
    throw UsageError(ErrorCode::wrong_state,
                     state_ == State::finished ? what_ + " was finished before"
                                               : what_ + " failed before: " + failure_,
                     {.path = path_});
  }

  /// A call that changes things: whatever it throws ends them all, and gets the path.
  template <typename Call>
  auto run(Call&& call) {
    return guarded(call, false);
  }
  /// A call that checks its arguments before it changes anything: if it throws UsageError,
  /// nothing has happened, and the caller may go on. Whatever else it throws ends them all, as it
  /// does in run().
  template <typename Call>
  auto check_and_run(Call&& call) {
    return guarded(call, true);
  }
  /// The last call.
  template <typename Call>
  auto finish(Call&& call) {
    if constexpr (std::is_void_v<std::invoke_result_t<Call>>) {
      run(call);
      state_ = State::finished;
    } else {
      auto result = run(call);
      state_ = State::finished;
      return result;
    }
  }

 private:
  enum class State { open, finished, failed };

  template <typename Call>
  auto guarded(Call& call, bool may_go_on) {
    const Busy::Call alone(busy_, what_, path_);
    require_open();
    try {
      return call();
    } catch (Error& error) {
      if (may_go_on && dynamic_cast<const UsageError*>(&error) != nullptr) throw;
      if (!path_.empty()) error.add_path(path_);
      fail(error.what());
      throw;
    } catch (const std::exception& error) {
      fail(error.what());
      throw;
    } catch (...) {
      fail("an exception of another kind");
      throw;
    }
  }

  void fail(const char* why) {
    state_ = State::failed;
    if (abandon_) abandon_();
    failure_ = why;
  }

  std::string what_;
  std::string path_;
  std::string failure_;
  std::function<void()> abandon_;
  State state_ = State::open;
  Busy busy_;
};

}  // namespace thalia
