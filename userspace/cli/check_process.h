/* SPDX-License-Identifier: BSD-2-Clause */
/* check -p: what of one process can be unwound and named, as text and as JSON. */
#ifndef CLI_CHECK_PROCESS_H
#define CLI_CHECK_PROCESS_H

#include "base/log.h"
#include "session/process_survey.h"

struct json_writer;

/* `stops`: why it cannot be recorded at all; what is empty: it can. */
void print_process(const struct process_survey *survey, const struct failure *stops);
/* The member "process". */
void write_process(const struct process_survey *survey, const struct failure *stops,
		   struct json_writer *w);

#endif
