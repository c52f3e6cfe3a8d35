/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/text_limit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const size_t steps[] = {SIZE_MAX, 4096, 1024, 256, 64};

#define STEPS (sizeof(steps) / sizeof(steps[0]))

static uint64_t count_frames(const struct profile *p, const struct profile_samples *samples)
{
	uint64_t frames = 0;

	for (size_t k = 0; k < samples->count; k++)
		frames += p->stacks[samples->stack[k].v].depth;
	return frames;
}

uint64_t text_limit_of(const struct profile *p)
{
	uint64_t frames = 0;

	for (size_t i = 1; i < p->thread_count; i++)
		frames += count_frames(p, &p->threads[i].samples[SAMPLE_CPU]) +
			  count_frames(p, &p->threads[i].samples[SAMPLE_WALL]);
	return TEXT_FREE + TEXT_EACH * frames;
}

/*
 * In JSON control characters take six bytes, invalid bytes up to six, quotes two. In URLs
 * characters that are not ASCII take three times as much.
 */
static unsigned int escaped_size(const char *c, size_t sequence)
{
	if (sequence > 1)
		return 3 * sequence;
	if (!sequence || (unsigned char)*c < ' ' || *c == 0x7f)
		return 6;
	return *c == '"' || *c == '\\' ? 2 : 1;
}

struct text_size text_size_of(const char *text)
{
	size_t left = strlen(text);
	struct text_size size = {.plain = left < UINT32_MAX / 6 ? left : UINT32_MAX / 6};

	for (left = size.plain; left;) {
		size_t sequence = utf8_sequence(text, left), step = sequence ? sequence : 1;

		size.escaped += escaped_size(text, sequence);
		text += step;
		left -= step;
	}
	return size;
}

uint64_t text_limit__bytes(const struct text_limit *limit, struct text_size size)
{
	size_t longest = steps[limit->step];

	return size.plain <= longest ? size.escaped : size.escaped * longest / size.plain;
}

static uint64_t bytes_of_string(struct text_limit *limit, struct string_id id)
{
	struct text_size *size = &limit->sizes[id.v];

	if (!size->plain)
		*size = text_size_of(profile__string(limit->p, id));
	return text_limit__bytes(limit, *size);
}

static uint64_t bytes_of_line(struct text_limit *limit, const struct profile_line *line)
{
	const struct profile_function *f = &limit->p->functions[line->function.v];
	uint64_t bytes = 1 + bytes_of_string(limit, f->name);

	if (limit->files)
		bytes += bytes_of_string(limit, f->definition_file);
	return bytes;
}

uint64_t text_limit__location(struct text_limit *limit, struct location_id id)
{
	const struct profile_location *l = &limit->p->locations[id.v];
	uint64_t *bytes = &limit->of_location[id.v];

	if (!*bytes)
		for (uint32_t k = 0; k < l->line_count; k++)
			*bytes += bytes_of_line(limit, &limit->p->lines[l->first_line + k]);
	return *bytes;
}

int text_limit__init(struct text_limit *limit, const struct profile *p, bool files)
{
	*limit = (struct text_limit){.p = p, .files = files, .most = text_limit_of(p)};
	limit->sizes = calloc(p->string_count + 1, sizeof(*limit->sizes));
	limit->of_location = calloc(p->location_count + 1, sizeof(*limit->of_location));
	return limit->sizes && limit->of_location ? 0 : -ENOMEM;
}

void text_limit__fini(struct text_limit *limit)
{
	free(limit->sizes);
	free(limit->of_location);
	limit->sizes = NULL;
	limit->of_location = NULL;
}

bool text_limit__tighten(struct text_limit *limit, uint64_t bytes)
{
	if (bytes <= limit->most || limit->step + 1 == STEPS)
		return false;
	limit->step++;
	if (limit->of_location)
		memset(limit->of_location, 0,
		       limit->p->location_count * sizeof(*limit->of_location));
	return true;
}

/* Of a thread's call tree: each path once. `seen`: by stack, the last thread that has it. */
static uint64_t bytes_of_thread(struct text_limit *limit, uint32_t thread, uint32_t *seen)
{
	const struct profile *p = limit->p;
	const struct profile_samples *samples = &p->threads[thread].samples[SAMPLE_CPU];
	uint64_t bytes = 0;

	for (size_t i = 0; i < samples->count; i++)
		for (uint32_t at = samples->stack[i].v; at && seen[at] != thread;
		     at = p->stacks[at].parent.v) {
			seen[at] = thread;
			bytes += text_limit__location(limit, p->stacks[at].location);
		}
	return bytes;
}

int text_limit__fit_trees(struct text_limit *limit, const struct tracks *threads)
{
	uint32_t *seen = calloc(limit->p->stack_count + 1, sizeof(*seen));
	uint64_t bytes;

	if (!seen)
		return -ENOMEM;
	do {
		bytes = 0;
		memset(seen, 0, limit->p->stack_count * sizeof(*seen));
		for (size_t i = 0; i < threads->count; i++)
			bytes += bytes_of_thread(limit, threads->data[i].thread, seen);
	} while (text_limit__tighten(limit, bytes));
	free(seen);
	return 0;
}

const char *text_limit__cut(struct text_limit *limit, const char *name, char buffer[TEXT_CUT_SIZE])
{
	size_t longest = steps[limit->step], kept = longest;

	if (longest == SIZE_MAX || strnlen(name, longest + 1) <= longest)
		return name;
	limit->names_cut++;
	kept -= strlen("…");
	while (kept && ((unsigned char)name[kept] & 0xc0) == 0x80) /* not within a character */
		kept--;
	memcpy(buffer, name, kept);
	memcpy(buffer + kept, "…", sizeof("…"));
	return buffer;
}

void text_limit__report(const struct text_limit *limit, const struct export_request *request)
{
	if (!request->left_out || !limit->step)
		return;
	request->left_out->name_size = steps[limit->step];
	request->left_out->names += limit->names_cut;
}
