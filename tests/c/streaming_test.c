// Every tensor in the order of the file, into the stream's memory or the caller's; damaged ones
// passed over; streams that are stopped.
#include <stdio.h>
#include <string.h>

#include "c/check.h"
#include "c/sample.h"

// Where destination() puts the weights, and what it was called with.
struct place {
  float weights[kWeights];
  int calls;
  int damaged;
};

static void* destination(void* context, const thalia_tensor* tensor, size_t bytes) {
  struct place* place = context;
  thalia_tensor_info info = {.size = sizeof info};
  ++place->calls;
  OK(thalia_tensor_describe(tensor, &info));
  CHECK(info.logical_bytes == bytes);
  return is_text(info.name, "weights") ? place->weights : NULL;
}

static void damaged(void* context, const thalia_tensor* tensor) {
  struct place* place = context;
  thalia_tensor_info info = {.size = sizeof info};
  ++place->damaged;
  OK(thalia_tensor_describe(tensor, &info));
  CHECK(is_text(info.name, "weights"));
  CHECK(thalia_last_error()->status == THALIA_ERROR_CHECKSUM_MISMATCH);
  CHECK(strstr(thalia_last_error()->text, "weights") != NULL);
}

static void streams_all_in_order(const char* name) {
  thalia_reader* reader = NULL;
  thalia_stream* stream = NULL;
  thalia_streamed item = {.size = sizeof item};
  thalia_status status;
  uint64_t offset = 0;
  int tensors = 0;
  int found = 0;
  OK(thalia_reader_open(path_of(name), NULL, &reader));
  OK(thalia_stream_open(reader, NULL, &stream));
  thalia_reader_close(reader);  // the stream keeps the file
  while ((status = thalia_stream_next(stream, &item)) == THALIA_OK) {
    thalia_tensor_info info = {.size = sizeof info};
    OK(thalia_tensor_describe(item.tensor, &info));
    CHECK(info.stored_offset > offset && item.bytes == info.logical_bytes);
    offset = info.stored_offset;
    ++tensors;
    if (is_text(info.name, "weights"))
      found += memcmp(item.data, sample_weights, sizeof sample_weights) == 0;
    if (is_text(info.name, "steps"))
      found += memcmp(item.data, sample_steps, sizeof sample_steps) == 0;
  }
  CHECK(status == THALIA_END && tensors == 5 && found == 2);
  CHECK(item.tensor == NULL && item.data == NULL && item.bytes == 0);
  CHECK(thalia_stream_next(stream, &item) == THALIA_END);
  thalia_stream_close(stream);
}

static void streams_into_memory_of_the_caller(void) {
  static struct place place;
  const thalia_stream_options options = {.size = sizeof options,
                                         .io = THALIA_IO_BUFFERED,
                                         .threads = 2,
                                         .queue_depth = 4,
                                         .memory_bytes = 4 << 20,
                                         .context = &place,
                                         .destination = destination};
  thalia_reader* reader = NULL;
  thalia_stream* stream = NULL;
  thalia_streamed item = {.size = sizeof item};
  int mine = 0;
  int others = 0;
  OK(thalia_reader_open(path_of("zstd.thalia"), NULL, &reader));
  OK(thalia_stream_open(reader, &options, &stream));
  while (thalia_stream_next(stream, &item) == THALIA_OK) {
    if (item.data == place.weights) {
      ++mine;
    } else {
      ++others;
    }
  }
  thalia_stream_close(stream);
  thalia_reader_close(reader);
  CHECK(mine == 1 && others == 4 && place.calls == 5);
  CHECK(memcmp(place.weights, sample_weights, sizeof sample_weights) == 0);
}

static void passes_over_damage_or_ends_with_it(void) {
  static struct place place;
  const thalia_stream_options options = {
      .size = sizeof options, .context = &place, .damaged = damaged};
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  thalia_stream* stream = NULL;
  thalia_tensor_info info = {.size = sizeof info};
  thalia_streamed item = {.size = sizeof item};
  thalia_status status;
  int tensors = 0;
  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  OK(thalia_reader_tensor(reader, "weights", &tensor));
  OK(thalia_tensor_describe(tensor, &info));
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);
  copy_file("raw.thalia", "damaged.thalia", length_of("raw.thalia"),
            (long)info.stored_offset + 20000);

  OK(thalia_reader_open(path_of("damaged.thalia"), NULL, &reader));
  OK(thalia_stream_open(reader, &options, &stream));
  while ((status = thalia_stream_next(stream, &item)) == THALIA_OK) ++tensors;
  CHECK(status == THALIA_END && tensors == 4 && place.damaged == 1);
  thalia_stream_close(stream);

  OK(thalia_stream_open(reader, NULL, &stream));
  while ((status = thalia_stream_next(stream, &item)) == THALIA_OK) continue;
  FAILS(status, THALIA_ERROR_CHECKSUM_MISMATCH, "weights");
  FAILS(thalia_stream_next(stream, &item), THALIA_ERROR_CHECKSUM_MISMATCH, "weights");
  thalia_stream_close(stream);
  thalia_reader_close(reader);
}

static void ends_on_request(void) {
  thalia_reader* reader = NULL;
  thalia_stream* stream = NULL;
  thalia_streamed item = {.size = sizeof item};
  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  OK(thalia_stream_open(reader, NULL, &stream));
  OK(thalia_stream_cancel(stream));
  FAILS(thalia_stream_next(stream, &item), THALIA_ERROR_CANCELLED, NULL);
  thalia_stream_close(stream);
  // One that nobody has asked for a tensor.
  OK(thalia_stream_open(reader, NULL, &stream));
  thalia_stream_close(stream);
  const thalia_stream_options options = {.size = sizeof options, .order = 2};
  FAILS(thalia_stream_open(reader, &options, &stream), THALIA_ERROR_BAD_ARGUMENT,
        "order: got 2, expected 0 to 1");
  CHECK(stream == NULL);
  thalia_reader_close(reader);
}

void test_streaming(void) {
  streams_all_in_order("raw.thalia");
  streams_all_in_order("zstd.thalia");
  streams_into_memory_of_the_caller();
  passes_over_damage_or_ends_with_it();
  ends_on_request();
}
