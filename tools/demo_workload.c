/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * demo_workload SECONDS: something worth looking at in a profile. A process with two named threads,
 * one that sorts and one that searches for primes, and a child that spends its time in system calls.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ITEMS 20000

static double deadline;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static __attribute__((noinline)) uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static __attribute__((noinline)) int partition(uint32_t *items, int count)
{
	uint32_t pivot = items[(count - 1) / 2];
	int left = 0, right = count - 1;

	for (;; left++, right--) {
		while (items[left] < pivot)
			left++;
		while (items[right] > pivot)
			right--;
		if (left >= right)
			return right + 1;
		uint32_t swapped = items[left];
		items[left] = items[right];
		items[right] = swapped;
	}
}

/* our own and not the C library's, whose functions have no names where it is stripped */
static __attribute__((noinline)) void quick_sort(uint32_t *items, int count)
{
	int middle;

	if (count < 2)
		return;
	middle = partition(items, count);
	quick_sort(items, middle);
	quick_sort(items + middle, count - middle);
}

static __attribute__((noinline)) void fill_items(uint32_t *items, uint32_t *state)
{
	for (int i = 0; i < ITEMS; i++)
		items[i] = next_random(state);
}

static void *sorter(void *arg)
{
	static uint32_t items[ITEMS];
	uint32_t state = 2463534242u;

	(void)arg;
	prctl(PR_SET_NAME, "sorter");
	while (now() < deadline) {
		fill_items(items, &state);
		quick_sort(items, ITEMS);
	}
	return NULL;
}

static __attribute__((noinline)) int is_prime(uint64_t n)
{
	for (uint64_t d = 3; d * d <= n; d += 2)
		if (n % d == 0)
			return 0;
	return n > 2 && n % 2;
}

static __attribute__((noinline)) uint64_t next_prime(uint64_t n)
{
	do
		n++;
	while (!is_prime(n));
	return n;
}

static void *prime_finder(void *arg)
{
	volatile uint64_t n = 1000000000000ULL;

	(void)arg;
	prctl(PR_SET_NAME, "primes");
	while (now() < deadline)
		n = next_prime(n);
	return NULL;
}

static __attribute__((noinline)) void read_zeros(int fd)
{
	static char block[1 << 16];

	for (int i = 0; i < 100; i++)
		if (read(fd, block, sizeof(block)) < 0)
			return;
}

static int reader(void)
{
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 1;
	prctl(PR_SET_NAME, "reader");
	while (now() < deadline) {
		read_zeros(fd);
		usleep(2000);
	}
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	double seconds = argc == 2 ? strtod(argv[1], NULL) : 0;
	pthread_t threads[2];
	pid_t child;

	if (seconds <= 0) {
		fprintf(stderr, "usage: demo_workload SECONDS\n");
		return 2;
	}
	deadline = now() + seconds;
	child = fork();
	if (child < 0)
		return 1;
	if (child == 0)
		return reader();
	if (pthread_create(&threads[0], NULL, sorter, NULL) ||
	    pthread_create(&threads[1], NULL, prime_finder, NULL))
		return 1;
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	waitpid(child, NULL, 0);
	return 0;
}
