/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef FORMATS_OUT_REPORT_TREE_TEXT_H
#define FORMATS_OUT_REPORT_TREE_TEXT_H

#include <stddef.h>
#include <stdio.h>

struct profile;
struct report_options;
struct report_tree;

/* `shown`: nodes at most */
int report_tree_text(const struct profile *p, const struct report_options *options,
		     const struct report_tree *tree, size_t shown, FILE *out);

#endif
