/* SPDX-License-Identifier: BSD-2-Clause */
/* Facts of a process, read by a reader: environment, command line, OpenTelemetry context. */
#ifndef LIVE_PROC_FACT_READER_H
#define LIVE_PROC_FACT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

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
 * Requests for facts. All of them are in the process's own memory, and reading that can block
 * (userfaultfd, files of FUSE), so a reader process reads it.
 */

#define FACT_NAMES_MAX 4096u /* bytes of all names of variables */

/*
 * `dir`: of the process, below /proc. `names`: the wanted variables, "A\0B\0". `with_context`: also
 * the OpenTelemetry context, for which all mappings are searched. 0, -EINVAL or -ENOMEM.
 */
int fact_reader__request(struct helper_pool *pool, unsigned int service, uint64_t owner, int dir,
			 const char *names, size_t names_size, bool with_context,
			 helper_answer_fn answer, void *context);
/* A helper_serve_fn. */
void fact_reader__serve(struct helper_job *job);
/* Adds the facts of an answer. False: there is none, or it is invalid. */
bool fact_reader__take(const struct helper_answer *answer, struct fact_text *facts);

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
