/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/diffing_windows.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "cli/diffing.h"
#include "cli/service_windows.h"
#include "compare/merged.h"

/* A span that is added as a file. */
struct adding_span {
	struct comparison *c;
	enum compare_side side;
	const char *name;
	const struct time_span *span;
	const struct profile_filter *filter; /* without --service */
	bool is_first;			     /* the next window */
};

/* What the filter keeps of a window; NULL: there are no clauses, or no profile. */
static int filter_window(const struct adding_span *a, const struct profile *p,
			 struct filtered **filtered, struct failure *failure)
{
	struct failure why = {};
	int err = p && a->filter->count ? profile_filter__apply(a->filter, p, filtered, &why) : 0;

	return err ? fail(failure, err, "cannot take a part of %s: %s", a->name, why.what) : 0;
}

static int add_window(void *context, const struct service_window *window, const struct profile *p,
		      struct failure *failure)
{
	struct adding_span *a = context;
	const struct merged_window where = {
		.process = window->process,
		.offset = window->start - a->span->from,
		.span = a->span->until - a->span->from,
		.length = window->length,
		.is_first = a->is_first,
		.is_more = window->is_more,
	};
	struct filtered *filtered = NULL;
	int err = filter_window(a, p, &filtered, failure);

	if (!err)
		err = comparison__add_window(a->c, a->side, a->name,
					     filtered ? filtered__profile(filtered) : p, &where,
					     failure);
	filtered__free(filtered);
	a->is_first = false;
	return err;
}

/* The span was added last. */
static int check_kept(const struct adding_span *a, struct failure *failure)
{
	const struct compare_file *file = comparison__file(a->c, comparison__file_count(a->c) - 1);

	return file->ticks
		       ? 0
		       : fail(failure, -ENODATA,
			      "cannot compare %s: it has no sample that the filter keeps", a->name);
}

static int add_span(struct comparison *c, enum compare_side side, const struct service_windows *all,
		    const char *service, const struct time_span *span,
		    const struct profile_filter *filter, struct failure *failure)
{
	_cleanup_free_ char *name = NULL;
	struct adding_span a = {
		.c = c, .side = side, .span = span, .filter = filter, .is_first = true};

	if (name_span(service, span, &name)) {
		name = NULL;
		return fail(failure, -ENOMEM, "cannot compare: out of memory");
	}
	a.name = name;
	return service_windows__each(all, service, span, add_window, &a, failure)
		       ?: check_kept(&a, failure);
}

int diffing__add_windows(struct comparison *c, const struct diffing *d, struct failure *failure)
{
	struct service_windows *windows = NULL;
	struct profile_filter filter = {};
	int err = inputs__filter_of_windows(&d->in.filter, &filter, failure)
			  ?: service_windows__list(d->files[COMPARE_OLD][0], &windows, failure);

	for (int side = 0; side < COMPARE_SIDES; side++)
		for (size_t i = 0; i < d->span_count[side] && !err; i++)
			err = add_span(c, (enum compare_side)side, windows, d->service,
				       &d->spans[side][i], &filter, failure);
	service_windows__free(windows);
	profile_filter__fini(&filter);
	return err;
}

/* The row's `min` is the side. */
int diffing__take_span(const struct given_option *o)
{
	enum compare_side side = (enum compare_side)o->row->min;
	struct diffing *d = o->fields;

	if (d->span_count[side] == DIFFING_SPANS_MAX)
		return fail(o->failure, -E2BIG, "more than %d spans of time", DIFFING_SPANS_MAX);
	return parse_time_span(o->value, realtime_ns(), &d->spans[side][d->span_count[side]++]);
}
