// The store: the folder of a training run, with its checkpoints, what is kept of them, and always
// one good checkpoint to return to.
//
//   thalia::create_run("runs/" + thalia::run_id(now, seed), thalia::hydra_config());
//   thalia::RunWriter run("runs/20260115_143022_a1b2c3d4");
//   run.save("phase1", step, brain, {.metric = loss});
//
// docs/format/store.md.
#pragma once

#include "thalia/store/config.h"
#include "thalia/store/follow.h"
#include "thalia/store/pool.h"
#include "thalia/store/publish.h"
#include "thalia/store/repair.h"
#include "thalia/store/retention.h"
#include "thalia/store/run.h"
#include "thalia/store/transition.h"
#include "thalia/store/writer.h"
