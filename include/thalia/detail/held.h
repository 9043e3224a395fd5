// How the classes of the public face hold what they stand for, so that one that was moved from
// never leads to nothing.
#pragma once

#include <memory>
#include <utility>

namespace thalia::detail {

/// What the library's own parts reach the members of its public classes through.
struct Inside;

/// @throws UsageError (wrong_state).
[[noreturn]] void fail_moved();

/// What one object owns alone: after a move, using it throws UsageError (wrong_state).
template <typename T>
class Owned {
 public:
  Owned() = default;
  Owned(std::unique_ptr<T> object) noexcept : object_(std::move(object)) {}

  T* operator->() const { return &**this; }
  T& operator*() const {
    if (!object_) fail_moved();
    return *object_;
  }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  /// Leaves the object to nobody: it is not destroyed.
  void leave() noexcept { static_cast<void>(object_.release()); }

 private:
  std::unique_ptr<T> object_;
};

/// What copies share: a move is a copy too, and leaves what it moved from as it was.
template <typename T>
class Shared {
 public:
  Shared() = default;
  template <typename Made>
  Shared(std::shared_ptr<Made> object) noexcept : object_(std::move(object)) {}
  Shared(const Shared&) = default;
  Shared& operator=(const Shared&) = default;
  ~Shared() = default;

  T* operator->() const noexcept { return object_.get(); }
  T& operator*() const noexcept { return *object_; }
  T* get() const noexcept { return object_.get(); }
  const std::shared_ptr<T>& pointer() const noexcept { return object_; }

 private:
  std::shared_ptr<T> object_;
};

}  // namespace thalia::detail
