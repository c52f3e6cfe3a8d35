/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who owns what: the session owns the skeleton (programs, maps, hooks), and for each online CPU the
 * perf events and their rings. A CPU has up to four events:
 *
 *   tick      drives the program `tick` (sampled CPUs only)
 *   output    what the programs write comes out of its ring
 *   sideband  mmap, comm, fork and exit records of the CPU, in its own ring
 *   tsc       counts the TSC, read by the program (with the TSC clock, sampled CPUs only)
 *
 * Numbers that are asked for while recording (books, counters) are read from mmapped maps: a bpf()
 * call would keep the kernel from running programs on our CPU, and cost samples.
 *
 * Two things have to be done on each CPU itself, so the calling thread moves there for a moment:
 * the TSC base, whose error is 13 us from elsewhere and 0.3 us at home, and a look at the run
 * queue's clock right after it was set (see bpf/cputime.bpf.h). Where a cpuset forbids to go there,
 * the first is bracketed and refused if it is bad, and the second comes with the first samples.
 */
#include "capture/bpf_session.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/parse.h"
#include "capture/cpu_visit.h"
#include "capture/features.h"
#include "capture/perf_ring.h"
#include "capture/pid_namespace.h"
#include "capture/stack_join.h"
#include "capture/tsc_counter.h"

#include "sampler.skel.h"

#define SAMPLE_RING_MIN	    (256u * 1024)
#define SAMPLE_RING_MAX	    (8u * 1024 * 1024)
#define EXIT_RING	    (64u * 1024) /* of CPUs that are not sampled */
#define SIDEBAND_RING	    (512u * 1024)
#define SIDEBAND_RECORD_MAX (8u * 1024) /* a mapping, with its path */
#define RING_FLOOR	    (64u * 1024)
#define RING_SECONDS	    2
#define COPY_RING_SHARE	    (3.0 / 4) /* copies of stacks take so much of a ring, in a second */
#define SEGMENT_SIZE	    (16u << 20)
#define SEGMENT_SIZE_OLD    (4u << 20)
#define TSC_ERROR_MAX_NS    5000
#define CLOCK_LOOKS	    16
#define LIBBPF_MESSAGE_SIZE 400

struct session_cpu {
	uint32_t cpu;
	bool sampled;
	int tick_fd, output_fd, sideband_fd, tsc_fd; /* -1: none */
	struct perf_ring output, sideband;
	struct sideband_decoder decoder;
	bool was_full; /* its side-band: something may not have fit */
	struct stack_join join;
	uint64_t tsc_base;
	uint64_t received;		     /* EVENT_SAMPLEs */
	uint64_t time_enabled, time_running; /* of the tick event, at disable */
	uint64_t disabled_at;		     /* CLOCK_MONOTONIC */
};

struct bpf_session {
	struct sampler_bpf *skel;
	struct tick_source source;
	struct bpf_session_info info;
	char clock_reason[160];
	struct target target; /* its pointers are not kept */
	unsigned int hz;
	struct session_cpu *cpus; /* all that are online */
	size_t cpu_count;
	uint32_t *sampled; /* places in cpus */
	size_t ring_size;
	struct cpu_books *books; /* mmapped, by CPU number */
	size_t books_size, map_bytes;
	struct unwind_memory unwind; /* all zero: no tables */
	unsigned char *segments[UNWIND_SEGMENTS];
	int segment_fd; /* the first segment, which also tells what segments are like; -1: none */
	int epoll_fd;
	struct ring_buffer *wakes;
	bool disabled, final;
};

/* ---- libbpf's messages ----------------------------------------------------------------------- */

/* The last warnings. libbpf's print hook has no context, hence a variable. */
static _Thread_local char libbpf_message[LIBBPF_MESSAGE_SIZE];

__attribute__((format(printf, 2, 0))) static int keep_message(enum libbpf_print_level level,
							      const char *format, va_list args)
{
	char text[LIBBPF_MESSAGE_SIZE];

	if (level != LIBBPF_WARN)
		return 0;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	/* the first says what is wrong, later ones who else fails because of it */
	if (!libbpf_message[0])
		snprintf(libbpf_message, sizeof(libbpf_message), "%s", text);
	return 0;
}

static void catch_messages(void)
{
	libbpf_message[0] = '\0';
	libbpf_set_print(keep_message);
}

/* ---- CPUs ------------------------------------------------------------------------------------ */

static int add_cpus(struct bpf_session *s, struct failure *failure)
{
	_cleanup_free_ uint32_t *online = NULL;
	char text[4096];
	int err = read_line("/sys/devices/system/cpu/online", text, sizeof(text));

	if (!err)
		err = parse_cpu_list(text, CPU_VISIT_MAX - 1, &online, &s->cpu_count);
	if (err)
		return fail(failure, err, "cannot read /sys/devices/system/cpu/online: %s",
			    strerror(-err));
	s->cpus = calloc(s->cpu_count, sizeof(*s->cpus));
	s->sampled = calloc(s->cpu_count, sizeof(*s->sampled));
	if (!s->cpus || !s->sampled)
		return -ENOMEM;
	for (size_t i = 0; i < s->cpu_count; i++) {
		struct session_cpu *c = &s->cpus[i];

		c->cpu = c->decoder.cpu = online[i];
		c->tick_fd = c->output_fd = c->sideband_fd = c->tsc_fd = -1;
	}
	return 0;
}

/* The first CPU of -C that we do not have. */
static uint32_t missing_cpu(const struct bpf_session *s, const struct target *target)
{
	for (size_t k = 0; k < target->cpu_count; k++) {
		bool online = false;

		for (size_t i = 0; i < s->cpu_count && !online; i++)
			online = s->cpus[i].cpu == target->cpus[k];
		if (!online)
			return target->cpus[k];
	}
	return 0;
}

static int choose_cpus(struct bpf_session *s, const struct target *target, struct failure *failure)
{
	size_t found = 0;

	for (size_t i = 0; i < s->cpu_count; i++) {
		bool wanted = !target->cpus;

		for (size_t k = 0; k < target->cpu_count && !wanted; k++)
			wanted = target->cpus[k] == s->cpus[i].cpu;
		s->cpus[i].sampled = wanted;
		if (wanted)
			s->sampled[found++] = i;
	}
	s->info.cpus = found;
	s->info.sideband_cpus = s->cpu_count;
	if (target->cpus && found != target->cpu_count) {
		fail(failure, -ENODEV, "CPU %u of -C is not online", missing_cpu(s, target));
		return fail_remedy(failure, -ENODEV,
				   "see /sys/devices/system/cpu/online for those that are");
	}
	return 0;
}

/* ---- the clock ------------------------------------------------------------------------------- */

/* Open and calibrate the TSC counters of all sampled CPUs. 0, or an error with the reason. */
static int open_tsc(struct bpf_session *s)
{
	const char *refused = tsc_refused();
	uint64_t per_us, error, worst = 0;
	cpu_set_t *home;
	int err = 0;

	if (refused) {
		snprintf(s->clock_reason, sizeof(s->clock_reason), "%s", refused);
		return -ENOTSUP;
	}
	per_us = tsc_per_us();
	home = save_affinity();
	for (size_t i = 0; i < s->info.cpus && !err; i++) {
		struct session_cpu *c = &s->cpus[s->sampled[i]];

		c->tsc_fd = tsc_event_open(c->cpu);
		if (c->tsc_fd < 0) {
			err = c->tsc_fd;
			snprintf(s->clock_reason, sizeof(s->clock_reason),
				 "the TSC counter of the msr PMU cannot be opened: %s",
				 err == -ENOENT ? "there is none" : strerror(-err));
			break;
		}
		if (home)
			go_to_cpu(c->cpu);
		err = tsc_counter_base(c->tsc_fd, &c->tsc_base, &error);
		if (!err && error > worst)
			worst = error;
		if (err)
			snprintf(s->clock_reason, sizeof(s->clock_reason),
				 "the TSC counter of CPU %u cannot be read", c->cpu);
	}
	restore_affinity(home);
	if (err)
		return err;
	worst = worst * 1000 / (per_us ? per_us : 1);
	if (worst > TSC_ERROR_MAX_NS) {
		snprintf(s->clock_reason, sizeof(s->clock_reason),
			 "the TSC counters' bases are uncertain by %llu ns",
			 (unsigned long long)worst);
		return -ERANGE;
	}
	snprintf(s->clock_reason, sizeof(s->clock_reason),
		 "the TSC is invariant and its counter's base is known to %llu ns",
		 (unsigned long long)worst);
	return 0;
}

static void close_tsc(struct bpf_session *s)
{
	for (size_t i = 0; i < s->cpu_count; i++) {
		cleanup_close(&s->cpus[i].tsc_fd);
		s->cpus[i].tsc_fd = -1;
	}
}

static int choose_clock(struct bpf_session *s, enum clock_choice choice, struct failure *failure)
{
	int err;

	if (choice == CLOCK_CHOICE_MONOTONIC) {
		snprintf(s->clock_reason, sizeof(s->clock_reason), "asked for");
		return 0;
	}
	err = open_tsc(s);
	s->info.tsc = !err;
	if (!err)
		return 0;
	close_tsc(s);
	if (choice == CLOCK_CHOICE_AUTO)
		return 0;
	fail(failure, err, "cannot use the TSC as clock: %s", s->clock_reason);
	return fail_remedy(failure, err, "--clock=monotonic works everywhere");
}

/* Room for RING_SECONDS of the deepest stacks, a power of two. */
static size_t wanted_ring_size(const struct bpf_session_options *o)
{
	uint64_t sample = 64 + 8ull * (SAMPLE_KERNEL_DEPTH_MAX + o->max_depth);
	uint64_t want = o->hz * RING_SECONDS * sample;
	size_t size = SAMPLE_RING_MIN;

	while (size < want && size < SAMPLE_RING_MAX)
		size *= 2;
	return size;
}

/* ---- loading --------------------------------------------------------------------------------- */

static void set_knobs(struct bpf_session *s, const struct bpf_session_options *o)
{
	struct sampler_bpf *skel = s->skel;
	bool processes = o->target.mode == TARGET_PROCESSES;
	bool threads = o->target.mode == TARGET_THREADS;

	skel->rodata->filter_processes = processes;
	skel->rodata->filter_threads = threads;
	skel->rodata->filter_cgroup = o->target.cgroup != NULL;
	skel->rodata->exclude_self = o->target.exclude_self;
	skel->rodata->kernel_stacks = o->kernel_stacks;
	skel->rodata->user_stacks = o->user_stacks;
	skel->rodata->use_tsc = s->info.tsc;
	skel->rodata->max_depth = o->max_depth;
	skel->rodata->pid_namespace_inode = s->info.pid_namespace;
	skel->rodata->period = s->info.period;
	bpf_program__set_autoload(skel->progs.on_fork, (processes || threads) && o->target.inherit);
	skel->rodata->use_tables = s->unwind.segment_size;
	if (s->unwind.segment_size)
		skel->rodata->segment_size = s->unwind.segment_size;
	skel->rodata->copied_a_second = wanted_ring_size(o) * COPY_RING_SHARE;
	bpf_program__set_autoload(skel->progs.on_exec,
				  processes || threads || s->unwind.segment_size);
	bpf_program__set_autoload(skel->progs.on_free, processes || threads);
}

/*
 * What libbpf said helps where it is not about privileges: then it says what it tried to do about
 * them.
 */
static int explain_load(int err, struct failure *failure)
{
	char attempt[LIBBPF_MESSAGE_SIZE + 64];

	if (err == -EPERM || !libbpf_message[0])
		return features_explain(failure, err, "cannot load the eBPF programs");
	snprintf(attempt, sizeof(attempt), "cannot load the eBPF programs (%s)", libbpf_message);
	if (err != -EACCES && err != -EINVAL && err != -E2BIG)
		return features_explain(failure, err, attempt);
	fail(failure, err, "%s: this kernel's verifier refuses them", attempt);
	return fail_remedy(failure, err,
			   "report it with the kernel's version (uname -a); others may work");
}

static int put_fd(struct bpf_map *map, uint32_t cpu, int fd)
{
	return bpf_map__update_elem(map, &cpu, sizeof(cpu), &fd, sizeof(fd), 0);
}

/* ---- unwind tables --------------------------------------------------------------------------- */

static int make_segment(size_t size)
{
	LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE);

	return bpf_map_create(BPF_MAP_TYPE_ARRAY, NULL, sizeof(uint32_t), size, 1, &options);
}

/*
 * Values of arrays are 4 MB at most before Linux 6.0; a table has to lie within one. The first segment that
 * can be made is what all of them are like.
 */
static int choose_segment_size(struct bpf_session *s, size_t bytes)
{
	if (!bytes)
		return 0;
	s->unwind.segment_size = SEGMENT_SIZE;
	s->segment_fd = bytes < SEGMENT_SIZE ? -1 : make_segment(SEGMENT_SIZE);
	if (s->segment_fd < 0) {
		s->unwind.segment_size = SEGMENT_SIZE_OLD;
		s->segment_fd = make_segment(SEGMENT_SIZE_OLD);
	}
	if (s->segment_fd < 0)
		return s->segment_fd;
	s->unwind.segment_limit = bytes / s->unwind.segment_size;
	if (!s->unwind.segment_limit)
		s->unwind.segment_limit = 1;
	if (s->unwind.segment_limit > UNWIND_SEGMENTS)
		s->unwind.segment_limit = UNWIND_SEGMENTS;
	return 0;
}

/* Where there are no tables the maps are there all the same, for the program to refer to. */
static int size_unwind_maps(struct bpf_session *s)
{
	int err;

	if (s->unwind.segment_size)
		return bpf_map__set_inner_map_fd(s->skel->maps.unwind_segments, s->segment_fd);
	err = bpf_map__set_max_entries(s->skel->maps.unwind_processes, 1);
	if (!err)
		err = bpf_map__set_max_entries(s->skel->maps.unwind_tables, 1);
	if (!err)
		err = bpf_map__set_max_entries(s->skel->maps.unwind_used, 1);
	if (!err)
		err = bpf_map__set_max_entries(s->skel->maps.unwind_execs, 1);
	return err;
}

static void *map_array(const struct bpf_map *map, size_t size)
{
	void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	return bytes == MAP_FAILED ? NULL : bytes;
}

static int add_segment(void *context, unsigned int number, unsigned char **bytes)
{
	struct bpf_session *s = context;
	_cleanup_close_ int further = number ? make_segment(s->unwind.segment_size) : -1;
	int fd = number ? further : s->segment_fd;
	void *mapped;

	if (fd < 0)
		return fd;
	mapped = mmap(NULL, s->unwind.segment_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	s->segments[number] = *bytes = mapped;
	s->map_bytes += s->unwind.segment_size;
	return put_fd(s->skel->maps.unwind_segments, number, fd);
}

/*
 * Programs run with RCU held. membarrier waits for it, but refuses where CPUs are free of ticks
 * (nohz_full); writing to a map of maps waits as well, and for a moment this CPU's ticks are lost.
 */
static int wait_for_programs(void *context)
{
	struct bpf_session *s = context;

	if (!syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		return 0;
	return put_fd(s->skel->maps.unwind_segments, 0, s->segment_fd);
}

static int map_unwind(struct bpf_session *s, struct failure *failure)
{
	if (!s->unwind.segment_size)
		return 0;
	s->unwind.processes = map_array(s->skel->maps.unwind_processes,
					UNWIND_PROCESSES * sizeof(*s->unwind.processes));
	s->unwind.tables = map_array(s->skel->maps.unwind_tables,
				     UNWIND_TABLES * sizeof(*s->unwind.tables));
	s->unwind.places = map_array(s->skel->maps.unwind_places, UNWIND_PLACES_SIZE);
	s->unwind.used = map_array(s->skel->maps.unwind_used,
				   UNWIND_TABLES * sizeof(*s->unwind.used));
	s->unwind.epoch = &s->skel->bss->unwind_epoch;
	s->unwind.add_segment = add_segment;
	s->unwind.wait_for_programs = wait_for_programs;
	s->unwind.context = s;
	if (!s->unwind.processes || !s->unwind.tables || !s->unwind.places || !s->unwind.used)
		return fail(failure, -ENOMEM, "cannot map the unwind tables");
	return 0;
}

static void unmap_unwind(struct bpf_session *s)
{
	if (s->unwind.processes)
		munmap(s->unwind.processes, UNWIND_PROCESSES * sizeof(*s->unwind.processes));
	if (s->unwind.tables)
		munmap(s->unwind.tables, UNWIND_TABLES * sizeof(*s->unwind.tables));
	if (s->unwind.places)
		munmap(s->unwind.places, UNWIND_PLACES_SIZE);
	if (s->unwind.used)
		munmap(s->unwind.used, UNWIND_TABLES * sizeof(*s->unwind.used));
	for (size_t i = 0; i < UNWIND_SEGMENTS; i++)
		if (s->segments[i])
			munmap(s->segments[i], s->unwind.segment_size);
}

bool bpf_session__unwind_memory(struct bpf_session *s, struct unwind_memory *memory)
{
	*memory = s->unwind;
	return s->unwind.segment_size > 0;
}

static int load(struct bpf_session *s, const struct bpf_session_options *o, struct failure *failure)
{
	int possible = libbpf_num_possible_cpus(), err;

	catch_messages();
	if (possible < 0)
		return fail(failure, possible, "cannot count the possible CPUs: %s",
			    strerror(-possible));
	s->skel = sampler_bpf__open();
	if (!s->skel)
		return features_explain(failure, -errno, "cannot open the eBPF programs");
	err = choose_segment_size(s, o->user_stacks ? o->unwind_bytes : 0);
	if (err)
		return features_explain(failure, err, "cannot make room for unwind tables");
	set_knobs(s, o);
	err = bpf_map__set_max_entries(s->skel->maps.books, possible);
	if (!err)
		err = size_unwind_maps(s);
	if (!err)
		err = sampler_bpf__load(s->skel);
	if (err)
		return explain_load(err, failure);
	s->books_size = (size_t)possible * sizeof(struct cpu_books);
	s->books = mmap(NULL, s->books_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(s->skel->maps.books), 0);
	if (s->books == MAP_FAILED) {
		s->books = NULL;
		return fail(failure, -errno, "cannot map the books: %s", strerror(errno));
	}
	return map_unwind(s, failure);
}

static int attach_hooks(struct bpf_session *s, struct failure *failure)
{
	int err;

	catch_messages();
	err = sampler_bpf__attach(s->skel);
	if (err)
		return features_explain(failure, err, "cannot attach to the scheduler's events");
	return 0;
}

static int set_cgroup(struct bpf_session *s, const char *cgroup, struct failure *failure)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *path = NULL;
	const char *root = target_cgroup_root();
	uint32_t zero = 0;

	if (!cgroup)
		return 0;
	if (!root)
		root = "/sys/fs/cgroup";
	if (cgroup[0] == '/' ? !(path = strdup(cgroup))
			     : asprintf(&path, "%s/%s", root, cgroup) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		int err = -errno;

		fail(failure, err, "cannot open the cgroup %s: %s", path, strerror(-err));
		return fail_remedy(failure, err, "give its path below %s, as in /proc/PID/cgroup",
				   root);
	}
	if (bpf_map__update_elem(s->skel->maps.cgroups, &zero, sizeof(zero), &fd, sizeof(fd), 0)) {
		fail(failure, -EINVAL, "%s is not a cgroup of version 2", path);
		return fail_remedy(failure, -EINVAL, "--cgroup works with the unified hierarchy");
	}
	return 0;
}

/* ---- events ---------------------------------------------------------------------------------- */

static int open_tick(struct bpf_session *s, struct session_cpu *c)
{
	c->tick_fd = tick_event_open(&s->source, c->cpu, s->hz);
	if (c->tick_fd < 0)
		return c->tick_fd;
	if (ioctl(c->tick_fd, PERF_EVENT_IOC_SET_BPF, bpf_program__fd(s->skel->progs.tick)))
		return -errno;
	return put_fd(s->skel->maps.ticks, c->cpu, c->tick_fd);
}

static int open_output(struct bpf_session *s, struct session_cpu *c)
{
	size_t want = c->sampled ? s->ring_size : EXIT_RING;
	int err;

	c->output_fd = output_event_open(c->cpu, want / 2);
	if (c->output_fd < 0)
		return c->output_fd;
	err = perf_ring__map(&c->output, c->output_fd, want, RING_FLOOR);
	if (err)
		return err;
	if (c->sampled && c->output.data_size < s->info.sample_ring_size)
		s->info.sample_ring_size = c->output.data_size;
	return put_fd(s->skel->maps.outputs, c->cpu, c->output_fd);
}

static int open_sideband(struct bpf_session *s, struct session_cpu *c)
{
	int err;

	c->sideband_fd = sideband_event_open(c->cpu, SIDEBAND_RING / 2, &s->info.build_ids);
	if (c->sideband_fd < 0)
		return c->sideband_fd;
	err = perf_ring__map(&c->sideband, c->sideband_fd, SIDEBAND_RING, RING_FLOOR);
	if (!err && c->sideband.data_size < s->info.sideband_ring_size)
		s->info.sideband_ring_size = c->sideband.data_size;
	if (!err && !c->sampled)
		err = put_fd(s->skel->maps.ticks, c->cpu, c->sideband_fd);
	return err;
}

static int watch(struct bpf_session *s, int fd)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

static int explain_tick(const struct bpf_session *s, int err, struct failure *failure)
{
	char attempt[128];

	if (err == -ENOENT || err == -EOPNOTSUPP || err == -ENODEV || err == -EINVAL) {
		fail(failure, err, "this machine's PMU has no event \"%s\": %s", s->source.name,
		     strerror(-err));
		return fail_remedy(failure, err, "-e cpu-clock works everywhere");
	}
	snprintf(attempt, sizeof(attempt), "cannot open the event \"%s\"", s->source.name);
	return features_explain(failure, err, attempt);
}

static int open_cpu(struct bpf_session *s, struct session_cpu *c, struct failure *failure)
{
	int err = open_output(s, c);

	if (!err)
		err = watch(s, c->output_fd);
	if (err)
		return features_explain(failure, err, "cannot open a ring for samples");
	err = open_sideband(s, c);
	if (!err)
		err = watch(s, c->sideband_fd);
	if (err)
		return features_explain(failure, err,
					"cannot open the stream of mappings, names and forks");
	if (!c->sampled)
		return 0;
	if (s->info.tsc) {
		s->books[c->cpu].tsc_base = c->tsc_base;
		err = put_fd(s->skel->maps.tsc_counters, c->cpu, c->tsc_fd);
		if (err)
			return fail(failure, err, "cannot hand over the TSC counter: %s",
				    strerror(-err));
	}
	err = open_tick(s, c);
	return err ? explain_tick(s, err, failure) : 0;
}

static int open_events(struct bpf_session *s, const struct bpf_session_options *o,
		       struct failure *failure)
{
	s->ring_size = wanted_ring_size(o);
	s->info.sample_ring_size = s->info.sample_ring_wanted = s->ring_size;
	s->info.sideband_ring_size = s->info.sideband_ring_wanted = SIDEBAND_RING;
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll_fd < 0)
		return features_explain(failure, -errno, "cannot make an epoll descriptor");
	for (size_t i = 0; i < s->cpu_count; i++) {
		int err = open_cpu(s, &s->cpus[i], failure);

		if (err)
			return err;
	}
	return 0;
}

/* ---- wakes ----------------------------------------------------------------------------------- */

static int ignore_wake(void *context, void *record, size_t size)
{
	(void)context;
	(void)record;
	(void)size;
	return 0;
}

static int open_wakes(struct bpf_session *s, struct failure *failure)
{
	s->wakes = ring_buffer__new(bpf_map__fd(s->skel->maps.tick_wakes), ignore_wake, NULL, NULL);
	if (!s->wakes ||
	    ring_buffer__add(s->wakes, bpf_map__fd(s->skel->maps.hook_wakes), ignore_wake, NULL))
		return features_explain(failure, -errno, "cannot open the ring that wakes");
	return 0;
}

int bpf_session__wake_fd(const struct bpf_session *s)
{
	return ring_buffer__epoll_fd(s->wakes);
}

void bpf_session__take_wake(struct bpf_session *s)
{
	ring_buffer__consume(s->wakes);
}

void bpf_session__set_wake_interval(struct bpf_session *s, uint64_t interval)
{
	__atomic_store_n(&s->skel->bss->wake_interval, interval, __ATOMIC_RELAXED);
}

static uint64_t writing_since(const struct cpu_books *books, uint64_t now)
{
	uint64_t hook = __atomic_load_n(&books->hook_since, __ATOMIC_ACQUIRE);

	if (hook && hook < now)
		now = hook;
	if (__atomic_load_n(&books->busy, __ATOMIC_ACQUIRE)) {
		/* of the tick before, if this one has not come that far */
		uint64_t tick = __atomic_load_n(&books->last_tick, __ATOMIC_ACQUIRE);

		now = tick < now ? tick : now;
	}
	return now;
}

uint64_t bpf_session__written_until(const struct bpf_session *s, uint64_t now)
{
	for (size_t i = 0; i < s->cpu_count; i++)
		now = writing_since(&s->books[s->cpus[i].cpu], now);
	return now;
}

/* ---- the session ----------------------------------------------------------------------------- */

/* Bytes of a map, as the kernel accounts for it. */
static size_t map_memory(const struct bpf_map *map)
{
	_cleanup_free_ char *text = NULL;
	char path[64], *line;
	size_t size;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", bpf_map__fd(map));
	if (read_file_at(AT_FDCWD, path, 4096, &text, &size))
		return 0;
	line = strstr(text, "memlock:");
	return line ? strtoull(line + strlen("memlock:"), NULL, 10) : 0;
}

/* Run `prepare` here and now. */
static int run_prepare(struct bpf_session *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	return bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.prepare), &options);
}

static int find_out(struct bpf_session *s, struct failure *failure)
{
	struct bpf_map *map;
	int err = run_prepare(s);

	if (err)
		return features_explain(failure, err, "cannot run an eBPF program once");
	s->info.cpu_time_source = s->skel->bss->have_rq_clock == 1 ? "rq-clock" : "exec-start";
	bpf_object__for_each_map(map, s->skel->obj) s->map_bytes += map_memory(map);
	return 0;
}

int bpf_session__open(const struct bpf_session_options *options, struct bpf_session **session,
		      struct failure *failure)
{
	struct bpf_session *s = calloc(1, sizeof(*s));
	struct pid_namespace ns = {};
	int err;

	if (!s)
		return -ENOMEM;
	s->epoll_fd = s->segment_fd = -1;
	s->hz = options->hz;
	s->target = options->target;
	s->target.cpus = NULL;
	s->target.cgroup = NULL;
	err = tick_source__find(options->event ? options->event : "cpu-clock", &s->source, failure);
	if (err)
		goto err_out;
	s->info.event = s->source.name;
	s->info.period = s->source.clock ? 1000000000ull / options->hz : 0;
	s->info.clock_reason = s->clock_reason;
	err = pid_namespace__detect(&ns, failure);
	if (err)
		goto err_out;
	s->info.pid_namespace = ns.inode;
	err = add_cpus(s, failure);
	if (!err)
		err = choose_cpus(s, &options->target, failure);
	if (!err)
		err = choose_clock(s, options->clock, failure);
	if (!err)
		err = load(s, options, failure);
	if (!err)
		err = set_cgroup(s, options->target.cgroup, failure);
	if (!err)
		err = open_events(s, options, failure);
	if (!err)
		err = open_wakes(s, failure);
	if (!err)
		err = find_out(s, failure);
	if (!err)
		err = attach_hooks(s, failure);
	if (err)
		goto err_out;
	*session = s;
	return 0;

err_out:
	if (err == -ENOMEM && failure && !failure->what[0])
		fail(failure, err, "out of memory");
	bpf_session__free(s);
	return err;
}

static void close_cpu(struct session_cpu *c)
{
	stack_join__fini(&c->join);
	perf_ring__unmap(&c->output);
	perf_ring__unmap(&c->sideband);
	cleanup_close(&c->tick_fd);
	cleanup_close(&c->output_fd);
	cleanup_close(&c->sideband_fd);
	cleanup_close(&c->tsc_fd);
}

void bpf_session__free(struct bpf_session *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->cpus && i < s->cpu_count; i++)
		close_cpu(&s->cpus[i]);
	if (s->books)
		munmap(s->books, s->books_size);
	unmap_unwind(s);
	ring_buffer__free(s->wakes);
	sampler_bpf__destroy(s->skel);
	cleanup_close(&s->epoll_fd);
	cleanup_close(&s->segment_fd);
	free(s->cpus);
	free(s->sampled);
	free(s);
}

const struct bpf_session_info *bpf_session__info(const struct bpf_session *s)
{
	return &s->info;
}

int bpf_session__add_target(struct bpf_session *s, uint32_t id)
{
	uint64_t key = id, value = 0;

	if (s->target.mode == TARGET_ALL)
		return 0;
	if (s->info.pid_namespace)
		key |= 1ull << 32; /* a number of our namespace, see bpf/maps.bpf.h */
	return bpf_map__update_elem(s->skel->maps.targets, &key, sizeof(key), &value, sizeof(value),
				    0);
}

void bpf_session__hold_target(struct bpf_session *s, uint32_t id)
{
	s->skel->bss->held_tgid = id;
}

/*
 * Enable an event of CPU `c`, on that CPU if we may go there, and then look at the run queue's
 * clock right after it was set, which asking for our own CPU time does. The first tick is a period
 * away.
 */
static int start_event(struct bpf_session *s, const struct session_cpu *c, int fd, bool look)
{
	bool there = look && go_to_cpu(c->cpu);
	struct timespec used;

	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return -errno;
	for (int i = 0; there && i < CLOCK_LOOKS; i++) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
		run_prepare(s);
	}
	return 0;
}

int bpf_session__enable_sideband(struct bpf_session *s, struct failure *failure)
{
	cpu_set_t *home = save_affinity();
	int err = 0;

	for (size_t i = 0; i < s->cpu_count && !err; i++)
		err = start_event(s, &s->cpus[i], s->cpus[i].sideband_fd,
				  home && !s->cpus[i].sampled);
	restore_affinity(home);
	if (err)
		return fail(failure, err,
			    "cannot start the stream of mappings, names and forks: %s",
			    strerror(-err));
	return 0;
}

int bpf_session__enable_ticks(struct bpf_session *s, struct failure *failure)
{
	cpu_set_t *home = save_affinity();
	int err = 0;

	for (size_t i = 0; i < s->info.cpus && !err; i++) {
		struct session_cpu *c = &s->cpus[s->sampled[i]];

		err = start_event(s, c, c->tick_fd, home);
	}
	restore_affinity(home);
	if (err)
		return fail(failure, err, "cannot start the event \"%s\": %s", s->source.name,
			    strerror(-err));
	return 0;
}

/* time_enabled and time_running of the tick event. */
static void read_times(struct session_cpu *c)
{
	uint64_t values[3];

	if (read(c->tick_fd, values, sizeof(values)) != sizeof(values))
		return;
	c->time_enabled = values[1];
	c->time_running = values[2];
}

void bpf_session__disable(struct bpf_session *s)
{
	if (s->disabled)
		return;
	s->disabled = true;
	for (size_t i = 0; i < s->info.cpus; i++) {
		struct session_cpu *c = &s->cpus[s->sampled[i]];

		ioctl(c->tick_fd, PERF_EVENT_IOC_DISABLE, 0);
		c->disabled_at = monotonic_ns();
		read_times(c);
	}
	sampler_bpf__detach(s->skel);
	for (size_t i = 0; i < s->cpu_count; i++)
		ioctl(s->cpus[i].sideband_fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct drain {
	struct session_cpu *cpu;
	event_push_fn sink;
	void *context;
};

static int take_output(void *context, struct perf_event_header *record)
{
	struct drain *drain = context;
	struct event_header *event = output_decode(record);

	if (!event)
		return 0;
	if (event->type == EVENT_STACK_PIECE) {
		stack_join__piece(&drain->cpu->join, (const struct stack_piece *)event);
		return 0;
	}
	if (event->type == EVENT_SAMPLE) {
		drain->cpu->received++;
		event = stack_join__sample(&drain->cpu->join, event);
	}
	return drain->sink(drain->context, event);
}

static int take_sideband(void *context, struct perf_event_header *record)
{
	struct drain *drain = context;
	int err = sideband_decode(&drain->cpu->decoder, record, drain->sink, drain->context);

	if (err != -EBADMSG)
		return err;
	drain->cpu->decoder.damaged++;
	return 0;
}

/*
 * The kernel tells what did not fit into a ring with the next record that does, which may never
 * come. Any record of this CPU will do: that somebody there calls himself as he is called already.
 */
static void draw_out_losses(struct session_cpu *c)
{
	cpu_set_t *before = save_affinity();
	char name[16];

	c->was_full = false;
	if (before && go_to_cpu(c->cpu) && !prctl(PR_GET_NAME, name))
		prctl(PR_SET_NAME, name);
	restore_affinity(before);
}

int bpf_session__drain(struct bpf_session *s, event_push_fn sink, void *context)
{
	struct drain drain = {.sink = sink, .context = context};
	bool disabled = s->disabled;

	for (size_t i = 0; i < s->cpu_count; i++) {
		int err;

		drain.cpu = &s->cpus[i];
		err = perf_ring__drain(&drain.cpu->output, take_output, &drain);
		if (!err) {
			drain.cpu->was_full |= perf_ring__used(&drain.cpu->sideband) +
						       SIDEBAND_RECORD_MAX >
					       drain.cpu->sideband.data_size;
			err = perf_ring__drain(&drain.cpu->sideband, take_sideband, &drain);
		}
		if (err)
			return err;
		if (drain.cpu->was_full && !disabled)
			draw_out_losses(drain.cpu);
	}
	s->final = disabled;
	return 0;
}

int bpf_session__epoll_fd(const struct bpf_session *s)
{
	return s->epoll_fd;
}

/*
 * Ticks between the program's last run and the end of ticking, which no run has seen. The end is
 * when the event was disabled, or, if the CPU went offline, when it stopped counting time.
 */
static uint64_t ticks_after_last_run(const struct bpf_session *s, const struct session_cpu *c)
{
	const struct cpu_books *books = &s->books[c->cpu];
	uint64_t stopped, point;

	if (!books->grid_origin)
		return c->time_running / s->info.period;
	stopped = books->grid_origin + c->time_running;
	/* perf's clock and CLOCK_MONOTONIC differ a little in speed */
	if (stopped + c->time_running / 1000 + s->info.period >= c->disabled_at)
		stopped = c->disabled_at;
	point = (stopped - books->grid_origin) / s->info.period;
	return point > books->grid_point ? point - books->grid_point : 0;
}

void bpf_session__books(struct bpf_session *s, uint32_t index, struct books_event *event)
{
	struct session_cpu *c = &s->cpus[s->sampled[index]];
	const struct cpu_books *books = &s->books[c->cpu];

	if (!s->disabled)
		read_times(c);
	*event = (struct books_event){
		.header = {.size = sizeof(*event),
			   .type = EVENT_BOOKS,
			   .flags = s->final ? EVENT_FINAL : 0,
			   .time = monotonic_ns()},
		.cpu = c->cpu,
		.lines = BOOK_COUNT,
		.period = s->info.period,
		.time_enabled = c->time_enabled,
		.time_running = c->time_running,
		.received = c->received,
	};
	for (int i = 0; i < BOOK_COUNT; i++)
		event->count[i] = __atomic_load_n(&books->count[i], __ATOMIC_RELAXED);
	if (s->disabled && s->info.period)
		event->count[BOOK_NOT_RUN] += ticks_after_last_run(s, c);
}

void bpf_session__stats(struct bpf_session *s, struct bpf_session_stats *stats)
{
	*stats = (struct bpf_session_stats){
		.target_set_full = s->skel->bss->target_set_full,
		.hook_output_lost = s->skel->bss->hook_output_lost,
	};
	for (size_t i = 0; i < s->cpu_count; i++)
		stats->sideband_damaged += s->cpus[i].decoder.damaged + s->cpus[i].sideband.damaged;
}

size_t bpf_session__programs(struct bpf_session *s, struct bpf_program_info *programs,
			     size_t capacity)
{
	struct bpf_program *program;
	size_t count = 0;

	bpf_object__for_each_program(program, s->skel->obj)
	{
		struct bpf_prog_info info = {};
		uint32_t size = sizeof(info);
		int fd = bpf_program__fd(program);

		if (fd < 0 || count == capacity || bpf_obj_get_info_by_fd(fd, &info, &size))
			continue;
		snprintf(programs[count].name, sizeof(programs[count].name), "%s",
			 bpf_program__name(program));
		programs[count].verified_insns = info.verified_insns;
		programs[count].runs = info.run_cnt;
		programs[count].run_ns = info.run_time_ns;
		count++;
	}
	return count;
}

size_t bpf_session__memory(const struct bpf_session *s)
{
	size_t bytes = s->map_bytes;

	for (size_t i = 0; i < s->cpu_count; i++)
		bytes += s->cpus[i].output.data_size + s->cpus[i].sideband.data_size;
	return bytes;
}
