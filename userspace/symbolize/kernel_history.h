/* SPDX-License-Identifier: BSD-2-Clause */
/* Kernel code that comes and goes: which function was at an address when. */
#ifndef SYMBOLIZE_KERNEL_HISTORY_H
#define SYMBOLIZE_KERNEL_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "stream/kernel_code.h"

struct kallsyms;
struct kernel_function;

struct kernel_span {
	uint64_t start, end;
	uint64_t from, until; /* CLOCK_MONOTONIC ns; KERNEL_STAYS: it is still there */
	bool is_sure;	      /* the kernel reported when it came */
	char *name;	      /* owned; "": not shown */
	const char *module;   /* behind the name's NUL; NULL: none */
};
#define KERNEL_STAYS UINT64_MAX

/* Zero-initialised. */
struct kernel_history {
	VEC(struct kernel_span) spans; /* in the order of `start` */
	uint64_t longest;	       /* of any span so far, bytes */
	uint64_t steps, look_steps; /* of reports and of look-ups: the spans compared since … */
	uint64_t blind_from;	    /* what came later was not compared; 0: all was */
	bool left;		    /* … kernel_history__forget(): more than are kept */
};

void kernel_history__fini(struct kernel_history *h);

/* In the order of time. What was in the range ends. 0 or -ENOMEM. */
int kernel_history__add(struct kernel_history *h, const struct kernel_code *code, uint64_t time);
/* Also of code whose beginning was not reported: it was there before. */
int kernel_history__remove(struct kernel_history *h, const struct kernel_code *code, uint64_t time);
/* A function that was read from kallsyms: it was there from `from` on, or later, to `until`. */
int kernel_history__keep(struct kernel_history *h, const struct kernel_function *f, uint64_t from,
			 uint64_t until);

/*
 * Compares with a reading of kallsyms that began at `time`: code that it lacks has ended; the
 * reading loses what is known here. 0 or -ENOMEM.
 */
int kernel_history__meet(struct kernel_history *h, struct kallsyms *reading, uint64_t time);

/* NULL: nothing is known, or two functions are possible, or a limit was met before. */
const struct kernel_span *kernel_history__at(struct kernel_history *h, uint64_t address,
					     uint64_t time);
/* Has code come to the address, or left it, after `from` and up to `until`? Beyond a limit: yes. */
bool kernel_history__changed(struct kernel_history *h, uint64_t address, uint64_t from,
			     uint64_t until);

/* No earlier time is looked up any more. */
void kernel_history__forget(struct kernel_history *h, uint64_t time);

#endif
