// Writing a file of tensors under names: what conversions write through. Each room of a format has
// one function of the type WriteTensors, and none knows another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/source/piece_sink.h"
#include "thalia/options.h"
#include "thalia/types.h"

namespace thalia::formats {

struct SinkTensor {
  std::string name;  ///< different from all others
  TensorLayout layout{};
};

struct SinkInput {
  std::vector<SinkTensor> tensors{};
  /// A JSON object, as OpenedFacts::metadata: of a file of the sink's own format what its source
  /// said, of any other whatever its users put there.
  std::string metadata = "{}";
  /// The text of the config.json beside the input: of a Hugging Face model. For formats that ask
  /// for it, and not checked.
  std::optional<std::string> model_config{};
  /// The metadata are no more than what a source of another format noted to write its file again:
  /// no loss where they go.
  bool is_note_only = false;
  std::optional<std::uint64_t> training_steps{};
  /// The types of elements of which the tensors are codes, each once: AnyTensor::type.
  std::vector<std::string> types{};
};

/// What a delta is taken against: a file of the sink's own format.
struct SinkBase {
  std::filesystem::path path;
  ChainOptions chain{};  ///< as the input's
};

struct SinkOptions {
  SaveOptions save{};  ///< output and work count everywhere, the rest in formats that have it
  ReadLimits limits{};
  std::uint64_t max_safetensors_header_bytes = 100'000'000;
  /// For formats with shards: the bytes of payloads in one shard; nullopt: one file.
  std::optional<std::uint64_t> shard_bytes{};
  /// Also types that the format has and its original program does not read.
  bool all_types = false;
  /// For formats whose files may be deltas, which is mckp: the output is one. Others do not look at
  /// it, so anybody who sets it has to know the format.
  std::optional<SinkBase> base{};
  /// What the tensors are read from: the output may take the place of all of these, and of no part.
  std::vector<std::filesystem::path> sources{};
  /// Called once, when all is checked and before anything is written, with what the format cannot
  /// hold, a sentence each. What it throws passes through.
  std::function<void(const std::vector<std::string>& losses)> announce{};
  /// Told the path of the output if it is another than was asked for.
  std::function<void(const std::filesystem::path& path)> placed{};
};

/// Hands on the payload of tensor i, in pieces of any size that end where its layout says. Called
/// once for each tensor, in the order of the output.
using EmitPayload = std::function<void(std::size_t i, const PieceSink& sink)>;

/// Writes a file atomically. @throws UnsupportedError, before anything is written, for what the
/// format lacks: a dtype, an encoding, a name; IoError. @return bytes of the output.
using WriteTensors = std::uint64_t (*)(const std::filesystem::path& output, const SinkInput& input,
                                       const SinkOptions& options, const EmitPayload& emit);

}  // namespace thalia::formats
