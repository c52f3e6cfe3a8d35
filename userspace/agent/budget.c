/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/budget.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/minmax.h"

#define SECOND	    1000000000ull
#define CALM_LEAST  (60 * SECOND)
#define CALM_MOST   (3600 * SECOND)
#define LASTS	    (600 * SECOND) /* a step back that holds so long was right */
#define OVER_IN_ROW 2
#define CALM_CPU    0.5	 /* of the limit */
#define RAISED_CPU  0.9	 /* of the limit: what a higher rate may come to, at most */
#define CALM_MEMORY 0.75 /* of the limit */

struct budget {
	struct budget_options options;
	enum budget_step row[BUDGET_STEP_COUNT]; /* those that there are, in order */
	unsigned int levels, level;
	unsigned int over_in_row;
	bool over;
	bool unjudged;	      /* the next measurement is, a step was just taken */
	uint64_t calm_since;  /* 0: it is not calm */
	uint64_t calm_needed; /* for a step back */
	uint64_t back_at;     /* when the last step back was; 0: none, or it has lasted */
	struct budget_stats stats;
};

static const struct {
	const char *label, *text;
} STEPS[BUDGET_STEP_COUNT] = {
#define X(id, label, text) [BUDGET_STEP_##id] = {label, text},
	BUDGET_STEPS(X)
#undef X
};

const char *budget_step_label(enum budget_step step)
{
	return STEPS[step].label;
}

const char *budget_step_text(enum budget_step step)
{
	return STEPS[step].text;
}

/* 0: it is not one of the rate. */
static unsigned int step_hz(enum budget_step step)
{
	static const unsigned int HZ[BUDGET_STEP_COUNT] = {
		[BUDGET_STEP_HZ_97] = 97,
		[BUDGET_STEP_HZ_47] = 47,
		[BUDGET_STEP_HZ_19] = 19,
		[BUDGET_STEP_HZ_7] = BUDGET_HZ_LEAST,
	};

	return HZ[step];
}

static unsigned int hz_at(const struct budget *b, unsigned int level)
{
	for (; level; level--)
		if (step_hz(b->row[level - 1]))
			return step_hz(b->row[level - 1]);
	return b->options.hz;
}

void budget__set(struct budget *b, const struct budget_options *options)
{
	b->options = *options;
	b->levels = 0;
	for (unsigned int i = 0; i < BUDGET_STEP_COUNT; i++)
		if (step_hz(i) < options->hz)
			b->row[b->levels++] = i;
	b->level = min_u64(b->level, b->levels);
}

struct budget *budget__new(const struct budget_options *options)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->calm_needed = CALM_LEAST;
	budget__set(b, options);
	return b;
}

void budget__free(struct budget *b)
{
	free(b);
}

/* ---- judging --------------------------------------------------------------------------------- */

/* How many times the limit it is; 0 without a limit. */
static double excess(double used, double limit)
{
	return limit > 0 ? used / limit : 0;
}

/* What a step back may find at most, as a part of the limit: it raises the rate, and all cost may grow with it. */
static double calm_cpu(const struct budget *b)
{
	double ratio = (double)hz_at(b, b->level) / (double)hz_at(b, b->level - 1);

	return ratio * RAISED_CPU < CALM_CPU ? ratio * RAISED_CPU : CALM_CPU;
}

static bool is_calm(const struct budget *b, double cpu, double memory)
{
	return b->level && cpu < calm_cpu(b) && memory < CALM_MEMORY;
}

static void note_step(struct budget *b)
{
	b->over_in_row = 0;
	b->calm_since = 0;
	b->unjudged = true;
}

/* A step back that did not last makes the next one wait longer. */
static void judge_last_back(struct budget *b, uint64_t now, bool down)
{
	if (!b->back_at)
		return;
	if (now - b->back_at >= LASTS) {
		b->calm_needed = CALM_LEAST;
		b->back_at = 0;
	} else if (down) {
		b->calm_needed = min_u64(2 * b->calm_needed, CALM_MOST);
		b->back_at = 0;
	}
}

static enum budget_change go_down(struct budget *b, const struct budget_usage *usage,
				  enum budget_step *step)
{
	if (b->level == b->levels) {
		b->stats.over_at_floor++;
		return BUDGET_SAME;
	}
	judge_last_back(b, usage->time, true);
	*step = b->row[b->level++];
	b->stats.down[*step]++;
	note_step(b);
	log_debug(LOG_AGENT, "over the budget (%.2f %% of one CPU, %llu KB): %s", 100 * usage->cpu,
		  (unsigned long long)usage->memory / 1024, budget_step_text(*step));
	return BUDGET_DOWN;
}

static enum budget_change go_back(struct budget *b, const struct budget_usage *usage,
				  enum budget_step *step)
{
	judge_last_back(b, usage->time, false);
	*step = b->row[--b->level];
	b->stats.back[*step]++;
	b->back_at = usage->time;
	note_step(b);
	log_debug(LOG_AGENT, "within the budget (%.2f %% of one CPU, %llu KB): no longer: %s",
		  100 * usage->cpu, (unsigned long long)usage->memory / 1024,
		  budget_step_text(*step));
	return BUDGET_BACK;
}

enum budget_change budget__measure(struct budget *b, const struct budget_usage *usage,
				   enum budget_step *step)
{
	double cpu = excess(usage->cpu, b->options.cpu);
	double memory = excess((double)usage->memory, (double)b->options.memory);
	bool far = cpu > 2 || memory > 2;

	b->over = cpu > 1 || memory > 1;
	b->stats.measured++;
	b->stats.over += b->over;
	if (b->unjudged) {
		b->unjudged = false;
		return BUDGET_SAME;
	}
	b->over_in_row = b->over ? b->over_in_row + 1 : 0;
	if (far || b->over_in_row >= OVER_IN_ROW)
		return go_down(b, usage, step);
	if (!is_calm(b, cpu, memory)) {
		b->calm_since = 0;
		return BUDGET_SAME;
	}
	if (!b->calm_since)
		b->calm_since = usage->time;
	if (usage->time - b->calm_since < b->calm_needed)
		return BUDGET_SAME;
	return go_back(b, usage, step);
}

void budget__state(const struct budget *b, struct budget_state *state)
{
	*state = (struct budget_state){
		.debug_info = true,
		.table_builds = true,
		.jit_histories = true,
		.hz = hz_at(b, b->level),
		.level = b->level,
		.levels = b->levels,
		.over = b->over,
	};
	for (unsigned int i = 0; i < b->level; i++) {
		state->debug_info &= b->row[i] != BUDGET_STEP_DEBUG_INFO;
		state->table_builds &= b->row[i] != BUDGET_STEP_TABLE_BUILDS;
		state->jit_histories &= b->row[i] != BUDGET_STEP_JIT_HISTORIES;
	}
}

void budget__stats(const struct budget *b, struct budget_stats *stats)
{
	*stats = b->stats;
}
