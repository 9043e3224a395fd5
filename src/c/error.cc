// The last error of each thread, in strings of its own, which the struct that C sees points into.
// Keeping an error must not fail: without memory for its text, it becomes an error about memory,
// whose text is short enough for a string without an allocation.
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "c/guard.h"

namespace thalia::c {
namespace {

struct LastError {
  LastError() noexcept { show(THALIA_OK, 0); }

  void show(thalia_status status, int errno_value) noexcept {
    shown = {.size = sizeof(thalia_error),
             .status = status,
             .errno_value = errno_value,
             .text = text.c_str(),
             .message = message.c_str(),
             .path = context.path.c_str(),
             .section = context.section.c_str(),
             .field = context.field.c_str(),
             .region = context.region.c_str(),
             .tensor = context.tensor.c_str(),
             .value = context.value.c_str(),
             .expected = context.bound.c_str(),
             .offset = context.offset.value_or(THALIA_NO_OFFSET)};
  }

  std::string text;
  std::string message;
  ErrorContext context;
  thalia_error shown;
};

thread_local LastError last_error;

// By value: what may throw has happened when this begins.
thalia_status keep(thalia_status status, std::string text, std::string message,
                   ErrorContext context = {}, int errno_value = 0) noexcept {
  last_error.text = std::move(text);
  last_error.message = std::move(message);
  last_error.context = std::move(context);
  last_error.show(status, errno_value);
  return status;
}

thalia_status keep_internal(const char* what) {
  return keep(THALIA_ERROR_INTERNAL, std::string("unexpected: ") + what, what);
}

}  // namespace

thalia_status keep_error(const Error& error) {
  const auto* io = dynamic_cast<const IoError*>(&error);
  return keep(static_cast<thalia_status>(error.code()), error.what(), error.message(),
              error.context(), io == nullptr ? 0 : io->errno_value());
}

thalia_status keep_exception() noexcept {
  try {
    try {
      throw;
    } catch (const Error& error) {
      return keep_error(error);
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return keep_internal(error.what());
    } catch (...) {
      return keep_internal("an exception of a type of its own");
    }
  } catch (...) {  // no memory, or none to say more
    return keep(THALIA_ERROR_NO_MEMORY, "out of memory", "out of memory");
  }
}

}  // namespace thalia::c

const thalia_error* thalia_last_error(void) {
  return &thalia::c::last_error.shown;
}

const char* thalia_status_name(thalia_status status) {
  switch (status) {
    case THALIA_OK:
      return "ok";
    case THALIA_END:
      return "end";
    case THALIA_ERROR_NO_MEMORY:
      return "no_memory";
    case THALIA_ERROR_INTERNAL:
      return "internal";
    default:
      return thalia::error_code_name(static_cast<thalia::ErrorCode>(status)).data();  // a literal
  }
}
