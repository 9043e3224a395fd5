// The tensors of a .thalia file as those of a format without regions.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "convert/precision_run.h"
#include "formats/source/opened_file.h"
#include "thalia/formats/convert.h"
#include "thalia/reader.h"

namespace thalia::formats {

/// The tensors of a full file; for a delta, those of its state. Connections become tensors
/// "SOURCE->TARGET.weights". What regions say beside their tensors is in the losses.
class FlatThalia final : public OpenedFile {
 public:
  /// @throws UnsupportedError where two tensors get one name; FormatError.
  FlatThalia(Reader reader, const RegionGrouping& grouping, const ReadOptions& read);

  Tensor read(std::size_t i) const override;
  void visit(std::size_t i, const PieceSink& sink) const override;
  /// nullopt of a connection's matrix.
  std::optional<RegionPlace> place(std::size_t i) const override;

  /// What the policy says of tensor i, or of a view of it with that layout, by the path that it has
  /// in a state.
  DType choose(std::size_t i, const TensorLayout& layout, PrecisionRun& precision) const;
  /// The region of tensor i; empty for a connection's.
  std::string_view region_of(std::size_t i) const noexcept { return places_[i].region; }
  Role role(std::size_t i) const noexcept { return places_[i].view.role(); }

 private:
  struct Place {
    std::string region;
    TensorView view;
    std::optional<std::uint32_t> connection{};
    std::string_view matrix{};
  };

  void add(std::string name, Place place);
  void add_connections();
  void sort_by_offset();
  void resolve_names();

  Reader reader_;
  ReadOptions read_;
  std::vector<Place> places_;
};

}  // namespace thalia::formats
