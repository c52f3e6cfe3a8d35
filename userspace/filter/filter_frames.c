/* SPDX-License-Identifier: BSD-2-Clause */
#include "filter/filter_frames.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "profile/profile.h"

/* Bits of clauses, by their number. */
typedef uint64_t clause_set;

/* What a location becomes in a stack whose caller has matched `inside`. */
struct variant {
	uint32_t location;  /* of the profile */
	uint32_t made;	    /* number of the new one; 0: nothing is left of it */
	clause_set inside;  /* collapse: those that the caller's innermost frame has matched */
	clause_set outside; /* … and those that its own innermost frame has */
};

static uint64_t hash_variant(const struct variant *v)
{
	return hash_combine(hash_u64(v->location), hash_u64(v->inside));
}

static bool same_variant(const struct variant *a, const struct variant *b)
{
	return a->location == b->location && a->inside == b->inside;
}

DEFINE_MAP_OF(variants, struct variant, hash_variant, same_variant);

/* The one location of a file. JIT code has one a process. */
struct file_location {
	uint64_t key;
	uint32_t made;
};

DEFINE_MAP_BY(file_locations, struct file_location, uint64_t, key);

struct made_stack {
	uint64_t key; /* parent << 32 | location */
};

DEFINE_MAP_BY(made_stacks, struct made_stack, uint64_t, key);

/* A stack as far as it has been walked. */
struct walked {
	clause_set matched; /* focus, ignore: by any of its frames */
	clause_set inside;
	uint32_t file; /* of the innermost frame, if files are collapsed */
	uint8_t begun; /* how many of the show-from clauses have matched, one behind the other */
	bool visible;  /* a frame is not hidden */
};

struct walk {
	struct filter_frames *out;
	const struct profile_filter *filter;
	const struct profile *p;
	clause_set of_kind[FILTER_KIND_COUNT];
	uint8_t show_from[FILTER_CLAUSES_MAX]; /* numbers of clauses */
	uint8_t show_from_count;
	bool files; /* --collapse dso */
	clause_set *string_set, *dso_set, *location_set;
	bool *string_known;
	struct variants variants;
	struct file_locations file_locations;
	struct made_stacks made;
	VEC(uint32_t) kept; /* scratch: lines of a location that stay */
	int error;
	struct failure *failure;
};

/* ---- matches --------------------------------------------------------------------------------- */

static clause_set match_text(struct walk *w, const char *text)
{
	size_t size = strlen(text);
	clause_set set = 0;

	for (size_t i = 0; i < w->filter->count; i++) {
		struct pattern *pattern = w->filter->clauses[i].pattern;
		int matches = pattern ? pattern__matches(pattern, text, size) : 0;

		if (matches < 0 && !w->error)
			w->error = fail(w->failure, matches,
					"--%s %s takes too long on the names of this profile; "
					"one with fewer repetitions takes less",
					filter_kind_name(w->filter->clauses[i].kind),
					w->filter->clauses[i].text);
		if (matches > 0)
			set |= UINT64_C(1) << i;
	}
	return set;
}

static clause_set match_string(struct walk *w, struct string_id id)
{
	if (!w->string_known[id.v]) {
		w->string_known[id.v] = true;
		w->string_set[id.v] = match_text(w, profile__string(w->p, id));
	}
	return w->string_set[id.v];
}

/* By its function's name, and the file of its source. */
static clause_set match_line(struct walk *w, uint32_t line)
{
	const struct profile_line *l = &w->p->lines[line];
	const struct profile_function *f = &w->p->functions[l->function.v];

	return match_string(w, f->name) | match_string(w, l->file.v ? l->file : f->definition_file);
}

/* By the file with the code; code in no file has none. */
static clause_set match_dso(struct walk *w, struct dso_id id)
{
	const struct profile_dso *dso = &w->p->dsos[id.v];

	if (dso_has_path(dso))
		return match_string(w, dso->path);
	if (dso->kind == DSO_VDSO || dso->kind == DSO_KERNEL)
		return match_text(w, dso_display_name(w->p, id));
	return 0;
}

static clause_set match_location(struct walk *w, const struct profile_location *l)
{
	clause_set set = w->dso_set[l->dso.v];

	for (uint32_t i = 0; i < l->line_count; i++)
		set |= match_line(w, l->first_line + i);
	return set;
}

static void match_all(struct walk *w)
{
	for (uint32_t i = 1; i < w->p->dso_count && !w->error; i++)
		w->dso_set[i] = match_dso(w, (struct dso_id){i});
	for (size_t i = 1; i < w->p->location_count && !w->error; i++)
		w->location_set[i] = match_location(w, &w->p->locations[i]);
}

/* ---- locations ------------------------------------------------------------------------------- */

static void keep_line(struct walk *w, uint32_t line)
{
	if (vec_push(&w->kept, line))
		w->error = w->error ?: -ENOMEM;
}

/* Its lines that --hide leaves, innermost first, into w->kept. */
static void hide_lines(struct walk *w, const struct profile_location *l)
{
	clause_set hide = w->of_kind[FILTER_HIDE];

	w->kept.count = 0;
	if (w->dso_set[l->dso.v] & hide)
		return;
	for (uint32_t i = l->first_line; i < l->first_line + l->line_count; i++)
		if (!(match_line(w, i) & hide))
			keep_line(w, i);
}

/* Does this clause match what --hide has left? Lines outside of the outermost match go. */
static bool show_from_here(struct walk *w, const struct profile_location *l, uint8_t clause)
{
	clause_set bit = UINT64_C(1) << clause;

	if (w->dso_set[l->dso.v] & bit)
		return true;
	for (size_t i = w->kept.count; i-- > 0;) {
		if (!(match_line(w, w->kept.data[i]) & bit))
			continue;
		w->kept.count = i + 1;
		return true;
	}
	return false;
}

/* Lines whose outer neighbour matches a --collapse, as they do, go. From outermost to innermost. */
static clause_set collapse_lines(struct walk *w, const struct profile_location *l,
				 clause_set inside)
{
	clause_set collapse = w->of_kind[FILTER_COLLAPSE];
	size_t left = w->kept.count;

	for (size_t i = w->kept.count; i-- > 0;) {
		uint32_t line = w->kept.data[i];
		clause_set matched = (match_line(w, line) | w->dso_set[l->dso.v]) & collapse;
		clause_set rest = collapse;
		bool goes = false;

		/* each clause sees what those before it have left */
		for (; rest && !goes; rest &= rest - 1) {
			clause_set bit = rest & -rest;

			goes = matched & inside & bit;
			inside = (inside & ~bit) | (matched & bit);
		}
		if (!goes)
			w->kept.data[--left] = line;
	}
	if (left)
		vec_drop(&w->kept, left);
	return inside;
}

static bool is_sure(const struct profile_location *l, uint32_t line)
{
	return line + l->sure_lines >= l->first_line + l->line_count;
}

/* A location with the lines in w->kept. */
static uint32_t make_location(struct walk *w, const struct profile_location *from)
{
	struct profile_location l = *from;

	if (!w->kept.count)
		return 0;
	l.first_line = (uint32_t)w->out->lines.count;
	l.line_count = (uint32_t)w->kept.count;
	l.sure_lines = 0;
	for (size_t i = 0; i < w->kept.count; i++) {
		l.sure_lines += is_sure(from, w->kept.data[i]);
		if (vec_push(&w->out->lines, w->p->lines[w->kept.data[i]]))
			w->error = w->error ?: -ENOMEM;
	}
	if (vec_push(&w->out->locations, l))
		w->error = w->error ?: -ENOMEM;
	return (uint32_t)w->out->locations.count - 1;
}

/* Of a whole file, for --collapse dso. */
static uint32_t file_location(struct walk *w, const struct profile_location *from)
{
	const struct file_location wanted = {
		.key = (uint64_t)from->dso.v << 32 | from->process.v,
		.made = (uint32_t)w->out->locations.count,
	};
	struct profile_location l = {
		.dso = from->dso,
		.category = from->category,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
		.process = from->process,
		.first_line = (uint32_t)w->out->lines.count,
		.line_count = 1,
	};
	struct profile_line line = {
		.function = {(uint32_t)(w->p->function_count + w->out->functions.count)}};
	bool is_new = false;
	struct file_location *known = file_locations__need(&w->file_locations, &wanted, &is_new);

	if (!known ||
	    (is_new && (vec_push(&w->out->functions, from->dso) || vec_push(&w->out->lines, line) ||
			vec_push(&w->out->locations, l)))) {
		w->error = w->error ?: -ENOMEM;
		return 0;
	}
	return known->made;
}

static struct variant variant_of(struct walk *w, uint32_t location, clause_set inside)
{
	const struct profile_location *l = &w->p->locations[location];
	const struct variant wanted = {.location = location, .inside = inside};
	bool is_new = false;
	struct variant *v = variants__need(&w->variants, &wanted, &is_new);

	if (!v) {
		w->error = w->error ?: -ENOMEM;
		return wanted;
	}
	if (is_new) {
		hide_lines(w, l);
		for (uint8_t i = 0; i < w->show_from_count; i++)
			show_from_here(w, l, w->show_from[i]);
		v->outside = w->kept.count ? collapse_lines(w, l, inside) : inside;
		v->made = make_location(w, l);
	}
	return *v;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* How many of the show-from clauses have matched, with this frame. */
static uint8_t begin_here(struct walk *w, uint32_t location, uint8_t begun)
{
	const struct profile_location *l = &w->p->locations[location];

	if (begun == w->show_from_count ||
	    !(w->location_set[location] & w->of_kind[FILTER_SHOW_FROM]))
		return begun;
	hide_lines(w, l);
	for (uint8_t i = 0; i < w->show_from_count && w->kept.count; i++)
		begun += show_from_here(w, l, w->show_from[i]) && i == begun;
	return begun;
}

static bool is_hidden(struct walk *w, uint32_t location)
{
	if (!(w->location_set[location] & w->of_kind[FILTER_HIDE]))
		return false;
	hide_lines(w, &w->p->locations[location]);
	return !w->kept.count;
}

static uint32_t push_stack(struct walk *w, uint32_t parent, uint32_t location)
{
	const struct made_stack wanted = {(uint64_t)parent << 32 | location};
	struct profile_stack stack = {.parent = {parent}, .location = {location}};
	struct made_stack *known;
	bool is_new = false;
	uint32_t number = 0;

	known = made_stacks__need(&w->made, &wanted, &is_new);
	if (map_number(&w->made, known, &number) || w->error) {
		w->error = w->error ?: -ENOMEM;
		return 0;
	}
	stack.depth = w->out->stacks.data[parent].depth + 1;
	if (is_new && vec_push(&w->out->stacks, stack))
		w->error = w->error ?: -ENOMEM;
	return number + 1;
}

/* The new stack of a frame below `parent`, a new one. */
static uint32_t add_frame(struct walk *w, struct walked *at, uint32_t parent, uint32_t location)
{
	struct variant v = variant_of(w, location, at->inside);
	uint32_t file = w->p->locations[location].dso.v;

	at->inside = v.outside;
	if (!v.made)
		return parent;
	if (!w->files)
		return push_stack(w, parent, v.made);
	if (at->file == file)
		return parent;
	at->file = file;
	return push_stack(w, parent, file_location(w, &w->p->locations[location]));
}

/* The first clause that drops a sample with this stack. */
static uint8_t judge(const struct walk *w, const struct walked *at)
{
	clause_set missing = w->of_kind[FILTER_FOCUS] & ~at->matched;
	clause_set present = w->of_kind[FILTER_IGNORE] & at->matched;

	if (missing)
		return (uint8_t)__builtin_ctzll(missing);
	if (present)
		return (uint8_t)__builtin_ctzll(present);
	if (w->of_kind[FILTER_HIDE] && !at->visible)
		return (uint8_t)__builtin_ctzll(w->of_kind[FILTER_HIDE]);
	if (at->begun < w->show_from_count)
		return w->show_from[at->begun];
	return FRAMES_KEPT;
}

static void walk_stack(struct walk *w, struct walked *all, uint32_t id)
{
	const struct profile_stack *stack = &w->p->stacks[id];
	uint32_t location = stack->location.v;
	struct walked at = all[stack->parent.v];

	at.matched |= w->location_set[location];
	if (w->out->stack)
		w->out->stack[id] = w->out->stack[stack->parent.v];
	if (!is_hidden(w, location)) {
		at.visible = true;
		at.begun = begin_here(w, location, at.begun);
		if (w->out->stack && at.begun == w->show_from_count)
			w->out->stack[id] = add_frame(w, &at, w->out->stack[id], location);
	}
	all[id] = at;
	w->out->verdict[id] = judge(w, &at);
}

/* A sample without frames: nothing hides them. */
static uint8_t judge_empty(const struct walk *w)
{
	struct walked at = {.visible = true};

	return judge(w, &at);
}

static int walk_stacks(struct walk *w)
{
	_cleanup_free_ struct walked *all = calloc(w->p->stack_count, sizeof(*all));

	if (!all)
		return -ENOMEM;
	match_all(w);
	for (uint32_t i = 1; i < w->p->stack_count && !w->error; i++)
		walk_stack(w, all, i);
	w->out->verdict[0] = judge_empty(w);
	return w->error;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void sort_clauses(struct walk *w)
{
	for (size_t i = 0; i < w->filter->count; i++) {
		const struct filter_clause *clause = &w->filter->clauses[i];

		if (clause->kind == FILTER_SHOW_FROM)
			w->show_from[w->show_from_count++] = (uint8_t)i;
		if (clause->kind == FILTER_COLLAPSE && !clause->pattern)
			w->files = true;
		else
			w->of_kind[clause->kind] |= UINT64_C(1) << i;
		if (clause->pattern)
			pattern__begin(clause->pattern);
	}
}

static bool changes_stacks(const struct walk *w)
{
	return w->of_kind[FILTER_HIDE] || w->show_from_count || w->of_kind[FILTER_COLLAPSE] ||
	       w->files;
}

static int make_tables(struct walk *w)
{
	const struct profile *p = w->p;

	w->string_set = calloc(p->string_count + 1, sizeof(*w->string_set));
	w->string_known = calloc(p->string_count + 1, sizeof(*w->string_known));
	w->dso_set = calloc(p->dso_count + 1, sizeof(*w->dso_set));
	w->location_set = calloc(p->location_count + 1, sizeof(*w->location_set));
	w->out->verdict = malloc(p->stack_count + 1);
	if (!w->string_set || !w->string_known || !w->dso_set || !w->location_set ||
	    !w->out->verdict)
		return -ENOMEM;
	if (!changes_stacks(w))
		return 0;
	w->out->stack = calloc(p->stack_count + 1, sizeof(*w->out->stack));
	if (!w->out->stack || vec_push(&w->out->stacks, (struct profile_stack){}) ||
	    vec_push(&w->out->locations, (struct profile_location){}))
		return -ENOMEM;
	/* the placeholder's padding is compared, too */
	memset(w->out->locations.data, 0, sizeof(*w->out->locations.data));
	return 0;
}

int filter_frames__init(struct filter_frames *frames, const struct profile_filter *filter,
			const struct profile *p, struct failure *failure)
{
	struct walk w = {.out = frames, .filter = filter, .p = p, .failure = failure};
	int err;

	*frames = (struct filter_frames){};
	sort_clauses(&w);
	err = make_tables(&w) ?: walk_stacks(&w);
	free(w.string_set);
	free(w.string_known);
	free(w.dso_set);
	free(w.location_set);
	variants__fini(&w.variants);
	file_locations__fini(&w.file_locations);
	made_stacks__fini(&w.made);
	vec_free(&w.kept);
	if (err)
		filter_frames__fini(frames);
	return err;
}

void filter_frames__fini(struct filter_frames *frames)
{
	free(frames->verdict);
	free(frames->stack);
	vec_free(&frames->stacks);
	vec_free(&frames->locations);
	vec_free(&frames->lines);
	vec_free(&frames->functions);
}
