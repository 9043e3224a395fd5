// The handles of C that several files look into: each holds the object of the C++ interface that it
// stands for.
#pragma once

#include <array>
#include <stop_token>
#include <string_view>

#include "c/arguments.h"
#include "c/choice.h"
#include "thalia/c/reader.h"
#include "thalia/c/writer.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/tensor.h"
#include "thalia/writer.h"

struct thalia_reader {
  thalia::Reader reader;
};

struct thalia_tensor {
  thalia::TensorView view;
};

struct thalia_writer {
  std::stop_source stop;  ///< lives on with a save that took the writer over
  thalia::Writer writer;
};

namespace thalia::c {

inline const Reader& opened(const thalia_reader* reader) {
  return required(reader, "reader").reader;
}
inline const TensorView& viewed(const thalia_tensor* tensor) {
  return required(tensor, "tensor").view;
}
inline Writer& writing(thalia_writer* writer) {
  return required(writer, "writer").writer;
}

inline constexpr std::array kDurabilities{Durability::full, Durability::data, Durability::none};

/// @throws UsageError (bad_argument) naming the option. @param cancel ends the save.
SaveOptions save_options(const thalia_save_options* given, std::stop_token cancel);
/// Fills in what a save resulted in; `out` may be NULL.
void give_result(thalia_save_result* out, const SaveResult& result);
/// Before a save begins that could not tell its result. @throws UsageError (bad_argument).
void check_result(const thalia_save_result* out);

}  // namespace thalia::c
