#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "thalia/brain_state.h"

namespace thalia {
namespace {

std::string pair_of(std::string_view source, std::string_view target) {
  return fmt::format("'{}' to '{}'", printable(source), printable(target));
}

}  // namespace

BrainConnection& Connectivity::add(BrainConnection connection) {
  if (find(connection.source, connection.target) != nullptr) {
    fail_argument(ErrorCode::duplicate, "connection",
                  pair_of(connection.source, connection.target) + " twice",
                  "one a pair of regions");
  }
  return all().emplace_back(std::move(connection));
}

bool Connectivity::remove(std::string_view source, std::string_view target) {
  return std::erase_if(all(), [&](const BrainConnection& connection) {
           return connection.source == source && connection.target == target;
         }) != 0;
}

const BrainConnection* Connectivity::find(std::string_view source, std::string_view target) const {
  const auto found = std::ranges::find_if(all(), [&](const BrainConnection& connection) {
    return connection.source == source && connection.target == target;
  });
  return found == all().end() ? nullptr : &*found;
}

BrainConnection* Connectivity::find(std::string_view source, std::string_view target) {
  return const_cast<BrainConnection*>(std::as_const(*this).find(source, target));
}

const BrainConnection& Connectivity::at(std::string_view source, std::string_view target) const {
  if (const BrainConnection* found = find(source, target)) return *found;
  fail_argument(ErrorCode::not_found, "connection", pair_of(source, target), "one of the brain");
}

BrainConnection& Connectivity::at(std::string_view source, std::string_view target) {
  return const_cast<BrainConnection&>(std::as_const(*this).at(source, target));
}

}  // namespace thalia
