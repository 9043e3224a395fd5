// A run from C: saved into, listed, resumed, restored; and what a second writer, damage, a killed
// process and a forked one meet.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "c/check.h"
#include "c/sample.h"

#define CONFIG                                                                      \
  "{\"version\":1,\"phases\":[{\"name\":\"train\",\"retention\":{\"keep_last\":3}," \
  "\"metric\":{\"name\":\"loss\",\"direction\":\"min\"}}]}"

static char run_folder[4096];

static const char* fresh_run(const char* name) {
  snprintf(run_folder, sizeof run_folder, "%s", path_of(name));
  OK(thalia_run_create(run_folder, CONFIG));
  return run_folder;
}

static thalia_run_writer* opened_writer(void) {
  const thalia_run_writer_options options = {.size = sizeof options,
                                             .durability = THALIA_DURABILITY_NONE};
  thalia_run_writer* run = NULL;
  OK(thalia_run_writer_open(run_folder, &options, &run));
  return run;
}

static thalia_status save(thalia_run_writer* run, uint64_t step, double loss,
                          thalia_stored* stored) {
  const thalia_checkpoint_options options = {
      .size = sizeof options, .metric = loss, .has_metric = loss != 0};
  thalia_writer* writer = NULL;
  thalia_status status = thalia_run_writer_begin(run, "train", step, 0, NULL, &writer);
  if (status == THALIA_OK) {
    declare_sample(writer);
    status = thalia_run_writer_commit(run, writer, &options, stored);
  }
  thalia_writer_close(writer);
  return status;
}

static void path_of_step(const thalia_run* run, uint64_t step, char* path, size_t capacity) {
  size_t length = 0;
  OK(thalia_run_path(run, "train", step, path, capacity, &length));
  CHECK(strlen(path) == length);
}

static void flip(const char* path) {
  FILE* file = fopen(path, "r+b");
  CHECK(file != NULL);
  if (file == NULL) return;
  CHECK(fseek(file, 20000, SEEK_SET) == 0);
  const int byte = fgetc(file);
  CHECK(fseek(file, 20000, SEEK_SET) == 0);
  fputc(byte ^ 1, file);
  CHECK(fclose(file) == 0);
}

static int heard;
static void hear(void* context, const char* sentence) {
  ++*(int*)context;
  CHECK(strstr(sentence, "step") != NULL || strlen(sentence) > 0);
}

static void saves_and_lists(void) {
  thalia_run* run = NULL;
  thalia_checkpoint_info info = {.size = sizeof info};
  thalia_stored stored = {.size = sizeof stored};
  fresh_run("run");
  FAILS(thalia_run_create(run_folder, CONFIG), THALIA_ERROR_EXISTS, "run");
  FAILS(thalia_run_create(path_of("bad"), "{\"version\":1,\"phases\":[]}"), THALIA_ERROR_BAD_VALUE,
        "phases");
  FAILS(thalia_run_open(path_of("nothing"), &run), THALIA_ERROR_NOT_FOUND, "nothing");
  CHECK(run == NULL);
  OK(thalia_run_open(run_folder, &run));
  FAILS(thalia_run_latest(run, "train", &info), THALIA_ERROR_NOT_FOUND, "latest");
  FAILS(thalia_run_latest(run, "trian", &info), THALIA_ERROR_NOT_FOUND, "train");
  thalia_run_writer* writer = opened_writer();
  const double losses[] = {3.0, 1.0, 2.0, strtod("nan", NULL), 4.0};
  for (uint64_t step = 1; step <= 5; ++step) {
    OK(save(writer, step, losses[step - 1], &stored));
    CHECK(stored.is_best == (step <= 2) && stored.removed == (step > 3) && stored.file_bytes > 0);
  }
  FAILS(save(writer, 5, 0, NULL), THALIA_ERROR_EXISTS, "00000005");
  FAILS(save(writer, 100000000, 0, NULL), THALIA_ERROR_BAD_ARGUMENT, "99999999");
  const uint64_t left[] = {2, 4, 5};
  for (uint64_t i = 0; i < 3; ++i) {
    OK(thalia_run_checkpoint(run, "train", i, &info));
    CHECK(info.step == left[i] && info.depth == 0 && info.condition == THALIA_CONDITION_WHOLE);
    CHECK(info.has_metric == 1 && info.saved_at > 1700000000 && info.left_behind == 0);
  }
  FAILS(thalia_run_checkpoint(run, "train", 3, &info), THALIA_ERROR_NOT_FOUND, "train");
  OK(thalia_run_latest(run, "train", &info));
  CHECK(info.step == 5 && info.metric == 4.0);
  OK(thalia_run_best(run, "train", &info));
  CHECK(info.step == 2 && info.metric == 1.0);
  char path[4096];
  size_t length = 0;
  FAILS(thalia_run_path(run, "train", 5, path, 8, &length), THALIA_ERROR_SIZE_MISMATCH, "capacity");
  CHECK(length > 8);
  FAILS(thalia_run_path(run, "train", 5, path, length, NULL), THALIA_ERROR_SIZE_MISMATCH, "");
  OK(thalia_run_path(run, "train", 5, path, length + 1, NULL));
  // Only what begin() gave is a checkpoint of the run.
  thalia_writer* other = NULL;
  OK(thalia_writer_open(path_of("other.thalia"), NULL, &other));
  FAILS(thalia_run_writer_commit(writer, other, NULL, NULL), THALIA_ERROR_BAD_ARGUMENT, "other");
  thalia_writer_close(other);
  // A result that could not be told is refused before anything is saved.
  thalia_stored wrong = {.size = 1};
  FAILS(save(writer, 6, 0, &wrong), THALIA_ERROR_BAD_ARGUMENT, "result.size");
  OK(thalia_run_latest(run, "train", &info));
  CHECK(info.step == 5);
  thalia_run_writer_close(writer);
  thalia_run_close(run);
}

static void loads_and_restores(void) {
  thalia_run* run = NULL;
  thalia_reader* reader = NULL;
  thalia_checkpoint_info info = {.size = sizeof info};
  char path[4096];
  OK(thalia_run_open(run_folder, &run));
  heard = 0;
  thalia_load_options options = {.size = sizeof options, .warning = hear, .context = &heard};
  OK(thalia_run_load(run, "train", &options, &reader, &info));
  CHECK(info.step == 5 && heard == 0);
  thalia_reader_close(reader);
  OK(thalia_run_restore(run, "train", path_of("restored.thalia"), 0, NULL, &info));
  CHECK(is_sample("restored.thalia") && info.step == 5);
  FAILS(thalia_run_restore(run, "train", path_of("restored.thalia"), 0, NULL, NULL),
        THALIA_ERROR_EXISTS, "restored");
  OK(thalia_run_restore(run, "train", path_of("restored.thalia"), 1, NULL, NULL));
  path_of_step(run, 5, path, sizeof path);
  flip(path);
  OK(thalia_run_load(run, "train", &options, &reader, &info));
  CHECK(info.step == 4 && heard == 1);
  thalia_reader_close(reader);
  thalia_run_writer* writer = opened_writer();
  OK(thalia_run_writer_resume(writer, "train", &options, &reader, &info));
  CHECK(info.step == 4 && heard == 2);
  thalia_reader_close(reader);
  OK(thalia_run_latest(run, "train", &info));
  CHECK(info.step == 4);
  options.gate = "train_best";
  FAILS(thalia_run_writer_resume(writer, "train", &options, &reader, &info),
        THALIA_ERROR_BAD_ARGUMENT, "gate");
  FAILS(thalia_run_load(run, NULL, &options, &reader, NULL), THALIA_ERROR_NOT_FOUND, "train_best");
  options.gate = NULL;
  options.only_step = 1;
  options.step = 5;
  FAILS(thalia_run_load(run, "train", &options, &reader, NULL), THALIA_ERROR_CHECKSUM_MISMATCH,
        "00000005");
  CHECK(reader == NULL);
  options.step = 3;
  FAILS(thalia_run_restore(run, "train", path_of("new.thalia"), 0, &options, NULL),
        THALIA_ERROR_NOT_FOUND, "3");
  CHECK(length_of("new.thalia") == -1);
  options.only_step = 2;
  FAILS(thalia_run_load(run, "train", &options, &reader, NULL), THALIA_ERROR_BAD_ARGUMENT,
        "only_step");
  // None is whole: the error lists them.
  for (uint64_t step = 2; step <= 4; step += 2) {
    path_of_step(run, step, path, sizeof path);
    flip(path);
  }
  FAILS(thalia_run_load(run, "train", NULL, &reader, NULL), THALIA_ERROR_CHECKSUM_MISMATCH,
        "ckpt_train_step00000002");
  thalia_run_writer_close(writer);
  thalia_run_close(run);
}

static void saves_bytes_and_files(void) {
  thalia_run* run = NULL;
  thalia_checkpoint_info info = {.size = sizeof info};
  fresh_run("files_run");
  OK(thalia_run_open(run_folder, &run));
  thalia_run_writer* writer = opened_writer();
  OK(thalia_run_writer_save_file(writer, "train", 1, path_of("restored.thalia"), NULL, NULL));
  FAILS(thalia_run_writer_save_file(writer, "train", 2, path_of("nothing"), NULL, NULL),
        THALIA_ERROR_IO, "nothing");
  OK(thalia_run_restore(run, "train", path_of("again.thalia"), 0, NULL, &info));
  CHECK(is_sample("again.thalia") && info.step == 1);
  const thalia_checkpoint_options replace = {.size = sizeof replace, .replace = 1};
  OK(thalia_run_writer_save_bytes(writer, "train", 3, "bytes", 5, NULL, NULL));
  FAILS(thalia_run_writer_save_bytes(writer, "train", 3, "bytes", 5, NULL, NULL),
        THALIA_ERROR_EXISTS, "00000003");
  OK(thalia_run_writer_save_bytes(writer, "train", 3, "other", 5, &replace, NULL));
  thalia_run_writer_close(writer);
  thalia_run_close(run);
}

static void is_held_by_one(void) {
  thalia_run_writer* second = NULL;
  thalia_run_writer* writer = opened_writer();
  FAILS(thalia_run_writer_open(run_folder, NULL, &second), THALIA_ERROR_IO, "lock");
  CHECK(second == NULL);
  const pid_t child = fork();
  if (child == 0) {
    thalia_stored stored = {.size = sizeof stored};
    const int refused = thalia_run_writer_save_bytes(writer, "train", 50, "x", 1, NULL, &stored) ==
                        THALIA_ERROR_WRONG_STATE;
    thalia_run_writer_close(writer);
    _exit(refused ? 0 : 1);
  }
  int status = 1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  FAILS(thalia_run_writer_open(run_folder, NULL, &second), THALIA_ERROR_IO, "lock");
  thalia_run_writer_close(writer);
  OK(thalia_run_writer_open(run_folder, NULL, &second));
  thalia_run_writer_close(second);
}

// A process that saves without an end, and is killed in the midst of it.
static void outlives_a_kill(void) {
  thalia_run* run = NULL;
  fresh_run("killed_run");
  OK(thalia_run_open(run_folder, &run));
  uint64_t least = 0;
  for (int round = 0; round < 3; ++round) {
    int told[2];
    CHECK(pipe(told) == 0);
    const pid_t child = fork();
    if (child == 0) {
      thalia_run_writer* writer = opened_writer();
      for (uint64_t step = least + 1;; ++step) {
        if (save(writer, step, 0, NULL) != THALIA_OK) _exit(1);
        if (write(told[1], &step, sizeof step) != sizeof step) _exit(1);
      }
    }
    close(told[1]);
    uint64_t step = 0;
    for (int i = 0; i < 3 + round && read(told[0], &step, sizeof step) == sizeof step; ++i) {
    }
    kill(child, SIGKILL);
    while (read(told[0], &step, sizeof step) == sizeof step) {
    }
    close(told[0]);
    waitpid(child, NULL, 0);
    thalia_run_writer* writer = opened_writer();
    thalia_reader* reader = NULL;
    thalia_checkpoint_info info = {.size = sizeof info};
    OK(thalia_run_writer_resume(writer, "train", NULL, &reader, &info));
    OK(thalia_reader_verify(reader));
    CHECK(info.step >= step && step > least);
    least = info.step;
    thalia_reader_close(reader);
    thalia_run_writer_close(writer);
  }
  thalia_run_close(run);
}

struct Job {
  thalia_run_writer* run;
  uint64_t first;
};

static void* save_some(void* argument) {
  const struct Job* job = argument;
  for (uint64_t step = job->first; step < job->first + 10; ++step)
    if (thalia_run_writer_save_bytes(job->run, "train", step, &step, sizeof step, NULL, NULL) !=
        THALIA_OK)
      return argument;
  return NULL;
}

static void is_for_any_thread(void) {
  pthread_t threads[4];
  struct Job jobs[4];
  fresh_run("thread_run");
  thalia_run_writer* writer = opened_writer();
  for (int i = 0; i < 4; ++i) {
    jobs[i] = (struct Job){writer, 100 * (uint64_t)i};
    CHECK(pthread_create(&threads[i], NULL, save_some, &jobs[i]) == 0);
  }
  for (int i = 0; i < 4; ++i) {
    void* failed = NULL;
    pthread_join(threads[i], &failed);
    CHECK(failed == NULL);
  }
  thalia_run_writer_close(writer);
}

static thalia_status publish(thalia_publisher* publisher, uint64_t step, thalia_published* result) {
  const thalia_checkpoint_options options = {.size = sizeof options, .metric = 1, .has_metric = 1};
  thalia_writer* writer = NULL;
  thalia_status status = thalia_publisher_begin(publisher, step, NULL, &writer);
  if (status == THALIA_OK) {
    declare_sample(writer);
    status = thalia_publisher_publish(publisher, writer, &options, result);
  }
  thalia_writer_close(writer);
  return status;
}

static void publishes(void) {
  const thalia_checkpoint_options replacing = {.size = sizeof replacing, .replace = 1};
  thalia_published published = {.size = sizeof published};
  thalia_publisher* publisher = NULL;
  thalia_writer* writer = NULL;
  thalia_run* run = NULL;
  uint64_t newest = 0;
  fresh_run("published_run");
  thalia_run_writer* saving = opened_writer();
  FAILS(thalia_publisher_open(saving, "other", NULL, &publisher), THALIA_ERROR_NOT_FOUND, "other");
  CHECK(publisher == NULL);
  OK(thalia_publisher_open(saving, NULL, NULL, &publisher));
  FAILS(thalia_publisher_newest(publisher, &newest), THALIA_ERROR_NOT_FOUND, "published");
  for (uint64_t step = 3; step < 6; ++step) {
    OK(publish(publisher, step, &published));
    CHECK(published.step == step && published.depth == step - 3);
    CHECK(published.from_memory == (step > 3) && published.is_best == (step == 3));
    CHECK(published.tensors > 0 && published.changed == (step == 3 ? published.tensors : 0));
    CHECK(published.visible_seconds > 0 && published.seconds >= published.visible_seconds);
    OK(thalia_publisher_newest(publisher, &newest));
    CHECK(newest == step);
  }
  FAILS(publish(publisher, 5, &published), THALIA_ERROR_BAD_ARGUMENT, "more than 5");
  OK(thalia_publisher_begin(publisher, 6, NULL, &writer));
  declare_sample(writer);
  FAILS(thalia_publisher_publish(publisher, writer, &replacing, NULL), THALIA_ERROR_BAD_ARGUMENT,
        "replace");
  thalia_writer_close(writer);
  thalia_publisher_close(publisher);
  // Another one goes on, and reads its base.
  const thalia_publisher_options options = {.size = sizeof options, .hold_nothing = 1};
  OK(thalia_publisher_open(saving, "train", &options, &publisher));
  OK(publish(publisher, 6, &published));
  CHECK(published.depth == 3 && !published.from_memory);
  thalia_publisher_close(publisher);
  thalia_run_writer_close(saving);
  OK(thalia_run_open(run_folder, &run));
  OK(thalia_run_restore(run, "train", path_of("published.thalia"), 0, NULL, NULL));
  thalia_reader* reader = NULL;
  OK(thalia_reader_open(path_of("published.thalia"), NULL, &reader));
  OK(thalia_reader_verify(reader));
  thalia_reader_close(reader);
  thalia_run_close(run);
}

void test_runs(void) {
  publishes();
  saves_and_lists();
  loads_and_restores();
  saves_bytes_and_files();
  is_held_by_one();
  outlives_a_kill();
  is_for_any_thread();
}
