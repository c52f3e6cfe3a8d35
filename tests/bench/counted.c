/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counted spin CPU FILE
 * counted pingpong CPU CPU FILE
 * counted paced CPU TRIPS FILE
 *
 * Work whose progress can be read at any time: the first 8 bytes of FILE, which it maps, are what
 * was done so far. So a profiler can come and go beside one process, and the time it takes to start
 * is not in the measure.
 *   spin      pieces of arithmetic of some 10 us
 *   pingpong  round trips of a byte through two pipes between two processes on these CPUs
 *   paced     the same on one CPU, TRIPS of them each millisecond, and sleep
 * Until it is killed; its other half ends with it.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../fixtures/fixture.h"

static volatile uint64_t *map_counter(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *counter;

	if (fd < 0 || ftruncate(fd, 4096))
		die(1, "cannot make %s: %s", path, strerror(errno));
	counter = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counter == MAP_FAILED)
		die(1, "cannot map %s: %s", path, strerror(errno));
	close(fd);
	return counter;
}

static noinline void spin(volatile uint64_t *counter)
{
	uint64_t x = 1;

	for (;;) {
		x = work_a_little(x);
		++*counter;
	}
}

struct pipes {
	int there[2], back[2];
};

static void start_echo(const struct pipes *p, unsigned int cpu)
{
	pid_t pid = fork();
	char byte;

	if (pid < 0)
		die(1, "fork: %s", strerror(errno));
	if (pid)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	pin_to_cpu(cpu);
	close(p->there[1]);
	while (read(p->there[0], &byte, 1) == 1)
		if (write(p->back[1], &byte, 1) != 1)
			break;
	_exit(0);
}

static void round_trip(const struct pipes *p)
{
	char byte = 0;

	if (write(p->there[1], &byte, 1) != 1 || read(p->back[0], &byte, 1) != 1)
		die(1, "the other side has gone");
}

/* `pace`: trips each millisecond; 0: without pause. */
static noinline void pingpong(unsigned int here, unsigned int there, uint64_t pace,
			      volatile uint64_t *counter)
{
	struct pipes pipes;

	if (pipe(pipes.there) || pipe(pipes.back))
		die(1, "pipe: %s", strerror(errno));
	start_echo(&pipes, there);
	pin_to_cpu(here);
	for (;;) {
		round_trip(&pipes);
		++*counter;
		if (pace && *counter % pace == 0)
			usleep(1000);
	}
}

int main(int argc, char **argv)
{
	volatile uint64_t *counter;

	if (argc < 4 || argc > 5)
		die(2,
		    "usage: counted spin CPU FILE | pingpong CPU CPU FILE | paced CPU TRIPS FILE");
	counter = map_counter(argv[argc - 1]);
	*counter = 0;
	fact("pid %d", getpid());
	if (!strcmp(argv[1], "spin")) {
		pin_to_cpu(parse_cpu(argv[2]));
		spin(counter);
	}
	if (argc != 5)
		die(2, "%s needs one more argument", argv[1]);
	if (!strcmp(argv[1], "pingpong"))
		pingpong(parse_cpu(argv[2]), parse_cpu(argv[3]), 0, counter);
	if (!strcmp(argv[1], "paced"))
		pingpong(parse_cpu(argv[2]), parse_cpu(argv[2]), parse_number(argv[3], 1, 10000),
			 counter);
	die(2, "neither spin nor pingpong nor paced: %s", argv[1]);
}
