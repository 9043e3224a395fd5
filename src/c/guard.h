// Where exceptions end. Every function of the C interface that can fail is one call of guarded(),
// and nothing else catches: what leaves it is a status, and the last error of the thread.
#pragma once

#include <type_traits>

#include "thalia/c/codes.h"
#include "thalia/error.h"

namespace thalia::c {

/// Keeps an error as the last one of this thread. @return its status. @throws std::bad_alloc.
thalia_status keep_error(const Error& error);

/// The same for the exception that is being handled, whatever it is.
thalia_status keep_exception() noexcept;

/// @param action returns nothing, which is THALIA_OK, or a status that is no error.
template <typename Action>
thalia_status guarded(const Action& action) noexcept {
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<const Action&>>) {
      action();
      return THALIA_OK;
    } else {
      return action();
    }
  } catch (...) {
    return keep_exception();
  }
}

}  // namespace thalia::c
