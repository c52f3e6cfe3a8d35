/* SPDX-License-Identifier: BSD-2-Clause */
#include "procfs/otel_context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_parse.h"

#define MAPS_STEP     (64u * 1024)
#define MAPS_SIZE_MAX (1u << 20) /* bytes that are looked through */
#define MAPPINGS_MAX  4		 /* with such a name */
#define NESTING	      2		 /* a KeyValue in a Resource in a ProcessContext */

static const char *const attributes[] = {
	"service.name",	      "service.version", "service.namespace",
	"k8s.namespace.name", "k8s.pod.name",	 "k8s.container.name",
};

struct otel_header {
	char signature[8];
	uint32_t version;
	uint32_t size;	    /* of the message */
	uint64_t published; /* 0: it is being written */
	uint64_t message;   /* address */
};

bool otel_context_has_name(const char *path)
{
	return !strncmp(path, "[anon:OTEL_CTX]", 15) ||
	       !strncmp(path, "[anon_shmem:OTEL_CTX]", 21) || !strncmp(path, "/memfd:OTEL_CTX", 15);
}

/* ---- protobuf -------------------------------------------------------------------------------- */

struct wire {
	const uint8_t *at, *end;
};

static bool wire_varint(struct wire *w, uint64_t *value)
{
	*value = 0;
	for (unsigned int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
		uint8_t byte = *w->at++;

		*value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The next field that has bytes, and its number; fields of other types are stepped over. False: no more. */
static bool wire_bytes(struct wire *w, uint64_t *field, struct wire *bytes)
{
	uint64_t tag, size;

	while (wire_varint(w, &tag)) {
		unsigned int type = tag & 7;

		if (type == 0) {
			if (!wire_varint(w, &size))
				return false;
			continue;
		}
		if (type == 2 && !wire_varint(w, &size))
			return false;
		if (type == 1 || type == 5)
			size = type == 1 ? 8 : 4;
		else if (type != 2)
			return false;
		if (size > (uint64_t)(w->end - w->at))
			return false;
		*bytes = (struct wire){w->at, w->at + size};
		w->at += size;
		*field = tag >> 3;
		if (type == 2)
			return true;
	}
	return false;
}

static const char *wanted_attribute(const struct wire *key)
{
	size_t size = key->end - key->at;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (strlen(attributes[i]) == size && !memcmp(attributes[i], key->at, size))
			return attributes[i];
	return NULL;
}

/* A KeyValue {1 key, 2 AnyValue {1 string}} of a wanted attribute? */
static bool take_attribute(struct wire message, struct fact_text *facts)
{
	struct wire bytes, value = {}, text = {};
	const char *name = NULL;
	uint64_t field;

	while (wire_bytes(&message, &field, &bytes)) {
		if (field == 1)
			name = wanted_attribute(&bytes);
		else if (field == 2)
			value = bytes;
	}
	while (name && wire_bytes(&value, &field, &bytes))
		if (field == 1)
			text = bytes;
	if (text.at)
		fact_text__add(facts, "otel:", name, (const char *)text.at, text.end - text.at);
	return name != NULL;
}

/* No deeper than NESTING, so that the message cannot make it call itself often. */
static void walk_message(struct wire message, unsigned int depth, struct fact_text *facts)
{
	struct wire bytes;
	uint64_t field;

	while (wire_bytes(&message, &field, &bytes)) {
		if ((field != 1 && field != 2) || take_attribute(bytes, facts))
			continue;
		if (field == 1 && depth > 1)
			walk_message(bytes, depth - 1, facts);
	}
}

void otel_context__decode(const uint8_t *message, size_t size, struct fact_text *facts)
{
	walk_message((struct wire){message, message + size}, NESTING, facts);
}

/* ---- the process's memory -------------------------------------------------------------------- */

static bool read_header(int memory, uint64_t address, struct otel_header *header)
{
	return pread_full(memory, header, sizeof(*header), address) == sizeof(*header) &&
	       !memcmp(header->signature, "OTEL_CTX", sizeof(header->signature)) &&
	       (header->version == 1 || header->version == 2) && header->published &&
	       header->size && header->size <= OTEL_CONTEXT_SIZE_MAX &&
	       header->message < (uint64_t)INT64_MAX - OTEL_CONTEXT_SIZE_MAX;
}

/* False: there is none, or it changed while it was read. */
static bool read_context(int memory, uint64_t address, struct fact_text *facts)
{
	_cleanup_free_ uint8_t *message = NULL;
	struct otel_header header, again;

	if (address > INT64_MAX - sizeof(header) || !read_header(memory, address, &header))
		return false;
	message = malloc(header.size);
	if (!message ||
	    pread_full(memory, message, header.size, header.message) != (ssize_t)header.size)
		return false;
	if (!read_header(memory, address, &again) || again.published != header.published)
		return false;
	otel_context__decode(message, header.size, facts);
	return true;
}

struct context_search {
	uint64_t found[MAPPINGS_MAX];
	size_t count;
};

/* Whole lines; the rest is moved to the front. */
static size_t take_lines(char *lines, size_t used, struct context_search *search)
{
	char *line = lines, *end = lines + used, *newline;
	struct proc_mapping mapping;

	while ((newline = memchr(line, '\n', end - line))) {
		if (memmem(line, newline - line, "OTEL_CTX", 8) && search->count < MAPPINGS_MAX &&
		    !proc_parse_mapping(line, newline - line, &mapping) &&
		    otel_context_has_name(mapping.path))
			search->found[search->count++] = mapping.start;
		line = newline + 1;
	}
	memmove(lines, line, end - line);
	return end - line;
}

static void search_maps(int dir, struct context_search *search)
{
	_cleanup_close_ int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);
	_cleanup_free_ char *lines = fd < 0 ? NULL : malloc(MAPS_STEP);
	size_t used = 0, total = 0;

	while (lines && total < MAPS_SIZE_MAX && used < MAPS_STEP) {
		ssize_t got = read(fd, lines + used, MAPS_STEP - used);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return;
		total += got;
		used = take_lines(lines, used + got, search);
	}
}

void otel_context__read(int dir, struct fact_text *facts)
{
	_cleanup_close_ int memory = -1;
	struct context_search search = {};

	search_maps(dir, &search);
	if (!search.count)
		return;
	memory = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; memory >= 0 && i < search.count; i++)
		if (read_context(memory, search.found[i], facts))
			return;
}
