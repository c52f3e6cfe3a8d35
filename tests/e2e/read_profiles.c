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
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "formats/in/import.h"
#include "formats/out/exporters.h"

static uint64_t events_of(const struct profile *p, uint64_t events)
{
	return p->tick_cpu ? events * p->tick_cpu : events;
}

static void print_path(const struct profile *p, struct stack_id stack)
{
	uint32_t depth = p->stacks[stack.v].depth;
	struct location_id *frames = calloc(depth, sizeof(*frames));

	for (uint32_t i = depth; i--; stack = p->stacks[stack.v].parent)
		frames[i] = p->stacks[stack.v].location;
	for (uint32_t i = 0; i < depth; i++) {
		const struct profile_location *l = &p->locations[frames[i].v];

		for (uint32_t k = l->line_count; k--;)
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

static struct profile_builder *read_file(const uint8_t *bytes, size_t size,
					 const struct profile **p)
{
	const struct import_request request = {
		.name = "file", .bytes = bytes, .size = size, .builder = profile_builder__new()};
	struct import_failure failure = {};
	char why[256] = "";
	int err = import_profile(&request, &failure);

	*p = NULL;
	if (err)
		printf("refused %d at %" PRIu64 ": %s\n", err, failure.offset, failure.what);
	else if (profile_builder__finish(request.builder, p, why, sizeof(why)))
		printf("refused: broken: %s\n", why);
	return request.builder;
}

static void write_and_read(const struct profile *p, const struct exporter *exporter)
{
	char *bytes = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&bytes, &size);
	const struct export_request request = {.profile = p, .out = out};
	int err = exporter->write(&request);
	struct profile_builder *b;

	fclose(out);
	if (err)
		printf("refused: not written: %d\n", err);
	b = read_file((const uint8_t *)bytes, size, &p);
	if (p)
		print_profile(p);
	profile_builder__free(b);
	free(bytes);
}

static void answer(const uint8_t *bytes, size_t size, uint64_t format)
{
	static const struct exporter *const exporters[] = {&folded_exporter, &pprof_exporter,
							   &cpuprofile_exporter, &trace_exporter,
							   &firefox_exporter};
	const struct profile *p;
	struct profile_builder *b = read_file(bytes, size, &p);

	if (p && format)
		write_and_read(p, exporters[(format - 1) % 5]);
	else if (p)
		print_profile(p);
	putchar('\n');
	fflush(stdout);
	profile_builder__free(b);
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
