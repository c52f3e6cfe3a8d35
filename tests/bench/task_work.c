/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * task_work CPU SECONDS
 *
 * Prints "scheduled N refused N ran N schedule_ns N wait_ns N read_ns N", means, of task_work.bpf.c at
 * 999 Hz on CPU. Exit status 3: this kernel has no such work.
 */
#include <bpf/btf.h>
#include <inttypes.h>
#include <linux/btf.h>
#include <linux/perf_event.h>

#include "task_work.skel.h"

#include "../fixtures/fixture.h"

static uint64_t mean(uint64_t sum, uint64_t count)
{
	return count ? sum / count : 0;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NSEC_PER_SEC / 999,
	};
	struct task_work_bpf *skeleton;
	uint64_t duration;
	int event;

	if (argc != 3)
		die(2, "usage: task_work CPU SECONDS");
	duration = parse_duration(argv[2]);
	libbpf_set_print(NULL);
	if (btf__find_by_name_kind(btf__load_vmlinux_btf(), "bpf_task_work_schedule_resume_impl",
				   BTF_KIND_FUNC) < 0)
		die(3, "no bpf_task_work_schedule_resume_impl() here");
	skeleton = task_work_bpf__open_and_load();
	if (!skeleton)
		die(1, "cannot load: %s", strerror(errno));
	event = (int)syscall(SYS_perf_event_open, &attr, -1, parse_cpu(argv[1]), -1,
			     PERF_FLAG_FD_CLOEXEC);
	if (event < 0 || !bpf_program__attach_perf_event(skeleton->progs.tick, event))
		die(1, "cannot attach: %s", strerror(errno));
	usleep((useconds_t)(duration / 1000));
	printf("scheduled %llu refused %llu ran %llu schedule_ns %" PRIu64 " wait_ns %" PRIu64
	       " read_ns %" PRIu64 "\n",
	       skeleton->bss->scheduled, skeleton->bss->refused, skeleton->bss->ran,
	       mean(skeleton->bss->schedule_ns, skeleton->bss->scheduled),
	       mean(skeleton->bss->wait_ns, skeleton->bss->ran),
	       mean(skeleton->bss->read_ns, skeleton->bss->ran));
	return 0;
}
