// The folder of a training run from C: saving into it, its latest checkpoint, and that as a file.
// thalia/store.h. What lies in the folder: docs/format/store.md.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thalia/c/codes.h"
#include "thalia/c/reader.h"
#include "thalia/c/writer.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A run, for those who read it. Any number of threads and processes may, while one saves.
typedef struct thalia_run thalia_run;
/// A run that is saved into. It holds the run's lock, as one at a time over all processes can. Any
/// number of threads may use one at a time. In a forked child each call but the one that closes it
/// is THALIA_ERROR_WRONG_STATE.
typedef struct thalia_run_writer thalia_run_writer;

/// What is known of a checkpoint's bytes without reading them.
enum {
  THALIA_CONDITION_UNKNOWN = 0,  ///< nobody has looked since the file was last changed
  THALIA_CONDITION_WHOLE = 1,    ///< unchanged since it was saved, or was read and found whole
  THALIA_CONDITION_DAMAGED = 2   ///< unchanged since it was read and found damaged
};

/// What a run knows of a checkpoint without opening it. Its step is its name: thalia_run_path().
typedef struct thalia_checkpoint_info {
  size_t size;
  uint64_t step;
  uint64_t file_bytes;
  uint64_t saved_at;     ///< seconds since 1970
  double metric;         ///< that it was saved with; 0 if there is none
  uint32_t has_metric;   ///< 1: there is one
  uint32_t condition;    ///< THALIA_CONDITION_…
  uint32_t depth;        ///< deltas from here down to a full file; 0 of one
  uint32_t left_behind;  ///< 1: the run went back to before it
} thalia_checkpoint_info;

/// How bytes are checked before a checkpoint is handed out.
enum {
  THALIA_CHECK_DIGEST = 0,   ///< against NAME.sha256, all of them
  THALIA_CHECK_ON_TOUCH = 1  ///< as the file's own checks do, when it is read
};

/// Hears of what is no error and should be known, in one sentence a call. In a thread of the
/// library's, too; it calls nothing of the run, and does not leave by longjmp.
typedef void (*thalia_run_warning)(void* context, const char* sentence);

typedef struct thalia_load_options {
  size_t size;
  uint32_t only_step;  ///< 1: `step`, and no other. 0: the latest, or if that is damaged the
                       ///< next older one, and so on through all that there are
  uint32_t check;      ///< THALIA_CHECK_…
  uint64_t step;       ///< with only_step
  const char* gate;    ///< this one, and no checkpoint of a phase; NULL: none
  thalia_run_warning warning;  ///< NULL: nobody hears of warnings
  void* context;               ///< for it
} thalia_load_options;

typedef struct thalia_run_writer_options {
  size_t size;
  uint32_t wait;               ///< 1: for as long as another process holds the lock
  uint32_t durability;         ///< THALIA_DURABILITY_…, of all saves
  thalia_run_warning warning;  ///< NULL: nobody hears of warnings. Until the writer is closed
  void* context;               ///< for it
} thalia_run_writer_options;

typedef struct thalia_checkpoint_options {
  size_t size;
  double metric;        ///< of the phase's metric; NaN is never the best
  uint32_t has_metric;  ///< 1: there is one
  uint32_t replace;     ///< of save_bytes and save_file, 1: in the place of one of the same step
} thalia_checkpoint_options;

typedef struct thalia_stored {
  size_t size;
  uint64_t file_bytes;
  uint32_t is_best;  ///< 1: it is the best of its phase now
  uint32_t removed;  ///< checkpoints that retention did not keep
  double seconds;    ///< of which sync_seconds waiting for the disk
  double sync_seconds;
} thalia_stored;

/// Publishes states of a phase for those who follow it: what changed since the one before is
/// written, and the latest leads to it last. docs/use/follow.md, "Publish". Any number of threads
/// may use one at a time. Its run stays open for longer.
typedef struct thalia_publisher thalia_publisher;

typedef struct thalia_publisher_options {
  size_t size;
  uint32_t hold_nothing;  ///< 1: no copy of the last state in memory; each delta reads its base
} thalia_publisher_options;

typedef struct thalia_published {
  size_t size;
  uint64_t step;
  uint64_t file_bytes;
  uint32_t depth;          ///< deltas from here down to a full file; 0 of one
  uint32_t tensors;        ///< of the state
  uint32_t changed;        ///< of these, tensors that the file stores something of
  uint32_t from_memory;    ///< 1: a delta against the copy in memory
  uint32_t is_best;        ///< 1: it is the best of its phase now
  uint32_t removed;        ///< checkpoints that retention did not keep
  double visible_seconds;  ///< until the latest led to it; part of `seconds`
  double seconds;          ///< of which sync_seconds waiting for the disk
  double sync_seconds;
} thalia_published;

/// Makes the folder of a run. @param config_json its configuration: docs/format/store.md.
/// THALIA_ERROR_EXISTS if there is a run.
thalia_status thalia_run_create(const char* folder, const char* config_json);
thalia_status thalia_run_open(const char* folder, thalia_run** run);
void thalia_run_close(thalia_run* run);

/// A checkpoint of a phase by its place in the order of steps, from 0. THALIA_ERROR_NOT_FOUND after
/// the last. Each call reads the folder.
thalia_status thalia_run_checkpoint(const thalia_run* run, const char* phase, uint64_t index,
                                    thalia_checkpoint_info* info);
/// What was saved last, or is resumed from. THALIA_ERROR_NOT_FOUND where the phase has none.
thalia_status thalia_run_latest(const thalia_run* run, const char* phase,
                                thalia_checkpoint_info* info);
/// That with the best metric. THALIA_ERROR_NOT_FOUND where the phase has none.
thalia_status thalia_run_best(const thalia_run* run, const char* phase,
                              thalia_checkpoint_info* info);
/// The path of a step's file, ended by NUL, whether it is there or not. @param length receives its
/// bytes without the NUL; may be NULL. THALIA_ERROR_SIZE_MISMATCH where `capacity` is too small;
/// `length` is set then, too.
thalia_status thalia_run_path(const thalia_run* run, const char* phase, uint64_t step, char* path,
                              size_t capacity, size_t* length);

/// Opens a checkpoint that is whole, of a phase, or a gate. Nothing stands in for a gate. @param
/// options may be NULL. @param info may be NULL. THALIA_ERROR_NOT_FOUND if there is none;
/// THALIA_ERROR_CHECKSUM_MISMATCH where none can be loaded, whose text lists all that were tried;
/// THALIA_ERROR_UNSUPPORTED_FEATURE for a delta, which thalia_run_restore() makes a file of.
thalia_status thalia_run_load(const thalia_run* run, const char* phase,
                              const thalia_load_options* options, thalia_reader** reader,
                              thalia_checkpoint_info* info);
/// Writes such a checkpoint to a file outside of the run: the same bytes; of a delta the state that
/// it stands for. @param replace 1: in the place of a file that is there, which is
/// THALIA_ERROR_EXISTS otherwise.
thalia_status thalia_run_restore(const thalia_run* run, const char* phase, const char* target,
                                 uint32_t replace, const thalia_load_options* options,
                                 thalia_checkpoint_info* info);

/// Takes the run's lock. THALIA_ERROR_IO that names the holder where another process has it.
/// @param options may be NULL.
thalia_status thalia_run_writer_open(const char* folder, const thalia_run_writer_options* options,
                                     thalia_run_writer** run);
/// Lets go of the lock.
void thalia_run_writer_close(thalia_run_writer* run);
/// A writer of the checkpoint of a step, 0 to 99,999,999. It is committed by
/// thalia_run_writer_commit() alone. @param options may be NULL; sha256 and durability are the
/// run's. THALIA_ERROR_EXISTS for a step that was saved before, unless `replace` is 1.
thalia_status thalia_run_writer_begin(thalia_run_writer* run, const char* phase, uint64_t step,
                                      uint32_t replace, const thalia_save_options* options,
                                      thalia_writer** writer);
/// Saves the checkpoint, and removes what the phase's retention does not keep. The writer is still
/// to be closed. After an error no checkpoint of that step is there, but for one that was before.
/// @param options may be NULL. @param result may be NULL.
thalia_status thalia_run_writer_commit(thalia_run_writer* run, thalia_writer* writer,
                                       const thalia_checkpoint_options* options,
                                       thalia_stored* result);
/// Saves bytes that are not looked into, of any run.
thalia_status thalia_run_writer_save_bytes(thalia_run_writer* run, const char* phase, uint64_t step,
                                           const void* data, size_t bytes,
                                           const thalia_checkpoint_options* options,
                                           thalia_stored* result);
/// Saves a copy of a file; in a run of .thalia files it has to be one.
thalia_status thalia_run_writer_save_file(thalia_run_writer* run, const char* phase, uint64_t step,
                                          const char* file,
                                          const thalia_checkpoint_options* options,
                                          thalia_stored* result);
/// As thalia_run_load() of a phase, and the run goes on from there: that is the latest now, also
/// where it is a delta, which no reader is made of.
thalia_status thalia_run_writer_resume(thalia_run_writer* run, const char* phase,
                                       const thalia_load_options* options, thalia_reader** reader,
                                       thalia_checkpoint_info* info);

/// @param phase NULL: the last that has a checkpoint, else the first. @param options may be NULL.
/// THALIA_ERROR_WRONG_STATE for a run of other files than .thalia.
thalia_status thalia_publisher_open(thalia_run_writer* run, const char* phase,
                                    const thalia_publisher_options* options,
                                    thalia_publisher** publisher);
void thalia_publisher_close(thalia_publisher* publisher);
/// The step of the latest; the next one is after it. THALIA_ERROR_NOT_FOUND where there is none.
thalia_status thalia_publisher_newest(const thalia_publisher* publisher, uint64_t* step);
/// A writer of the state of a step. It is published by thalia_publisher_publish() alone, and then
/// closed. @param options as of thalia_run_writer_begin(). THALIA_ERROR_BAD_ARGUMENT for a step
/// that is not after the latest.
thalia_status thalia_publisher_begin(thalia_publisher* publisher, uint64_t step,
                                     const thalia_save_options* options, thalia_writer** writer);
/// Back once followers see what the writer has declared, all of it with its bytes, which may change
/// afterwards. After an error the latest is the one before, unless thalia_publisher_newest() says
/// otherwise. @param options may be NULL; its `replace` is 0. @param result may be NULL.
thalia_status thalia_publisher_publish(thalia_publisher* publisher, thalia_writer* writer,
                                       const thalia_checkpoint_options* options,
                                       thalia_published* result);

#ifdef __cplusplus
}  // extern "C"
#endif
