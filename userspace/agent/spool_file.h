/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A sealed window in a file, with a byte for the state of each of its requests. It is read request by request, so
 * that only one body is in memory. All of it is checked: it may be torn, or not ours.
 */
#ifndef AGENT_SPOOL_FILE_H
#define AGENT_SPOOL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent_window.h"

/* Of a request. Numbers are in files. */
enum request_state {
	REQUEST_UNSENT,
	REQUEST_UNSURE, /* sent, perhaps: there was no answer */
	REQUEST_ACCEPTED,
	REQUEST_RESENT, /* was unsure, and was sent again since, in vain: it did not arrive a second time */
	REQUEST_DROPPED = 16, /* and the verdict */
};

/* Bytes that a window takes in a file. */
uint64_t spool_file__size(const struct sealed_window *w);

/*
 * Write it under a temporary name, sync, rename, sync the directory. states: one for each request. 0 or negative errno:
 * then nothing is left behind, but for a directory that could not be synced.
 */
int spool_file__write(int directory, const char *temporary, const char *name,
		      const struct sealed_window *w, const uint8_t *states);

struct spool_file;

/* 0; -EBADMSG: no whole file of this format; -EPERM: not a file of ours; other errors of opening and reading. */
int spool_file__open(int directory, const char *name, struct spool_file **file);
void spool_file__free(struct spool_file *f);

uint64_t spool_file__start(const struct spool_file *f); /* ns since the epoch, of the window */
uint64_t spool_file__bytes(const struct spool_file *f);
size_t spool_file__count(const struct spool_file *f);
uint8_t spool_file__state(const struct spool_file *f, size_t i);
/* Survives the end of this process, not that of the machine: 0 or negative errno. */
int spool_file__set_state(struct spool_file *f, size_t i, uint8_t state);
/* With its body; the caller frees it by sink_request__fini(). 0, -EBADMSG, -ENOMEM, … */
int spool_file__read(const struct spool_file *f, size_t i, struct sink_request *request);

#endif
