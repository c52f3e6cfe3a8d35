/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wakeups SECONDS
 *
 * A thread on each CPU it may use sleeps until the next millisecond, again and again, on an else
 * idle machine. Prints how late it woke: "p50_ns N", "p99_ns N", "max_ns N" over all CPUs.
 */
#include <pthread.h>
#include <sys/prctl.h>

#include "../fixtures/fixture.h"

#define INTERVAL 1000000ull /* ns */

struct sleeper {
	pthread_t thread;
	unsigned int cpu;
	uint64_t *late; /* ns, one for each wake-up */
	uint64_t count, start;
};

static void *sleep_and_wake(void *argument)
{
	struct sleeper *s = argument;

	pin_to_cpu(s->cpu);
	prctl(PR_SET_TIMERSLACK, 1);
	for (uint64_t i = 0; i < s->count; i++) {
		uint64_t due = s->start + i * INTERVAL, now;
		struct timespec t = {(time_t)(due / NSEC_PER_SEC), (long)(due % NSEC_PER_SEC)};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		now = now_ns();
		s->late[i] = now > due ? now - due : 0;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(uint64_t *late, uint64_t count)
{
	qsort(late, count, sizeof(*late), compare);
	fact("p50_ns %llu", (unsigned long long)late[count / 2]);
	fact("p99_ns %llu", (unsigned long long)late[count * 99 / 100]);
	fact("max_ns %llu", (unsigned long long)late[count - 1]);
}

int main(int argc, char **argv)
{
	static struct sleeper sleepers[CPU_SETSIZE];
	uint64_t each, *late;
	unsigned int count = 0;
	cpu_set_t cpus;

	if (argc != 2)
		die(2, "usage: wakeups SECONDS");
	each = parse_duration(argv[1]) / INTERVAL + 1;
	if (sched_getaffinity(0, sizeof(cpus), &cpus))
		die(1, "sched_getaffinity: %s", strerror(errno));
	late = calloc((size_t)CPU_COUNT(&cpus) * each, sizeof(*late));
	if (!late)
		die(1, "no memory");
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct sleeper *s = &sleepers[count];

		if (!CPU_ISSET(cpu, &cpus))
			continue;
		/* not all at one time */
		*s = (struct sleeper){.cpu = cpu,
				      .late = late + count * each,
				      .count = each,
				      .start = now_ns() + 10 * INTERVAL + count * 100000};
		if (pthread_create(&s->thread, NULL, sleep_and_wake, s))
			die(1, "cannot start a thread");
		count++;
	}
	for (unsigned int i = 0; i < count; i++)
		pthread_join(sleepers[i].thread, NULL);
	report(late, count * each);
	return 0;
}
