/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/order.h"
#include "elf/elf_sections.h"
#include "elf/elf_symbols.h"
#include "runtimes/python/code.h"
#include "runtimes/python/thread.h"

/* ---- the file -------------------------------------------------------------------------------- */

static int note_object(void *context, const struct elf_symbol *symbol)
{
	struct cpython_symbols *s = context;

	if (!strcmp(symbol->name, "_PyRuntime") && !s->runtime)
		s->runtime = symbol->address;
	else if (!strcmp(symbol->name, "Py_Version"))
		s->version_word = symbol->address;
	else if (!strcmp(symbol->name, "PyCode_Type"))
		s->code_type = symbol->address;
	return 0;
}

static int note_function(void *context, const struct elf_symbol *symbol)
{
	struct cpython_symbols *s = context;

	if (strcmp(symbol->name, "PyGILState_GetThisThreadState") != 0)
		return 0;
	s->gilstate = symbol->address;
	return 1;
}

int cpython_symbols__read(struct elf_file *file, struct cpython_symbols *symbols)
{
	struct elf_section section;
	ssize_t got;

	*symbols = (struct cpython_symbols){};
	if (!elf_file__is_x86_64(file))
		return -ENOEXEC;
	if (!elf_file__find_section(file, ".PyRuntime", &section)) {
		symbols->runtime = section.address;
		symbols->runtime_size = section.size;
	}
	elf_file__each_object(file, true, note_object, symbols);
	if (!symbols->runtime)
		return -ENOENT;
	if (elf_file__each_symbol(file, note_function, symbols) != 1)
		return 0;
	got = elf_file__read_at(file, symbols->gilstate, symbols->gilstate_code,
				sizeof(symbols->gilstate_code));
	symbols->gilstate_size = got > 0 ? got : 0;
	return 0;
}

/* ---- the process ----------------------------------------------------------------------------- */

/*
 * Of 3.12 and older. Without an exported Py_Version the section's size decides: it differs by 300
 * KB between the two, and within each by less than a page.
 */
static enum cpython_verdict version_of(const struct cpython_image *image, struct target_memory *m,
				       uint32_t *version)
{
	const struct cpython_symbols *s = image->symbols;
	uint64_t word;

	if (s->version_word) {
		if (target_memory__word(m, &word, s->version_word + image->bias))
			return CPYTHON_UNREADABLE;
		*version = word;
		return word >> 24 == 3 ? CPYTHON_OK : CPYTHON_NO_VERSION;
	}
	if (!s->runtime_size || s->code_type)
		return CPYTHON_TOO_OLD; /* 3.7 to 3.10 export other things, and not this */
	if (s->runtime_size >> 12 == 0x28b20 >> 12)
		*version = 0x030b00f0;
	else if (s->runtime_size >> 12 == 0x70210 >> 12)
		*version = 0x030c00f0;
	else
		return CPYTHON_NO_VERSION;
	return CPYTHON_OK;
}

/* ---- is it right? ---------------------------------------------------------------------------- */

#define FRAMES_MAX  1024u
#define THREADS_MAX 16u
#define ATTEMPTS    3 /* it runs meanwhile */
#define TAG_BITS    UINT64_C(3)

struct outermost {
	uint64_t code; /* 0: there is no frame */
	struct cpython_identity identity;
};

/* Follows the chain of frames from a thread's state to its root. False: it does not lead there. */
static bool find_outermost(const struct cpython *py, struct target_memory *m, uint64_t state,
			   struct outermost *found)
{
	const struct cpython_layout *l = &py->layout;
	uint64_t frame, type = py->code_type;
	bool is_in_loop = false; /* until the frame of C that stands for an interpreter's loop */

	if (target_memory__word(m, &frame, state + l->thread_frame))
		return false;
	for (unsigned int i = 0; frame; i++) {
		uint8_t bytes[CPYTHON_FRAME_MAX], head[CPYTHON_HEAD_MAX];

		if (i == FRAMES_MAX || target_memory__read(m, bytes, l->frame_size, frame))
			return false;
		frame = cpython_word(bytes, l->frame_previous);
		if (bytes[l->frame_owner] >= CPYTHON_OWNER_BOUNDARY) {
			is_in_loop &= l->has_base_frame && !frame;
			continue;
		}
		is_in_loop = true;
		found->code = cpython_word(bytes, l->frame_code) & ~TAG_BITS;
		if (target_memory__read(m, head, cpython_head__size(py), found->code))
			return false;
		type = type ?: cpython_word(head, CPYTHON_TYPE_AT);
		if (cpython_word(head, CPYTHON_TYPE_AT) != type)
			return false;
		cpython_identity__of_head(py, m, head, &found->identity);
	}
	return !is_in_loop;
}

struct check {
	const struct cpython *py;
	struct target_memory *m;
	struct managed_function function;
	uint32_t threads, with_frames;
	bool good;
};

static bool is_outermost(const char *name)
{
	static const char *const names[] = {"<module>", "Thread._bootstrap", "_bootstrap"};

	return any_of(names, sizeof(names) / sizeof(*names), known, !strcmp(name, *known));
}

static bool is_stack_good(struct check *c, uint64_t state)
{
	struct outermost o = {};
	bool is_whole = find_outermost(c->py, c->m, state, &o);

	c->with_frames += o.code || !is_whole;
	c->function.rows.count = 0;
	return is_whole && o.code &&
	       cpython_code__read(c->py, c->m, o.code, &o.identity, &c->function) ==
		       CODE_STATE_CONFIRMED &&
	       is_outermost(c->function.name) && c->function.file[0];
}

static int check_thread(void *context, const struct cpython_thread *thread)
{
	struct check *c = context;

	for (int i = 0; i < ATTEMPTS && !c->good; i++)
		c->good = is_stack_good(c, thread->state);
	return c->good || ++c->threads == THREADS_MAX;
}

/*
 * Does a layout hold that is not known for this version? One thread must have a stack that ends at
 * its root, all of code objects of one type, the outermost with one of the usual names.
 * NOT_STARTED: no thread has a frame; BAD_TABLE: the check fails.
 */
static enum cpython_verdict check_layout(const struct cpython *py, struct target_memory *m)
{
	_cleanup_free_ struct check *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return CPYTHON_UNREADABLE;
	c->py = py;
	c->m = m;
	err = cpython__each_thread(py, m, check_thread, c);
	managed_function__fini(&c->function);
	if (c->good)
		return CPYTHON_OK;
	if (err == -EDQUOT || err == -ESRCH || err == -EPERM)
		return CPYTHON_UNREADABLE;
	return c->with_frames || err == -ENODATA ? CPYTHON_BAD_TABLE : CPYTHON_NOT_STARTED;
}

static enum cpython_verdict open_table(const uint8_t *table, size_t size, struct target_memory *m,
				       struct cpython *py)
{
	enum cpython_verdict verdict = CPYTHON_UNKNOWN_VERSION;
	bool known = cpython_version__is_known(py->version), too_early = false;

	for (unsigned int attempt = 0;; attempt++) {
		verdict = cpython_layout__of_table(table, size, attempt, &py->layout);
		if (verdict == CPYTHON_UNKNOWN_VERSION)
			return too_early ? CPYTHON_NOT_STARTED : verdict;
		if (known || verdict == CPYTHON_FREE_THREADED)
			return verdict;
		if (verdict == CPYTHON_OK)
			verdict = check_layout(py, m);
		if (verdict == CPYTHON_OK)
			return verdict;
		too_early |= verdict == CPYTHON_NOT_STARTED;
	}
}

enum cpython_verdict cpython__find(const struct cpython_image *image, struct target_memory *m,
				   struct cpython *py)
{
	const struct cpython_symbols *s = image->symbols;
	uint8_t table[CPYTHON_TABLE_MAX];
	enum cpython_verdict verdict;

	*py = (struct cpython){.runtime = s->runtime + image->bias};
	if (s->code_type)
		py->code_type = s->code_type + image->bias;
	if (target_memory__read(m, table, sizeof(table), py->runtime))
		return CPYTHON_UNREADABLE;
	if (cpython_table__is(table, sizeof(table), &py->version))
		return open_table(table, sizeof(table), m, py);
	verdict = version_of(image, m, &py->version);
	return verdict ? verdict : cpython_layout__of_version(py->version, &py->layout);
}

/* ---- its GIL --------------------------------------------------------------------------------- */

/* runtime.interpreters: the newest one, and behind it the main one. */
#define MAIN_INTERPRETER 8u

int cpython_gil__of_main(const struct cpython *py, struct target_memory *m,
			 struct cpython_main_gil *main)
{
	const struct cpython_layout *l = &py->layout;
	uint64_t gil = py->runtime;
	int err = 0;

	*main = (struct cpython_main_gil){};
	if (l->gil_locked != l->gil_holder + sizeof(uint64_t))
		return -ENOENT;
	if (l->interp_gil)
		err = target_memory__word(m, &main->interpreter,
					  py->runtime + l->interpreters + MAIN_INTERPRETER);
	if (!err && l->interp_gil)
		err = main->interpreter
			      ? target_memory__word(m, &gil, main->interpreter + l->interp_gil)
			      : -ENOENT;
	if (!err && gil)
		main->address = gil + l->gil_holder;
	return err || main->address ? err : -ENOENT;
}
