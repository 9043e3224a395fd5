// A gate takes the place of another one in four steps, each on the disk before the next: its
// metadata name both, the old digest goes, the file gets its name, the new digest is written.
// After a crash between them, the file that is there says which of the two it is.
#pragma once

#include <string>

#include "store/save/session.h"

namespace thalia::store {

/// Repairs one gate. @throws IoError; UsageError if it cannot be told which it is: the gate is left
/// alone.
void repair_gate(const SaveSession& session, const std::string& name);
/// Repairs all gates, and removes what a killed process left in gates/. @throws IoError.
void repair_gates(const SaveSession& session);

}  // namespace thalia::store
