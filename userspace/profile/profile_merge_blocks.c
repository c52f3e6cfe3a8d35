/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/profile_merge_blocks.h"

#include <errno.h>

#include "base/minmax.h"
#include "profile/profile_merge_private.h"

#define ROWS_MAX   (2u << 20)
#define BLOCKS_MIN 64 /* of all time */

/* What rows have in common that become one. No padding: all bytes are the key. */
struct row_key {
	uint32_t stack, comm;
	uint16_t cpu;
	uint8_t gil, context, reserved[4];
};
struct block_row {
	struct row_key key;
	uint64_t weight, ticks, events;
};
MAP_TYPE(block_rows, struct block_row);
MAP_FUNCTIONS_BY_BYTES(block_rows, struct block_row, struct row_key, key);

static uint64_t start_of(const struct profile_merge *m)
{
	return m->clocks.data[0].start;
}

/* A row lies behind the time that it stands for. */
static uint64_t block_of(const struct profile_merge *m, uint64_t time)
{
	return time > start_of(m) ? (time - start_of(m) - 1) / m->block_length : 0;
}

static int add_row(struct block_rows *rows, const struct sample_columns *c, size_t i)
{
	const struct block_row wanted = {
		.key = {.stack = c->stack.data[i].v,
			.comm = c->comm.data[i].v,
			.gil = c->gil.count ? c->gil.data[i] : 0,
			.context = c->context.count ? c->context.data[i] : 0,
			.cpu = c->cpu.count ? c->cpu.data[i] : 0}};
	struct block_row *row = block_rows__need(rows, &wanted, NULL);

	if (!row)
		return -ENOMEM;
	row->weight += c->weight.data[i];
	row->ticks += c->ticks.data[i];
	row->events += c->events.count ? c->events.data[i] : 0;
	return 0;
}

/* In place of rows from `to` on, which were all taken. */
static void put_rows(const struct profile_merge *m, const struct block_rows *rows, uint64_t block,
		     struct sample_columns *c, size_t to)
{
	uint64_t begin = start_of(m) + block * m->block_length;

	for (size_t i = 0; i < rows->count; i++) {
		const struct block_row *row = &rows->data[i];
		double part = (double)(i + 1) / (double)rows->count;

		c->time.data[to + i] = begin + (uint64_t)((double)m->block_length * part);
		c->weight.data[to + i] = row->weight;
		c->stack.data[to + i].v = row->key.stack;
		c->comm.data[to + i].v = row->key.comm;
		c->ticks.data[to + i] = row->ticks;
		if (c->events.count)
			c->events.data[to + i] = row->events;
		if (c->gil.count)
			c->gil.data[to + i] = row->key.gil;
		if (c->context.count)
			c->context.data[to + i] = row->key.context;
		if (c->cpu.count)
			c->cpu.data[to + i] = row->key.cpu;
	}
}

static void cut_columns(struct sample_columns *c, size_t rows)
{
#define X(type, name) c->name.count = min_u64(c->name.count, rows);
	PROFILE_SAMPLE_COLUMNS(X)
#undef X
}

/* Windows come in order, so the rows of a block lie side by side. */
static int join_rows(const struct profile_merge *m, struct sample_columns *c,
		     struct block_rows *rows)
{
	size_t count = c->time.count, made = 0;
	int err = 0;

	for (size_t i = c->ticks.count; i < count && !err; i++)
		err = vec_push(&c->ticks, UINT64_C(1));
	for (size_t i = 0, end; i < count && !err; i = end) {
		uint64_t block = block_of(m, c->time.data[i]);

		block_rows__clear(rows);
		for (end = i; end < count && !err && block_of(m, c->time.data[end]) == block; end++)
			err = add_row(rows, c, end);
		if (err)
			return err;
		put_rows(m, rows, block, c, made);
		made += rows->count;
	}
	if (!err)
		cut_columns(c, made);
	return err;
}

/* 0 or -ENOMEM; *rows: how many there are. */
static int join_all(struct profile_merge *m, uint64_t *rows)
{
	struct block_rows block = {};
	int err = 0;

	*rows = 0;
	for (size_t i = 1; i < m->builder->columns.count && !err; i++) {
		struct sample_columns *c = &m->builder->columns.data[i].by_kind[SAMPLE_CPU];

		err = join_rows(m, c, &block);
		*rows += c->time.count;
	}
	block_rows__fini(&block);
	return err;
}

int bound_rows(struct profile_merge *m)
{
	int err = 0;

	while (m->rows > ROWS_MAX && !err) {
		const struct merged_clock *axis = &m->clocks.data[0];
		uint64_t longest = (axis->end - axis->start) / BLOCKS_MIN;

		if (m->block_length && m->block_length >= longest)
			break;
		m->block_length = 2 * max_u64(m->block_length, max_u64(m->window_length, 1));
		err = join_all(m, &m->rows);
	}
	return err;
}
