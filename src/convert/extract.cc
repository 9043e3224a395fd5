// Regions of one .thalia file are copied as they are stored. Those of a model in several are
// written anew, tensor by tensor.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/stopwatch.h"
#include "base/suggestion.h"
#include "base/utf8.h"
#include "convert/conversions.h"
#include "convert/formats.h"
#include "convert/tensor_flow.h"
#include "convert/thalia_shards.h"
#include "thalia/formats/convert.h"
#include "thalia/formats/safetensors.h"

namespace thalia {
namespace {

// The tensors of some regions.
class RegionsOnly final : public formats::OpenedFile {
 public:
  RegionsOnly(std::shared_ptr<const OpenedFile> whole, const std::vector<std::string>& regions)
      : whole_(std::move(whole)) {
    facts_ = whole_->facts();
    facts_.tensors.clear();
    std::vector<std::string> known;
    for (std::size_t i = 0; i < whole_->facts().tensors.size(); ++i) {
      const auto place = whole_->place(i);
      if (!place) continue;
      if (std::ranges::find(known, place->region) == known.end()) known.push_back(place->region);
      if (std::ranges::find(regions, place->region) == regions.end()) continue;
      facts_.tensors.push_back(whole_->facts().tensors[i]);
      numbers_.push_back(i);
    }
    for (const std::string& region : regions) {
      if (std::ranges::find(known, region) != known.end()) continue;
      throw UsageError(ErrorCode::not_found,
                       "no such region" + suggestion_among(region, known, std::identity()),
                       {.region = printable(region)});
    }
  }

  std::vector<std::filesystem::path> files() const override { return whole_->files(); }
  std::optional<formats::RegionPlace> place(std::size_t i) const override {
    return whole_->place(numbers_[i]);
  }
  Tensor read(std::size_t i) const override { return whole_->read(numbers_[i]); }
  void visit(std::size_t i, const formats::PieceSink& sink) const override {
    whole_->visit(numbers_[i], sink);
  }

 private:
  std::shared_ptr<const OpenedFile> whole_;
  std::vector<std::size_t> numbers_;
};

void extract_from_shards(const io::InputFile& input, const std::vector<std::string>& regions,
                         const std::filesystem::path& output, const ConvertOptions& options,
                         ConvertResult& result) {
  with_path(input.path().native(), [&] {
    const RegionsOnly part(formats::open_thalia_shards(input, formats::source_options(options)),
                           regions);
    formats::flow_to_thalia(part, formats::format_row(FileFormat::thalia_shards), input.path(),
                            output, options, result);
  });
}

void extract_from_file(const io::InputFile& input, const std::vector<std::string>& regions,
                       const std::filesystem::path& output, const ConvertOptions& options,
                       ConvertResult& result) {
  const formats::ResolvedInput resolved = formats::resolved_for(input, output, options);
  const Reader& reader = resolved.reader;
  std::vector<std::uint32_t> numbers;
  for (const std::string& name : regions) numbers.push_back(reader.region(name).index());
  std::sort(numbers.begin(), numbers.end());
  // A region that was named twice is copied once.
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  formats::copy_thalia(reader, numbers, output, options, result);
  if (resolved.copied_bytes != 0) result.input_bytes = resolved.copied_bytes;
}

}  // namespace

ConvertResult extract(const std::filesystem::path& named, const std::vector<std::string>& regions,
                      const std::filesystem::path& output, const ConvertOptions& options) {
  const Stopwatch watch;
  ConvertResult result{.output = output};
  const io::InputFile input(find_model(named));
  const bool in_shards =
      formats::detect(input, options.chain.read.input.access) == FileFormat::thalia_shards;
  formats::check_not_read(input, output, options.save.output, formats::source_options(options),
                          in_shards ? FileFormat::thalia_shards : FileFormat::thalia);
  if (in_shards) {
    extract_from_shards(input, regions, output, options, result);
  } else {
    extract_from_file(input, regions, output, options, result);
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace thalia
