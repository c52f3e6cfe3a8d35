/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bare_timer HZ
 *
 * The timer events that the profiler opens, one cpu-clock per online CPU, and no program on them:
 * what sampling costs before anything is sampled. Until it is killed.
 */
#include <linux/perf_event.h>

#include "../fixtures/fixture.h"

static int open_timer(int cpu, uint64_t hz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NSEC_PER_SEC / hz,
		.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING,
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

int main(int argc, char **argv)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int opened = 0;
	uint64_t hz;

	if (argc != 2)
		die(2, "usage: bare_timer HZ");
	hz = parse_number(argv[1], 1, 100000);
	for (int cpu = 0; cpu < cpus; cpu++) {
		if (open_timer(cpu, hz) >= 0)
			opened++;
		else if (errno != ENODEV) /* it is offline */
			die(1, "cannot open a timer on CPU %d: %s", cpu, strerror(errno));
	}
	fact("ready %d", opened);
	for (;;)
		pause();
}
