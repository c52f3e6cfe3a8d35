/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The GIL of processes that have one, by samples of their threads: one thread at a time holds it,
 * so the CPU time of the samples that held it is time in which it was held.
 */
#ifndef FORMATS_OUT_GIL_H
#define FORMATS_OUT_GIL_H

#include <stddef.h>

#include <sysprof/profile.h>

struct json_writer;

/* Of one process: its rows, those that held it longest first. */
struct gil_of_process {
	const struct profile_gil *rows;
	size_t count;		/* threads */
	uint64_t samples;	/* in which it was known */
	uint64_t held, waiting; /* of these */
	double share; /* of the time that the process was recorded: held by a thread that ran */
};

struct gil_table {
	struct profile_gil *rows;
	struct gil_of_process *processes; /* where it was held longest first */
	size_t count;
};

/* fini is due in any case. Without memory it is empty. */
void gil_table__init(struct gil_table *t, const struct profile *p);
void gil_table__fini(struct gil_table *t);

/* "python3 (pid 7): held in 97.3 % of 4000 samples of 2 threads, …". It may contain any bytes. */
#define GIL_TEXT_SIZE 512
void describe_gil(char *text, size_t size, const struct profile *p,
		  const struct gil_of_process *gil);

/* The member "gil", an array with an object for each process, if there is one. */
void write_gils(const struct profile *p, struct json_writer *w);

#endif
