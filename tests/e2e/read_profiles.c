// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is read of many files: standard input has of each its size, 8 bytes in the order of this machine, the number of
 * a format in which it is written and read again (0: none), and its bytes. A file is answered by lines that end with an empty one: "refused WHY"; or
 *
 *   total KNOWN SAMPLES EVENTS CPU LEFT     KNOWN: 1, or 0 for weights; LEFT: 1 if something was left out
 *   thread EVENTS CPU NAME
 *   path EVENTS CPU NAME...                 of each row; names outermost first, 0x1f before each
 *
 * EVENTS are weights in units of ns where they are CPU time.
 *
 * Of number ADDRESSES the answer has FILE+ADDRESS for each name.
 * Of number KEPT the file is also added to a merge; of ALL the answer is of all files that were, and the merge ends.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "formats/in/import.h"
#include "formats/out/exporters.h"
#include "base/cleanup.h"
#include "profile/profile_merge.h"
#include "window/replay.h"

enum { KEPT = 100, ALL = 101, ADDRESSES = 102 };

static bool by_address;

static uint64_t events_of(const struct profile *p, uint64_t events)
{
	return p->tick_cpu ? events * p->tick_cpu : events;
}

/* Without the byte that says how a user's frame was found. */
static void print_address(const struct profile *p, const struct profile_location *l)
{
	bool is_kernel = l->address >> 56 == 0xff;

	printf("\x1f%s+%" PRIx64, profile__string(p, p->dsos[l->dso.v].name),
	       is_kernel ? l->address : l->address & UINT64_MAX >> 8);
}

static void print_path(const struct profile *p, struct stack_id stack)
{
	uint32_t depth = p->stacks[stack.v].depth;
	struct location_id *frames = calloc(depth, sizeof(*frames));

	for (uint32_t i = depth; i--; stack = p->stacks[stack.v].parent)
		frames[i] = p->stacks[stack.v].location;
	for (uint32_t i = 0; i < depth; i++) {
		const struct profile_location *l = &p->locations[frames[i].v];

		if (by_address)
			print_address(p, l);
		for (uint32_t k = by_address ? 0 : l->line_count; k--;)
			printf("\x1f%s",
			       profile__string(
				       p,
				       p->functions[p->lines[l->first_line + k].function.v].name));
	}
	putchar('\n');
	free(frames);
}

static void print_profile(const struct profile *p)
{
	uint64_t cpu = 0;

	for (size_t i = 1; i < p->thread_count; i++)
		cpu += profile_thread__cpu(&p->threads[i]);
	printf("total %d %" PRIu64 " %" PRIu64 " %" PRIu64 " %d\n", !p->uncounted, p->sample_count,
	       events_of(p, p->event_count), cpu, profile__meta(p, META_NOT_READ) != NULL);
	for (size_t i = 1; i < p->thread_count; i++) {
		const struct profile_thread *t = &p->threads[i];
		const struct profile_samples *s = &t->samples[SAMPLE_CPU];

		printf("thread %" PRIu64 " %" PRIu64 " %s\n", events_of(p, s->event_sum),
		       profile_thread__cpu(t), profile__string(p, t->name));
		for (size_t k = 0; k < s->count; k++) {
			printf("path %" PRIu64 " %" PRIu64 " ",
			       events_of(p, profile_samples__events(s, k)), s->weight[k]);
			print_path(p, s->stack[k]);
		}
	}
}

/* What owns a profile. */
struct owner {
	struct profile_builder *builder;
	struct windows *windows;
};

static void cleanup_owner(struct owner *owner)
{
	profile_builder__free(owner->builder);
	windows__free(owner->windows);
}

static const struct profile *import_file(const uint8_t *bytes, size_t size, struct owner *owner)
{
	const struct import_request request = {
		.name = "file", .bytes = bytes, .size = size, .builder = profile_builder__new()};
	struct import_failure failure = {};
	const struct profile *p = NULL;
	char why[256] = "";
	int err = import_profile(&request, &failure);

	owner->builder = request.builder;
	if (err)
		printf("refused %d at %" PRIu64 ": %s\n", err, failure.offset, failure.what);
	else if (profile_builder__finish(request.builder, &p, why, sizeof(why)))
		printf("refused: broken: %s\n", why);
	return p;
}

static const struct profile *replay_file(const uint8_t *bytes, size_t size, struct owner *owner)
{
	_cleanup_close_ int fd = memfd_create("perf.data", MFD_CLOEXEC);
	struct perf_data_summary summary;
	struct failure failure = {};
	const struct profile *p = NULL;

	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size ||
	    replay_perf_data(fd, "file", &(struct replay_options){}, &owner->windows, &p, &summary,
			     &failure))
		printf("refused: %s\n", failure.what);
	return p;
}

static const struct profile *read_file(const uint8_t *bytes, size_t size, struct owner *owner)
{
	bool is_perf = size > 8 && !memcmp(bytes, "PERFILE2", 8);

	return is_perf ? replay_file(bytes, size, owner) : import_file(bytes, size, owner);
}

static void write_and_read(const struct profile *p, const struct exporter *exporter)
{
	char *bytes = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&bytes, &size);
	const struct export_request request = {.profile = p, .out = out};
	int err = exporter->write(&request);
	_cleanup_(cleanup_owner) struct owner owner = {};

	fclose(out);
	if (err)
		printf("refused: not written: %d\n", err);
	p = read_file((const uint8_t *)bytes, size, &owner);
	if (p)
		print_profile(p);
	free(bytes);
}

static struct profile_merge *merge;

static void keep(const struct profile *p)
{
	struct failure failure = {};

	merge = merge ?: profile_merge__new();
	if (profile_merge__add(merge, "file", p, &failure))
		printf("refused: %s\n", failure.what);
	else
		print_profile(p);
}

static void answer_all(void)
{
	struct failure failure = {};
	const struct profile *p;

	if (!merge || profile_merge__finish(merge, &p, &failure))
		printf("refused: %s\n", failure.what);
	else
		print_profile(p);
	profile_merge__free(merge);
	merge = NULL;
}

static void answer(const uint8_t *bytes, size_t size, uint64_t format)
{
	static const struct exporter *const exporters[] = {&folded_exporter, &pprof_exporter,
							   &cpuprofile_exporter, &trace_exporter,
							   &firefox_exporter};
	_cleanup_(cleanup_owner) struct owner owner = {};
	const struct profile *p;

	by_address = format == ADDRESSES;
	p = format == ALL ? NULL : read_file(bytes, size, &owner);

	if (format == ALL)
		answer_all();
	else if (p && format == KEPT)
		keep(p);
	else if (p && format && !by_address)
		write_and_read(p, exporters[(format - 1) % 5]);
	else if (p)
		print_profile(p);
	putchar('\n');
	fflush(stdout);
}

int main(void)
{
	uint64_t size, format;

	while (fread(&size, sizeof(size), 1, stdin) == 1 &&
	       fread(&format, sizeof(format), 1, stdin) == 1) {
		uint8_t *bytes = malloc(size + 1);

		if (!bytes || fread(bytes, 1, size, stdin) != size)
			return 1;
		answer(bytes, size, format);
		free(bytes);
	}
	return 0;
}
