/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts of a process, read by a reader: environment, command line, OpenTelemetry context. */
#ifndef LIVE_PROC_FACT_READER_H
#define LIVE_PROC_FACT_READER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "services/users.h"
#include "tenants/pool.h"

/* The text of an EVENT_FACTS being made: "key\0value\0" again and again, in `room` bytes. */
#define FACT_VALUE_MAX                                                                             \
	3072u /* bytes: a longer one is left out, since a part of it would be wrong */

struct fact_text {
	char *text;
	size_t room, size;
	unsigned int count, most;
	unsigned int left; /* what a limit has left out: values, and texts that were cut off */
};

/*
 * `prefix` and `key` are texts; the value ends at its first NUL or after value_size bytes. False:
 * no room, too long, or a duplicate key: the first one counts.
 */
static inline bool fact_text__add(struct fact_text *t, const char *prefix, const char *key,
				  const char *value, size_t value_size)
{
	size_t first = strlen(prefix), second = strlen(key);
	char *at = t->text + t->size;

	value_size = strnlen(value, value_size);
	if (!(first + second))
		return false;
	if (value_size > FACT_VALUE_MAX || t->count == t->most ||
	    first + second + value_size + 2 > t->room - t->size) {
		t->left++;
		return false;
	}
	memcpy(at, prefix, first);
	memcpy(at + first, key, second + 1);
	for (const char *known = t->text; known < at; known += strlen(known) + 1) {
		if (!strcmp(known, at))
			return false;
		known += strlen(known) + 1;
	}
	memcpy(at + first + second + 1, value, value_size);
	at[first + second + 1 + value_size] = '\0';
	t->size += first + second + value_size + 2;
	t->count++;
	return true;
}

/*
 * Readings of processes. Its program and user are read at once. The rest is in the process's own
 * memory, and reading that can block (userfaultfd, files of FUSE), so a reader process reads it.
 */

struct fact_readers;

struct fact_readers_options {
	struct helper_pool *pool; /* ended before free */
	unsigned int service;	  /* fact_reader__serve among theirs */
	/* Variables to read beside environment_names; copied. */
	const char *const *names;
	size_t name_count;
	bool owners; /* also the user, and names of the container and pod */
};

/* 0, -EINVAL: an invalid name, or too many; -ENOMEM. */
int fact_readers__new(const struct fact_readers_options *options, struct fact_readers **readers);
void fact_readers__free(struct fact_readers *f);

/* What was read at once. */
struct fact_reading {
	uint64_t since;
	char user[USER_NAME_SIZE]; /* "": it is not wanted, or the process is gone */
	char path[PATH_MAX];	   /* of the program; "": it is too long */
};

/* `dir`: of the process or one of its threads, below /proc. False: it is gone, or of the kernel. */
bool fact_reading__begin(struct fact_reading *r, const struct fact_readers *f, int dir, pid_t pid);
bool fact_reading__program(int dir, char path[PATH_MAX]);
/* But for the program that a loader has loaded: that is read by a reader. */
void fact_reading__add(const struct fact_reading *r, struct fact_text *facts);

#define FACT_CONTEXT 1u /* also the OpenTelemetry context, for which all mappings are searched */
#define FACT_HELD    2u /* events wait for the answer: helper_request.holds */

/* `dir`: as above. `wanted`: FACT_…. 0 or -ENOMEM. */
int fact_readers__request(const struct fact_readers *f, uint64_t owner, int dir,
			  unsigned int wanted, helper_answer_fn answer, void *context);
/* Adds all facts. False: there is no answer, or it is invalid. */
bool fact_reading__take(const struct fact_reading *r, const struct helper_answer *answer,
			struct fact_text *facts);

/* A helper_serve_fn. */
void fact_reader__serve(struct helper_job *job);

/*
 * The environment of a process. Only listed variables are read: any other may be a secret. The
 * process can change the text at any time.
 */

#define ENVIRONMENT_SIZE_MAX (256u * 1024) /* bytes; what is behind is counted as left */
#define ENVIRONMENT_NAME_MAX 64

/* The list that is always looked for; NULL-ended. */
extern const char *const environment_names[];

/*
 * The program of an interpreter: its script, module or main class. Nothing else of the command line
 * is kept, because arguments can be secrets.
 */

#define COMMAND_LINE_SIZE_MAX (64u * 1024) /* bytes; what is behind is counted as left */
#define COMMAND_SUBJECT_SIZE  256

/*
 * The process context of OpenTelemetry's libraries (OTEP 4719): a named mapping whose header points
 * at a protobuf message with attributes. Both are the process's own memory: a read may block, and
 * every size, pointer and byte may be forged.
 */

#define OTEL_CONTEXT_SIZE_MAX (16u * 1024) /* bytes of the message */

#endif
