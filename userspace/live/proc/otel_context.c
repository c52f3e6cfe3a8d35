/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/proc/otel_context.h"

#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/proc_task.h"
#include "base/wire.h"
#include "live/proc/fact_reader.h"

#define LINE_READ_MAX (64u * 1024)
#define MAPS_SIZE_MAX (8u << 20) /* bytes that are looked through: 65,530 mappings */
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

/* The next field that has bytes. False: no more. */
static bool next_bytes(struct wire *w)
{
	int got;

	do
		got = wire_next(w);
	while (got > 0 && w->type != WIRE_BYTES);
	return got > 0;
}

static const char *wanted_attribute(const uint8_t *key, size_t size)
{
	for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
		if (strlen(attributes[i]) == size && !memcmp(attributes[i], key, size))
			return attributes[i];
	return NULL;
}

/* A KeyValue {1 key, 2 AnyValue {1 string}} of a wanted attribute? */
static bool take_attribute(struct wire message, struct fact_text *facts)
{
	struct wire value = {};
	const uint8_t *text = NULL;
	const char *name = NULL;
	size_t size = 0;

	while (next_bytes(&message)) {
		if (message.number == 1)
			name = wanted_attribute(message.bytes, message.size);
		else if (message.number == 2)
			value = wire_of(message.bytes, message.size);
	}
	while (name && next_bytes(&value)) {
		if (value.number == 1) {
			text = value.bytes;
			size = value.size;
		}
	}
	if (text)
		fact_text__add(facts, "otel:", name, (const char *)text, size);
	return name != NULL;
}

/* Recursion ends at NESTING, whatever the message contains. */
static void walk_message(struct wire message, unsigned int depth, struct fact_text *facts)
{
	while (next_bytes(&message)) {
		struct wire inner = wire_of(message.bytes, message.size);

		if ((message.number != 1 && message.number != 2) || take_attribute(inner, facts))
			continue;
		if (message.number == 1 && depth > 1)
			walk_message(inner, depth - 1, facts);
	}
}

void otel_context__decode(const uint8_t *message, size_t size, struct fact_text *facts)
{
	walk_message(wire_of(message, size), NESTING, facts);
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
	size_t bytes; /* looked through */
};

/* A line_fn. */
static int take_line(void *context, char *line, size_t size)
{
	struct context_search *search = context;
	struct proc_mapping mapping;

	if (memmem(line, size, "OTEL_CTX", 8) && !proc_parse_mapping(line, size, &mapping) &&
	    otel_context_has_name(mapping.path))
		search->found[search->count++] = mapping.start;
	search->bytes += size + 1;
	return search->count == MAPPINGS_MAX || search->bytes >= MAPS_SIZE_MAX;
}

static void search_maps(int dir, struct context_search *search)
{
	_cleanup_close_ int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		read_lines(fd, LINE_READ_MAX, take_line, search);
}

void otel_context__read(int dir, struct fact_text *facts)
{
	_cleanup_close_ int memory = -1;
	struct context_search search = {};

	search_maps(dir, &search);
	facts->left += search.bytes >= MAPS_SIZE_MAX && !search.count;
	if (!search.count)
		return;
	memory = openat(dir, "mem", O_RDONLY | O_CLOEXEC);
	for (size_t i = 0; memory >= 0 && i < search.count; i++)
		if (read_context(memory, search.found[i], facts))
			return;
}
