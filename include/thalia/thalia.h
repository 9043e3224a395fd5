// Checkpoints: reading, writing, changing, verifying and streaming .thalia files.
//
// The states of networks, and what is done to them: thalia/state.h. Other formats:
// thalia/formats.h. From C: thalia/c.h.
//
// A move from a Reader, a view or a handle leaves it usable. A writer or a stream that was moved
// from throws UsageError (wrong_state) when it is used.
#pragma once

#include "thalia/append.h"
#include "thalia/async_save.h"
#include "thalia/compress.h"
#include "thalia/error.h"
#include "thalia/files.h"
#include "thalia/options.h"
#include "thalia/reader.h"
#include "thalia/recover.h"
#include "thalia/region.h"
#include "thalia/result.h"
#include "thalia/side_file.h"
#include "thalia/storage.h"
#include "thalia/stream.h"
#include "thalia/tensor.h"
#include "thalia/text.h"
#include "thalia/types.h"
#include "thalia/verify.h"
#include "thalia/version.h"
#include "thalia/writer.h"
