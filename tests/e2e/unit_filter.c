/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unit_filter CALLS FAMILIES COMMAND…: runs a program under the system call filters that systemd makes of a unit's
 * SystemCallFilter= (CALLS is a file of names; what is not there kills), RestrictAddressFamilies= (numbers with commas
 * between) and MemoryDenyWriteExecute=yes.
 */
#include <errno.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <unistd.h>

static void check(int err, const char *what)
{
	if (!err)
		return;
	fprintf(stderr, "unit_filter: %s: %s\n", what, strerror(-err));
	exit(125);
}

/* Names of other architectures and of newer kernels are in systemd's lists as well. */
static void allow_calls(const char *path)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	FILE *file = fopen(path, "re");
	char name[64];
	int allowed = 0;

	check(file && filter ? 0 : -errno, path);
	while (fscanf(file, "%63s", name) == 1) {
		int number = seccomp_syscall_resolve_name(name);

		if (number < 0)
			continue;
		check(seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0), name);
		allowed++;
	}
	fclose(file);
	check(allowed > 100 ? 0 : -EINVAL, "hardly a system call is in the list");
	check(seccomp_load(filter), "filter");
	seccomp_release(filter);
}

static void deny_families(const char *allowed)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	unsigned long long set = 0;
	char *end;

	for (const char *p = allowed; *p; p = *end == ',' ? end + 1 : end) {
		set |= 1ull << strtoul(p, &end, 10);
		check(end == p ? -EINVAL : 0, allowed);
	}
	for (unsigned int family = 0; family < AF_MAX; family++)
		if (!(set >> family & 1))
			check(seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT),
					       SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, family)),
			      "families");
	check(seccomp_load(filter), "filter");
	seccomp_release(filter);
}

static void deny_code(void)
{
	const unsigned int both = PROT_WRITE | PROT_EXEC;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(mmap), 1,
				   SCMP_A2(SCMP_CMP_MASKED_EQ, both, both));

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(mprotect), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(pkey_mprotect), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(shmat), 1,
				       SCMP_A2(SCMP_CMP_MASKED_EQ, SHM_EXEC, SHM_EXEC));
	check(err, "memory");
	check(seccomp_load(filter), "filter");
	seccomp_release(filter);
}

int main(int argc, char **argv)
{
	if (argc < 4)
		return fprintf(stderr, "usage: unit_filter CALLS FAMILIES COMMAND…\n"), 125;
	/* the strictest last: it forbids what loads the others */
	deny_code();
	deny_families(argv[2]);
	allow_calls(argv[1]);
	execv(argv[3], argv + 3);
	check(-errno, argv[3]);
	return 125;
}
