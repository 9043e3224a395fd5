// An open file of any format, as Python has it.
#pragma once

#include "thalia/formats/any_file.h"

namespace thalia::python {

struct OpenedAny {
  AnyFile file;
  bool writable;  ///< what lies in the mapping; in memory alone
};

}  // namespace thalia::python
