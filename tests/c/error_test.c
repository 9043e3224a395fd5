// Errors: their codes, texts and parts; of one thread, and until the next one.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "c/check.h"
#include "c/sample.h"

static void tells_what_is_wrong_with_a_file(void) {
  const thalia_error* error;
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  const void* data = NULL;
  size_t bytes = 0;
  FAILS(thalia_reader_open(path_of("missing.thalia"), NULL, &reader), THALIA_ERROR_IO,
        "missing.thalia");
  error = thalia_last_error();
  CHECK(error->size == sizeof *error && error->errno_value == ENOENT);
  CHECK(strcmp(error->path, path_of("missing.thalia")) == 0);
  CHECK(strstr(error->message, "No such file") != NULL && error->offset == THALIA_NO_OFFSET);
  CHECK(reader == NULL);

  copy_file("raw.thalia", "truncated.thalia", length_of("raw.thalia") / 2, -1);
  FAILS(thalia_reader_open(path_of("truncated.thalia"), NULL, &reader), THALIA_ERROR_TRUNCATED,
        "truncated.thalia");
  error = thalia_last_error();
  CHECK(error->errno_value == 0 && error->section[0] != 0 && error->value[0] != 0);

  copy_file("raw.thalia", "foreign.thalia", length_of("raw.thalia"), 0);
  FAILS(thalia_reader_open(path_of("foreign.thalia"), NULL, &reader), THALIA_ERROR_BAD_MAGIC,
        "foreign.thalia");

  // Of test_streaming: a byte of the weights is another.
  OK(thalia_reader_open(path_of("damaged.thalia"), NULL, &reader));
  FAILS(thalia_reader_verify(reader), THALIA_ERROR_CHECKSUM_MISMATCH, "damaged.thalia");
  OK(thalia_reader_tensor(reader, "weights", &tensor));
  FAILS(thalia_tensor_view(tensor, &data, &bytes), THALIA_ERROR_CHECKSUM_MISMATCH, "weights");
  error = thalia_last_error();
  CHECK(strcmp(error->region, "cortex") == 0 && strcmp(error->tensor, "weights") == 0);
  CHECK(error->offset != THALIA_NO_OFFSET && error->offset % 4096 == 0);
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);
}

static void suggests_names(void) {
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  uint32_t number = 7;
  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  FAILS(thalia_reader_tensor(reader, "weight", &tensor), THALIA_ERROR_NOT_FOUND,
        "did you mean 'weights'?");
  FAILS(thalia_reader_find_region(reader, "kortex", &number), THALIA_ERROR_NOT_FOUND,
        "did you mean 'cortex'?");
  thalia_reader_close(reader);
  FAILS(thalia_dtype_from_name("bf61", &number), THALIA_ERROR_NOT_FOUND, "did you mean 'bf16'?");
  CHECK(number == 7);
}

static void names_codes(void) {
  thalia_dtype dtype = 0;
  CHECK(strcmp(thalia_status_name(THALIA_OK), "ok") == 0);
  CHECK(strcmp(thalia_status_name(THALIA_END), "end") == 0);
  CHECK(strcmp(thalia_status_name(THALIA_ERROR_NOT_FOUND), "not_found") == 0);
  CHECK(strcmp(thalia_status_name(THALIA_ERROR_NO_MEMORY), "no_memory") == 0);
  CHECK(strcmp(thalia_status_name(-1), "unknown") == 0);
  CHECK(strcmp(thalia_dtype_name(THALIA_DTYPE_F8_E4M3FNUZ), "f8_e4m3fnuz") == 0);
  CHECK(strcmp(thalia_dtype_name(29), "unknown") == 0);
  CHECK(thalia_dtype_bits(THALIA_DTYPE_C128) == 128 && thalia_dtype_bits(29) == 0);
  OK(thalia_dtype_from_name("bool", &dtype));
  CHECK(dtype == THALIA_DTYPE_BOOL);
  CHECK(strcmp(thalia_role_name(THALIA_ROLE_EMBEDDING), "embedding") == 0);
  CHECK(strcmp(thalia_role_name(256), "unknown") == 0);
  CHECK(strcmp(thalia_encoding_name(THALIA_ENCODING_CSR), "csr") == 0);
  CHECK(strcmp(thalia_codec_name(THALIA_CODEC_PLANE_ENTROPY), "plane_entropy") == 0);
  CHECK(strchr(thalia_version(), '.') != NULL);
}

static void* fail_in_another_thread(void* seen) {
  thalia_reader* reader = NULL;
  *(thalia_status*)seen = thalia_last_error()->status;
  thalia_reader_open("another_thread", NULL, &reader);
  return NULL;
}

static void keeps_the_error_of_each_thread(void) {
  pthread_t thread;
  thalia_status seen = -1;
  uint32_t number = 0;
  thalia_reader* reader = NULL;
  FAILS(thalia_dtype_from_name("x", &number), THALIA_ERROR_NOT_FOUND, "'x'");
  CHECK(pthread_create(&thread, NULL, fail_in_another_thread, &seen) == 0);
  pthread_join(thread, NULL);
  CHECK(seen == THALIA_OK);
  CHECK(strstr(thalia_last_error()->text, "'x'") != NULL);
  OK(thalia_reader_open(path_of("raw.thalia"), NULL, &reader));
  thalia_reader_close(reader);
  CHECK(thalia_last_error()->status == THALIA_ERROR_NOT_FOUND);  // what succeeds leaves it
}

void test_errors(void) {
  tells_what_is_wrong_with_a_file();
  suggests_names();
  names_codes();
  keeps_the_error_of_each_thread();
}
