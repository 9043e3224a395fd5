// Histograms as small multiples: one panel a tensor, each to its own scale.
#pragma once

#include <span>
#include <string>

#include "cli/tensor/histogram.h"

namespace thalia::cli {

/// A document: four panels a row, in the order given. `note` is written below; empty: none.
std::string histograms_svg(std::span<const Histogram> histograms, const std::string& heading,
                           const std::string& note);

/// One panel, for a page.
std::string histogram_panel(const Histogram& histogram);

// What is written above histograms.
inline constexpr const char* kHistogramScale =
    "Each panel has its own scale: values from left to right, the share of elements upwards.";
inline constexpr const char* kHistogramBeyond =
    "Not in the bars: zeros, and elements beyond 4 standard deviations from the mean.";

}  // namespace thalia::cli
