/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A table has for each byte whether it is written as it is; a run of such bytes is one copy.
 * Integers are not formatted by printf, which is slow and cannot divide nanoseconds exactly.
 */
#include "base/json_writer.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/utf8.h"

#define MAX_DECIMALS 9
#define NUMBER_SIZE  32 /* the sign, 20 digits, the point */

static void write_out(struct json_writer *w, const char *data, size_t size)
{
	if (w->error || !size)
		return;
	errno = 0;
	if (fwrite_unlocked(data, 1, size, w->out) != size)
		w->error = errno ? -errno : -EIO;
}

static void flush_buffer(struct json_writer *w)
{
	write_out(w, w->buffer, w->used);
	w->used = 0;
}

/* Room for `size` bytes, fewer than the buffer has; the caller adds what it wrote to w->used. */
static char *room_for(struct json_writer *w, size_t size)
{
	if (sizeof(w->buffer) - w->used < size)
		flush_buffer(w);
	return w->buffer + w->used;
}

static void write_bytes(struct json_writer *w, const char *data, size_t size)
{
	if (size > sizeof(w->buffer) / 2) {
		flush_buffer(w);
		write_out(w, data, size);
		return;
	}
	memcpy(room_for(w, size), data, size);
	w->used += size;
}

static void write_char(struct json_writer *w, char c)
{
	*room_for(w, 1) = c;
	w->used++;
}

void json_writer__init(struct json_writer *w, FILE *out)
{
	w->out = out;
	w->depth = 0;
	w->comma = false;
	w->error = 0;
	w->used = 0;
}

int json_writer__finish(struct json_writer *w)
{
	assert(w->error || !w->depth);
	flush_buffer(w);
	if (!w->error && ferror(w->out))
		w->error = -EIO;
	return w->error;
}

/* Writes the comma before a value that is not the first. */
static void begin_value(struct json_writer *w)
{
	if (w->comma)
		write_char(w, ',');
	w->comma = true;
}

static void begin_container(struct json_writer *w, char bracket)
{
	begin_value(w);
	write_char(w, bracket);
	w->depth++;
	w->comma = false;
}

static void end_container(struct json_writer *w, char bracket)
{
	assert(w->depth);
	write_char(w, bracket);
	w->depth--;
	w->comma = true;
}

void json_begin_object(struct json_writer *w)
{
	begin_container(w, '{');
}

void json_end_object(struct json_writer *w)
{
	end_container(w, '}');
}

void json_begin_array(struct json_writer *w)
{
	begin_container(w, '[');
}

void json_end_array(struct json_writer *w)
{
	end_container(w, ']');
}

/* Bytes that cannot be written as they are: NUL included, as it ends the string. */
static const bool is_special[256] = {
	[0 ... 0x1f] = true, [0x7f] = true, ['"'] = true, ['\\'] = true, [0x80 ... 0xff] = true,
};

/* Write one special character and return how many bytes of the text it was. */
static size_t write_special(struct json_writer *w, const char *s, size_t left)
{
	static const char digits[] = "0123456789abcdef";
	unsigned char byte = *s;
	size_t size;

	if (byte >= 0x80) {
		size = utf8_sequence(s, left);
		if (size)
			write_bytes(w, s, size);
		else
			write_bytes(w, "\xef\xbf\xbd", 3);
		return size ? size : 1;
	}
	if (byte == '"' || byte == '\\')
		write_bytes(w, (char[]){'\\', byte}, 2);
	else
		write_bytes(w, (char[]){'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]},
			    6);
	return 1;
}

static void write_text(struct json_writer *w, const char *s)
{
	const char *end = s + strlen(s);

	write_char(w, '"');
	while (s < end) {
		const char *run = s;

		while (!is_special[(unsigned char)*s])
			s++;
		write_bytes(w, run, s - run);
		if (s < end)
			s += write_special(w, s, end - s);
	}
	write_char(w, '"');
}

void json_key(struct json_writer *w, const char *key)
{
	begin_value(w);
	write_text(w, key);
	write_char(w, ':');
	w->comma = false;
}

void json_string(struct json_writer *w, const char *value)
{
	if (!value)
		return json_null(w);
	begin_value(w);
	write_text(w, value);
}

/* Two digits at a time: a division each. */
static const char two_digits[] = "00010203040506070809101112131415161718192021222324"
				 "25262728293031323334353637383940414243444546474849"
				 "50515253545556575859606162636465666768697071727374"
				 "75767778798081828384858687888990919293949596979899";

/* Digits of `value` that end at `end`, at least one; where they begin. */
static char *format_digits(char *end, uint64_t value)
{
	char *p = end;

	for (; value >= 100; value /= 100) {
		p -= 2;
		memcpy(p, &two_digits[2 * (value % 100)], 2);
	}
	if (value >= 10) {
		p -= 2;
		memcpy(p, &two_digits[2 * value], 2);
	} else {
		*--p = '0' + (char)value;
	}
	return p;
}

static uint64_t magnitude_of(int64_t value)
{
	return value < 0 ? -(uint64_t)value : (uint64_t)value;
}

/* A number whose text ends at `end` of a buffer of the caller's. */
static void write_number(struct json_writer *w, char *p, const char *end, bool negative)
{
	if (negative)
		*--p = '-';
	begin_value(w);
	write_bytes(w, p, (size_t)(end - p));
}

void json_int(struct json_writer *w, int64_t value)
{
	char text[NUMBER_SIZE], *end = text + sizeof(text);

	write_number(w, format_digits(end, magnitude_of(value)), end, value < 0);
}

void json_uint(struct json_writer *w, uint64_t value)
{
	char text[NUMBER_SIZE], *end = text + sizeof(text);

	write_number(w, format_digits(end, value), end, false);
}

/* value / 10^decimals, exactly, without zeros at the end. */
static void write_scaled(struct json_writer *w, int64_t value, unsigned int decimals,
			 uint32_t divisor)
{
	uint64_t magnitude = magnitude_of(value), whole = magnitude / divisor;
	uint32_t fraction = (uint32_t)(magnitude % divisor);
	char text[NUMBER_SIZE], *end = text + sizeof(text), *p = end;

	if (fraction) {
		for (; fraction % 10 == 0; fraction /= 10)
			decimals--;
		for (; decimals; decimals--, fraction /= 10)
			*--p = '0' + (char)(fraction % 10);
		*--p = '.';
	}
	write_number(w, format_digits(p, whole), end, value < 0);
}

void json_ns_as_ms(struct json_writer *w, int64_t value)
{
	write_scaled(w, value, 6, 1000000);
}

void json_ns_as_us(struct json_writer *w, int64_t value)
{
	write_scaled(w, value, 3, 1000);
}

void json_fixed(struct json_writer *w, double value, unsigned int decimals)
{
	char text[352]; /* DBL_MAX has 309 digits before the point */
	const char *p = text;
	size_t digits;

	if (!isfinite(value))
		return json_null(w);
	if (decimals > MAX_DECIMALS)
		decimals = MAX_DECIMALS;
	snprintf(text, sizeof(text), "%.*f", (int)decimals, value);
	if (*p == '-' && !strpbrk(p, "123456789"))
		p++; /* a value that rounds to zero has no sign */
	begin_value(w);
	digits = strspn(p, "-0123456789");
	write_bytes(w, p, digits);
	if (!decimals)
		return;
	write_char(w, '.'); /* whatever the locale has there */
	write_bytes(w, text + strlen(text) - decimals, decimals);
}

void json_bool(struct json_writer *w, bool value)
{
	begin_value(w);
	if (value)
		write_bytes(w, "true", 4);
	else
		write_bytes(w, "false", 5);
}

void json_null(struct json_writer *w)
{
	begin_value(w);
	write_bytes(w, "null", 4);
}

void json_raw(struct json_writer *w, const char *json, size_t size)
{
	begin_value(w);
	write_bytes(w, json, size);
}
