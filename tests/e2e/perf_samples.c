/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * perf_samples FILE: the samples of a perf.data file as the program has them, for tests that compare
 * them with those of perf script. A line a sample, tabs between: name of the thread, pid, tid, time,
 * weight, events, and the frames, innermost first: ADDRESS|FUNCTION, in the file or of the kernel.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "session/copied_stacks.h"
#include "window/replay.h"

/* Of an inlined chain the function that it is in, which has the symbol. */
static const char *function_of(const struct profile *p, const struct profile_location *l)
{
	const struct profile_line *last = &p->lines[l->first_line + l->line_count - 1];

	return l->line_count ? profile__string(p, p->functions[last->function.v].name) : "";
}

static void print_stack(const struct profile *p, struct stack_id id)
{
	for (; id.v; id = p->stacks[id.v].parent) {
		const struct profile_location *l = &p->locations[p->stacks[id.v].location.v];

		printf("\t%" PRIx64 "|%s", l->address, function_of(p, l));
	}
	putchar('\n');
}

static void print_thread(const struct profile *p, const struct profile_thread *t)
{
	const struct profile_samples *s = &t->samples[SAMPLE_CPU];

	for (size_t i = 0; i < s->count; i++) {
		printf("%s\t%u\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
		       profile__string(p, s->comm[i]), p->processes[t->process.v].pid, t->tid,
		       s->time[i], s->weight[i], profile_samples__events(s, i));
		print_stack(p, s->stack[i]);
	}
}

int main(int argc, char **argv)
{
	_cleanup_close_ int fd = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
	struct replay_options options = {.walk = copied_stacks__walk};
	struct perf_data_summary summary;
	struct failure failure = {};
	const struct profile *p;
	struct copied_stacks *stacks;
	struct windows *windows;

	if (copied_stacks__new(&stacks))
		return 1;
	options.walker = stacks;
	if (fd < 0 || replay_perf_data(fd, argv[1], &options, &windows, &p, &summary, &failure)) {
		fprintf(stderr, "perf_samples: %s\n", failure.what);
		return 1;
	}
	for (size_t i = 1; i < p->thread_count; i++)
		print_thread(p, &p->threads[i]);
	windows__free(windows);
	copied_stacks__free(stacks);
	return 0;
}
