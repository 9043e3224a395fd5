// Saves in the background hold what the state was when they were asked for; their errors come when
// they are waited for.
#include <stdio.h>
#include <string.h>

#include "c/check.h"
#include "c/sample.h"

// A writer of the sample that finds its file there when it commits.
static thalia_writer* writer_that_comes_too_late(const char* name) {
  const thalia_save_options keep = {.size = sizeof keep, .keep_existing = 1};
  thalia_writer* writer = NULL;
  OK(thalia_writer_open(path_of(name), &keep, &writer));
  declare_sample(writer);
  copy_file("raw.thalia", name, 1, -1);
  return writer;
}

static void saves_the_state_of_the_call(void) {
  const thalia_saver_options options = {.size = sizeof options,
                                        .when_busy = THALIA_BUSY_QUEUE,
                                        .max_unfinished = 3,
                                        .background_threads = 1,
                                        .niceness = -1};
  thalia_saver* saver = NULL;
  thalia_writer* writer = NULL;
  thalia_save* save = NULL;
  thalia_save_progress progress = {.size = sizeof progress};
  thalia_save_result result = {.size = sizeof result};
  uint32_t ended = 0;
  OK(thalia_saver_open(&options, &saver));
  OK(thalia_saver_reserve(saver, 1 << 20, 1));
  OK(thalia_writer_open(path_of("async.thalia"), NULL, &writer));
  declare_sample(writer);
  OK(thalia_saver_save(saver, writer, THALIA_SNAPSHOT_COPY, &save));
  memset(sample_weights, 0, sizeof sample_weights);
  FAILS(thalia_writer_commit(writer, NULL), THALIA_ERROR_WRONG_STATE, "moved from");
  thalia_writer_close(writer);
  OK(thalia_save_wait_for(save, UINT64_MAX, &ended));
  CHECK(ended == 1);
  OK(thalia_save_poll(save, &progress));
  CHECK(progress.ended == 1 && progress.done == progress.total && progress.total > 0);
  OK(thalia_save_wait(save, &result));
  OK(thalia_save_wait(save, NULL));
  CHECK(result.tensors == 5 && (long)result.file_bytes == length_of("async.thalia"));
  thalia_save_close(save);
  fill_sample();
  CHECK(is_sample("async.thalia"));

  // Not waited for: the saver finishes it.
  OK(thalia_writer_open(path_of("borrowed.thalia"), NULL, &writer));
  declare_sample(writer);
  OK(thalia_saver_save(saver, writer, THALIA_SNAPSHOT_BORROWED, &save));
  thalia_save_close(save);
  thalia_writer_close(writer);
  thalia_saver_close(saver);
  CHECK(is_sample("borrowed.thalia"));
}

static void reports_errors_to_who_waits(void) {
  thalia_saver* saver = NULL;
  thalia_writer* writer = NULL;
  thalia_save* save = NULL;
  thalia_save_result result = {.size = sizeof result};
  OK(thalia_saver_open(NULL, &saver));
  writer = writer_that_comes_too_late("late.thalia");
  OK(thalia_saver_save(saver, writer, THALIA_SNAPSHOT_COPY, &save));
  thalia_writer_close(writer);
  FAILS(thalia_save_wait(save, &result), THALIA_ERROR_EXISTS, "late.thalia");
  FAILS(thalia_save_wait(save, NULL), THALIA_ERROR_EXISTS, "late.thalia");
  CHECK(result.file_bytes == 0);
  thalia_save_close(save);
  OK(thalia_saver_wait_all(saver));  // somebody was told

  writer = writer_that_comes_too_late("later.thalia");
  OK(thalia_saver_save(saver, writer, THALIA_SNAPSHOT_COPY, &save));
  thalia_writer_close(writer);
  thalia_save_close(save);
  FAILS(thalia_saver_wait_all(saver), THALIA_ERROR_EXISTS, "later.thalia");
  OK(thalia_saver_wait_all(saver));
  thalia_saver_close(saver);
  CHECK(length_of("late.thalia") == 1 && length_of("later.thalia") == 1);
}

static void refuses_and_goes_on(void) {
  const thalia_saver_options nice = {.size = sizeof nice, .niceness = 20};
  const thalia_saver_options small = {.size = sizeof small, .max_snapshot_bytes = 8 << 20};
  const thalia_region_spec region = {.size = sizeof region, .name = "cortex"};
  const thalia_tensor_spec steps = {.size = sizeof steps,
                                    .name = "steps",
                                    .dtype = THALIA_DTYPE_I64,
                                    .rank = 1,
                                    .shape = {kSteps}};
  thalia_saver* saver = NULL;
  thalia_writer* writer = NULL;
  thalia_save* save = NULL;
  uint32_t tensor = 0;
  FAILS(thalia_saver_open(&nice, &saver), THALIA_ERROR_BAD_ARGUMENT,
        "niceness: got 20, expected -1 to 19");
  CHECK(saver == NULL);
  OK(thalia_saver_open(&small, &saver));
  FAILS(thalia_saver_reserve(saver, 5 << 20, 2), THALIA_ERROR_BAD_ARGUMENT, "max_snapshot_bytes");

  OK(thalia_writer_open(path_of("completed.thalia"), NULL, &writer));
  OK(thalia_writer_add_region(writer, &region, NULL));
  OK(thalia_writer_declare_tensor(writer, 0, &steps, &tensor));
  OK(thalia_writer_write(writer, tensor, sample_steps, 8));
  FAILS(thalia_saver_save(saver, writer, THALIA_SNAPSHOT_COPY, &save), THALIA_ERROR_SIZE_MISMATCH,
        "steps");
  FAILS(thalia_saver_save(saver, writer, 2, &save), THALIA_ERROR_BAD_ARGUMENT,
        "snapshot: got 2, expected 0 to 1");
  CHECK(save == NULL);
  // It was not taken over.
  OK(thalia_writer_write(writer, tensor, sample_steps + 1, sizeof sample_steps - 8));
  OK(thalia_saver_save(saver, writer, THALIA_SNAPSHOT_COPY, &save));
  thalia_writer_close(writer);
  OK(thalia_save_wait(save, NULL));
  OK(thalia_save_cancel(save));  // of one that has ended: nothing
  OK(thalia_save_wait(save, NULL));
  thalia_save_close(save);
  thalia_saver_close(saver);
  CHECK(length_of("completed.thalia") > 0);
}

static void ends_on_request(void) {
  thalia_saver* saver = NULL;
  thalia_writer* writer = NULL;
  thalia_save* save = NULL;
  OK(thalia_saver_open(NULL, &saver));
  OK(thalia_writer_open(path_of("ended.thalia"), NULL, &writer));
  declare_sample(writer);
  OK(thalia_writer_cancel(writer));
  OK(thalia_saver_save(saver, writer, THALIA_SNAPSHOT_BORROWED, &save));
  thalia_writer_close(writer);
  FAILS(thalia_save_wait(save, NULL), THALIA_ERROR_CANCELLED, NULL);
  thalia_save_close(save);
  thalia_saver_close(saver);
  CHECK(length_of("ended.thalia") == -1);
}

void test_background(void) {
  saves_the_state_of_the_call();
  reports_errors_to_who_waits();
  refuses_and_goes_on();
  ends_on_request();
}
