// The one way from the library's own parts to what the classes of its public face hold: their only
// friend. Each call is named after the member that it leads to.
#pragma once

#include <memory>
#include <utility>

namespace thalia::detail {

struct Inside {
  template <typename T>
  static auto& impl(T& of) noexcept {
    return of.impl_;
  }
  template <typename T>
  static auto& file(T& of) noexcept {
    return of.file_;
  }
  template <typename T>
  static auto& region(T& of) noexcept {
    return of.region_;
  }
  template <typename T>
  static auto& entry(T& of) noexcept {
    return of.entry_;
  }
  template <typename T>
  static auto& chain(T& of) noexcept {
    return of.chain_;
  }
  template <typename T>
  static auto& folder(T& of) noexcept {
    return of.folder_;
  }
  template <typename T>
  static auto& queue(T& of) noexcept {
    return of.queue_;
  }
  template <typename T>
  static auto& outcome(T& of) noexcept {
    return of.outcome_;
  }

  template <typename T, typename... Parts>
  static T make(Parts&&... parts) {
    return T(std::forward<Parts>(parts)...);
  }
  /// One with an Impl of its own.
  template <typename T, typename... Parts>
  static T make_impl(Parts&&... parts) {
    return T(std::make_unique<typename T::Impl>(std::forward<Parts>(parts)...));
  }
};

}  // namespace thalia::detail
