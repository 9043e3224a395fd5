// The library's options from keyword arguments, and the names of its enumerations.
#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "thalia/error.h"
#include "thalia/options.h"
#include "thalia/state/delta.h"
#include "thalia/tensor.h"

namespace thalia::python {

/// @throws UsageError (bad_argument) naming the argument and what it can be.
[[noreturn]] inline void fail_choice(std::string_view argument, std::string_view value,
                                     std::string_view expected) {
  throw UsageError(ErrorCode::bad_argument, {},
                   {.field = std::string(argument),
                    .value = "'" + std::string(value) + "'",
                    .bound = std::string(expected)});
}

template <typename Choice>
using Choices = std::initializer_list<std::pair<std::string_view, Choice>>;

/// What lies beside the name. @throws as fail_choice().
template <typename Choice>
Choice chosen(std::string_view argument, std::string_view value, Choices<Choice> choices) {
  std::string expected;
  for (const auto& [name, choice] : choices) {
    if (name == value) return choice;
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  fail_choice(argument, value, expected);
}

/// One of the names of an enumeration. @throws UsageError (bad_argument) naming the argument and
/// what it can be.
Access access_of(std::string_view name);
Verification verification_of(std::string_view name);

DType dtype_of(std::string_view name);
Role role_of(std::string_view name);
NeuronType neuron_type_of(std::string_view name);

ReadOptions read_options(std::string_view access, std::string_view verification, unsigned threads);

/// The options for files that may be deltas, read by as many threads as a save has.
ChainOptions chain_options(std::string_view access, std::vector<std::filesystem::path> search,
                           unsigned threads, bool legacy = false);

/// The options of a save: those that SaveOptions of python/thalia_checkpoint/_files/writer.py
/// documents, all optional.
/// @throws UsageError (bad_argument); TypeError for an unknown name.
SaveOptions save_options(const nanobind::dict& arguments);

/// The compression of what cannot choose one. @throws UsageError (bad_argument) for "auto".
Compression fixed_compression(const SaveOptions& save);

/// From the members of thalia_checkpoint.LowRank.
LowRankOptions low_rank_options(const nanobind::dict& members);

}  // namespace thalia::python
