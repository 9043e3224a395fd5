// Files that break one rule and whose checksums all hold: what is left to find it is the check of
// that rule.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "format/tensor.h"
#include "support/damage.h"

namespace thalia::test {

struct Edit {
  std::string name;
  /// What a finding of verify says: a field, mostly.
  std::string says;
  std::function<void(EditableFile&)> apply;
};

enum class Readers {
  refuse,    ///< one that does not verify meets the fault where it asks for the part
  need_not,  ///< the fault is verify's to find: nothing that a reader hands out depends on it
};

/// Applies each edit to a new copy of `bytes`, seals it anew, and asks verify and readers.
void check_edits(const std::string& bytes, Readers readers, const std::vector<Edit>& edits);

/// A field of a struct and one way in which it is broken. A plain function: a std::function of each
/// of hundreds of lambdas takes the compiler longer than all else in these tests.
template <typename Struct>
struct FieldEdit {
  const char* field;
  void (*apply)(Struct&);
};
template <typename Struct>
using FieldEdits = std::vector<FieldEdit<Struct>>;

template <typename Struct>
std::vector<Edit> edits_of(std::function<Struct&(EditableFile&)> find,
                           const FieldEdits<Struct>& fields) {
  std::vector<Edit> edits;
  for (const auto& [field, apply] : fields) {
    edits.push_back({std::string(field) + ", edit " + std::to_string(edits.size()), field,
                     [find, apply = apply](EditableFile& file) { apply(find(file)); }});
  }
  return edits;
}

inline auto entry_of(std::string name) {
  return [name](EditableFile& file) -> format::TensorEntry& { return file.tensor(name); };
}

/// The bytes of varied_sample(), and of the same in chunks of 4 KiB.
const std::string& varied_bytes();
const std::string& chunked_bytes();

}  // namespace thalia::test
