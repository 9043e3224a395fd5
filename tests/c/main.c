// The library from C: saved, read, streamed and saved in the background, with every kind of error.
// usage: c_test FOLDER, where it leaves its files for who reads them in C++.
#include <stdio.h>
#include <string.h>

#include "c/check.h"
#include "c/sample.h"

void test_errors(void);
void test_nulls(void);
void test_saving(void);
void test_reading(void);
void test_runs(void);
void test_following(void);
void test_streaming(void);
void test_background(void);

static const char* folder;
static int failed;

void fail(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
  ++failed;
}
int failures(void) {
  return failed;
}

void check_status(const char* file, int line, const char* call, thalia_status status,
                  thalia_status expected, const char* text) {
  const thalia_error* error = thalia_last_error();
  const int is_error = status != THALIA_OK && status != THALIA_END;
  if (status == expected && (!is_error || error->status == status) &&
      (text == NULL || strstr(error->text, text) != NULL))
    return;
  fail(file, line, call);
  fprintf(stderr, "  returned %s (%d), expected %s with \"%s\"; the last error: %d: %s\n",
          thalia_status_name(status), (int)status, thalia_status_name(expected),
          text == NULL ? "" : text, (int)error->status, error->text);
}

const char* path_of(const char* name) {
  static char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

long length_of(const char* name) {
  FILE* file = fopen(path_of(name), "rb");
  long length = -1;
  if (file == NULL) return -1;
  if (fseek(file, 0, SEEK_END) == 0) length = ftell(file);
  fclose(file);
  return length;
}

void copy_file(const char* from, const char* to, long length, long flipped) {
  FILE* in = fopen(path_of(from), "rb");
  FILE* out = fopen(path_of(to), "wb");
  CHECK(in != NULL && out != NULL);
  if (in == NULL || out == NULL) return;
  for (long i = 0; i < length; ++i) {
    const int byte = fgetc(in);
    fputc(i == flipped ? byte ^ 0xff : byte, out);
  }
  fclose(in);
  CHECK(fclose(out) == 0);
}

int is_text(thalia_text text, const char* expected) {
  return text.length == strlen(expected) && memcmp(text.data, expected, text.length) == 0;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  folder = argv[1];
  fill_sample();
  test_saving();
  test_reading();
  test_streaming();
  test_background();
  test_runs();
  test_following();
  test_errors();
  test_nulls();
  if (failures() != 0) fprintf(stderr, "%d checks failed\n", failures());
  return failures() == 0 ? 0 : 1;
}
