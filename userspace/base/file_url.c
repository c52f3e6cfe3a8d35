/* SPDX-License-Identifier: BSD-2-Clause */
/* file:// URLs: percent-encoding, byte by byte, with upper-case digits. */
#include "base/file_url.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "/-._~!$&'()*+,;=:@";
	static const char digits[] = "0123456789ABCDEF";
	char *url = malloc(strlen(SCHEME) + 3 * strlen(path) + 1), *out;

	if (!url)
		return NULL;
	out = stpcpy(url, SCHEME);
	for (; *path; path++) {
		uint8_t byte = (uint8_t)*path;

		if (strchr(plain, *path)) {
			*out++ = *path;
			continue;
		}
		*out++ = '%';
		*out++ = digits[byte >> 4];
		*out++ = digits[byte & 15];
	}
	*out = '\0';
	return url;
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

char *file_url_decode(const char *url)
{
	_cleanup_free_ char *path = NULL, *again = NULL;
	char *out;

	if (strncmp(url, SCHEME "/", strlen(SCHEME "/")))
		return strdup(url);
	path = malloc(strlen(url) + 1);
	if (!path)
		return NULL;
	out = path;
	for (const char *in = url + strlen(SCHEME); *in; in++) {
		int high = *in == '%' ? digit_value(in[1]) : -1;
		int low = high >= 0 ? digit_value(in[2]) : -1;

		if (low < 0 || !(high | low)) {
			*out++ = *in;
			continue;
		}
		*out++ = (char)(high << 4 | low);
		in += 2;
	}
	*out = '\0';
	again = file_url_encode(path);
	if (!again)
		return NULL;
	return strcmp(again, url) ? strdup(url) : steal_ptr(path);
}
