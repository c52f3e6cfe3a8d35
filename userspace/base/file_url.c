/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file_url.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/percent.h"

#define SCHEME "file://"

bool url_has_scheme(const char *text)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789+-.";
	/* one letter and a colon is a drive of Windows; two are a name of C++ */
	size_t size = strspn(text, others);

	return size > 1 && strchr(letters, *text) && text[size] == ':' && text[size + 1] != ':';
}

char *file_url_encode(const char *path)
{
	char *url = malloc(strlen(SCHEME) + 3 * strlen(path) + 1);

	if (url)
		percent_encode(stpcpy(url, SCHEME), path, "/-._~!$&'()*+,;=:@");
	return url;
}

char *file_url_path(const char *url)
{
	char *path;

	if (strncmp(url, SCHEME "/", strlen(SCHEME "/")))
		return NULL;
	path = strdup(url + strlen(SCHEME));
	if (path)
		(void)percent_decode(path, path);
	return path;
}

char *file_url_decode(const char *url)
{
	_cleanup_free_ char *path = file_url_path(url),
			    *again = path ? file_url_encode(path) : NULL;

	return again && !strcmp(again, url) ? steal_ptr(path) : strdup(url);
}
