#include "cli/command/save_arguments.h"

#include <fmt/format.h>

#include "cli/command/choice.h"
#include "cli/print/print.h"
#include "cli/terminal/escape.h"
#include "json/writer.h"

namespace thalia::cli {
namespace {

using format::ChecksumType;
using format::Codec;
using format::LeafAlgorithm;

constexpr std::array kSaveCodecs{
    Choice<std::optional<Codec>>{"store", Codec::store},
    Choice<std::optional<Codec>>{"zstd", Codec::zstd},
    Choice<std::optional<Codec>>{"lz4", Codec::lz4},
    Choice<std::optional<Codec>>{"plane_entropy", Codec::plane_entropy},
    Choice<std::optional<Codec>>{"packed_exponents", Codec::packed_exponents},
    Choice<std::optional<Codec>>{"auto", std::nullopt}};
constexpr std::array kChecksums{Choice<ChecksumType>{"none", ChecksumType::none},
                                Choice<ChecksumType>{"sha256", ChecksumType::sha256},
                                Choice<ChecksumType>{"crc32", ChecksumType::crc32},
                                Choice<ChecksumType>{"block_tree", ChecksumType::block_tree}};
constexpr std::array kLeaves{Choice<LeafAlgorithm>{"xxh3_128", LeafAlgorithm::xxh3_128},
                             Choice<LeafAlgorithm>{"sha256", LeafAlgorithm::sha256}};

// 0 asks for the codec's default.
void check_level(std::optional<Codec> codec, int level) {
  const int most = codec == Codec::zstd ? 22 : codec == Codec::lz4 ? 12 : 0;
  if (level < 0 || level > most) {
    throw UsageError(
        ErrorCode::bad_argument, {},
        {.field = "--level",
         .value = std::to_string(level),
         .bound = most == 0 ? "a codec to set the level of" : fmt::format("1 to {}", most)});
  }
}

// What a conversion of types did; nothing where there was none.
void print_precision(Output& out, const ConvertResult& result) {
  if (result.converted_tensors == 0) return;
  std::string shares;
  for (std::size_t i = 0; i < kPrecisionKindCount; ++i) {
    const auto kind = static_cast<PrecisionKind>(i);
    const auto& share = result.precision.share(kind);
    if (share.count == 0) continue;
    shares += fmt::format("{}{} {} ({}, {:.1f} %)", shares.empty() ? "" : ", ",
                          grouped(share.count), precision_kind_name(kind), human_bytes(share.bytes),
                          result.precision.percent(kind));
  }
  out.print("precision: {} converted; now {}\n",
            counted(result.converted_tensors, "tensor", "tensors"), shares);
  out.print("rounding: largest error {:.3g}; {} became infinite\n", result.largest_rounding_error,
            counted(result.overflowed, "number", "numbers"));
}

}  // namespace

void SaveArguments::declare(CLI::App& app) {
  app.add_option(
         "--codec", codec,
         "store (the default: readers map payloads in place), zstd, lz4, plane_entropy (small and "
         "fast, for floats), packed_exponents (fastest, for floats), or auto: what makes the save "
         "faster")
      ->option_text("CODEC");
  app.add_option("--level", level, "1 to 22 for zstd (default 3), 1 to 12 for lz4 (default 1)")
      ->option_text("N");
  app.add_option("--checksum", checksum, "none, sha256, crc32 or block_tree (the default)")
      ->option_text("TYPE");
  app.add_option("--leaves", leaves,
                 "Digests of the block tree, and of MCKP: xxh3_128 (the default), or sha256 "
                 "against tampering")
      ->option_text("KIND");
  app.add_flag("--sha256", sha256, "Also write OUT.sha256, for sha256sum -c");
  app.add_option("--threads", threads, "Threads that hash and compress; 0, the default: one a core")
      ->option_text("N");
  app.add_option("--max-header", max_header_bytes,
                 "Bytes that the header of a safetensors input may have (default 100000000)")
      ->option_text("BYTES");
  app.add_flag("--json", json, "What was done as a JSON object");
}

ConvertOptions SaveArguments::options(const Session& session) const {
  auto options = session.options<ConvertOptions>();
  if (!codec.empty()) options.save.compression.codec = choose("--codec", codec, kSaveCodecs);
  options.save.automatic_codec = codec == "auto";
  check_level(options.save.compression.codec, level);
  options.save.compression.level = level;
  options.save.checksum = choose("--checksum", checksum, kChecksums);
  options.save.leaves = choose("--leaves", leaves, kLeaves);
  options.save.sha256 = sha256;
  options.save.work.threads = threads;
  options.read.work.threads = threads;
  options.max_safetensors_header_bytes = max_header_bytes;
  return options;
}

void print_result(Output& out, const ConvertResult& result, const std::string& output,
                  bool as_json) {
  if (!as_json) {
    out.print("{}: {}, {} from {} in {:.2f} s\n", escape(output),
              counted(result.tensors, "tensor", "tensors"), human_bytes(result.output_bytes),
              human_bytes(result.input_bytes), result.seconds);
    for (const std::string& loss : result.losses) out.print("lost: {}\n", escape(loss));
    print_precision(out, result);
    return;
  }
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("output", as_utf8(output)).member("tensors", result.tensors);
  json.member("input_bytes", result.input_bytes).member("output_bytes", result.output_bytes);
  json.member("seconds", result.seconds).key("losses").begin_array();
  for (const std::string& loss : result.losses) json.value(as_utf8(loss));
  json.end_array().key("precision").begin_object();
  json.member("converted_tensors", result.converted_tensors);
  json.member("overflowed", result.overflowed);
  json.member("largest_rounding_error", result.largest_rounding_error).key("types");
  json.raw(result.precision.to_json());
  json.end_object().end_object();
  out.write(text + "\n");
}

}  // namespace thalia::cli
