/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loading and attaching. The session owns the skeleton (programs, maps, hooks) and, for each online
 * CPU, the perf events and their rings (bpf_session_cpus.c).
 *
 * Numbers needed while recording (books, counters) are read from mmapped maps, because a bpf() call
 * would keep programs from running on our CPU, and cost samples.
 */
#include "live/capture/bpf_session_cpus.h"
#include "live/capture/bpf_session_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/io.h"
#include "live/capture/bpf_session_unwind.h"
#include "live/capture/features.h"
#include "live/capture/kernel_types.h"

#define COPY_RING_SHARE	    (3.0 / 4)	  /* copies of stacks take so much of a ring, in a second */
#define COPY_RING_LEAST	    (128u * 1024) /* in a smaller ring one copy could be too big */
#define CODE_RING_SHARE	    (1.0 / 8) /* … and copies of functions so much, in CODE_COPIES_NS */
#define LIBBPF_MESSAGE_SIZE 400

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
	/* the first has the cause, later ones its consequences */
	if (!libbpf_message[0])
		snprintf(libbpf_message, sizeof(libbpf_message), "%s", text);
	return 0;
}

void catch_libbpf_messages(void)
{
	libbpf_message[0] = '\0';
	libbpf_set_print(keep_message);
}

/* ---- maps ------------------------------------------------------------------------------------ */

int put_map_fd(struct bpf_map *map, uint32_t index, int fd)
{
	return bpf_map__update_elem(map, &index, sizeof(index), &fd, sizeof(fd), 0);
}

/* The kernel puts each element at a multiple of 8 bytes. */
void *map_array(const struct bpf_map *map, size_t count, size_t element_size)
{
	void *memory;

	if (element_size % sizeof(uint64_t) || bpf_map__value_size(map) != element_size ||
	    bpf_map__max_entries(map) != count) {
		errno = EINVAL;
		return NULL;
	}
	memory = mmap(NULL, count * element_size, PROT_READ | PROT_WRITE, MAP_SHARED,
		      bpf_map__fd(map), 0);
	return memory == MAP_FAILED ? NULL : memory;
}

void unmap_array(void *memory, size_t count, size_t element_size)
{
	if (memory)
		munmap(memory, count * element_size);
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
	skel->rodata->follow_groups = o->follow_groups;
	skel->rodata->include_kinds = o->names ? o->names->include : 0;
	skel->rodata->exclude_kinds = o->names ? o->names->exclude : 0;
	/* in a pid namespace of our own, all its threads are in the profile, sampled or not */
	skel->rodata->ends_of_sampled = o->ends_of_sampled && !s->info.pid_namespace;
	skel->rodata->exclude_self = o->target.exclude_self;
	skel->rodata->kernel_stacks = o->kernel_stacks;
	skel->rodata->user_stacks = o->user_stacks;
	skel->rodata->use_tsc = s->info.tsc;
	skel->rodata->counts_events = !s->source.clock;
	skel->rodata->periods_begin = s->source.type == PERF_TYPE_SOFTWARE && !s->rate.period;
	skel->rodata->max_depth = o->max_depth;
	skel->rodata->pid_namespace_inode = s->info.pid_namespace;
	skel->rodata->follow_children = (processes || threads) && o->target.inherit;
	bpf_program__set_autoload(skel->progs.on_fork,
				  skel->rodata->follow_children || s->unwind.segment_size);
	skel->rodata->use_tables = s->unwind.segment_size;
	if (s->unwind.segment_size)
		skel->rodata->segment_size = s->unwind.segment_size;
	bpf_session__copy_stacks(s, true);
	skel->rodata->code_bytes = s->rings.sample * CODE_RING_SHARE;
	bpf_program__set_autoload(skel->progs.on_exec,
				  processes || threads || s->unwind.segment_size);
	bpf_program__set_autoload(skel->progs.on_free, processes || threads || o->names);
	bpf_program__set_autoload(skel->progs.identify, threads);
	bpf_program__set_autoattach(skel->progs.identify, false);
}

/* libbpf's message helps, unless privileges are missing: then it only lists what libbpf tried. */
int explain_libbpf(int err, const char *programs, struct failure *failure)
{
	char attempt[LIBBPF_MESSAGE_SIZE + 64];

	snprintf(attempt, sizeof(attempt), "cannot load %s", programs);
	if (err == -EPERM || !libbpf_message[0])
		return features_explain(failure, err, attempt);
	snprintf(attempt, sizeof(attempt), "cannot load %s (%s)", programs, libbpf_message);
	if (err != -EACCES && err != -EINVAL && err != -E2BIG)
		return features_explain(failure, err, attempt);
	fail(failure, err, "%s: rejected by this kernel's verifier", attempt);
	return fail_remedy(
		failure, err,
		"report this with the output of uname -a; another kernel version may work");
}

/* With -c the rate of an event is unknown: rings are sized for this one. */
#define EVENTS_HZ 20000

static void choose_rings(struct bpf_session *s, const struct bpf_session_options *o)
{
	const struct ring_needs needs = {
		.hz = s->source.clock || !o->period ? o->hz : EVENTS_HZ,
		.record = sizeof(struct sample_event) +
			  sizeof(uint64_t) * (SAMPLE_KERNEL_DEPTH_MAX + o->max_depth),
		.cpus = s->cpu_count,
		.sampled = bpf_session__tick_ring_count(s),
		.bytes = o->ring_bytes,
	};

	s->rings = ring_sizes_for(&needs);
	s->info.sample_ring_wanted = s->rings.sample;
}

/* Maps of what is not used. */
static int shrink_maps(struct bpf_session *s, const struct bpf_session_options *o)
{
	const struct {
		struct bpf_map *map;
		bool is_used;
	} maps[] = {
		{s->skel->maps.group_slots, o->follow_groups},
		{s->skel->maps.excluded_groups, o->follow_groups},
		{s->skel->maps.targets,
		 s->skel->rodata->filter_processes || s->skel->rodata->filter_threads},
		{s->skel->maps.sampled_threads, s->skel->rodata->ends_of_sampled},
		{s->skel->maps.name_globs, o->names},
		{s->skel->maps.name_users, o->names},
		{s->skel->maps.name_verdicts, o->names},
		{s->skel->maps.name_slots, o->names},
		{s->skel->maps.filtered_threads, o->names},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]) && !err; i++)
		if (!maps[i].is_used)
			err = bpf_map__set_max_entries(maps[i].map, 1);
	return err;
}

/* The rules of targets by name, into the maps. */
static int put_rules(struct bpf_session *s, const struct name_rules *rules)
{
	int err = 0;

	for (uint32_t i = 0; rules && i < rules->glob_count && !err; i++)
		err = bpf_map__update_elem(s->skel->maps.name_globs, &i, sizeof(i),
					   &rules->globs[i], sizeof(rules->globs[i]), 0);
	for (uint32_t i = 0; rules && i < rules->user_count && !err; i++)
		err = bpf_map__update_elem(s->skel->maps.name_users, &rules->users[i].uid,
					   sizeof(rules->users[i].uid), &rules->users[i].verdict,
					   sizeof(rules->users[i].verdict), 0);
	return err;
}

static int load_programs(struct bpf_session *s, const struct bpf_session_options *o,
			 struct failure *failure)
{
	_cleanup_(kernel_types__cleanup) struct kernel_types *types = NULL;
	LIBBPF_OPTS(bpf_object_open_opts, options);
	int possible = libbpf_num_possible_cpus(), err;

	catch_libbpf_messages();
	if (possible < 0)
		return fail(failure, possible, "cannot count the possible CPUs: %s",
			    strerror(-possible));
	types = kernel_types__read();
	options.btf_custom_path = kernel_types__path(types);
	s->skel = sampler_bpf__open_opts(&options);
	if (!s->skel)
		return features_explain(failure, -errno, "cannot open the eBPF programs");
	err = bpf_session__choose_segments(s, o->user_stacks ? o->unwind_bytes : 0);
	if (err)
		return features_explain(failure, err, "cannot make room for unwind tables");
	err = bpf_session__make_tick_rings(s);
	if (err)
		return features_explain(failure, err, "cannot make the rings of samples");
	set_knobs(s, o);
	err = bpf_map__set_max_entries(s->skel->maps.books, possible)
			?: shrink_maps(s, o)
			?: bpf_session__size_unwind_maps(s)
			?: kernel_types__select(types, bpf_object__btf(s->skel->obj))
			?: sampler_bpf__load(s->skel)
			?: put_rules(s, o->names);
	if (err)
		return explain_libbpf(err, "the eBPF programs", failure);
	s->book_count = possible;
	s->books = map_array(s->skel->maps.books, s->book_count, sizeof(*s->books));
	if (!s->books)
		return fail(failure, -errno, "cannot map the books: %s", strerror(errno));
	return bpf_session__map_unwind_tables(s, failure);
}

static int attach_hooks(struct bpf_session *s, struct failure *failure)
{
	int err;

	catch_libbpf_messages();
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
	struct stat st;

	if (!cgroup)
		return 0;
	if (!root)
		root = CGROUP_ROOT;
	if (cgroup[0] == '/' ? !(path = strdup(cgroup))
			     : asprintf(&path, "%s/%s", root, cgroup) < 0)
		return -ENOMEM;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		int err = -errno;

		fail(failure, err, "cannot open the cgroup %s: %s", path, strerror(-err));
		return fail_remedy(failure, err, "give the path below %s, as in /proc/PID/cgroup",
				   root);
	}
	if (bpf_map__update_elem(s->skel->maps.cgroups, &zero, sizeof(zero), &fd, sizeof(fd), 0)) {
		fail(failure, -EINVAL, "%s is not a version 2 cgroup", path);
		return fail_remedy(failure, -EINVAL, "give a cgroup of the unified hierarchy");
	}
	if (!fstat(fd, &st))
		s->group = st.st_ino;
	return 0;
}

/* Bytes of a map, as the kernel accounts for it. */
size_t map_memory(const struct bpf_map *map)
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

int bpf_session__run_prepare(struct bpf_session *s)
{
	LIBBPF_OPTS(bpf_test_run_opts, options);

	return bpf_prog_test_run_opts(bpf_program__fd(s->skel->progs.prepare), &options);
}

static int describe_loaded(struct bpf_session *s, struct failure *failure)
{
	struct bpf_map *map;
	int err = bpf_session__run_prepare(s);

	if (err)
		return features_explain(failure, err, "cannot run an eBPF program once");
	s->info.cpu_time_source = s->skel->bss->cpu_time_source == CPU_TIME_BY_RQ_CLOCK
					  ? "rq-clock"
					  : "exec-start";
	bpf_object__for_each_map (map, s->skel->obj)
		s->map_bytes += map_memory(map);
	return 0;
}

/* ---- the session ----------------------------------------------------------------------------- */

int bpf_session__open(const struct bpf_session_options *options, struct bpf_session **session,
		      struct failure *failure)
{
	struct bpf_session *s = calloc(1, sizeof(*s));
	struct pid_namespace ns = {};
	int err;

	if (!s)
		return -ENOMEM;
	s->epoll_fd = s->segment_fd = s->online_fd = -1;
	s->rate = (struct tick_rate){options->hz, options->period};
	s->target = options->target;
	s->target.cpus = NULL;
	s->follow_groups = options->follow_groups;
	s->reports_groups = s->follow_groups ||
			    (options->names && (options->names->include | options->names->exclude) &
						       (NAMED_BY_GROUP | NAMED_BY_SERVICE));
	s->target.cgroup = NULL;
	err = tick_source__find(options->event ? options->event : TICK_SOURCE_DEFAULT, &s->source,
				failure);
	if (err)
		goto err_out;
	s->info.event = s->source.name;
	s->info.event_unit = s->source.clock ? NULL : "count";
	s->info.period = tick_source__period(&s->source, &s->rate);
	s->info.event_period = s->source.clock ? 0 : s->rate.period;
	s->info.clock_reason = s->clock_reason;
	err = pid_namespace__detect(&ns, failure) ?: time_namespace__check(failure);
	if (err)
		goto err_out;
	s->info.pid_namespace = ns.inode;
	err = bpf_session__choose_cpus(s, &options->target, failure);
	if (!err) {
		choose_rings(s, options);
		err = bpf_session__choose_clock(s, options->clock, failure);
	}
	if (!err)
		err = load_programs(s, options, failure)
				?: set_cgroup(s, options->target.cgroup, failure)
				?: bpf_session__open_cpus(s, failure)
				?: describe_loaded(s, failure)
				?: attach_hooks(s, failure);
	if (err)
		goto err_out;
	log_debug(LOG_BPF, "%s every %llu ns on %u CPUs, clock %s: %s", s->info.event,
		  (unsigned long long)s->info.period, s->info.cpus,
		  s->info.tsc ? "tsc" : "monotonic", s->info.clock_reason);
	*session = s;
	return 0;

err_out:
	if (err == -ENOMEM && failure && !failure->what[0])
		fail(failure, err, "out of memory");
	bpf_session__free(s);
	return err;
}

void bpf_session__free(struct bpf_session *s)
{
	if (!s)
		return;
	bpf_session__close_cpus(s);
	unmap_array(s->books, s->book_count, sizeof(*s->books));
	tick_rings__unmap(&s->tick_rings);
	bpf_session__unmap_unwind_tables(s);
	sampler_bpf__destroy(s->skel);
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
		key |= TARGET_IN_NAMESPACE;
	return bpf_map__update_elem(s->skel->maps.targets, &key, sizeof(key), &value, sizeof(value),
				    0);
}

int bpf_session__put_verdict(struct bpf_session *s, const struct name_key *key, uint32_t verdict)
{
	return bpf_map__update_elem(s->skel->maps.name_verdicts, key, sizeof(*key), &verdict,
				    sizeof(verdict), 0);
}

void bpf_session__announce_verdicts(struct bpf_session *s, bool changed)
{
	if (changed)
		__atomic_add_fetch(&s->skel->bss->name_changes, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&s->skel->bss->name_serial, 1, __ATOMIC_RELEASE);
}

bool bpf_session__has_filtered(const struct bpf_session *s, uint32_t tid)
{
	uint32_t slot = tid & (FILTERED_THREADS - 1), noted;

	return !s->info.pid_namespace &&
	       !bpf_map__lookup_elem(s->skel->maps.filtered_threads, &slot, sizeof(slot), &noted,
				     sizeof(noted), 0) &&
	       (noted == tid || noted == FILTERED_MANY);
}

int bpf_session__exclude_group(struct bpf_session *s, uint64_t group, bool exclude)
{
	struct bpf_map *map = s->skel->maps.excluded_groups;
	uint32_t yes = 1;
	int err;

	if (!s->follow_groups)
		return -EINVAL;
	if (exclude) {
		err = bpf_map__update_elem(map, &group, sizeof(group), &yes, sizeof(yes), 0);
		if (!err)
			__atomic_store_n(&s->skel->bss->any_excluded, 1, __ATOMIC_RELAXED);
		return err;
	}
	err = bpf_map__delete_elem(map, &group, sizeof(group), 0);
	return err == -ENOENT ? 0 : err;
}

/* One process more, or less, whose number ends like this one. */
static int count_runtime(struct bpf_session *s, uint32_t tgid, int change)
{
	uint32_t slot = tgid & (RUNTIME_SLOTS - 1);
	uint64_t count = s->runtime_slots[slot] + change;
	int err = bpf_map__update_elem(s->skel->maps.runtime_slots, &slot, sizeof(slot), &count,
				       sizeof(count), 0);

	if (!err)
		s->runtime_slots[slot] = count;
	return err;
}

/*
 * Its parent's functions no longer count. A child whose number ends like this one's may come
 * between the two calls and lose its entry: it is read later, like any other process.
 */
static int forget_fork(struct bpf_session *s, uint32_t tgid)
{
	struct bpf_map *map = s->skel->maps.runtime_forks;
	uint32_t slot = tgid & (RUNTIME_FORKS - 1);
	struct runtime_fork fork;
	int err;

	if (!s->unwind.segment_size)
		return 0;
	err = bpf_map__lookup_elem(map, &slot, sizeof(slot), &fork, sizeof(fork), 0);
	if (err || fork.tgid != tgid)
		return err;
	fork = (struct runtime_fork){};
	return bpf_map__update_elem(map, &slot, sizeof(slot), &fork, sizeof(fork), 0);
}

static int forget_runtime(struct bpf_session *s, uint32_t tgid)
{
	int err = forget_fork(s, tgid)
			  ?: bpf_map__delete_elem(s->skel->maps.runtimes, &tgid, sizeof(tgid), 0);

	if (err == -ENOENT)
		return 0;
	return err ? err : count_runtime(s, tgid, -1);
}

int bpf_session__set_runtime(struct bpf_session *s, uint32_t tgid, const struct runtime_info *info)
{
	struct bpf_map *map = s->skel->maps.runtimes;
	int err;

	if (!info)
		return forget_runtime(s, tgid);
	err = bpf_map__update_elem(map, &tgid, sizeof(tgid), info, sizeof(*info), BPF_NOEXIST);
	if (err == -EEXIST)
		return bpf_map__update_elem(map, &tgid, sizeof(tgid), info, sizeof(*info), 0);
	if (!err)
		err = count_runtime(s, tgid, 1);
	return err ? err : forget_fork(s, tgid);
}

int bpf_session__exclude_none(struct bpf_session *s)
{
	struct bpf_map *map = s->skel->maps.excluded_groups;
	uint64_t group;

	__atomic_store_n(&s->skel->bss->any_excluded, 0, __ATOMIC_RELAXED);
	/* no other code adds any */
	while (!bpf_map__get_next_key(map, NULL, &group, sizeof(group))) {
		int err = bpf_map__delete_elem(map, &group, sizeof(group), 0);

		if (err && err != -ENOENT)
			return err;
	}
	return 0;
}

/* Reading walks everything; the programs write nothing. */
int run_iterator(int link)
{
	_cleanup_close_ int fd = bpf_iter_create(link);
	char buffer[64];
	ssize_t got;

	if (fd < 0)
		return fd;
	do
		got = read(fd, buffer, sizeof(buffer));
	while (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)));
	return got < 0 ? -errno : 0;
}

static int walk_tasks(struct bpf_program *program)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	int err = link ? run_iterator(bpf_link__fd(link)) : -errno;

	bpf_link__destroy(link);
	return err;
}

int bpf_session__identify_targets(struct bpf_session *s, struct failure *failure)
{
	int err = 0;

	if (s->target.mode == TARGET_THREADS)
		err = walk_tasks(s->skel->progs.identify);
	return err ? features_explain(failure, err, "cannot find the threads among all tasks") : 0;
}

void bpf_session__hold_target(struct bpf_session *s, uint32_t id)
{
	s->skel->bss->held_tgid = id;
}

uint64_t bpf_session__refused_children(const struct bpf_session *s)
{
	return s->skel->bss->target_set_full;
}

void bpf_session__copy_stacks(struct bpf_session *s, bool copy)
{
	uint32_t bytes = copy && s->rings.sample >= COPY_RING_LEAST
				 ? s->rings.sample * COPY_RING_SHARE
				 : 0;

	__atomic_store_n(&s->skel->bss->copied_a_second, bytes, __ATOMIC_RELAXED);
}

int bpf_session__run_statistics(int fd)
{
	if (fd >= 0) {
		close(fd);
		return -1;
	}
	fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
	return fd < 0 ? -errno : fd;
}

size_t bpf_session__programs(struct bpf_session *s, struct bpf_program_info *programs,
			     size_t capacity)
{
	struct bpf_program *program;
	size_t count = 0;

	bpf_object__for_each_program (program, s->skel->obj) {
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
	size_t bytes = s->map_bytes + __atomic_load_n(&s->visit_bytes, __ATOMIC_RELAXED);

	for (size_t i = 0; i < s->cpu_count; i++)
		bytes += s->cpus[i].output.data_size + s->cpus[i].sideband.data_size;
	return bytes;
}
