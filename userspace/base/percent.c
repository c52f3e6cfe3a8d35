/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/percent.h"

#include <string.h>

#include "base/parse.h"

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
