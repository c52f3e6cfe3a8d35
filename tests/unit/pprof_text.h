/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of protocol buffers that are written as text: FIELD=NUMBER, FIELD="bytes", FIELD='a string of pprof' (its
 * number), FIELD=[packed numbers], FIELD={a message}, with *N behind what comes N times.
 */
#ifndef TESTS_UNIT_PPROF_TEXT_H
#define TESTS_UNIT_PPROF_TEXT_H

#include "text_cases.h"

/* Strings have numbers in the order of their first use; their table is field 6 at the end. */
static const char *pprof_strings[64];
static size_t pprof_string_count;

static inline void put_varint(FILE *out, uint64_t value)
{
	for (; value > 0x7f; value >>= 7)
		fputc((int)(value & 0x7f) | 0x80, out);
	fputc((int)value, out);
}

static inline void put_bytes(FILE *out, unsigned int field, const void *bytes, size_t size)
{
	put_varint(out, field << 3 | 2);
	put_varint(out, size);
	fwrite(bytes, 1, size, out);
}

static inline uint64_t pprof_string(const char *text)
{
	size_t i = 1;

	while (i < pprof_string_count && strcmp(pprof_strings[i], text))
		i++;
	assert_true(i < 64);
	if (i >= pprof_string_count) {
		pprof_strings[i] = text;
		pprof_string_count = i + 1;
	}
	return i;
}

static inline char *encode_message(FILE *out, char *at);

/* Up to the bracket that closes. */
static inline char *encode_inner(FILE *out, char *at, char closing)
{
	if (closing == '}')
		return encode_message(out, at);
	while (*at != closing) {
		uint64_t number = (uint64_t)strtoll(at, &at, 0);
		size_t times = *at == '*' ? strtoul(at + 1, &at, 10) : 1;

		while (times--)
			put_varint(out, number);
		at += *at == ' ';
	}
	return at + 1;
}

static inline char *encode_field(FILE *out, unsigned int field, char *at)
{
	char *bytes = NULL, *text = at + 1;
	uint64_t number;
	size_t size, times;

	if (*at == '{' || *at == '[') {
		FILE *inner = open_memstream(&bytes, &size);

		at = encode_inner(inner, text, *at == '{' ? '}' : ']');
		fclose(inner);
		times = *at == '*' ? strtoul(at + 1, &at, 10) : 1;
		while (times--)
			put_bytes(out, field, bytes, size);
		free(bytes);
	} else if (*at == '"') {
		at = strchr(text, '"') + 1;
		size = (size_t)(at - 1 - text);
		times = *at == '*' ? strtoul(at + 1, &at, 10) : 1;
		put_varint(out, field << 3 | 2);
		put_varint(out, size * times);
		while (times--)
			fwrite(text, 1, size, out);
	} else {
		put_varint(out, field << 3);
		if (*at == '\'') {
			at = strchr(text, '\'');
			*at++ = '\0';
			number = pprof_string(text);
		} else {
			number = strtoull(at, &at, 0);
		}
		put_varint(out, number);
	}
	return at;
}

static inline char *encode_message(FILE *out, char *at)
{
	while (*at && *at != '}') {
		unsigned int field = (unsigned int)strtoul(at, &at, 10);

		assert_int_equal(*at, '=');
		at = encode_field(out, field, at + 1);
		at += strspn(at, " \n");
	}
	return at + (*at == '}');
}

/* A file of pprof; the text is changed. */
static inline char *encode_pprof(char *text, size_t *size)
{
	char *bytes = NULL;
	FILE *out = open_memstream(&bytes, size);

	pprof_string_count = 1;
	encode_message(out, text);
	if (pprof_string_count > 1)
		put_bytes(out, 6, "", 0);
	for (size_t k = 1; k < pprof_string_count; k++)
		put_bytes(out, 6, pprof_strings[k], strlen(pprof_strings[k]));
	fclose(out);
	return bytes;
}

#endif
