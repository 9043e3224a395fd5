// A region is its record in the directory, which was verified when the view was made; the spans of
// the view lie in the file, which the view keeps alive. The headers inside the region are fetched
// at each call, and so verified only where somebody asks for what they say.
#include "base/fail.h"
#include "base/inside.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "container/file/open_file.h"
#include "format/directory.h"
#include "format/state.h"
#include "thalia/region.h"

namespace thalia {

RegionView detail::OpenFile::region_view(std::uint32_t region) const {
  return Inside::make<RegionView>(shared_from_this(), region);
}

RegionView::RegionView(std::shared_ptr<const detail::OpenFile> file, std::uint32_t index)
    : file_(std::move(file)), record_(&file_->directory_region(index)), index_(index) {
  // Both point into the file: the record above, and the name. A copied file keeps what it handed
  // out, so neither moves.
  name_ = file_->name(record_->name_offset, record_->name_length);
  const format::Extent extent = file_->owner_extent(index);
  offset_ = extent.offset;
  length_ = extent.length;
}

std::uint32_t RegionView::tensor_count() const noexcept {
  return record_->tensor_count;
}
std::uint64_t RegionView::logical_bytes() const noexcept {
  return record_->logical_bytes;
}
std::uint64_t RegionView::stored_bytes() const noexcept {
  return record_->stored_bytes;
}

std::uint32_t RegionView::n_neurons() const {
  return file_->named(
      [&]() -> std::uint32_t { return file_->region_headers(index_).header.n_neurons; });
}
std::uint32_t RegionView::n_inputs() const {
  return file_->named(
      [&]() -> std::uint32_t { return file_->region_headers(index_).header.n_inputs; });
}
NeuronType RegionView::neuron_type() const {
  return file_->named([&] { return NeuronType{file_->region_headers(index_).header.neuron_type}; });
}

std::string_view RegionView::config_json() const {
  return file_->named([&]() -> std::string_view {
    const auto region = file_->region_headers(index_);
    if (region.header.config_length == 0) return "{}";  // so that callers have an object always
    return file_->json({region.offset + region.header.config_offset, region.header.config_length},
                       "region", "config");
  });
}

std::string_view RegionView::metadata_json() const {
  return file_->named([&]() -> std::string_view {
    const auto region = file_->region_headers(index_);
    if (region.extension.region_metadata_length == 0) return {};
    return file_->json({region.offset + region.extension.region_metadata_offset,
                        region.extension.region_metadata_length},
                       "region", "metadata");
  });
}

std::optional<std::uint64_t> RegionView::homeostatic_updated() const {
  return file_->named([&]() -> std::optional<std::uint64_t> {
    const auto region = file_->region_headers(index_);
    // Length and place were validated: the header of the piece lies in the region.
    if (region.header.homeostatic_length == 0) return std::nullopt;
    const ByteSpan bytes = file_->verified(region.offset + region.header.homeostatic_offset,
                                           sizeof(format::HomeostaticHeader));
    return reinterpret_cast<const format::HomeostaticHeader*>(bytes.data())->timestamp_updated;
  });
}

TensorView RegionView::tensor(std::uint32_t i) const {
  return file_->named([&] {
    if (i >= tensor_count()) {
      fail_argument(ErrorCode::not_found, "tensor", std::to_string(i),
                    fmt::format("below {} in region '{}'", tensor_count(), printable(name_)));
    }
    return file_->tensor_view(index_, record_->first_tensor + i);
  });
}

std::optional<TensorView> RegionView::find(std::string_view tensor_name) const {
  return file_->named([&]() -> std::optional<TensorView> {
    const auto number = file_->find_tensor(index_, tensor_name);
    if (!number) return std::nullopt;
    return file_->tensor_view(index_, *number);
  });
}

TensorView RegionView::at(std::string_view tensor_name) const {
  return file_->named([&]() -> TensorView {
    if (auto found = find(tensor_name)) return *std::move(found);
    const std::string hint = suggestion_text(tensor_name, [&](Suggestion& suggestion) {
      for (std::uint32_t t = 0; t < tensor_count() && suggestion.is_open(); ++t)
        suggestion.offer(tensor(t).name());
    });
    throw UsageError(ErrorCode::not_found, "no such tensor" + hint,
                     {.region = printable(name_), .tensor = printable(tensor_name)});
  });
}

void RegionView::prefetch() const {
  file_->mapping().advise(offset_, length_, io::Advice::will_need);
}
void RegionView::populate() const {
  return file_->named([&] { file_->populate(offset_, length_); });
}
void RegionView::release() const {
  file_->mapping().advise(offset_, length_, io::Advice::dont_need);
}

}  // namespace thalia
