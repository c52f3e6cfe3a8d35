/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/frames.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <sysprof/profile.h>

#include "base/cleanup.h"
#include "base/file_url.h"
#include "base/suffix.h"
#include "formats/in/import.h"

#define DELETED	    " (deleted)"
#define PART_OF_MAX (1u << 16)
#define SUM_MAX	    (1ULL << 62)

struct frame_key {
	const struct frame *frame;
	const struct profile_line *lines;
	uint32_t line_count;
};

static bool same_frame(const struct frame *a, const struct frame *b)
{
	return a->dso.v == b->dso.v && a->category == b->category && a->process.v == b->process.v &&
	       a->address == b->address && a->elf_address == b->elf_address && a->tier == b->tier &&
	       a->ambiguous == b->ambiguous;
}

static struct frame_key key_of(const struct known_frames *known, const struct known_frame *frame)
{
	const struct frames *f = map_owner(known, struct frames, known);

	return (struct frame_key){&frame->frame,
				  frame->line_count ? &f->lines.data[frame->first_line] : NULL,
				  frame->line_count};
}

static bool same_key(struct frame_key a, struct frame_key b)
{
	return a.line_count == b.line_count && same_frame(a.frame, b.frame) &&
	       (!a.line_count || !memcmp(a.lines, b.lines, a.line_count * sizeof(*a.lines)));
}

static uint64_t hash_key(struct frame_key k)
{
	uint64_t hash = hash_combine(hash_u64(k.frame->address),
				     hash_u64((uint64_t)k.frame->dso.v << 32 | k.frame->process.v));

	return k.line_count
		       ? hash_combine(hash, hash_bytes(k.lines, k.line_count * sizeof(*k.lines)))
		       : hash;
}

MAP_FUNCTIONS(known_frames, struct known_frame, struct frame_key, key_of, hash_key, same_key);

static void report_left_out(const struct frames *f)
{
	static const char *const texts[LEFT_OUT_COUNT] = {
#define X(name, text) [LEFT_OUT_##name] = text,
		IMPORT_LEFT_OUT(X)
#undef X
	};
	char report[1024];
	size_t used = 0;

	for (int i = 0; i < LEFT_OUT_COUNT; i++)
		if (f->left_out[i] && used < sizeof(report))
			used += (size_t)snprintf(report + used, sizeof(report) - used,
						 "%s%s%s: %" PRIu64, used ? "; " : "", texts[i],
						 f->details[i] ? f->details[i] : "",
						 f->left_out[i]);
	if (used)
		profile_builder__meta(f->b, META_NOT_READ, report);
}

/* What is beyond a bound is left out. */
int frames__part_of(struct frames *f, const char *what, const char *at, size_t size)
{
	const struct {
		const char *at;
		size_t size;
	} texts[] = {{PART_OF_NEXT, f->part.count ? strlen(PART_OF_NEXT) : 0},
		     {what, strlen(what)},
		     {at, size}};

	if (f->part.count + size > PART_OF_MAX)
		return 0;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (vec_reserve(&f->part, f->part.count + texts[i].size + 1))
			return -ENOMEM;
		memcpy(f->part.data + f->part.count, texts[i].at, texts[i].size);
		f->part.count += texts[i].size;
		f->part.data[f->part.count] = '\0';
	}
	return 0;
}

void frames__fini(struct frames *f)
{
	report_left_out(f);
	if (f->part.count)
		profile_builder__meta(f->b, META_PART_OF, f->part.data);
	vec_free(&f->part);
	known_frames__fini(&f->known);
	vec_free(&f->lines);
	vec_free(&f->text);
	vec_free(&f->has_sample);
	vec_free(&f->cpu_sums);
}

/* If a frame with other lines has the address, this is another version of that location. */
static struct location_id new_location(struct frames *f, const struct frame *frame)
{
	size_t before = profile_builder__location_count(f->b);
	struct location_id id = profile_builder__location(f->b, frame->dso, frame->address,
							  frame->process, frame->category);

	if (!id.v || profile_builder__location_count(f->b) > before)
		return id;
	return profile_builder__version(f->b, profile_builder__get_location(f->b, id),
					++f->versions);
}

static bool has_build_id(const struct frames *f, struct dso_id id)
{
	const struct profile_dso *dso = profile_builder__get_dso(f->b, id);

	return dso->kind == DSO_FILE && dso->build_id_size;
}

struct location_id frames__location(struct frames *f, const struct frame *frame,
				    const struct profile_line *lines, uint32_t line_count)
{
	const struct known_frame wanted = {
		.first_line = (uint32_t)f->lines.count, .line_count = line_count, .frame = *frame};
	struct known_frame *known;
	bool is_new;

	if (f->lines.count + line_count > UINT32_MAX ||
	    vec_reserve(&f->lines, f->lines.count + line_count))
		return (struct location_id){0};
	if (line_count)
		memcpy(f->lines.data + f->lines.count, lines, line_count * sizeof(*lines));
	known = known_frames__need(&f->known, &wanted, &is_new);
	if (!known || !is_new)
		return known ? known->location : (struct location_id){0};
	f->lines.count += line_count;
	f->has_unnamed |= !line_count && has_build_id(f, frame->dso);
	known->location = new_location(f, frame);
	profile_builder__resolve(f->b, known->location, frame->elf_address, lines, line_count);
	if (frame->tier != CODE_TIER_NONE || frame->ambiguous)
		profile_builder__code(f->b, known->location, frame->tier, frame->ambiguous);
	return known->location;
}

/* Are numbers of this sample beyond the sums of the profile, which cuts them? */
static bool is_cut(struct frames *f, struct thread_id thread, const struct profile_sample *sample)
{
	const struct profile *session = profile_builder__session(f->b);
	uint64_t *cpu = vec_at(&f->cpu_sums, thread.v);
	uint64_t weight = sample->kind == SAMPLE_CPU ? sample->weight : 0;
	bool cut;

	if (!cpu)
		return false;
	cut = sample->ticks >= SUM_MAX - session->sample_count ||
	      sample->events >= SUM_MAX - session->event_count || weight >= SUM_MAX - *cpu;
	*cpu += weight < SUM_MAX - *cpu ? weight : 0;
	return cut;
}

int frames__sample(struct frames *f, struct thread_id thread, const struct profile_sample *sample,
		   struct import_failure *failure, uint64_t offset)
{
	bool *has_sample = vec_at(&f->has_sample, sample->stack.v);

	if (!has_sample || profile_builder__error(f->b))
		return -ENOMEM;
	f->stack_frames += *has_sample ? 0 : profile_builder__get_stack(f->b, sample->stack)->depth;
	*has_sample = true;
	if (f->stack_frames > IMPORT_FRAMES_MAX)
		return import_fail(failure, offset, -E2BIG,
				   "its stacks have more than %llu frames in all",
				   IMPORT_FRAMES_MAX);
	if (profile_builder__stack_count(f->b) > IMPORT_PATHS_MAX)
		return import_fail(failure, offset, -E2BIG, "it has more than %u call paths",
				   IMPORT_PATHS_MAX);
	f->left_out[LEFT_OUT_SUMS] += is_cut(f, thread, sample);
	profile_builder__sample(f->b, thread, sample);
	return profile_builder__error(f->b);
}

struct location_id frames__nowhere(struct frames *f, struct process_id process)
{
	const struct frame nowhere = {
		.dso = frames__dso(f, DSO_UNKNOWN, "", 0),
		.process = process,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
	};

	return frames__location(f, &nowhere, NULL, 0);
}

/* "/tmp/perf-12.map": the functions of a JIT compiler. */
static bool is_perf_map(const char *path)
{
	const char *base = path_base(path), *number = base + 5;

	return !strncmp(base, "perf-", 5) && number[strspn(number, "0123456789")] == '.' &&
	       has_suffix(number, ".map");
}

enum dso_kind frames__mapping_kind(const char *path, enum profile_category *category)
{
	if (!strncmp(path, "[kernel", 7) || !strncmp(path, "[guest.kernel", 13)) {
		*category = CATEGORY_KERNEL;
		return DSO_KERNEL;
	}
	if (!*path || !strncmp(path, "//anon", 6) || !strncmp(path, "[anon", 5)) {
		*category = CATEGORY_JIT;
		return DSO_JIT;
	}
	if (is_perf_map(path)) {
		*category = CATEGORY_JIT;
		return DSO_JIT;
	}
	if (has_suffix(path, ".py") || *path == '<') { /* "<frozen os>" */
		*category = CATEGORY_JIT;
		return DSO_RUNTIME;
	}
	*category = is_library_path(path) || *path == '[' ? CATEGORY_LIBRARY : CATEGORY_USER;
	return strcmp(path, "[vdso]") ? DSO_FILE : DSO_VDSO;
}

struct dso_id frames__dso(struct frames *f, enum dso_kind kind, const char *path, uint64_t number)
{
	bool deleted = has_suffix(path, DELETED);
	_cleanup_free_ char *kept = deleted ? strndup(path, strlen(path) - strlen(DELETED)) : NULL;
	const char *slash = strrchr(kept ? kept : path, '/');
	const char *name = slash && slash[1] ? slash + 1 : kept ? kept : path;
	struct profile_dso dso = {
		.kind = kind,
		.deleted = kept,
		.path = profile_builder__string(f->b, kept ? kept : path),
		.name = profile_builder__string(f->b, name),
		.is_library = is_library_path(name),
		.file_state = FILE_STATE_UNOPENED,
		.symbol_state = SYMBOL_STATE_RESOLVED,
		.is_interpreted = kind == DSO_RUNTIME,
		.inode = number,
	};

	return profile_builder__dso(f->b, &dso);
}

struct function_id frames__function(struct frames *f, const char *name, struct dso_id dso,
				    struct string_id file, uint32_t line, uint32_t column)
{
	return frames__named(f, profile_builder__string(f->b, name), dso, file, line, column);
}

struct function_id frames__named(struct frames *f, struct string_id name, struct dso_id dso,
				 struct string_id file, uint32_t line, uint32_t column)
{
	const struct profile_function function = {
		.name = name.v ? name : profile_builder__string(f->b, "(anonymous)"),
		.dso = dso,
		.address = PROFILE_UNKNOWN_ADDRESS,
		.definition_file = file,
		.definition_line = line,
		.definition_column = column,
	};

	return profile_builder__function(f->b, &function);
}

const char *frames__text(struct frames *f, const char *at, size_t size)
{
	if (vec_reserve(&f->text, size + 1))
		return NULL;
	if (size)
		memcpy(f->text.data, at, size);
	f->text.data[size] = '\0';
	return f->text.data;
}

struct string_id frames__file(struct frames *f, const char *url)
{
	_cleanup_free_ char *path = file_url_decode(url);

	return path ? profile_builder__string(f->b, path) : (struct string_id){0};
}
