/* SPDX-License-Identifier: BSD-2-Clause */
/* Strict parsing: every function accepts the whole text or nothing of it. */
#include "base/parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Digits at *cursor, moving it behind them. -EINVAL: none; -ERANGE: more than 64 bits. */
static int take_u64(const char **cursor, uint64_t *value)
{
	const char *p = *cursor;
	uint64_t sum = 0;
	bool overflow = false;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++) {
		overflow |= __builtin_mul_overflow(sum, 10, &sum) ||
			    __builtin_add_overflow(sum, (uint64_t)(*p - '0'), &sum);
	}
	*cursor = p; /* also on overflow: what follows decides between -EINVAL and -ERANGE */
	if (overflow)
		return -ERANGE;
	*value = sum;
	return 0;
}

int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	uint64_t number;
	int err = take_u64(&text, &number);

	if (err == -EINVAL || *text)
		return -EINVAL;
	if (err || number < min || number > max)
		return -ERANGE;
	*value = number;
	return 0;
}

/* The digits behind the point, as ns; digits below 1 ns are read and dropped. */
static int take_fraction(const char **cursor, uint64_t *nanoseconds)
{
	const char *p = *cursor;
	uint64_t unit = NS_PER_SECOND / 10, sum = 0;

	if (!is_digit(*p))
		return -EINVAL;
	for (; is_digit(*p); p++, unit /= 10)
		sum += unit * (*p - '0');
	*cursor = p;
	*nanoseconds = sum;
	return 0;
}

int parse_seconds(const char *text, uint64_t *nanoseconds)
{
	uint64_t seconds = 0, fraction = 0, total;
	int err = *text == '.' ? 0 : take_u64(&text, &seconds);

	if (err == -EINVAL)
		return err;
	if (*text == '.') {
		text++;
		if (take_fraction(&text, &fraction))
			return -EINVAL;
	}
	if (*text)
		return -EINVAL;
	if (err || __builtin_mul_overflow(seconds, NS_PER_SECOND, &total) ||
	    __builtin_add_overflow(total, fraction, &total) || !total)
		return -ERANGE;
	*nanoseconds = total;
	return 0;
}

int parse_share(const char *text, double *share)
{
	uint64_t whole = 0, billionths = 0;
	int err = *text == '.' ? 0 : take_u64(&text, &whole);
	double value;

	if (!err && *text == '.') {
		text++;
		err = take_fraction(&text, &billionths);
	}
	if (err)
		return err;
	value = (double)whole + (double)billionths / NS_PER_SECOND;
	if (*text == '%') {
		value /= 100;
		text++;
	}
	if (*text)
		return -EINVAL;
	if (value > 1)
		return -ERANGE;
	*share = value;
	return 0;
}

/* One number of a list, and whether it is in min..max. */
static int take_u32(const char **cursor, uint32_t min, uint32_t max, uint32_t *value)
{
	uint64_t number;
	int err = take_u64(cursor, &number);

	if (err)
		return err;
	if (number < min || number > max)
		return -ERANGE;
	*value = number;
	return 0;
}

int parse_u32_list(const char *text, uint32_t min, uint32_t max, uint32_t **values, size_t *count)
{
	VEC(uint32_t) list = {};
	uint32_t value;
	int err;

	for (;; text++) {
		err = take_u32(&text, min, max, &value) ?: vec_push(&list, value);
		if (err)
			goto err_out;
		if (*text != ',')
			break;
	}
	if (*text) {
		err = -EINVAL;
		goto err_out;
	}
	*values = list.data;
	*count = list.count;
	return 0;
err_out:
	vec_free(&list);
	return err;
}

struct range {
	uint32_t first, last;
};

DEFINE_ORDER(compare_ranges, struct range, ASCENDING(first));

static int take_range(const char **cursor, uint32_t max, struct range *range)
{
	struct range taken;
	int err = take_u32(cursor, 0, max, &taken.first);

	if (err)
		return err;
	taken.last = taken.first;
	if (**cursor == '-') {
		(*cursor)++;
		err = take_u32(cursor, 0, max, &taken.last);
		if (err)
			return err;
	}
	if (taken.last < taken.first)
		return -EINVAL;
	*range = taken;
	return 0;
}

/* Of sorted ranges. Drops doubles first: "0-1000" a thousand times is not a million numbers. */
static int expand_ranges(const struct range *ranges, size_t range_count, uint32_t **values,
			 size_t *count)
{
	VEC(uint32_t) list = {};
	uint64_t next = 0; /* the lowest number that may still come */
	int err = 0;

	for (size_t i = 0; i < range_count && !err; i++) {
		uint64_t number = max_u64(ranges[i].first, next);

		for (; number <= ranges[i].last && !err; number++)
			err = vec_push(&list, number);
		next = max_u64(number, next);
	}
	if (err) {
		vec_free(&list);
		return err;
	}
	*values = list.data;
	*count = list.count;
	return 0;
}

int parse_cpu_list(const char *text, uint32_t max, uint32_t **values, size_t *count)
{
	VEC(struct range) ranges = {};
	struct range range;
	int err;

	for (;; text++) {
		err = take_range(&text, max, &range) ?: vec_push(&ranges, range);
		if (err || *text != ',')
			break;
	}
	if (!err && *text)
		err = -EINVAL;
	if (!err) {
		qsort(ranges.data, ranges.count, sizeof(range), compare_ranges);
		err = expand_ranges(ranges.data, ranges.count, values, count);
	}
	vec_free(&ranges);
	return err;
}

int parse_size(const char *text, uint64_t *bytes)
{
	size_t length = strlen(text);
	static const char UNITS[] = "KMG";
	const char *unit = length ? strchr(UNITS, text[length - 1]) : NULL;
	unsigned int shift = unit && *unit ? 10 * (unsigned int)(unit - UNITS + 1) : 0;
	char number[32];
	uint64_t value;
	int err;

	if (unit && *unit)
		length--;
	if (length >= sizeof(number))
		return -ERANGE;
	memcpy(number, text, length);
	number[length] = '\0';
	err = parse_u64(number, 0, UINT64_MAX >> shift, &value);
	if (!err)
		*bytes = value << shift;
	return err;
}

int parse_hex(const char **cursor, uint64_t *value)
{
	const char *p = *cursor;
	uint64_t sum = 0;

	for (; hex_digit(*p) >= 0; p++) {
		if (p - *cursor == 16)
			return -ERANGE;
		sum = sum << 4 | hex_digit(*p);
	}
	if (p == *cursor)
		return -EINVAL;
	*cursor = p;
	*value = sum;
	return 0;
}

size_t parse_hex_bytes(const char *text, uint8_t *bytes, size_t max)
{
	size_t length = strlen(text);

	if (length % 2 || length / 2 > max)
		return 0;
	for (size_t i = 0; i < length; i += 2) {
		int high = hex_digit(text[i]), low = hex_digit(text[i + 1]);

		if (high < 0 || low < 0)
			return 0;
		bytes[i / 2] = (uint8_t)(high << 4 | low);
	}
	return length / 2;
}

char *put_hex_bytes(char *text, const uint8_t *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < size; i++) {
		*text++ = digits[bytes[i] >> 4];
		*text++ = digits[bytes[i] & 15];
	}
	*text = '\0';
	return text;
}
