// Chooses a dtype for each tensor and converts payloads to it. Every tensor goes through choose()
// exactly once, because choose() also counts; convert() is called only for tensors whose dtype
// changes. Loss is measured on the converted piece while it is still in the cache.
#include "convert/precision_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "format/payload.h"
#include "formats/pt/opened.h"
#include "json/copy.h"
#include "json/writer.h"
#include "state/precision/rounding.h"
#include "state/value/path_names.h"
#include "thalia/state/brain.h"
#include "thalia/state/value.h"
#include "thalia/types.h"

namespace thalia::formats {
namespace {

// Small enough for the nearest caches: it is read twice, to convert and to measure.
constexpr std::size_t kPieceElements = 16 << 10;

TensorLayout with_dtype(const TensorSpec& spec, DType dtype) {
  TensorLayout layout = spec.layout();
  layout.dtype = dtype;
  return layout;
}

std::vector<std::string> globs_of(const PrecisionPolicy& policy) {
  std::vector<std::string> globs;
  for (const PrecisionPattern& pattern : policy.patterns) globs.push_back(pattern.glob);
  return globs;
}

// What a state has as a number of its own, which a tree of it names: f64 is the type that readers
// expect there.
bool is_number_of_state(const TensorSpec& spec) {
  return spec.dtype == DType::f64 && spec.shape.rank() == 0 &&
         (spec.role == Role::oscillator || spec.role == Role::neuromodulator);
}

// The arrays of a sparse payload; only the type's alignment and width depend on it.
format::SparseParts sparse_parts(const TensorSpec& spec, DType dtype) {
  return *format::sparse_parts(with_dtype(spec, dtype));
}

}  // namespace

PrecisionRun::PrecisionRun(const PrecisionPolicy& policy, ConvertResult& result)
    : policy_(policy),
      result_(result),
      keeps_all_(policy.keeps_all()),
      patterns_("precision", keeps_all_ ? std::vector<std::string>() : globs_of(policy)) {}

DType PrecisionRun::count(const TensorSpec& spec, DType dtype) {
  const auto bytes = format::payload_length(with_dtype(spec, dtype));
  result_.precision.add(dtype, bytes.value_or(~std::uint64_t{0}));
  result_.converted_tensors += dtype == spec.dtype ? 0 : 1;
  return dtype;
}

// A policy knows paths alone. Where the first pattern that fits fits REGION/NAME, that is the path.
DType PrecisionRun::choose(const state::TensorNames& tensor, Role role, const TensorSpec& spec) {
  patterns_.see(tensor);
  if (is_number_of_state(spec)) return count(spec, spec.dtype);
  std::string path(tensor.path);
  for (const PrecisionPattern& pattern : policy_.patterns) {
    if (!tensor.fit(pattern.glob)) continue;
    if (!state::matches_path(pattern.glob, path)) path = tensor.shown();
    break;
  }
  const std::uint64_t elements = spec.shape.element_count().value_or(~std::uint64_t{0});
  const DType dtype = stored_dtype(policy_, path, role, spec.dtype, elements);
  if (dtype != spec.dtype) {
    changed_[spec.name] = {spec.dtype, dtype};
  } else if (codec::is_convertible(dtype)) {
    // A policy that keeps a tensor would keep it in another type too.
    const DType other = dtype == DType::f32 ? DType::f64 : DType::f32;
    ++(stored_dtype(policy_, path, role, other, elements) == other ? kept_ : already_);
  }
  return count(spec, dtype);
}

void PrecisionRun::check_effect() {
  patterns_.check();
  if (keeps_all_ || result_.converted_tensors != 0) return;
  const std::uint64_t all = result_.precision.total().count;
  if (all == 0) return;
  std::string why;
  const auto add = [&](std::uint64_t count, std::string_view singular, std::string_view plural) {
    if (count == 0) return;
    why += fmt::format("{}{} {}", why.empty() ? "" : ", ", count, count == 1 ? singular : plural);
  };
  add(already_, "has the type that it gives it", "have the types that it gives them");
  add(kept_, "is kept as it is", "are kept as they are");
  add(all - already_ - kept_, "is of a type that is never converted",
      "are of types that are never converted");
  result_.warnings.push_back(fmt::format(
      "the precision policy {} changed no tensor: {}; biases, norms and states have a "
      "precision of their own, and what an optimizer keeps is converted by a pattern alone, "
      "as '*=fp16'",
      to_string(policy_), why));
}

// Without a policy the path does not matter, and is not made for each of many tensors.
DType PrecisionRun::choose(std::string_view region, const TensorSpec& spec) {
  if (keeps_all_) return count(spec, spec.dtype);
  const std::string path = state::path_in_region(region, component_of_role(spec.role), spec.name);
  return choose({.path = path, .region = region, .name = spec.name},
                likely_role(spec.role, spec.name, spec.shape.rank()), spec);
}

DType PrecisionRun::choose(const RegionGrouping& grouping, const TensorSpec& spec) {
  if (keeps_all_) return count(spec, spec.dtype);
  return choose(region_for_name(spec.name, grouping), spec);
}

DType PrecisionRun::choose(const ConnectionView& connection, std::string_view matrix,
                           const TensorSpec& spec) {
  if (keeps_all_) return count(spec, spec.dtype);
  const std::string path = state::path_in_connection(connection.source, connection.target, matrix);
  return choose({.path = path, .region = {}, .name = {}}, spec.role, spec);
}

void PrecisionRun::convert(std::string_view label, const TensorSpec& spec, ByteSpan payload,
                           DType to, const PieceSink& sink) {
  if (label != label_) {
    label_ = label;
    loss_ = {};
  }
  if (spec.encoding == Encoding::dense) {
    convert_elements(spec.dtype, to, payload, sink);
    return;
  }
  const format::SparseParts from_parts = sparse_parts(spec, spec.dtype);
  const format::SparseParts to_parts = sparse_parts(spec, to);
  // Indices are copied as they are; only the values after them are converted.
  const std::uint64_t indices_end = from_parts.indices.offset + from_parts.indices.length;
  if (indices_end != 0) sink(payload.first(indices_end));
  // Values begin at a multiple of their width, so the gap after the indices depends on the dtype.
  constexpr std::array<std::byte, 8> kPadding{};
  const std::uint64_t padding = to_parts.values.offset - indices_end;
  if (padding != 0) sink(ByteSpan(kPadding).first(padding));
  convert_elements(spec.dtype, to,
                   payload.subspan(from_parts.values.offset, from_parts.values.length), sink);
}

void PrecisionRun::convert_elements(DType from, DType to, ByteSpan elements,
                                    const PieceSink& sink) {
  const std::size_t from_bytes = dtype_bits(from) / 8, to_bytes = dtype_bits(to) / 8;
  // Enough for the widest dtype; resized once, the buffer stays.
  piece_.resize(kPieceElements * sizeof(double));
  const codec::ConversionLoss before = loss_;
  while (!elements.empty()) {
    const ByteSpan in = elements.first(std::min(elements.size(), kPieceElements * from_bytes));
    const MutableByteSpan out = MutableByteSpan(piece_).first(in.size() / from_bytes * to_bytes);
    codec::convert_elements(from, to, in, out);
    codec::measure_loss(from, to, in, out, loss_);
    sink(out);
    elements = elements.subspan(in.size());
  }
  // What the tensor at hand lost, which may have lost more in another piece.
  state::add_loss(result_.rounding, label_, before, loss_);
}

std::string PrecisionRun::note_in(std::string metadata_json, unsigned max_json_depth) const {
  if (keeps_all_) return metadata_json;
  if (metadata_json.empty()) metadata_json = "{}";
  const std::string name = to_string(policy_);
  std::string text;
  JsonWriter json(text);
  bool noted = false;
  json.begin_object();
  // Other members are copied as text, so that numbers keep their digits.
  for (const auto& [key, value] : json::members_of(metadata_json, max_json_depth)) {
    json.key(key);
    if (key == pt::kTreeMember && !changed_.empty()) {
      Value saved = parse_json(value);
      pt::change_view_types(saved, changed_);
      json.raw(to_json(saved));
    } else if (key == kPrecisionPolicyKey) {
      json.value(name);
      noted = true;
    } else {
      json.raw(value);
    }
  }
  if (!noted) json.member(kPrecisionPolicyKey, name);
  json.end_object();
  return text;
}

}  // namespace thalia::formats
