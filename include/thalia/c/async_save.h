// Saving from C while training goes on. thalia/async_save.h.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thalia/c/error.h"
#include "thalia/c/writer.h"

#ifdef __cplusplus
extern "C" {
#endif

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
/// THALIA_ERROR_CANCELLED where it was cancelled, replaced or skipped. @param result may be NULL.
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
