/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of a tree, which are printed again for each node. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "export/report_private.h"
#include "export/text_limit.h"

static uint64_t bytes_of(const char *text, const struct text_limit *limit)
{
	return text ? text_limit__bytes(limit, text_size_of(text)) : 0;
}

static uint64_t measure_nodes(const struct report_tree *tree, size_t shown,
			      const struct text_limit *limit)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < shown; i++)
		bytes += bytes_of(tree->nodes.data[i].row->name, limit) +
			 bytes_of(tree->nodes.data[i].row->place, limit);
	return bytes;
}

/* A text that is too long becomes one of the tree's own. */
static int cut_text(struct report_tree *tree, struct text_limit *limit, const char **text)
{
	char buffer[TEXT_CUT_SIZE], *copy;

	if (!*text || text_limit__cut(limit, *text, buffer) == *text)
		return 0;
	copy = strdup(buffer);
	if (!copy || vec_push(&tree->texts, copy)) {
		free(copy);
		return -ENOMEM;
	}
	*text = copy;
	return 0;
}

int report_tree__limit_names(struct report_tree *tree, const struct export_request *request,
			     size_t shown)
{
	struct text_limit limit = {.p = request->profile, .most = text_limit_of(request->profile)};
	int err = 0;

	while (text_limit__tighten(&limit, measure_nodes(tree, shown, &limit)))
		;
	for (size_t i = 0; i < tree->code.rows.count && limit.step && !err; i++)
		err = cut_text(tree, &limit, &tree->code.rows.data[i].name)
			      ?: cut_text(tree, &limit, &tree->code.rows.data[i].place);
	text_limit__report(&limit, request);
	return err;
}
