// Saving from C: one new file, there only when it is committed. thalia/writer.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thalia/c/codes.h"

#ifdef __cplusplus
extern "C" {
#endif

/// One new file, which appears under its name, whole, when it is committed. One thread uses it at a
/// time; thalia_writer_cancel() is for any.
typedef struct thalia_writer thalia_writer;

/// How far a save goes before it returns.
enum {
  THALIA_DURABILITY_FULL = 0,  ///< the new file survives a power loss
  THALIA_DURABILITY_DATA = 1,  ///< after a power loss it is the old file or the new
  THALIA_DURABILITY_NONE = 2   ///< in the page cache; whole, unless the machine fails
};

typedef struct thalia_save_options {
  size_t size;
  thalia_codec codec;  ///< THALIA_CODEC_NONE, which is 0: raw, so that views are to be had
  /// 1 to 22 for zstd, 1 to 12 for lz4; 0 is the codec's default, and the only one of the others.
  int32_t compression_level;
  uint32_t automatic_codec;  ///< 1: whatever makes the save faster; `codec` is 0 then
  uint32_t chunk_bytes;      ///< of a compressed tensor, a multiple of 4 KiB; 0: 1 MiB
  uint32_t checksum;         ///< THALIA_CHECKSUM_…
  uint32_t sha256;           ///< 1: SHA-256 of the whole file, too, and NAME.sha256 next to it
  uint32_t durability;       ///< THALIA_DURABILITY_…
  uint32_t keep_existing;    ///< 1: a file that is there stays: THALIA_ERROR_EXISTS
  uint32_t reproducible;     ///< 1: equal input gives equal bytes
  uint32_t io;               ///< THALIA_IO_…
  uint32_t threads;          ///< 0: one for each core
  uint32_t queue_depth;      ///< writes in flight, 1 to 1024; 0: 16
  uint64_t memory_bytes;     ///< of buffers at most, 4 MiB or more; 0: 128 MiB
} thalia_save_options;

typedef struct thalia_region_spec {
  size_t size;
  const char* name;           ///< 1 to 65,535 bytes of UTF-8, unique in the file
  const char* config_json;    ///< an object; NULL: {}
  const char* metadata_json;  ///< an object; NULL: none
  uint32_t n_neurons;
  uint32_t n_inputs;
  uint32_t neuron_type;  ///< THALIA_NEURONS_…
  uint32_t reserved;     ///< 0
} thalia_region_spec;

typedef struct thalia_tensor_spec {
  size_t size;
  const char* name;  ///< up to 65,535 bytes of UTF-8, unique in its region
  thalia_dtype dtype;
  thalia_role role;
  thalia_encoding encoding;  ///< dense, csr (rank 2) or coo
  uint32_t rank;             ///< 0 is a scalar
  uint64_t shape[THALIA_MAX_RANK];
  uint64_t nnz;           ///< stored elements of csr and coo
  uint32_t wide_indices;  ///< 1: csr and coo with indices of u64
  uint32_t reserved;      ///< 0
} thalia_tensor_spec;

typedef struct thalia_save_result {
  size_t size;
  uint64_t file_bytes;
  uint64_t payload_bytes;  ///< logical bytes of all tensors
  uint32_t regions;
  uint32_t tensors;
  thalia_codec codec;  ///< as asked for, or as chosen
  uint32_t io;         ///< THALIA_IO_BUFFERED or THALIA_IO_DIRECT: what the save used
  double seconds;
  double sync_seconds;           ///< of which waiting for the disk
  uint8_t closing_checksum[32];  ///< the file's identity
  uint8_t sha256[32];            ///< of the whole file, if it was asked for; else 0
} thalia_save_result;

/// Nothing is at `path` before the commit. @param options may be NULL.
thalia_status thalia_writer_open(const char* path, const thalia_save_options* options,
                                 thalia_writer** writer);
/// A JSON object, kept as it is.
thalia_status thalia_writer_set_metadata(thalia_writer* writer, const char* json);
thalia_status thalia_writer_set_training_steps(thalia_writer* writer, uint64_t steps);
/// @param region receives what the calls below take; may be NULL.
thalia_status thalia_writer_add_region(thalia_writer* writer, const thalia_region_spec* spec,
                                       uint32_t* region);
/// A tensor with its bytes, which are not copied: they stay as they are until the commit has ended,
/// in memory of the caller's. THALIA_ERROR_SIZE_MISMATCH unless `bytes` is what dtype, shape and
/// encoding ask for.
thalia_status thalia_writer_add_tensor(thalia_writer* writer, uint32_t region,
                                       const thalia_tensor_spec* spec, const void* data,
                                       size_t bytes);
/// A tensor whose bytes come through thalia_writer_write(). @param tensor receives what that takes.
thalia_status thalia_writer_declare_tensor(thalia_writer* writer, uint32_t region,
                                           const thalia_tensor_spec* spec, uint32_t* tensor);
/// Appends to such a tensor's bytes, and copies them. With a codec, tensors come one after the
/// other in the order of the file: docs/use/c.md. The first call ends the declarations.
thalia_status thalia_writer_write(thalia_writer* writer, uint32_t tensor, const void* data,
                                  size_t bytes);
/// Writes the file and puts it in its place. After an error what was at the path is there still.
/// @param result may be NULL.
thalia_status thalia_writer_commit(thalia_writer* writer, thalia_save_result* result);
/// Ends a commit, of this writer or of the save that took it over, with THALIA_ERROR_CANCELLED,
/// from any thread.
thalia_status thalia_writer_cancel(thalia_writer* writer);
/// Without a commit before, the save is given up, and nothing of it is left.
void thalia_writer_close(thalia_writer* writer);

// Saving from C while training goes on. thalia/async_save.h.

/// Writes saves one after the other on a thread of its own, and has the memory for copies of the
/// state. Any number of threads may use one at a time. In a forked child, which has not that
/// thread, each call but the one that closes it is THALIA_ERROR_WRONG_STATE.
typedef struct thalia_saver thalia_saver;
/// One save in the background. Any number of threads may use one at a time.
typedef struct thalia_save thalia_save;

/// What a save does that finds another one unfinished.
enum {
  THALIA_BUSY_WAIT = 0,     ///< waits for it, then copies the state
  THALIA_BUSY_QUEUE = 1,    ///< copies the state now, and is written after it
  THALIA_BUSY_REPLACE = 2,  ///< cancels it, and every one that waits
  THALIA_BUSY_SKIP = 3      ///< is not begun: thalia_save_progress.skipped
};

/// What becomes of the tensors' bytes while a save runs.
enum {
  THALIA_SNAPSHOT_COPY = 0,     ///< copied before the call returns: the caller may change them then
  THALIA_SNAPSHOT_BORROWED = 1  ///< not copied: they stay as they are until the save is done
};

typedef struct thalia_saver_options {
  size_t size;
  uint32_t when_busy;           ///< THALIA_BUSY_…
  uint32_t max_unfinished;      ///< saves at a time with QUEUE and REPLACE, 1 to 1024; 0: 2
  uint64_t max_snapshot_bytes;  ///< of all copies together; 0: half of the machine's memory
  uint32_t snapshot_threads;    ///< that copy; 0: one for each core
  uint32_t background_threads;  ///< that write; 0: a quarter of the cores, 1 to 4
  int32_t niceness;             ///< added to theirs, 1 to 19; 0: 10; -1: nothing
  uint32_t reserved;            ///< 0
} thalia_saver_options;

typedef struct thalia_save_progress {
  size_t size;
  uint64_t done;     ///< bytes
  uint64_t total;    ///< bytes; 0 until the first are written
  uint32_t ended;    ///< 1: well, with an error, or cancelled
  uint32_t skipped;  ///< 1: it was not begun, as another one was unfinished
} thalia_save_progress;

/// @param options may be NULL.
thalia_status thalia_saver_open(const thalia_saver_options* options, thalia_saver** saver);
/// Makes memory ready in the background for `snapshots` copies of `bytes` each, so that the first
/// save is as fast as the others.
thalia_status thalia_saver_reserve(thalia_saver* saver, uint64_t bytes, uint32_t snapshots);
/// Takes over what a writer has, and commits it in the background. Returns when the state was
/// copied (THALIA_SNAPSHOT_…). The writer is empty then, and is still to be closed; after an error
/// it, and where the save is skipped, it is as it was. The caller closes the save.
thalia_status thalia_saver_save(thalia_saver* saver, thalia_writer* writer, uint32_t snapshot,
                                thalia_save** save);
/// Waits until no save is unfinished. Then returns the oldest error that nobody has waited for,
/// once; the next call the next one.
thalia_status thalia_saver_wait_all(thalia_saver* saver);
/// Waits for every save that was begun.
void thalia_saver_close(thalia_saver* saver);

/// Returns at once.
thalia_status thalia_save_poll(const thalia_save* save, thalia_save_progress* progress);
/// Waits until the save has ended, and returns what thalia_writer_commit() would have, each time;
/// THALIA_ERROR_CANCELLED if it was cancelled, replaced or skipped. @param result may be NULL.
thalia_status thalia_save_wait(const thalia_save* save, thalia_save_result* result);
/// Waits until then, or for that time. @param ended receives 1 where the save has ended, else 0.
thalia_status thalia_save_wait_for(const thalia_save* save, uint64_t nanoseconds, uint32_t* ended);
/// Asks the save to end, and does not wait. What was at the path stays, unless the save was all but
/// done.
thalia_status thalia_save_cancel(const thalia_save* save);
/// The save goes on.
void thalia_save_close(thalia_save* save);

#ifdef __cplusplus
}  // extern "C"
#endif
