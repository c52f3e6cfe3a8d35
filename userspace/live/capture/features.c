/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/features.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <linux/capability.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <sysprof/bpf_shared.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "live/capture/bpf_session.h"
#include "live/capture/cpu_visit.h"
#include "live/capture/kernel_types.h"
#include "live/capture/perf_events.h"
#include "live/capture/tick_source.h"
#include "live/capture/target.h"

#include "features.skel.h"

#define BTF_PATH	 "/sys/kernel/btf/vmlinux"
#define LOCKDOWN_PATH	 "/sys/kernel/security/lockdown"
#define PARANOID_PATH	 "/proc/sys/kernel/perf_event_paranoid"
#define KPTR_PATH	 "/proc/sys/kernel/kptr_restrict"
#define SAMPLE_RATE_PATH "/proc/sys/kernel/perf_event_max_sample_rate"
#define MLOCK_PATH	 "/proc/sys/kernel/perf_event_mlock_kb"
#define JIT_PATH	 "/proc/sys/net/core/bpf_jit_enable"
#define FDS_BESIDES	 256 /* maps, programs, the files of mappings */
#define RATE		 999
/* The kernel's own number, of bpf() for a program that it can only interpret. */
#define KERNEL_ENOTSUPP 524

struct features {
	VEC(struct feature) list;
	int error;
};

/* ---- the state of the system ----------------------------------------------------------------- */

/* Effective capabilities of this process, by number. */
static uint64_t effective_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	if (syscall(SYS_capget, &header, data))
		return 0;
	return data[0].effective | (uint64_t)data[1].effective << 32;
}

static bool has_capability(unsigned int number)
{
	return effective_capabilities() >> number & 1;
}

/* CAP_SYS_ADMIN stands in for the two that were split off from it in 5.8. */
static bool may_bpf(void)
{
	return has_capability(CAP_BPF) || has_capability(CAP_SYS_ADMIN);
}

static bool may_perfmon(void)
{
	return has_capability(CAP_PERFMON) || has_capability(CAP_SYS_ADMIN);
}

static long read_number(const char *path, long otherwise)
{
	char text[64];

	return read_line(path, text, sizeof(text)) ? otherwise : strtol(text, NULL, 10);
}

/* The chosen word of "none [integrity] confidentiality". False: there is no lockdown. */
static bool lockdown_mode(char *mode, size_t size)
{
	char text[128], *open, *close;

	if (read_line(LOCKDOWN_PATH, text, sizeof(text)))
		return false;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close)
		return false;
	*close = '\0';
	snprintf(mode, size, "%s", open + 1);
	return true;
}

static bool locked_down(void)
{
	char mode[32];

	return lockdown_mode(mode, sizeof(mode)) && !strcmp(mode, "confidentiality");
}

/* Are our capabilities good for our own user namespace only? */
static bool in_user_namespace(void)
{
	char text[128];
	unsigned long first, outside, count;

	if (read_line("/proc/self/uid_map", text, sizeof(text)) ||
	    sscanf(text, "%lu %lu %lu", &first, &outside, &count) != 3)
		return false;
	return first != 0 || outside != 0 || count != UINT32_MAX;
}

static bool under_seccomp(void)
{
	_cleanup_free_ char *text = NULL;
	char *line;
	size_t size;

	if (read_file_at(AT_FDCWD, "/proc/self/status", 64u * 1024, &text, &size))
		return false;
	line = strstr(text, "\nSeccomp:");
	return line && strtol(line + strlen("\nSeccomp:"), NULL, 10) == 2;
}

/* ---- why a call failed ----------------------------------------------------------------------- */

#define GRANT                                                                                      \
	"run as root (sudo sysprof …), or: setcap "                                              \
	"cap_bpf,cap_perfmon,cap_sys_ptrace,cap_syslog,cap_ipc_lock,cap_dac_read_search,"          \
	"cap_checkpoint_restore=ep \"$(command -v sysprof)\""

static int explain_eperm(struct failure *f, int error, const char *attempt)
{
	const char *errno_text = strerror(-error);
	struct rlimit locked = {};

	if (!may_bpf() || !may_perfmon()) {
		fail(f, error, "%s: %s: missing %s%s%s", attempt, errno_text,
		     may_bpf() ? "" : "CAP_BPF", !may_bpf() && !may_perfmon() ? " and " : "",
		     may_perfmon() ? "" : "CAP_PERFMON");
		return fail_remedy(f, error, GRANT);
	}
	if (in_user_namespace()) {
		fail(f, error, "%s: %s: capabilities apply only inside this user namespace",
		     attempt, errno_text);
		return fail_remedy(f, error,
				   "run outside of the user namespace, as root of the host");
	}
	if (locked_down()) {
		fail(f, error, "%s: %s: kernel lockdown is in confidentiality mode", attempt,
		     errno_text);
		return fail_remedy(f, error,
				   "boot with lockdown=integrity, or without Secure Boot; see %s",
				   LOCKDOWN_PATH);
	}
	if (under_seccomp()) {
		fail(f, error, "%s: %s: blocked by a seccomp filter (container?)", attempt,
		     errno_text);
		return fail_remedy(f, error,
				   "docker run --privileged --pid=host …, or "
				   "--security-opt seccomp=unconfined");
	}
	if (!has_capability(CAP_IPC_LOCK)) {
		fail(f, error, "%s: %s: missing CAP_IPC_LOCK, and the limit in %s is reached",
		     attempt, errno_text, MLOCK_PATH);
		return fail_remedy(f, error, "sysctl -w kernel.perf_event_mlock_kb=65536");
	}
	getrlimit(RLIMIT_MEMLOCK, &locked);
	fail(f, error,
	     "%s: %s: forbidden by a security module or a limit (kernel.perf_event_paranoid is %ld; "
	     "before Linux 5.11 RLIMIT_MEMLOCK, which is %llu)",
	     attempt, errno_text, read_number(PARANOID_PATH, -2),
	     (unsigned long long)locked.rlim_cur);
	return fail_remedy(f, error,
			   "sysctl -w kernel.perf_event_paranoid=-1; "
			   "ulimit -l unlimited; see also dmesg");
}

int features_explain(struct failure *f, int error, const char *attempt)
{
	struct rlimit limit = {};

	if (error == -EPERM || error == -EACCES)
		return explain_eperm(f, error, attempt);
	if (error == -EMFILE || error == -ENFILE) {
		getrlimit(RLIMIT_NOFILE, &limit);
		fail(f, error, "%s: open file limit reached (RLIMIT_NOFILE is %llu)", attempt,
		     (unsigned long long)limit.rlim_cur);
		return fail_remedy(f, error, "ulimit -n 65536");
	}
	if (access(BTF_PATH, R_OK)) {
		fail(f, error, "%s: the kernel has no BTF (" BTF_PATH ")", attempt);
		return fail_remedy(f, error,
				   "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (distribution "
				   "kernels have it); in a container, mount /sys");
	}
	if (error == -KERNEL_ENOTSUPP) {
		fail(f, error,
		     "%s: the kernel interprets eBPF instead of compiling it (" JIT_PATH ": %ld)",
		     attempt, read_number(JIT_PATH, -1));
		return fail_remedy(
			f, error,
			"sysctl -w net.core.bpf_jit_enable=1, or a kernel with CONFIG_BPF_JIT=y");
	}
	if (error == -ENOSYS) {
		fail(f, error, "%s: the kernel was built without perf events or eBPF", attempt);
		return fail_remedy(f, error,
				   "boot a kernel with CONFIG_PERF_EVENTS=y and "
				   "CONFIG_BPF_SYSCALL=y");
	}
	if (error == -ENOMEM) {
		getrlimit(RLIMIT_MEMLOCK, &limit);
		fail(f, error,
		     "%s: out of memory, or of memory that may be locked (RLIMIT_MEMLOCK is %llu)",
		     attempt, (unsigned long long)limit.rlim_cur);
		return fail_remedy(f, error, "ulimit -l unlimited");
	}
	fail(f, error, "%s: %s", attempt, strerror(-error));
	return fail_remedy(f, error, "sysprof check (lists what is missing)");
}

/* ---- the list -------------------------------------------------------------------------------- */

/* `remedy`: for a missing feature; "": there is none. */
__attribute__((format(printf, 8, 9))) static void
add_feature(struct features *f, const char *group, const char *name, enum feature_level level,
	    bool available, const char *cost, const char *remedy, const char *detail, ...)
{
	struct feature feature = {
		.group = group,
		.name = name,
		.level = level,
		.available = available,
		.cost = cost,
	};
	va_list args;

	va_start(args, detail);
	vsnprintf(feature.detail, sizeof(feature.detail), detail, args);
	va_end(args);
	snprintf(feature.remedy, sizeof(feature.remedy), "%s", available ? "" : remedy);
	if (vec_push(&f->list, feature))
		f->error = -ENOMEM;
}

/* An attempt with this result, negative errno or not. Finds the cause and the remedy. */
static void add_attempt(struct features *f, const char *name, enum feature_level level, int result,
			const char *cost)
{
	struct failure why = {};

	if (result < 0)
		features_explain(&why, result, name);
	/* "name: cause" */
	add_feature(f, "kernel", name, level, result >= 0, cost, why.remedy, "%s",
		    result < 0 ? why.what + strlen(name) + strlen(": ") : "");
}

static int print_nothing(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level;
	(void)format;
	(void)args;
	return 0;
}

/* Opens an event and closes it again. */
static int try_fd(int fd)
{
	if (fd >= 0)
		close(fd);
	return fd;
}

static int first_cpu(void)
{
	return (int)read_number(CPUS_ONLINE, 0);
}

static void probe_bpf(struct features *f)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);
	struct features_bpf *skel;
	int err, fd;

	libbpf_set_print(print_nothing);
	skel = features_bpf__open();
	err = (skel ? features_bpf__load(skel) : -errno)
		      ?: bpf_prog_test_run_opts(bpf_program__fd(skel->progs.probe), &options);
	if (!err && !skel->bss->ran)
		err = -EIO;
	add_attempt(f, "bpf", FEATURE_REQUIRED, err, "nothing can be recorded");
	if (!err) {
		fd = bpf_raw_tracepoint_open(HOOK_FORK, bpf_program__fd(skel->progs.probe));
		add_attempt(f, "raw-tracepoints", FEATURE_REQUIRED, try_fd(fd),
			    "children of a target cannot be followed");
		add_feature(
			f, "kernel", "task-pt-regs", FEATURE_WANTED, skel->bss->task_pt_regs,
			"user stacks of samples in the kernel depend on the layout of kernel stacks",
			"boot Linux 5.15 or later", "since 5.15");
		add_feature(f, "kernel", "typed-task", FEATURE_INFO, skel->bss->typed_task,
			    "each sample costs about 100 ns more", "", "since 5.11");
		add_feature(f, "kernel", "rq-clock", FEATURE_WANTED, skel->bss->rq_clock,
			    "the CPU time of a sample is less exact where a hypervisor steals time",
			    "boot a kernel with CONFIG_FAIR_GROUP_SCHED=y",
			    "CONFIG_FAIR_GROUP_SCHED");
	}
	features_bpf__destroy(skel);
}

static void probe_perf(struct features *f)
{
	const struct tick_rate rate = {.hz = RATE};
	struct tick_source source;
	int cpu = first_cpu(), fd;

	tick_source__find(TICK_SOURCE_DEFAULT, &source, NULL);
	add_attempt(f, "cpu-clock", FEATURE_REQUIRED, try_fd(tick_event_open(&source, cpu, &rate)),
		    "nothing can be recorded");
	add_attempt(f, "sample-ring", FEATURE_REQUIRED, try_fd(output_event_open(cpu, 4096)),
		    "nothing can be recorded");
	add_attempt(f, "sideband", FEATURE_REQUIRED, try_fd(sideband_event_open(cpu, 4096, false)),
		    "mappings, thread names and forks cannot be followed");
	tick_source__find("cycles", &source, NULL);
	fd = try_fd(tick_event_open(&source, cpu, &rate));
	add_feature(f, "kernel", "hardware-pmu", FEATURE_INFO, fd >= 0,
		    "-e cycles and other hardware events do not work; cpu-clock does", "", "%s",
		    fd < 0 ? strerror(-fd) : "");
}

/* By functions of the kernel that the programs call. */
enum visits features_visits(const struct kernel_types *types)
{
	static const char *const called[] = {"bpf_iter_task_new", "bpf_task_from_pid",
					     "bpf_rcu_read_lock"};
	/* a program of a task iterator may sleep; 6.1 lets a process without privileges run it */
	static const char *const copies[] = {"bpf_copy_from_user_task", "bpf_user_ringbuf_drain"};

	if (!types)
		return VISITS_NONE;
	if (kernel_types__have_functions(types, called, sizeof(called) / sizeof(called[0])))
		return VISITS_BY_TASK;
	if (kernel_types__have_functions(types, copies, sizeof(copies) / sizeof(copies[0])))
		return VISITS_BY_COPIES;
	return VISITS_NONE;
}

static void probe_kernel(struct features *f)
{
	struct utsname name = {};
	const char *cgroup_root = target_cgroup_root();
	_cleanup_(kernel_types__cleanup) struct kernel_types *types = kernel_types__read();
	enum visits visits = features_visits(types);

	uname(&name);
	add_feature(f, "kernel", "release", FEATURE_INFO, true, "", "", "%.64s %.32s", name.release,
		    name.machine);
	add_feature(f, "kernel", "btf", FEATURE_REQUIRED, !access(BTF_PATH, R_OK),
		    "nothing can be recorded",
		    "boot a kernel with CONFIG_DEBUG_INFO_BTF=y; in a container, mount /sys",
		    BTF_PATH);
	probe_bpf(f);
	probe_perf(f);
	add_feature(f, "kernel", "visits", FEATURE_INFO, visits != VISITS_NONE,
		    "--wall does not work: nothing is known of threads that wait",
		    "boot Linux 6.1 or later", "%s",
		    visits == VISITS_BY_COPIES ? "by copies, which cost more before Linux 6.7"
					       : VISITS_SINCE);
	add_feature(f, "kernel", "cgroup2", FEATURE_INFO, cgroup_root, "--cgroup does not work",
		    "mount -t cgroup2 none " CGROUP_ROOT, "%s",
		    cgroup_root ? cgroup_root : "not mounted");
}

static void probe_clock(struct features *f)
{
	const char *refused = tsc_refused();
	int fd = refused ? 0 : try_fd(tsc_event_open(first_cpu()));

	add_feature(
		f, "clock", "tsc", FEATURE_WANTED, !refused && fd >= 0,
		"timestamps are CLOCK_MONOTONIC: as good, but programs that use rdtsc cannot match them",
		"", "%s%s",
		refused	 ? refused
		: fd < 0 ? "the msr PMU: "
			 : "constant_tsc nonstop_tsc, msr PMU",
		fd < 0 ? strerror(-fd) : "");
}

static void probe_capabilities(struct features *f)
{
	static const struct {
		unsigned int number;
		const char *name, *cost;
		enum feature_level level;
	} list[] = {
		{CAP_BPF, "cap_bpf", "nothing can be recorded", FEATURE_REQUIRED},
		{CAP_PERFMON, "cap_perfmon", "nothing can be recorded", FEATURE_REQUIRED},
		{CAP_SYS_PTRACE, "cap_sys_ptrace",
		 "existing mappings of other users' processes cannot be read", FEATURE_WANTED},
		{CAP_DAC_READ_SEARCH, "cap_dac_read_search",
		 "no symbols from files that sysprof may not read", FEATURE_WANTED},
		{CAP_CHECKPOINT_RESTORE, "cap_checkpoint_restore",
		 "no symbols from files deleted or replaced while mapped", FEATURE_WANTED},
		{CAP_SYSLOG, "cap_syslog", "the kernel's symbols may be hidden", FEATURE_WANTED},
		{CAP_IPC_LOCK, "cap_ipc_lock",
		 "rings are as small as kernel.perf_event_mlock_kb; samples may be lost",
		 FEATURE_WANTED},
	};
	bool admin = has_capability(CAP_SYS_ADMIN);

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		unsigned int number = list[i].number;
		bool stands_in = admin &&
				 (number == CAP_BPF || number == CAP_PERFMON ||
				  number == CAP_CHECKPOINT_RESTORE || number == CAP_SYSLOG);
		bool has = has_capability(number);

		add_feature(f, "privileges", list[i].name, list[i].level, has || stands_in,
			    list[i].cost, GRANT, "%s", !has && stands_in ? "by cap_sys_admin" : "");
	}
}

/* Does kallsyms show addresses? x86-64's first symbol may be at 0 (per-CPU), the text is not. */
static bool kallsyms_shows(void)
{
	_cleanup_fclose_ FILE *file = fopen("/proc/kallsyms", "re");
	unsigned long long address;
	char type, line[512];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%llx %c", &address, &type) != 2)
			return false;
		if (type == 't' || type == 'T')
			return address != 0;
	}
	return false;
}

/* The first mapping that is a file's: a static program's first one may be the kernel's. */
static bool find_file_mapping(const char *maps, unsigned long *start, unsigned long *end)
{
	for (const char *line = maps; line; line = strchr(line, '\n')) {
		size_t length;

		line += *line == '\n';
		length = strcspn(line, "\n");
		if (memchr(line, '/', length) && sscanf(line, "%lx-%lx", start, end) == 2)
			return true;
	}
	return false;
}

/* Open what we are running from, by its mapping. */
static int try_map_files(void)
{
	_cleanup_free_ char *maps = NULL;
	char path[128];
	unsigned long start, end;
	size_t size;
	int err = read_file_at(AT_FDCWD, "/proc/self/maps", 8u << 20, &maps, &size);

	if (err)
		return err;
	if (!find_file_mapping(maps, &start, &end))
		return -EPROTO;
	snprintf(path, sizeof(path), "/proc/self/map_files/%lx-%lx", start, end);
	err = open(path, O_RDONLY | O_CLOEXEC);
	return try_fd(err < 0 ? -errno : err);
}

static void probe_privileges(struct features *f)
{
	char mode[32] = "none";
	long kptr_restrict = read_number(KPTR_PATH, -1);
	struct pid_namespace ns = {};
	struct failure why = {}, other_time = {};
	int err;

	probe_capabilities(f);
	add_feature(f, "privileges", "kallsyms", FEATURE_WANTED, kallsyms_shows(),
		    "kernel functions have no names",
		    kptr_restrict > 1 ? "sysctl -w kernel.kptr_restrict=1, and run as root" : GRANT,
		    "kernel.kptr_restrict is %ld", kptr_restrict);
	err = try_map_files();
	add_feature(f, "privileges", "map-files", FEATURE_WANTED, err >= 0,
		    "no symbols from files deleted or replaced while mapped", GRANT, "%s",
		    err < 0 ? strerror(-err) : "");
	lockdown_mode(mode, sizeof(mode));
	add_feature(f, "privileges", "no-lockdown", FEATURE_REQUIRED, !locked_down(),
		    "nothing can be recorded",
		    "boot with lockdown=integrity, or without Secure Boot", "kernel lockdown: %s",
		    mode);
	add_feature(f, "privileges", "initial-user-namespace", FEATURE_INFO, !in_user_namespace(),
		    "capabilities may not apply to tracing", "", "%s", "");
	err = pid_namespace__detect(&ns, &why);
	add_feature(f, "privileges", "pid-namespace", FEATURE_REQUIRED, !err,
		    "processes cannot be identified", why.remedy, "%.150s",
		    err	       ? why.what
		    : ns.inode ? "not the initial one: processes outside of it are invisible"
			       : "the initial one");
	err = time_namespace__check(&other_time);
	add_feature(f, "privileges", "time-namespace", FEATURE_REQUIRED, !err,
		    "times of samples and of other events do not match", other_time.remedy,
		    "%.150s", err ? other_time.what : "no offset");
	add_feature(f, "privileges", "perf_event_paranoid", FEATURE_INFO, true, "", "", "%ld",
		    read_number(PARANOID_PATH, -2));
}

static void probe_limits(struct features *f)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF), rate = read_number(SAMPLE_RATE_PATH, 0);
	struct rlimit files = {}, locked = {};

	getrlimit(RLIMIT_NOFILE, &files);
	getrlimit(RLIMIT_MEMLOCK, &locked);
	add_feature(
		f, "limits", "open-files", FEATURE_WANTED,
		files.rlim_cur >= (rlim_t)(cpus * BPF_SESSION_FDS_PER_CPU + FDS_BESIDES),
		"some mapped files cannot be kept open; if the limit is very low, nothing can be recorded",
		"ulimit -n 65536", "RLIMIT_NOFILE is %llu", (unsigned long long)files.rlim_cur);
	add_feature(f, "limits", "locked-memory", FEATURE_INFO,
		    has_capability(CAP_IPC_LOCK) || locked.rlim_cur >= (64u << 20),
		    "rings are as small as kernel.perf_event_mlock_kb; samples may be lost",
		    "ulimit -l unlimited",
		    "RLIMIT_MEMLOCK is %llu KB, kernel.perf_event_mlock_kb is %ld",
		    (unsigned long long)locked.rlim_cur / 1024, read_number(MLOCK_PATH, -1));
	add_feature(f, "limits", "sample-rate", FEATURE_WANTED, rate >= RATE,
		    "the default rate of 999 Hz is refused or throttled",
		    "sysctl -w kernel.perf_event_max_sample_rate=100000",
		    "kernel.perf_event_max_sample_rate is %ld", rate);
}

int features__probe(struct features **features)
{
	struct features *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	probe_kernel(f);
	probe_clock(f);
	probe_privileges(f);
	probe_limits(f);
	if (f->error) {
		features__free(f);
		return -ENOMEM;
	}
	*features = f;
	return 0;
}

void features__free(struct features *f)
{
	if (!f)
		return;
	vec_free(&f->list);
	free(f);
}

const struct feature *features__list(const struct features *f, size_t *count)
{
	*count = f->list.count;
	return f->list.data;
}

bool features__can_record(const struct features *f)
{
	for (size_t i = 0; i < f->list.count; i++) {
		if (f->list.data[i].level == FEATURE_REQUIRED && !f->list.data[i].available)
			return false;
	}
	return true;
}
