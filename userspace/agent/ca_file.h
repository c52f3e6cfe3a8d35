/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a system keeps the certificates of the authorities that it trusts. Distributions disagree, and a libcurl that
 * is linked into the static program has to do on all of them.
 */
#ifndef AGENT_CA_FILE_H
#define AGENT_CA_FILE_H

#include <stddef.h>

/* The first of these files that can be read; NULL: none. */
const char *ca_file__first(const char *const *paths, size_t count);

/* That of this system, or the one that SSL_CERT_FILE names; NULL: there is none. Good until the environment changes. */
const char *ca_file__of_system(void);

#endif
