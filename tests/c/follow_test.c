// A follower from C: states that stay, memory of the server's own, hooks, a file, a training in a
// process beside that is killed, and a thread that wakes it.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c/check.h"
#include "c/sample.h"

enum { kElements = 4096, kSoonMs = 60000 };

static char folder[4096];
static float values[kElements];

static thalia_run_writer* training_of(const char* name) {
  thalia_run_writer* run = NULL;
  snprintf(folder, sizeof folder, "%s", path_of(name));
  OK(thalia_run_create(
      folder, "{\"version\":1,\"phases\":[{\"name\":\"train\",\"retention\":{\"keep_last\":2}}]}"));
  OK(thalia_run_writer_open(folder, NULL, &run));
  return run;
}

static thalia_status save(thalia_run_writer* run, uint64_t step) {
  const thalia_region_spec layers = {.size = sizeof layers, .name = "layers"};
  const thalia_tensor_spec w = {
      .size = sizeof w, .name = "w", .dtype = THALIA_DTYPE_F32, .rank = 2, .shape = {64, 64}};
  const thalia_tensor_spec b = {
      .size = sizeof b, .name = "b", .dtype = THALIA_DTYPE_I64, .rank = 1, .shape = {1}};
  const int64_t bias = -(int64_t)step;
  thalia_writer* writer = NULL;
  uint32_t region = 0;
  for (int i = 0; i < kElements; ++i) values[i] = (float)step;
  thalia_status status = thalia_run_writer_begin(run, "train", step, 0, NULL, &writer);
  if (status == THALIA_OK) status = thalia_writer_set_metadata(writer, "{\"made\":\"in C\"}");
  if (status == THALIA_OK) status = thalia_writer_add_region(writer, &layers, &region);
  if (status == THALIA_OK)
    status = thalia_writer_add_tensor(writer, region, &w, values, sizeof values);
  if (status == THALIA_OK)
    status = thalia_writer_add_tensor(writer, region, &b, &bias, sizeof bias);
  if (status == THALIA_OK) status = thalia_run_writer_commit(run, writer, NULL, NULL);
  thalia_writer_close(writer);
  return status;
}

static int is_all(const void* data, float value) {
  const float* elements = data;
  for (int i = 0; i < kElements; ++i)
    if (elements[i] != value) return 0;
  return 1;
}

static int is_state(const thalia_followed_state* state, uint64_t step) {
  thalia_followed_state_info info = {.size = sizeof info};
  thalia_followed_tensor w = {.size = sizeof w};
  OK(thalia_followed_state_describe(state, &info));
  OK(thalia_followed_state_find(state, "layers", "w", &w));
  return info.step == step && info.tensor_count == 2 && is_text(info.phase, "train") &&
         is_text(info.metadata_json, "{\"made\":\"in C\"}") && w.rank == 2 && w.shape[0] == 64 &&
         w.shape[1] == 64 && w.dtype == THALIA_DTYPE_F32 && w.bytes == sizeof values &&
         is_all(w.data, (float)step);
}

static void holds_states(void) {
  thalia_run_writer* run = training_of("followed");
  thalia_follower* follower = NULL;
  thalia_followed_state *one = NULL, *two = NULL;
  thalia_follow_update update = {.size = sizeof update};
  thalia_followed_tensor tensor = {.size = sizeof tensor};
  thalia_text name;
  OK(thalia_follower_open(folder, NULL, &follower));
  FAILS(thalia_follower_state(follower, &one), THALIA_ERROR_NOT_FOUND, "no state");
  FAILS(thalia_follower_apply(follower, NULL, NULL), THALIA_ERROR_WRONG_STATE, "prepared");
  CHECK(thalia_follower_wait(follower, 0, &update) == THALIA_END);
  OK(save(run, 1));
  OK(thalia_follower_wait(follower, kSoonMs, &update));
  CHECK(update.number == 1 && update.step == 1 && update.deltas == 0 && update.changed == 2);
  CHECK(is_text(update.phase, "train") && update.reason.length == 0 && update.fell_back == 0);
  CHECK(update.path.length > 0 && update.file_bytes > sizeof values && update.latency > 0);
  OK(thalia_follower_changed(follower, 1, &name));
  CHECK(is_text(name, "layers/w"));
  FAILS(thalia_follower_changed(follower, 2, &name), THALIA_ERROR_NOT_FOUND, "index");
  OK(thalia_follower_state(follower, &one));
  OK(save(run, 2));
  OK(thalia_follower_wait(follower, kSoonMs, NULL));
  OK(thalia_follower_state(follower, &two));
  OK(thalia_followed_state_tensor(one, 0, &tensor));
  CHECK(is_text(tensor.name, "b") && is_text(tensor.region, "layers"));
  FAILS(thalia_followed_state_tensor(one, 2, &tensor), THALIA_ERROR_NOT_FOUND, "index");
  FAILS(thalia_followed_state_find(one, "layers", "x", &tensor), THALIA_ERROR_NOT_FOUND, "x");
  thalia_follow_update wrong = {.size = 1};
  FAILS(thalia_follower_wait(follower, 0, &wrong), THALIA_ERROR_BAD_ARGUMENT, "update.size");
  thalia_follower_close(follower);
  CHECK(is_state(one, 1) && is_state(two, 2));
  thalia_followed_state_close(one);
  thalia_followed_state_close(two);
  thalia_run_writer_close(run);
}

struct Calls {
  int before;
  int after;
};

static void count_before(void* context, const thalia_followed_tensor* tensor) {
  CHECK(tensor->name.length == 1 && tensor->data == NULL);
  ++((struct Calls*)context)->before;
}
static void count_after(void* context, const thalia_followed_tensor* tensor) {
  CHECK(is_text(tensor->region, "layers"));
  ++((struct Calls*)context)->after;
}

static void changes_memory_of_the_server(void) {
  static float memory[kElements];
  static const char* const names[] = {"tied", "w"};
  thalia_run_writer* run = training_of("in_place");
  thalia_follower* follower = NULL;
  thalia_followed_state* state = NULL;
  thalia_follow_update update = {.size = sizeof update};
  struct Calls calls = {0, 0};
  const thalia_follow_hooks hooks = {
      .size = sizeof hooks, .before = count_before, .after = count_after, .context = &calls};
  thalia_server_memory own = {.size = sizeof own,
                              .data = memory,
                              .bytes = sizeof memory,
                              .names = names,
                              .name_count = 2,
                              .has_layout = 1,
                              .dtype = THALIA_DTYPE_F32,
                              .rank = 2,
                              .shape = {64, 64}};
  OK(save(run, 1));
  OK(thalia_follower_open(folder, NULL, &follower));
  OK(thalia_follower_add_memory(follower, &own));
  FAILS(thalia_follower_add_memory(follower, &own), THALIA_ERROR_BAD_ARGUMENT, "memory already");
  own.region = "layers";
  FAILS(thalia_follower_add_memory(follower, &own), THALIA_ERROR_BAD_ARGUMENT, "name_count");
  OK(thalia_follower_prepare(follower, kSoonMs, &update));
  CHECK(update.step == 1 && is_all(memory, 0));
  OK(thalia_follower_apply(follower, &hooks, &update));
  CHECK(is_all(memory, 1) && update.number == 1 && calls.before == 2 && calls.after == 2);
  OK(thalia_follower_state(follower, &state));
  CHECK(is_state(state, 1));
  thalia_followed_state_close(state);
  own.name_count = 1;
  own.names = names + 1;
  FAILS(thalia_follower_add_memory(follower, &own), THALIA_ERROR_WRONG_STATE, "first update");
  thalia_follower_close(follower);

  const struct {
    thalia_dtype dtype;
    uint64_t rows;
    uint64_t bytes;
    const char* region;
    thalia_status status;
  } wrong[] = {{THALIA_DTYPE_I32, 64, sizeof memory, "layers", THALIA_ERROR_DTYPE_MISMATCH},
               {THALIA_DTYPE_F32, 32, sizeof memory, "layers", THALIA_ERROR_SHAPE_MISMATCH},
               {THALIA_DTYPE_F32, 64, 4, "layers", THALIA_ERROR_SIZE_MISMATCH},
               {THALIA_DTYPE_F32, 64, sizeof memory, "others", THALIA_ERROR_NOT_FOUND}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; ++i) {
    own.dtype = wrong[i].dtype;
    own.shape[0] = wrong[i].rows;
    own.bytes = wrong[i].bytes;
    own.region = wrong[i].region;
    OK(thalia_follower_open(folder, NULL, &follower));
    OK(thalia_follower_add_memory(follower, &own));
    FAILS(thalia_follower_wait(follower, kSoonMs, NULL), wrong[i].status, "w");
    thalia_follower_close(follower);
  }
  thalia_run_writer_close(run);
}

static void holds_a_file(void) {
  thalia_run_writer* run = training_of("into_run");
  thalia_follower* follower = NULL;
  thalia_followed_state* state = NULL;
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  const char* const include[] = {"layers/w"};
  thalia_follow_options options = {
      .size = sizeof options, .phase = "train", .durability = THALIA_DURABILITY_NONE};
  char into[4096];
  static float read[kElements];
  snprintf(into, sizeof into, "%s", path_of("into.thalia"));
  OK(save(run, 1));
  options.into = into;
  OK(thalia_follower_open(folder, &options, &follower));
  OK(thalia_follower_wait(follower, kSoonMs, NULL));
  FAILS(thalia_follower_state(follower, &state), THALIA_ERROR_NOT_FOUND, "no state");
  CHECK(state == NULL);
  thalia_follower_close(follower);
  OK(thalia_reader_open(into, NULL, &reader));
  OK(thalia_reader_tensor(reader, "layers/w", &tensor));
  OK(thalia_tensor_read(tensor, read, sizeof read));
  CHECK(is_all(read, 1));
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);

  options.into = NULL;
  options.include = include;
  options.include_count = 1;
  thalia_followed_state_info info = {.size = sizeof info};
  OK(thalia_follower_open(folder, &options, &follower));
  OK(thalia_follower_wait(follower, kSoonMs, NULL));
  OK(thalia_follower_state(follower, &state));
  OK(thalia_followed_state_describe(state, &info));
  CHECK(info.tensor_count == 1);
  thalia_followed_state_close(state);
  thalia_follower_close(follower);
  options.polling = 2;
  FAILS(thalia_follower_open(folder, &options, &follower), THALIA_ERROR_BAD_ARGUMENT, "polling");
  options.polling = 0;
  options.phase = "other";
  FAILS(thalia_follower_open(folder, &options, &follower), THALIA_ERROR_NOT_FOUND, "other");
  CHECK(follower == NULL);
  FAILS(thalia_follower_open(path_of("no_folder"), NULL, &follower), THALIA_ERROR_NOT_FOUND,
        "no_folder");
  thalia_run_writer_close(run);
}

static thalia_status newest_of(const char* path, thalia_checkpoint_info* info) {
  thalia_run* run = NULL;
  thalia_status status = thalia_run_open(path, &run);
  if (status == THALIA_OK) status = thalia_run_latest(run, "train", info);
  thalia_run_close(run);
  return status;
}

// A process that saves without an end, and is killed; then another goes on.
static void outlives_a_training_that_is_killed(void) {
  thalia_run_writer_close(training_of("killed_followed"));
  thalia_follower* follower = NULL;
  const thalia_follow_options options = {.size = sizeof options, .interval_ms = 10, .polling = 1};
  uint64_t last = 0;
  OK(thalia_follower_open(folder, &options, &follower));
  for (int round = 0; round < 3; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      // The writer takes over a file whose training was killed before it was made the latest.
      thalia_run_writer* writer = NULL;
      thalia_checkpoint_info info = {.size = sizeof info};
      uint64_t step = 0;
      if (thalia_run_writer_open(folder, NULL, &writer) != THALIA_OK) _exit(1);
      if (newest_of(folder, &info) == THALIA_OK) step = info.step;
      while (save(writer, ++step) == THALIA_OK) {
      }
      fprintf(stderr, "the training ended: %s\n", thalia_last_error()->text);
      _exit(1);
    }
    for (int i = 0; i < 3; ++i) {
      thalia_followed_state* state = NULL;
      thalia_follow_update update = {.size = sizeof update};
      OK(thalia_follower_wait(follower, kSoonMs, &update));
      CHECK(update.step > last);
      last = update.step;
      OK(thalia_follower_state(follower, &state));
      CHECK(is_state(state, last));
      thalia_followed_state_close(state);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    thalia_checkpoint_info info = {.size = sizeof info};
    OK(newest_of(folder, &info));
    while (last < info.step) {
      thalia_follow_update update = {.size = sizeof update};
      OK(thalia_follower_wait(follower, kSoonMs, &update));
      if (update.step <= last) break;
      last = update.step;
    }
    CHECK(last == info.step);
  }
  thalia_follower_close(follower);
}

static void* wake(void* argument) {
  thalia_follower_wake(argument);
  return NULL;
}

static void is_woken_by_a_thread(void) {
  thalia_run_writer_close(training_of("woken"));
  thalia_follower* follower = NULL;
  pthread_t thread;
  OK(thalia_follower_open(folder, NULL, &follower));
  CHECK(pthread_create(&thread, NULL, wake, follower) == 0);
  CHECK(thalia_follower_wait(follower, -1, NULL) == THALIA_END);
  pthread_join(thread, NULL);
  const pid_t child = fork();
  if (child == 0)
    _exit(thalia_follower_wait(follower, 0, NULL) == THALIA_ERROR_WRONG_STATE ? 0 : 1);
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  thalia_follower_close(follower);
}

void test_following(void) {
  holds_states();
  changes_memory_of_the_server();
  holds_a_file();
  outlives_a_training_that_is_killed();
  is_woken_by_a_thread();
}
