/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A function in Chrome's formats: name, script, definition site. For .cpuprofile and traces.
 *
 * Each distinct one has a key for call_tree.h. Its JSON is made once for all nodes that have it.
 */
#ifndef FORMATS_OUT_CALL_FRAMES_H
#define FORMATS_OUT_CALL_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sysprof/profile.h>

#include "base/json_writer.h"
#include "base/map.h"
#include "base/vec.h"
#include "formats/out/text_limit.h"

/* Functions are equal if all of this is. main() of two binaries differs in its script. */
struct call_frame {
	struct string_id name, file;
	uint32_t script; /* 0: none */
	uint32_t line, column;
	uint32_t is_jit; /* its file is what a runtime calls its script, which may be no path */
};

MAP_TYPE(call_frame_table, struct call_frame);

/* The JSON of a call frame: bytes of call_frames.text; size 0: not made yet. */
struct call_frame_text {
	size_t start, size;
};

/* A source file of a binary, or what of the binary has no source file. */
struct call_script {
	struct string_id file;
	struct dso_id dso;
};

MAP_TYPE(call_script_table, struct call_script);

struct call_frames {
	const struct profile *p;
	struct text_limit
		limit; /* of names; the owner may tighten it before the first is written */
	struct call_frame_table frames; /* by key */
	VEC(struct call_frame_text) texts;
	struct call_script_table scripts; /* by number; 0: none */
	uint32_t *module_of_dso;	  /* 0: no number yet */
	VEC(struct dso_id) modules;
	FILE *text_file; /* writes `text` */
	char *text;
	size_t text_size;
};

/* Keys of Chrome's own nodes; those of functions follow. */
enum call_frame_key { CALL_FRAME_ROOT, CALL_FRAME_IDLE, CALL_FRAME_FIRST_FUNCTION };

int call_frames__init(struct call_frames *frames, const struct profile *p); /* 0, -ENOMEM */
void call_frames__fini(struct call_frames *frames);

/* A call_tree_key_fn; the context is the struct call_frames. */
int call_frames__key(void *context, const struct profile_location *location, uint32_t line,
		     uint32_t *key);

/* The member "callFrame". */
int call_frames__write(struct call_frames *frames, uint32_t key, struct json_writer *w);

/*
 * The members "modules" and "scriptModules", after all call frames: which binary each script is of, so
 * that our own reader gets what the format has not.
 */
void call_frames__write_modules(struct call_frames *frames, struct json_writer *w);

/* The executing line of a stack's leaf; 0: it is not in the file of its url, which viewers show. */
uint32_t call_frames_leaf_line(const struct profile *p, struct stack_id stack);

/*
 * When the samples of a thread were taken, for formats in which a sample lasts until the next one.
 *
 * Times of a profile that was read from a format without times are made up. Its rows are laid one
 * after the other, so that lengths are in proportion: each lasts as long as its CPU time or, if the
 * thread's rows have none, its events, if these are a time, or else its ticks.
 * If a thread would then last longer than readers take (ROW_TIMES_MAX), lengths are divided.
 */

#define ROW_TIMES_MAX (1ULL << 59) /* ns: 18 years */

struct row_times {
	const struct profile_samples *samples;
	uint64_t last, step; /* ns; `step` is how long a tick lasts */
	uint64_t divisor;    /* of lengths; 1: they are as they are */
	size_t row;
	bool untimed, has_cpu, has_lengths;
};

void row_times__init(struct row_times *times, const struct profile *p,
		     const struct profile_thread *thread);
/* What lengths are divided by, for a thread that may last `most` ns. */
uint64_t row_times__divisor(const struct row_times *times, uint64_t most);
/* The time of the next row; only for as many as there are. */
uint64_t row_times__next(struct row_times *times);
/* How long the last row is, in a profile without times or a process without CPU time. */
uint64_t row_times__length(const struct row_times *times);
/* The end of the last row; without rows, the start. */
uint64_t row_times__end(const struct row_times *times);

/* The start of a file of this thread alone. */
uint64_t row_times_start(const struct profile *p, const struct profile_thread *thread);

/* Idle samples of an imported profile (profile.idle_known), among a thread's CPU samples. */
struct idle_rows {
	const struct profile_samples *cpu, *idle;
	size_t next;
};

void idle_rows__init(struct idle_rows *rows, const struct profile_thread *thread);
/* The time of the next one before CPU sample i, or after all of them; false: there is none. */
bool idle_rows__next(struct idle_rows *rows, size_t i, uint64_t *time);

/* How long the last sample of any kind lasted, where weights are ahead (profile.weight_ahead). */
uint64_t row_times_last_weight(const struct profile_thread *thread);

#endif
