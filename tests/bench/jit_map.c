/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit_map ENTRIES ADDRESSES
 *
 * A perf map of so many entries at random addresses, each with a name of its own, fed in pieces of 60 KB
 * and then queried for the histories of so many of its addresses. Prints
 *
 *   feed SECONDS / entry BYTES / name BYTES / ask SECONDS
 *
 * of CPU and of memory that malloc has handed out, an entry; the cost of names is found by feeding the same
 * entries with one name.
 */
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jit/jit_code.h"

#define PIECE (60u << 10)
#define LINE  96

static double cpu(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t used(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static uint64_t random_address(void)
{
	return 0x7f0000000000 + (((uint64_t)random() << 8) & 0xffffffffc0ull);
}

static char *write_map(size_t entries, bool one_name, size_t *size)
{
	char *map = malloc(entries * LINE), *at = map;

	if (!map)
		exit(1);
	srandom(1);
	for (size_t i = 0; i < entries; i++) {
		at += sprintf(
			at,
			"%llx %lx JS:*function_%zu /opt/application/node_modules/some/file.js:%zu:%zu\n",
			(unsigned long long)random_address(), 32 + random() % 2000,
			one_name ? 1 : i, one_name ? 1 : i % 5000, one_name ? 1 : i % 80);
	}
	*size = at - map;
	return map;
}

static struct jit_code *feed(const char *map, size_t size, double *seconds)
{
	struct jit_code *code = jit_code__new(JIT_CODE_MAP);
	double begin = cpu();

	for (size_t at = 0; at < size; at += PIECE) {
		const struct jit_piece piece = {
			.bytes = map + at,
			.size = size - at < PIECE ? size - at : PIECE,
			.before = 1,
		};

		if (!code || jit_code__feed(code, &piece))
			exit(1);
	}
	*seconds = cpu() - begin;
	return code;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double request(struct jit_code *code, size_t count)
{
	struct jit_history *histories = calloc(count, sizeof(*histories));
	uint64_t *addresses = calloc(count, sizeof(*addresses));
	double begin;

	if (!histories || !addresses)
		exit(1);
	for (size_t i = 0; i < count; i++)
		addresses[i] = random_address();
	qsort(addresses, count, sizeof(*addresses), compare);
	begin = cpu();
	if (jit_timeline__histories(jit_code__timeline(code), addresses, count, histories))
		exit(1);
	begin = cpu() - begin;
	for (size_t i = 0; i < count; i++)
		jit_history__fini(&histories[i]);
	free(histories);
	free(addresses);
	return begin;
}

int main(int argc, char **argv)
{
	size_t entries = argc > 1 ? strtoul(argv[1], NULL, 10) : 0, size, before, one, each;
	size_t addresses = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	struct jit_code *code;
	double seconds;
	char *map;

	if (!entries || !addresses) {
		fputs("usage: jit_map ENTRIES ADDRESSES\n", stderr);
		return 2;
	}
	map = write_map(entries, true, &size);
	before = used();
	code = feed(map, size, &seconds);
	one = used() - before;
	jit_code__free(code);
	free(map);
	map = write_map(entries, false, &size);
	before = used();
	code = feed(map, size, &seconds);
	each = used() - before;
	printf("feed %.3f\nentry %.1f\nname %.1f\n", seconds, (double)one / (double)entries,
	       ((double)each - (double)one) / (double)entries);
	printf("ask %.3f\n", request(code, addresses));
	jit_code__free(code);
	free(map);
	return 0;
}
