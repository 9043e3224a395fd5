// Files are there whole once they are committed, and not before; what cannot be saved is refused,
// and the writer goes on.
#include <stdio.h>
#include <string.h>

#include "c/check.h"
#include "c/sample.h"

static void saves_raw_on_commit_alone(void) {
  thalia_writer* writer = NULL;
  thalia_save_result result = {.size = sizeof result};
  OK(thalia_writer_open(path_of("raw.thalia"), NULL, &writer));
  declare_sample(writer);
  CHECK(length_of("raw.thalia") == -1);
  OK(thalia_writer_commit(writer, &result));
  CHECK(result.size == sizeof result);
  CHECK((long)result.file_bytes == length_of("raw.thalia"));
  CHECK(result.payload_bytes == sizeof sample_weights + sizeof sample_steps + 44 + 8);
  CHECK(result.regions == 2 && result.tensors == 5);
  CHECK(result.codec == THALIA_CODEC_NONE);
  CHECK(result.io == THALIA_IO_BUFFERED || result.io == THALIA_IO_DIRECT);
  CHECK(result.seconds > 0);
  FAILS(thalia_writer_commit(writer, NULL), THALIA_ERROR_WRONG_STATE, "raw.thalia");
  thalia_writer_close(writer);
}

static void saves_with_options(void) {
  const thalia_save_options options = {.size = sizeof options,
                                       .codec = THALIA_CODEC_ZSTD,
                                       .compression_level = 1,
                                       .chunk_bytes = 4096,
                                       .checksum = THALIA_CHECKSUM_SHA256,
                                       .durability = THALIA_DURABILITY_NONE,
                                       .keep_existing = 1,
                                       .reproducible = 1,
                                       .io = THALIA_IO_BUFFERED,
                                       .threads = 1};
  thalia_writer* writer = NULL;
  save_sample("zstd.thalia", &options);
  FAILS(thalia_writer_open(path_of("zstd.thalia"), &options, &writer), THALIA_ERROR_EXISTS,
        "zstd.thalia");
  CHECK(writer == NULL);
}

static void saves_in_pieces(void) {
  const thalia_region_spec spec = {.size = sizeof spec, .name = "cortex"};
  const thalia_tensor_spec weights = {
      .size = sizeof weights, .name = "weights", .rank = 2, .shape = {kRows, kColumns}};
  const thalia_tensor_spec steps = {.size = sizeof steps,
                                    .name = "steps",
                                    .dtype = THALIA_DTYPE_I64,
                                    .rank = 1,
                                    .shape = {kSteps}};
  const size_t half = sizeof sample_weights / 2;
  const char* bytes = (const char*)sample_weights;
  thalia_writer* writer = NULL;
  uint32_t region = 0;
  uint32_t tensor = 0;
  OK(thalia_writer_open(path_of("pieces.thalia"), NULL, &writer));
  OK(thalia_writer_add_region(writer, &spec, &region));
  OK(thalia_writer_declare_tensor(writer, region, &weights, &tensor));
  OK(thalia_writer_add_tensor(writer, region, &steps, sample_steps, sizeof sample_steps));
  OK(thalia_writer_write(writer, tensor, bytes, half));
  OK(thalia_writer_write(writer, tensor, bytes + half, half));
  OK(thalia_writer_commit(writer, NULL));
  thalia_writer_close(writer);
  CHECK(is_sample("pieces.thalia"));
}

static void leaves_nothing_without_a_commit(void) {
  thalia_writer* writer = NULL;
  OK(thalia_writer_open(path_of("given_up.thalia"), NULL, &writer));
  declare_sample(writer);
  thalia_writer_close(writer);
  CHECK(length_of("given_up.thalia") == -1);

  OK(thalia_writer_open(path_of("cancelled.thalia"), NULL, &writer));
  declare_sample(writer);
  OK(thalia_writer_cancel(writer));
  FAILS(thalia_writer_commit(writer, NULL), THALIA_ERROR_CANCELLED, "cancelled");
  thalia_writer_close(writer);
  CHECK(length_of("cancelled.thalia") == -1);
}

static void refuses_options(void) {
  thalia_writer* writer = NULL;
  const char* path = path_of("refused.thalia");
  thalia_save_options options = {.size = sizeof options, .codec = 99};
  FAILS(thalia_writer_open(path, &options, &writer), THALIA_ERROR_BAD_ARGUMENT,
        "codec: got 99, expected 0 to 4");
  options = (thalia_save_options){.size = sizeof options, .durability = 3};
  FAILS(thalia_writer_open(path, &options, &writer), THALIA_ERROR_BAD_ARGUMENT,
        "durability: got 3, expected 0 to 2");
  options = (thalia_save_options){.size = sizeof options, .sha256 = 2};
  FAILS(thalia_writer_open(path, &options, &writer), THALIA_ERROR_BAD_ARGUMENT,
        "sha256: got 2, expected 0 to 1");
  options = (thalia_save_options){
      .size = sizeof options, .codec = THALIA_CODEC_ZSTD, .compression_level = 23};
  FAILS(thalia_writer_open(path, &options, &writer), THALIA_ERROR_BAD_ARGUMENT,
        "compression_level");
  // A size that was forgotten.
  options = (thalia_save_options){.threads = 1};
  FAILS(thalia_writer_open(path, &options, &writer), THALIA_ERROR_BAD_ARGUMENT,
        "options.size: got 0, expected the sizeof of the struct");
  CHECK(writer == NULL);
}

// What a program is whose header has more members than this library knows.
static void takes_newer_structs_that_ask_for_nothing_new(void) {
  struct {
    thalia_save_options options;
    uint64_t newer;
  } given = {.options = {.size = sizeof given}};
  struct {
    thalia_save_result result;
    uint64_t newer;
  } got = {.result = {.size = sizeof got}, .newer = 5};
  thalia_writer* writer = NULL;
  given.newer = 1;
  FAILS(thalia_writer_open(path_of("newer.thalia"), &given.options, &writer),
        THALIA_ERROR_BAD_ARGUMENT, "does not know");
  given.newer = 0;
  OK(thalia_writer_open(path_of("newer.thalia"), &given.options, &writer));
  declare_sample(writer);
  OK(thalia_writer_commit(writer, &got.result));
  CHECK(got.result.size == sizeof got && got.result.tensors == 5 && got.newer == 0);
  thalia_writer_close(writer);
}

static void refuses_declarations_and_goes_on(void) {
  const float one = 1;
  thalia_region_spec region = {.size = sizeof region, .name = "cortex"};
  thalia_tensor_spec tensor = {.size = sizeof tensor, .name = "w", .rank = 1, .shape = {3}};
  thalia_writer* writer = NULL;
  thalia_save_result result = {.size = sizeof result};
  OK(thalia_writer_open(path_of("refused.thalia"), NULL, &writer));
  OK(thalia_writer_add_region(writer, &region, NULL));
  FAILS(thalia_writer_add_region(writer, &region, NULL), THALIA_ERROR_DUPLICATE, "cortex");
  region = (thalia_region_spec){.size = sizeof region, .name = "a", .config_json = "[]"};
  FAILS(thalia_writer_add_region(writer, &region, NULL), THALIA_ERROR_BAD_ARGUMENT,
        "expected a JSON object");
  region = (thalia_region_spec){.size = sizeof region};
  FAILS(thalia_writer_add_region(writer, &region, NULL), THALIA_ERROR_BAD_ARGUMENT,
        "name: got NULL");
  FAILS(thalia_writer_set_metadata(writer, "{"), THALIA_ERROR_BAD_ARGUMENT, "a JSON object");
  FAILS(thalia_writer_add_tensor(writer, 0, &tensor, &one, sizeof one), THALIA_ERROR_SIZE_MISMATCH,
        "w");
  FAILS(thalia_writer_add_tensor(writer, 0, &tensor, NULL, 12), THALIA_ERROR_BAD_ARGUMENT,
        "data: got NULL");
  FAILS(thalia_writer_add_tensor(writer, 9, &tensor, &one, sizeof one), THALIA_ERROR_BAD_ARGUMENT,
        NULL);
  tensor.rank = 9;
  FAILS(thalia_writer_add_tensor(writer, 0, &tensor, &one, sizeof one), THALIA_ERROR_BAD_ARGUMENT,
        "rank: got 9, expected 0 to 8");
  tensor.rank = 0;
  tensor.dtype = 29;
  FAILS(thalia_writer_add_tensor(writer, 0, &tensor, &one, sizeof one), THALIA_ERROR_BAD_ARGUMENT,
        "dtype: got 29, expected 0 to 28");
  tensor.dtype = THALIA_DTYPE_F32;
  OK(thalia_writer_add_tensor(writer, 0, &tensor, &one, sizeof one));
  OK(thalia_writer_commit(writer, &result));
  CHECK(result.regions == 1 && result.tensors == 1);
  thalia_writer_close(writer);
}

void test_saving(void) {
  saves_raw_on_commit_alone();
  saves_with_options();
  saves_in_pieces();
  leaves_nothing_without_a_commit();
  refuses_options();
  takes_newer_structs_that_ask_for_nothing_new();
  refuses_declarations_and_goes_on();
}
