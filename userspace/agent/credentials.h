/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef AGENT_CREDENTIALS_H
#define AGENT_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

struct credential_files;
struct credentials;
struct failure;

/* 0 or negative errno: `failure` names the file, and never its contents. */
int credentials__read(const struct credential_files *files, struct credentials *c,
		      struct failure *failure);
void credentials__fini(struct credentials *c);

/* Is a part of a secret in these bytes, so that they cannot be shown? */
bool credentials__are_in(const struct credentials *c, const void *data, size_t size);

#endif
