// The newest state of a training from C, in memory or in a file, as the training saves it.
// thalia/store/follow.h; docs/use/follow.md.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "thalia/c/codes.h"
#include "thalia/c/reader.h"
#include "thalia/c/run.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Follows a run, or a folder of files. One thread at a time, but for thalia_follower_state() and
/// thalia_follower_wake(), which are for any until it is closed. In a forked child other calls are
/// THALIA_ERROR_WRONG_STATE.
typedef struct thalia_follower thalia_follower;
/// One state. It stays as it is while newer ones come, and after the follower was closed, but for
/// tensors in memory of the server's own. Any number of threads may use one.
typedef struct thalia_followed_state thalia_followed_state;

typedef struct thalia_follow_options {
  size_t size;
  const char* phase;  ///< of a run; NULL: the last one that has a checkpoint
  const char* into;   ///< a file that holds the newest state, instead of memory; NULL: none
  const char* const* include;  ///< patterns of the tensors that are followed; NULL: all
  uint32_t include_count;
  uint32_t interval_ms;   ///< between two looks at the folder; 0: 1000
  uint32_t polling;       ///< 1: do not ask the system to report changes
  uint32_t no_lease;      ///< 1: retention does not know of this follower
  uint32_t access;        ///< THALIA_ACCESS_…
  uint32_t threads;       ///< that read and verify; 0: one for each core
  uint64_t memory_bytes;  ///< of buffers; 0: the default
  uint32_t durability;    ///< THALIA_DURABILITY_…, of `into`
  uint32_t reserved;
  thalia_run_warning warning;  ///< NULL: nobody hears of warnings. Until the follower is closed
  void* context;               ///< for it
} thalia_follow_options;

/// Memory of the server's own for a tensor. It lives until the follower is closed, and nothing else
/// changes it.
typedef struct thalia_server_memory {
  size_t size;
  void* data;
  uint64_t bytes;            ///< the tensor's logical bytes
  const char* region;        ///< NULL: whichever has a tensor of that name
  const char* const* names;  ///< the tensor's. Several without a region: tied weights, which are in
                             ///< a file by any of their names
  uint32_t name_count;
  uint32_t has_layout;              ///< 1: for a dense tensor of `dtype` and `shape` alone
  thalia_dtype dtype;               ///< with has_layout
  uint32_t rank;                    ///< likewise
  uint64_t shape[THALIA_MAX_RANK];  ///< `rank` of them, outermost first
} thalia_server_memory;

/// From one state to the next. Texts stay until the next call of the follower.
typedef struct thalia_follow_update {
  size_t size;
  thalia_text phase;
  thalia_text path;
  thalia_text reason;  ///< why it fell back; length 0: it did not
  uint64_t number;     ///< of the follower's updates, from 1 on
  uint64_t step;
  uint64_t file_bytes;
  uint64_t saved_ns;  ///< since 1970
  uint64_t bytes_read;
  uint64_t bytes_changed;
  uint64_t changed;    ///< tensors that differ or are new: thalia_follower_changed()
  uint64_t removed;    ///< tensors that the state does not have any more
  double seconds;      ///< of reading and verifying, then of applying
  double latency;      ///< from saved_ns until it was applied
  uint32_t deltas;     ///< that were applied in order; 0: the state was read as a whole
  uint32_t fell_back;  ///< 1: the deltas could not be applied, or the newest not be read
  uint32_t went_back;  ///< 1: the run goes on from an earlier step
  uint32_t reserved;
} thalia_follow_update;

/// A tensor of a state, or one that is about to change. Name and region last as long as `data`.
typedef struct thalia_followed_tensor {
  size_t size;
  thalia_text name;
  thalia_text region;
  const void* data;  ///< its logical bytes, in memory of the state's, or of the server's own; NULL
                     ///< for a hook, and of a tensor of no bytes
  uint64_t bytes;
  thalia_dtype dtype;
  thalia_role role;
  thalia_encoding encoding;
  uint32_t rank;
  uint64_t shape[THALIA_MAX_RANK];  ///< `rank` of them, outermost first; the others 0
  uint64_t nnz;                     ///< stored elements of csr and coo
  uint32_t wide_indices;            ///< 1: indices of csr and coo are u64, else u32
  uint32_t reserved;
} thalia_followed_tensor;

/// Around each tensor that changes. It calls nothing of the follower but thalia_follower_state()
/// and thalia_follower_wake(), and does not leave by longjmp.
typedef void (*thalia_follow_hook)(void* context, const thalia_followed_tensor* tensor);

typedef struct thalia_follow_hooks {
  size_t size;
  thalia_follow_hook before;  ///< may be NULL
  thalia_follow_hook after;   ///< likewise
  void* context;              ///< for both
} thalia_follow_hooks;

typedef struct thalia_followed_state_info {
  size_t size;
  thalia_text phase;  ///< like the other texts here in the state's memory
  thalia_text path;
  thalia_text metadata_json;  ///< an object; length 0: none
  uint64_t step;
  uint64_t tensor_count;
} thalia_followed_state_info;

/// @param options may be NULL. THALIA_ERROR_NOT_FOUND for a folder or a phase.
thalia_status thalia_follower_open(const char* folder, const thalia_follow_options* options,
                                   thalia_follower** follower);
/// States that were taken stay valid. What waits in another thread has to have ended.
void thalia_follower_close(thalia_follower* follower);
/// Before the first update. THALIA_ERROR_WRONG_STATE after it, and with `into`;
/// THALIA_ERROR_BAD_ARGUMENT for a tensor that has some.
thalia_status thalia_follower_add_memory(thalia_follower* follower,
                                         const thalia_server_memory* memory);

/// Waits for a checkpoint that is newer than what is held, at first for any, reads and verifies it,
/// and applies it. THALIA_END once `timeout_ms` have passed, negative: never, and after
/// thalia_follower_wake(). @param update may be NULL. THALIA_ERROR_SIZE_MISMATCH, _DTYPE_MISMATCH
/// or _SHAPE_MISMATCH for memory that a tensor does not fit, _NOT_FOUND for memory of none.
thalia_status thalia_follower_wait(thalia_follower* follower, int64_t timeout_ms,
                                   thalia_follow_update* update);
/// The same without applying it: no memory that is in use is touched.
thalia_status thalia_follower_prepare(thalia_follower* follower, int64_t timeout_ms,
                                      thalia_follow_update* update);
/// Applies what was prepared. @param hooks may be NULL. @param update may be NULL.
/// THALIA_ERROR_WRONG_STATE where nothing is prepared.
thalia_status thalia_follower_apply(thalia_follower* follower, const thalia_follow_hooks* hooks,
                                    thalia_follow_update* update);
/// REGION/NAME of a tensor that the last update changed, from 0; stays as its texts do.
/// THALIA_ERROR_NOT_FOUND after the last.
thalia_status thalia_follower_changed(const thalia_follower* follower, uint64_t index,
                                      thalia_text* name);
/// Ends the wait that is under way, or else the next one. For any thread.
void thalia_follower_wake(thalia_follower* follower);

/// The state that was applied last, which the caller closes. For any thread.
/// THALIA_ERROR_NOT_FOUND before the first, and with `into`.
thalia_status thalia_follower_state(const thalia_follower* follower, thalia_followed_state** state);
void thalia_followed_state_close(thalia_followed_state* state);
thalia_status thalia_followed_state_describe(const thalia_followed_state* state,
                                             thalia_followed_state_info* info);
/// Tensors in the order of their regions and names, from 0. THALIA_ERROR_NOT_FOUND after the last.
thalia_status thalia_followed_state_tensor(const thalia_followed_state* state, uint64_t index,
                                           thalia_followed_tensor* tensor);
/// THALIA_ERROR_NOT_FOUND where there is none.
thalia_status thalia_followed_state_find(const thalia_followed_state* state, const char* region,
                                         const char* name, thalia_followed_tensor* tensor);

#ifdef __cplusplus
}  // extern "C"
#endif
