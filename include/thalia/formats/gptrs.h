// Files of gpt.rs: GPTRSCHK, checkpoints with the config of a model, and GPTRSTEN, archives of
// tensors. docs/format/gptrs.md is normative.
//
//   const thalia::GptrsFile file = thalia::GptrsFile::open("model.gptrschk");
//   const thalia::Tensor w = file.read("lm_head");   // in the mapping, no copy
//   const thalia::Tensor same = file.read(thalia::base_param_id("lm_head"));
//   std::vector<thalia::GptrsParam> tensors;
//   tensors.push_back({.name = "lm_head", .tensor = w});
//   thalia::save_gptrs_checkpoint("copy.gptrschk", tensors, file.config_text());
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "thalia/detail/held.h"
#include "thalia/formats/param_source.h"
#include "thalia/options.h"
#include "thalia/state/tensor_value.h"
#include "thalia/storage.h"
#include "thalia/types.h"

namespace thalia {

enum class GptrsFormat { checkpoint, archive };

/// An entry of the index.
struct GptrsTensor : ArrayEntry {  // of f32, f16, bf16 or i32
  std::uint64_t stored_bytes = 0;  ///< as the index says; read() checks it
  std::uint8_t requires_grad = 0;  ///< the byte as it is; true unless 0
  BaseParamId id{};                ///< of the name; 0 in an archive, which has no ids
  bool id_stored = false;          ///< false: the file has 0 in its place
};

/// What a config says of the streaming of weights; docs/format/gptrs.md, "Config".
struct GptrsWeightStreaming {
  bool enabled = false;
  std::optional<std::uint64_t> device_budget_bytes{};
  std::optional<double> device_weights_percent{};  ///< 1 is all
  std::optional<std::uint64_t> cache_budget_cap_bytes{};
  std::optional<std::uint64_t> prefetch_layers{};
  std::optional<std::uint64_t> small_param_persist_threshold{};  ///< in bytes
};

/// A config taken apart, as gpt.rs does: if a key repeats, the last one counts; keys that it does
/// not know are passed over.
struct GptrsModelConfig {
  std::string kind;             ///< "gpt", "resnet34", …
  std::string config = "null";  ///< the model's own, any JSON value; compact, keys in their order
  /// Names of functions, and what is chosen for them: "", "force=NAME", "benchmark(cache=8)".
  std::vector<std::pair<std::string, std::string>> functional_overrides{};
  GptrsWeightStreaming weight_streaming{};
};

/// @throws FormatError (bad_json) for what is no JSON object, (bad_value) naming the member that
/// gpt.rs does not take; (limit_exceeded).
GptrsModelConfig parse_gptrs_config(std::string_view text, const ReadLimits& limits = {});

/// For a ParamSource of the file: the same limits, none if it is not enabled.
/// @throws FormatError (bad_value) for a limit if it is not, or a share outside of 0 to 1:
/// gpt.rs opens such a file, and does not load the model.
ParamSourceOptions param_source_options(const GptrsWeightStreaming& streaming);

struct GptrsReadOptions {
  InputOptions input{};
  /// Refuses what no writer makes and gpt.rs still opens: a name that repeats, payloads that
  /// overlap, lie outside of the file or before its data, lengths that do not fit the shape,
  /// bytes in the index after its last entry. false: as gpt.rs, ranges and lengths are checked
  /// when a tensor is read, and of a name that repeats the last entry is found.
  bool strict = true;
  /// Also files of version 1, which gpt.rs reads no more.
  bool version_1 = false;
  /// Also checkpoints of version 2 whose config is that of a GPT without a kind: it is taken as the
  /// config of kind "gpt", as gpt.rs did for some time. In version 1 it always is.
  bool untagged_config = false;
  Work work{};  ///< the stop
};

/// A mapped file. A cheap handle; immutable; any number of threads.
class GptrsFile {
 public:
  /// @throws IoError; FormatError naming section, field, offset, value and bound; UnsupportedError
  /// for another version, a rank above 8; UnsupportedDtypeError for a tag above 3. With
  /// Access::copied the whole file is read into memory.
  static GptrsFile open(const std::filesystem::path& path, const GptrsReadOptions& options = {});
  /// The same of a file's bytes. `name` is for messages.
  static GptrsFile from_bytes(StoredBytes bytes, std::string name = {},
                              const GptrsReadOptions& options = {});

  GptrsFormat format() const noexcept;
  unsigned version() const noexcept;  ///< 2, or 1
  /// In the order of the index, each entry of a name that repeats.
  const std::vector<GptrsTensor>& tensors() const noexcept;
  std::uint64_t file_bytes() const noexcept;

  /// A checkpoint's text as it is in the file; empty for an archive.
  std::string_view config_text() const noexcept;
  /// A checkpoint's config. @throws UsageError (wrong_state) for an archive.
  const GptrsModelConfig& model_config() const;
  /// True of a config without a kind that was taken for a GPT's.
  bool config_was_untagged() const noexcept;

  /// nullptr if there is none, as of any id in an archive. Valid as long as the file object.
  const GptrsTensor* find(std::string_view name) const noexcept;
  const GptrsTensor* find(BaseParamId id) const noexcept;

  /// In the mapping, which it keeps open; as() asks for Tensor::owned() where the address does not
  /// suit the type, because the format aligns nothing.
  /// @throws UsageError (not_found); FormatError where the file is not strict and the entry wrong.
  Tensor read(std::string_view name) const;
  Tensor read(BaseParamId id) const;
  /// Reads entry `i` of tensors(); `i` is below their count.
  Tensor read_entry(std::size_t i) const;

 private:
  struct Impl;
  detail::Shared<const Impl> impl_;
};

/// A tensor to be saved.
struct GptrsParam {
  std::string name;  ///< of a checkpoint ASCII
  Tensor tensor;     ///< dense
  bool requires_grad = false;
};

struct GptrsWriteOptions {
  /// For a checkpoint. true: as the Rust writer; false: 0 in place of ids, as the Python writer.
  bool store_ids = true;
  /// Also f16 and bf16, for which the format has tags; gpt.rs opens such a file and reads its other
  /// tensors only.
  bool half_types = false;
  OutputOptions output{};
  Work work{};  ///< progress and the stop
};

/// Writes atomically, and byte for byte as gpt.rs: entries and payloads in the order of their
/// names' bytes, without gaps. `config_text` is written as it is.
/// @throws IoError; CancelledError; and before anything is written UsageError (duplicate;
/// bad_argument: a config that parse_gptrs_config() refuses, a sparse tensor); UnsupportedError for
/// a name that is not ASCII, a dtype, a scalar, sizes beyond the format's 32 bits.
/// @return bytes of the file.
std::uint64_t save_gptrs_checkpoint(const std::filesystem::path& path,
                                    const std::vector<GptrsParam>& tensors,
                                    std::string_view config_text,
                                    const GptrsWriteOptions& options = {});
/// The same of an archive, whose names are UTF-8.
std::uint64_t save_gptrs_archive(const std::filesystem::path& path,
                                 const std::vector<GptrsParam>& tensors,
                                 const GptrsWriteOptions& options = {});

}  // namespace thalia
