// The connections of a brain, one for each pair of regions, read from the file when they are first
// asked for. An index by hash finds a pair at once. all() gives the list out for any change, which
// ends the index: finding is a linear search until the next add() builds it again. A const search
// never builds it, since many threads may search at the same time.

#include <algorithm>
#include <functional>
#include <utility>

#include "base/fail.h"
#include "base/utf8.h"
#include "thalia/state/brain.h"

namespace thalia {
namespace {

std::string pair_of(std::string_view source, std::string_view target) {
  return fmt::format("'{}' to '{}'", printable(source), printable(target));
}

std::size_t hash_of(std::string_view source, std::string_view target) {
  const std::hash<std::string_view> hash;
  // The golden ratio times 2^64, so that swapped names give another hash.
  return hash(source) * 0x9E3779B97F4A7C15U + hash(target);
}

bool is_between(const BrainConnection& connection, std::string_view source,
                std::string_view target) {
  return connection.source == source && connection.target == target;
}

}  // namespace

Connectivity::Connectivity(Loader load)
    : table_([load = std::move(load)] {
        Table table{.connections = load()};
        table.index();
        return table;
      }) {}

void Connectivity::Table::index() {
  places.clear();
  places.reserve(connections.size());
  for (std::size_t i = 0; i < connections.size(); ++i) insert(i);
  is_indexed = true;
}

void Connectivity::Table::insert(std::size_t place) {
  const BrainConnection& connection = connections[place];
  places.emplace(hash_of(connection.source, connection.target), place);
}

const BrainConnection* Connectivity::Table::find(std::string_view source,
                                                 std::string_view target) const {
  if (!is_indexed) {
    const auto found = std::ranges::find_if(connections, [&](const BrainConnection& connection) {
      return is_between(connection, source, target);
    });
    return found == connections.end() ? nullptr : &*found;
  }
  // Names are compared too: other pairs may share the hash.
  const auto [begin, end] = places.equal_range(hash_of(source, target));
  for (auto place = begin; place != end; ++place) {
    const BrainConnection& connection = connections[place->second];
    if (is_between(connection, source, target)) return &connection;
  }
  return nullptr;
}

BrainConnection& Connectivity::add(BrainConnection connection) {
  Table& table = table_.get();
  if (!table.is_indexed) table.index();
  if (table.find(connection.source, connection.target) != nullptr) {
    fail_argument(ErrorCode::duplicate, "connection",
                  pair_of(connection.source, connection.target) + " twice",
                  "one a pair of regions");
  }
  BrainConnection& added = table.connections.emplace_back(std::move(connection));
  table.insert(table.connections.size() - 1);
  return added;
}

// All that match, which is at most one unless all() was used to add.
bool Connectivity::remove(std::string_view source, std::string_view target) {
  return std::erase_if(all(), [&](const BrainConnection& connection) {
           return is_between(connection, source, target);
         }) != 0;
}

std::vector<BrainConnection>& Connectivity::all() {
  Table& table = table_.get();
  table.is_indexed = false;
  return table.connections;
}

const BrainConnection* Connectivity::find(std::string_view source, std::string_view target) const {
  return table_.get().find(source, target);
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
