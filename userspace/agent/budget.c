/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/budget.h"

#include <stdlib.h>
#include <string.h>

#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"

#define CALM_LEAST  (60 * NS_PER_SECOND)
#define CALM_MOST   (3600 * NS_PER_SECOND)
#define CALM_RATE   (300 * NS_PER_SECOND) /* the most for a higher rate: what it will cost is known */
#define LASTS	    (600 * NS_PER_SECOND) /* a step back that holds so long was right */
#define OVER_IN_ROW 2
#define RECENT	    6	 /* measurements: a minute */
#define RATE_OVER   3	 /* of them, before the rate is lowered */
#define CALM_CPU    0.5	 /* of the limit */
#define RAISED_CPU  0.9	 /* of the limit: what a higher rate may come to, at most */
#define OF_RATE	    0.25 /* of the collector's cost: the rest is of processes that come and go */
#define CALM_MEMORY 0.75 /* of the limit */
#define NEW_PART    0.3	 /* of a measurement in a smoothed figure */
#define HZ_LEAST    7

struct budget {
	struct budget_options options;
	bool possible[BUDGET_STEP_COUNT], taken[BUDGET_STEP_COUNT];
	bool for_memory[BUDGET_STEP_COUNT];	   /* why the step was taken last */
	enum budget_step order[BUDGET_STEP_COUNT]; /* in which they were taken */
	unsigned int level;			   /* how many are */
	unsigned int over_in_row;
	bool over;
	bool unjudged;			/* the next measurement is, a step was just taken */
	double recent[RECENT];		/* CPU shares of the last measurements that were judged */
	unsigned int recent_count;	/* since the last step */
	uint64_t stepped;		/* when that was; 0: none was taken */
	uint64_t calm_needed;		/* from then to a step back */
	uint64_t back_at;		/* when the last step back was; 0: none, or it has lasted */
	double last[BUDGET_PART_COUNT]; /* cpu_by of the last measurement */
	struct budget_stats stats;
};

static const struct {
	enum budget_part part;
	double worth;
	bool saves_memory;
	const char *label, *text;
} STEPS[BUDGET_STEP_COUNT] = {
#define X(id, part, worth, saves_memory, label, text)                                              \
	[BUDGET_STEP_##id] = {BUDGET_PART_##part, worth / 100.0, saves_memory, label, text},
	BUDGET_STEPS(X)
#undef X
};

static const struct {
	const char *label;
	double share;
} PARTS[BUDGET_PART_COUNT] = {
#define X(id, label, share, text) [BUDGET_PART_##id] = {label, share / 100.0},
	BUDGET_PARTS(X)
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

const char *budget_part_label(enum budget_part part)
{
	return PARTS[part].label;
}

/* 0: it is not one of the rate. */
static unsigned int step_hz(enum budget_step step)
{
	static const unsigned int HZ[BUDGET_STEP_COUNT] = {
		[BUDGET_STEP_HZ_97] = 97,
		[BUDGET_STEP_HZ_47] = 47,
		[BUDGET_STEP_HZ_19] = 19,
		[BUDGET_STEP_HZ_7] = HZ_LEAST,
	};

	return HZ[step];
}

/* 0: it is not one of the visits. */
static unsigned int step_visits(enum budget_step step)
{
	return step == BUDGET_STEP_VISITS_5 ? 5 : step == BUDGET_STEP_VISITS_1 ? 1 : 0;
}

/* The rate without the last `back` steps that have lowered it. */
static unsigned int hz_without(const struct budget *b, unsigned int back)
{
	for (unsigned int i = b->level; i-- > 0;)
		if (step_hz(b->order[i]) && !back--)
			return step_hz(b->order[i]);
	return b->options.hz;
}

void budget__set(struct budget *b, const struct budget_options *options)
{
	unsigned int level = 0;

	b->options = *options;
	for (unsigned int i = 0; i < BUDGET_STEP_COUNT; i++)
		b->possible[i] = step_hz(i) < options->hz &&
				 (!step_visits(i) || step_visits(i) < options->visits);
	for (unsigned int i = 0; i < b->level; i++) {
		b->taken[b->order[i]] = b->possible[b->order[i]];
		if (b->possible[b->order[i]])
			b->order[level++] = b->order[i];
	}
	b->level = level;
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

static double average(const struct budget *b)
{
	unsigned int count = min_u64(b->recent_count, RECENT);
	double sum = 0;

	for (unsigned int i = 0; i < count; i++)
		sum += b->recent[i];
	return count ? sum / count : 0;
}

/* Must the rate go down? One peak, or a start, does not show that. */
static bool is_over_for_long(const struct budget *b)
{
	unsigned int over = 0;

	for (unsigned int i = 0; i < RECENT && i < b->recent_count; i++)
		over += b->recent[i] > b->options.cpu;
	return over >= RATE_OVER && average(b) > b->options.cpu;
}

static bool has_memory_for(const struct budget *b, enum budget_step step, uint64_t memory)
{
	return !STEPS[step].saves_memory || excess((double)memory, (double)b->options.memory) <
						    (b->for_memory[step] ? CALM_MEMORY : 1);
}

/* Place of the step to undo next: the rate's last, or the last that memory allows; -1: none. */
static int next_back(const struct budget *b, uint64_t memory)
{
	int last = -1;

	for (int i = (int)b->level - 1; i >= 0; i--) {
		if (step_hz(b->order[i]))
			return i;
		if (last < 0 && has_memory_for(b, b->order[i], memory))
			last = i;
	}
	return last;
}

/* Does what grows with the rate fit after the step back? Costs without other steps are unknown. */
static bool fits_step_back(const struct budget *b, enum budget_step step)
{
	double ratio = (double)hz_without(b, 1) / (double)hz_without(b, 0);
	double grows = b->stats.cpu_by[BUDGET_PART_TICKS] +
		       OF_RATE * b->stats.cpu_by[BUDGET_PART_COLLECTOR];

	if (b->options.cpu <= 0 || !step_hz(step))
		return excess(average(b), b->options.cpu) < CALM_CPU;
	return average(b) + (ratio - 1) * grows < RAISED_CPU * b->options.cpu;
}

static bool may_go_back(const struct budget *b, uint64_t now, enum budget_step step)
{
	return b->recent_count >= RECENT &&
	       now - b->stepped >=
		       (step_hz(step) ? min_u64(b->calm_needed, CALM_RATE) : b->calm_needed) &&
	       fits_step_back(b, step);
}

static bool is_open(const struct budget *b, enum budget_step step)
{
	return b->possible[step] && !b->taken[step];
}

/* The part's cost above its share, in CPUs. */
static double over_share(const struct budget *b, enum budget_part part)
{
	return b->stats.cpu_by[part] - PARTS[part].share * b->options.cpu;
}

/* Names come with windows, so the smoothed figure decides; it may include a higher rate. */
static bool is_worth_it(const struct budget *b, enum budget_step step)
{
	enum budget_part part = STEPS[step].part;
	double cost = b->stats.cpu_by[part];

	if (step_hz(step) && b->last[part] < cost)
		cost = b->last[part];
	return cost >= STEPS[step].worth * b->options.cpu;
}

/* The first step of the part most over its share, else the rate's; BUDGET_STEP_COUNT: none. */
static enum budget_step choose_for_cpu(const struct budget *b)
{
	enum budget_step best = BUDGET_STEP_COUNT, rate = BUDGET_STEP_COUNT;

	for (enum budget_step i = 0; i < BUDGET_STEP_COUNT; i++) {
		enum budget_part part = STEPS[i].part;

		if (!is_open(b, i) || !is_worth_it(b, i))
			continue;
		if (step_hz(i))
			rate = rate == BUDGET_STEP_COUNT ? i : rate;
		else if (best == BUDGET_STEP_COUNT ||
			 over_share(b, part) > over_share(b, STEPS[best].part))
			best = i;
	}
	return best == BUDGET_STEP_COUNT ? rate : best;
}

static enum budget_step choose_for_memory(const struct budget *b)
{
	enum budget_step step = 0;

	while (step < BUDGET_STEP_COUNT && !(is_open(b, step) && STEPS[step].saves_memory))
		step++;
	return step;
}

static void smooth(struct budget *b, const struct budget_usage *usage)
{
	double part = b->stats.measured ? NEW_PART : 1;

	memcpy(b->last, usage->cpu_by, sizeof(b->last));
	for (int i = 0; i < BUDGET_PART_COUNT; i++)
		b->stats.cpu_by[i] += part * (usage->cpu_by[i] - b->stats.cpu_by[i]);
}

static void note_step(struct budget *b, uint64_t now)
{
	b->over_in_row = b->recent_count = 0;
	b->stepped = now;
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

static enum budget_change go_down(struct budget *b, const struct budget_usage *usage, double cpu,
				  double memory, enum budget_step *step)
{
	enum budget_step next = cpu > 1 ? choose_for_cpu(b) : BUDGET_STEP_COUNT;
	bool by_cpu = next != BUDGET_STEP_COUNT;
	bool too_early = by_cpu && step_hz(next) && !is_over_for_long(b);

	by_cpu &= !too_early;
	if (!by_cpu)
		next = memory > 1 ? choose_for_memory(b) : BUDGET_STEP_COUNT;
	if (next == BUDGET_STEP_COUNT) {
		b->stats.over_at_floor += !too_early;
		return BUDGET_SAME;
	}
	judge_last_back(b, usage->time, true);
	*step = b->order[b->level++] = next;
	b->taken[next] = true;
	b->for_memory[next] = !by_cpu;
	b->stats.down[next]++;
	note_step(b, usage->time);
	log_debug(LOG_AGENT, "over the budget (%.2f %% of one CPU, %llu KB): %s", 100 * usage->cpu,
		  (unsigned long long)usage->memory / 1024, budget_step_text(next));
	return BUDGET_DOWN;
}

static enum budget_change go_back(struct budget *b, const struct budget_usage *usage,
				  enum budget_step *step)
{
	int at = next_back(b, usage->memory);

	if (at < 0 || !may_go_back(b, usage->time, b->order[at]))
		return BUDGET_SAME;
	judge_last_back(b, usage->time, false);
	*step = b->order[at];
	memmove(&b->order[at], &b->order[at + 1],
		(--b->level - (unsigned int)at) * sizeof(b->order[0]));
	b->taken[*step] = false;
	b->stats.back[*step]++;
	b->back_at = usage->time;
	note_step(b, usage->time);
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
	enum budget_change change = BUDGET_SAME;

	smooth(b, usage);
	b->over = cpu > 1 || memory > 1;
	b->stats.measured++;
	b->stats.over += b->over;
	if (b->unjudged) {
		b->unjudged = false;
		return BUDGET_SAME;
	}
	b->recent[b->recent_count++ % RECENT] = usage->cpu;
	b->over_in_row = b->over ? b->over_in_row + 1 : 0;
	if (far || b->over_in_row >= OVER_IN_ROW)
		change = go_down(b, usage, cpu, memory, step);
	return change == BUDGET_SAME && cpu <= 1 ? go_back(b, usage, step) : change;
}

void budget__state(const struct budget *b, struct budget_state *state)
{
	*state = (struct budget_state){
		.hz = hz_without(b, 0),
		.visits = b->options.visits,
		.level = b->level,
		.over = b->over,
	};
	for (unsigned int i = 0; i < BUDGET_STEP_COUNT; i++) {
		state->allowed[i] = !b->taken[i];
		state->levels += b->possible[i];
		if (b->taken[i] && step_visits(i))
			state->visits = step_visits(i);
	}
}

void budget__stats(const struct budget *b, struct budget_stats *stats)
{
	*stats = b->stats;
}
