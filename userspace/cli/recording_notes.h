/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes for the user about a recording that was read: damage, a missing end, missing names. */
#ifndef CLI_RECORDING_NOTES_H
#define CLI_RECORDING_NOTES_H

#include <sysprof/exporter.h>

#include "stream/recording_file.h"

void print_recording_notes(const char *path, const struct recording_summary *summary,
			   const struct profile *profile);

/* What a file that was made of a profile does not have, one line each; `path`: of that file. */
void print_left_out(const char *path, const struct export_left_out *left_out);

#endif
