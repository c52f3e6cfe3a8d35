/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of tracks with stacks of their own: of waits and of interrupts. */
#ifndef FORMATS_OUT_FIREFOX_WAITS_H
#define FORMATS_OUT_FIREFOX_WAITS_H

#include <stddef.h>
#include <stdint.h>

struct firefox;
struct firefox_row;
struct firefox_tables;
struct tracks;

int firefox_waits__collect(struct firefox_tables *t, const struct tracks *tracks);
/* What a stack of its own consists of: its innermost frame, and the row of the rest, or -1. */
void firefox_wait_stack__parts(const struct firefox_tables *t, size_t number, uint32_t *frame,
			       int64_t *parent);
/* When all other rows have their numbers. 0, -ENOMEM, -EOVERFLOW. */
int firefox_waits__number(struct firefox_tables *t);
uint32_t firefox_row__stack(const struct firefox_tables *t, const struct firefox_row *row);

/* Rows of a track, its waits among them, into f->rows. 0, -ENOMEM. */
int firefox__collect_rows(struct firefox *f, size_t track);

#endif
