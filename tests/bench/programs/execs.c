// SPDX-License-Identifier: BSD-2-Clause
/*
 * execs COUNT PROGRAM: runs that program so many times, one after the other, and says how many it
 * were.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
	long count = argc == 3 ? atol(argv[1]) : 0, done = 0;

	if (count <= 0) {
		fprintf(stderr, "usage: execs COUNT PROGRAM\n");
		return 2;
	}
	char *arguments[] = {argv[2], NULL};

	for (; done < count; done++) {
		pid_t pid;

		if (posix_spawn(&pid, argv[2], NULL, NULL, arguments, environ) ||
		    waitpid(pid, NULL, 0) != pid)
			break;
	}
	printf("%ld\n", done);
	return done != count;
}
