/* SPDX-License-Identifier: BSD-2-Clause */
/* What the user should know about a recording that was read: damage, a missing end, missing names. */
#ifndef CLI_RECORDING_NOTES_H
#define CLI_RECORDING_NOTES_H

#include <sysprof/profile.h>

#include "stream/recording_file.h"

void print_recording_notes(const char *path, const struct recording_summary *summary,
			   const struct profile *profile);

#endif
