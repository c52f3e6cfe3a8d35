/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/ca_file.h"

#include <stdlib.h>
#include <unistd.h>

static const char *const PLACES[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Arch, Alpine */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, Red Hat */
	"/etc/ssl/ca-bundle.pem",	      /* openSUSE */
	"/etc/ssl/cert.pem",		      /* Alpine without its package */
};

const char *ca_file__first(const char *const *paths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!access(paths[i], R_OK))
			return paths[i];
	return NULL;
}

const char *ca_file__of_system(void)
{
	const char *chosen = getenv("SSL_CERT_FILE");

	if (chosen && *chosen)
		return chosen;
	return ca_file__first(PLACES, sizeof(PLACES) / sizeof(PLACES[0]));
}
