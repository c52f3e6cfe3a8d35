/* SPDX-License-Identifier: BSD-2-Clause */
/* Two versions of a program for `sysprof compare`: with -DNEW the discount of an order looks at all of its rows again. */
#include <stdio.h>
#include <stdlib.h>

#define ROWS 300

struct order {
	unsigned price[ROWS], count[ROWS];
};

#define STEP __attribute__((noinline)) static

STEP void read_order(struct order *o, unsigned seed)
{
	for (int i = 0; i < ROWS; i++) {
		seed = seed * 1103515245 + 12345;
		o->price[i] = seed >> 16 & 1023;
		o->count[i] = 1 + (seed >> 8 & 7);
	}
}

STEP unsigned long sum_order(const struct order *o)
{
	unsigned long sum = 0;

	for (int round = 0; round < 3; round++)
		for (int i = 0; i < ROWS; i++)
			sum += (unsigned long)o->price[i] * o->count[i] % 977;
	return sum;
}

STEP unsigned find_discount(const struct order *o)
{
	unsigned most = 0;
	int rows = ROWS / 4;

#ifdef NEW
	rows = ROWS;
#endif
	for (int i = 0; i < rows; i++)
		if (o->count[i] * o->price[i] % 89 > most)
			most = o->count[i] * o->price[i] % 89;
	return most;
}

STEP unsigned print_order(const struct order *o, char *text)
{
	unsigned hash = 5381;

	for (int i = 0; i < ROWS; i += 10)
		for (int at = 0, size = snprintf(text, 64, "%u x %u", o->count[i], o->price[i]);
		     at < size; at++)
			hash = hash * 33 + (unsigned char)text[at];
	return hash;
}

int main(int argc, char **argv)
{
	unsigned orders = argc > 1 ? (unsigned)atoi(argv[1]) : 120000, result = 0;
	static struct order order;
	char text[64];

	for (unsigned i = 0; i < orders; i++) {
		read_order(&order, i);
		result += (unsigned)sum_order(&order) + find_discount(&order) +
			  print_order(&order, text);
	}
	printf("%u\n", result);
	return 0;
}
