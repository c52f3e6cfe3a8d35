/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who can have written the debug information of a module: its own file, its debug file, the dwz file and
 * .dwo files. What they name is opened for them, see source_file.h.
 */
#ifndef SYMBOLIZE_DEBUG_WRITERS_H
#define SYMBOLIZE_DEBUG_WRITERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Zeroed: root alone. */
struct debug_writers {
	uint32_t user;	 /* the one beside root; 0: there is none */
	bool is_several; /* more users than this one, or it is unknown who */
};

/* One more user; of 0 nothing changes, because root can read everything. */
void debug_writers__add(struct debug_writers *w, uint32_t user);
/* Those of a file: its owner, and all that its mode lets write. A group with the owner's number is the owner's. */
void debug_writers__add_file(struct debug_writers *w, const struct stat *st);
void debug_writers__add_all(struct debug_writers *w, const struct debug_writers *other);

/* The user whose own files may be opened; 0: only what all users may read. */
uint32_t debug_writers__reader(const struct debug_writers *w);

#endif
