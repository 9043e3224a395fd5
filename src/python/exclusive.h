// Objects of Python that one call at a time may use.
#pragma once

#include <string_view>
#include <utility>

#include "base/busy.h"

namespace thalia::python {

/// Any thread may call a method at any time, also a callback of another method. Bound as an
/// Exclusive, an object is out of a method's reach until use() has found that no other runs: the
/// GIL is no help, as the library lets go of it.
template <typename T>
class Exclusive {
 public:
  /// @param what it is, for the message; stays.
  template <typename... Arguments>
  explicit Exclusive(std::string_view what, Arguments&&... arguments)
      : what_(what), object_(std::forward<Arguments>(arguments)...) {}

  class Use {
   public:
    T& operator*() const noexcept { return object_; }
    T* operator->() const noexcept { return &object_; }

   private:
    friend class Exclusive;
    explicit Use(Exclusive& of) : call_(of.busy_, of.what_, {}), object_(of.object_) {}

    Busy::Call call_;
    T& object_;
  };
  /// For as long as what is returned lives. @throws UsageError (wrong_state) while another call
  /// uses it.
  Use use() { return Use(*this); }

 private:
  std::string_view what_;
  Busy busy_;
  T object_;
};

}  // namespace thalia::python
