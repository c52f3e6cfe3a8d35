/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples with frames of runtimes, the events about their functions, and the resulting stacks. */
#ifndef TESTS_UNIT_MANAGED_SUPPORT_H
#define TESTS_UNIT_MANAGED_SUPPORT_H

#include "event_story.h"
#include "stream/event_decode.h"

#define NOTES_MAX 16
#define MADE	  0x50000 /* memory without a file */
#define COUNT(a)  (sizeof(a) / sizeof((a)[0]))

static uint64_t cpu_used; /* by the process */
static uint32_t who = 10; /* whose samples and functions they are */
static unsigned int nth_life;
static uint16_t reported_flags;
static uint32_t reported_line_offset; /* of rows */

/* A sample of process `who` whose native frames are 0x10010, 0x10020 … of "prog", leaf first; number 2 is in code that was made. */
static inline void noted_sample(unsigned int frames, const struct frame_note *notes, size_t count)
{
	struct {
		struct sample_event e;
		__u64 rest[16 + NOTES_MAX * sizeof(struct frame_note) / 8];
	} s = {};

	s.e.header = header(0);
	s.e.header.type = EVENT_SAMPLE;
	s.e.header.size = sizeof(s.e) + frames * 8 + count * sizeof(*notes);
	s.e.tgid = s.e.tid = who;
	s.e.cpu_time = cpu_used += MS;
	s.e.user_frames = frames;
	s.e.from_user = 1;
	s.e.notes = count;
	for (unsigned int i = 0; i < frames; i++)
		s.e.frames[i] = frame_pack(i ? FRAME_POINTER : FRAME_IP,
					   (i == 2 ? MADE : 0x10000) + 0x10 + 0x10 * i + !!i);
	if (count)
		memcpy(s.e.frames + frames, notes, count * sizeof(*notes));
	assert_int_equal(event_decode(&s.e.header, &ev.h), 0);
	ev.now += MS;
}

/* `line` of the row at offset 0, one more each 10 bytes. */
static inline void report(uint8_t kind, uint64_t function, uint64_t check, enum code_state state,
			  const char *name, uint32_t line)
{
	struct {
		struct code_function_event e;
		struct code_row rows[3];
		char text[64];
	} f = {};

	f.e.header = header(reported_flags);
	f.e.header.type = EVENT_CODE_FUNCTION;
	f.e.pid = who;
	f.e.kind = kind;
	f.e.state = state;
	f.e.function = function;
	f.e.check = check;
	f.e.line = line;
	f.e.row_count = 3;
	f.e.base = 100;
	for (unsigned int i = 0; i < 3; i++)
		f.rows[i] = (struct code_row){
			.offset = 10 * i, .line = line + i + reported_line_offset, .column = 1};
	f.e.name_size = strlen(name) + 1;
	f.e.file_size = sizeof("app");
	strcpy(f.text, name);
	strcpy(f.text + f.e.name_size, "app");
	f.e.header.size =
		event_aligned(sizeof(f.e) + sizeof(f.rows) + f.e.name_size + f.e.file_size);
	assert_int_equal(event_decode(&f.e.header, &ev.h), 0);
	ev.now += MS;
}

#define CALLS_MAX 4

/* Calls at an address of a function's code, innermost first; those behind the last are without a function. */
static inline void report_chain(uint8_t kind, enum code_state state, uint64_t function,
				uint64_t address, const struct code_call calls[CALLS_MAX])
{
	struct {
		struct code_chain_event e;
		struct code_call calls[CALLS_MAX];
	} chain = {.e = {.header = header(0),
			 .pid = who,
			 .kind = kind,
			 .state = state,
			 .function = function,
			 .address = address}};

	while (chain.e.call_count < CALLS_MAX && calls[chain.e.call_count].function) {
		chain.calls[chain.e.call_count] = calls[chain.e.call_count];
		chain.e.call_count++;
	}
	chain.e.header.type = EVENT_CODE_CHAIN;
	chain.e.header.size = sizeof(chain.e) + chain.e.call_count * sizeof(chain.calls[0]);
	assert_int_equal(event_decode(&chain.e.header, &ev.h), 0);
	ev.now += MS;
}

#define CHAIN(...) ((const struct code_call[CALLS_MAX]){__VA_ARGS__})

/* From now on "prog" is gone, and its addresses are code that was made. */
static inline void unmap_and_map_made(void)
{
	map(10, 0x10000, 0x1000, 0, "//anon", 0);
}

static inline void begin(void)
{
	cpu_used = 5 * S;
	who = 10;
	nth_life = 0;
	prog();
	map(10, MADE, 0x1000, 0, "//anon", 0);
}

/* "name:line name:line", outermost first; "?" where the location has no name of its own, "stub:" before code
 * that a runtime has made for itself. */
static inline const char *lines_of_thread(const struct profile_thread *t, size_t sample)
{
	static char text[1024];
	const struct profile_location *path[32];
	size_t depth = 0, size = 0;

	for (struct stack_id s = t->samples[SAMPLE_CPU].stack[sample]; s.v;
	     s = ev.p->stacks[s.v].parent)
		path[depth++] = &ev.p->locations[ev.p->stacks[s.v].location.v];
	text[0] = '\0';
	while (depth-- > 0) {
		const struct profile_location *l = path[depth];

		for (uint32_t i = l->line_count; i-- > 0;) {
			const struct profile_line *line = &ev.p->lines[l->first_line + i];

			size += snprintf(text + size, sizeof(text) - size, "%s%s%s",
					 size ? " " : "", l->tier == CODE_TIER_STUB ? "stub:" : "",
					 str(ev.p->functions[line->function.v].name));
			if (line->line)
				size += snprintf(text + size, sizeof(text) - size, ":%u",
						 line->line);
			if (profile_location__is_doubtful(l, l->first_line + i))
				size += snprintf(text + size, sizeof(text) - size, "?");
		}
	}
	return text;
}

static inline const char *lines_of(size_t sample)
{
	return lines_of_thread(thread_of(who, nth_life), sample);
}

/* Of the only runtime that there is: "NAME frames ambiguous stale unknown". */
static inline const char *counted(void)
{
	static char text[128];
	const struct profile_runtime *r = ev.p->runtimes;

	assert_int_equal(ev.p->runtime_count, 1);
	snprintf(text, sizeof(text), "%s %llu %llu %llu %llu", str(r->name),
		 (unsigned long long)r->frames, (unsigned long long)r->ambiguous,
		 (unsigned long long)r->stale, (unsigned long long)r->unknown);
	return text;
}

#endif
