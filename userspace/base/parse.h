/* SPDX-License-Identifier: BSD-2-Clause */
/* Strict parsing of numbers and lists: the whole text, or -EINVAL / -ERANGE. */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* Decimal, without sign, space or prefix. min..max inclusive, else -ERANGE. */
int parse_u64(const char *text, uint64_t min, uint64_t max, uint64_t *value);
/* Seconds with an optional fraction ("2", "0.5") to ns; > 0. */
int parse_seconds(const char *text, uint64_t *nanoseconds);
/* A share from 0 to 1: "0.005", or "0.5%". */
int parse_share(const char *text, double *share);
/* Bytes: "4096", or with K, M or G (powers of 1024) behind. */
int parse_size(const char *text, uint64_t *bytes);
/* "12,34,56": numbers min..max into a fresh array (caller frees). -EINVAL, -ERANGE, -ENOMEM. */
int parse_u32_list(const char *text, uint32_t min, uint32_t max, uint32_t **values, size_t *count);
/* "0,2-4": a CPU list as in /sys, sorted and without doubles. */
int parse_cpu_list(const char *text, uint32_t max, uint32_t **values, size_t *count);
/* The value of a hexadecimal digit of either case; -1: it is none. */
static inline int hex_digit(char c)
{
	unsigned int digit = (unsigned char)c - '0', letter = ((unsigned char)c | 0x20) - 'a';

	if (digit < 10)
		return (int)digit;
	return letter < 6 ? (int)letter + 10 : -1;
}

/* Hexadecimal digits at *cursor (no prefix); moves it behind them. -EINVAL: none; -ERANGE: > 16. */
int parse_hex(const char **cursor, uint64_t *value);
/* Bytes as two hexadecimal digits each. Their number; 0: other text, or more than `max` bytes. */
size_t parse_hex_bytes(const char *text, uint8_t *bytes, size_t max);
/* The reverse, with small digits and a NUL, which is where it returns. */
char *put_hex_bytes(char *text, const uint8_t *bytes, size_t size);

#endif
