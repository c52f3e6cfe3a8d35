/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Markers: what happened at a time.
 *
 * Starts and ends of processes are on the first track of the process, names and doubtful samples on
 * their thread's, and markers of the whole recording on a track that the viewer shows at first.
 *
 * There may be a million doubtful samples. Consecutive samples with one flaw, without a pause of
 * the thread, are one marker. If there are still more than RUNS_OF_FILE over all threads, runs are
 * joined across wider and wider gaps, whatever their flaw. Each marker has the number of its
 * samples, so the sum is always that of the profile.
 */
#include "formats/out/firefox_markers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/utf8.h"
#include "formats/out/describe.h"
#include "formats/out/firefox.h"
#include "formats/out/firefox_tables.h"
#include "tenants/outside_books.h"

#define RUNS_OF_FILE	   16384u /* of each kind */
#define RUNS_OF_THREAD	   256u
#define RUNS_LEAST	   8u	  /* that each thread may have */
#define GIL_RUNS_OF_FILE   65536u /* of each state */
#define GIL_RUNS_OF_THREAD 8192u
#define WAIT_LONG	   10000000u /* ns: shorter ones have no marker */
#define WAITS_OF_FILE	   65536u    /* where there are more, only longer ones have one */
#define HOLDER_NAME	   256	     /* bytes of the name of a thread */
#define CGROUP_CUT	   256u /* bytes of a control group's path, if all have more than … */
#define CGROUPS_FREE	   (4u << 20) /* … these, and CGROUP_CUT for each process */
#define SEVERAL		   UINT32_MAX
#define PAUSE		   10 /* periods */

/* ---- the kinds ------------------------------------------------------------------------------- */

struct marker_field {
	const char *key, *label, *format;
};

#define FIELDS_MAX 4

/* Several kinds may share a schema: the first describes it. */
struct marker_kind {
	const char *name, *schema; /* as shown; … */
	bool overview;		   /* shown above the graph of its thread */
	const char *tooltip, *table, *description;
	struct marker_field fields[FIELDS_MAX];
};

#define PROCESS_SCHEMA                                                                             \
	"Process", true, "{marker.name}: {marker.data.name}",                                      \
		"{marker.data.name} ({marker.data.pid})",                                          \
		"A process began, called execve, or ended.",                                       \
	{                                                                                          \
		{"name", "Name", "string"}, {"pid", "PID", "string"},                              \
			{"ppid", "Parent", "string"}, {"cgroup", "Control group", "string"},       \
	}

#define GIL_SCHEMA                                                                                 \
	"GIL", true, "{marker.name}", "{marker.data.samples}",                                     \
		"These samples of the thread of Python held the GIL, or were about to "            \
		"wait for it. Between them it ran without it, or not at all.",                     \
	{                                                                                          \
		{"samples", "Samples", "integer"},                                                 \
	}

#define KIND(id, ...) [MARKER_##id] = {__VA_ARGS__}

static const struct marker_kind kinds[MARKER_KIND_COUNT] = {
	KIND(PROCESS_START, "Process start", PROCESS_SCHEMA),
	KIND(PROCESS_EXEC, "Process exec", PROCESS_SCHEMA),
	KIND(PROCESS_EXIT, "Process exit", PROCESS_SCHEMA),
	KIND(THREAD_NAME, "Thread name", "ThreadName", false, "{marker.name}: {marker.data.name}",
	     "{marker.data.name}", "The thread got another name.", {{"name", "Name", "string"}}),
	KIND(CUT_STACKS, "Cut stacks", "CutStacks", false, "{marker.name}: {marker.data.reason}",
	     "{marker.data.samples}: {marker.data.reason}",
	     "The stacks of these samples do not reach the thread's entry.",
	     {{"reason", "Reason", "string"}, {"samples", "Samples", "integer"}}),
	KIND(AMBIGUOUS_NAME, "Ambiguous name", "AmbiguousName", false,
	     "{marker.name}: {marker.data.function}",
	     "{marker.data.samples}: {marker.data.function}",
	     "These samples are in JIT code that may have been another function.",
	     {{"function", "Named", "string"}, {"samples", "Samples", "integer"}}),
	KIND(LOST, "Something was lost", "Lost", true, "{marker.name}", "{marker.data.ranges}",
	     "Samples or records of processes are missing in this time, of any thread.",
	     {{"ranges", "Ranges", "integer"}}),
	KIND(CLOCK_EPOCH, "Clock epoch", "ClockEpoch", true, "{marker.name} {marker.data.number}",
	     "{marker.data.number}", "The clock of the samples was set anew, as after a suspend.",
	     {{"number", "Number", "integer"}}),
	KIND(LEFT_OUT, "Left out", "LeftOut", true, "{marker.name}: {marker.data.text}",
	     "{marker.data.text}", "From here on a limit left something out, or made it wait.",
	     {{"text", "What", "string"}}),
	KIND(GIL_HELD, "GIL held", GIL_SCHEMA),
	KIND(GIL_WAITING, "Waiting for the GIL", GIL_SCHEMA),
	KIND(WAIT, "Wait", "Wait", true, "{marker.data.state}", "{marker.data.state}",
	     "The thread waited at one place for 10 ms or longer.",
	     {{"state", "State", "string"}, {"holder", "Holder of the lock", "string"}}),
	KIND(READ, NULL, "Marker", true, "{marker.name}", "{marker.name}",
	     "A marker of the file that this one was made from.", {{}}),
};

static bool is_of_gil(enum firefox_marker_kind kind)
{
	return kind == MARKER_GIL_HELD || kind == MARKER_GIL_WAITING;
}

bool firefox_has_gil(const struct profile *p)
{
	for (size_t i = 1; i < p->thread_count; i++)
		if (p->threads[i].samples[SAMPLE_CPU].gil)
			return true;
	return false;
}

static void write_displays(const struct marker_kind *kind, struct json_writer *w)
{
	json_key_array(w, "display");
	json_string(w, "marker-chart");
	json_string(w, "marker-table");
	if (kind->overview)
		json_string(w, "timeline-overview");
	json_end_array(w);
}

static void write_schema(const struct marker_kind *kind, struct json_writer *w)
{
	json_begin_object(w);
	json_key_string(w, "name", kind->schema);
	json_key_string(w, "tooltipLabel", kind->tooltip);
	json_key_string(w, "tableLabel", kind->table);
	json_key_string(w, "chartLabel", kind->table);
	json_key_string(w, "description", kind->description);
	write_displays(kind, w);
	json_key_array(w, "fields");
	for (size_t i = 0; i < FIELDS_MAX && kind->fields[i].key; i++) {
		json_begin_object(w);
		json_key_string(w, "key", kind->fields[i].key);
		json_key_string(w, "label", kind->fields[i].label);
		json_key_string(w, "format", kind->fields[i].format);
		json_end_object(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/* Schemas that few profiles need are written only if needed. */
static bool is_of_use(const struct profile *p, enum firefox_marker_kind kind)
{
	if (is_of_gil(kind))
		return firefox_has_gil(p);
	if (kind == MARKER_WAIT)
		return p->visits.hz;
	if (kind == MARKER_READ)
		return p->marker_count;
	return kind != MARKER_LEFT_OUT || p->outside_count;
}

void firefox_write_marker_schema(const struct profile *p, struct json_writer *w)
{
	json_key_array(w, "markerSchema");
	for (unsigned int i = 0; i < MARKER_KIND_COUNT; i++)
		if (is_of_use(p, i) && (!i || strcmp(kinds[i].schema, kinds[i - 1].schema)))
			write_schema(&kinds[i], w);
	json_end_array(w);
}

/* ---- samples with a flaw --------------------------------------------------------------------- */

/* Samples of a thread with a flaw, and which: rows in order. */
typedef VEC(struct flaw {
	size_t row;
	uint32_t what;
}) flaws;

struct run {
	size_t first, last; /* rows */
	uint32_t what;	    /* SEVERAL: not the same */
	uint64_t samples;
};

typedef VEC(struct run) runs;

static bool is_same_run(const struct profile *p, const struct profile_samples *samples,
			const struct run *run, const struct flaw *flaw)
{
	uint64_t pause = p->period ? p->period * PAUSE : UINT64_MAX;

	return run->what == flaw->what && flaw->row == run->last + 1 &&
	       samples->time[flaw->row] - samples->time[run->last] <= pause;
}

/* `gap`: rows that may lie between two flaws of a run, of any kind; 0: see is_same_run(). */
static int join_flaws(const struct profile *p, const struct profile_samples *samples,
		      const flaws *all, size_t gap, runs *joined)
{
	int err = 0;

	joined->count = 0;
	for (size_t i = 0; i < all->count && !err; i++) {
		const struct flaw *flaw = &all->data[i];
		struct run *last = joined->count ? &joined->data[joined->count - 1] : NULL;
		uint64_t ticks = profile_samples__ticks(samples, flaw->row);

		if (last && (gap ? flaw->row - last->last - 1 <= gap
				 : is_same_run(p, samples, last, flaw))) {
			last->last = flaw->row;
			last->samples += ticks;
			last->what = last->what == flaw->what ? flaw->what : SEVERAL;
			continue;
		}
		err = vec_push(joined, ((struct run){flaw->row, flaw->row, flaw->what, ticks}));
	}
	return err;
}

/*
 * A state lasts until the next sample, at most for a period; a flaw only as long as its samples. So
 * does the last state, because a time without samples has none.
 */
static uint64_t end_of_run(const struct profile *p, const struct profile_samples *samples,
			   enum firefox_marker_kind kind, size_t last)
{
	if (!is_of_gil(kind) || last + 1 == samples->count)
		return samples->time[last];
	return min_u64(samples->time[last + 1], samples->time[last] + p->period);
}

static int push_runs(struct firefox *f, uint32_t track, enum firefox_marker_kind kind,
		     const flaws *all, size_t most)
{
	const struct profile_samples *samples =
		&f->p->threads[f->tracks.data[track].thread].samples[SAMPLE_CPU];
	runs joined = {};
	int err = join_flaws(f->p, samples, all, 0, &joined);

	for (size_t gap = 1; !err && joined.count > most; gap *= 2)
		err = join_flaws(f->p, samples, all, gap, &joined);
	for (size_t i = 0; i < joined.count && !err; i++)
		err = vec_push(&f->markers,
			       ((struct firefox_marker){
				       .start = samples->time[joined.data[i].first],
				       .end = end_of_run(f->p, samples, kind, joined.data[i].last),
				       .track = track,
				       .kind = kind,
				       .what = joined.data[i].what,
				       .count = joined.data[i].samples,
			       }));
	vec_free(&joined);
	return err;
}

/* A kind of marker that is found in samples. */
struct finding {
	enum firefox_marker_kind kind;
	const uint32_t
		*doubtful; /* by stack: its innermost location with an ambiguous name, or 0 */
	size_t most;	   /* runs of a thread */
	flaws found;
};

/* Is there one in this row, and which? */
static bool has_flaw(const struct finding *f, const struct profile_samples *samples, size_t row,
		     uint32_t *what)
{
	if (f->kind == MARKER_AMBIGUOUS_NAME)
		return (*what = f->doubtful[samples->stack[row].v]) != 0;
	*what = f->kind == MARKER_GIL_HELD ? GIL_HELD : GIL_WAITING;
	return samples->gil[row] == *what;
}

static int find_flaws(struct finding *f, const struct profile_thread *thread)
{
	const struct profile_samples *samples = &thread->samples[SAMPLE_CPU];
	size_t count = is_of_gil(f->kind) && !samples->gil ? 0 : samples->count;
	uint32_t what;
	int err = 0;

	f->found.count = 0;
	if (f->kind == MARKER_CUT_STACKS) {
		for (size_t i = 0; i < thread->cut_count && !err; i++)
			err = vec_push(&f->found, ((struct flaw){thread->cuts[i].sample,
								 thread->cuts[i].end}));
		return err;
	}
	for (size_t i = 0; i < count && !err; i++)
		if (has_flaw(f, samples, i, &what))
			err = vec_push(&f->found, ((struct flaw){i, what}));
	return err;
}

static uint32_t *doubtful_stacks(const struct profile *p)
{
	uint32_t *doubtful = calloc(p->stack_count + 1, sizeof(*doubtful));

	for (size_t i = 1; doubtful && i < p->stack_count; i++) {
		struct location_id location = p->stacks[i].location;

		doubtful[i] = p->locations[location.v].ambiguous ? location.v
								 : doubtful[p->stacks[i].parent.v];
	}
	return doubtful;
}

/* States of the GIL have more runs than flaws, to be shown as they were. */
static size_t runs_of_thread(const struct firefox *f, enum firefox_marker_kind kind)
{
	size_t tracks = max_u64(f->tracks.count, 1);
	size_t share = (is_of_gil(kind) ? GIL_RUNS_OF_FILE : RUNS_OF_FILE) / tracks;

	return min_u64(max_u64(share, RUNS_LEAST),
		       is_of_gil(kind) ? GIL_RUNS_OF_THREAD : RUNS_OF_THREAD);
}

static int collect_flaws(struct firefox *f, enum firefox_marker_kind kind, const uint32_t *doubtful)
{
	struct finding finding = {
		.kind = kind, .doubtful = doubtful, .most = runs_of_thread(f, kind)};
	int err = 0;

	for (uint32_t i = 0; i < f->tracks.count && !err; i++)
		err = find_flaws(&finding, &f->p->threads[f->tracks.data[i].thread])
			      ?: push_runs(f, i, kind, &finding.found, finding.most);
	vec_free(&finding.found);
	return err;
}

static int collect_all_flaws(struct firefox *f)
{
	_cleanup_free_ uint32_t *doubtful = doubtful_stacks(f->p);

	return (doubtful ? 0 : -ENOMEM)
		?: collect_flaws(f, MARKER_CUT_STACKS, doubtful)
		?: collect_flaws(f, MARKER_AMBIGUOUS_NAME, doubtful)
		?: collect_flaws(f, MARKER_GIL_HELD, doubtful)
		?: collect_flaws(f, MARKER_GIL_WAITING, doubtful);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* Rows of a thread that lasted so long. */
static size_t next_wait(const struct profile_samples *waits, size_t row, uint64_t shortest)
{
	while (row < waits->count && waits->until[row] - waits->since[row] < shortest)
		row++;
	return row;
}

static uint64_t count_waits(const struct firefox *f, uint64_t shortest)
{
	uint64_t count = 0;

	for (size_t i = 0; i < f->tracks.count; i++) {
		const struct profile_samples *waits =
			&f->p->threads[f->tracks.data[i].thread].samples[SAMPLE_WALL];

		for (size_t row = next_wait(waits, 0, shortest); row < waits->count;
		     row = next_wait(waits, row + 1, shortest))
			count++;
	}
	return count;
}

static int collect_waits_of(struct firefox *f, uint32_t track, uint64_t shortest)
{
	const struct profile_thread *thread = &f->p->threads[f->tracks.data[track].thread];
	const struct profile_samples *waits = &thread->samples[SAMPLE_WALL];
	uint64_t end = min_u64(timeline_end(f->p, thread), max_u64(f->p->end, f->p->start));
	int err = 0;

	for (size_t row = next_wait(waits, 0, shortest); row < waits->count && !err;
	     row = next_wait(waits, row + 1, shortest))
		err = vec_push(
			&f->markers,
			((struct firefox_marker){
				.start = min_u64(max_u64(waits->since[row], f->p->start), end),
				.end = min_u64(waits->until[row], end),
				.track = track,
				.kind = MARKER_WAIT,
				.what = (uint32_t)row,
				.count = 1,
			}));
	return err;
}

static int collect_waits(struct firefox *f)
{
	uint64_t shortest = WAIT_LONG;
	int err = 0;

	while (count_waits(f, shortest) > max_u64(WAITS_OF_FILE, f->tracks.count))
		shortest *= 2;
	for (uint32_t i = 0; i < f->tracks.count && !err; i++)
		err = collect_waits_of(f, i, shortest);
	return err;
}

/* ---- processes and threads ------------------------------------------------------------------- */

static int push_moment(struct firefox *f, uint32_t track, enum firefox_marker_kind kind,
		       uint64_t time, uint32_t what)
{
	return vec_push(&f->markers, ((struct firefox_marker){time, time, track, kind, what, 1}));
}

static int collect_processes(struct firefox *f)
{
	int err = 0;

	for (uint32_t i = 1; i < f->p->process_count && !err; i++) {
		const struct profile_process *process = &f->p->processes[i];
		uint32_t track = f->first_track[i];

		if (!track--)
			continue;
		if (process->began == PROCESS_FORKED)
			err = push_moment(f, track, MARKER_PROCESS_START, process->start, i);
		else if (process->began == PROCESS_EXECED)
			err = push_moment(f, track, MARKER_PROCESS_EXEC, process->start, i);
		if (!err && process->end && !process->execs)
			err = push_moment(f, track, MARKER_PROCESS_EXIT, process->end, i);
	}
	return err;
}

static int collect_names(struct firefox *f)
{
	int err = 0;

	for (uint32_t i = 0; i < f->tracks.count; i++) {
		const struct profile_thread *thread = &f->p->threads[f->tracks.data[i].thread];

		for (size_t k = 0; k < thread->rename_count && !err; k++)
			err = push_moment(f, i, MARKER_THREAD_NAME, thread->renames[k].time,
					  thread->renames[k].name.v);
	}
	return err;
}

/* Those that were read, on the tracks of their threads; `count` is the number of the name. */
static int collect_read(struct firefox *f)
{
	_cleanup_free_ uint32_t *track_of = calloc(f->p->thread_count + 1, sizeof(*track_of));
	int err = track_of ? 0 : -ENOMEM;

	for (uint32_t i = (uint32_t)f->tracks.count; track_of && i-- > 0;)
		track_of[f->tracks.data[i].thread] = i + 1;
	for (uint32_t i = 0; i < f->p->marker_count && !err; i++) {
		const struct profile_marker *marker = &f->p->markers[i];
		uint32_t track = track_of[marker->thread.v], name;

		if (!track)
			continue;
		err = firefox_tables__string(&f->tables, marker->name, &name)
			      ?: vec_push(&f->markers, ((struct firefox_marker){
							       marker->start, marker->end,
							       track - 1, MARKER_READ, i, name}));
	}
	return err;
}

/* ---- the recording --------------------------------------------------------------------------- */

static int collect_losses(struct firefox *f)
{
	struct lost_span span;
	size_t at = 0;
	int err = 0;

	while (!err && next_lost_span(f->p, &at, &span))
		err = vec_push(&f->markers, ((struct firefox_marker){
						    .start = max_u64(span.since, f->p->start),
						    .end = max_u64(span.until, f->p->start),
						    .track = f->recording,
						    .kind = MARKER_LOST,
						    .count = span.ranges,
					    }));
	return err;
}

static int collect_outside(struct firefox *f)
{
	int err = 0;

	for (uint32_t i = 0; i < f->p->outside_count && !err; i++)
		err = push_moment(f, f->recording, MARKER_LEFT_OUT, f->p->outside[i].since, i);
	return err;
}

static int collect_epochs(struct firefox *f)
{
	int err = 0;

	for (uint32_t i = 0; i < f->p->epoch_count && !err; i++)
		err = push_moment(f, f->recording, MARKER_CLOCK_EPOCH, f->p->epochs[i], i + 2);
	return err;
}

/* ---- all of them ----------------------------------------------------------------------------- */

DEFINE_ORDER(compare_markers, struct firefox_marker, ASCENDING(track) ?: ASCENDING(start) ?: ASCENDING(kind) ?: ASCENDING(end) ?: ASCENDING(what));

/* Sort by track, and add the names to the string table. */
static int order_markers(struct firefox *f)
{
	bool used[MARKER_KIND_COUNT] = {};
	size_t at = 0;
	int err = 0;

	f->marker_end = calloc(f->tracks.count + 1, sizeof(*f->marker_end));
	if (!f->marker_end || f->markers.count >= UINT32_MAX)
		return -ENOMEM;
	vec_sort(&f->markers, compare_markers);
	for (size_t track = 0; track < f->tracks.count || !track; track++) {
		while (at < f->markers.count && f->markers.data[at].track == track)
			used[f->markers.data[at++].kind] = true;
		f->marker_end[track] = at;
	}
	for (unsigned int kind = 0; kind < MARKER_KIND_COUNT && !err; kind++)
		if (used[kind] && kinds[kind].name)
			err = firefox_tables__text(&f->tables, kinds[kind].name,
						   &f->marker_name[kind]);
	return err;
}

static bool cgroups_are_small(const struct profile *p)
{
	uint64_t bytes = 0;

	for (size_t i = 1; i < p->process_count; i++)
		bytes += strlen(profile__string(p, p->processes[i].cgroup));
	return bytes <= CGROUPS_FREE + (uint64_t)CGROUP_CUT * p->process_count;
}

int firefox_collect_markers(struct firefox *f)
{
	f->whole_cgroups = cgroups_are_small(f->p);
	return collect_processes(f)
		?: collect_names(f)
		?: collect_all_flaws(f)
		?: collect_waits(f)
		?: collect_read(f)
		?: collect_losses(f)
		?: collect_epochs(f)
		?: collect_outside(f)
		?: order_markers(f);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_number_text(struct json_writer *w, const char *key, uint32_t number)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", number);
	json_key_string(w, key, text);
}

/* Child processes share the text, which may be long and is in each marker. */
static const char *cgroup_text(const struct firefox *f, const struct profile_process *process,
			       char buffer[CGROUP_CUT])
{
	const char *text = profile__string(f->p, process->cgroup);

	if (f->whole_cgroups || strlen(text) < CGROUP_CUT)
		return text;
	snprintf(buffer, CGROUP_CUT, "%.*s…", (int)utf8_cut(text, CGROUP_CUT - strlen("…")), text);
	return buffer;
}

static void write_process_fields(const struct firefox *f, const struct profile_process *process,
				 struct json_writer *w)
{
	const struct profile *p = f->p;
	char cut[CGROUP_CUT];

	json_key_string(w, "name", profile__string(p, process->name));
	write_number_text(w, "pid", process->pid);
	write_number_text(w, "ppid", process->ppid);
	if (process->cgroup.v)
		json_key_string(w, "cgroup", cgroup_text(f, process, cut));
}

static const char *location_name(const struct profile *p, uint32_t location)
{
	const struct profile_line *line = &p->lines[p->locations[location].first_line];

	return profile__string(p, p->functions[line->function.v].name);
}

static const struct profile_samples *waits_of(const struct firefox *f,
					      const struct firefox_marker *m)
{
	return &f->p->threads[f->tracks.data[m->track].thread].samples[SAMPLE_WALL];
}

static void write_wait(const struct firefox *f, const struct firefox_marker *marker,
		       struct json_writer *w)
{
	const struct profile_samples *waits = waits_of(f, marker);
	const struct profile_thread *holder = &f->p->threads[waits->holder[marker->what].v];
	const char *name = profile__string(f->p, holder->name);
	char text[HOLDER_NAME + 16];

	json_key_string(w, "state", wall_state_name(profile_samples__state(waits, marker->what)));
	if (!waits->holder[marker->what].v)
		return;
	snprintf(text, sizeof(text), "%.*s (%" PRIu32 ")", (int)utf8_cut(name, HOLDER_NAME + 1),
		 name, holder->tid);
	json_key_string(w, "holder", text);
}

static void write_data(const struct firefox *f, const struct firefox_marker *marker,
		       struct json_writer *w)
{
	const struct profile *p = f->p;
	char text[OUTSIDE_TEXT_SIZE];

	json_begin_object(w);
	json_key_string(w, "type", kinds[marker->kind].schema);
	switch (marker->kind) {
	case MARKER_PROCESS_START:
	case MARKER_PROCESS_EXEC:
	case MARKER_PROCESS_EXIT:
		write_process_fields(f, &p->processes[marker->what], w);
		break;
	case MARKER_THREAD_NAME:
		json_key_string(w, "name", profile__string(p, (struct string_id){marker->what}));
		break;
	case MARKER_CUT_STACKS:
		json_key_string(w, "reason",
				marker->what == SEVERAL
					? "several reasons"
					: figure_table[FIGURE_ENDS + marker->what].text);
		json_key_uint(w, "samples", marker->count);
		break;
	case MARKER_AMBIGUOUS_NAME:
		json_key_string(w, "function",
				marker->what == SEVERAL ? "several functions"
							: location_name(p, marker->what));
		json_key_uint(w, "samples", marker->count);
		break;
	case MARKER_LOST:
		json_key_uint(w, "ranges", marker->count);
		break;
	case MARKER_CLOCK_EPOCH:
		json_key_uint(w, "number", marker->what);
		break;
	case MARKER_LEFT_OUT:
		json_key_string(w, "text",
				describe_outside(text, sizeof(text), &p->outside[marker->what]));
		break;
	case MARKER_GIL_HELD:
	case MARKER_GIL_WAITING:
		json_key_uint(w, "samples", marker->count);
		break;
	case MARKER_WAIT:
		write_wait(f, marker, w);
		break;
	case MARKER_READ: /* its name is all that there is */
	case MARKER_KIND_COUNT:
		break;
	}
	json_end_object(w);
}

struct marker_span {
	const struct firefox_marker *first;
	size_t count;
};

static struct marker_span markers_of(const struct firefox *f, size_t track)
{
	uint32_t begin = track ? f->marker_end[track - 1] : 0;

	if (f->marker_end[track] == begin)
		return (struct marker_span){};
	return (struct marker_span){f->markers.data + begin, f->marker_end[track] - begin};
}

bool firefox_has_overview_markers(const struct firefox *f, size_t track)
{
	struct marker_span markers = markers_of(f, track);

	return any_of(markers.first, markers.count, m, kinds[m->kind].overview);
}

static unsigned int category_of_marker(const struct firefox *f, const struct firefox_marker *m)
{
	if (m->kind == MARKER_WAIT)
		return firefox_category_of_wait(&f->tables,
						profile_samples__state(waits_of(f, m), m->what));
	return is_of_gil(m->kind) ? FIREFOX_CATEGORY_GIL : CATEGORY_OTHER;
}

static void write_end_time(const struct firefox *f, const struct firefox_marker *m)
{
	if (m->end > m->start)
		json_ns_as_ms(f->w, (int64_t)(m->end - f->p->start));
	else
		json_null(f->w);
}

static uint64_t number_of_name(const struct firefox *f, const struct firefox_marker *m)
{
	return m->kind == MARKER_READ ? m->count : f->marker_name[m->kind];
}

void firefox_write_markers(const struct firefox *f, size_t track)
{
	struct marker_span markers = markers_of(f, track);
	const struct firefox_marker *m = markers.first;
	struct json_writer *w = f->w;

	json_key_object(w, "markers");
	json_key_uint(w, "length", markers.count);
	JSON_COLUMN(w, "data", markers.count, write_data(f, &m[i], w));
	JSON_COLUMN(w, "name", markers.count, json_uint(w, number_of_name(f, &m[i])));
	JSON_COLUMN(w, "startTime", markers.count,
		    json_ns_as_ms(w, (int64_t)(m[i].start - f->p->start)));
	JSON_COLUMN(w, "endTime", markers.count, write_end_time(f, &m[i]));
	/* 0: instant, 1: interval */
	JSON_COLUMN(w, "phase", markers.count, json_uint(w, m[i].end > m[i].start));
	JSON_COLUMN(w, "category", markers.count, json_uint(w, category_of_marker(f, &m[i])));
	json_end_object(w);
}
