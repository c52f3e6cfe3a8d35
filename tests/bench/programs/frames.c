// SPDX-License-Identifier: BSD-2-Clause
/*
 * frames DEPTH SECONDS: calls itself DEPTH levels deep, half way down through a frame of 20 KB, and
 * works there until the time is over. Without frame pointers.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LARGE_FRAME (20 * 1024)

static volatile uint64_t sink;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

__attribute__((noinline)) static void work(void)
{
	uint64_t x = sink;

	for (int i = 0; i < 100000; i++)
		x = x * 6364136223846793005u + i;
	sink = x;
}

__attribute__((noinline)) static int deeper(int left, int half, uint64_t end);

/* A page at a time is touched, as code does that has large buffers. */
__attribute__((noinline)) static int large(int left, int half, uint64_t end)
{
	volatile char room[LARGE_FRAME];

	for (int i = 0; i < LARGE_FRAME; i += 1024)
		room[i] = (char)left;
	return deeper(left - 1, half, end) + room[1024];
}

static int deeper(int left, int half, uint64_t end)
{
	int below = 0;

	if (left == half)
		below = large(left, -1, end);
	else if (left > 0)
		below = deeper(left - 1, half, end);
	else
		while (now_ns() < end)
			work();
	sink++; /* so that no call is the last thing done */
	return below + 1;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: frames DEPTH SECONDS\n");
		return 2;
	}
	int depth = atoi(argv[1]);

	deeper(depth, depth / 2, now_ns() + (uint64_t)(atof(argv[2]) * 1e9));
	return 0;
}
