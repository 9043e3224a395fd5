// What was saved is found by name and by place, viewed in the file, and copied whole and in parts.
#include <stdio.h>
#include <string.h>

#include "c/check.h"
#include "c/sample.h"

static void describes_files_and_regions(void) {
  thalia_reader* reader = NULL;
  thalia_file_info file = {.size = sizeof file};
  thalia_region_info region = {.size = sizeof region};
  thalia_text json;
  uint32_t index = 77;
  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  OK(thalia_reader_describe(reader, &file));
  CHECK((long)file.file_bytes == length_of("raw.thalia"));
  CHECK(file.region_count == 2 && file.tensor_count == 5 && file.connection_count == 0);
  CHECK(file.training_steps == 1234 && file.total_neurons == kRows);
  CHECK(file.timestamp > 0 && file.generation == 1 && file.is_delta == 0);
  CHECK(file.checksum == THALIA_CHECKSUM_BLOCK_TREE && file.format_major == 1);
  OK(thalia_reader_metadata(reader, &json));
  CHECK(is_text(json, SAMPLE_METADATA));

  OK(thalia_reader_find_region(reader, "thalamus", &index));
  CHECK(index == 1);
  OK(thalia_reader_region(reader, 1, &region));
  CHECK(is_text(region.name, "thalamus") && is_text(region.config_json, "{}"));
  CHECK(region.metadata_json.length == 0);
  CHECK(region.tensor_count == 1 && region.neuron_type == THALIA_NEURONS_NONE);
  OK(thalia_reader_region(reader, 0, &region));
  CHECK(is_text(region.name, "cortex") && is_text(region.config_json, "{\"tau\":20}"));
  CHECK(region.tensor_count == 4 && region.n_neurons == kRows && region.n_inputs == kColumns);
  CHECK(region.neuron_type == THALIA_NEURONS_CONDUCTANCE_LIF);
  OK(thalia_reader_verify(reader));
  thalia_reader_close(reader);

  OK(thalia_reader_open(path_of("zstd.thalia"), NULL, &reader));
  OK(thalia_reader_describe(reader, &file));
  CHECK(file.checksum == THALIA_CHECKSUM_SHA256);
  thalia_reader_close(reader);
}

static void finds_tensors_by_name_and_by_place(void) {
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  thalia_tensor_info info = {.size = sizeof info};
  static const char* const names[] = {"gain", "sparse", "steps", "weights"};
  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  for (uint32_t i = 0; i < 4; ++i) {
    OK(thalia_reader_tensor_at(reader, 0, i, &tensor));
    OK(thalia_tensor_describe(tensor, &info));
    CHECK(is_text(info.name, names[i]) && is_text(info.region, "cortex"));
    thalia_tensor_close(tensor);
  }
  OK(thalia_reader_tensor(reader, "steps", &tensor));
  OK(thalia_tensor_describe(tensor, &info));
  CHECK(info.dtype == THALIA_DTYPE_I64 && info.role == THALIA_ROLE_REGION_STATE);
  CHECK(info.rank == 1 && info.shape[0] == kSteps && info.shape[1] == 0);
  thalia_tensor_close(tensor);

  OK(thalia_reader_tensor(reader, "thalamus/gain", &tensor));
  OK(thalia_tensor_describe(tensor, &info));
  CHECK(is_text(info.region, "thalamus") && info.rank == 0 && info.element_count == 1);
  thalia_tensor_close(tensor);

  OK(thalia_reader_tensor(reader, "cortex/sparse", &tensor));
  OK(thalia_tensor_describe(tensor, &info));
  CHECK(info.encoding == THALIA_ENCODING_CSR && info.nnz == 3 && info.logical_bytes == 44);
  CHECK(info.wide_indices == 0 && info.shape[0] == 4 && info.shape[1] == 8);
  thalia_tensor_close(tensor);

  FAILS(thalia_reader_tensor(reader, "gain", &tensor), THALIA_ERROR_BAD_ARGUMENT,
        "which several regions have");
  CHECK(tensor == NULL);
  FAILS(thalia_reader_tensor(reader, "cortex/weihgts", &tensor), THALIA_ERROR_NOT_FOUND,
        "did you mean 'cortex/weights'?");
  FAILS(thalia_reader_tensor_at(reader, 0, 4, &tensor), THALIA_ERROR_NOT_FOUND, "below 4");
  FAILS(thalia_reader_tensor_at(reader, 2, 0, &tensor), THALIA_ERROR_NOT_FOUND, "below 2");
  thalia_reader_close(reader);
}

static void views_in_the_file(const char* name, uint32_t access) {
  const thalia_read_options options = {
      .size = sizeof options, .access = access, .verification = THALIA_VERIFY_AT_OPEN};
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  const void* data = NULL;
  const void* again = NULL;
  size_t bytes = 0;
  OK(thalia_reader_open(path_of(name), &options, &reader));
  OK(thalia_reader_tensor(reader, "weights", &tensor));
  OK(thalia_tensor_view(tensor, &data, &bytes));
  CHECK(bytes == sizeof sample_weights && (uintptr_t)data % 64 == 0);
  CHECK(data != NULL && memcmp(data, sample_weights, sizeof sample_weights) == 0);
  OK(thalia_tensor_view(tensor, &again, &bytes));
  CHECK(again == data);
  // The tensor keeps the file.
  thalia_reader_close(reader);
  CHECK(data != NULL && memcmp(data, sample_weights, sizeof sample_weights) == 0);
  OK(thalia_tensor_view(tensor, &again, &bytes));
  CHECK(again == data);
  thalia_tensor_close(tensor);
}

static void writes_to_views(void) {
  const thalia_read_options options = {.size = sizeof options, .access = THALIA_ACCESS_WRITABLE};
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  const void* data = NULL;
  size_t bytes = 0;
  OK(thalia_reader_open(path_of("raw.thalia"), &options, &reader));
  OK(thalia_reader_tensor(reader, "weights", &tensor));
  OK(thalia_tensor_view(tensor, &data, &bytes));
  CHECK(data != NULL && bytes == sizeof sample_weights);
  memset((void*)(uintptr_t)data, 0, bytes);
  OK(thalia_tensor_view(tensor, &data, &bytes));
  CHECK(*(const float*)data == 0);
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);
  views_in_the_file("raw.thalia", THALIA_ACCESS_MAPPED);
}

static void copies_whole_and_in_parts(const char* name) {
  // One byte more on either side, to see that they stay; and so `out` is aligned to nothing.
  static unsigned char room[sizeof sample_weights + 2];
  unsigned char* out = room + 1;
  const thalia_range ranges[2] = {{3, 5}, {1, kColumns}};
  const size_t row = (kColumns - 1) * sizeof(float);
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  size_t bytes = 0;
  memset(room, 0xab, sizeof room);
  OK(thalia_reader_open(path_of(name), NULL, &reader));
  OK(thalia_reader_tensor(reader, "weights", &tensor));
  OK(thalia_tensor_read(tensor, out, sizeof sample_weights));
  CHECK(memcmp(out, sample_weights, sizeof sample_weights) == 0);
  CHECK(room[0] == 0xab && room[sizeof room - 1] == 0xab);

  memset(room, 0xab, sizeof room);
  FAILS(thalia_tensor_read(tensor, out, sizeof sample_weights - 1), THALIA_ERROR_SIZE_MISMATCH,
        "got 49151 bytes, expected 49152");
  CHECK(room[1] == 0xab && room[sizeof room / 2] == 0xab);

  OK(thalia_tensor_slice_bytes(tensor, ranges, 2, &bytes));
  CHECK(bytes == 2 * row);
  OK(thalia_tensor_read_slice(tensor, ranges, 2, out, bytes));
  CHECK(memcmp(out, sample_weights + 3 * kColumns + 1, row) == 0);
  CHECK(memcmp(out + row, sample_weights + 4 * kColumns + 1, row) == 0);
  CHECK(out[bytes] == 0xab);
  FAILS(thalia_tensor_read_slice(tensor, ranges, 2, out, bytes + 1), THALIA_ERROR_SIZE_MISMATCH,
        "weights");
  FAILS(thalia_tensor_read_slice(tensor, ranges, 1, out, bytes), THALIA_ERROR_BAD_ARGUMENT,
        "one for each of 2 dimensions");
  FAILS(thalia_tensor_read_slice(tensor, ranges, 9, out, bytes), THALIA_ERROR_BAD_ARGUMENT,
        "rank: got 9");
  thalia_tensor_close(tensor);

  OK(thalia_reader_tensor(reader, "sparse", &tensor));
  int32_t dense[32];
  OK(thalia_tensor_dense_bytes(tensor, &bytes));
  CHECK(bytes == sizeof dense);
  OK(thalia_tensor_read_dense(tensor, dense, sizeof dense));
  int32_t sum = 0;
  for (int i = 0; i < 32; ++i) sum += dense[i];
  CHECK(dense[2] == 10 && dense[16] == 20 && dense[23] == 30 && sum == 60);
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);
}

static void has_no_view_of_compressed_tensors(void) {
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  thalia_tensor_info info = {.size = sizeof info};
  const void* data = &info;
  size_t bytes = 5;
  OK(thalia_reader_open(path_of("zstd.thalia"), NULL, &reader));
  OK(thalia_reader_tensor(reader, "cortex/weights", &tensor));
  OK(thalia_tensor_describe(tensor, &info));
  CHECK(info.is_raw == 0 && info.chunk_count == 12 && info.stored_bytes < info.logical_bytes);
  FAILS(thalia_tensor_view(tensor, &data, &bytes), THALIA_ERROR_WRONG_STATE,
        "expected a tensor that is stored raw; read() decompresses");
  CHECK(data == NULL && bytes == 0);
  CHECK(strcmp(thalia_last_error()->tensor, "weights") == 0);
  CHECK(strcmp(thalia_last_error()->region, "cortex") == 0);
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);
}

void test_reading(void) {
  describes_files_and_regions();
  finds_tensors_by_name_and_by_place();
  views_in_the_file("raw.thalia", THALIA_ACCESS_MAPPED);
  views_in_the_file("raw.thalia", THALIA_ACCESS_COPIED);
  views_in_the_file("raw.thalia", THALIA_ACCESS_WRITABLE);
  writes_to_views();
  copies_whole_and_in_parts("raw.thalia");
  copies_whole_and_in_parts("zstd.thalia");
  has_no_view_of_compressed_tensors();
}
