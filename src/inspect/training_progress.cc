// safetensors holds texts only, so its programs write numbers, and whole objects, as texts.
#include "inspect/training_progress.h"

#include <array>
#include <charconv>
#include <cmath>
#include <system_error>
#include <type_traits>

#include "thalia/error.h"
#include "thalia/state/value.h"

namespace thalia::inspect {
namespace {

// The first one counts.
constexpr std::array<std::string_view, 5> kSteps{"training_steps", "training_step", "global_step",
                                                 "step", "ss_steps"};
constexpr std::array<std::string_view, 2> kEpochs{"epoch", "ss_epoch"};

std::optional<Value> parsed(std::string_view json) {
  try {
    return parse_json(json);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A number of at least 0, all of it.
template <typename T>
std::optional<T> number_in(const Value& value) {
  const bool is_text = value.kind() == Value::Kind::string;
  if (!is_text && value.kind() != Value::Kind::number) return std::nullopt;
  const std::string& text = is_text ? value.as_string() : value.number_text();
  T number{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  if constexpr (std::is_floating_point_v<T>) {
    if (!std::isfinite(number) || number < 0) return std::nullopt;
  }
  return number;
}

void look_into(const Value& object, std::string_view prefix, TrainingProgress& progress) {
  for (const std::string_view name : kSteps) {
    const Value* const found = progress.steps ? nullptr : object.find(name);
    if (found == nullptr) continue;
    progress.steps = number_in<std::uint64_t>(*found);
    if (progress.steps) progress.steps_member = std::string(prefix) + std::string(name);
  }
  for (const std::string_view name : kEpochs) {
    const Value* const found = progress.epoch ? nullptr : object.find(name);
    if (found != nullptr) progress.epoch = number_in<double>(*found);
  }
}

// And the objects in it.
void look_around(const Value& object, const std::string& prefix, TrainingProgress& progress) {
  look_into(object, prefix, progress);
  for (const Value::Member& member : object.members()) {
    const std::string inner = prefix + member.name + ".";
    if (member.value.is_object()) {
      look_into(member.value, inner, progress);
    } else if (member.value.kind() == Value::Kind::string &&
               member.value.as_string().starts_with('{')) {
      if (const auto parsed_object = parsed(member.value.as_string()))
        look_into(*parsed_object, inner, progress);
    }
  }
}

}  // namespace

TrainingProgress training_progress(std::string_view metadata_json) {
  TrainingProgress progress;
  const std::optional<Value> metadata = parsed(metadata_json);
  if (!metadata || !metadata->is_object()) return progress;
  look_around(*metadata, "", progress);
  // {"format":NAME,NAME:{…}}: what the file said, or the one of another format that it was made of.
  const Value* const format = metadata->find("format");
  if (format == nullptr || format->kind() != Value::Kind::string) return progress;
  const Value* const said = metadata->find(format->as_string());
  if (said != nullptr && said->is_object()) look_around(*said, format->as_string() + ".", progress);
  return progress;
}

}  // namespace thalia::inspect
