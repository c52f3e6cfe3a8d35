/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/hotspot/release.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/tenant_open.h"

#define RELEASE_MAX 4096u

/* JAVA_VERSION="17.0.9" in the text of a JDK's `release`. */
static void take_version(const char *text, char *version, size_t size)
{
	static const char key[] = "JAVA_VERSION=\"";
	const char *at = strstr(text, key);
	size_t used = 0;

	if (!at)
		return;
	for (at += sizeof(key) - 1; used + 1 < size; at++) {
		if (!isdigit((unsigned char)*at) && *at != '.' && *at != '_')
			break;
		version[used++] = *at;
	}
	version[used] = '\0';
}

/* It lies two directories above that of the library: lib/server/libjvm.so, or lib/amd64/server/ before 9. */
void hotspot_release__read(pid_t pid, const char *library, char *version, size_t size)
{
	_cleanup_close_ int root = tenant_root(pid);
	char path[PATH_MAX + 32], text[RELEASE_MAX];
	const char *slash = strrchr(library, '/');
	struct stat st;

	if (root < 0 || !slash)
		return;
	for (const char *up = "../../"; up && !*version;
	     up = strlen(up) < 12 ? "../../../../" : NULL) {
		_cleanup_close_ int fd = -1;
		ssize_t got;

		snprintf(path, sizeof(path), "%.*s/%srelease", (int)(slash - library), library, up);
		fd = tenant_open(root, path, 0, RELEASE_MAX, &st);
		got = fd < 0 ? -1 : pread_full(fd, text, sizeof(text) - 1, 0);
		text[got > 0 ? got : 0] = '\0';
		take_version(text, version, size);
	}
}
