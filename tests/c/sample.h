// The state that the program saves: two regions, dense and sparse tensors.
#pragma once

#include "thalia/c.h"

enum { kRows = 96, kColumns = 128, kWeights = kRows * kColumns, kSteps = 7 };

#define SAMPLE_METADATA "{\"made\":\"in C\"}"

/// cortex/weights, f32 [kRows, kColumns]: element i is SAMPLE_SCALE * i.
extern float sample_weights[kWeights];
#define SAMPLE_SCALE 0.25F
/// cortex/steps, i64 [kSteps]: element i is i * i - 10.
extern int64_t sample_steps[kSteps];

void fill_sample(void);
/// Declares it all, and metadata and training steps (1234).
void declare_sample(thalia_writer* writer);
/// Saves it under a name in the program's folder.
void save_sample(const char* name, const thalia_save_options* options);
/// True if both tensors of region cortex of such a file are as in the sample.
int is_sample(const char* name);
