/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/label_text.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/minmax.h"
#include "base/file_url.h"
#include "base/utf8.h"

#define ATTRIBUTES_MAX 4096 /* bytes of the whole text */

bool label_name_is_valid(const char *name)
{
	size_t length = strnlen(name, AGENT_LABEL_NAME_MAX + 1);

	if (!length || length > AGENT_LABEL_NAME_MAX || isdigit((unsigned char)*name) ||
	    !strncmp(name, "__", 2))
		return false;
	for (size_t i = 0; i < length; i++)
		if ((!isalnum((unsigned char)name[i]) && name[i] != '_') || name[i] & 0x80)
			return false;
	return true;
}

static uint32_t code_point(const char *s, size_t length)
{
	const unsigned char *b = (const unsigned char *)s;
	uint32_t code = length == 1 ? *b : *b & (0x7f >> length);

	for (size_t i = 1; i < length; i++)
		code = code << 6 | (b[i] & 0x3f);
	return code;
}

/*
 * Controls, C1 too; what ends a line for some readers; and invisible characters, or what turns the direction of writing: two
 * names would look the same, or one like another.
 */
static bool is_control(const char *s, size_t length)
{
	static const struct {
		uint32_t first, last;
	} ranges[] = {
		{0x0, 0x1f},	  {0x7f, 0x9f},	    {0xad, 0xad},	{0x61c, 0x61c},
		{0x180e, 0x180e}, {0x200b, 0x200f}, {0x2028, 0x202e},	{0x2060, 0x206f},
		{0xfeff, 0xfeff}, {0xfff9, 0xffff}, {0xe0000, 0xe0fff},
	};
	uint32_t code = code_point(s, length);

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (code >= ranges[i].first && code <= ranges[i].last)
			return true;
	return false;
}

bool label_value_set(char *value, size_t size, const char *text)
{
	size_t room = min_u64(size, AGENT_LABEL_VALUE_MAX + 1) - 1, used = 0, left;

	text += strspn(text, " \t\r\n");
	left = strnlen(text, 4 * AGENT_LABEL_VALUE_MAX);
	while (left && strchr(" \t\r\n", text[left - 1]))
		left--;
	while (left) {
		size_t length = utf8_sequence(text, left);
		bool bad = !length || is_control(text, length);

		length = length ? length : 1;
		if (used + (bad ? 1 : length) > room)
			break;
		memcpy(value + used, bad ? "_" : text, bad ? 1 : length);
		used += bad ? 1 : length;
		text += length;
		left -= length;
	}
	while (used && value[used - 1] == ' ')
		used--;
	value[used] = '\0';
	return used > 0;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && (text[length - 1] == ' ' || text[length - 1] == '\t'))
		text[--length] = '\0';
	return text;
}

bool resource_attribute(const char *text, const char *name, char *value, size_t size)
{
	char copy[ATTRIBUTES_MAX], *next = copy, *pair;
	const char *found = NULL;
	size_t length = strnlen(text, sizeof(copy));

	if (length == sizeof(copy))
		return false;
	memcpy(copy, text, length + 1);
	while ((pair = strsep(&next, ","))) {
		char *equal = strchr(pair, '=');

		if (!*trim(pair) && !next) /* a comma at the end */
			break;
		if (!equal)
			return false;
		*equal = '\0';
		if (!*trim(pair) || !percent_decode(equal + 1, equal + 1))
			return false;
		if (!strcmp(trim(pair), name))
			found = trim(equal + 1);
	}
	return found && label_value_set(value, size, found);
}
