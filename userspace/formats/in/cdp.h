/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CPU profile of the Chrome DevTools Protocol: nodes that are call paths, and samples that name
 * a node. A .cpuprofile file holds one; a Chrome trace has one for each thread, in chunks.
 *
 * A sample lasts until the next one, the last until the profile's end, as in VS Code, speedscope
 * and DevTools' timeline; shares are of that time. If times run backwards, samples are sorted, as in
 * DevTools. (idle) is no CPU time; (program) and (garbage collector) are, as functions. (root) is none.
 */
#ifndef FORMATS_IN_CDP_H
#define FORMATS_IN_CDP_H

#include "formats/in/frames.h"
#include "formats/in/json.h"

/* V8 samples a thread by the clock, whatever it does. */
#define CDP_CPU_TIME                                                                               \
	"wall-clock time: the file has no CPU time, so waits other than (idle) are included"

#define CDP_NONE     UINT32_MAX
#define CDP_TIME_MIN (-(1LL << 60)) /* ns: of a .cpuprofile, before they are shifted */
#define CDP_TIME_MAX                                                                               \
	(1LL << 61) /* ns: some writers count from 1970, which this is the year 2043 of */

enum cdp_kind { CDP_CODE, CDP_ROOT, CDP_IDLE };

/* Where code is. */
struct cdp_module {
	enum dso_kind kind;
	enum profile_category category;
	struct dso_id dso;
};

/* Of our own files: the module of each script, from number 1 on. */
struct cdp_scripts {
	VEC(struct cdp_module) modules;
	VEC(uint32_t) module_of;
};

/* The code that a callFrame describes. */
struct cdp_code {
	enum cdp_kind kind;
	struct function_id function;
	struct string_id file;
	struct cdp_module module;
};

struct cdp_node {
	uint64_t id;
	uint32_t parent; /* index, or CDP_NONE */
	uint32_t hits;
	struct cdp_code code;
	struct stack_id stack;		 /* 0 until it is made */
	uint32_t first_tick, tick_count; /* positionTicks */
	uint32_t next_tick,
		used; /* of the next sample: which of them, and how much of it is used */
};

/* A line in a node that was executing, and how often. */
struct cdp_tick {
	uint32_t line;
	uint32_t count;
};

/* A node and the id of another one: its child, or its parent. */
struct cdp_edge {
	uint32_t node;
	bool to_parent;
	uint64_t id;
	const char *at;
};

struct cdp_sample {
	int64_t time;	      /* ns */
	uint32_t node;	      /* CDP_NONE: not in the file; its time is left out */
	uint32_t line;	      /* 0: unknown */
	uint64_t ticks;	      /* samples like this one, and itself */
	uint64_t cpu, events; /* of $sysprof */
	bool exact;	      /* it has both numbers, which may be 0 */
};

/* A node whose children are walked, below those of its caller. */
struct cdp_branch {
	struct json_walk children;
	uint32_t node;
};

/* A callFrame by its bytes in the file: most nodes have one that was there before. */
struct cdp_call_frame {
	struct json_value text;
	struct cdp_code code;
};

/* Of all profiles of a file. */
MAP_TYPE(cdp_call_frames, struct cdp_call_frame);
MAP_KEY(cdp_call_frames, struct cdp_call_frame, struct json_value, entry->text)
MAP_FUNCTIONS(cdp_call_frames, struct cdp_call_frame, struct json_value, cdp_call_frames__key,
	      json_value_hash, json_value_equal);

DEFINE_MAP_BY(cdp_nodes, struct cdp_node, uint64_t, id);

struct cdp {
	const struct json_text *text;
	struct profile_builder *b;
	struct frames *frames;
	struct cdp_call_frames *call_frames;
	struct process_id process;
	const char
		*program; /* what wrote $sysprof: its native code is no JIT code. NULL: an engine */
	const struct cdp_scripts *scripts; /* which say where code is; without any, the above */
	struct cdp_nodes nodes;
	VEC(struct cdp_tick) ticks;
	VEC(struct cdp_edge) edges;
	VEC(struct cdp_sample) samples;
	VEC(uint32_t) path; /* scratch */
	VEC(struct cdp_branch) branches;
	bool has_lines; /* each sample has its own; else they are those of `ticks` in order */
	int64_t last_time, time_min;
	size_t counted;	     /* samples of nodes that the file has */
	bool untimed;	     /* they are of cdp__hits(), or without times */
	bool by_time;	     /* shares are of the time: of other tools' files */
	uint64_t hit_period; /* ns of each of these */
};

/* Those of a "$sysprof" object; none in files of older versions. */
int cdp_scripts__read(struct cdp_scripts *scripts, const struct json_text *text,
		      struct json_value own, struct frames *frames);
void cdp_scripts__fini(struct cdp_scripts *scripts);

void cdp__init(struct cdp *c, const struct json_text *text, struct frames *frames,
	       struct cdp_call_frames *call_frames, const struct cdp_scripts *scripts,
	       struct process_id process);
void cdp__fini(struct cdp *c);

/* Add the nodes of an array; they may refer to earlier and later ones. */
int cdp__nodes(struct cdp *c, struct json_value nodes);

/* Add the nodes below one with nested children, as Chrome wrote them before 57. */
int cdp__tree(struct cdp *c, struct json_value head);

/* The columns of samples; those that a file does not have are absent. */
struct cdp_columns {
	struct json_value samples; /* node ids */
	struct json_value deltas;  /* µs since the sample before */
	struct json_value times;   /* µs, instead of deltas */
	struct json_value lines, cpu, ticks, events;
};

/* Columns of our own files, which are members of an object: see struct profile_samples. */
int cdp_columns__own(const struct json_text *text, struct json_value object,
		     struct cdp_columns *columns);

/*
 * Add samples. The first delta of all is relative to `start` ns. What has no node or no time is
 * counted in `frames`.
 */
int cdp__samples(struct cdp *c, const struct cdp_columns *columns, int64_t start);

/* Add samples without times, which share the time evenly, in their order. */
int cdp__untimed_samples(struct cdp *c, struct json_value samples, int64_t start, int64_t end);

/* Add samples by the hitCount of nodes: they have no order, and share the time evenly. */
int cdp__hits(struct cdp *c, int64_t start, int64_t end);

/* Makes all times of samples as many ns later. */
void cdp__shift_times(struct cdp *c, int64_t ns);

/* Everything was added: sort the samples and find the parents. */
int cdp__settle(struct cdp *c);

/*
 * Emit the samples as those of a thread. `end`: of the last one, ns; 0: unknown. `own`: weights are
 * those of $sysprof, CPU time since the sample before.
 */
int cdp__emit(struct cdp *c, struct thread_id thread, struct string_id comm, int64_t end, bool own);

/*
 * Do samples, but for idle ones, differ in their length? If not, shares of time are those of the
 * number of samples. `end`: as for cdp__emit()
 */
bool cdp__is_uneven(const struct cdp *c, int64_t end);

/* The median distance of two samples, ns, or their share of the time; 0: there are less than two. */
uint64_t cdp__period(const struct cdp *c);

#endif
