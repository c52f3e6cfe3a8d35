/* SPDX-License-Identifier: BSD-2-Clause */
/* features: the report about this machine, and about one where something is missing. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <linux/capability.h>

#include "unit.h"
#include "live/capture/features.h"
#include "live/capture/target.h"

static struct features *probe(void)
{
	struct features *features = NULL;

	assert_int_equal(features__probe(&features), 0);
	return features;
}

/* It has to be in the list. */
static const struct feature *find(const struct features *features, const char *name)
{
	size_t count;
	const struct feature *feature = features__list(features, &count);

	while (count-- && strcmp(feature->name, name))
		feature++;
	return feature;
}

TEST(list_is_well_formed)
{
	struct features *features = probe();
	size_t count;
	const struct feature *list = features__list(features, &count);

	assert_true(count > 20);
	for (size_t i = 0; i < count; i++) {
		assert_non_null(list[i].group);
		assert_non_null(list[i].cost);
		if (list[i].level != FEATURE_INFO)
			assert_true(list[i].cost[0]);
		if (list[i].level == FEATURE_REQUIRED && !list[i].available)
			assert_true(list[i].remedy[0]);
		if (list[i].available)
			assert_string_equal(list[i].remedy, "");
	}
	features__free(features);
	features__free(NULL);
}

TEST(a_kernel_that_only_interprets_programs_has_a_remedy)
{
	struct failure why = {};

	assert_int_equal(features_explain(&why, -524, "cannot load"), -524);
	assert_non_null(strstr(why.what, "interprets eBPF"));
	assert_non_null(strstr(why.remedy, "net.core.bpf_jit_enable=1"));
}

TEST(root_can_record)
{
	struct features *features;

	if (geteuid()) {
		print_message("needs root\n");
		skip();
	}
	features = probe();
	assert_true(features__can_record(features));
	assert_true(find(features, "bpf")->available);
	assert_true(find(features, "cpu-clock")->available);
	features__free(features);
}

/* Run in a child, which may throw away what it likes. Its exit status is 0 if all went well. */
static void in_child(void (*body)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid) {
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			print_error("line %d: %s\n", __LINE__, #condition);                        \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void drop(uint64_t keep)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {};

	data[0].effective = data[0].permitted = (uint32_t)keep;
	data[1].effective = data[1].permitted = keep >> 32;
	CHECK(!syscall(SYS_capset, &header, data));
}

static void without_capabilities(void)
{
	struct features *features;
	struct failure why = {};

	drop(0);
	CHECK(!features__probe(&features));
	CHECK(!features__can_record(features));
	CHECK(!find(features, "cap_bpf")->available);
	CHECK(!find(features, "cap_perfmon")->available);
	CHECK(!find(features, "bpf")->available);
	CHECK(strstr(find(features, "bpf")->detail, "CAP_BPF and CAP_PERFMON"));
	CHECK(strstr(find(features, "bpf")->remedy, "setcap"));
	CHECK(!find(features, "map-files")->available);
	CHECK(features_explain(&why, -EPERM, "cannot do it") == -EPERM);
	CHECK(strstr(why.what, "cannot do it") == why.what);
	CHECK(strstr(why.what, "missing CAP_BPF and CAP_PERFMON"));
	features__free(features);
}

static void without_perfmon(void)
{
	struct features *features;

	drop(1ull << CAP_BPF);
	CHECK(!features__probe(&features));
	CHECK(find(features, "cap_bpf")->available);
	CHECK(!find(features, "cap_perfmon")->available);
	CHECK(!strstr(find(features, "bpf")->detail, "CAP_BPF"));
	CHECK(strstr(find(features, "bpf")->detail, "CAP_PERFMON"));
	features__free(features);
}

static void with_just_enough(void)
{
	struct features *features;

	drop(1ull << CAP_BPF | 1ull << CAP_PERFMON);
	CHECK(!features__probe(&features));
	CHECK(features__can_record(features));
	features__free(features);
}

static void without_btf(void)
{
	struct features *features;
	struct failure why = {};

	CHECK(!unshare(CLONE_NEWNS));
	CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!mount("none", "/sys/kernel/btf", "tmpfs", 0, NULL));
	CHECK(!features__probe(&features));
	CHECK(!find(features, "btf")->available);
	CHECK(!find(features, "bpf")->available);
	CHECK(strstr(find(features, "bpf")->detail, "/sys/kernel/btf/vmlinux"));
	CHECK(!features__can_record(features));
	CHECK(features_explain(&why, -ESRCH, "cannot load") == -ESRCH);
	CHECK(strstr(why.remedy, "CONFIG_DEBUG_INFO_BTF"));
	features__free(features);
}

static void without_files(void)
{
	struct rlimit few = {3, 3};
	struct failure why = {};

	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	CHECK(features_explain(&why, -EMFILE, "cannot open") == -EMFILE);
	CHECK(strstr(why.what, "RLIMIT_NOFILE is 3"));
	CHECK(strstr(why.remedy, "ulimit -n"));
}

static void without_proc(void)
{
	struct pid_namespace ns = {};
	struct failure why = {};

	CHECK(!unshare(CLONE_NEWNS));
	CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	CHECK(!pid_namespace__detect(&ns, &why));
	CHECK(!umount2("/proc", MNT_DETACH));
	CHECK(pid_namespace__detect(&ns, &why) < 0);
	CHECK(strstr(why.remedy, "mount -t proc"));
}

static void in_own_pid_namespace(void)
{
	struct pid_namespace ns = {};
	struct failure why = {};
	int status;
	pid_t pid;

	CHECK(!unshare(CLONE_NEWNS | CLONE_NEWPID));
	CHECK(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		/* /proc is still the old one */
		CHECK(pid_namespace__detect(&ns, &why) == -EXDEV);
		CHECK(strstr(why.what, "another pid namespace"));
		CHECK(!mount("proc", "/proc", "proc", 0, NULL));
		CHECK(!pid_namespace__detect(&ns, &why));
		CHECK(ns.inode);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && !WEXITSTATUS(status));
}

TEST(what_is_missing_is_named)
{
	static void (*const bodies[])(void) = {
		without_capabilities, without_perfmon, with_just_enough,     without_btf,
		without_files,	      without_proc,    in_own_pid_namespace,
	};

	if (geteuid()) {
		print_message("needs root\n");
		skip();
	}
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		in_child(bodies[i]);
}

TEST(targets_are_checked)
{
	struct failure why = {};
	pid_t zombie = fork();
	siginfo_t info;

	if (!zombie)
		_exit(0);
	assert_int_equal(waitid(P_PID, zombie, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(target_check_process(zombie, &why), -ECHILD);
	assert_non_null(strstr(why.what, "zombie"));
	waitpid(zombie, NULL, 0);
	assert_int_equal(target_check_process(zombie, &why), -ESRCH);
	assert_non_null(strstr(why.what, "process"));
	assert_int_equal(target_check_thread(zombie, &why), -ESRCH);
	assert_int_equal(target_check_process(getpid(), &why), 0);
	assert_int_equal(target_check_thread(getpid(), &why), 0);
	assert_int_equal(target_process_of(getpid()), getpid());
	/* 2 is kthreadd, in the initial pid namespace */
	if (target_process_of(2) == 2 && target_check_process(2, &why) == -ENOTSUP)
		assert_non_null(strstr(why.remedy, "-a"));
}

/* A name that looks like the fields behind it. */
TEST(names_do_not_confuse)
{
	struct failure why = {};
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, "x) Z 1\nTgid:\t1");
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(target_check_process(pid, &why), 0);
	assert_int_equal(target_process_of(pid), pid);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(ready[0]);
	close(ready[1]);
}
