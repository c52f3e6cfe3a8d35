/* SPDX-License-Identifier: BSD-2-Clause */
/* The output's place: determined by output_place.c, used by output_file.c. */
#ifndef BASE_OUTPUT_PRIVATE_H
#define BASE_OUTPUT_PRIVATE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/output_file.h"

struct directory {
	int fd; /* O_PATH; -1: none */
	char *path;
};

void directory__close(struct directory *d);
int directory__copy(const struct directory *d, struct directory *copy);

enum place_kind {
	PLACE_FILE,    /* a regular file, or nothing yet */
	PLACE_STDOUT,  /* "-" */
	PLACE_SPECIAL, /* a pipe, a terminal, /dev/null */
	PLACE_MAGIC,   /* the same, behind a link of procfs, which is more than its text */
};

struct output_place {
	enum place_kind kind;
	struct directory named; /* by the path */
	struct directory real;	/* behind all links; `name` is in it */
	char *name;
};

static inline bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Another user has put this link or pipe into a world-writable directory. */
bool is_strangers(const struct directory *d, const struct stat *file);

#endif
