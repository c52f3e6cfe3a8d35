/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report for programs. docs/report.schema.json is its contract: changing the meaning of a
 * member or removing one raises SCHEMA_VERSION, a new member does not. A tree is a list of nodes
 * with the numbers of their parents, because stacks are deeper than many readers of JSON can nest.
 */
#ifndef FORMATS_OUT_REPORT_JSON_H
#define FORMATS_OUT_REPORT_JSON_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer;
struct profile;
struct report_options;
struct report_table;
struct report_tree;

void report_json__begin(struct json_writer *w, const struct profile *p, const char *by,
			const char *shape, double min_share, FILE *out);

/* "self": 12, "self_share": 0.12, "self_interval": [0.06, 0.21] */
void report_json__share(struct json_writer *w, const struct profile *p, const char *key,
			uint64_t samples, double square);

int report_json__end(struct json_writer *w, FILE *out);

int report_table_json(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out);

int report_tree_json(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out);

#endif
