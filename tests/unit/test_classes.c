/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of classes of processes in docs/SECURITY.md, which --print prints; confine(). */
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "document_table.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "tenants/classes.h"
#include "tenants/confine.h"

#define SECOND 1000000000ull

static const char *const labels[HELPER_CLASS_COUNT] = {
	[HELPER_READER_KEEPER] = "keeper of readers",
	[HELPER_WATCHER_KEEPER] = "keeper of JIT watchers",
	[HELPER_SEALED_KEEPER] = "keeper of builders, keeper of sandboxed readers",
	[HELPER_READER] = "reader",
	[HELPER_WATCHER] = "JIT watcher",
	[HELPER_JVM_CLIENT] = "JVM client",
	[HELPER_FINDER] = "file finder",
	[HELPER_DOWNLOADER] = "file finder with `--debuginfod`",
	[HELPER_BUILDER] = "builder",
	[HELPER_SYMBOLS] = "sandboxed reader",
	[HELPER_PERF_READER] = "reader of perf.data",
	[HELPER_SERVER] = "server of `record --open`",
	[HELPER_VISITOR] = "visitor",
};

#define NAME_OF(name)                                                                              \
	{                                                                                          \
		CAP_##name, #name                                                                  \
	}
static const struct {
	int capability;
	const char *name;
} capability_names[] = {
	NAME_OF(DAC_OVERRIDE),
	NAME_OF(DAC_READ_SEARCH),
	NAME_OF(FOWNER),
	NAME_OF(KILL),
	NAME_OF(SETGID),
	NAME_OF(SETUID),
	NAME_OF(SYS_CHROOT),
	NAME_OF(SYS_PTRACE),
	NAME_OF(SYS_ADMIN),
	NAME_OF(MAC_OVERRIDE),
	NAME_OF(CHECKPOINT_RESTORE),
};

static void print_capabilities(FILE *out, const struct helper_class *class)
{
	uint64_t left = class->capabilities;
	const char *separator = "";

	if (class->as_parent)
		fprintf(out, "drops them itself");
	else if (!left)
		fprintf(out, "none");
	for (size_t i = 0; i < sizeof(capability_names) / sizeof(capability_names[0]); i++) {
		uint64_t bit = 1ull << capability_names[i].capability;

		if (!(left & bit))
			continue;
		fprintf(out, "%s%s", separator, capability_names[i].name);
		separator = ", ";
		left &= ~bit;
	}
	assert_int_equal(left, 0); /* each has a name above */
}

static void print_limits(FILE *out, const struct helper_class *class)
{
	const uint64_t values[] = {
		class->memory >> 20,	 class->cpu_seconds,	    class->files,
		class->silence / SECOND, class->wall_time / SECOND, class->hangs};
	const char *const units[] = {
		" MB",		" s of CPU",
		" descriptors", " s without progress",
		" s a request", class->hangs == 1 ? " hang a user" : " hangs a user",
	};
	const char *separator = "";

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		if (!values[i])
			continue;
		fprintf(out, "%s%" PRIu64 "%s", separator, values[i], units[i]);
		separator = ", ";
	}
}

static void print_class(FILE *out, enum helper_class_id id)
{
	static const char *const users[] = {
		[HELPER_USER_SAME] = "the collector's",
		[HELPER_USER_OWN] = "one of its own",
		[HELPER_USER_GIVEN] = "the JVM's",
	};
	static const char *const filters[HELPER_FILTER_COUNT] = {
		[HELPER_FILTER_NONE] = "all",
		[HELPER_FILTER_WORKER] = "a list",
		[HELPER_FILTER_SEALED] = "a list; the parent opens files",
	};
	const struct helper_class *class = &helper_classes[id];

	fprintf(out, "| %s | ", labels[id]);
	print_capabilities(out, class);
	fprintf(out, " | %s | %s | %s | ", class->as_parent ? "SUDO_UID" : users[class->user],
		class->empty_root ? "empty" : "the collector's", filters[class->filter]);
	print_limits(out, class);
	fprintf(out, " |\n");
}

static void print_table(FILE *out)
{
	fprintf(out, "| class | capabilities | user | root directory | system calls | limits |\n"
		     "|---|---|---|---|---|---|\n");
	for (int id = 0; id < HELPER_CLASS_COUNT; id++)
		print_class(out, id);
}

/* System call `number` fails from now on. */
static void refuse_call(int number)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	const struct sock_fprog program = {sizeof(code) / sizeof(code[0]), code};

	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		_exit(2);
}

static int confine_without_limits(void)
{
	struct __user_cap_header_struct version = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
	const struct confine_options options = {};

	refuse_call(SYS_prlimit64);
	if (confine(&helper_classes[HELPER_SYMBOLS], &options) != -EPERM)
		return 3;
	if (syscall(SYS_capget, &version, data) || data[0].permitted || data[1].permitted)
		return 4;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 && geteuid() ? 0 : 5;
}

TEST(user_and_capabilities_are_given_up_if_limits_fail)
{
	int status;
	pid_t child;

	if (geteuid())
		skip(); /* needs root */
	child = fork();
	if (!child)
		_exit(confine_without_limits());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

DOCUMENT_TABLE(print_table);
