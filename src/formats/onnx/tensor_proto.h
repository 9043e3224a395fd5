// A TensorProto: what it says of itself, and where its elements lie. After parse_tensor_proto() the
// type is known, the shape's bytes do not overflow, exactly the right data field is there, and
// bytes that lie raw in the file are as many as dtype and shape ask for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "format/extent.h"
#include "formats/onnx/data_types.h"
#include "formats/onnx/wire.h"
#include "thalia/types.h"

namespace thalia::formats::onnx {

/// A part of another file, as external_data names it.
struct ExternalData {
  std::string location;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length{};
  std::string checksum{};  ///< SHA-1 of the whole file in hexadecimal; empty: none
};

struct TensorProto {
  std::string_view name{};  ///< in the file
  const DataType* type = nullptr;
  Shape shape{};
  std::uint64_t bytes = 0;   ///< of dtype and shape
  format::Extent message{};  ///< the whole TensorProto
  DataField field = DataField::none;
  /// Where the elements themselves are, for raw_data; also for float_data and double_data if they
  /// lie together.
  std::optional<format::Extent> raw{};
  std::unique_ptr<const ExternalData> external{};
  bool annotated = false;  ///< has a doc_string or properties, which are not kept
};

/// @throws FormatError; UnsupportedDtypeError for strings and codes that are not assigned,
/// UnsupportedError for more than 8 dimensions and for segments. Both name the tensor.
TensorProto parse_tensor_proto(Message&& message);

/// "[3, 4]" of a repeated int64 that is a shape, in whichever way it is written. Adds the field to
/// `dims`. @throws FormatError for a negative extent; UnsupportedError for more than 8.
class Dims {
 public:
  void add(const Message& message, const Field& field);
  Shape shape() const { return Shape(std::span(extents_.data(), rank_)); }

 private:
  void add_one(const Message& message, std::uint64_t offset, std::uint64_t extent);
  std::array<std::uint64_t, Shape::kMaxRank> extents_{};
  unsigned rank_ = 0;
};

}  // namespace thalia::formats::onnx
