/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * softirq_ticks
 *
 * For each line on standard input prints "VECTOR TICKS" for what softirq_ticks.bpf.c has counted since the begin, of all
 * recorders that are children of this program's parent, and an empty line.
 */
#include <bpf/bpf.h>

#include "softirq_ticks.skel.h"

#include "../fixtures/fixture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

static unsigned long long ticks_of(const struct softirq_ticks_bpf *skeleton, size_t vector)
{
	unsigned long long ticks = 0;

	for (size_t cpu = 0; cpu < COUNT_OF(skeleton->bss->softirq_ticks); cpu++)
		ticks += skeleton->bss->softirq_ticks[cpu][vector];
	return ticks;
}

int main(void)
{
	struct softirq_ticks_bpf *skeleton;
	char line[16];

	libbpf_set_print(NULL);
	skeleton = softirq_ticks_bpf__open_and_load();
	if (!skeleton ||
	    bpf_prog_test_run_opts(bpf_program__fd(skeleton->progs.find_parent), NULL) ||
	    softirq_ticks_bpf__attach(skeleton))
		die(1, "cannot attach to the tracepoints of softirqs and timers: %s",
		    strerror(errno));
	while (fgets(line, sizeof(line), stdin)) {
		for (size_t vector = 0; vector < COUNT_OF(*skeleton->bss->softirq_ticks); vector++)
			printf("%zu %llu\n", vector, ticks_of(skeleton, vector));
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
