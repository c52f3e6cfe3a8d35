/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streaming JSON: writes commas, nesting and escapes.
 *
 * Control characters become \u00XX, and each byte that is not valid UTF-8 (overlong forms,
 * surrogates, stray bytes) U+FFFD, so output is always valid UTF-8. Numbers are formatted exactly,
 * so equal input gives equal bytes. Write errors are sticky: json_writer__finish() returns the
 * first.
 *
 * Output stays in a buffer until that is full or json_writer__finish() is called. Nothing else may
 * write to the stream in between.
 */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define JSON_BUFFER_SIZE 16384

struct json_writer {
	FILE *out;
	unsigned int depth;
	bool comma; /* the next value needs a comma before it */
	int error;
	size_t used;
	char buffer[JSON_BUFFER_SIZE];
};

void json_writer__init(struct json_writer *w, FILE *out);
/* Write what is in the buffer. 0, or the first error; asserts that everything was closed. */
int json_writer__finish(struct json_writer *w);

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);
void json_key(struct json_writer *w, const char *key);
void json_string(struct json_writer *w, const char *value); /* NULL writes null */
void json_int(struct json_writer *w, int64_t value);
void json_uint(struct json_writer *w, uint64_t value);
/* `value` ns as milliseconds or microseconds, exactly: 1234567 -> 1.234567 */
void json_ns_as_ms(struct json_writer *w, int64_t value);
void json_ns_as_us(struct json_writer *w, int64_t value);
/* Fixed number of decimals (0..9); not finite writes null. */
void json_fixed(struct json_writer *w, double value, unsigned int decimals);
void json_bool(struct json_writer *w, bool value);
void json_null(struct json_writer *w);
/* A value that is JSON already, written by another writer. */
void json_raw(struct json_writer *w, const char *json, size_t size);

/* key + value in one call */
#define json_key_string(w, key, value) (json_key((w), (key)), json_string((w), (value)))
#define json_key_int(w, key, value)    (json_key((w), (key)), json_int((w), (value)))
#define json_key_uint(w, key, value)   (json_key((w), (key)), json_uint((w), (value)))
#define json_key_bool(w, key, value)   (json_key((w), (key)), json_bool((w), (value)))
#define json_key_null(w, key)	       (json_key((w), (key)), json_null(w))
#define json_key_object(w, key)	       (json_key((w), (key)), json_begin_object(w)) /* begins it */
#define json_key_array(w, key)	       (json_key((w), (key)), json_begin_array(w))  /* begins it */
#define json_key_empty_array(w, key)   (json_key_array((w), (key)), json_end_array(w))

/* An array: `write` is done for each row `i`. */
#define JSON_COLUMN(w, key, rows, write)                                                           \
	do {                                                                                       \
		json_key_array((w), (key));                                                        \
		for (size_t i = 0; i < (rows); i++) {                                              \
			write;                                                                     \
		}                                                                                  \
		json_end_array(w);                                                                 \
	} while (0)

#endif
