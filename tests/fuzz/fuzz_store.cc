// Reads any bytes as the texts of a run: its configuration in both languages, its journal, leases
// of its followers, and the names of its files. A configuration that is accepted survives being
// written and read again.

#include <string>

#include "fuzz/fuzz_target.h"
#include "store/run/journal.h"
#include "store/run/lease.h"
#include "store/run/names.h"
#include "thalia/error.h"
#include "thalia/store/config.h"
#include "thalia/store/run.h"

using namespace thalia;

namespace {
namespace store_target {

void read_config(std::string_view text, ConfigFormat format) {
  RunConfig config;
  try {
    config = parse_run_config(text, format, "run");
  } catch (const FormatError&) {
    return;
  } catch (const UnsupportedError&) {
    return;
  }
  for (const ConfigFormat other : {ConfigFormat::toml, ConfigFormat::json}) {
    const std::string written = run_config_text(config, other);
    FUZZ_REQUIRE(run_config_text(parse_run_config(written, other), other) == written);
  }
}

void read_lease(std::string_view text) {
  store::Lease lease;
  try {
    lease = store::parse_lease(text);
  } catch (const FormatError&) {
    return;
  }
  const std::string written = store::lease_text(lease);
  // Escapes may take more room than what they stand for.
  if (written.size() <= 4096) FUZZ_REQUIRE(store::parse_lease(written) == lease);
  FUZZ_REQUIRE(store::is_live(lease, lease.renewed_at));
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_config(text, ConfigFormat::toml);
  read_config(text, ConfigFormat::json);
  read_lease(text);

  const store::Journal journal = store::parse_journal(text);
  std::string again;
  for (const auto& [file, line] : journal.saved) again += store::journal_text(line);
  FUZZ_REQUIRE(store::parse_journal(again).saved.size() == journal.saved.size());

  if (const auto step = store::checkpoint_step(text, "train", "thalia"))
    FUZZ_REQUIRE(store::checkpoint_name("train", *step, "thalia") == text);
  if (const auto name = store::parse_pool_name(text, "thalia"))
    FUZZ_REQUIRE(store::pool_name(name->version, name->step, "thalia") == text ||
                 name->version < 10'000);
  is_run_id(text);
}

}  // namespace store_target
}  // namespace

FUZZ_TARGET(store)
