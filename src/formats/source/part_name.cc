#include "formats/source/part_name.h"

#include <fmt/format.h>

#include <charconv>

#include "thalia/files.h"
#include "thalia/text.h"

namespace thalia::formats {
namespace {

constexpr std::size_t kPartDigits = 5;

// The number at the end, which goes off the text. What is too large for 64 bits is no number.
std::optional<std::uint64_t> take_part_number(std::string_view& text) noexcept {
  std::size_t begin = text.size();
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  if (text.size() - begin < kPartDigits) return std::nullopt;
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data() + begin, text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  text.remove_suffix(text.size() - begin);
  return number;
}

bool take_part_text(std::string_view& text, std::string_view end) noexcept {
  if (!text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

}  // namespace

std::optional<PartName> part_name(std::string_view name) noexcept {
  std::string_view uncompressed = name;
  if (!take_part_text(uncompressed, ".zst")) take_part_text(uncompressed, ".lz4");
  const std::size_t dot = uncompressed.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  std::string_view rest = name.substr(0, dot);
  const auto count = take_part_number(rest);
  if (!count || !take_part_text(rest, "-of-")) return std::nullopt;
  const auto number = take_part_number(rest);
  if (!number || !take_part_text(rest, "-") || rest.empty()) return std::nullopt;
  return PartName{
      .prefix = rest, .number = *number, .count = *count, .extension = name.substr(dot)};
}

std::optional<std::string> lacking_parts(const std::filesystem::path& path,
                                         const std::optional<ModelPart>& part) {
  const std::string name = path.filename().string();
  const auto named = part_name(name);
  const ModelPart which = part    ? *part
                          : named ? ModelPart{named->number, named->count}
                                  : ModelPart{};
  if (which.count < 2) return std::nullopt;
  std::string text =
      fmt::format("the tensors of {} other file{}: this is file {} of the {} of a model",
                  which.count - 1, which.count == 2 ? "" : "s", which.number, which.count);
  if (!named) return text;
  const std::string index =
      std::string(named->prefix) + std::string(named->extension) + ".index.json";
  if (is_file(folder_of(path) / index)) text += fmt::format("; {} opens all", printable(index));
  return text;
}

}  // namespace thalia::formats
