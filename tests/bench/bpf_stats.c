/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bpf_stats
 *
 * Lets the kernel count runs and time of BPF programs for as long as it lives. Each line on
 * standard input is the number of a program; the answer is "RUNS NS VERIFIED_INSNS NAME", or "gone".
 *
 * The kernel's figure contains about one reading of its clock a run: helper_cost shows how much
 * that is, from a program that does nothing.
 */
#include <linux/bpf.h>

#include "../fixtures/fixture.h"

static long bpf(enum bpf_cmd command, union bpf_attr *attr)
{
	return syscall(SYS_bpf, command, attr, sizeof(*attr));
}

static int enable_stats(void)
{
	union bpf_attr attr = {.enable_stats = {.type = BPF_STATS_RUN_TIME}};

	return (int)bpf(BPF_ENABLE_STATS, &attr);
}

static void answer(uint32_t id)
{
	union bpf_attr by_id = {.prog_id = id}, by_fd = {};
	struct bpf_prog_info info = {};
	long fd = bpf(BPF_PROG_GET_FD_BY_ID, &by_id);

	by_fd.info.bpf_fd = (uint32_t)fd;
	by_fd.info.info_len = sizeof(info);
	by_fd.info.info = (uintptr_t)&info;
	if (fd < 0 || bpf(BPF_OBJ_GET_INFO_BY_FD, &by_fd))
		fact("gone");
	else
		fact("%llu %llu %u %.*s", (unsigned long long)info.run_cnt,
		     (unsigned long long)info.run_time_ns, info.verified_insns,
		     (int)sizeof(info.name), info.name);
	if (fd >= 0)
		close((int)fd);
}

int main(void)
{
	char line[32];

	if (enable_stats() < 0)
		die(1, "cannot enable BPF statistics: %s", strerror(errno));
	fact("ready");
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = '\0';
		answer((uint32_t)parse_number(line, 1, UINT32_MAX));
	}
	return 0;
}
