// All that a report says about a file, gathered by the code of the commands that tell it one by
// one.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/print/tensor_table.h"
#include "cli/tensor/histogram.h"
#include "cli/tensor/measured_tensor.h"
#include "cli/tensor/tensor_changes.h"
#include "cli/terminal/session.h"
#include "inspect/file_facts.h"
#include "thalia/state/diff.h"
#include "thalia/verify.h"

namespace thalia::cli {

struct ReportedTensor {
  AnyTensor listed;
  std::optional<MeasuredTensor> measured{};  ///< nullopt if it could not be read
  std::string damage{};                      ///< why
};

/// What changed since another file.
struct Comparison {
  std::string base;
  std::vector<TensorChange> changes{};
  std::optional<Diff> diff{};  ///< of tables and texts; nullopt if one is no .thalia file
};

struct PageReport {
  inspect::DescribedFile facts{};
  VerifyReport verified{};
  std::vector<ReportedTensor> tensors{};  ///< all, in the order of the file
  std::vector<Histogram> histograms{};    ///< of the largest that could be read, in that order
  std::optional<Comparison> comparison{};
  std::vector<LinkFacts> links{};  ///< of a delta
};

/// How many histograms there are at most.
inline constexpr std::size_t kReportedHistograms = 24;

/// Reads elements in pieces, those with a histogram twice. `base` may be empty. Damage is a part of
/// the report. @throws what opening the files throws; CancelledError.
PageReport report_of(const std::string& path, const std::string& base, const Session& session);

}  // namespace thalia::cli
