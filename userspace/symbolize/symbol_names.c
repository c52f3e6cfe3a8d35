/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long names of an index, packed: blocks of names, each with its NUL. Neighbours share namespaces
 * and types, so a piece that the block has already is a distance and a length, as in LZ4.
 *
 * A block is a series of: a byte with two numbers, of literals (<< 4) and of the copy (length -
 * COPY_MIN + 1; 0: none); the rest of the first if it is LONG; the literals; the rest of the second
 * if that is LONG; the copy's distance.
 */
#include "symbolize/symbol_names.h"

#include <stdbool.h>
#include <string.h>

#include "base/wire.h"
#include "symbolize/symbol_index_private.h"

#define COPY_MIN   4
#define LONG	   15
#define TABLE_BITS 11
#define STEP	   8

_Static_assert(NAMES_UNPACKED_MAX >= NAMES_BLOCK + STEP, "words fit");

static uint32_t word_at(const char *text)
{
	uint32_t word;

	memcpy(&word, text, sizeof(word));
	return word;
}

static size_t put_piece(unsigned char *to, const char *literals, size_t count, size_t copied,
			size_t distance)
{
	size_t size = 1, copy = copied ? copied - COPY_MIN + 1 : 0;

	to[0] = (unsigned char)((count < LONG ? count : LONG) << 4 | (copy < LONG ? copy : LONG));
	if (count >= LONG)
		size += wire_put_varint(to + size, count - LONG);
	memcpy(to + size, literals, count);
	size += count;
	if (copy >= LONG)
		size += wire_put_varint(to + size, copy - LONG);
	return copy ? size + wire_put_varint(to + size, distance) : size;
}

size_t names_pack(const char *names, size_t size, unsigned char *to)
{
	uint16_t last[1 << TABLE_BITS] = {}; /* place + 1 of a word, by its hash */
	size_t at = 0, done = 0, written = 0;

	while (at + COPY_MIN <= size) {
		uint32_t word = word_at(names + at);
		uint16_t *place = &last[word * UINT32_C(2654435761) >> (32 - TABLE_BITS)];
		size_t from = *place, length = COPY_MIN;

		*place = (uint16_t)(at + 1);
		if (!from-- || word_at(names + from) != word) {
			at++;
			continue;
		}
		while (at + length < size && names[from + length] == names[at + length])
			length++;
		written += put_piece(to + written, names + done, at - done, length, at - from);
		at += length;
		done = at;
	}
	return done == size ? written
			    : written + put_piece(to + written, names + done, size - done, 0, 0);
}

/* False: it does not end, or is larger than a block. */
static bool take_rest(const unsigned char **at, const unsigned char *end, size_t *number)
{
	unsigned int shift = 0;

	if (*number < LONG)
		return true;
	for (; *at < end && shift < 21; shift += 7) {
		unsigned char byte = *(*at)++;

		*number += (size_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* By words, up to STEP - 1 bytes more; an overlapping word must be whole before it is copied. */
static void copy_words(char *to, const char *from, size_t length)
{
	for (size_t i = 0; i < length; i += STEP)
		memcpy(to + i, from + i, STEP);
}

static void copy_back(char *to, size_t distance, size_t length)
{
	const char *from = to - distance;

	if (distance >= STEP)
		copy_words(to, from, length);
	else
		for (size_t i = 0; i < length; i++)
			to[i] = from[i];
}

/* One piece, behind `length` bytes of `to`. False: it is damaged. */
static bool take_piece(const unsigned char **at, const unsigned char *end, char *to, size_t *length)
{
	size_t literals = **at >> 4, copy = *(*at)++ & LONG, distance = 1;

	if (!take_rest(at, end, &literals) || literals > (size_t)(end - *at) ||
	    literals > NAMES_BLOCK - *length)
		return false;
	if ((size_t)(end - *at) >= literals + STEP)
		copy_words(to + *length, (const char *)*at, literals);
	else
		memcpy(to + *length, *at, literals);
	*at += literals;
	*length += literals;
	if (!copy)
		return true;
	if (!take_rest(at, end, &copy) || *at == end)
		return false;
	copy += COPY_MIN - 1;
	distance = *(*at)++;
	if (distance & 0x80) {
		if (*at == end)
			return false;
		distance = (distance & 0x7f) | (size_t) * (*at)++ << 7;
	}
	if (!distance || distance > *length || copy > NAMES_BLOCK - *length)
		return false;
	copy_back(to + *length, distance, copy);
	*length += copy;
	return true;
}

size_t names_unpack(const unsigned char *at, size_t size, char *to, size_t wanted)
{
	const unsigned char *end = at + size;
	size_t length = 0;

	while (at < end) {
		if (!take_piece(&at, end, to, &length))
			return 0;
		if (length > wanted && memchr(to + wanted, '\0', length - wanted))
			break;
	}
	to[length] = '\0';
	return length;
}
