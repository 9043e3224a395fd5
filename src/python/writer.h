// What a Python writer has declared, with the objects whose bytes it borrows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>

#include "io/system/process.h"
#include "python/buffers.h"
#include "python/exclusive.h"
#include "thalia/writer.h"

namespace thalia::python {

/// Used with the GIL held; a save of it needs none.
struct OpenWriter {
  io::OwnProcess process{};
  std::stop_source stop{};       ///< of the save
  std::optional<Writer> writer;  ///< none once it was committed, given away or abandoned
  std::vector<HeldBuffer> held{};
  bool calls_back = false;  ///< a function of Python, which may do anything

  OpenWriter(const std::filesystem::path& path, SaveOptions options);
  /// Into an open file, which stays its owner's.
  OpenWriter(int descriptor, SaveOptions options);
  /// Holds what made(options) gives: options with the token that ends the save.
  OpenWriter(SaveOptions options, const std::function<Writer(const SaveOptions&)>& made);
  /// @throws UsageError (wrong_state) if there is none, and in a forked child.
  Writer& get();
  /// Whether a commit of it is, and calls nobody meanwhile.
  bool is_soon_over() const noexcept;
  /// Lets go of everything: there is no writer then.
  void let_go();
};

using PyWriter = Exclusive<OpenWriter>;

}  // namespace thalia::python
