/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/call_frames.h"

#include "base/minmax.h"

#define FALLBACK_PERIOD 1000000 /* ns, where ticks are not of a clock */
#define MANY_TICKS                                                                                 \
	1000000000000 /* of which each gets less, or the times would not be exact as doubles */

uint64_t row_times_start(const struct profile *p, const struct profile_thread *thread)
{
	return max_u64(thread->start, p->start);
}

void row_times__init(struct row_times *times, const struct profile *p,
		     const struct profile_thread *thread)
{
	*times = (struct row_times){
		.samples = &thread->samples[SAMPLE_CPU],
		.last = row_times_start(p, thread),
		.step = p->period ? p->period : FALLBACK_PERIOD,
		.untimed = p->untimed,
	};
	if (times->untimed && times->samples->tick_sum > MANY_TICKS)
		times->step = 1000;
}

uint64_t row_times__end(const struct row_times *times)
{
	uint64_t ticks = 0;

	if (times->row)
		ticks = times->untimed ? profile_samples__ticks(times->samples, times->row - 1) : 1;
	if (ticks > (UINT64_MAX - times->last) / times->step)
		return UINT64_MAX;
	return times->last + ticks * times->step;
}

uint64_t row_times__next(struct row_times *times)
{
	uint64_t time = times->untimed ? row_times__end(times) : times->samples->time[times->row];

	times->row++;
	return times->last = time;
}

void idle_rows__init(struct idle_rows *rows, const struct profile_thread *thread)
{
	*rows = (struct idle_rows){
		.cpu = &thread->samples[SAMPLE_CPU],
		.idle = &thread->samples[SAMPLE_IDLE],
	};
}

bool idle_rows__next(struct idle_rows *rows, size_t i, uint64_t *time)
{
	if (rows->next == rows->idle->count)
		return false;
	if (i < rows->cpu->count && rows->idle->time[rows->next] > rows->cpu->time[i])
		return false;
	*time = rows->idle->time[rows->next++];
	return true;
}

uint64_t row_times_last_weight(const struct profile_thread *thread)
{
	const struct profile_samples *cpu = &thread->samples[SAMPLE_CPU];
	const struct profile_samples *idle = &thread->samples[SAMPLE_IDLE];
	bool was_idle = idle->count &&
			(!cpu->count || idle->time[idle->count - 1] > cpu->time[cpu->count - 1]);
	const struct profile_samples *last = was_idle ? idle : cpu;

	return last->count ? last->weight[last->count - 1] : 0;
}
