// The state of a network in memory: saved, loaded, grown, pruned, compared, quantized.
#pragma once

#include "thalia/state/brain.h"
#include "thalia/state/checkpoint.h"
#include "thalia/state/delta.h"
#include "thalia/state/diff.h"
#include "thalia/state/edit.h"
#include "thalia/state/growth.h"
#include "thalia/state/low_rank.h"
#include "thalia/state/metadata.h"
#include "thalia/state/precision.h"
#include "thalia/state/quantization.h"
#include "thalia/state/tensor_value.h"
#include "thalia/state/value.h"
#include "thalia/types.h"
