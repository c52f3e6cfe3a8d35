/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The door to cJSON, and what keeps big files away from it.
 *
 * The JSON text stays in place. Our own scanner finds where values end, so objects and arrays are
 * walked element by element. Columns of numbers are parsed in place; small values (a call frame,
 * the arguments of an event) become a cJSON tree. Memory is that of the text and of one small tree.
 *
 * Every function that can fail stores the error and its byte in the text's import_failure.
 */
#ifndef FORMATS_IN_JSON_H
#define FORMATS_IN_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sysprof/importer.h>

#include "base/hashmap.h"

#define JSON_DEPTH_MAX	  1024 /* twice for each call where calls are nested; V8 has up to 255 */
#define JSON_ELEMENTS_MAX (1u << 26) /* of a table: an element of 2 bytes takes 56 in memory */
#define JSON_TREE_MAX	  (1u << 20) /* bytes of a value that becomes a tree */
#define JSON_INTEGER_MAX  ((1LL << 53) - 1) /* above it a JavaScript number is not exact */

struct json_text {
	const char *start, *end;
	struct import_failure *failure;
};

/* A value: its bytes in the text. NULL: there is none. */
struct json_value {
	const char *at, *end;
};

enum json_type {
	JSON_ABSENT,
	JSON_OBJECT,
	JSON_ARRAY,
	JSON_STRING,
	JSON_NUMBER,
	JSON_LITERAL, /* true, false, null */
};

/* The first byte from `at` on that is no space, or the text's end. */
const char *json_skip_spaces(const struct json_text *text, const char *at);

enum json_type json_type(struct json_value value);
bool json_is(struct json_value value, const char *literal); /* "null", "true", … */

/* A value as a key of a map (base/map.h): by its bytes. */
static inline uint64_t json_value_hash(struct json_value v)
{
	return v.at ? hash_bytes(v.at, (size_t)(v.end - v.at)) : 0;
}

static inline bool json_value_equal(struct json_value a, struct json_value b)
{
	size_t size = (size_t)(a.end - a.at);

	return (size_t)(b.end - b.at) == size && (!size || !memcmp(a.at, b.at, size));
}

/* Report what is wrong at this byte of the text. */
int json_fail(const struct json_text *text, const char *at, int error, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

struct profile_builder;

/* ---- walking --------------------------------------------------------------------------------- */

/*
 * The elements of an array, or the members of an object, JSON_ELEMENTS_MAX at most. Start with a position at or before the
 * bracket (spaces may lie between); the end need not be known.
 */
struct json_walk {
	const struct json_text *text;
	const char *at; /* after the last element: behind the closing bracket */
	bool is_object, first;
	struct json_value key, value; /* the key with its quotes */
	size_t index;		      /* of the value */
};

int json_walk__init(struct json_walk *walk, const struct json_text *text, const char *at,
		    enum json_type type);
int json_walk__next(struct json_walk *walk); /* 1: an element; 0: no more; -EBADMSG, -E2BIG */
/* `take` gets each element of an array. 0, or the first error. */
int json_each(const struct json_text *text, struct json_value array,
	      int (*take)(void *context, struct json_value value), void *context);
bool json_walk__key_is(const struct json_walk *walk, const char *name);

/*
 * The number of the key (of NULL-ended `names`) that comes first in a text that is an object,
 * perhaps cut off; -1: none. Values before it are skipped, its own is not read.
 */
int json_first_key(const uint8_t *bytes, size_t size, const char *const *names);
/* Where the value of that name begins in an object, which may be cut off behind it; NULL: there is none, or no object. */
const char *json_member_at(const struct json_text *text, const char *object, const char *name);

/* Nothing but spaces may follow. */
int json_expect_end(const struct json_text *text, const char *at);

/*
 * Find members of an object by name; missing ones become absent. Twice the same name is an error:
 *
 *   err = json_members(text, object, {"id", &id}, {"children", &children});
 */
#define json_members(text, object, ...)                                                            \
	json_find_members(text, object, (const struct json_member[]){__VA_ARGS__, {NULL, NULL}})
/* Those of the object that is the whole text. */
#define json_document(text, ...)                                                                   \
	json_find_document(text, (const struct json_member[]){__VA_ARGS__, {NULL, NULL}})

/* The last one has no name. */
struct json_member {
	const char *name;
	struct json_value *value;
};
int json_find_members(const struct json_text *text, struct json_value object,
		      const struct json_member *wanted);
int json_find_document(const struct json_text *text, const struct json_member *wanted);

/* ---- numbers --------------------------------------------------------------------------------- */

/* mantissa × 10^exponent, as it is written (from 19 digits on rounded down) */
struct json_number {
	bool is_null, negative;
	uint64_t mantissa;
	int32_t exponent;
	const char *at;
};

/* × 10^scale, to the nearest integer; -ERANGE beyond ±2^62 */
int json_scaled(const struct json_number *number, int scale, int64_t *value);
/* The same of a number that is not negative, rounded down; the rest in billionths. */
int json_split(const struct json_number *number, int scale, int64_t *value, uint32_t *rest);

/* A column of numbers and nulls, parsed as it is walked. Other values are numbers beyond any range. */
struct json_column {
	const struct json_text *text;
	const char *at;
	bool first;
	size_t index; /* of the next number */
};

int json_column__init(struct json_column *column, const struct json_text *text,
		      struct json_value array);
int json_column__next(struct json_column *column,
		      struct json_number *number); /* 1, 0: end, error */
/* Null if the column is absent, or shorter than others. 0 or an error. */
int json_column__next_or_null(struct json_column *column, struct json_number *number);
/* The next number, which must exist and be in min..max, or null: *value = or_null. */
int json_column__integer(struct json_column *column, int64_t min, int64_t max, int64_t or_null,
			 int64_t *value);

int json_parse_number(const struct json_text *text, struct json_value value,
		      struct json_number *number);
/* A time of min..max ns, in units of 10^scale ns. */
int json_time(const struct json_text *text, struct json_value value, int scale, int64_t min,
	      int64_t max, int64_t *ns);
/* An integer in min..max, or an error that names it `what`. */
int json_integer(const struct json_text *text, struct json_value value, const char *what,
		 int64_t min, int64_t max, int64_t *integer);

/* ---- small values ---------------------------------------------------------------------------- */

/* A copy of a string, unescaped; it ends at its first NUL. Caller frees. -EBADMSG, -ENOMEM. */
int json_string_copy(const struct json_text *text, struct json_value value, char **copy);

struct json_tree; /* cJSON's */

int json_tree__parse(const struct json_text *text, struct json_value value,
		     struct json_tree **tree); /* -EBADMSG, -E2BIG, -ENOMEM */
void json_tree__free(struct json_tree *tree);
/* The text of a member that is a string, or `otherwise`. Of equal names the first counts. */
const char *json_tree__string(const struct json_tree *tree, const char *name,
			      const char *otherwise);
/* The value of a member that is a number, as an integer in min..max, or `otherwise`. */
int64_t json_tree__integer(const struct json_tree *tree, const char *name, int64_t min, int64_t max,
			   int64_t otherwise);

static inline void json_cleanup_tree(struct json_tree **tree)
{
	json_tree__free(*tree);
}

#define _cleanup_json_ __attribute__((cleanup(json_cleanup_tree)))

#endif
