// The precision of one conversion's tensors: what each is stored in, its payload on the way there,
// and what that cost.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "codec/float/loss.h"
#include "formats/pickle/view_types.h"
#include "formats/source/piece_sink.h"
#include "state/precision/glob.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"
#include "thalia/tensor.h"

namespace thalia::formats {

/// Borrowed policy and result, in which it counts. Externally synchronised.
class PrecisionRun {
 public:
  PrecisionRun(const PrecisionPolicy& policy, ConvertResult& result);

  /// The policy's choice for a tensor, by the path that a tensor of a region, or of a connection,
  /// has in a state; counts the tensor as it will be stored.
  DType choose(std::string_view region, const TensorSpec& spec);
  /// The same for a format without regions: the region is the one that the tensor would get, so
  /// that a file and what became of it are treated alike.
  DType choose(const RegionGrouping& grouping, const TensorSpec& spec);
  DType choose(const ConnectionView& connection, std::string_view matrix, const TensorSpec& spec);

  /// Once all tensors are chosen, and before the output gets its name: warns of a policy that
  /// changes none of them. @throws UsageError (not_found) for a pattern of the policy that fits
  /// none of them.
  void check_effect();

  /// Hands on the payload of `spec` with its elements, or the values of its sparse arrays, as `to`.
  /// It comes in pieces, one of which is in memory. A dense payload may itself be given in pieces,
  /// those of one tensor after each other; `label` is what the result calls it.
  void convert(std::string_view label, const TensorSpec& spec, ByteSpan payload, DType to,
               const PieceSink& sink);

  /// A metadata object with the policy in it, once all tensors are chosen; unchanged where the
  /// policy keeps all. Keys keep their order, and views in a tree have the types of what they are
  /// views of. @throws FormatError if it is no JSON object.
  std::string note_in(std::string metadata_json, unsigned max_json_depth) const;

 private:
  DType choose(const state::TensorNames& tensor, Role role, const TensorSpec& spec);
  DType count(const TensorSpec& spec, DType dtype);
  void convert_elements(DType from, DType to, ByteSpan elements, const PieceSink& sink);

  const PrecisionPolicy& policy_;
  ConvertResult& result_;
  const bool keeps_all_;
  state::PatternUse patterns_;
  std::uint32_t kept_ = 0;     ///< of types that can be converted, which the policy keeps
  std::uint32_t already_ = 0;  ///< that have the type that the policy gives them
  pt::ChangedTypes changed_;
  std::vector<std::byte> piece_;
  std::string label_;             ///< of the tensor that is being converted
  codec::ConversionLoss loss_{};  ///< in it so far
};

/// The name of the metadata's member.
inline constexpr std::string_view kPrecisionPolicyKey = "precision_policy";

}  // namespace thalia::formats
