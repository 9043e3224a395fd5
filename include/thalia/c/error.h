// What the functions of thalia/c.h return, and how the last error is reported.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// THALIA_OK, THALIA_END or an error. Numbers are never reused; a later version may return others.
typedef int32_t thalia_status;
enum {
  THALIA_OK = 0,
  THALIA_END = 1,  ///< there is no more; not an error

  // The operating system.
  THALIA_ERROR_IO = 100,
  THALIA_ERROR_STORAGE = 101,
  // The file breaks the format, or passes a limit.
  THALIA_ERROR_BAD_MAGIC = 200,
  THALIA_ERROR_TRUNCATED = 201,
  THALIA_ERROR_OUT_OF_BOUNDS = 202,
  THALIA_ERROR_BAD_VALUE = 203,
  THALIA_ERROR_LIMIT_EXCEEDED = 204,
  THALIA_ERROR_BAD_JSON = 205,
  THALIA_ERROR_BAD_NAME = 206,
  THALIA_ERROR_INCONSISTENT = 207,
  THALIA_ERROR_BAD_COMPRESSION = 208,
  // Well formed, and not the bytes that were written.
  THALIA_ERROR_CHECKSUM_MISMATCH = 300,
  // Not something this version can do.
  THALIA_ERROR_UNSUPPORTED_VERSION = 400,
  THALIA_ERROR_UNSUPPORTED_FEATURE = 401,
  THALIA_ERROR_UNSUPPORTED_DTYPE = 402,
  // The caller's mistake.
  THALIA_ERROR_NOT_FOUND = 500,
  THALIA_ERROR_DUPLICATE = 501,
  THALIA_ERROR_DTYPE_MISMATCH = 502,
  THALIA_ERROR_SIZE_MISMATCH = 503,
  THALIA_ERROR_BAD_ARGUMENT = 504,
  THALIA_ERROR_WRONG_STATE = 505,
  THALIA_ERROR_SHAPE_MISMATCH = 506,
  THALIA_ERROR_EXISTS = 507,
  // On request.
  THALIA_ERROR_CANCELLED = 600,
  // What C++ has exceptions of its own for.
  THALIA_ERROR_NO_MEMORY = 700,
  THALIA_ERROR_INTERNAL = 701  ///< a mistake in the library: please report it
};

/// Where an error has no offset in a file.
#define THALIA_NO_OFFSET UINT64_MAX

/// What is known of an error. Strings are never NULL; empty ones are not known, or do not apply.
typedef struct thalia_error {
  size_t size;           ///< of this struct in the library in use
  thalia_status status;  ///< THALIA_OK where nothing has failed yet
  int32_t errno_value;   ///< of the system call that failed, else 0
  const char* text;      ///< all of it in one line, fit to be printed
  const char* message;   ///< the sentence alone
  const char* path;      ///< of the file
  const char* section;   ///< header, directory, region, …
  const char* field;     ///< of the file's structure, or the argument or option
  const char* region;
  const char* tensor;
  const char* value;     ///< what was found
  const char* expected;  ///< what would have been right
  uint64_t offset;       ///< in the file, in bytes; THALIA_NO_OFFSET if there is none
} thalia_error;

/// The last error of the calling thread; a call that succeeds leaves it. Never NULL. It and its
/// strings last until another call of this thread fails, or the thread ends.
const thalia_error* thalia_last_error(void);

/// "ok", "not_found": the constant's name without its beginning; "unknown" of other numbers. Never
/// freed, like all names below.
const char* thalia_status_name(thalia_status status);

/// "MAJOR.MINOR.PATCH" of the library in use.
const char* thalia_version(void);

#ifdef __cplusplus
}  // extern "C"
#endif
