/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A lock convoy: six workers handle orders and write a line of a log each, under a mutex that one of them holds until the disk has
 * the line. cc -O1 -g -pthread -o convoy convoy.c; ./convoy SECONDS
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WORKERS 6

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
static int log_file;

static __attribute__((noinline)) uint64_t price_of(uint64_t order)
{
	uint64_t price = order;

	for (int i = 0; i < 400000; i++)
		price = price * 6364136223846793005 + 1442695040888963407;
	return price;
}

static __attribute__((noinline)) void append_line(const char *line, size_t size)
{
	if (write(log_file, line, size) < 0 || fdatasync(log_file))
		abort();
}

static __attribute__((noinline)) void write_log(uint64_t price)
{
	char line[64] = "order ";

	line[6] = (char)('0' + price % 10);
	line[63] = '\n';
	pthread_mutex_lock(&log_lock);
	append_line(line, sizeof(line));
	usleep(1000); /* a slow disk */
	pthread_mutex_unlock(&log_lock);
}

static void *handle_orders(void *end)
{
	for (uint64_t order = 1; time(NULL) < *(time_t *)end; order++)
		write_log(price_of(order));
	return NULL;
}

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atoi(argv[1]) : 10);
	pthread_t workers[WORKERS];

	log_file = open("convoy.log", O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
	if (log_file < 0)
		return 1;
	for (int i = 0; i < WORKERS; i++)
		if (pthread_create(&workers[i], NULL, handle_orders, &end))
			return 1;
	for (int i = 0; i < WORKERS; i++)
		pthread_join(workers[i], NULL);
	return 0;
}
