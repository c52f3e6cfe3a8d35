/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests of importers: bytes as a profile, or as a failure; and the profile as text. */
#ifndef TESTS_UNIT_IMPORT_SUPPORT_H
#define TESTS_UNIT_IMPORT_SUPPORT_H

#include "text_cases.h"

#include "export_support.h"
#include "formats/in/import.h"

struct imported {
	struct profile_builder *b;
	const struct profile *p;
	struct import_failure failure;
	int err;
};

static enum import_root root_of_files; /* what the first field of folded stacks is */

static inline struct imported import_bytes(const void *bytes, size_t size)
{
	struct imported i = {.b = profile_builder__new()};
	/* an allocation of its own, so that a sanitizer sees reads behind it */
	uint8_t *copy = malloc(size + !size);
	const struct import_request request = {.name = "file.name",
					       .bytes = copy,
					       .size = size,
					       .root = root_of_files,
					       .builder = i.b};
	char why[256] = "";

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	i.err = import_profile(&request, &i.failure);
	free(copy);
	if (!i.err && profile_builder__finish(i.b, &i.p, why, sizeof(why)))
		fail_msg("%s", why);
	return i;
}

static inline struct imported import_text(const char *text)
{
	return import_bytes(text, strlen(text));
}

static inline struct imported import_good(const char *text)
{
	struct imported i = import_text(text);

	if (i.err)
		fail_msg("refused at %llu: %s", (unsigned long long)i.failure.offset,
			 i.failure.what);
	return i;
}

static inline void import_done(struct imported *i)
{
	profile_builder__free(i->b);
}
#define _cleanup_imported_ _cleanup_(import_done)

/* To compare profiles whose tables differ: each frame has its definition, and no address. */
static bool put_definitions;

/* Name:line:column of each function, outermost first, and where the code is. */
static inline void put_location(FILE *out, const struct profile *p, struct location_id id)
{
	static const char *const categories[CATEGORY_COUNT] = {"",	   " user", " kernel",
							       " library", " jit",  " idle"};
	const struct profile_location *l = &p->locations[id.v];
	const struct profile_dso *dso = &p->dsos[l->dso.v];
	const char *path = profile__string(p, put_definitions ? dso->name : dso->path);

	for (uint32_t i = l->line_count; i--;) {
		const struct profile_line *line = &p->lines[l->first_line + i];
		const struct profile_function *function = &p->functions[line->function.v];

		fputs(profile__string(p, function->name), out);
		if (line->line)
			fprintf(out, ":%u", line->line);
		if (line->column)
			fprintf(out, ":%u", line->column);
		if (put_definitions)
			fprintf(out, " defined at %s:%u:%u+%llx",
				profile__string(p, function->definition_file),
				function->definition_line, function->definition_column,
				i + 1 == l->line_count ? (unsigned long long)function->size : 0);
		fputs(i ? " > " : "", out);
	}
	fputs(categories[l->category], out);
	if (l->tier != CODE_TIER_NONE)
		fprintf(out, " %s", code_tier_text(l->tier));
	if (*path)
		fprintf(out, " %s", path);
	if (*path && !put_definitions)
		fprintf(out, "+%llx", (unsigned long long)l->address);
	fputs(l->ambiguous ? " ambiguous" : "", out);
}

/* Root first. */
static inline void put_stack(FILE *out, const struct profile *p, struct stack_id stack)
{
	struct location_id frames[64];
	uint32_t depth = p->stacks[stack.v].depth;

	if (depth > 64) {
		fprintf(out, "%u frames", depth);
		return;
	}
	for (uint32_t i = depth; i--; stack = p->stacks[stack.v].parent)
		frames[i] = p->stacks[stack.v].location;
	for (uint32_t i = 0; i < depth; i++) {
		fputs(i ? "; " : "", out);
		put_location(out, p, frames[i]);
	}
}

/* A sample in a line: when, CPU time, and what is not as usual. */
static inline void put_samples(FILE *out, const struct profile *p, const struct profile_samples *s,
			       const char *kind)
{
	for (size_t i = 0; i < s->count; i++) {
		unsigned long long ticks = profile_samples__ticks(s, i);
		unsigned long long events = profile_samples__events(s, i);
		const char *context = sample_context_name(profile_samples__context(s, i));

		fprintf(out, "%s +%llu for %llu", kind, (unsigned long long)(s->time[i] - p->start),
			(unsigned long long)s->weight[i]);
		if (ticks != 1)
			fprintf(out, ", %llu ticks", ticks);
		if (events != ticks)
			fprintf(out, ", %llu events", events);
		if (profile_samples__gil(s, i) != GIL_UNKNOWN)
			fprintf(out, ", GIL %s", gil_state_name(profile_samples__gil(s, i)));
		fprintf(out, "%s%s: ", *context ? ", " : "", context);
		put_stack(out, p, s->stack[i]);
		fputc('\n', out);
	}
}

static inline void put_thread(FILE *out, const struct profile *p,
			      const struct profile_thread *thread)
{
	const struct profile_process *process = &p->processes[thread->process.v];

	fprintf(out, "process %u %s, thread %u %s%s", process->pid,
		profile__string(p, process->name), thread->tid, profile__string(p, thread->name),
		thread->is_main ? ", main" : "");
	fprintf(out, thread->cpu_tail ? ", tail %llu\n" : "\n",
		(unsigned long long)thread->cpu_tail);
	put_samples(out, p, &thread->samples[SAMPLE_CPU], "cpu");
	put_samples(out, p, &thread->samples[SAMPLE_IDLE], "idle");
}

/* Functions with a place of their definition, and files with a build-id. */
static inline void put_tables(FILE *out, const struct profile *p)
{
	for (size_t i = 1; i < p->function_count; i++) {
		const struct profile_function *f = &p->functions[i];

		if (!f->definition_file.v && !f->definition_line)
			continue;
		fprintf(out, "function %s %s:%u:%u", profile__string(p, f->name),
			profile__string(p, f->definition_file), f->definition_line,
			f->definition_column);
		fprintf(out, f->size ? " %llu bytes\n" : "\n", (unsigned long long)f->size);
	}
	for (size_t i = 1; i < p->dso_count; i++) {
		if (!p->dsos[i].build_id_size)
			continue;
		fprintf(out, "file %s ", profile__string(p, p->dsos[i].path));
		for (size_t k = 0; k < p->dsos[i].build_id_size; k++)
			fprintf(out, "%02x", p->dsos[i].build_id[k]);
		fputc('\n', out);
	}
}

static inline void put_profile(FILE *out, const struct profile *p)
{
	fprintf(out, "%llu ns", (unsigned long long)(p->end - p->start));
	if (p->start != PROFILE_MADE_UP_START)
		fprintf(out, " from %llu", (unsigned long long)p->start);
	fprintf(out, ", realtime %llu, period %llu, %llu samples",
		(unsigned long long)p->start_realtime, (unsigned long long)p->period,
		(unsigned long long)p->sample_count);
	if (p->event.v)
		fprintf(out, " of %llu %s%s%s", (unsigned long long)p->event_count,
			strcmp(profile__event_unit(p), "count") ? profile__event_unit(p) : "",
			strcmp(profile__event_unit(p), "count") ? " of " : "", profile__event(p));
	if (p->uncounted)
		fprintf(out, ", uncounted, %llu ns each", (unsigned long long)p->tick_cpu);
	fprintf(out, "%s%s%s%s\n", p->untimed ? ", untimed" : "",
		p->idle_known ? ", idle known" : "", p->weight_ahead ? ", weight ahead" : "",
		profile__meta(p, META_CPU_TIME) ? ", no CPU time" : "");
	if (profile__meta(p, META_NOT_READ))
		fprintf(out, "not read: %s\n", profile__meta(p, META_NOT_READ));
	for (size_t i = 1; i < p->thread_count; i++)
		put_thread(out, p, &p->threads[i]);
	put_tables(out, p);
}

/* The error, where it is, and why. */
static inline void put_failure(FILE *out, const struct imported *i, const char *input, size_t size)
{
	size_t at = i->failure.offset < size ? (size_t)i->failure.offset : size;
	size_t shown = strcspn(input + at, "\n");

	text_put_error(out, i->err);
	fprintf(out,
		at < size ? " before '%.*s': " : " at the end: ", (int)(shown < 10 ? shown : 10),
		input + at);
	fputs(i->failure.what, out);
}

#endif
