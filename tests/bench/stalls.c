/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stalls LONGEST EACH COMMAND…
 *
 * Runs COMMAND, and each EACH seconds keeps each CPU in an interrupt for up to LONGEST seconds (below 4), by stalls.bpf.c. The
 * status is that of COMMAND.
 */
#include <linux/perf_event.h>
#include <sys/wait.h>

#include "stalls.skel.h"

#include "../fixtures/fixture.h"

static void stall_cpu(const struct stalls_bpf *skeleton, int cpu, uint64_t each)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		/* CPUs that stall at other times */
		.sample_period = each + each / 8 * (unsigned int)cpu,
	};
	int event = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (event < 0 && errno == ENODEV) /* offline */
		return;
	if (event < 0 || !bpf_program__attach_perf_event(skeleton->progs.stall, event))
		die(1, "cannot attach: %s", strerror(errno));
}

int main(int argc, char **argv)
{
	struct stalls_bpf *skeleton;
	int status;
	pid_t pid;

	if (argc < 4)
		die(2, "usage: stalls LONGEST EACH COMMAND…");
	libbpf_set_print(NULL);
	skeleton = stalls_bpf__open();
	if (!skeleton)
		die(1, "cannot open: %s", strerror(errno));
	skeleton->rodata->longest = parse_duration(argv[1]);
	if (stalls_bpf__load(skeleton))
		die(1, "cannot load: %s", strerror(errno));
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++)
		stall_cpu(skeleton, cpu, parse_duration(argv[2]));
	pid = fork();
	if (!pid) {
		execvp(argv[3], argv + 3);
		die(127, "cannot execute %s: %s", argv[3], strerror(errno));
	}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
