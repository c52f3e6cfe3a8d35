/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings for tests: how long a file finder waits, and its user. */
#ifndef SYMBOLIZE_FILE_FINDER_PRIVATE_H
#define SYMBOLIZE_FILE_FINDER_PRIVATE_H

#include <sys/types.h>

#include "symbolize/file_finder.h"

struct finder_limits {
	uint64_t silence_ns; /* without a word: it hangs */
	uint64_t user_ns;    /* that searching for one user's modules may take … */
	uint64_t others_ns; /* … and for those of all users but root; 0: by the table of quotas */
};

struct file_finder *file_finder__new_within(const struct finder_limits *limits);
/* 0: it has no child. */
pid_t file_finder__child(const struct file_finder *f);

#endif
