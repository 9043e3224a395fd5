// NULL where something is needed is an error that names the argument, of every function.
#include <stddef.h>

#include "c/check.h"
#include "c/sample.h"

#define REFUSES(call, argument) \
  FAILS(call, THALIA_ERROR_BAD_ARGUMENT, argument ": got NULL, expected a pointer")

static void reading(void) {
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  thalia_file_info file = {.size = sizeof file};
  thalia_region_info region = {.size = sizeof region};
  thalia_tensor_info info = {.size = sizeof info};
  thalia_text text;
  const void* data = NULL;
  size_t bytes = 0;
  uint32_t index = 0;
  REFUSES(thalia_reader_open(NULL, NULL, &reader), "path");
  REFUSES(thalia_reader_open("a", NULL, NULL), "reader");
  REFUSES(thalia_reader_describe(NULL, &file), "reader");
  REFUSES(thalia_reader_metadata(NULL, &text), "reader");
  REFUSES(thalia_reader_verify(NULL), "reader");
  REFUSES(thalia_reader_region(NULL, 0, &region), "reader");
  REFUSES(thalia_reader_find_region(NULL, "a", &index), "reader");
  REFUSES(thalia_reader_tensor(NULL, "a", &tensor), "reader");
  REFUSES(thalia_reader_tensor_at(NULL, 0, 0, &tensor), "reader");
  REFUSES(thalia_tensor_describe(NULL, &info), "tensor");
  REFUSES(thalia_tensor_view(NULL, &data, &bytes), "tensor");
  REFUSES(thalia_tensor_read(NULL, NULL, 0), "tensor");
  REFUSES(thalia_tensor_read_slice(NULL, NULL, 0, NULL, 0), "tensor");
  REFUSES(thalia_tensor_slice_bytes(NULL, NULL, 0, &bytes), "tensor");
  REFUSES(thalia_tensor_read_dense(NULL, NULL, 0), "tensor");
  REFUSES(thalia_tensor_dense_bytes(NULL, &bytes), "tensor");
  REFUSES(thalia_dtype_from_name(NULL, &index), "name");
  REFUSES(thalia_dtype_from_name("f32", NULL), "dtype");

  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  OK(thalia_reader_tensor(reader, "weights", &tensor));
  REFUSES(thalia_reader_describe(reader, NULL), "info");
  REFUSES(thalia_reader_metadata(reader, NULL), "json");
  REFUSES(thalia_reader_region(reader, 0, NULL), "info");
  REFUSES(thalia_reader_find_region(reader, NULL, &index), "name");
  REFUSES(thalia_reader_find_region(reader, "cortex", NULL), "region");
  REFUSES(thalia_reader_tensor(reader, "weights", NULL), "tensor");
  REFUSES(thalia_reader_tensor_at(reader, 0, 0, NULL), "tensor");
  REFUSES(thalia_tensor_describe(tensor, NULL), "info");
  REFUSES(thalia_tensor_view(tensor, NULL, &bytes), "data");
  REFUSES(thalia_tensor_view(tensor, &data, NULL), "bytes");
  REFUSES(thalia_tensor_read(tensor, NULL, sizeof sample_weights), "out");
  REFUSES(thalia_tensor_read_slice(tensor, NULL, 2, NULL, 0), "ranges");
  REFUSES(thalia_tensor_slice_bytes(tensor, NULL, 2, &bytes), "ranges");
  REFUSES(thalia_tensor_read_dense(tensor, NULL, sizeof sample_weights), "out");
  REFUSES(thalia_tensor_dense_bytes(tensor, NULL), "bytes");
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);
  thalia_tensor_close(NULL);
  thalia_reader_close(NULL);
}

static void streaming(void) {
  thalia_reader* reader = NULL;
  thalia_stream* stream = NULL;
  thalia_streamed item = {.size = sizeof item};
  REFUSES(thalia_stream_open(NULL, NULL, &stream), "reader");
  REFUSES(thalia_stream_next(NULL, &item), "stream");
  REFUSES(thalia_stream_cancel(NULL), "stream");
  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  REFUSES(thalia_stream_open(reader, NULL, NULL), "stream");
  OK(thalia_stream_open(reader, NULL, &stream));
  REFUSES(thalia_stream_next(stream, NULL), "item");
  thalia_stream_close(stream);
  thalia_reader_close(reader);
  thalia_stream_close(NULL);
}

static void saving(void) {
  const thalia_region_spec region = {.size = sizeof region, .name = "a"};
  const thalia_tensor_spec spec = {.size = sizeof spec, .name = "a"};
  thalia_writer* writer = NULL;
  uint32_t number = 0;
  REFUSES(thalia_writer_open(NULL, NULL, &writer), "path");
  REFUSES(thalia_writer_open("a", NULL, NULL), "writer");
  REFUSES(thalia_writer_set_metadata(NULL, "{}"), "writer");
  REFUSES(thalia_writer_set_training_steps(NULL, 1), "writer");
  REFUSES(thalia_writer_add_region(NULL, &region, NULL), "writer");
  REFUSES(thalia_writer_add_tensor(NULL, 0, &spec, NULL, 0), "writer");
  REFUSES(thalia_writer_declare_tensor(NULL, 0, &spec, &number), "writer");
  REFUSES(thalia_writer_write(NULL, 0, NULL, 0), "writer");
  REFUSES(thalia_writer_commit(NULL, NULL), "writer");
  REFUSES(thalia_writer_cancel(NULL), "writer");
  OK(thalia_writer_open(path_of("null.thalia"), NULL, &writer));
  REFUSES(thalia_writer_set_metadata(writer, NULL), "json");
  REFUSES(thalia_writer_add_region(writer, NULL, NULL), "spec");
  OK(thalia_writer_add_region(writer, &region, NULL));
  REFUSES(thalia_writer_add_tensor(writer, 0, NULL, NULL, 0), "spec");
  REFUSES(thalia_writer_add_tensor(writer, 0, &spec, NULL, 4), "data");
  REFUSES(thalia_writer_declare_tensor(writer, 0, NULL, &number), "spec");
  REFUSES(thalia_writer_declare_tensor(writer, 0, &spec, NULL), "tensor");
  OK(thalia_writer_declare_tensor(writer, 0, &spec, &number));
  REFUSES(thalia_writer_write(writer, number, NULL, 4), "data");
  thalia_writer_close(writer);
  thalia_writer_close(NULL);
}

static void background(void) {
  thalia_saver* saver = NULL;
  thalia_save* save = NULL;
  thalia_save_progress progress = {.size = sizeof progress};
  uint32_t ended = 0;
  REFUSES(thalia_saver_open(NULL, NULL), "saver");
  REFUSES(thalia_saver_reserve(NULL, 1, 1), "saver");
  REFUSES(thalia_saver_save(NULL, NULL, 0, &save), "saver");
  REFUSES(thalia_saver_wait_all(NULL), "saver");
  REFUSES(thalia_save_poll(NULL, &progress), "save");
  REFUSES(thalia_save_wait(NULL, NULL), "save");
  REFUSES(thalia_save_wait_for(NULL, 0, &ended), "save");
  REFUSES(thalia_save_cancel(NULL), "save");
  OK(thalia_saver_open(NULL, &saver));
  REFUSES(thalia_saver_save(saver, NULL, 0, &save), "writer");
  REFUSES(thalia_saver_save(saver, NULL, 0, NULL), "save");
  thalia_saver_close(saver);
  thalia_saver_close(NULL);
  thalia_save_close(NULL);
}

static void runs(void) {
  thalia_run* run = NULL;
  thalia_run_writer* writer = NULL;
  thalia_reader* reader = NULL;
  thalia_writer* declared = NULL;
  thalia_checkpoint_info info = {.size = sizeof info};
  char path[4096];
  REFUSES(thalia_run_create(NULL, "{}"), "folder");
  REFUSES(thalia_run_create("a", NULL), "config_json");
  REFUSES(thalia_run_open(NULL, &run), "folder");
  REFUSES(thalia_run_open("a", NULL), "run");
  REFUSES(thalia_run_checkpoint(NULL, "train", 0, &info), "run");
  REFUSES(thalia_run_latest(NULL, "train", &info), "run");
  REFUSES(thalia_run_best(NULL, "train", &info), "run");
  REFUSES(thalia_run_path(NULL, "train", 0, path, sizeof path, NULL), "run");
  REFUSES(thalia_run_load(NULL, "train", NULL, &reader, NULL), "run");
  REFUSES(thalia_run_restore(NULL, "train", "a", 0, NULL, NULL), "run");
  REFUSES(thalia_run_writer_open(NULL, NULL, &writer), "folder");
  REFUSES(thalia_run_writer_open("a", NULL, NULL), "run");
  REFUSES(thalia_run_writer_begin(NULL, "train", 0, 0, NULL, &declared), "run");
  REFUSES(thalia_run_writer_commit(NULL, NULL, NULL, NULL), "run");
  REFUSES(thalia_run_writer_save_bytes(NULL, "train", 0, "x", 1, NULL, NULL), "run");
  REFUSES(thalia_run_writer_save_file(NULL, "train", 0, "x", NULL, NULL), "run");
  REFUSES(thalia_run_writer_resume(NULL, "train", NULL, &reader, NULL), "run");
  OK(thalia_run_open(path_of("run"), &run));
  OK(thalia_run_writer_open(path_of("run"), NULL, &writer));
  REFUSES(thalia_run_checkpoint(run, NULL, 0, &info), "phase");
  REFUSES(thalia_run_checkpoint(run, "train", 0, NULL), "info");
  REFUSES(thalia_run_latest(run, NULL, &info), "phase");
  REFUSES(thalia_run_latest(run, "train", NULL), "info");
  REFUSES(thalia_run_best(run, NULL, &info), "phase");
  REFUSES(thalia_run_best(run, "train", NULL), "info");
  REFUSES(thalia_run_path(run, NULL, 0, path, sizeof path, NULL), "phase");
  REFUSES(thalia_run_path(run, "train", 0, NULL, sizeof path, NULL), "path");
  REFUSES(thalia_run_load(run, NULL, NULL, &reader, NULL), "phase");
  REFUSES(thalia_run_load(run, "train", NULL, NULL, NULL), "reader");
  REFUSES(thalia_run_restore(run, NULL, "a", 0, NULL, NULL), "phase");
  REFUSES(thalia_run_restore(run, "train", NULL, 0, NULL, NULL), "target");
  REFUSES(thalia_run_writer_begin(writer, NULL, 0, 0, NULL, &declared), "phase");
  REFUSES(thalia_run_writer_begin(writer, "train", 0, 0, NULL, NULL), "writer");
  REFUSES(thalia_run_writer_commit(writer, NULL, NULL, NULL), "writer");
  REFUSES(thalia_run_writer_save_bytes(writer, NULL, 0, "x", 1, NULL, NULL), "phase");
  REFUSES(thalia_run_writer_save_bytes(writer, "train", 0, NULL, 1, NULL, NULL), "data");
  REFUSES(thalia_run_writer_save_file(writer, NULL, 0, "x", NULL, NULL), "phase");
  REFUSES(thalia_run_writer_save_file(writer, "train", 0, NULL, NULL, NULL), "file");
  REFUSES(thalia_run_writer_resume(writer, NULL, NULL, &reader, NULL), "phase");
  REFUSES(thalia_run_writer_resume(writer, "train", NULL, NULL, NULL), "reader");
  thalia_publisher* publisher = NULL;
  uint64_t step = 0;
  REFUSES(thalia_publisher_open(NULL, "train", NULL, &publisher), "run");
  REFUSES(thalia_publisher_open(writer, "train", NULL, NULL), "publisher");
  REFUSES(thalia_publisher_newest(NULL, &step), "publisher");
  REFUSES(thalia_publisher_begin(NULL, 1, NULL, &declared), "publisher");
  REFUSES(thalia_publisher_publish(NULL, NULL, NULL, NULL), "publisher");
  OK(thalia_publisher_open(writer, NULL, NULL, &publisher));
  REFUSES(thalia_publisher_newest(publisher, NULL), "step");
  REFUSES(thalia_publisher_begin(publisher, 1, NULL, NULL), "writer");
  REFUSES(thalia_publisher_publish(publisher, NULL, NULL, NULL), "writer");
  thalia_publisher_close(publisher);
  thalia_publisher_close(NULL);
  thalia_run_writer_close(writer);
  thalia_run_close(run);
  thalia_run_writer_close(NULL);
  thalia_run_close(NULL);
}

static void following(void) {
  thalia_follower* follower = NULL;
  thalia_followed_state* state = NULL;
  thalia_followed_state_info info = {.size = sizeof info};
  thalia_followed_tensor tensor = {.size = sizeof tensor};
  thalia_text name;
  const char* const none[] = {NULL};
  thalia_follow_options options = {.size = sizeof options, .include_count = 1};
  thalia_server_memory memory = {.size = sizeof memory, .bytes = 1};
  REFUSES(thalia_follower_open(NULL, NULL, &follower), "folder");
  REFUSES(thalia_follower_open("a", NULL, NULL), "follower");
  REFUSES(thalia_follower_open("a", &options, &follower), "include");
  options.include = none;
  REFUSES(thalia_follower_open("a", &options, &follower), "include");
  REFUSES(thalia_follower_add_memory(NULL, &memory), "follower");
  REFUSES(thalia_follower_wait(NULL, 0, NULL), "follower");
  REFUSES(thalia_follower_prepare(NULL, 0, NULL), "follower");
  REFUSES(thalia_follower_apply(NULL, NULL, NULL), "follower");
  REFUSES(thalia_follower_changed(NULL, 0, &name), "follower");
  REFUSES(thalia_follower_state(NULL, &state), "follower");
  REFUSES(thalia_followed_state_describe(NULL, &info), "state");
  REFUSES(thalia_followed_state_tensor(NULL, 0, &tensor), "state");
  REFUSES(thalia_followed_state_find(NULL, "a", "b", &tensor), "state");
  OK(thalia_follower_open(path_of("followed"), NULL, &follower));
  REFUSES(thalia_follower_add_memory(follower, NULL), "memory");
  REFUSES(thalia_follower_add_memory(follower, &memory), "data");
  memory.data = &memory;
  memory.name_count = 1;
  REFUSES(thalia_follower_add_memory(follower, &memory), "names");
  OK(thalia_follower_wait(follower, 60000, NULL));
  REFUSES(thalia_follower_changed(follower, 0, NULL), "name");
  REFUSES(thalia_follower_state(follower, NULL), "state");
  OK(thalia_follower_state(follower, &state));
  REFUSES(thalia_followed_state_describe(state, NULL), "info");
  REFUSES(thalia_followed_state_tensor(state, 0, NULL), "tensor");
  REFUSES(thalia_followed_state_find(state, NULL, "w", &tensor), "region");
  REFUSES(thalia_followed_state_find(state, "layers", NULL, &tensor), "name");
  REFUSES(thalia_followed_state_find(state, "layers", "w", NULL), "tensor");
  thalia_followed_state_close(state);
  thalia_follower_close(follower);
  thalia_followed_state_close(NULL);
  thalia_follower_close(NULL);
  thalia_follower_wake(NULL);
}

void test_nulls(void) {
  reading();
  streaming();
  saving();
  background();
  runs();
  following();
}
