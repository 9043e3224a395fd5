#include "cli/store/retention_arguments.h"

#include "cli/store/duration.h"

namespace thalia::cli {

void RetentionArguments::declare(CLI::App& app) {
  app.option_defaults()->group("Retention");
  add_option(app, "--keep N", keep, "Keep the N newest");
  add_option(app, "--every-steps N", every_steps, "Keep those whose step is a multiple of N");
  add_duration(app, "--every DURATION", every_seconds,
               "Keep the first one saved in each such span: 30min, 12h, 7d");
  add_option(app, "--keep-best K", best, "Keep the K with the best metrics");
  add_duration(app, "--max-age DURATION", max_age_seconds, "Remove what is older");
  app.add_option("--max-bytes", max_bytes,
                 "Remove the oldest until the others fit into this, as 20GiB")
      ->transform(size_value())
      ->option_text("SIZE");
  app.add_flag("--squash", squash,
               "A delta that stays becomes a full file, rather than keep what it is based on");
  app.option_defaults()->group("Options");
}

bool RetentionArguments::is_given() const noexcept {
  return keep || every_steps || every_seconds || best || max_age_seconds || max_bytes || squash;
}

RetentionPolicy RetentionArguments::apply(RetentionPolicy policy) const {
  if (keep || every_steps || every_seconds || best) {
    policy.keep_last = keep;
    policy.keep_every_steps = every_steps;
    policy.keep_every_seconds = every_seconds;
    policy.keep_best = best;
  }
  if (max_age_seconds) policy.max_age_seconds = max_age_seconds;
  if (max_bytes) policy.max_bytes = max_bytes;
  if (squash) policy.needed_bases = NeededBases::squash;
  return policy;
}

}  // namespace thalia::cli
