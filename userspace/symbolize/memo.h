/* SPDX-License-Identifier: BSD-2-Clause */
/* Places of strings -> texts that were made from them. */
#ifndef SYMBOLIZE_MEMO_H
#define SYMBOLIZE_MEMO_H

struct memo;

struct memo *memo__new(void); /* NULL: no memory */
void memo__free(struct memo *m);

/* The result for this address, or NULL. Valid until the memo is freed. */
const char *memo__get(const struct memo *m, const void *place);
/* Keep a copy of `text`; NULL: no memory. */
const char *memo__put(struct memo *m, const void *place, const char *text);

#endif
