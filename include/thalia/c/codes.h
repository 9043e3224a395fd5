// What all functions of thalia/c.h share: status and errors, element types, roles, encodings and
// codecs.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What the functions of thalia/c.h return, and how the last error is reported.

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

// Element types, roles, encodings and codecs: the format's codes and their names,
// docs/format/format.md. And choices that readers and writers share; those that have a default
// begin with it.

typedef uint32_t thalia_dtype;
enum {
  THALIA_DTYPE_F32 = 0,
  THALIA_DTYPE_F16 = 1,
  THALIA_DTYPE_I8 = 2,
  THALIA_DTYPE_F64 = 3,
  THALIA_DTYPE_BF16 = 4,
  THALIA_DTYPE_I16 = 5,
  THALIA_DTYPE_I32 = 6,
  THALIA_DTYPE_I64 = 7,
  THALIA_DTYPE_U8 = 8,
  THALIA_DTYPE_U16 = 9,
  THALIA_DTYPE_U32 = 10,
  THALIA_DTYPE_U64 = 11,
  THALIA_DTYPE_BOOL = 12,
  THALIA_DTYPE_F8_E4M3 = 13,
  THALIA_DTYPE_F8_E5M2 = 14,
  THALIA_DTYPE_F8_E8M0 = 15,
  THALIA_DTYPE_F8_E4M3FNUZ = 16,
  THALIA_DTYPE_F8_E5M2FNUZ = 17,
  THALIA_DTYPE_F6_E2M3 = 18,
  THALIA_DTYPE_F6_E3M2 = 19,
  THALIA_DTYPE_F4_E2M1 = 20,
  THALIA_DTYPE_I4 = 21,
  THALIA_DTYPE_U4 = 22,
  THALIA_DTYPE_I2 = 23,
  THALIA_DTYPE_U2 = 24,
  THALIA_DTYPE_TERNARY = 25,
  THALIA_DTYPE_BINARY = 26,
  THALIA_DTYPE_C64 = 27,
  THALIA_DTYPE_C128 = 28
};

typedef uint32_t thalia_role;
enum {
  THALIA_ROLE_WEIGHTS = 0,
  THALIA_ROLE_HOMEOSTATIC = 1,
  THALIA_ROLE_REGION_STATE = 2,
  THALIA_ROLE_LEARNING_STATE = 3,
  THALIA_ROLE_OSCILLATOR = 4,
  THALIA_ROLE_NEUROMODULATOR = 5,
  THALIA_ROLE_OPTIMIZER = 6,
  THALIA_ROLE_BUFFER = 7,
  THALIA_ROLE_OTHER = 8,
  THALIA_ROLE_BIAS = 9,
  THALIA_ROLE_NORMALIZATION = 10,
  THALIA_ROLE_EMBEDDING = 11
};

/// docs/format/format.md, "Payloads", tells how the bytes of each lie.
typedef uint32_t thalia_encoding;
enum {
  THALIA_ENCODING_DENSE = 0,
  THALIA_ENCODING_CSR = 1,
  THALIA_ENCODING_COO = 2,
  THALIA_ENCODING_QUANTIZED = 3,
  THALIA_ENCODING_SAME_AS_BASE = 4,
  THALIA_ENCODING_XOR_BASE = 5,
  THALIA_ENCODING_SPARSE_DELTA = 6,
  THALIA_ENCODING_LOW_RANK_DELTA = 7,
  THALIA_ENCODING_STEP_DELTA = 8
};

typedef uint32_t thalia_codec;
enum {
  THALIA_CODEC_NONE = 0,
  THALIA_CODEC_ZSTD = 1,
  THALIA_CODEC_LZ4 = 2,
  THALIA_CODEC_PLANE_ENTROPY = 3,
  THALIA_CODEC_PACKED_EXPONENTS = 4
};

/// Dimensions of a tensor at most.
#define THALIA_MAX_RANK 8

/// What kind of neurons a region has. NONE: it is no spiking population.
enum { THALIA_NEURONS_NONE = 0, THALIA_NEURONS_LIF = 1, THALIA_NEURONS_CONDUCTANCE_LIF = 2 };

/// What closes a file and tells whether its bytes are those that were saved.
enum {
  THALIA_CHECKSUM_BLOCK_TREE = 0,
  THALIA_CHECKSUM_NONE = 1,
  THALIA_CHECKSUM_SHA256 = 2,
  THALIA_CHECKSUM_CRC32 = 3
};

/// How bytes get between a file and memory.
enum {
  THALIA_IO_AUTOMATIC = 0,
  THALIA_IO_BUFFERED = 1,  ///< through the page cache
  THALIA_IO_DIRECT = 2     ///< past it, where the system allows that
};

/// "f32", "weights", "dense", "none": as in docs/format/format.md; "unknown" of other numbers.
const char* thalia_dtype_name(thalia_dtype dtype);
const char* thalia_role_name(thalia_role role);
const char* thalia_encoding_name(thalia_encoding encoding);
const char* thalia_codec_name(thalia_codec codec);
/// Bits of an element, 1 to 128; 0 of a number that is no dtype. Those of less than 8 are packed,
/// least significant bit first.
uint32_t thalia_dtype_bits(thalia_dtype dtype);
/// THALIA_ERROR_NOT_FOUND, with the nearest name, if there is none of that name.
thalia_status thalia_dtype_from_name(const char* name, thalia_dtype* dtype);

#ifdef __cplusplus
}  // extern "C"
#endif
