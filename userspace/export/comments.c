/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/comments.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/outside_books.h"
#include "export/describe.h"

#define COMMENT_SIZE 1024

struct comments {
	int (*add)(void *context, const char *text);
	void *context;
	int error; /* the first one */
};

static void __attribute__((format(printf, 2, 3)))
add_comment(struct comments *c, const char *format, ...)
{
	char text[COMMENT_SIZE];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!c->error)
		c->error = c->add(c->context, text);
}

static void add_meta(struct comments *c, const struct profile *p, const char *what, const char *key)
{
	const char *value = profile__meta(p, key);

	if (value)
		add_comment(c, "%s%s", what, value);
}

/* Where every tick went, in a line; a tick that is not a sample has a reason. */
static void add_books(struct comments *c, const struct figures *f)
{
	char text[COMMENT_SIZE / 2] = "";
	struct text_line line = {text, sizeof(text), 0};

	add_ticks(&line, &f->value[FIGURE_BOOKS], false);
	if (f->due_known)
		add_comment(c, "ticks: %" PRIu64 " due = %s; unexplained %" PRId64,
			    f->value[FIGURE_DUE], text, figures__unexplained(f));
	else
		add_comment(c, "ticks: %s", text);
}

static void add_losses(struct comments *c, const struct profile *p, const struct figures *f)
{
	if (p->books_count)
		add_comment(c, "lost: %" PRIu64 " ticks", f->value[FIGURE_LOST_TICKS]);
	for (unsigned int id = FIGURE_LOST; id < FIGURE_LOST_END; id++)
		if (figures__is_loss(f, id))
			add_comment(c, "lost: %" PRIu64 " %s", f->value[id], figure_table[id].text);
	for (unsigned int id = FIGURE_ENDS; id < FIGURE_ENDS_END; id++)
		if (figures__is_loss(f, id))
			add_comment(c, "cut stacks: %" PRIu64 ": %s", f->value[id],
				    figure_table[id].key);
	for (unsigned int id = FIGURE_LEFT_OUT; id < FIGURE_LEFT_OUT_END; id++)
		if (figures__is_loss(f, id))
			add_comment(c, "left out: %" PRIu64 " %s", f->value[id],
				    figure_table[id].text);
	for (size_t i = 0; i < p->outside_count; i++) {
		char text[OUTSIDE_TEXT_SIZE];

		describe_outside(text, sizeof(text), &p->outside[i]);
		add_comment(c, "left outside: %s", text);
	}
	if (p->cut_short)
		add_comment(c, "cut short: the recording has no end");
}

int export_comments(const struct profile *p, int (*add)(void *context, const char *text),
		    void *context)
{
	struct comments c = {.add = add, .context = context};
	struct figures figures;

	figures__init(&figures, p);
	add_meta(&c, p, "", META_PRODUCT);
	add_meta(&c, p, "command: ", META_COMMAND);
	add_meta(&c, p, "host: ", META_HOSTNAME);
	add_meta(&c, p, "kernel: ", META_KERNEL_RELEASE);
	if (!p->untimed)
		add_comment(&c, "start on CLOCK_MONOTONIC: %" PRIu64 " ns", p->start);
	if (p->books_count) /* or it was read from another format */
		add_books(&c, &figures);
	add_losses(&c, p, &figures);
	return c.error;
}

struct dso_id export_main_program(const struct profile *p)
{
	_cleanup_free_ uint64_t *of_stack = calloc(p->stack_count + 1, sizeof(*of_stack));
	_cleanup_free_ uint64_t *of_dso = calloc(p->dso_count + 1, sizeof(*of_dso));
	_cleanup_free_ bool *below = calloc(p->stack_count + 1, sizeof(*below));
	struct dso_id best = {0};

	if (!of_stack || !of_dso || !below)
		return best;
	profile__count_stacks(p, of_stack);
	for (size_t i = p->stack_count; i-- > 1;)
		of_stack[p->stacks[i].parent.v] += of_stack[i];
	for (size_t i = 1; i < p->stack_count; i++) {
		const struct profile_location *l = &p->locations[p->stacks[i].location.v];
		bool is_program = l->category == CATEGORY_USER &&
				  p->dsos[l->dso.v].kind == DSO_FILE;

		if (is_program && !below[p->stacks[i].parent.v])
			of_dso[l->dso.v] += of_stack[i];
		below[i] = is_program || below[p->stacks[i].parent.v];
	}
	for (uint32_t i = 1; i < p->dso_count; i++)
		if (of_dso[i] > of_dso[best.v])
			best.v = i;
	return best;
}
