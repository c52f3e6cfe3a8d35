/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The LLVMFuzzerCustomMutator() of JSON readers. A text with changed bytes is mostly no JSON, of which only the parser
 * sees anything. So most changes are of whole elements and members: they are dropped, repeated, or get another value.
 */
#ifndef FUZZ_JSON_H
#define FUZZ_JSON_H

#include <string.h>

#include "fuzz.h"

#define FUZZ_JSON_NODES 8192
#define FUZZ_JSON_DEPTH 256
#define FUZZ_JSON_SIZE	65536 /* of what is copied */

/* An element, or a member from its key on, and its value. */
struct fuzz_json_node {
	size_t from, value, end;
};

struct fuzz_json {
	struct fuzz_json_node nodes[FUZZ_JSON_NODES];
	size_t count, open[FUZZ_JSON_DEPTH], depth;
};

static inline bool fuzz_json_is_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static inline size_t fuzz_json_skip_spaces(const uint8_t *data, size_t size, size_t at)
{
	while (at < size && fuzz_json_is_space(data[at]))
		at++;
	return at;
}

/* Behind the string, number or literal at `at`. */
static inline size_t fuzz_json_scalar(const uint8_t *data, size_t size, size_t at)
{
	bool is_string = data[at++] == '"';

	for (; at < size; at++) {
		if (is_string && data[at] == '"')
			return at + 1;
		if (is_string && data[at] == '\\')
			at++;
		if (!is_string && (memchr(",:[]{}\"", data[at], 7) || fuzz_json_is_space(data[at])))
			return at;
	}
	return size;
}

/* The nodes of a text, the whole first. It need not be JSON. */
static inline void fuzz_json_parse(struct fuzz_json *json, const uint8_t *data, size_t size)
{
	size_t key = SIZE_MAX;

	json->count = json->depth = 0;
	for (size_t at = 0, end; at < size && json->count < FUZZ_JSON_NODES; at = end) {
		bool opens = data[at] == '{' || data[at] == '[';
		size_t next;

		end = at + 1;
		if (data[at] == ',' || data[at] == ':' || fuzz_json_is_space(data[at]))
			continue;
		if (data[at] == '}' || data[at] == ']') {
			if (json->depth)
				json->nodes[json->open[--json->depth]].end = end;
			continue;
		}
		if (!opens)
			end = fuzz_json_scalar(data, size, at);
		next = fuzz_json_skip_spaces(data, size, end);
		if (!opens && next < size && data[next] == ':') {
			key = at;
			continue;
		}
		if (opens && json->depth < FUZZ_JSON_DEPTH)
			json->open[json->depth++] = json->count;
		json->nodes[json->count++] = (struct fuzz_json_node){key < at ? key : at, at, end};
		key = SIZE_MAX;
	}
}

/* The bytes from..end become others, if there is room. Returns the new size. */
static inline size_t fuzz_json_put(uint8_t *data, size_t size, size_t max_size, size_t from,
				   size_t end, const void *text, size_t length)
{
	if (size - (end - from) + length > max_size)
		return size;
	memmove(data + from + length, data + end, size - end);
	memcpy(data + from, text, length);
	return size - (end - from) + length;
}

/* With the comma behind it or, of the last one, before it. */
static inline size_t fuzz_json_drop(uint8_t *data, size_t size, const struct fuzz_json_node *node)
{
	size_t from = node->from, end = fuzz_json_skip_spaces(data, size, node->end);

	if (end < size && data[end] == ',') {
		end++;
	} else {
		while (from > 0 && fuzz_json_is_space(data[from - 1]))
			from--;
		from -= from > 0 && data[from - 1] == ',';
		end = node->end;
	}
	return fuzz_json_put(data, size, size, from, end, "", 0);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	static const char *const values[] = {"null", "0",  "-1",   "1",	   "2147483648",   "1e99",
					     "{}",   "[]", "\"\"", "true", "[null,0,\"\"]"};
	static struct fuzz_json json;
	static uint8_t copy[FUZZ_JSON_SIZE];
	const struct fuzz_json_node *node, *other;
	const char *value = values[rand_r(&seed) % COUNT(values)];
	size_t length;

	fuzz_json_parse(&json, data, size);
	if (json.count < 2 || rand_r(&seed) % FUZZ_BLIND_MUTATIONS == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	node = &json.nodes[1 + (size_t)rand_r(&seed) % (json.count - 1)];
	other = &json.nodes[1 + (size_t)rand_r(&seed) % (json.count - 1)];
	switch (rand_r(&seed) % 5) {
	case 0:
		return fuzz_json_drop(data, size, node);
	case 1:
		return fuzz_json_put(data, size, max_size, node->value, node->end, value,
				     strlen(value));
	case 2: /* again, behind it */
		length = node->end - node->from;
		if (length >= sizeof(copy))
			return size;
		copy[0] = ',';
		memcpy(copy + 1, data + node->from, length);
		return fuzz_json_put(data, size, max_size, node->end, node->end, copy, length + 1);
	case 3:
		length = other->end - other->value;
		if (length > sizeof(copy))
			return size;
		memcpy(copy, data + other->value, length);
		return fuzz_json_put(data, size, max_size, node->value, node->end, copy, length);
	default: /* this array or object, or the one before, has no elements */
		while (node > json.nodes && data[node->value] != '[' && data[node->value] != '{')
			node--;
		length = node->end - node->value; /* 1: it has no end */
		return length < 2 ? size
				  : fuzz_json_put(data, size, max_size, node->value + 1,
						  node->end - 1, "", 0);
	}
}

#endif
