/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/in/perf_stacks.h"

#include <errno.h>

#include "base/parse.h"
#include "formats/in/import.h"

#define KERNEL		 "[kernel.kallsyms]"
#define DEFERRED_FRAME	 "(cookie)"   /* in place of frames that a later record has */
#define FILE_ADDRESS_MAX (1ULL << 36) /* above it is memory, no place in a file */
#define UPPER_HALF	 (1ULL << 63)
#define SYMBOL_DIGITS	 8	/* so many hexadecimal digits are an address, no name */
#define MEMORY_ACCESS	 "|OP " /* begins the description of one */

static uint64_t hash_location(const struct perf_location *l)
{
	return hash_combine(hash_bytes(l->text.at, span_size(l->text)), hash_u64(l->process.v));
}

#define is_same_location(a, b)                                                                     \
	((a)->process.v == (b)->process.v && is_same_span((a)->text, (b)->text))

MAP_FUNCTIONS_OF(perf_locations, struct perf_location, hash_location, is_same_location);

/* ---- frames ---------------------------------------------------------------------------------- */

/* "/usr/lib/debug/boot/vmlinux-6.1" */
static bool is_vmlinux(struct span path)
{
	const char *slash = memrchr(path.at, '/', span_size(path));

	return slash && span_begins((struct span){slash, path.end}, "/vmlinux");
}

static bool has_kernel_name(struct span dso)
{
	static const char *const begins[] = {"[kernel", "[guest.kernel"};
	static const char *const ends[] = {".ko", ".ko.gz", ".ko.xz", ".ko.zst"};
	bool is = is_vmlinux(dso);

	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++)
		is |= span_begins(dso, begins[i]);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		is |= span_ends(dso, ends[i]);
	return is;
}

/* Old versions of perf take any address above user space for the kernel's, such as 89481febc0313574. */
static bool is_kernel(const struct perf_frame *frame)
{
	if (frame->address >= KERNEL_ADDRESSES && frame->address < UINT64_MAX)
		return !span_is(frame->dso, "[vsyscall]");
	return has_kernel_name(frame->dso) &&
	       (frame->address < UPPER_HALF || frame->symbol.at < frame->symbol.end);
}

/* Without a dso it is code that no mapping has, or was inlined, or dsos were not printed. */
static struct frame place_of(struct perf_stacks *s, const struct perf_frame *printed,
			     struct process_id process)
{
	const char *path = frames__text(s->frames, printed->dso.at, span_size(printed->dso));
	enum dso_kind kind = DSO_UNKNOWN;
	struct frame frame = {
		.category = CATEGORY_USER,
		.process = process,
		.address = printed->address,
		.elf_address = PROFILE_UNKNOWN_ADDRESS,
	};

	if (path && is_kernel(printed)) {
		kind = DSO_KERNEL;
		frame.category = CATEGORY_KERNEL;
		path = *path ? path : KERNEL;
	} else if (path && *path && !has_kernel_name(printed->dso)) {
		kind = frames__mapping_kind(path, &frame.category);
	}
	if (kind != DSO_JIT && kind != DSO_UNKNOWN)
		frame.process = (struct process_id){0};
	if ((kind == DSO_FILE || kind == DSO_VDSO) && frame.address > FILE_ADDRESS_MAX)
		frame.address = 0;
	frame.dso = frames__dso(s->frames, kind, kind != DSO_UNKNOWN && path ? path : "", 0);
	return frame;
}

static void add_source(struct perf_stacks *s, struct span line)
{
	struct perf_frame_line *last = s->parsed.count ? &s->parsed.data[s->parsed.count - 1]
						       : NULL;

	if (last && !last->line)
		perf_line__source(line, &last->file, &last->line);
}

static int parse_lines(struct perf_stacks *s, struct span text)
{
	int err = 0;

	s->parsed.count = 0;
	for (const char *at = text.at, *newline; at < text.end && !err; at = newline + 1) {
		struct span line = {at, newline = line_end(at, text.end)};
		struct perf_frame_line one = {};

		if (perf_line__frame(line, &one.frame))
			err = vec_push(&s->parsed, one);
		else
			add_source(s, line);
	}
	return err;
}

static int add_function(struct perf_stacks *s, const struct perf_frame_line *one, struct dso_id dso)
{
	struct span symbol = one->frame.symbol;
	struct profile_line line = {.line = one->line};
	const char *name;

	if (one->line)
		line.file = profile_builder__string(
			s->b, frames__text(s->frames, one->file.at, span_size(one->file)));
	name = symbol.at < symbol.end ? frames__text(s->frames, symbol.at, span_size(symbol))
				      : "[unknown]";
	if (!name)
		return -ENOMEM;
	line.function = frames__function(s->frames, name, dso, (struct string_id){0}, 0, 0);
	return vec_push(&s->lines, line);
}

/* The last line is the function that has the code, unless perf took all of them for inlined. */
static int make_location(struct perf_stacks *s, struct span text, struct process_id process,
			 struct location_id *location)
{
	const struct perf_frame_line *last;
	struct frame frame;
	int err = parse_lines(s, text);
	bool has_name;

	if (err)
		return err;
	last = &s->parsed.data[s->parsed.count - 1];
	has_name = s->parsed.count > 1 || last->frame.symbol.at < last->frame.symbol.end;
	frame = place_of(s, &last->frame, process);
	s->lines.count = 0;
	for (size_t i = 0; i < s->parsed.count && has_name && !err; i++)
		err = add_function(s, &s->parsed.data[i], frame.dso);
	if (err)
		return err;
	*location = frames__location(s->frames, &frame, s->lines.data, (uint32_t)s->lines.count);
	return location->v ? 0 : -ENOMEM;
}

static int push_location(struct perf_stacks *s, struct span text, struct process_id process)
{
	struct perf_location wanted = {.text = text, .process = process}, *known;
	bool is_new;
	int err = 0;

	known = perf_locations__need(&s->locations, &wanted, &is_new);
	if (!known)
		return -ENOMEM;
	if (is_new)
		err = make_location(s, text, process, &known->location);
	if (!err && s->path.count == IMPORT_DEPTH_MAX)
		err = import_fail(s->failure, (uint64_t)(text.at - s->start), -E2BIG,
				  "a stack of more than %u frames", IMPORT_DEPTH_MAX);
	return err ?: vec_push(&s->path, known->location);
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* Lines of one address: what is inlined, innermost first, and the function that it is in. */
struct run {
	struct span text;
	uint64_t address;
	uint32_t lines;
	bool is_open; /* the last line is inlined into another one */
};

static int end_run(struct perf_stacks *s, struct run *run, struct process_id process)
{
	int err = run->lines ? push_location(s, run->text, process) : 0;

	*run = (struct run){};
	return err;
}

static int add_frame_line(struct perf_stacks *s, struct run *run, struct span line,
			  struct process_id process)
{
	struct perf_frame frame;
	int err = 0;

	if (!perf_line__frame(line, &frame)) { /* a source line */
		run->text.end = run->lines ? line.end : run->text.end;
		return 0;
	}
	if (!run->is_open || run->address != frame.address || run->lines == FRAME_LINES_MAX)
		err = end_run(s, run, process);
	if (err || span_is(frame.symbol, DEFERRED_FRAME))
		return err;
	run->text = (struct span){run->lines ? run->text.at : line.at, line.end};
	run->address = frame.address;
	run->lines++;
	run->is_open = frame.inlined;
	return 0;
}

static int read_frames(struct perf_stacks *s, struct span text, struct process_id process)
{
	struct run run = {};
	int err = 0;

	for (const char *at = text.at, *newline; at < text.end && !err; at = newline + 1) {
		newline = line_end(at, text.end);
		err = add_frame_line(s, &run, trim_right((struct span){at, newline}), process);
	}
	return err ?: end_run(s, &run, process);
}

/* "401000 main": what came before it was another field, such as a weight. */
static bool begins_with_address(struct span symbol)
{
	struct span rest = symbol;

	while (rest.at < rest.end && hex_digit(*rest.at) >= 0)
		rest.at++;
	if (rest.at == symbol.at || rest.at - symbol.at >= SYMBOL_DIGITS)
		return rest.at > symbol.at;
	return rest.at == rest.end ? is_digit(*symbol.at) : is_space(*rest.at);
}

/* "/P/-/-/3" of a branch: whether it was predicted, in a transaction, aborted one, its cycles; "/PN/" was not taken. */
static bool is_branch(const char *at, const char *end)
{
	if (end - at < 8 || *at != '/' || !strchr("PM-", at[1]) || !at[1])
		return false;
	at += at[2] == 'N';
	return at[2] == '/' && strchr("X-", at[3]) && at[4] == '/' && strchr("A-", at[5]) &&
	       at[6] == '/';
}

/* "401000 main (/a) 0x401010/0x401020/P/-/-/3/CALL/-" of `-F +brstack`: ends with the file. */
static struct span without_branches(struct span line)
{
	const char *branch = line.at;

	while (branch < line.end && !is_branch(branch, line.end))
		branch++;
	for (const char *at = branch; branch < line.end && at > line.at + 1; at--)
		if (at[-1] == ' ' && at[-2] == ')')
			return (struct span){line.at, at - 1};
	return line;
}

/* The frame at the end of a first line, unless that has other fields, such as those of memory. */
static int read_one_frame(struct perf_stacks *s, struct span text, struct process_id process)
{
	struct span line = without_branches(trim_right(text));
	struct perf_frame frame;

	if (!perf_line__frame(line, &frame) || begins_with_address(frame.symbol) ||
	    memmem(line.at, span_size(line), MEMORY_ACCESS, strlen(MEMORY_ACCESS)))
		return 0;
	return push_location(s, line, process);
}

void perf_stacks__fini(struct perf_stacks *s)
{
	perf_locations__fini(&s->locations);
	vec_free(&s->path);
	vec_free(&s->parsed);
	vec_free(&s->lines);
}

int perf_stacks__read(struct perf_stacks *s, struct span text, bool in_line,
		      struct process_id process, struct stack_id *stack)
{
	int err;

	s->path.count = 0;
	*stack = (struct stack_id){0};
	err = in_line ? read_one_frame(s, text, process) : read_frames(s, text, process);
	if (!err && !s->path.count)
		err = vec_push(&s->path, frames__nowhere(s->frames, process));
	for (size_t i = s->path.count; i-- > 0 && !err;) {
		*stack = profile_builder__stack(s->b, *stack, s->path.data[i]);
		err = stack->v ? 0 : -ENOMEM;
	}
	return err;
}
