/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the last entry to the first: an entry is fresh if none of its addresses is taken, and takes
 * those that are not. Addresses are the cells between all starts and ends; from a taken cell a link
 * leads on towards the next that is free (union-find), so each is taken once.
 */
#include "jit/jit_timeline.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/order.h"

DEFINE_ORDER(compare_edges, uint64_t, order_of(*x, *y));

static size_t sort_edges(const struct code_range *ranges, size_t count, uint64_t *edges)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		edges[2 * i] = ranges[i].start;
		edges[2 * i + 1] = ranges[i].end;
	}
	qsort(edges, 2 * count, sizeof(*edges), compare_edges);
	for (size_t i = 0; i < 2 * count; i++)
		if (!kept || edges[kept - 1] != edges[i])
			edges[kept++] = edges[i];
	return kept;
}

static size_t index_of(const uint64_t *edges, size_t count, uint64_t edge)
{
	return partition_point(edges, count, e, *e < edge);
}

static size_t next_free(uint32_t *links, size_t cell)
{
	while (links[cell] != cell) {
		links[cell] = links[links[cell]];
		cell = links[cell];
	}
	return cell;
}

int find_fresh(const struct code_range *ranges, size_t count, bool *fresh)
{
	_cleanup_free_ uint64_t *edges = calloc(2 * count + 1, sizeof(*edges));
	_cleanup_free_ uint32_t *links = calloc(2 * count + 1, sizeof(*links));
	size_t edge_count;

	if (!edges || !links || count > UINT32_MAX / 2)
		return -ENOMEM;
	edge_count = sort_edges(ranges, count, edges);
	for (size_t i = 0; i <= edge_count; i++)
		links[i] = i;
	for (size_t i = count; i-- > 0;) {
		size_t cell = index_of(edges, edge_count, ranges[i].start);
		size_t end = index_of(edges, edge_count, ranges[i].end);

		if (cell == end) { /* a single address is in the cell that begins there */
			fresh[i] = next_free(links, cell) == cell;
			continue;
		}
		fresh[i] = true;
		for (size_t at = cell; at < end; at++) {
			size_t next = next_free(links, at);

			fresh[i] = fresh[i] && next == at;
			at = next;
			if (at < end)
				links[at] = at + 1;
		}
	}
	return 0;
}
