/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function is the range of code that its debug information, or its symbol, has around a sampled
 * address. A part that the compiler moved away (".cold") is one more function. Rows are the answers
 * of module.c for each address at which they change.
 */
#include "symbolize/module_code.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/strtab.h"
#include "elf/elf_file.h"
#include "stream/code_events.h"
#include "symbolize/md5.h"
#include "symbolize/module_private.h"

#define FILES_MAX 4096u
#define ROWS_MAX  65536u /* of a function; the rest has no lines */

struct hot_function {
	uint64_t start, end; /* ELF virtual addresses */
	uint64_t self, samples;
	struct symbol_match match;
};

struct coding {
	struct module *module;
	VEC(struct hot_function) functions;
	struct code_lines *lines;
	uint64_t bytes;
	struct strtab *files; /* that were passed on */
};

/* The code of the function at m->addresses[number], whose frames are in m->frames. */
static struct hot_function find_function(const struct module *m, size_t number)
{
	const struct symbol_match *match = &m->matches[number];
	uint64_t address = m->addresses[number];
	struct hot_function f = {.match = *match};

	if (m->frames.count) {
		const struct symbol_frame *outer = &m->frames.data[m->frames.count - 1];

		if (address - outer->function_address < outer->function_size) {
			f.start = outer->function_address;
			f.end = f.start + outer->function_size;
		}
	}
	if (!f.end && match->name && address - match->address < match->size) {
		f.start = match->address;
		f.end = f.start + match->size;
	}
	return f;
}

static int count_address(struct coding *c, size_t number, const struct code_address *at)
{
	struct module *m = c->module;
	struct hot_function f, *last;
	uint64_t until;
	int err = module_merge_frames(m, m->addresses[number], &m->matches[number], &until);

	if (err)
		return err;
	f = find_function(m, number);
	if (f.end <= f.start)
		return 0;
	f.self = at->self;
	f.samples = at->samples;
	/* addresses ascend */
	last = c->functions.count ? &c->functions.data[c->functions.count - 1] : NULL;
	if (!last || last->start != f.start || last->end != f.end)
		return vec_push(&c->functions, f);
	last->self += f.self;
	last->samples += f.samples;
	return 0;
}

static int find_functions(struct coding *c, const struct code_address *addresses, size_t count)
{
	_cleanup_free_ uint64_t *offsets = calloc(count + 1, sizeof(*offsets));
	struct module *m = c->module;
	int err = offsets ? 0 : -ENOMEM;

	for (size_t i = 0; i < count && !err; i++)
		offsets[i] = addresses[i].offset;
	if (!err)
		err = module_take_question(m, offsets, count);
	for (size_t i = 0; i < m->covered && !err; i++)
		err = count_address(c, i, &addresses[m->places[i].index]);
	return err;
}

DEFINE_ORDER(compare_functions, struct hot_function, DESCENDING(self) ?: DESCENDING(samples) ?: ASCENDING(start));

/* ---- one function ---------------------------------------------------------------------------- */

/* Once. */
static int emit_file(struct coding *c, const char *path)
{
	size_t known = strtab__count(c->files);
	const unsigned char *sum = NULL;
	struct source_text source = {.path = path, .text = "?", .size = 1};

	if (!path || *path != '/' || known > FILES_MAX)
		return 0;
	if (strtab__intern(c->files, path) < 0)
		return -ENOMEM;
	if (strtab__count(c->files) == known)
		return 0;
	if (c->module->dwarf)
		sum = dwarf_reader__md5(c->module->dwarf, path);
	if (sum) {
		source.text = (const char *)sum;
		source.size = MD5_SIZE;
	}
	return source_text__emit(&source, c->lines->time, c->lines->push, c->lines->context);
}

static int emit_lines(struct coding *c, const struct hot_function *f, uint64_t end)
{
	struct module *m = c->module;
	uint64_t address = f->start, until;
	int err = 0;

	for (unsigned int rows = 0; address < end && rows < ROWS_MAX && !err; rows++) {
		err = module_merge_frames(m, address, &f->match, &until);
		if (!err && m->frames.count)
			err = code_lines__add(c->lines, address - f->start, m->frames.count - 1,
					      &m->frames.data[0])
				      ?: emit_file(c, m->frames.data[0].file);
		address = max_u64(until, address + 1);
	}
	return err ?: code_lines__end(c->lines);
}

static enum code_machine machine_of(const struct elf_file *file)
{
	return elf_file__is_x86_64(file)  ? CODE_MACHINE_X86_64
	       : elf_file__is_arm64(file) ? CODE_MACHINE_ARM64
					  : CODE_MACHINE_UNKNOWN;
}

static int emit_function(struct coding *c, const struct hot_function *f, event_push_fn push,
			 void *context)
{
	const struct elf_file *file = c->module->elf;
	uint64_t size = min_u64(f->end - f->start, CODE_TEXT_MAX);
	_cleanup_free_ uint8_t *bytes = malloc(size);
	struct code_text text = {.machine = machine_of(file), .bytes = bytes};
	ssize_t got;
	int err;

	if (!bytes)
		return -ENOMEM;
	got = elf_file__read_at(file, f->start, bytes, size);
	if (got <= 0 || elf_file__offset_of_address(file, f->start, &text.address))
		return 0;
	text.size = got;
	c->bytes += text.size;
	*c->lines = (struct code_lines){
		.text = &text,
		.time = min_u64(f->self, UINT32_MAX) << 32 | min_u64(f->samples, UINT32_MAX),
		.push = push,
		.context = context,
	};
	err = code_text__emit(&text, c->lines->time, push, context);
	return err ?: emit_lines(c, f, f->start + text.size);
}

int module__code(struct module *m, const struct code_address *addresses, size_t count,
		 uint32_t least, event_push_fn push, void *context)
{
	_cleanup_free_ struct code_lines *lines = malloc(sizeof(*lines));
	struct coding c = {.module = m, .lines = lines};
	int err;

	if (!m->elf)
		return 0;
	c.files = strtab__new();
	err = lines && c.files ? 0 : -ENOMEM;
	if (!err)
		err = find_functions(&c, addresses, count);
	vec_sort(&c.functions, compare_functions);
	for (size_t i = 0; i < c.functions.count && !err && c.bytes < MODULE_CODE_MAX; i++)
		if (c.functions.data[i].samples >= least)
			err = emit_function(&c, &c.functions.data[i], push, context);
	vec_free(&c.functions);
	strtab__free(c.files);
	return err;
}
