// Tensors on their way from a source to a .thalia file, or to a sink.
#pragma once

#include <functional>

#include "convert/conversions.h"
#include "convert/formats.h"
#include "convert/precision_run.h"
#include "formats/source/opened_file.h"
#include "thalia/formats/convert.h"

namespace thalia::formats {

/// What the policy says of tensor i; called once for each, in order.
using ChooseDType = std::function<DType(std::size_t i, PrecisionRun& precision)>;

/// The tensors become those of regions, as their names tell. @throws UnsupportedError for what
/// .thalia lacks; UsageError (not_found) for a pattern of the policy that fits nothing.
void flow_to_thalia(const OpenedFile& source, const FormatRow& from, const path& input,
                    const path& output, const ConvertOptions& options, ConvertResult& result);

/// @throws what the format's writing throws; UnsupportedError for a sparse tensor, unless the
/// format holds it or ConvertOptions::dense is set.
void flow_to_format(const OpenedFile& source, const FormatRow& from, const ChooseDType& choose,
                    const path& input, const path& output, const FormatRow& to,
                    const ConvertOptions& options, ConvertResult& result);

/// As a source of a format without regions chooses.
ChooseDType choose_by_name(const OpenedFile& source, const RegionGrouping& grouping);

SinkOptions sink_options(const ConvertOptions& options);
OpenOptions source_options(const ConvertOptions& options);

}  // namespace thalia::formats
