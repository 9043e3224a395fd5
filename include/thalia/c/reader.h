// Reading from C: an open file, its regions, and tensors as views or copies. thalia/reader.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thalia/c/codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/// UTF-8 of a file: not ended by NUL, and a tensor's name may have one in it. Print it with "%.*s".
typedef struct thalia_text {
  const char* data;
  size_t length;  ///< in bytes
} thalia_text;

/// One open file.
typedef struct thalia_reader thalia_reader;
/// One tensor of an open file. It keeps the file open, also when the reader is closed.
typedef struct thalia_tensor thalia_tensor;

/// When bytes are checked against the file's checksum before they are handed out.
enum {
  THALIA_VERIFY_ON_FIRST_TOUCH = 0,  ///< each block once
  THALIA_VERIFY_OFF = 1,             ///< never; structure is checked all the same
  THALIA_VERIFY_AT_OPEN = 2,         ///< the whole file, before it is open
  THALIA_VERIFY_BY_TENSOR = 3        ///< each tensor by itself: what is sound in a damaged file
};

/// How a file's bytes are reached.
enum {
  THALIA_ACCESS_MAPPED = 0,   ///< in place. If the file shrinks, or its disk fails, touching a view
                              ///< raises SIGBUS
  THALIA_ACCESS_COPIED = 1,   ///< read into memory first; those are errors then
  THALIA_ACCESS_WRITABLE = 2  ///< as mapped, and views may be written to: this reader alone sees
                              ///< it, and the file never changes
};

typedef struct thalia_read_options {
  size_t size;
  uint32_t verification;          ///< THALIA_VERIFY_…
  uint32_t access;                ///< THALIA_ACCESS_…
  uint32_t threads;               ///< 0: one for each core
  uint32_t use_commit_record;     ///< 1: where the header is torn, the one that recover would write
  uint64_t max_file_bytes;        ///< 0: any
  uint32_t max_regions;           ///< 0: 2^24
  uint32_t max_tensors;           ///< 0: 2^28
  uint64_t max_json_bytes;        ///< of one text; 0: 1 GiB
  uint64_t max_allocation_bytes;  ///< 0: what fits file and machine
} thalia_read_options;

typedef struct thalia_file_info {
  size_t size;
  uint64_t file_bytes;
  uint64_t logical_bytes;  ///< of all tensors
  uint32_t region_count;
  uint32_t tensor_count;  ///< those of connections between regions included
  uint32_t connection_count;
  uint32_t is_delta;  ///< 1: of changes against another file
  uint64_t training_steps;
  uint64_t timestamp;  ///< of the save, seconds since 1970
  uint64_t total_neurons;
  uint64_t total_synapses;
  uint64_t generation;  ///< 1 after a save, one more with each append
  uint32_t checksum;    ///< THALIA_CHECKSUM_…
  uint16_t format_major;
  uint16_t format_minor;
  uint16_t format_patch;
  uint16_t reserved[3];
  uint8_t uuid[16];
  uint8_t closing_checksum[32];  ///< the last bytes: the file's identity
} thalia_file_info;

typedef struct thalia_region_info {
  size_t size;
  thalia_text name;           ///< like the other texts here in the file's memory
  thalia_text config_json;    ///< an object
  thalia_text metadata_json;  ///< an object; length 0: none
  uint32_t tensor_count;
  uint32_t n_neurons;
  uint32_t n_inputs;
  uint32_t neuron_type;    ///< THALIA_NEURONS_…
  uint64_t logical_bytes;  ///< of its tensors
  uint64_t stored_bytes;
} thalia_region_info;

typedef struct thalia_tensor_info {
  size_t size;
  thalia_text name;    ///< in the file's memory
  thalia_text region;  ///< likewise; length 0 of a matrix of a connection
  thalia_dtype dtype;
  thalia_role role;
  thalia_encoding encoding;
  uint32_t rank;
  uint64_t shape[THALIA_MAX_RANK];  ///< `rank` of them, outermost first; the others 0
  uint64_t element_count;
  uint64_t nnz;            ///< stored elements of csr and coo
  uint64_t logical_bytes;  ///< decompressed: what thalia_tensor_read() fills
  uint64_t stored_bytes;
  uint64_t stored_offset;  ///< in the file
  uint32_t wide_indices;   ///< 1: indices of csr and coo are u64, else u32
  uint32_t is_raw;         ///< 1: stored as it is, so thalia_tensor_view() has it
  uint32_t crc32;          ///< of the logical bytes
  uint32_t chunk_count;    ///< of a compressed tensor
} thalia_tensor_info;

/// Elements [begin, end) of one dimension.
typedef struct thalia_range {
  uint64_t begin;
  uint64_t end;
} thalia_range;

// A reader and its tensors never change: any number of threads may use one at a time. Texts and
// views point into the file's memory, which lasts until the reader, its tensors and its streams
// are closed, all of them.

/// @param options may be NULL.
thalia_status thalia_reader_open(const char* path, const thalia_read_options* options,
                                 thalia_reader** reader);
void thalia_reader_close(thalia_reader* reader);

thalia_status thalia_reader_describe(const thalia_reader* reader, thalia_file_info* info);
/// The file's metadata, a JSON object; length 0: none.
thalia_status thalia_reader_metadata(const thalia_reader* reader, thalia_text* json);
/// Checks every byte against the checksum. THALIA_ERROR_CHECKSUM_MISMATCH names the first block
/// that differs.
thalia_status thalia_reader_verify(const thalia_reader* reader);

/// Regions by their place in the file, from 0. THALIA_ERROR_NOT_FOUND after the last.
thalia_status thalia_reader_region(const thalia_reader* reader, uint32_t region,
                                   thalia_region_info* info);
/// THALIA_ERROR_NOT_FOUND, with the nearest name, if there is none of that name.
thalia_status thalia_reader_find_region(const thalia_reader* reader, const char* name,
                                        uint32_t* region);

/// A tensor by its own name or as "REGION/NAME". THALIA_ERROR_NOT_FOUND, with the nearest name;
/// THALIA_ERROR_BAD_ARGUMENT where several regions have one of that name. The caller closes it.
thalia_status thalia_reader_tensor(const thalia_reader* reader, const char* name,
                                   thalia_tensor** tensor);
/// A region's tensors by their place, from 0, ordered by name. THALIA_ERROR_NOT_FOUND after the
/// last. The caller closes it.
thalia_status thalia_reader_tensor_at(const thalia_reader* reader, uint32_t region, uint32_t index,
                                      thalia_tensor** tensor);
void thalia_tensor_close(thalia_tensor* tensor);

thalia_status thalia_tensor_describe(const thalia_tensor* tensor, thalia_tensor_info* info);

/// The bytes as they lie in the file, without a copy, on a multiple of 64. THALIA_ERROR_WRONG_STATE
/// of a compressed tensor: thalia_tensor_read() decompresses it.
thalia_status thalia_tensor_view(const thalia_tensor* tensor, const void** data, size_t* bytes);
/// Copies or decompresses all of it. `bytes` has to be its logical_bytes, else
/// THALIA_ERROR_SIZE_MISMATCH. `out` may have any alignment; after an error, what is in it is not
/// to be used.
thalia_status thalia_tensor_read(const thalia_tensor* tensor, void* out, size_t bytes);
/// Copies a part of a dense tensor, packed and row-major: one range for each dimension. `bytes` has
/// to be what thalia_tensor_slice_bytes() says.
thalia_status thalia_tensor_read_slice(const thalia_tensor* tensor, const thalia_range* ranges,
                                       uint32_t rank, void* out, size_t bytes);
thalia_status thalia_tensor_slice_bytes(const thalia_tensor* tensor, const thalia_range* ranges,
                                        uint32_t rank, size_t* bytes);
/// Writes out all elements: zeros where a sparse tensor stores nothing, and those that a quantized
/// one restores. `bytes` has to be what thalia_tensor_dense_bytes() says.
thalia_status thalia_tensor_read_dense(const thalia_tensor* tensor, void* out, size_t bytes);
thalia_status thalia_tensor_dense_bytes(const thalia_tensor* tensor, size_t* bytes);

// Streaming from C: every tensor of a file as fast as the disk gives them. thalia/stream.h.

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
