// Members as transformers writes them. What a network of Loom has no place for is refused where it
// would compute something else, and told as a loss where only long texts differ.
#include "formats/hugging_face/config.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "io/memory/allocation_limit.h"
#include "json/copy.h"
#include "json/number.h"
#include "json/reader.h"

namespace thalia::formats::hugging_face {
namespace {

constexpr std::string_view kConfig = "config.json";

[[noreturn]] void fail_config(std::string_view member, std::string value, std::string bound,
                              std::string message = "not a decoder that Loom has") {
  throw FormatError(ErrorCode::bad_value, std::move(message),
                    {.section = std::string(kConfig),
                     .field = std::string(member),
                     .value = std::move(value),
                     .bound = std::move(bound)});
}

/// The members of config.json; null is as good as none.
class Config {
 public:
  Config(std::string_view text, unsigned max_depth) : max_depth_(max_depth) {
    for (auto& [key, value] : json::members_of(text, max_depth))
      if (value != "null") members_.insert_or_assign(std::move(key), std::move(value));
  }

  bool has(const std::string& key) const { return members_.contains(key); }

  std::optional<std::uint64_t> extent(const std::string& key) const {
    const auto found = members_.find(key);
    if (found == members_.end()) return std::nullopt;
    std::optional<std::uint64_t> number;
    walk(found->second, [&](json::Value& value) { number = value.unsigned_integer(); });
    if (!number || *number == 0 || *number > kMaxExtent)
      fail_config(key, printable(found->second),
                  fmt::format("a whole number, 1 to {}", kMaxExtent));
    return number;
  }

  std::uint64_t needed_extent(const std::string& key) const {
    if (const auto number = extent(key)) return *number;
    fail_config(key, "none", "a whole number");
  }

  std::optional<double> number(const std::string& key) const {
    const auto found = members_.find(key);
    if (found == members_.end()) return std::nullopt;
    if (kind_of(found->second) != json::Kind::number)
      fail_config(key, printable(found->second), "a number");
    return json::to_double(found->second);
  }

  std::optional<std::string> text(const std::string& key) const {
    const auto found = members_.find(key);
    if (found == members_.end()) return std::nullopt;
    if (kind_of(found->second) != json::Kind::string)
      fail_config(key, printable(found->second), "a text");
    std::string text;
    walk(found->second, [&](json::Value& value) { text = value.string(); });
    return text;
  }

  std::optional<bool> boolean(const std::string& key) const {
    const auto found = members_.find(key);
    if (found == members_.end()) return std::nullopt;
    if (kind_of(found->second) != json::Kind::boolean)
      fail_config(key, printable(found->second), "true or false");
    return found->second == "true";
  }

  std::optional<Config> object(const std::string& key) const {
    const auto found = members_.find(key);
    if (found == members_.end()) return std::nullopt;
    if (kind_of(found->second) != json::Kind::object)
      fail_config(key, printable(found->second), "an object");
    return Config(found->second, max_depth_);
  }

 private:
  template <typename Call>
  static void walk(std::string_view value, const Call& call) {
    json::walk_value(value, json::kDepthCeiling, call);
  }
  static json::Kind kind_of(std::string_view value) {
    json::Kind kind = json::Kind::null;
    walk(value, [&](json::Value& read) { kind = read.kind(); });
    return kind;
  }

  std::unordered_map<std::string, std::string> members_;
  unsigned max_depth_;
};

DecoderConfig decoder_of(const Config& config) {
  DecoderConfig out;
  out.hidden = config.needed_extent("hidden_size");
  out.heads = config.needed_extent("num_attention_heads");
  out.kv_heads = config.extent("num_key_value_heads").value_or(out.heads);
  out.inner = config.needed_extent("intermediate_size");
  out.blocks = config.needed_extent("num_hidden_layers");
  const auto head_dim = config.extent("head_dim");
  if (!head_dim && out.hidden % out.heads != 0)
    fail_config("num_attention_heads", std::to_string(out.heads),
                fmt::format("a divisor of hidden_size, {}, or head_dim", out.hidden));
  out.head_dim = head_dim.value_or(out.hidden / out.heads);
  if (out.query() > kMaxExtent || out.kv() > kMaxExtent)
    fail_config("head_dim", std::to_string(out.head_dim),
                fmt::format("at most {} over all heads", kMaxExtent));
  for (const char* const key : {"hidden_activation", "hidden_act"}) {
    const std::string activation = config.text(key).value_or("silu");
    if (activation == "relu2") {
      out.activation = LoomActivation::relu2;
    } else if (activation != "silu" && activation != "swish") {
      fail_config(key, printable(activation), "silu or relu2");
    }
  }
  out.rms_norm_eps = config.number("rms_norm_eps").value_or(1e-6);
  // Newer configs have it within an object.
  auto base = config.number("rope_theta");
  const auto rope = config.object("rope_parameters");
  if (rope && !base) base = rope->number("rope_theta");
  if (rope && rope->text("rope_type").value_or("default") != "default")
    out.losses.emplace_back("what config.json says of rope_parameters");
  out.rope_freq_base = base.value_or(10000);
  out.tied_head = config.boolean("tie_word_embeddings");
  for (const char* const key : {"rope_scaling", "sliding_window"})
    if (config.has(key)) out.losses.push_back(fmt::format("what config.json says of {}", key));
  return out;
}

}  // namespace

DecoderConfig read_config(std::string_view text, const ReadLimits& limits) {
  try {
    io::check_json_length(kConfig, text.size(), limits, text.size());
    return decoder_of(Config(text, limits.max_json_depth));
  } catch (FormatError& error) {
    error.add_section(std::string(kConfig));
    throw;
  }
}

}  // namespace thalia::formats::hugging_face
