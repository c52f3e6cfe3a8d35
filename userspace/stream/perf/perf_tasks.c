/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream/perf/perf_tasks.h"

#include "base/minmax.h"

static bool is_possible(uint32_t number)
{
	return number < PERF_TASK_NUMBERS || number == UINT32_MAX;
}

static bool is_seen(const struct perf_tasks *t, uint32_t number)
{
	return number == UINT32_MAX || t->seen[number / 64] >> number % 64 & 1;
}

static void note(struct perf_tasks *t, uint32_t number)
{
	if (number != UINT32_MAX)
		t->seen[number / 64] |= 1ull << number % 64;
}

bool perf_tasks__has(const struct perf_tasks *t, uint32_t number)
{
	return is_possible(number) && is_seen(t, number);
}

enum perf_admission perf_tasks__admit(struct perf_tasks *t, uint64_t size, uint32_t pid,
				      uint32_t tid, bool is_new)
{
	uint64_t most = min_u64(PERF_LIVES_FREE + size / PERF_BYTES_A_LIFE, PERF_LIVES_MAX), more;

	if (!is_possible(pid) || !is_possible(tid))
		return PERF_TASK_IMPOSSIBLE;
	more = (is_new || !is_seen(t, tid)) + (pid != tid && !is_seen(t, pid));
	if (more > most - t->lives)
		return PERF_TASK_OVER_LIMIT;
	t->lives += more;
	note(t, pid);
	note(t, tid);
	return PERF_TASK_ADMITTED;
}
