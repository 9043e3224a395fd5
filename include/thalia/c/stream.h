// Streaming from C: every tensor of a file as fast as the disk gives them. thalia/stream.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thalia/c/error.h"
#include "thalia/c/reader.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Every tensor of a file, read ahead by several threads as fast as the disk gives them. It keeps
/// the file open. One thread uses it at a time; thalia_stream_cancel() is for any.
typedef struct thalia_stream thalia_stream;

enum {
  THALIA_ORDER_FILE = 0,         ///< as they lie in the file
  THALIA_ORDER_AS_COMPLETED = 1  ///< as they arrive
};

typedef struct thalia_stream_options {
  size_t size;
  uint32_t order;        ///< THALIA_ORDER_…
  uint32_t io;           ///< THALIA_IO_…
  uint32_t threads;      ///< 0: one for each core
  uint32_t queue_depth;  ///< reads in flight, 1 to 1024; 0: 16
  /// What buffers, and tensors that were read ahead, take at most, 4 MiB or more; 0: 128 MiB. One
  /// tensor that is larger gets more.
  uint64_t memory_bytes;
  void* context;  ///< for the two calls below
  /// Returns where a tensor's bytes go: `bytes` of memory, which is written to until the tensor is
  /// handed out or the stream is closed; or NULL for the stream's own, as for a destination that is
  /// NULL. Called once for each tensor that has bytes, on a thread of the stream, never twice at a
  /// time. Memory on a multiple of 4096 is read into without a copy.
  void* (*destination)(void* context, const thalia_tensor* tensor, size_t bytes);
  /// Called by thalia_stream_next() with a damaged tensor, which is passed over then;
  /// thalia_last_error() says what is wrong with it. NULL: the stream ends with that error.
  void (*damaged)(void* context, const thalia_tensor* tensor);
} thalia_stream_options;

typedef struct thalia_streamed {
  size_t size;
  const thalia_tensor* tensor;  ///< the stream's: not to be closed
  /// The logical bytes, checked; the elements of a quantized tensor. The caller may change them.
  void* data;
  size_t bytes;
} thalia_streamed;

/// Begins to read. @param options may be NULL.
thalia_status thalia_stream_open(const thalia_reader* reader, const thalia_stream_options* options,
                                 thalia_stream** stream);
/// Waits for the next tensor; THALIA_END after the last. What it gives lasts until the next call
/// with this stream, but for memory of the caller's own. An error comes again at each further call.
thalia_status thalia_stream_next(thalia_stream* stream, thalia_streamed* item);
/// Ends thalia_stream_next() with THALIA_ERROR_CANCELLED, from any thread.
thalia_status thalia_stream_cancel(thalia_stream* stream);
/// Ends what runs and waits for it.
void thalia_stream_close(thalia_stream* stream);

#ifdef __cplusplus
}  // extern "C"
#endif
