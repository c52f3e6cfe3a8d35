// SPDX-License-Identifier: BSD-2-Clause
/*
 * execs COUNT PROGRAM [A_SECOND]: runs that program so many times, one after the other, and says how many it
 * were.
 *
 * With A_SECOND no more often than that, and how many it were by then is said each second. What it is late is
 * not made up for.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>

#define NSEC_PER_SEC 1000000000L

extern char **environ;

static long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * NSEC_PER_SEC + t.tv_nsec;
}

static int run(char *program)
{
	char *arguments[] = {program, NULL};
	pid_t pid;

	return posix_spawn(&pid, program, NULL, NULL, arguments, environ) ||
	       waitpid(pid, NULL, 0) != pid;
}

/* Waits for the next one's time, which is returned. */
static long pace(long next, long period)
{
	struct timespec until = {next / NSEC_PER_SEC, next % NSEC_PER_SEC};
	long now = now_ns();

	if (now > next + period)
		next = now;
	else
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	return next + period;
}

int main(int argc, char **argv)
{
	long count = argc >= 3 ? atol(argv[1]) : 0, rate = argc == 4 ? atol(argv[3]) : 0, done = 0;

	if (count <= 0 || argc > 4 || rate < 0) {
		fprintf(stderr, "usage: execs COUNT PROGRAM [A_SECOND]\n");
		return 2;
	}
	for (long next = now_ns(), said = next; done < count; done++) {
		if (rate)
			next = pace(next, NSEC_PER_SEC / rate);
		if (rate && next > said + NSEC_PER_SEC) {
			said = next;
			printf("%ld\n", done);
			fflush(stdout);
		}
		if (run(argv[2]))
			break;
	}
	printf("%ld\n", done);
	return done != count;
}
