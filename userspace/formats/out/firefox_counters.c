/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters: figures of a process over time.
 *
 * CPU time is given for stretches of equal length, without empty ones, so that counters of many
 * short processes stay small. The counts of a process add up to its threads' CPU deltas.
 *
 * Memory is given as differences, as the viewer wants it: it adds them up.
 *
 * The recorder's memory belongs to its own process. If that was not sampled and is not in the file,
 * the counter is with the process that stands for the recording, under a name of its own.
 */
#include "formats/out/firefox_counters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/minmax.h"
#include "formats/out/firefox.h"

#define STRETCHES	  1000
#define STRETCH_OF_PERIOD 10	     /* a stretch has at least so many periods */
#define STRETCH_LEAST	  1000000ull /* ns */
#define ROWS_FREE	  64	     /* of a counter, */
#define ROWS_EACH	  4	     /* and for each sample of the process */

struct counter_row {
	const char *source, *unit, *label;
};

struct counter_kind {
	const char *name, *category, *description, *label;
	const char *graph, *unit, *color, *place;
	unsigned int weight;
	struct counter_row rows[2];
};

#define MEMORY_DISPLAY                                                                             \
	.category = "Memory", .graph = "line-accumulated", .unit = "bytes", .color = "orange",     \
	.place = "timeline-memory", .weight = 20,                                                  \
	.rows = {                                                                                  \
		{"accumulated", "bytes", "above its least in the graph"},                          \
		{"count-range", "bytes", "range in the graph"},                                    \
	}

static const struct counter_kind cpu_counter = {
	.name = "processCPU",
	.category = "CPU",
	.description = "CPU time of all threads of the process",
	.label = "Process CPU",
	.graph = "line-rate",
	.unit = "percent",
	.color = "grey",
	.weight = 40,
	.rows = {{"cpu-ratio", "percent", "CPU"}},
};
static const struct counter_kind memory_counter = {
	.name = "memory",
	.description = "Resident memory of the process",
	.label = "Memory",
	MEMORY_DISPLAY,
};
static const struct counter_kind recorder_counter = {
	.name = "memory of sysprof",
	.description = "Resident memory of sysprof itself, while it recorded",
	.label = "Memory of sysprof",
	MEMORY_DISPLAY,
};

static void write_rows(const struct counter_kind *kind, struct json_writer *w)
{
	json_key_array(w, "tooltipRows");
	for (size_t i = 0; i < 2 && kind->rows[i].source; i++) {
		json_begin_object(w);
		json_key_string(w, "type", "value");
		json_key_string(w, "source", kind->rows[i].source);
		json_key_object(w, "format");
		json_key_string(w, "unit", kind->rows[i].unit);
		json_end_object(w);
		json_key_string(w, "label", kind->rows[i].label);
		json_end_object(w);
	}
	json_end_array(w);
}

/* All but its samples, which follow. */
static void begin_counter(const struct firefox *f, const struct counter_kind *kind, size_t track)
{
	struct json_writer *w = f->w;
	char pid[TRACK_NAME_SIZE];

	json_begin_object(w);
	json_key_string(w, "name", kind->name);
	json_key_string(w, "category", kind->category);
	json_key_string(w, "description", kind->description);
	json_key_string(w, "pid", firefox__pid(f, track, pid));
	json_key_uint(w, "mainThreadIndex", track);
	json_key_object(w, "display");
	json_key_string(w, "graphType", kind->graph);
	json_key_string(w, "unit", kind->unit);
	json_key_string(w, "color", kind->color);
	json_key_string(w, "markerSchemaLocation", kind->place);
	json_key_uint(w, "sortWeight", kind->weight);
	json_key_string(w, "label", kind->label);
	write_rows(kind, w);
	json_end_object(w);
	json_key_object(w, "samples");
}

static void end_counter(struct json_writer *w)
{
	json_end_object(w);
	json_end_object(w);
}

/* ---- CPU ------------------------------------------------------------------------------------- */

/* CPU time of one process in each stretch; scratch. */
struct stretches {
	uint64_t width; /* ns */
	size_t count;
	uint64_t *cpu;
};

/* A row of the counter: up to `time`, `cpu` ns were used since the one before. */
struct cpu_row {
	uint64_t time, cpu;
};

typedef VEC(struct cpu_row) cpu_rows;

static int stretches__init(struct stretches *s, const struct profile *p)
{
	uint64_t duration = p->end - p->start;

	s->width = max_u64(duration / STRETCHES, STRETCH_LEAST);
	s->width = max_u64(s->width, min_u64(p->period, duration) * STRETCH_OF_PERIOD);
	s->count = duration / s->width + 1;
	s->cpu = calloc(s->count, sizeof(*s->cpu));
	return s->cpu ? 0 : -ENOMEM;
}

/* CPU time that was used from `from` to `to`, evenly; the parts add up to all of it. */
static void spread(struct stretches *s, uint64_t from, uint64_t to, uint64_t cpu)
{
	uint64_t length = to > from ? to - from : 1, done = 0;

	for (size_t i = from / s->width; done < cpu; i++) {
		uint64_t end = (i + 1) * s->width;
		bool is_last = end >= to || i + 1 >= s->count;
		uint64_t until = is_last ? cpu : (unsigned __int128)cpu * (end - from) / length;

		s->cpu[min_u64(i, s->count - 1)] += until - done;
		done = until;
	}
}

static int add_track(struct firefox *f, size_t track, struct stretches *s)
{
	uint64_t from = f->p->threads[f->tracks.data[track].thread].start - f->p->start;
	int err = firefox__collect_entries(f, track);

	for (size_t i = 0; i < f->entries.count && !err; i++) {
		uint64_t to = f->entries.data[i].time - f->p->start;

		spread(s, from, to, f->entries.data[i].cpu_delta);
		from = to;
	}
	return err;
}

/* Rows of stretches with CPU time, and of ends of idle times before them. */
static int make_rows(const struct profile *p, const struct stretches *s, cpu_rows *rows)
{
	uint64_t last = p->start;
	int err = 0;

	rows->count = 0;
	for (size_t i = 0; i < s->count && !err; i++) {
		uint64_t begin = p->start + i * s->width;
		uint64_t end = min_u64(begin + s->width, p->end);

		if (!s->cpu[i])
			continue;
		if (!rows->count || begin > last)
			err = vec_push(rows, ((struct cpu_row){begin, 0}));
		if (!err)
			err = vec_push(rows,
				       ((struct cpu_row){max_u64(end, begin + 1), s->cpu[i]}));
		last = end;
	}
	return err;
}

/* Two stretches become one, which is twice as long. */
static void widen(struct stretches *s)
{
	size_t count = (s->count + 1) / 2;

	for (size_t i = 0; i < count; i++)
		s->cpu[i] = s->cpu[2 * i] + (2 * i + 1 < s->count ? s->cpu[2 * i + 1] : 0);
	s->count = count;
	s->width *= 2;
}

/* One sample's CPU time may cover all of the time, but a counter is no larger than its samples. */
static int fit_rows(const struct profile *p, struct stretches *s, uint64_t samples, cpu_rows *rows)
{
	int err = make_rows(p, s, rows);

	while (!err && rows->count > ROWS_FREE + ROWS_EACH * samples) {
		widen(s);
		err = make_rows(p, s, rows);
	}
	return err;
}

static void write_rates(const struct firefox *f, const cpu_rows *rows, size_t track)
{
	struct json_writer *w = f->w;

	begin_counter(f, &cpu_counter, track);
	json_key_uint(w, "length", rows->count);
	JSON_COLUMN(w, "time", rows->count,
		    json_ns_as_ms(w, (int64_t)(rows->data[i].time - f->p->start)));
	JSON_COLUMN(w, "count", rows->count, json_uint(w, rows->data[i].cpu));
	end_counter(w);
}

/* Threads of a process are next to each other. */
static int write_cpu_counters(struct firefox *f)
{
	struct stretches s = {};
	cpu_rows rows = {};
	int err = stretches__init(&s, f->p);

	for (uint32_t i = 0; i < f->tracks.count && !err;) {
		struct stretches own = s;
		uint64_t samples = 0;
		uint32_t first = i;

		memset(s.cpu, 0, s.count * sizeof(*s.cpu));
		for (; i < f->tracks.count && firefox__first_of_process(f, i) == first && !err;
		     i++) {
			samples = saturating_add_u64(samples, firefox__events(f, i));
			err = add_track(f, i, &own);
		}
		if (!err)
			err = fit_rows(f->p, &own, min_u64(samples, s.count), &rows);
		if (!err && rows.count)
			write_rates(f, &rows, first);
	}
	vec_free(&rows);
	free(s.cpu);
	return err;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void write_memory(const struct firefox *f, const struct profile_memory *memory,
			 const struct counter_kind *kind, size_t track)
{
	const struct profile_memory_reading *r = memory->readings;
	struct json_writer *w = f->w;

	begin_counter(f, kind, track);
	json_key_uint(w, "length", memory->count);
	JSON_COLUMN(w, "time", memory->count, json_ns_as_ms(w, (int64_t)(r[i].time - f->p->start)));
	JSON_COLUMN(w, "count", memory->count,
		    json_int(w, (int64_t)(r[i].bytes - (i ? r[i - 1].bytes : 0))));
	end_counter(w);
}

static void write_memory_counters(const struct firefox *f)
{
	for (size_t i = 0; i < f->p->memory_count && f->tracks.count; i++) {
		const struct profile_memory *memory = &f->p->memories[i];
		uint32_t track = f->first_track[memory->process.v];

		if (!memory->count)
			continue;
		if (track)
			write_memory(f, memory, &memory_counter, track - 1);
		else if (memory->is_recorder)
			write_memory(f, memory, &recorder_counter, f->recording);
	}
}

int firefox_write_counters(struct firefox *f)
{
	int err;

	json_key_array(f->w, "counters");
	err = write_cpu_counters(f);
	if (!err)
		write_memory_counters(f);
	json_end_array(f->w);
	return err;
}
