/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two sets of profiles, compared: OLD and NEW. docs/DIFF.md has the method.
 *
 *	struct comparison *c = comparison__new();
 *	comparison__add(c, COMPARE_OLD, "a.sysprof", profile_a, NULL, &failure);	once for each file
 *	comparison__add(c, COMPARE_NEW, "b.sysprof", profile_b, NULL, &failure);
 *	comparison__finish(c, &options, &result, &failure);
 *
 * A profile may be freed when it was added.
 */
#ifndef COMPARE_COMPARE_H
#define COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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
#define COMPARE_RUNS_MIN  3   /* files a side from which on the variance of runs is measured */
#define COMPARE_LEVEL	  0.05
#define COMPARE_RUN_NOISE 0.10 /* of one run, if nothing else is known */
#define COMPARE_WAIT_NOISE                                                                         \
	0.30 /* the same of its waiting time, which depends on neighbours and devices */

struct compare_options {
	enum compare_view view;
	double work[COMPARE_SIDES]; /* units of work in each file of a side; 0: unknown */
	double run_noise;	    /* relative standard deviation of a run; negative: unknown */
	unsigned int looks; /* how often the question is put, with more files each time; 0 is 1 */
};

/* A part of a profile: ns from its start; `until` 0: to its end. */
struct compare_range {
	uint64_t from, until;
};

/* Metadata of a file. */
struct compare_file {
	enum compare_side side;
	char *path;
	char *event, *kernel; /* "": unknown */
	uint64_t samples, cpu_ns, duration_ns;
	uint64_t lost, due; /* ticks; of the target, or of unknown tasks */
	uint64_t cut,
		unnamed; /* samples with an incomplete stack; with an innermost function without a name */
	bool untimed, cut_short, is_command;
	bool is_part; /* of its time; `path` has which one behind an @ */
};

/* Reasons for which a difference may be none of the program's. X(ENUM, name, text) */
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

#define COMPARE_DOUBT_MAX  0.15	 /* beyond, no verdict is given */
#define COMPARE_LOSS_MAX   0.05	 /* beyond, a loss counts although the other side has it as well */
#define COMPARE_DOUBT_SEEN 0.005 /* from here on, smaller differences are unclear */

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
	uint32_t function; /* number of its name; of the whole: COMPARE_WHOLE */
	bool is_self;	   /* its own code alone; else all samples with it in the stack */
	uint64_t samples[COMPARE_SIDES];
	struct estimate side[COMPARE_SIDES], difference;
	double low, high;			      /* 95 % interval of the difference */
	bool has_relative;			      /* both sides have it: */
	double relative, relative_low, relative_high; /* difference ÷ OLD */
	double relative_error;			      /* standard error of log(NEW ÷ OLD) */
	double p, q;
	bool found;    /* q is within the level */
	bool is_only;  /* there is no test of its own code: this one does for both */
	double weight; /* its part of the false discoveries that are allowed */
};
#define COMPARE_WHOLE UINT32_MAX

/* Where the difference is, as opposed to its callers, which have it as well. */
struct compare_row {
	uint32_t test; /* number of the test */
	enum compare_verdict verdict;
	uint32_t node; /* where most of it is: a node of the merged tree */
};

struct compare_side_sum {
	size_t files;
	uint64_t samples, cpu_ns, duration_ns;
	double doubt[COMPARE_DOUBT_COUNT]; /* shares */
	uint64_t unnamed;		   /* samples with an innermost function without a name */
};

struct compare_result {
	enum compare_view view;
	double level; /* of false discoveries, and outside of an interval: COMPARE_LEVEL ÷ looks */
	bool runs_measured; /* the variance is that of the files of a side */
	double run_noise;   /* else: what is taken as that of a run … */
	bool noise_assumed; /* … since nothing is known of it; or by … */
	bool is_one_run;    /* all files are parts of one recording: it is 0 */
	size_t noise_files; /* … so many files of the side that has more of them; 0: it was given */
	double reference; /* share of OLD's samples whose code is taken as unchanged; 1 except in the share view */
	struct compare_side_sum side[COMPARE_SIDES];
	double doubt
		[COMPARE_DOUBT_COUNT]; /* shares of the whole that may be missing on one side only */
	bool refused;		       /* a doubt is so large that no verdict is given … */
	enum compare_doubt refused_for;
	bool has_elapsed;		  /* of runs that were measured: */
	struct compare_test elapsed;	  /* their time by the clock, ns */
	const struct compare_test *tests; /* [0] is the whole */
	size_t test_count;
	const struct compare_row *rows; /* largest difference first; what has moved comes last */
	size_t row_count;
	/* The change that would be found in 9 of 10 such comparisons, ÷ OLD; NAN: unknown. Of the whole, and of functions of 5 % and 1 %. */
	double detectable[3];
	bool is_waiting; /* waiting time is compared */
	uint64_t
		sample_ticks; /* so many `samples` of a test are one; of waits: microseconds between two visits */
	const struct compare_result
		*waiting; /* waiting time (record --wall); NULL: it is not compared … */
	const char *waiting_missing; /* … because of this; NULL: no file has waits */
};

struct comparison;
struct merged_window; /* merged.h */

struct comparison *comparison__new(void); /* NULL: no memory */
void comparison__free(struct comparison *c);
/* `range`: NULL for all of it. 0 or negative errno with `failure` filled. */
int comparison__add(struct comparison *c, enum compare_side side, const char *path,
		    const struct profile *p, const struct compare_range *range,
		    struct failure *failure);
/*
 * A window of an agent, a part of a file that has several of them: samples of `process` alone, none if `p` is NULL. `offset`, `span`: ns since the
 * file's start, and how long all of it is. Windows of a file come in time order; `is_first` begins a file, whose samples are
 * counted by comparison__file().
 */
int comparison__add_window(struct comparison *c, enum compare_side side, const char *path,
			   const struct profile *p, const struct merged_window *window,
			   struct failure *failure);
/* The result is the comparison's. 0 or negative errno with `failure` filled. */
int comparison__finish(struct comparison *c, const struct compare_options *options,
		       const struct compare_result **result, struct failure *failure);

/* Of a finished one. */
size_t comparison__file_count(const struct comparison *c);
const struct compare_file *comparison__file(const struct comparison *c, size_t i);
const char *comparison__name(const struct comparison *c, uint32_t function);
/* The comparison of result.waiting. */
const struct comparison *comparison__waiting(const struct comparison *c);
/* The innermost function of a runtime or of the program on the way to a node; COMPARE_WHOLE: there is none. */
uint32_t comparison__place(const struct comparison *c, uint32_t node);
/* The value of a tick of a file in the view: those of a side add up to its whole. */
double comparison__tick_value(const struct comparison *c, size_t file);
/* Both sides as one profile (merged.h); `b` has nothing else. `waits`: those that are compared, too. 0 or -ENOMEM. */
int comparison__build_profile(const struct comparison *c, bool waits, struct profile_builder *b);
/* The functions from the root to a node: up to `max` numbers, the node's own last. */
size_t comparison__path(const struct comparison *c, uint32_t node, uint32_t *functions, size_t max);

/* ---- rules ----------------------------------------------------------------------------------- */

/* Is the difference no larger than what is missing on one side? */
bool compare_test__is_doubtful(const struct compare_test *t, const struct compare_result *result);

/* "total > 2%", "function parse_* > 5%", "waiting > 5%", "state lock > 10%" */
struct compare_rule {
	const char *text;
	bool is_total;
	bool is_waiting; /* of waiting time, or of a state of it */
	char pattern[256];
	double tolerance; /* ÷ OLD */
};

/* Order: the worst one counts. */
enum compare_answer { COMPARE_NOT_WORSE, COMPARE_CANNOT_TELL, COMPARE_WORSE };

struct compare_ruling {
	enum compare_answer answer;
	uint32_t test;			      /* what decided; UINT32_MAX: nothing did */
	uint64_t runs_needed, samples_needed; /* a side, if it cannot tell; 0: unknown */
};

/* -EINVAL: it is no rule. The text is not copied. */
int compare_rule__parse(struct compare_rule *rule, const char *text);
struct compare_ruling compare_rule__apply(const struct compare_rule *rule,
					  const struct comparison *c,
					  const struct compare_result *result);

/* ---- output ---------------------------------------------------------------------------------- */

struct compare_output {
	const struct comparison *comparison;
	const struct compare_result *result;
	const struct compare_rule *rules;
	const struct compare_ruling *rulings;
	size_t rule_count;
	size_t top;	  /* rows */
	const char *unit; /* of the view per unit of work: "request" */
};

/* 0 or negative errno; a write error may be visible in ferror() only. */
int compare_write_text(const struct compare_output *output, FILE *out);
int compare_write_markdown(const struct compare_output *output, FILE *out);
int compare_write_json(const struct compare_output *output, FILE *out);

#endif
