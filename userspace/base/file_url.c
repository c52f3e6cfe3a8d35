/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file_url.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/parse.h"

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

bool is_file_url(const char *text)
{
	return !strncmp(text, SCHEME "/", strlen(SCHEME "/"));
}

char *file_url_path(const char *url)
{
	char *path;

	if (!is_file_url(url))
		return NULL;
	url += strlen(SCHEME);
	path = strndup(url, strcspn(url, "?#"));
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

static bool is_alphanumeric(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

char *percent_encode(char *out, const char *text, const char *plain)
{
	static const char digits[] = "0123456789ABCDEF";

	for (; *text; text++) {
		if (is_alphanumeric(*text) || strchr(plain, *text)) {
			*out++ = *text;
			continue;
		}
		*out++ = '%';
		*out++ = digits[(unsigned char)*text >> 4];
		*out++ = digits[*text & 15];
	}
	*out = '\0';
	return out;
}

bool percent_decode(char *out, const char *text)
{
	bool good = true;

	while (*text) {
		int high = *text == '%' ? hex_digit(text[1]) : -1;
		int low = high >= 0 ? hex_digit(text[2]) : -1;
		bool is_escape = low >= 0 && (high || low);

		good &= is_escape || *text != '%';
		*out++ = is_escape ? (char)(high << 4 | low) : *text;
		text += is_escape ? 3 : 1;
	}
	*out = '\0';
	return good;
}
