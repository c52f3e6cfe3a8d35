/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every invariant of a profile, broken in turn.
 *
 * The profile below is right; each case spoils a copy of it in one place and says a word that the
 * complaint must contain.
 */
#include <sysprof/profile.h>

#include "unit.h"
#include "profile/profile.h"
#include "profile/profile_check.h"

#include <sysprof/profile_builder.h>

/* Tables of their own for each case, so that a case can write to them. */
struct fixture {
	struct profile p;
	const char *strings[3];
	struct profile_dso dsos[3];
	struct profile_function functions[2];
	struct profile_line lines[2];
	struct profile_location locations[3];
	struct profile_stack stacks[3];
	struct profile_process processes[2];
	struct profile_thread threads[3];
	struct profile_sample_type sample_types[3];
	struct profile_cpu_books books[2];
	struct profile_meta meta[1];
	struct profile_lost_range lost_ranges[2];
	uint64_t time[2], weight[2];
	struct stack_id stack[2];
	struct string_id comm[2];
	struct profile_cut cuts[2];
	struct profile_rename renames[2];
	struct profile_memory_reading readings[2];
	struct profile_memory memories[2];
	uint64_t epochs[2];
	struct profile_marker markers[2];
	uint64_t wait_time[2], wait_weight[2], wait_since[2], wait_until[2];
	struct stack_id wait_stack[2];
	struct string_id wait_comm[2];
	uint8_t wait_state[2];
	struct thread_id wait_holder[2];
	struct profile_code codes[2];
	struct profile_code_row code_rows[3];
	struct profile_source sources[2];
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void fill_tables(struct fixture *f)
{
	f->strings[0] = "";
	f->strings[1] = "one";
	f->strings[2] = "two";
	f->sample_types[0] = f->sample_types[2] =
		(struct profile_sample_type){SAMPLE_CPU, {1}, {2}};
	f->sample_types[1] = (struct profile_sample_type){SAMPLE_WALL, {1}, {2}};
	f->dsos[1] = (struct profile_dso){.kind = DSO_FILE, .path = {1}, .name = {1}};
	f->dsos[2] = (struct profile_dso){.kind = DSO_JIT, .path = {2}, .name = {2}};
	f->functions[1] = (struct profile_function){.name = {1}, .dso = {1}};
	f->lines[0].function.v = f->lines[1].function.v = 1;
	f->locations[1] = (struct profile_location){
		.dso = {1}, .category = CATEGORY_USER, .first_line = 0, .line_count = 1};
	f->locations[2] = (struct profile_location){.dso = {2},
						    .category = CATEGORY_JIT,
						    .process = {1},
						    .first_line = 1,
						    .line_count = 1};
	f->stacks[1] = (struct profile_stack){.location = {1}, .depth = 1};
	f->stacks[2] = (struct profile_stack){.parent = {1}, .location = {2}, .depth = 2};
	f->processes[1] = (struct profile_process){.pid = 7, .name = {1}, .start = 100, .end = 180};
	f->threads[1] = (struct profile_thread){.process = {1},
						.tid = 7,
						.name = {1},
						.is_main = true,
						.start = 100,
						.end = 180,
						.cpu_tail = 5,
						.cut_count = 1,
						.cuts = f->cuts,
						.rename_count = 2,
						.renames = f->renames,
						.samples[SAMPLE_CPU] = {.count = 2,
									.tick_sum = 2,
									.event_sum = 2,
									.time = f->time,
									.weight = f->weight,
									.stack = f->stack,
									.comm = f->comm}};
	f->threads[2] = (struct profile_thread){
		.process = {1}, .tid = 8, .name = {2}, .start = 100, .end = 170};
	f->time[0] = 110;
	f->time[1] = 120;
	f->weight[0] = f->weight[1] = 10;
	f->stack[0].v = 1;
	f->stack[1].v = 2;
	f->comm[0].v = f->comm[1].v = 1;
	f->books[0] =
		(struct profile_cpu_books){.cpu = 0, .period = 10, .time_running = 55, .due = 5};
	f->books[1] = (struct profile_cpu_books){.cpu = 1};
	f->meta[0] = (struct profile_meta){{1}, {2}};
	f->lost_ranges[0] = (struct profile_lost_range){110, 120};
	f->lost_ranges[1] = (struct profile_lost_range){130, 130};
	f->cuts[0] = f->cuts[1] = (struct profile_cut){1, STACK_END_DEPTH};
	f->renames[0] = (struct profile_rename){105, {1}};
	f->renames[1] = (struct profile_rename){115, {2}};
	f->readings[0] = (struct profile_memory_reading){110, 4096};
	f->readings[1] = (struct profile_memory_reading){120, 8192};
	f->memories[0] = (struct profile_memory){
		.process = {1}, .pid = 7, .count = 2, .readings = f->readings};
	f->memories[1] = (struct profile_memory){.pid = 9, .is_recorder = true};
	f->epochs[0] = f->epochs[1] = 120;
	f->markers[0] = (struct profile_marker){{1}, {1}, 110, 150};
	f->markers[1] = (struct profile_marker){{2}, {2}, 110, 110};
}

/* The second thread waits: 10 for a CPU, 40 for a lock, of 100. */
static void fill_waits(struct fixture *f)
{
	f->wait_time[0] = 110;
	f->wait_time[1] = 120;
	f->wait_weight[0] = 10;
	f->wait_weight[1] = 40;
	f->wait_stack[0].v = f->wait_stack[1].v = 1;
	f->wait_comm[0].v = f->wait_comm[1].v = 1;
	f->wait_state[0] = WALL_RUNNABLE;
	f->wait_state[1] = WALL_LOCK;
	f->threads[2].samples[SAMPLE_WALL] = (struct profile_samples){.count = 2,
								      .tick_sum = 2,
								      .event_sum = 2,
								      .time = f->wait_time,
								      .weight = f->wait_weight,
								      .stack = f->wait_stack,
								      .comm = f->wait_comm,
								      .state = f->wait_state,
								      .holder = f->wait_holder,
								      .since = f->wait_since,
								      .until = f->wait_until};
	f->wait_since[0] = f->wait_until[0] = 100;
	f->wait_since[1] = 105;
	f->wait_until[1] = 145;
	f->wait_holder[1].v = 1;
	f->threads[2].wall = (struct profile_wall){.since = 50,
						   .until = 150,
						   .running = 30,
						   .runnable = 10,
						   .blocked = 40,
						   .unvisited = 20};
}

static void fill_code(struct fixture *f)
{
	static const uint8_t bytes[] = {0x90, 0x90, 0xc3, 0};

	f->codes[0] = (struct profile_code){.dso = {1},
					    .machine = CODE_MACHINE_X86_64,
					    .address = 16,
					    .size = 3,
					    .bytes = bytes,
					    .row_count = 2};
	f->codes[1] = f->codes[0];
	f->codes[1].address = 19;
	f->codes[1].first_row = 2;
	f->codes[1].row_count = 1;
	f->code_rows[1] = (struct profile_code_row){2, 1, {1}, {1}, 7, 2};
	f->sources[0] =
		(struct profile_source){{1}, 0, SOURCE_UNCHANGED, sizeof("text") - 1, "text"};
	f->sources[1] =
		(struct profile_source){{2}, 0, SOURCE_CHANGED, sizeof("words") - 1, "words"};
}

static void fill(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	fill_tables(f);
	fill_waits(f);
	fill_code(f);
	f->p = (struct profile){
		.strings = f->strings,
		.string_count = COUNT(f->strings),
		.sample_types = f->sample_types,
		.sample_type_count = 2,
		.visits = {.hz = 20,
			   .count = {[VISIT_LINE_LOOKS] = 3,
				     [VISIT_LINE_UNCHANGED] = 1,
				     [VISIT_LINE_WALKED] = 2}},
		.dsos = f->dsos,
		.dso_count = COUNT(f->dsos),
		.functions = f->functions,
		.function_count = COUNT(f->functions),
		.lines = f->lines,
		.line_count = COUNT(f->lines),
		.locations = f->locations,
		.location_count = COUNT(f->locations),
		.stacks = f->stacks,
		.stack_count = COUNT(f->stacks),
		.processes = f->processes,
		.process_count = COUNT(f->processes),
		.threads = f->threads,
		.thread_count = COUNT(f->threads),
		.books = f->books,
		.books_count = COUNT(f->books),
		.meta = f->meta,
		.meta_count = COUNT(f->meta),
		.lost_ranges = f->lost_ranges,
		.lost_range_count = COUNT(f->lost_ranges),
		.memories = f->memories,
		.memory_count = COUNT(f->memories),
		.markers = f->markers,
		.marker_count = COUNT(f->markers),
		.epochs = f->epochs,
		.epoch_count = COUNT(f->epochs),
		.codes = f->codes,
		.code_count = COUNT(f->codes),
		.code_rows = f->code_rows,
		.code_row_count = COUNT(f->code_rows),
		.sources = f->sources,
		.source_count = COUNT(f->sources),
		.clock_epochs = 3,
		.start = 100,
		.end = 200,
		.sample_count = 2,
		.event_count = 2,
		.stack_ends = {[STACK_END_ROOT] = 1, [STACK_END_DEPTH] = 1},
	};
}

/* X(the spoiling statement, a part of the complaint) */
#define CASES(X)                                                                                   \
	X(f->p.string_count = 0, "string 0")                                                       \
	X(f->strings[0] = "x", "string 0")                                                         \
	X(f->strings[2] = NULL, "string 2")                                                        \
	X(f->p.dso_count = 0, "dsos: no placeholder")                                              \
	X(f->p.stacks = NULL, "stacks: no placeholder")                                            \
	X(f->p.location_count = (size_t)UINT32_MAX + 1, "locations: 4294967296")                   \
	X(f->dsos[0].kind = DSO_FILE, "dsos: the placeholder")                                     \
	X(f->functions[0].size = 1, "functions: the placeholder")                                  \
	X(f->locations[0].line_count = 1, "locations: the placeholder")                            \
	X(f->stacks[0].depth = 1, "stacks: the placeholder")                                       \
	X(f->processes[0].pid = 1, "processes: the placeholder")                                   \
	X(f->threads[0].tid = 1, "threads: the placeholder")                                       \
	X(f->p.sample_types = NULL, "array is missing")                                            \
	X(f->p.sample_type_count = 3, "sample type 2: kind 0 is listed twice")                     \
	X(f->p.sample_type_count = 0, "thread 1: samples of kind 0, not listed")                   \
	X(f->sample_types[0].kind = SAMPLE_KIND_COUNT, "sample type 0: kind")                      \
	X(f->sample_types[0].name.v = 0, "sample type 0: name")                                    \
	X(f->sample_types[0].name.v = 3, "sample type 0: name")                                    \
	X(f->sample_types[0].unit.v = 0, "sample type 0: name or unit")                            \
	X(f->sample_types[0].unit.v = 3, "sample type 0: name or unit")                            \
	X(f->p.lines = NULL, "array is missing")                                                   \
	X(f->p.books = NULL, "array is missing")                                                   \
	X(f->p.meta = NULL, "array is missing")                                                    \
	X(f->p.lost_ranges = NULL, "array is missing")                                             \
	X(f->p.end = 99, "session ends before")                                                    \
	X(f->p.end = UINT64_MAX, "too late")                                                       \
	X(f->meta[0].key.v = 0, "meta 0")                                                          \
	X(f->meta[0].value.v = 3, "meta 0")                                                        \
	X(f->lost_ranges[0].since = 121, "lost range 0")                                           \
	X(f->lost_ranges[1].since = 120, "lost range 1")                                           \
	X(f->dsos[1].kind = DSO_NONE, "dso 1: kind")                                               \
	X(f->dsos[1].kind = 77, "dso 1: kind")                                                     \
	X(f->dsos[1].path.v = 3, "dso 1: string")                                                  \
	X(f->dsos[1].name.v = 3, "dso 1: string")                                                  \
	X(f->dsos[1].file_state = FILE_STATE_COUNT, "dso 1: state")                                \
	X(f->dsos[1].symbol_state = SYMBOL_STATE_COUNT, "dso 1: state")                            \
	X(f->dsos[1].build_id_size = BUILD_ID_SIZE + 1, "dso 1: build-id")                         \
	X(f->functions[1].name.v = 0, "function 1: name")                                          \
	X(f->functions[1].name.v = 3, "function 1: name")                                          \
	X(f->functions[1].definition_file.v = 3, "function 1: name or file")                       \
	X(f->functions[1].dso.v = 0, "function 1: dso")                                            \
	X(f->functions[1].dso.v = 3, "function 1: dso")                                            \
	X(f->lines[1].function.v = 0, "line 1: function")                                          \
	X(f->lines[1].function.v = 2, "line 1: function")                                          \
	X(f->lines[1].file.v = 3, "line 1: file")                                                  \
	X(f->locations[1].dso.v = 0, "location 1: dso")                                            \
	X(f->locations[1].dso.v = 3, "location 1: dso")                                            \
	X(f->locations[1].category = CATEGORY_COUNT, "location 1: category")                       \
	X(f->locations[1].category = CATEGORY_IDLE, "location 1: category")                        \
	X(f->locations[2].process.v = 2, "location 2: process")                                    \
	X(f->locations[2].process.v = 0, "location 2: process 0 does not suit")                    \
	X(f->locations[1].process.v = 1, "location 1: process 1 does not suit")                    \
	X(f->locations[1].line_count = 0, "location 1: no line")                                   \
	X(f->locations[1].line_count = 3, "location 1: lines")                                     \
	X(f->locations[1].first_line = 3, "location 1: lines")                                     \
	X(f->stacks[1].parent.v = 1, "stack 1: its parent")                                        \
	X(f->stacks[1].parent.v = 2, "stack 1: its parent")                                        \
	X(f->stacks[2].location.v = 0, "stack 2: location")                                        \
	X(f->stacks[2].location.v = 3, "stack 2: location")                                        \
	X(f->stacks[2].depth = 3, "stack 2: depth")                                                \
	X(f->processes[1].name.v = 3, "process 1: name")                                           \
	X(f->processes[1].start = 99, "process 1: starts outside")                                 \
	X(f->processes[1].start = 201, "process 1: starts outside")                                \
	X(f->processes[1].end = 99, "process 1: ends")                                             \
	X(f->processes[1].end = 201, "process 1: ends")                                            \
	X(f->threads[1].process.v = 0, "thread 1: process")                                        \
	X(f->threads[1].process.v = 2, "thread 1: process")                                        \
	X(f->threads[1].name.v = 3, "thread 1: name")                                              \
	X(f->threads[1].start = 99, "thread 1: starts outside")                                    \
	X(f->threads[2].end = 201, "thread 2: ends")                                               \
	X(f->processes[1].start = 101, "thread 1: lives outside")                                  \
	X(f->processes[1].end = 179, "thread 1: lives outside")                                    \
	X(f->threads[2].end = 0, "thread 2: lives outside")                                        \
	X(f->threads[2].is_main = true, "thread 2: a second main")                                 \
	X(f->threads[1].samples[SAMPLE_CPU].time = NULL, "thread 1: a column")                     \
	X(f->threads[1].samples[SAMPLE_CPU].comm = NULL, "thread 1: a column")                     \
	X(f->time[0] = 100, "sample 0 is not after")                                               \
	X(f->time[1] = 110, "sample 1 is not after")                                               \
	X(f->time[1] = 181, "sample 1 is after its end")                                           \
	X(f->stack[1].v = 0, "sample 1 has stack 0")                                               \
	X(f->stack[1].v = 3, "sample 1 has stack 3")                                               \
	X(f->comm[1].v = 3, "sample 1: comm")                                                      \
	X(f->weight[1] = UINT64_MAX - 8, "sum of its weights overflows")                           \
	X(f->threads[1].cpu_tail = UINT64_MAX, "CPU time overflows")                               \
	X(f->p.weight_ahead = true, "weights ahead, without known idle time")                      \
	X(f->p.sample_count = 3, "have 2 CPU samples")                                             \
	X(f->p.stack_ends[STACK_END_FAULT] = 1, "3 stacks ended")                                  \
	X(f->threads[1].samples[SAMPLE_CPU].tick_sum = 3, "thread 1: its ticks do not add up")     \
	X(f->threads[1].samples[SAMPLE_CPU].event_sum = 3, "thread 1: its ticks do not add up")    \
	X(f->p.event_count = 3, "the threads have 2 events, the profile 3")                        \
	X(f->p.event.v = 1, "the event has no name, or no unit")                                   \
	X(f->processes[1].cgroup.v = 3, "process 1: name or control")                              \
	X(f->processes[1].program.v = 3, "process 1: program out")                                 \
	X(f->processes[1].names.unit.v = 3, "process 1: names out")                                \
	X(f->processes[1].began = 7, "process 1: it began by 7")                                   \
	X(f->processes[1].execs = true; f->processes[1].end = 0, "process 1: an execve")           \
	X(f->threads[1].cuts = NULL, "thread 1: its cut samples")                                  \
	X(f->cuts[0].sample = 2, "thread 1: cut sample 0 is row 2")                                \
	X(f->threads[1].cut_count = 2, "thread 1: cut sample 1 is row")                            \
	X(f->cuts[0].end = STACK_END_ROOT, "thread 1: cut sample 0 ends")                          \
	X(f->cuts[0].end = STACK_END_FAULT, "more samples are cut")                                \
	X(f->threads[1].renames = NULL, "thread 1: its renames")                                   \
	X(f->renames[0].time = 99, "thread 1: rename 0 is out")                                    \
	X(f->renames[1].time = 104, "thread 1: rename 1 is out")                                   \
	X(f->renames[1].time = 181, "thread 1: rename 1 is out")                                   \
	X(f->renames[1].name.v = 3, "thread 1: rename 1: name")                                    \
	X(f->p.memories = NULL, "array is missing")                                                \
	X(f->memories[0].process.v = 2, "memory 0: process 2")                                     \
	X(f->memories[1].process.v = 1, "memory 1: process 1")                                     \
	X(f->memories[1].is_recorder = false, "memory 1: of no process")                           \
	X(f->memories[0].readings = NULL, "memory 0: its readings")                                \
	X(f->readings[0].time = 99, "memory 0: reading 0")                                         \
	X(f->readings[1].time = 110, "memory 0: reading 1")                                        \
	X(f->readings[1].time = 201, "memory 0: reading 1")                                        \
	X(f->p.epochs = NULL, "array is missing")                                                  \
	X(f->p.clock_epochs = 1, "2 epochs began of 1")                                            \
	X(f->epochs[0] = 99, "epoch 0")                                                            \
	X(f->epochs[1] = 119, "epoch 1")                                                           \
	X(f->epochs[1] = 201, "epoch 1")                                                           \
	X(f->p.markers = NULL, "array is missing")                                                 \
	X(f->markers[0].thread.v = 0, "marker 0 has no thread")                                    \
	X(f->markers[1].thread.v = 3, "marker 1 has no thread")                                    \
	X(f->markers[0].name.v = 0, "marker 0 has no thread or no name")                           \
	X(f->markers[1].name.v = 3, "marker 1 has no thread or no name")                           \
	X(f->markers[0].end = 109, "marker 0 is out of order")                                     \
	X(f->markers[0].start = 99, "marker 0 is out of order")                                    \
	X(f->markers[0].end = 201, "marker 0 is out of order")                                     \
	X(f->markers[1].start = 109, "marker 1 is out of order")                                   \
	X(f->books[1].cpu = 0, "books 1: CPU 0")                                                   \
	X(f->books[0].due = 7, "books of CPU 0: due")                                              \
	X(f->books[1].due = 1, "books of CPU 1: due")                                              \
	X(f->threads[2].samples[SAMPLE_WALL].state = NULL, "thread 2: its states")                 \
	X(f->threads[2].samples[SAMPLE_WALL].holder = NULL, "thread 2: its states")                \
	X(f->threads[2].samples[SAMPLE_WALL].since = NULL, "thread 2: its states")                 \
	X(f->threads[2].samples[SAMPLE_WALL].until = NULL, "thread 2: its states")                 \
	X(f->wait_since[0] = f->threads[2].start - 1, "thread 2: wait 0 is before")                \
	X(f->wait_since[1] = 99, "thread 2: wait 1 is before the one before")                      \
	X(f->wait_until[1] = 104, "thread 2: wait 1 is before the one before")                     \
	X(f->wait_until[1] = UINT64_MAX, "thread 2: wait 1 is before the one before")              \
	X(f->wait_holder[1].v = 3, "thread 2: wait 1 has holder 3")                                \
	X(f->wait_holder[1].v = 2, "thread 2: wait 1 has holder 2")                                \
	X(f->wait_state[1] = WALL_RUNNING, "thread 2: wait 1 has state")                           \
	X(f->wait_state[1] = WALL_STATE_COUNT, "thread 2: wait 1 has state")                       \
	X(f->wait_state[1] = WALL_STATE_OPEN | WALL_LOCK, "thread 2: wait 1 has state")            \
	X(f->wait_state[1] = WALL_RUNNABLE, "thread 2: its waits do not add up")                   \
	X(f->wait_weight[1] = 41, "thread 2: its waits do not add up")                             \
	X(f->threads[2].wall.blocked = 39, "thread 2: its waits do not add up")                    \
	X(f->threads[1].wall.blocked = 1, "thread 1: its waits do not add up")                     \
	X(f->threads[2].wall.running = 31, "thread 2: its time does not add up")                   \
	X(f->threads[2].wall.unvisited = 0, "thread 2: its time does not add up")                  \
	X(f->threads[2].wall.since = 151, "thread 2: its time is out")                             \
	X(f->threads[2].wall.until = UINT64_MAX, "thread 2: its time is out")                      \
	X(f->threads[2].wall.running = UINT64_MAX, "thread 2: its time is out")                    \
	X(f->p.visits.count[VISIT_LINE_WALKED] = 1, "3 looks had 2 results")                       \
	X(f->p.visits.count[VISIT_LINE_DUE] = UINT64_MAX, "a line overflows")                      \
	X(f->p.codes = NULL, "array is missing")                                                   \
	X(f->p.code_rows = NULL, "array is missing")                                               \
	X(f->p.sources = NULL, "array is missing")                                                 \
	X(f->codes[0].dso.v = 0, "code 0: dso")                                                    \
	X(f->codes[0].dso.v = 3, "code 0: dso")                                                    \
	X(f->codes[0].dso.v = 2, "code 0: dso or process")                                         \
	X(f->codes[0].process.v = 1, "code 0: dso or process")                                     \
	X(f->codes[0].process.v = 2, "code 0: dso or process")                                     \
	X(f->codes[0].machine = CODE_MACHINE_COUNT, "code 0: machine")                             \
	X(f->codes[0].size = 0, "code 0: it has no bytes")                                         \
	X(f->codes[0].bytes = NULL, "code 0: it has no bytes")                                     \
	X(f->codes[1].address = UINT64_MAX, "code 1: it has no bytes")                             \
	X(f->codes[1].address = 15, "code 1 is out of order")                                      \
	X(f->codes[1].address = 18, "code 1 is out of order")                                      \
	X(f->codes[0].version = 1, "code 1 is out of order")                                       \
	X(f->codes[0].row_count = 4, "code 0: rows out of range")                                  \
	X(f->codes[1].first_row = 4, "code 1: rows out of range")                                  \
	X(f->code_rows[1].offset = 0, "code 0: row 1 is out of order")                             \
	X(f->code_rows[1].offset = 3, "code 0: row 1 is out of order")                             \
	X(f->code_rows[1].function.v = 2, "code 0: row 1: function")                               \
	X(f->code_rows[1].file.v = 3, "code 0: row 1: function or file")                           \
	X(f->sources[0].path.v = 0, "source 0: its path")                                          \
	X(f->sources[1].path.v = 1, "source 1: its path")                                          \
	X(f->sources[1].path.v = 3, "source 1: its path")                                          \
	X(f->sources[0].path.v = 2, "source 1: its path")                                          \
	X(f->sources[0].state = SOURCE_STATE_COUNT, "source 0: state")                             \
	X(f->sources[1].root = SOURCE_ROOT_NONE, "source 1: root directory 254")                   \
	X(f->dsos[1].source_root = SOURCE_ROOT_SCRIPTS, "dso 1: root directory 253")               \
	X(f->dsos[1].source_root = SOURCE_ROOT_ALL, "dso 1: root directory 255")                   \
	X(f->sources[0].size = 0, "source 0: its text")                                            \
	X(f->sources[0].size = 3, "source 0: its text")                                            \
	X(f->sources[0].text = NULL, "source 0: its text")                                         \
	X(f->sources[0].text = "te\0t", "source 0: its text")                                      \
	X(f->books[0].count[BOOK_IDLE] = UINT64_MAX, "books of CPU 0: the sum")

TEST(right_profile_passes)
{
	struct fixture f;
	char why[128] = "";

	fill(&f);
	assert_int_equal(profile_check(&f.p, why, sizeof(why)), 0);
	assert_string_equal(why, "");
}

TEST(each_broken_invariant_is_found)
{
	struct fixture fixture, *f = &fixture;
	char why[128];

#define X(spoil, word)                                                                             \
	fill(f);                                                                                   \
	why[0] = '\0';                                                                             \
	spoil;                                                                                     \
	if (profile_check(&f->p, why, sizeof(why)) != -EINVAL || !strstr(why, word))               \
		fail_msg("%s: said \"%s\"", #spoil, why);
	CASES(X)
#undef X
}

TEST(no_room_for_the_reason)
{
	struct fixture f;
	char why[4] = "abc";

	fill(&f);
	f.stacks[1].depth = 9;
	assert_int_equal(profile_check(&f.p, NULL, 0), -EINVAL);
	assert_int_equal(profile_check(&f.p, why, sizeof(why)), -EINVAL);
	assert_string_equal(why, "sta");
}
