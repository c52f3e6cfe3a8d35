/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_SPOOL_FILE_H
#define AGENT_SPOOL_FILE_H

#include <stddef.h>
#include <stdint.h>

struct sealed_window;
struct sink_request;
struct spool_file;
struct spool_head;

/* A copy in memory, of which nothing was sent. 0, -E2BIG, -ENOMEM. */
int spool_file__pack(const struct sealed_window *w, struct spool_file **file);
/*
 * Writes one from memory: temporary name, sync, rename, sync of the directory. Negative errno:
 * nothing is left behind, but for a directory that could not be synced.
 */
int spool_file__save(const struct spool_file *f, int directory, const char *temporary,
		     const char *name);
/* 0; -EBADMSG: no whole file of this format; -EPERM: not ours; other errors of open and read. */
int spool_file__open(int directory, const char *name, struct spool_file **file);
void spool_file__free(struct spool_file *f);

const struct spool_head *spool_file__head(const struct spool_file *f);

uint8_t spool_file__state(const struct spool_file *f, size_t i);
/* On disk it survives the end of this process, not that of the machine. */
void spool_file__set_state(struct spool_file *f, size_t i, uint8_t state);
/* With its body; the caller frees it by sink_request__fini(). 0, -EBADMSG: torn, -ENOMEM, … */
int spool_file__read(const struct spool_file *f, size_t i, struct sink_request *request);

#endif
