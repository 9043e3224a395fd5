#include "cli/tensor/chain_links.h"

#include <fmt/format.h>

#include <utility>

#include "inspect/flat_file.h"
#include "thalia/error.h"
#include "thalia/formats/file_format.h"
#include "thalia/formats/model_index.h"
#include "thalia/mckp.h"
#include "thalia/paths.h"
#include "thalia/reader.h"

namespace thalia::cli {
namespace {

std::vector<ChainLink> links_of(const std::filesystem::path& path, const ChainOptions& options) {
  std::vector<ChainLink> links;
  const ChainReader chain = ChainReader::open(path, options);
  for (const std::filesystem::path& file : chain.paths()) {
    const Reader reader = Reader::open(file, options.read);
    const FileHeader header = reader.header();
    links.push_back({.name = file.string(),
                     .is_delta = reader.delta_base().has_value(),
                     .steps = header.training_steps,
                     .timestamp = header.timestamp,
                     .disk_bytes = file_bytes(file)});
  }
  return links;
}

std::vector<ChainLink> links_of_mckp(const std::filesystem::path& path,
                                     const ChainOptions& options) {
  std::vector<ChainLink> links;
  std::string name = path.string();
  const MckpChain chain = MckpChain::open(path, {.chain = options});
  for (const MckpFile& file : chain.files()) {
    const MckpHeader& header = file.header();
    links.push_back({.name = name,
                     .is_delta = header.previous.has_value(),
                     .steps = header.training_step,
                     .timestamp = std::nullopt,
                     .disk_bytes = file.file_bytes()});
    if (header.previous) name = header.previous->key;
  }
  return links;
}

// Those of one part behind those of another.
std::vector<ChainLink> links_of_parts(const std::filesystem::path& index,
                                      const ChainOptions& options) {
  std::vector<ChainLink> links;
  const ModelIndex content = read_model_index(index, options.read.input.limits);
  for (const std::string& name : content.files)
    for (ChainLink& link : links_of(folder_of(index) / name, options))
      links.push_back(std::move(link));
  return links;
}

}  // namespace

std::vector<ChainLink> chain_links(const std::filesystem::path& path, const ChainOptions& options,
                                   std::string_view what) {
  const FileFormat format = input_format(path, options.read.input.access);
  if (format == FileFormat::mckp) return links_of_mckp(path, options);
  if (format == FileFormat::thalia) return links_of(path, options);
  if (format == FileFormat::thalia_shards) return links_of_parts(path, options);
  throw UsageError(ErrorCode::bad_argument,
                   fmt::format("{} shows what .thalia and .mckp files are based on, not {}", what,
                               file_format_name(format)),
                   {.path = path.string()});
}

}  // namespace thalia::cli
