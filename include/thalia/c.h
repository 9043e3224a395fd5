// The C interface of libthalia: reading, streaming and saving .thalia files, from C11 and whatever
// calls C. Nothing else is to be included.
//
//   thalia_reader* reader = NULL;
//   thalia_tensor* tensor = NULL;
//   const void* weights = NULL;
//   size_t bytes = 0;
//   if (thalia_reader_open("run.thalia", NULL, &reader) != THALIA_OK ||
//       thalia_reader_tensor(reader, "cortex/w_rec", &tensor) != THALIA_OK ||
//       thalia_tensor_view(tensor, &weights, &bytes) != THALIA_OK)
//     fprintf(stderr, "%s\n", thalia_last_error()->text);
//   thalia_tensor_close(tensor);
//   thalia_reader_close(reader);
//
// docs/use/c.md: errors, lifetimes, threads, and what stays as it is from version to version.
//
// A function that can fail returns a thalia_status. What it writes through pointers is set if
// that is THALIA_OK; handles are NULL after an error. NULL for a pointer that is needed is
// THALIA_ERROR_BAD_ARGUMENT; if it is allowed, that is said.
//
// A struct that begins with `size` is told its size by the caller: {.size = sizeof options}. Its
// other members may be 0 (NULL), which is the default. A handle is freed by the function
// NAME_close, once; NULL is allowed there and does nothing.
#pragma once

#include "thalia/c/codes.h"
#include "thalia/c/follow.h"
#include "thalia/c/reader.h"
#include "thalia/c/run.h"
#include "thalia/c/writer.h"
