#include "c/sample.h"

#include <string.h>

#include "c/check.h"

float sample_weights[kWeights];
int64_t sample_steps[kSteps];

// cortex/sparse, csr i32 [4, 8] with 3 elements, as docs/format/format.md lays it out.
static const struct {
  uint32_t row_pointers[5];
  uint32_t columns[3];
  int32_t values[3];
} sparse = {{0, 1, 1, 3, 3}, {2, 0, 7}, {10, 20, 30}};

void fill_sample(void) {
  for (int i = 0; i < kWeights; ++i) sample_weights[i] = SAMPLE_SCALE * (float)i;
  for (int i = 0; i < kSteps; ++i) sample_steps[i] = (int64_t)i * i - 10;
}

void declare_sample(thalia_writer* writer) {
  const thalia_region_spec cortex = {.size = sizeof cortex,
                                     .name = "cortex",
                                     .config_json = "{\"tau\":20}",
                                     .n_neurons = kRows,
                                     .n_inputs = kColumns,
                                     .neuron_type = THALIA_NEURONS_CONDUCTANCE_LIF};
  const thalia_region_spec thalamus = {.size = sizeof thalamus, .name = "thalamus"};
  const thalia_tensor_spec weights = {.size = sizeof weights,
                                      .name = "weights",
                                      .dtype = THALIA_DTYPE_F32,
                                      .rank = 2,
                                      .shape = {kRows, kColumns}};
  const thalia_tensor_spec steps = {.size = sizeof steps,
                                    .name = "steps",
                                    .dtype = THALIA_DTYPE_I64,
                                    .role = THALIA_ROLE_REGION_STATE,
                                    .rank = 1,
                                    .shape = {kSteps}};
  const thalia_tensor_spec csr = {.size = sizeof csr,
                                  .name = "sparse",
                                  .dtype = THALIA_DTYPE_I32,
                                  .encoding = THALIA_ENCODING_CSR,
                                  .rank = 2,
                                  .shape = {4, 8},
                                  .nnz = 3};
  // Names that two regions have.
  const thalia_tensor_spec gain = {.size = sizeof gain, .name = "gain"};
  static const float gains[2] = {1.5F, -2.0F};
  uint32_t region = 77;
  OK(thalia_writer_set_metadata(writer, SAMPLE_METADATA));
  OK(thalia_writer_set_training_steps(writer, 1234));
  OK(thalia_writer_add_region(writer, &cortex, &region));
  CHECK(region == 0);
  OK(thalia_writer_add_tensor(writer, region, &weights, sample_weights, sizeof sample_weights));
  OK(thalia_writer_add_tensor(writer, region, &steps, sample_steps, sizeof sample_steps));
  OK(thalia_writer_add_tensor(writer, region, &csr, &sparse, sizeof sparse));
  OK(thalia_writer_add_tensor(writer, region, &gain, &gains[0], sizeof gains[0]));
  OK(thalia_writer_add_region(writer, &thalamus, &region));
  CHECK(region == 1);
  OK(thalia_writer_add_tensor(writer, region, &gain, &gains[1], sizeof gains[1]));
}

void save_sample(const char* name, const thalia_save_options* options) {
  thalia_writer* writer = NULL;
  OK(thalia_writer_open(path_of(name), options, &writer));
  declare_sample(writer);
  OK(thalia_writer_commit(writer, NULL));
  thalia_writer_close(writer);
}

static int is_in(const thalia_reader* reader, const char* name, const void* expected,
                 size_t bytes) {
  static unsigned char read[sizeof sample_weights];
  thalia_tensor* tensor = NULL;
  const int is_same = thalia_reader_tensor(reader, name, &tensor) == THALIA_OK &&
                      thalia_tensor_read(tensor, read, bytes) == THALIA_OK &&
                      memcmp(read, expected, bytes) == 0;
  thalia_tensor_close(tensor);
  return is_same;
}

int is_sample(const char* name) {
  thalia_reader* reader = NULL;
  OK(thalia_reader_open(path_of(name), NULL, &reader));
  const int is_same = is_in(reader, "weights", sample_weights, sizeof sample_weights) &&
                      is_in(reader, "steps", sample_steps, sizeof sample_steps);
  thalia_reader_close(reader);
  return is_same;
}
