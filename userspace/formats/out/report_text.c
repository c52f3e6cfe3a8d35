/* SPDX-License-Identifier: BSD-2-Clause */
#include "formats/out/report_text.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/utf8.h"
#include "formats/out/report_header.h"
#include "formats/out/report_paint.h"
#include "formats/out/report_private.h"
#include "formats/out/report_rows.h"

#define NAME_WIDTH	56 /* longer names push their row's last column to the right */
#define NAME_WIDTH_MIN	16
#define PLACE_WIDTH_MIN 8
#define COUNTS_WIDTH	9
#define EVENT_SIZE	48 /* of an event's name, and of its unit's */
#define CODE_FIXED	41 /* columns before the name */
#define TASK_FIXED	63

struct layout {
	enum report_by by;
	const struct report_options *options;
	char event[2 * EVENT_SIZE]; /* what is counted … */
	int counts;		    /* … and the columns of that */
	int name;		    /* columns of the name, padded */
	size_t limit;		    /* of the name; 0: none */
	size_t places;		    /* limit of the place; 0: none */
};

/* Columns of what is shown as the row's place. */
static size_t place_columns(const struct report_row *row)
{
	char line[16];

	if (!row->place)
		return 0;
	return text_columns(row->place) +
	       (row->line ? (size_t)snprintf(line, sizeof(line), ":%" PRIu32, row->line) : 0);
}

/* "cycles", "cpu ns" */
static void name_counts(struct layout *l, const struct profile *p)
{
	const char *unit = profile__event_unit(p);
	char name[EVENT_SIZE], shown[EVENT_SIZE];

	utf8_sanitize(name, sizeof(name), profile__event(p));
	utf8_sanitize(shown, sizeof(shown), strcmp(unit, EVENT_CPU_UNIT) ? unit : "ns");
	snprintf(l->event, sizeof(l->event), "%s%s%s", name, strcmp(unit, "count") ? " " : "",
		 strcmp(unit, "count") ? shown : "");
}

static void lay_out(struct layout *l, const struct profile *p, const struct report_options *options,
		    const struct report_table *table)
{
	size_t names = strlen("function"), places = 0, room, fixed;
	char largest[32];

	*l = (struct layout){.by = options->by, .options = options};
	name_counts(l, p);
	l->counts = snprintf(largest, sizeof(largest), "%" PRIu64, p->event_count);
	l->counts = (int)max_u64(max_u64(COUNTS_WIDTH, (uint64_t)l->counts), strlen(l->event));
	for (size_t i = 0; i < table->shown; i++) {
		names = max_u64(names, text_columns(table->rows[i].name));
		places = max_u64(places, place_columns(&table->rows[i]));
	}
	l->name = (int)min_u64(names, NAME_WIDTH);
	fixed = (report_by_tasks(options->by) ? TASK_FIXED : CODE_FIXED) + (size_t)l->counts -
		COUNTS_WIDTH;
	if (!options->width)
		return;
	room = options->width > fixed ? options->width - fixed : 0;
	places = min_u64(places, max_u64(room / 3, PLACE_WIDTH_MIN));
	l->limit = room > places + 2 ? room - places - (places ? 2 : 0) : 0;
	l->limit = max_u64(l->limit, NAME_WIDTH_MIN);
	l->name = (int)min_u64(names, l->limit);
	l->places = max_u64(room > (size_t)l->name + 2 ? room - l->name - 2 : 0, PLACE_WIDTH_MIN);
}

static void print_titles(const struct layout *l, FILE *out)
{
	static const char *const names[REPORT_BY_COUNT] = {[REPORT_FUNCTION] = "function",
							   [REPORT_LINE] = "function",
							   [REPORT_THREAD] = "thread",
							   [REPORT_CONTAINER] = "container"};
	static const char *const places[REPORT_BY_COUNT] = {
		[REPORT_FUNCTION] = "dso",    [REPORT_LINE] = "line, or dso",
		[REPORT_DSO] = "dso",	      [REPORT_THREAD] = "process",
		[REPORT_PROCESS] = "process", [REPORT_SERVICE] = "service",
		[REPORT_CONTAINER] = "id",    [REPORT_UNIT] = "unit",
		[REPORT_USER] = "user"};

	paint_begin(out, l->options->color, PAINT_DIM);
	fprintf(out, "%7s %12s %*s ", report_by_tasks(l->by) ? "share" : "self", "95 % range",
		l->counts, l->event);
	if (report_by_tasks(l->by))
		fprintf(out, "%12s %8s %8s  ", "CPU ms", report_by_names(l->by) ? "pids" : "pid",
			l->by == REPORT_THREAD ? "tid" : "threads");
	else
		fprintf(out, "%7s  ", "total");
	if (names[l->by])
		fprintf(out, "%-*s  ", l->name, names[l->by]);
	fputs(places[l->by], out);
	paint_end(out, l->options->color, PAINT_DIM);
	fputc('\n', out);
}

static void print_numbers(const struct profile *p, const struct report_row *row,
			  const struct layout *l, FILE *out)
{
	struct interval range = share_interval(p, row->self, row->self_square);
	char text[32] = "unknown";

	if (!p->uncounted)
		snprintf(text, sizeof(text), "%.2f-%.2f", 100 * range.low, 100 * range.high);
	paint_share(out, l->options->color, share_of(row->self, p->event_count));
	fprintf(out, " %12s %*" PRIu64 " ", text, l->counts, row->self);
	if (report_by_tasks(l->by))
		fprintf(out, "%12.3f %8" PRIu32 " %8" PRIu32, (double)row->cpu / 1e6,
			report_by_names(l->by) ? row->processes : row->pid,
			l->by == REPORT_THREAD ? row->tid : row->threads);
	else
		paint_share(out, l->options->color, share_of(row->total, p->event_count));
	fputs("  ", out);
}

/* The place, with its line: NULL if there is no memory. */
static char *place_text(const struct report_row *row)
{
	char *plain = printable_copy(row->place), *text;

	if (!plain || !row->line)
		return plain;
	if (asprintf(&text, "%s:%" PRIu32, plain, row->line) < 0)
		text = NULL;
	free(plain);
	return text;
}

static int print_row(const struct profile *p, const struct report_row *row, const struct layout *l,
		     FILE *out)
{
	_cleanup_free_ char *name = printable_copy(row->name);
	_cleanup_free_ char *place = row->place ? place_text(row) : NULL;
	bool color = l->options->color, utf8 = l->options->utf8;
	int padding;

	if (!name || (row->place && !place))
		return -ENOMEM;
	print_numbers(p, row, l, out);
	if (l->limit)
		shorten_text(name, l->limit, false, utf8);
	paint_text(out, color, paint_of_category(row->category), "%s", name);
	if (place) {
		if (l->places)
			shorten_text(place, l->places, true, utf8);
		padding = l->name - (int)text_columns(name);
		fprintf(out, "%*s", (padding > 0 ? padding : 0) + 2, "");
		paint_text(out, color, PAINT_DIM, "%s", place);
	}
	fputc('\n', out);
	return 0;
}

int report_table_text(const struct profile *p, const struct report_options *options,
		      const struct report_table *table, FILE *out)
{
	struct layout l;
	int err = report_header(p, out);

	lay_out(&l, p, options, table);
	fputc('\n', out);
	print_titles(&l, out);
	for (size_t i = 0; i < table->shown && !err; i++)
		err = print_row(p, &table->rows[i], &l, out);
	if (table->shown < table->count)
		fprintf(out, "# … and %zu more\n", table->count - table->shown);
	return err;
}
