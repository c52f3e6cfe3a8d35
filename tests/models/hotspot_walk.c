/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of bpf/hotspot.bpf.h; where there is a row for pc, its rule comes first. */
#include "models/hotspot_walk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "runtimes/hotspot/heap.h"

#define RBX	       3
#define RSP	       4
#define RBP	       5
#define R13	       13
#define STEP_MAX       (UINT64_C(1) << 20)
#define METHOD_SLOT    (-24)
#define BYTECODE_SLOT  (-64)
#define ADDRESS_LOWEST 4096
#define ADDRESS_BITS   47

/* ---- rows of all blobs ----------------------------------------------------------------------- */

static int add_entry(struct hotspot_table *to, struct hotspot_table *from, size_t *next,
		     struct hotspot_code *code, struct target_memory *memory,
		     const struct hotspot_blob *b, bool is_new)
{
	struct hotspot_table_entry e = {.blob = *b};
	struct hotspot_table_entry *old = from->entries.data;
	int err;

	while (*next < from->entries.count && old[*next].blob.address < b->address)
		hotspot_rows__fini(&old[(*next)++].rows);
	if (!is_new && *next < from->entries.count && old[*next].blob.address == b->address)
		return vec_push(&to->entries, old[(*next)++]);
	err = hotspot_rows__make(&e.rows, code, memory, &to->stubs, b);
	if (err == -ENODATA || err == -EFBIG) {
		to->failed++;
		return 0;
	}
	if (!err)
		err = vec_push(&to->entries, e);
	if (err)
		hotspot_rows__fini(&e.rows);
	return err;
}

int hotspot_table__refresh(struct hotspot_table *t, struct hotspot_code *code,
			   struct target_memory *memory, const struct hotspot_blobs *blobs,
			   const struct hotspot_changes *changes)
{
	struct hotspot_table new;
	size_t next = 0, added = 0;
	int err = 0;

	if (!t->has_stubs || !t->stubs.enter_special_words) {
		hotspot_stubs__fini(&t->stubs);
		err = hotspot_stubs__read(&t->stubs, code, memory, blobs);
		t->has_stubs = !err;
	}
	new = *t;
	memset(&new.entries, 0, sizeof(new.entries));
	if (!err)
		err = vec_reserve(&new.entries, blobs->list.count);
	if (err)
		return err;
	for (size_t i = 0; i < blobs->list.count && !err; i++) {
		bool is_new = added < changes->added.count && changes->added.data[added] == i;

		added += is_new;
		err = add_entry(&new, t, &next, code, memory, &blobs->list.data[i], is_new);
	}
	for (; next < t->entries.count; next++)
		hotspot_rows__fini(&t->entries.data[next].rows);
	vec_free(&t->entries);
	*t = new;
	return err;
}

void hotspot_table__fini(struct hotspot_table *t)
{
	for (size_t i = 0; i < t->entries.count; i++)
		hotspot_rows__fini(&t->entries.data[i].rows);
	vec_free(&t->entries);
	hotspot_stubs__fini(&t->stubs);
}

static const struct hotspot_table_entry *find_entry(const struct hotspot_table *t, uint64_t pc)
{
	size_t at = partition_point(t->entries.data, t->entries.count, e, e->blob.code <= pc);

	return at && pc < t->entries.data[at - 1].blob.code_end ? &t->entries.data[at - 1] : NULL;
}

/* ---- one step -------------------------------------------------------------------------------- */

static bool is_in_interpreter(const struct hotspot_code *code, uint64_t pc)
{
	return pc >= code->bytecode_start && pc < code->bytecode_end;
}

/* By a row, or by the header of the blob. */
static int find_rule(struct hotspot_code *code, const struct hotspot_table *table,
		     struct target_memory *memory, uint64_t pc, bool is_innermost,
		     struct hotspot_rule *rule, struct hotspot_seen *seen)
{
	const struct hotspot_table_entry *e = table ? find_entry(table, pc) : NULL;
	uint64_t address;
	int err;

	if (e) {
		seen->by_row = true;
		seen->blob = e->blob;
		*rule = *hotspot_rows__find(&e->rows, pc - e->blob.code);
		return 0;
	}
	if (is_in_interpreter(code, pc)) {
		*rule = hotspot_interpreted;
		return 0;
	}
	err = hotspot_code__find(code, memory, pc, &address);
	if (!err)
		err = hotspot_code__blob(code, memory, address, &seen->blob);
	if (err == -ENOENT || err == -ELOOP ||
	    (!err && (pc < seen->blob.code || pc >= seen->blob.code_end)))
		return -ENODATA;
	if (!err)
		*rule = hotspot_rule_of_blob(&seen->blob, pc - seen->blob.code, is_innermost);
	return err;
}

static int read_stack(struct target_memory *memory, uint64_t address, uint64_t *word)
{
	int err = address & 7 ? -ENODATA : target_memory__word(memory, word, address);

	return err == -ENODATA ? -EFAULT : err;
}

static bool is_above(uint64_t address, uint64_t sp)
{
	return !(address & 7) && address >= sp && address - sp <= STEP_MAX;
}

static int find_cfa(const struct hotspot_rule *rule, struct target_memory *memory,
		    const struct hotspot_frame *f, uint64_t *cfa)
{
	uint64_t sp = f->general[RSP], fp = f->general[RBP];
	int err = 0;

	switch ((enum hotspot_cfa)rule->cfa) {
	case HOTSPOT_CFA_SP:
		*cfa = sp + rule->cfa_offset;
		break;
	case HOTSPOT_CFA_FP:
		if (!is_above(fp, sp))
			return -ENODATA;
		*cfa = fp + rule->cfa_offset;
		break;
	case HOTSPOT_CFA_SENDER:
		if (!is_above(fp, sp))
			return -ENODATA;
		err = read_stack(memory, fp + rule->cfa_offset, cfa);
		break;
	case HOTSPOT_CFA_REGISTER:
		if (!f->is_innermost)
			return -ENODATA;
		*cfa = f->general[rule->cfa_register];
		break;
	}
	if (!err && !is_above(*cfa, sp))
		err = -ENODATA;
	return err;
}

static int find_return(const struct hotspot_rule *rule, struct target_memory *memory,
		       const struct hotspot_frame *f, uint64_t cfa, uint64_t *ra)
{
	switch ((enum hotspot_ra)rule->ra) {
	case HOTSPOT_RA_AT_CFA:
		return read_stack(memory, cfa - 8, ra);
	case HOTSPOT_RA_AT_FP:
		if (!is_above(f->general[RBP], f->general[RSP]))
			return -ENODATA;
		return read_stack(memory, f->general[RBP] + rule->ra_offset, ra);
	case HOTSPOT_RA_AT_SP:
		return read_stack(memory, f->general[RSP] + rule->ra_offset, ra);
	case HOTSPOT_RA_REGISTER:
		if (!f->is_innermost)
			return -ENODATA;
		*ra = f->general[rule->ra_offset & (HOTSPOT_REGISTERS - 1)];
		return 0;
	}
	return -ENODATA;
}

static int find_fp(const struct hotspot_rule *rule, struct target_memory *memory,
		   const struct hotspot_frame *f, uint64_t cfa, uint64_t *fp)
{
	*fp = f->general[RBP];
	switch ((enum hotspot_fp)rule->fp) {
	case HOTSPOT_FP_SAME:
		return 0;
	case HOTSPOT_FP_AT_CFA:
		return read_stack(memory, cfa + rule->fp_offset, fp);
	case HOTSPOT_FP_AT_FP:
		return read_stack(memory, *fp, fp);
	case HOTSPOT_FP_AT_SP:
		return read_stack(memory, f->general[RSP], fp);
	}
	return -ENODATA;
}

static void see_interpreted(struct target_memory *memory, const struct hotspot_frame *f,
			    const struct hotspot_rule *rule, struct hotspot_seen *seen)
{
	uint64_t fp = f->general[RBP];

	if (rule->cfa == HOTSPOT_CFA_REGISTER && rule->cfa_register == R13) {
		seen->what = HOTSPOT_FRAME_INTERPRETED;
		seen->method = f->general[RBX];
		return;
	}
	if (rule->cfa != HOTSPOT_CFA_SENDER ||
	    target_memory__word(memory, &seen->method, fp + METHOD_SLOT) ||
	    target_memory__word(memory, &seen->bytecode, fp + BYTECODE_SLOT))
		return;
	seen->what = HOTSPOT_FRAME_INTERPRETED;
	if (f->is_innermost)
		seen->bytecode = f->general[R13];
}

/* Words of the frame that have to be read together with the stack: later they are of others. */
static void see(const struct hotspot_code *code, struct target_memory *memory,
		const struct hotspot_frame *f, const struct hotspot_rule *rule,
		struct hotspot_seen *seen)
{
	seen->pc = f->ip;
	if (is_in_interpreter(code, f->ip - !f->is_innermost)) {
		see_interpreted(memory, f, rule, seen);
	} else if (seen->blob.method) {
		seen->what = HOTSPOT_FRAME_COMPILED;
	} else if (seen->by_row && seen->blob.kind == HOTSPOT_CONTINUATION &&
		   rule->cfa == HOTSPOT_CFA_SP) {
		seen->what = HOTSPOT_FRAME_UNMOUNTED;
	}
}

/* A frame that is being deoptimized returns to the handler; where it was is noted in it. */
static void see_deoptimized(struct target_memory *memory, const struct hotspot_frame *f,
			    struct hotspot_seen *seen)
{
	uint64_t pc;

	if (seen->what != HOTSPOT_FRAME_COMPILED || f->is_innermost ||
	    f->ip != seen->blob.deopt_handler || seen->blob.orig_pc_offset < 0 ||
	    read_stack(memory, f->general[RSP] + seen->blob.orig_pc_offset, &pc) ||
	    pc < seen->blob.code || pc >= seen->blob.code_end)
		return;
	seen->pc = pc;
}

int hotspot_walk__step(struct hotspot_code *code, const struct hotspot_table *table,
		       struct target_memory *memory, struct hotspot_frame *f,
		       struct hotspot_seen *seen)
{
	uint64_t pc = f->ip - !f->is_innermost, cfa, ra, fp;
	struct hotspot_rule rule;
	int err;

	*seen = (struct hotspot_seen){};
	if (!hotspot_code__heap(code, pc))
		return -ENOENT;
	err = find_rule(code, table, memory, pc, f->is_innermost, &rule, seen);
	if (err)
		return err;
	see(code, memory, f, &rule, seen);
	see_deoptimized(memory, f, seen);
	err = find_cfa(&rule, memory, f, &cfa);
	if (!err)
		err = find_return(&rule, memory, f, cfa, &ra);
	if (!err)
		err = find_fp(&rule, memory, f, cfa, &fp);
	if (!err && (ra < ADDRESS_LOWEST || ra >> ADDRESS_BITS ||
		     (cfa == f->general[RSP] && !f->is_innermost)))
		err = -ENODATA;
	if (err)
		return err;
	f->general[RSP] = cfa;
	f->general[RBP] = fp;
	f->ip = ra;
	f->is_innermost = false;
	return 0;
}
