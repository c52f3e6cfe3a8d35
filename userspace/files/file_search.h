/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reader's search for the file of a mapping (see dso_opener.h): it finds the file and opens it. A
 * question and its finding are plain bytes, so they can pass between processes.
 */
#ifndef FILES_FILE_SEARCH_H
#define FILES_FILE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <sysprof/event.h>

#include "files/moved_text.h"

struct helper_job;

struct build_id {
	uint8_t size; /* 0: none */
	uint8_t bytes[BUILD_ID_SIZE];
	bool left; /* a limit ended the search for it */
};

static inline bool build_id_equal(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static inline void build_id_set(struct build_id *id, const uint8_t *bytes, size_t size)
{
	id->size = size > BUILD_ID_SIZE ? BUILD_ID_SIZE : size;
	id->left = false;
	memset(id->bytes, 0, sizeof(id->bytes));
	if (id->size > 0)
		memcpy(id->bytes, bytes, id->size);
}

/* Sets the build-id of the event, if there is one. */
void build_id_report(const struct build_id *id, struct mmap_event *event);

struct file_numbers {
	uint32_t major, minor;
	uint64_t inode, generation;
};

static inline bool same_inode(const struct file_numbers *a, const struct file_numbers *b)
{
	return a->inode == b->inode && a->major == b->major && a->minor == b->minor;
}

/* Of a mapping, which may have none. */
struct build_id mapping_build_id(const struct mmap_event *event);
struct file_numbers mapping_numbers(const struct mmap_event *event);
/* Is the mapped file called so, but for " (deleted)"? */
bool mapping_has_path(const struct mmap_event *event, const char *path);

/* The directories below which it is searched for, in this order: descriptors of the question. */
enum search_root {
	SEARCH_PROCESS, /* the root of the process that has the mapping, or its map_files */
	SEARCH_PARENT,	/* if that is gone */
	SEARCH_OWN,	/* ours: only files of the administrator, see file_finding.shared */
	SEARCH_ROOTS,
	SEARCH_MAPPED = SEARCH_ROOTS /* in a finding: none led to it, but the mapping did */
};

/*
 * A mapping, and whose file it is: that with its build-id, or without one with its inode. With
 * pid 0 no live process has it. If it was read from /proc (EVENT_FROM_PROC) or shows another device
 * than the file, a file that is still mapped there by that name is right, too.
 */
struct file_question {
	uint64_t copy_max; /* bytes that a copy of the file may have */
	bool has_root[SEARCH_ROOTS];
	bool moved; /* search for the file whose text this memory has (moved_text.h) */
	struct mmap_event_space mapping;
};

struct file_finding {
	int32_t err;	   /* 0, or why there is none: negative errno */
	uint8_t state;	   /* enum file_state */
	uint8_t root;	   /* which of the roots; SEARCH_MAPPED */
	bool shortened;	   /* the name without " (deleted)" led to it */
	bool elf, archive; /* what it is; neither: something else */
	bool copy_too_big; /* the last file that could not be copied exceeds copy_max */
	bool shared;	   /* only the administrator can write it and can have put it there */
	struct build_id build_id;
	/* of the file itself, also where a copy of it is what came */
	uint64_t device, inode, size;
	struct timespec modified, changed;
	uint64_t copied;	 /* bytes, if it is a copy in memory: without its holes */
	struct moved_text moved; /* of an anonymous mapping */
};

/* Bytes of the finding that say something. */
size_t file_finding__size(const struct file_finding *finding);

/*
 * `roots`: descriptors, -1: none. 0 and a descriptor that no tenant can block: of the file if its
 * file system is local, else of a copy in memory; or -1 and finding->err. May sleep for ever.
 */
int file_search__find(const struct file_question *question, const int roots[SEARCH_ROOTS],
		      struct file_finding *finding);

/* A helper_serve_fn. The question's roots come as descriptors, in their order. */
void file_search__serve(struct helper_job *job);
/* Bytes of the question that say something. */
size_t file_question__size(const struct file_question *question);

/* Of the ELF file that begins at `base`. False: none does. */
bool file_search__read_build_id(int fd, uint64_t base, struct build_id *id);
/* A file that no path leads to. */
bool file_search__is_nameless(const char *path);
/* A mapping for which no file can be found. */
bool file_search__is_hopeless(const char *path);

#endif
