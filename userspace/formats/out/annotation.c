/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/annotation.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/parse.h"
#include "elf/disassembly.h"
#include "formats/out/report_paint.h"
#include "formats/out/report_rows.h"

#define TAB	      8
#define LINE_MAX_SIZE 1024 /* what is behind is no text for people */

static uint64_t hash_line(const struct annotation_line *l)
{
	return hash_combine(hash_u64((uint64_t)l->file.v << 32 | l->line), l->root);
}

static bool equal_lines(const struct annotation_line *a, const struct annotation_line *b)
{
	return a->file.v == b->file.v && a->root == b->root && a->line == b->line;
}

static uint64_t hash_copy(const struct annotation_copy *c)
{
	return hash_u64((uint64_t)c->function << 32 | c->version) ^ hash_u64(c->process.v);
}

static bool equal_copies(const struct annotation_copy *a, const struct annotation_copy *b)
{
	return a->function == b->function && a->version == b->version && a->code == b->code &&
	       a->process.v == b->process.v && a->dso.v == b->dso.v;
}

MAP_FUNCTIONS_OF(annotation_lines, struct annotation_line, hash_line, equal_lines);
MAP_FUNCTIONS_OF(annotation_copies, struct annotation_copy, hash_copy, equal_copies);

uint16_t elf_machine_of(enum code_machine machine)
{
	static const uint16_t machines[CODE_MACHINE_COUNT] = {
		[CODE_MACHINE_X86_64] = EM_X86_64, [CODE_MACHINE_ARM64] = EM_AARCH64};

	return machines[machine];
}

/* ---- which functions ------------------------------------------------------------------------- */

/* "find.cold", "find [clone .part.0]": parts and versions that a compiler made of one function. */
static bool is_clone_of(const char *name, const char *function)
{
	static const char *const ends[] = {".cold",	".part.", ".constprop.", ".isra.",
					   ".lto_priv", ".llvm.", " [clone "};
	size_t length = strlen(function);

	if (strncmp(name, function, length))
		return false;
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (!strncmp(name + length, ends[i], strlen(ends[i])))
			return true;
	return !name[length];
}

/* "orders::find" ends with "find". */
static bool is_last_part_of(const char *name, size_t length, const char *part)
{
	size_t size = strlen(part);

	return length > size && strchr(":./", name[length - size - 1]) &&
	       !memcmp(name + length - size, part, size);
}

static bool is_last_part(const char *name, const char *part)
{
	return is_last_part_of(name, strlen(name), part);
}

/* The length of a name of C++ without its parameters: of "find(int (*)(int)) const" that of "find". */
static size_t bare_length(const char *name)
{
	const char *end = strrchr(name, ')');
	unsigned int depth = 0;

	for (const char *at = end; at && at > name; at--) {
		depth += *at == ')';
		if (*at == '(' && !--depth)
			return (size_t)(at - name);
	}
	return strlen(name);
}

static bool is_without_parameters(const char *name, const char *bare)
{
	size_t length = bare_length(name);

	return (length == strlen(bare) && !memcmp(name, bare, length)) ||
	       is_last_part_of(name, length, bare);
}

static size_t want_by_name(struct annotation *a, const char *what,
			   bool (*matches)(const char *name, const char *what))
{
	const struct profile *p = a->p;
	size_t count = 0;

	for (size_t i = 1; i < p->function_count; i++) {
		const struct profile_function *f = &p->functions[i];

		a->wanted[i] = matches(profile__string(p, f->name), what) ||
			       matches(profile__string(p, f->full_name), what);
		count += a->wanted[i];
	}
	return count;
}

static bool is_path(const struct profile *p, struct string_id file, const char *wanted)
{
	const char *path = profile__string(p, file);

	return !strcmp(path, wanted) || is_last_part(path, wanted);
}

/* The functions with the line; if none has it, those which begin last before it in the file. */
static size_t want_by_line(struct annotation *a, const char *file, uint64_t line)
{
	const struct profile *p = a->p;
	uint32_t nearest = 0;
	size_t count = 0;

	for (size_t i = 0; i < p->line_count; i++)
		if (p->lines[i].line == line && is_path(p, p->lines[i].file, file))
			a->wanted[p->lines[i].function.v] = true;
	for (size_t i = 0; i < p->code_row_count; i++)
		if (p->code_rows[i].line == line && is_path(p, p->code_rows[i].file, file))
			a->wanted[p->code_rows[i].function.v] = true;
	a->wanted[0] = false;
	for (size_t i = 1; i < p->function_count; i++)
		count += a->wanted[i];
	for (size_t i = 1; i < p->function_count && !count; i++)
		if (p->functions[i].definition_line <= line &&
		    p->functions[i].definition_line > nearest &&
		    is_path(p, p->functions[i].definition_file, file))
			nearest = p->functions[i].definition_line;
	for (size_t i = 1; i < p->function_count && nearest; i++) {
		a->wanted[i] = p->functions[i].definition_line == nearest &&
			       is_path(p, p->functions[i].definition_file, file);
		count += a->wanted[i];
	}
	return count;
}

static int choose_functions(struct annotation *a, const char *what)
{
	const char *colon = strrchr(what, ':');
	_cleanup_free_ char *file = NULL;
	uint64_t line;

	if (want_by_name(a, what, is_clone_of) || want_by_name(a, what, is_last_part) ||
	    want_by_name(a, what, is_without_parameters))
		return 0;
	if (!colon || parse_u64(colon + 1, 1, UINT32_MAX, &line))
		return -ENOENT;
	file = strndup(what, (size_t)(colon - what));
	if (!file)
		return -ENOMEM;
	return want_by_line(a, file, line) ? 0 : -ENOENT;
}

/* ---- counting -------------------------------------------------------------------------------- */

struct hit {
	uint32_t stack;
	uint64_t samples;
	double square;
	const struct profile_code *code; /* at the leaf, … */
	uint64_t instruction, end;	 /* … and the addresses of the instruction there */
};

static void add_total(struct annotation_counts *counts, uint32_t *stamp, const struct hit *hit)
{
	if (*stamp == hit->stack)
		return;
	*stamp = hit->stack;
	counts->total += hit->samples;
	counts->total_square += hit->square;
}

static void find_leaf(const struct profile *p, struct hit *hit)
{
	const struct profile_location *l = &p->locations[p->stacks[hit->stack].location.v];
	uint64_t offset;

	hit->code = profile__code(p, l);
	if (!hit->code)
		return;
	offset = l->address - hit->code->address;
	hit->instruction = l->address;
	hit->end = l->address + instruction_size(elf_machine_of(hit->code->machine),
						 hit->code->bytes + offset,
						 hit->code->size - offset);
}

/*
 * A function that was sampled at a call of itself has its own address, and those within the call where
 * it was called from: they are of one instruction.
 */
static bool is_at_leaf(const struct profile *p, const struct profile_location *l,
		       const struct hit *hit)
{
	return hit->code && l->address > hit->instruction && l->address < hit->end &&
	       profile__code(p, l) == hit->code;
}

static void add_self(struct annotation_counts *counts, const struct hit *hit)
{
	counts->self += hit->samples;
	counts->self_square += hit->square;
}

/* Of the source that the code has, or would have if there were one. */
static uint8_t root_of_file(const struct profile *p, struct dso_id dso, struct string_id file)
{
	const struct profile_source *source = profile__source(p, dso, file);

	if (source)
		return source->root;
	return profile__first_source(p, file) ? profile__source_root(p, dso) : 0;
}

static struct annotation_line *line_of(struct annotation *a, const struct profile_line *line,
				       struct dso_id dso)
{
	struct annotation_line key = {.line = line->line, .dso = dso};

	if (line->line) {
		key.file = line->file;
		key.root = root_of_file(a->p, dso, line->file);
	}
	return annotation_lines__need(&a->lines, &key, NULL);
}

static struct annotation_copy *copy_of(struct annotation *a, const struct profile_location *l)
{
	const struct profile_line *outer = &a->p->lines[l->first_line + l->line_count - 1];
	const struct annotation_copy key = {
		.function = outer->function.v,
		.dso = l->dso,
		.process = l->process,
		.version = l->code_version ?: l->version,
		.tier = l->tier,
		.to_elf = l->elf_address == PROFILE_UNKNOWN_ADDRESS ? 0
								    : l->elf_address - l->address,
		.code = profile__code(a->p, l),
	};

	return annotation_copies__need(&a->copies, &key, NULL);
}

/* 0 or -ENOMEM. *found: one of its lines is of the function. */
static int count_place(struct annotation *a, struct location_id id, bool is_leaf,
		       const struct hit *hit, bool *found)
{
	const struct profile_location *l = &a->p->locations[id.v];
	struct annotation_counts *place = &a->of_place[id.v];
	struct annotation_copy *copy = NULL;

	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line line = profile__source_line(a->p, l, l->first_line + i);
		struct annotation_line *row;

		if (!a->wanted[line.function.v])
			continue;
		row = line_of(a, &line, l->dso);
		copy = copy ?: copy_of(a, l);
		if (!row || !copy)
			return -ENOMEM;
		*found = true;
		row->is_beginning |= line.line != a->p->lines[l->first_line + i].line;
		add_total(&row->counts, &row->stamp, hit);
		add_total(&copy->counts, &copy->stamp, hit);
		if (!is_at_leaf(a->p, l, hit))
			add_total(place, &a->stamp_of_place[id.v], hit);
		if (!is_leaf || i)
			continue;
		add_self(&row->counts, hit);
		add_self(&copy->counts, hit);
		if (l->ambiguous)
			copy->doubtful += hit->samples;
		add_self(place, hit);
		add_self(&a->counts, hit);
	}
	return 0;
}

static int count_stack(struct annotation *a, struct hit *hit)
{
	const struct profile *p = a->p;
	bool found = false;
	uint32_t stamp = 0;
	int err = 0;

	find_leaf(p, hit);
	for (uint32_t at = hit->stack; at && !err; at = p->stacks[at].parent.v)
		err = count_place(a, p->stacks[at].location, at == hit->stack, hit, &found);
	if (found)
		add_total(&a->counts, &stamp, hit);
	return err;
}

static int count(struct annotation *a)
{
	const struct profile *p = a->p;
	_cleanup_free_ uint64_t *hits = calloc(p->stack_count + 1, sizeof(*hits));
	_cleanup_free_ double *squares = calloc(p->stack_count + 1, sizeof(*squares));
	int err = 0;

	if (!hits || !squares)
		return -ENOMEM;
	profile__count_stacks(p, hits);
	add_squares(p, squares);
	for (uint32_t i = 1; i < p->stack_count && !err; i++)
		if (hits[i])
			err = count_stack(a, &(struct hit){i, hits[i], squares[i], NULL, 0, 0});
	return err;
}

/* Lines that have code and no samples: readers see where none are. */
static int add_quiet_lines(struct annotation *a)
{
	const struct profile *p = a->p;

	for (size_t i = 0; i < p->code_count; i++) {
		const struct profile_code *code = &p->codes[i];

		for (size_t k = code->first_row; k < code->first_row + code->row_count; k++) {
			const struct profile_code_row *row = &p->code_rows[k];
			const struct profile_line line = {.file = row->file, .line = row->line};

			if (row->line && a->wanted[row->function.v] &&
			    !line_of(a, &line, code->dso))
				return -ENOMEM;
		}
	}
	return 0;
}

static int compare_lines(const void *x, const void *y, void *context)
{
	const struct annotation_line *a = x, *b = y;
	const struct profile *p = context;

	return (a->file.v == b->file.v
			? 0
			: strcmp(profile__string(p, a->file), profile__string(p, b->file)))
		       ?: order_of(a->root, b->root)
		       ?: order_of(a->line, b->line);
}

DEFINE_ORDER(compare_copies, struct annotation_copy, DESCENDING(counts.self) ?: DESCENDING(counts.total) ?: ASCENDING(function) ?: ASCENDING(version) ?: ASCENDING(process.v));

DEFINE_ORDER(compare_versions, struct annotation_copy, ASCENDING(version));

/* Machine code of JIT compilers is numbered in the whole profile: here from 0 on, without gaps. */
static void number_versions(struct annotation *a)
{
	uint32_t last = 0, number = 0;
	bool is_first = true;

	vec_sort(&a->copies, compare_versions);
	for (size_t i = 0; i < a->copies.count; i++) {
		struct annotation_copy *copy = &a->copies.data[i];

		if (a->p->dsos[copy->dso.v].kind != DSO_JIT)
			continue;
		number += !is_first && copy->version != last;
		last = copy->version;
		copy->version = number;
		is_first = false;
	}
}

int annotation__init(struct annotation *a, const struct profile *p, const char *what)
{
	int err;

	*a = (struct annotation){.p = p};
	a->wanted = calloc(p->function_count + 1, sizeof(*a->wanted));
	a->of_place = calloc(p->location_count + 1, sizeof(*a->of_place));
	a->stamp_of_place = calloc(p->location_count + 1, sizeof(*a->stamp_of_place));
	if (!a->wanted || !a->of_place || !a->stamp_of_place)
		return -ENOMEM;
	err = choose_functions(a, what) ?: count(a) ?: add_quiet_lines(a);
	if (err)
		return err;
	vec_sort_r(&a->lines, compare_lines, (void *)p);
	number_versions(a);
	vec_sort(&a->copies, compare_copies);
	return 0;
}

void annotation__fini(struct annotation *a)
{
	free(a->wanted);
	free(a->of_place);
	free(a->stamp_of_place);
	annotation_lines__fini(&a->lines);
	annotation_copies__fini(&a->copies);
}

struct annotation_counts *annotation__bytes(const struct annotation *a,
					    const struct annotation_copy *copy)
{
	const struct profile *p = a->p;
	struct annotation_counts *bytes = calloc(copy->code->size, sizeof(*bytes));

	for (size_t i = 1; bytes && i < p->location_count; i++) {
		const struct profile_location *l = &p->locations[i];
		const struct annotation_counts *from = &a->of_place[i];
		struct annotation_counts *to;

		if (!from->total || profile__code(p, l) != copy->code ||
		    p->lines[l->first_line + l->line_count - 1].function.v != copy->function)
			continue;
		to = &bytes[l->address - copy->code->address];
		to->self += from->self;
		to->total += from->total;
		to->self_square += from->self_square;
		to->total_square += from->total_square;
	}
	return bytes;
}

/* ---- sentences and lines --------------------------------------------------------------------- */

const char *annotation_skid(const struct profile *p)
{
	return p->event.v ? "an event's sample names an instruction behind the one that caused it: "
			    "the cost may be of one of those before"
			  : "a timer's sample names the instruction that was about to run: the "
			    "time may be of the one before";
}

const char *annotation_no_code(const struct profile *p)
{
	return p->code_count ? "the recording has no machine code of it"
			     : "the recording has no machine code";
}

const char *source_name(const struct profile *p, struct dso_id dso, struct string_id path,
			char name[static SOURCE_NAME_SIZE])
{
	const struct profile_source *first = profile__first_source(p, path);
	const uint8_t root = root_of_file(p, dso, path);
	const char *text = profile__string(p, path);

	if (!first || root == first->root)
		return text;
	if (root <= SOURCE_ROOT_LAST)
		snprintf(name, SOURCE_NAME_SIZE, "%s (root directory %u)", text, root + 1u);
	else
		snprintf(name, SOURCE_NAME_SIZE, "%s (%s)", text,
			 root == SOURCE_ROOT_SCRIPTS ? "script"
			 : root == SOURCE_ROOT_NONE  ? "unknown root directory"
						     : "--source-map");
	return name;
}

int source_lines__init(struct source_lines *lines, const struct profile_source *source)
{
	int err = 0;

	*lines = (struct source_lines){.source = source};
	for (uint32_t at = 0; source && at < source->size && !err;) {
		const char *newline = memchr(source->text + at, '\n', source->size - at);

		err = vec_push(&lines->starts, at);
		at = newline ? (uint32_t)(newline - source->text) + 1 : source->size;
	}
	return err;
}

void source_lines__fini(struct source_lines *lines)
{
	vec_free(&lines->starts);
}

/* The line with tabs as blanks; the caller frees. */
static char *expand(const char *text, size_t size)
{
	char *expanded = malloc(TAB * size + 1);
	size_t column = 0;

	for (size_t i = 0; expanded && i < size; i++) {
		size_t width = text[i] == '\t' ? TAB - column % TAB : 1;

		memset(expanded + column, text[i] == '\t' ? ' ' : text[i], width);
		column += width;
	}
	if (expanded)
		expanded[column] = '\0';
	return expanded;
}

char *source_lines__text(const struct source_lines *lines, uint32_t line)
{
	_cleanup_free_ char *expanded = NULL;
	const char *text;
	size_t size;

	if (!line || line > lines->starts.count)
		return NULL;
	text = lines->source->text + lines->starts.data[line - 1];
	size = (line < lines->starts.count ? lines->starts.data[line] : lines->source->size) -
	       lines->starts.data[line - 1];
	while (size && (text[size - 1] == '\n' || text[size - 1] == '\r'))
		size--;
	size = min_u64(size, LINE_MAX_SIZE);
	expanded = expand(text, size);
	return expanded && *expanded ? printable_copy(expanded) : NULL;
}
