/* SPDX-License-Identifier: BSD-2-Clause */
/* What Chrome's formats have no place for: figures of the whole recording, as a member of our own. */
#ifndef EXPORT_RECORDING_JSON_H
#define EXPORT_RECORDING_JSON_H

#include <sysprof/profile.h>

#include "base/json_writer.h"

/* The member "recording": times, clocks, stacks, books, losses. */
void write_recording(const struct profile *p, struct json_writer *w);

#endif
