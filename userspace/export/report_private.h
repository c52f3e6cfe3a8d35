/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of a report: the same rows and trees as text for people and as JSON for programs. */
#ifndef EXPORT_REPORT_PRIVATE_H
#define EXPORT_REPORT_PRIVATE_H

#include <sysprof/exporter.h>

#include "export/report_rows.h"
#include "export/report_tree.h"

/* A table: `rows` are those to be shown, `count` is the number of all that are not below the least share. */
struct report_table {
	const struct report_row *rows;
	size_t shown, count;
};

/* "function", … */
const char *report_by_name(enum report_by by);

/* All return 0 or negative errno; write errors may be visible in ferror() only. */
int report_header(const struct profile *p, FILE *out);
int report_table_text(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out);
/* `shown`: nodes at most */
int report_tree_text(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out);
/* Before a tree is written: names have the bound of text_limit.h. */
int report_tree__limit_names(struct report_tree *tree, const struct export_request *request,
			     size_t shown);
int report_table_json(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out);
int report_tree_json(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out);

#endif
