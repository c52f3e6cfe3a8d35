/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/python/code.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "runtimes/python/lines.h"
#include "runtimes/python/text.h"

#define TYPE_AT 8u /* ob_type */

/* The words of a head that say which code it is. */
struct head {
	uint64_t refcount, type, filename, linetable;
	struct cpython_identity identity;
};

static int read_head(const struct cpython *py, struct target_memory *m, uint64_t code,
		     struct head *h)
{
	const struct cpython_layout *l = &py->layout;
	uint8_t bytes[CPYTHON_HEAD_MAX];
	int err = target_memory__read(m, bytes, cpython_head__size(py), code);

	*h = (struct head){};
	if (err)
		return err;
	memcpy(&h->refcount, bytes, sizeof(h->refcount));
	memcpy(&h->type, bytes + TYPE_AT, sizeof(h->type));
	memcpy(&h->filename, bytes + l->code_filename, sizeof(h->filename));
	memcpy(&h->linetable, bytes + l->code_linetable, sizeof(h->linetable));
	return cpython_identity__of_head(py, m, bytes, &h->identity);
}

static bool is_of_identity(const struct head *h, const struct cpython_identity *identity)
{
	return h->identity.version == identity->version &&
	       h->identity.firstline == identity->firstline &&
	       h->identity.qualname == identity->qualname && h->identity.others == identity->others;
}

/* Counts change with every use. */
static bool is_same(const struct head *a, const struct head *b)
{
	return a->type == b->type && is_of_identity(a, &b->identity);
}

static int read_lines(const struct cpython *py, struct target_memory *m, const struct head *h,
		      struct managed_function *f)
{
	_cleanup_free_ uint8_t *table = NULL;
	bool whole;
	size_t size;
	int err = cpython_bytes__read(py, m, h->linetable, CPYTHON_LINETABLE_MAX, &table, &size,
				      &whole);

	return err ? err : cpython_lines__read(table, size, h->identity.firstline, f);
}

static int read_all(const struct cpython *py, struct target_memory *m, uint64_t code,
		    const struct cpython_identity *identity, struct managed_function *f)
{
	struct head h, again;
	int err = read_head(py, m, code, &h);

	if (err)
		return err;
	if (!cpython_object__is_alive(h.refcount) || (py->code_type && h.type != py->code_type) ||
	    !is_of_identity(&h, identity))
		return -ESTALE;
	err = cpython_str__read(py, m, h.identity.qualname, f->name, sizeof(f->name));
	if (!err)
		err = cpython_str__read(py, m, h.filename, f->file, sizeof(f->file));
	if (!err)
		err = read_lines(py, m, &h, f);
	if (!err)
		err = read_head(py, m, code, &again);
	if (err)
		return err;
	f->line = h.identity.firstline <= INT32_MAX ? h.identity.firstline : 0;
	return cpython_object__is_alive(again.refcount) && is_same(&h, &again) ? 0 : -ESTALE;
}

static void forget(struct managed_function *f)
{
	f->name[0] = f->file[0] = '\0';
	f->line = f->column = 0;
	f->rows.count = 0;
}

enum cpython_sureness cpython_code__read(const struct cpython *py, struct target_memory *m,
					 uint64_t code, const struct cpython_identity *identity,
					 struct managed_function *f)
{
	int err = read_all(py, m, code, identity, f);

	if (!err)
		return CPYTHON_CONFIRMED;
	forget(f);
	/* what is not there any more, or is something else, is not what was sampled */
	return err == -ESTALE || err == -ENODATA || err == -EBADMSG ? CPYTHON_STALE
								    : CPYTHON_UNKNOWN;
}

uint32_t cpython_code__line(const struct cpython *py, const struct managed_function *f,
			    uint32_t instruction)
{
	const struct managed_row *row = NULL;

	if (instruction == CPYTHON_NO_INSTRUCTION)
		return f->line;
	/* before the first instruction: it has not begun */
	if (instruction >= py->layout.code_bytecode)
		row = managed_function__row(f, instruction - py->layout.code_bytecode);
	return row && row->line ? row->line : f->line;
}
