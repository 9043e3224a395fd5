// Mapping a file, loading one region of it, and verifying it all.
#include <algorithm>
#include <cstdio>

#include "demo/commands.h"
#include "demo/print.h"
#include "thalia/reader.h"
#include "thalia/verify.h"

namespace demo {
namespace {

double as_double(std::uint64_t number) {
  return static_cast<double>(number);
}

std::string middle_region(const thalia::Reader& reader) {
  std::vector<std::pair<std::uint64_t, std::string>> regions;
  for (std::uint32_t i = 0; i < reader.region_count(); ++i) {
    const thalia::RegionView region = reader.region(i);
    regions.emplace_back(region.stored_bytes(), region.name());
  }
  if (regions.empty()) throw std::runtime_error(reader.path().string() + ": it has no regions");
  const auto middle = regions.begin() + static_cast<std::ptrdiff_t>(regions.size() / 2);
  std::ranges::nth_element(regions, middle);
  return middle->second;
}

void load_region(const thalia::RegionView& region) {
  std::vector<std::byte> copy;
  for (std::uint32_t i = 0; i < region.tensor_count(); ++i) {
    const thalia::TensorView tensor = region.tensor(i);
    if (tensor.is_raw()) {
      tensor.bytes();  // checks them, and so touches each
    } else {
      copy.resize(tensor.logical_bytes());
      tensor.read(copy);
    }
  }
}

/// Why a small region can touch more bytes than it has.
std::string granularity(const thalia::Reader& reader) {
  const thalia::FileHeader header = reader.header();
  std::string text = "counted in whole pages";
  if (header.checksum == thalia::ChecksumType::block_tree) {
    text += ", and checked in blocks of " +
            bytes_text(static_cast<double>(std::uint64_t{1} << header.block_log2));
  }
  return text;
}

int report(const thalia::VerifyReport& found) {
  if (found.ok()) return kDone;
  for (const thalia::Finding& finding : found.findings)
    std::printf("          DAMAGED: %s\n", finding.message.c_str());
  return kCheckFailed;
}

}  // namespace

int inspect_file(const std::filesystem::path& file, std::string region_name, unsigned threads,
                 const Figures& figures) {
  const Stopwatch open_watch;
  const thalia::Reader reader = thalia::Reader::open(file, {.work = {.threads = threads}});
  const double open_seconds = open_watch.seconds();
  const std::uint64_t after_open = reader.resident_bytes();
  std::printf("  map     %s, %s: open in %s; %s of it touched\n", file.c_str(),
              bytes_text(as_double(reader.file_bytes())).c_str(),
              seconds_text(open_seconds).c_str(), bytes_text(as_double(after_open)).c_str());

  if (region_name.empty()) region_name = middle_region(reader);
  const Stopwatch region_watch;
  const thalia::RegionView region = reader.region(region_name);
  load_region(region);
  const double region_seconds = region_watch.seconds();
  const std::uint64_t touched = reader.resident_bytes();
  std::printf("  region  %s, %u tensors, %s: loaded and checked in %s\n",
              printable(region_name).c_str(), region.tensor_count(),
              bytes_text(as_double(region.logical_bytes())).c_str(),
              seconds_text(region_seconds).c_str());
  std::printf("          touched so far: %s of %s bytes, %s of the file,\n          %s\n",
              with_commas(touched).c_str(), with_commas(reader.file_bytes()).c_str(),
              share_text(as_double(touched), as_double(reader.file_bytes())).c_str(),
              granularity(reader).c_str());

  const thalia::VerifyReport found = thalia::verify(file, {.work = {.threads = threads}});
  std::printf("  verify  %s bytes in %u regions and %u tensors: %zu findings, %s\n",
              with_commas(found.bytes_checked).c_str(), found.regions, found.tensors,
              found.findings.size() + static_cast<std::size_t>(found.suppressed),
              seconds_text(found.seconds).c_str());

  figures.add("file_bytes", as_double(reader.file_bytes()));
  figures.add("open_seconds", open_seconds);
  figures.add("region_bytes", as_double(region.logical_bytes()));
  figures.add("region_seconds", region_seconds);
  figures.add("touched_bytes", as_double(touched));
  figures.add("verify_seconds", found.seconds);
  return report(found);
}

int inspect(const Options& options) {
  const auto& arguments = options.arguments;
  if (arguments.empty() || arguments.size() > 2)
    throw UsageMistake("inspect: takes FILE and perhaps REGION");
  return inspect_file(arguments[0], arguments.size() == 2 ? arguments[1] : "", options.threads,
                      Figures(options.figures));
}

}  // namespace demo
