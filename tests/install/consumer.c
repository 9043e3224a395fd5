// Somebody else's program in C: built with nothing but what CMake finds of the installed library.
#include <stdio.h>
#include <string.h>

#include <thalia/c.h>

static int complain(void) {
  fprintf(stderr, "%s\n", thalia_last_error()->text);
  return 1;
}

int main(int argc, char** argv) {
  static const float saved[4] = {0.5F, 1.5F, 2.5F, 3.5F};
  const thalia_save_options options = {.size = sizeof options,
                                       .durability = THALIA_DURABILITY_NONE};
  const thalia_region_spec region = {.size = sizeof region, .name = "installed"};
  const thalia_tensor_spec numbers = {
      .size = sizeof numbers, .name = "numbers", .rank = 2, .shape = {2, 2}};
  thalia_writer* writer = NULL;
  thalia_reader* reader = NULL;
  thalia_tensor* tensor = NULL;
  const void* data = NULL;
  size_t bytes = 0;
  uint32_t id = 0;
  if (argc != 2) return 2;

  if (thalia_writer_open(argv[1], &options, &writer) != THALIA_OK ||
      thalia_writer_add_region(writer, &region, &id) != THALIA_OK ||
      thalia_writer_add_tensor(writer, id, &numbers, saved, sizeof saved) != THALIA_OK ||
      thalia_writer_commit(writer, NULL) != THALIA_OK)
    return complain();
  thalia_writer_close(writer);

  if (thalia_reader_open(argv[1], NULL, &reader) != THALIA_OK ||
      thalia_reader_tensor(reader, "numbers", &tensor) != THALIA_OK ||
      thalia_tensor_view(tensor, &data, &bytes) != THALIA_OK)
    return complain();
  if (bytes != sizeof saved || memcmp(data, saved, bytes) != 0) {
    fprintf(stderr, "the mapped numbers are not the saved ones\n");
    return 1;
  }
  thalia_tensor_close(tensor);
  thalia_reader_close(reader);
  printf("saved and mapped from C with thalia %s\n", thalia_version());
  return 0;
}
