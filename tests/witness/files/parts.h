// What the Python witness reads, a part a source; each writes into a folder that is there.
#pragma once

#include <filesystem>

namespace witness {

namespace chain {
void run(const std::filesystem::path& folder);
}
namespace chunks {
void run(const std::filesystem::path& folder);
}
namespace examples {
void run(const std::filesystem::path& folder);
}
namespace mckp {
void run(const std::filesystem::path& folder);
}
namespace quantized {
void run(const std::filesystem::path& folder);
void run_low_rank(const std::filesystem::path& folder);
}  // namespace quantized
namespace samples {
void run(const std::filesystem::path& folder);
}
namespace state {
void run(const std::filesystem::path& folder);
}
namespace verdicts {
/// Prints what verify says of each file named by a line of the folder's file `paths`.
void run(const std::filesystem::path& folder);
}  // namespace verdicts

}  // namespace witness
