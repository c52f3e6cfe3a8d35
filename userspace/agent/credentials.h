/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credentials for a backend. Read from files each time it is used, for tokens are rotated; kept in memory that no
 * dump shows, and only as long as a request takes.
 */
#ifndef AGENT_CREDENTIALS_H
#define AGENT_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

#define CREDENTIAL_HEADERS 16

/* NULL: none. The strings stay the caller's. */
struct credential_files {
	const char *bearer; /* a token */
	const char *basic;  /* "user:password" */
	const char *header; /* lines "Name: value" */
};

struct credentials {
	char *headers[CREDENTIAL_HEADERS]; /* "Authorization: Bearer …" */
	size_t header_count;
	char *secrets[CREDENTIAL_HEADERS + 1]; /* as they were in the files */
	size_t secret_count;
};

/* 0 or negative errno: `failure` names the file, and never its contents. */
int credentials__read(const struct credential_files *files, struct credentials *c,
		      struct failure *failure);
void credentials__fini(struct credentials *c);

/* Is a part of a secret in these bytes, so that they cannot be shown? */
bool credentials__are_in(const struct credentials *c, const void *data, size_t size);

#endif
