/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares two sets of profiles, OLD and NEW. docs/DIFF.md has the method.
 *
 *	struct comparison *c = comparison__new();
 *	comparison__add(c, COMPARE_OLD, "a.sysprof", profile_a, &failure);	each file
 *	comparison__add(c, COMPARE_NEW, "b.sysprof", profile_b, &failure);
 *	comparison__finish(c, &options, &result, &failure);
 *
 * A profile can be freed once it was added.
 */
#ifndef COMPARE_COMPARE_H
#define COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sysprof/profile_builder.h>

#include "base/log.h"
#include "compare/statistics.h"

enum compare_side { COMPARE_OLD, COMPARE_NEW, COMPARE_SIDES };

/* The quantity that is compared. X(ENUM, name, unit of a value) */
#define COMPARE_VIEWS(X)                                                                           \
	X(AUTO, "auto", "")                                                                        \
	X(SHARE, "share", "share of OLD's samples")                                                \
	X(SECOND, "second", "CPU seconds per second")                                              \
	X(RUN, "run", "ns of CPU time per run")                                                    \
	X(WORK, "work", "ns of CPU time per unit of work")

enum compare_view {
#define X(id, name, unit) COMPARE_##id,
	COMPARE_VIEWS(X)
#undef X
		COMPARE_VIEW_COUNT
};

#define COMPARE_FILES_MAX 200 /* of both sides */
#define COMPARE_RUNS_MIN  3   /* files of a side that are enough to measure variance of runs */
#define COMPARE_LEVEL	  0.05
#define COMPARE_RUN_NOISE 0.10 /* assumed for a run if nothing else is known */
#define COMPARE_WAIT_NOISE                                                                         \
	0.30 /* the same for its waiting time, which depends on neighbours and devices */

struct compare_options {
	enum compare_view view;
	double work[COMPARE_SIDES]; /* units of work in each file of a side; 0: unknown */
	double run_noise;	    /* relative standard deviation of a run; negative: unknown */
	unsigned int looks;	    /* planned comparisons with more and more files; 0 is 1 */
};

/* Metadata of a file. */
struct compare_file {
	enum compare_side side;
	char *path;
	char *event, *event_unit, *kernel; /* "": unknown */
	bool counts_events;		   /* ticks are events, which have no clock's unit … */
	bool counts_time;		   /* … or ns of CPU time */
	uint64_t samples, cpu_ns, duration_ns;
	uint64_t ticks;	       /* what its samples count: ticks of a clock, or events */
	uint64_t lost, due;    /* ticks; of the target, or of unknown tasks */
	uint64_t cut, unnamed; /* ticks: with an incomplete stack; innermost function unnamed */
	uint8_t unknown;       /* bits of enum compare_doubt: what its format does not have */
	bool untimed, cut_short, is_command;
	bool is_part; /* a slice of its time, which follows an @ in `path` */
	char *filter; /* NULL: it is all of the profile */
	uint64_t dropped_samples, dropped_cpu_ns;
};

/* Reasons why a difference may not come from the program. X(ENUM, name, text) */
#define COMPARE_DOUBTS(X)                                                                          \
	X(LOST, "lost", "lost samples")                                                            \
	X(CUT, "cut", "samples with an incomplete stack")                                          \
	X(UNNAMED, "unnamed", "samples in code that has a name on the other side only")

enum compare_doubt {
#define X(id, name, text) COMPARE_DOUBT_##id,
	COMPARE_DOUBTS(X)
#undef X
		COMPARE_DOUBT_COUNT
};

#define COMPARE_DOUBT_MAX  0.15	 /* above, no verdict is given */
#define COMPARE_LOSS_MAX   0.05	 /* above, a loss counts even if the other side has it, too */
#define COMPARE_DOUBT_SEEN 0.005 /* above, differences up to the doubt are unclear */

#define COMPARE_VERDICTS(X)                                                                        \
	X(SAME, "same")                                                                            \
	X(SLOWER, "slower")                                                                        \
	X(FASTER, "faster")                                                                        \
	X(NEW, "new")                                                                              \
	X(GONE, "gone")                                                                            \
	X(MOVED, "moved")                                                                          \
	X(UNCLEAR, "unclear")

enum compare_verdict {
#define X(id, name) COMPARE_IS_##id,
	COMPARE_VERDICTS(X)
#undef X
};

const char *compare_verdict_name(enum compare_verdict verdict);
const char *compare_view_name(enum compare_view view);
const char *compare_doubt_text(enum compare_doubt doubt);

/* A quantity on both sides, and the test of its difference. */
struct compare_test {
	uint32_t function; /* number of its name; COMPARE_WHOLE: the whole */
	bool is_self;	   /* only its own code; else all samples with it in the stack */
	uint64_t ticks[COMPARE_SIDES];
	struct estimate side[COMPARE_SIDES], difference;
	double low, high;			      /* 95 % interval of the difference */
	bool has_relative;			      /* both sides have it: */
	double relative, relative_low, relative_high; /* difference ÷ OLD */
	double relative_error;			      /* standard error of log(NEW ÷ OLD) */
	double p, q;
	bool found;    /* q is within the level */
	bool is_only;  /* its own code has no test: this one is for both */
	double weight; /* its part of the allowed false discoveries */
};
#define COMPARE_WHOLE UINT32_MAX

/* The function in which a difference arises; its callers have it as well. */
struct compare_row {
	uint32_t test; /* number of the test */
	enum compare_verdict verdict;
	uint32_t node; /* of the merged tree, with most of the difference */
};

struct compare_side_sum {
	size_t files;
	uint64_t samples, ticks, cpu_ns, duration_ns; /* as in a file */
	double doubt[COMPARE_DOUBT_COUNT];	      /* shares */
	uint64_t unnamed;			      /* ticks */
	uint8_t unknown;			      /* as in a file; of any of them */
};

struct compare_result {
	enum compare_view view;
	double level;	    /* of false discoveries and of intervals: COMPARE_LEVEL ÷ looks */
	bool runs_measured; /* the variance is that of a side's files */
	double run_noise;   /* else: relative deviation of a run … */
	bool noise_assumed; /* … a default, or … */
	bool is_one_run;    /* … 0, because all files are parts of one recording, or … */
	size_t noise_files; /* … of so many files of the side with more; 0: not measured */
	double reference;   /* share view: share of OLD's samples in unchanged code; else 1 */
	struct compare_side_sum side[COMPARE_SIDES];
	double doubt
		[COMPARE_DOUBT_COUNT]; /* share of the whole that may be missing on one side only */
	bool refused;		       /* a doubt is too large for any verdict … */
	enum compare_doubt refused_for;
	bool has_elapsed;		  /* if runs were measured: */
	struct compare_test elapsed;	  /* their elapsed time, ns */
	const struct compare_test *tests; /* [0] is the whole */
	size_t test_count;
	const struct compare_row *rows; /* largest difference first; moved ones last */
	size_t row_count;
	/* Change ÷ OLD that 9 of 10 would find: whole, functions of 5 % and 1 %; NAN: unknown. */
	double detectable[3];
	bool is_waiting;		/* waiting time is compared */
	const char *event, *event_unit; /* what ticks count; NULL: they are those of a clock */
	uint64_t sample_ticks;		/* ticks per sample; of waits: us between two visits */
	const struct compare_result
		*waiting;	     /* waiting time (record --wall); NULL: not compared … */
	const char *waiting_missing; /* … because of this; NULL: no file has waits */
};

struct comparison;
struct merged_window; /* merged.h */

struct comparison *comparison__new(void); /* NULL: no memory */
void comparison__free(struct comparison *c);
/* 0 or negative errno with `failure` filled. */
int comparison__add(struct comparison *c, enum compare_side side, const char *path,
		    const struct profile *p, struct failure *failure);
/*
 * Adds a window of an agent, a part of a file (merged_window); `p` NULL: nothing ran. Windows of a
 * file come in time order. The caller checks with comparison__file() that the file has samples.
 */
int comparison__add_window(struct comparison *c, enum compare_side side, const char *path,
			   const struct profile *p, const struct merged_window *window,
			   struct failure *failure);
/* The comparison owns the result. 0 or negative errno with `failure` filled. */
int comparison__finish(struct comparison *c, const struct compare_options *options,
		       const struct compare_result **result, struct failure *failure);

/* After comparison__finish(). */
size_t comparison__file_count(const struct comparison *c);
const struct compare_file *comparison__file(const struct comparison *c, size_t i);
const char *comparison__name(const struct comparison *c, uint32_t function);
/* The comparison of result.waiting. */
const struct comparison *comparison__waiting(const struct comparison *c);
/* The innermost function of JIT code, else of the program, from a node up; COMPARE_WHOLE: none. */
uint32_t comparison__place(const struct comparison *c, uint32_t node);
/* Both sides as a profile (merged.h); `b` is empty. `waits`: with compared waits. 0 or -ENOMEM. */
int comparison__build_profile(const struct comparison *c, bool waits, struct profile_builder *b);
/* The functions from the root to a node: up to `max` numbers, the node's own last. */
size_t comparison__path(const struct comparison *c, uint32_t node, uint32_t *functions, size_t max);

/* ---- rules ----------------------------------------------------------------------------------- */

/* The difference may be no larger than what is missing on one side. */
bool compare_test__is_doubtful(const struct compare_test *t, const struct compare_result *result);

/* "total > 2%", "function parse_* > 5%", "waiting > 5%", "state lock > 10%" */
struct compare_rule {
	const char *text;
	bool is_total;
	bool is_waiting; /* of waiting time or one of its states */
	char pattern[256];
	double tolerance; /* ÷ OLD */
};

/* Order: the worst one counts. */
enum compare_answer { COMPARE_NOT_WORSE, COMPARE_CANNOT_TELL, COMPARE_WORSE };

struct compare_ruling {
	enum compare_answer answer;
	uint32_t test;			      /* the decisive one; UINT32_MAX: none */
	uint64_t runs_needed, samples_needed; /* per side, where there is no verdict; 0: unknown */
};

/* ---- output ---------------------------------------------------------------------------------- */

struct compare_output {
	const struct comparison *comparison;
	const struct compare_result *result;
	const struct compare_rule *rules;
	const struct compare_ruling *rulings;
	size_t rule_count;
	size_t top;	  /* rows */
	const char *unit; /* of work, for COMPARE_WORK: "request" */
};

#endif
