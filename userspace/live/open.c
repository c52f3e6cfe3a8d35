/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/open.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clocks.h"
#include "live/capture/bpf_session_cpus.h"
#include "live/capture/cpu_idle.h"
#include "live/capture/cpu_visit.h"
#include "live/live_private.h"
#include "live/pace.h"
#include "live/parts/facts.h"
#include "live/parts/jit.h"
#include "live/parts/reread.h"
#include "live/parts/wall.h"
#include "live/proc/process_facts.h"
#include "live/readers.h"
#include "live/targets.h"
#include "live/thread_targets.h"
#include "live/windows.h"
#include "stream/event_decode.h"
#include "stream/meta.h"

#define FILES_PATIENCE 500000ull     /* ns per tick for readers to find files */
#define FILES_AT_START 2000000000ull /* ns for all files of all existing processes */
#define FILES_AT_END   2000000000ull
#define CODE_AT_START  200000000ull /* ns for runtimes of existing processes */

/* ---- parts ----------------------------------------------------------------------------------- */

static int add_groups(struct live *live, const struct live_options *options, struct live_part *part)
{
	const struct groups_options groups = {.proc = live->proc,
					      .wanted = options->group_wanted,
					      .wanted_context = options->group_context,
					      .push = event_queue__push,
					      .context = live->queue};

	if (!options->session.follow_groups)
		return 0;
	return groups_part__new(&groups, part);
}

static int add_fact_readers(struct live *live, const struct live_options *options)
{
	const struct fact_readers_options readers = {.pool = live->readers,
						     .service = SERVICE_FACTS,
						     .names = options->fact_names,
						     .name_count = options->fact_name_count,
						     .owners = options->owners};

	return fact_readers__new(&readers, &live->fact_readers);
}

static int add_services(struct live *live, const struct name_judge *judge)
{
	const struct service_names_options services = {.judge = *judge,
						       .tasks = live->tasks,
						       .readers = live->readers,
						       .facts = live->fact_readers,
						       .proc_fd = live->target.proc_fd,
						       .books = live->books,
						       .push = event_queue__push,
						       .context = live->queue};

	if (!((judge->rules->include | judge->rules->exclude) & NAMED_BY_SERVICE))
		return 0;
	return service_names__new(&services, &live->target.services);
}

/* After the files, because answers of readers decide. */
static int add_names(struct live *live, const struct live_options *options, struct live_part *part)
{
	int err = options->names.rules ? add_services(live, &options->names) : 0;
	const struct names_options names = {.judge = options->names,
					    .services = live->target.services,
					    .proc_fd = live->target.proc_fd,
					    .books = live->books,
					    .keep = live_keep_sample,
					    .drop = live_drop_sample,
					    .context = live};

	return options->names.rules && !err ? names_part__new(&names, part) : err;
}

static int add_memory(struct live *live, const struct live_options *options, struct live_part *part)
{
	const struct memory_options memory = {.tasks = live->tasks,
					      .groups_only = options->no_memory,
					      .always = &live->target.roots,
					      .push = event_queue__push,
					      .context = live->queue};

	return memory_part__new(&memory, part);
}

static int add_reread(struct live *live, const struct live_options *options, struct live_part *part)
{
	const struct reread_options reread = {.tasks = live->tasks,
					      .snapshot = live->proc,
					      .push = live_push_from_proc,
					      .context = live};
	int err = reread_part__new(&reread, part);

	(void)options;
	live->requests = (struct event_source_requests){
		.context = part->object,
		.reread_process = reread_part__request,
	};
	return err;
}

/* An event_push_fn. */
static int push_jit_event(void *context, struct event_header *event)
{
	struct live *live = context;
	int err = event->type == EVENT_JIT_FILE ? call_parts(live->parts, reported, event) : 0;

	return err ? err : event_queue__push(live->queue, event);
}

static int add_jit(struct live *live, const struct live_options *options, struct live_part *part)
{
	int err = jit_tail__new(options->jvm_perfmap, &live->jit);

	if (err)
		return err;
	jit_tail__count_in(live->jit, live->books);
	err = jit_part__new(
		&(struct jit_options){.tail = live->jit, .push = push_jit_event, .context = live},
		part);
	if (err)
		jit_tail__free(live->jit);
	return err;
}

static int settle_files(void *context, uint64_t now)
{
	(void)now;
	return live_settle_readers(context, FILES_PATIENCE);
}

static int finish_files(void *context, uint64_t time)
{
	struct live *live = context;

	(void)time;
	helper_pool__set_hurry(live->readers, false);
	return live_settle_readers(live, FILES_AT_END);
}

/* Takes answers of readers; the parts after it use them. */
static int add_files(struct live *live, const struct live_options *options, struct live_part *part)
{
	(void)options;
	*part = (struct live_part){.object = live, .tick = settle_files, .finish = finish_files};
	return 0;
}

static int add_facts(struct live *live, const struct live_options *options, struct live_part *part)
{
	const struct facts_options facts = {.tasks = live->tasks,
					    .readers = live->fact_readers,
					    .books = live->books,
					    .push = event_queue__push,
					    .context = live->queue};

	return options->facts ? facts_part__new(&facts, part) : 0;
}

/* Passes the runtimes of a process to the kernel side. */
static int set_runtime(void *context, uint32_t tgid, const struct runtime_info *info)
{
	struct live *live = context;

	return bpf_session__set_runtime(live->session, tgid, info);
}

/* An event_push_fn: the source of a function is opened after its process has ended. */
static int push_code_event(void *context, struct event_header *event)
{
	struct live *live = context;

	if (event->type == EVENT_CODE_RUNTIME)
		dso_opener__note_process(live->opener,
					 (pid_t)((const struct code_runtime_event *)event)->pid);
	else if (event->type == EVENT_CODE_FUNCTION)
		dso_opener__note_process(live->opener,
					 (pid_t)((const struct code_function_event *)event)->pid);
	return event_queue__push_reading(live->queue, event);
}

static int add_code(struct live *live, const struct live_options *options, struct live_part *part)
{
	const struct code_options code = {.tasks = live->tasks,
					  .readers = live->readers,
					  .service = SERVICE_CODE,
					  .books = live->books,
					  .push = options->sources ? push_code_event
								   : event_queue__push_reading,
					  .context = options->sources ? (void *)live : live->queue,
					  .set_runtime = set_runtime,
					  .runtime_context = live};

	return code_part__new(&code, part);
}

static int add_parts(struct live *live, const struct live_options *options)
{
	/* in the order of their calls */
	static int (*const add[])(struct live *, const struct live_options *,
				  struct live_part *) = {
		add_groups, add_memory, add_reread, add_jit, add_files,
		add_names,  add_facts,	add_code,   NULL,
	};
	struct live_part *part = live->parts;
	int err = 0;

	for (size_t i = 0; add[i] && !err; i++) {
		err = add[i](live, options, part);
		part += part->object != NULL;
	}
	return err;
}

/* An event_push_fn. A visit has a stack, so the parts that follow samples get it, too. */
static int push_visit(void *context, struct event_header *event)
{
	struct live *live = context;
	struct visit_event *visit = (struct visit_event *)event;
	struct task *task;
	int err = event->type == EVENT_VISIT ? event_check(event, event->size) : 0;

	if (event->type == EVENT_NAME_QUESTION)
		return call_parts(live->parts, reported, event);
	if (!err && event->type == EVENT_VISIT) {
		task = tasks__need(live->tasks, (pid_t)visit->stack.tgid);
		if (task && !(visit->account.found & VISIT_ACCOUNT))
			err = call_parts(live->parts, sampled, task, &visit->stack);
	}
	return err ? err : event_queue__push(live->queue, event);
}

/* The last part, because it needs the session. */
static int add_wall(struct live *live, const struct live_options *options, struct failure *failure)
{
	const struct wall_options wall = {.hz = options->wall_hz,
					  .budget = options->wall_budget,
					  .if_possible = options->wall_if_possible,
					  .small = options->wall_small,
					  .push = push_visit,
					  .context = live};
	struct live_part *part = live->parts;

	if (!options->wall_hz)
		return 0;
	while (part->object)
		part++;
	return wall_part__new(&wall, live->session, part, failure);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* True also for a zombie. */
static bool process_exists(pid_t pid)
{
	return !kill(pid, 0) || errno == EPERM;
}

static int init(struct live *live, const struct live_options *options)
{
	const struct target *target = &options->session.target;
	int err;

	live->target.mode = target->mode;
	live->target.names = options->names;
	live->target.everyone = target->mode == TARGET_ALL ||
				(options->names.rules && options->names.rules->include);
	live->target.inherit = target->inherit;
	live->hz = options->session.hz;
	live->marks_interrupts = options->interrupts;
	live->visits = options->wall_hz > 0;
	if (options->names.rules)
		live->target.proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	live->target.text = strdup(options->target_text);
	live->target.command_line = strdup(options->command_line);
	live->target.command_short = strdup(options->command_short ?: "");
	live->books = outside_books__new();
	live->queue = event_queue__new(options->queue_bytes);
	if (live->queue)
		event_queue__set_stage(live->queue, live_stage_event, live);
	live->sideband.queue = event_queue__new(LIVE_SIDEBAND_BYTES);
	quota__init(&live->sideband.map_records, QUOTA_MAP_RECORDS);
	if (live->sideband.queue)
		event_queue__set_stage(live->sideband.queue, live_stage_sideband, live);
	live->tasks = tasks__new(&(struct tasks_options){.everyone = live->target.everyone,
							 .inherit = target->inherit,
							 .exists = process_exists,
							 .released = live_release_task,
							 .context = live});
	live->idle = cpu_idle__new();
	live->pace.wakes = epoll_create1(EPOLL_CLOEXEC);
	if (live->pace.wakes < 0)
		return -errno;
	if (!live->target.text || !live->target.command_line || !live->target.command_short ||
	    !live->books || !live->queue || !live->sideband.queue || !live->tasks || !live->idle)
		return -ENOMEM;
	/* helpers are forked while there is little memory and one thread */
	err = session_readers__new(live->books, &live->readers)
		      ?: dso_opener__new(&(struct dso_opener_options){.readers = live->readers,
								   .service = SERVICE_FILES,
								   .books = live->books},
				      &live->opener) ?: proc_snapshot__new(&live->proc)
			      ?: add_fact_readers(live, options);
	if (err)
		return err;
	proc_snapshot__use_readers(live->proc, &(struct proc_readers){.pool = live->readers,
								      .service = SERVICE_MAPS,
								      .catch_up = live_catch_up,
								      .read_again = live_read_again,
								      .context = live});
	return add_parts(live, options);
}

/* Without them no group would match: what is excluded would be recorded. */
static int check_groups(const struct name_rules *names, struct failure *failure)
{
	if (!names || !((names->include | names->exclude) & NAMED_BY_GROUP) || target_cgroup_root())
		return 0;
	fail(failure, -ENOENT,
	     "units and containers need control groups of version 2: none is mounted at %s",
	     CGROUP_ROOT);
	return fail_remedy(failure, -ENOENT,
			   "mount -t cgroup2 none %s, or a target of another kind", CGROUP_ROOT);
}

int live__open(const struct live_options *options, struct live **result, struct failure *failure)
{
	struct live *live = calloc(1, sizeof(*live));
	struct bpf_session_options session = options->session;
	int err = -ENOMEM;

	if (live) {
		live->target.proc_fd = -1;
		err = init(live, options);
	}

	if (err) {
		fail(failure, err, "cannot prepare the recording: %s", strerror(-err));
		goto err_out;
	}
	session.names = options->names.rules;
	session.ends_of_sampled = live->target.everyone && !session.target.cgroup &&
				  (!session.names || live->target.mode == TARGET_ALL) &&
				  !options->wall_hz;
	err = check_groups(session.names, failure)
		      ?: bpf_session__open(&session, &live->session, failure);
	if (err)
		goto err_out;
	each_part_with (live->parts, part, opened)
		part->opened(part->object, live->session);
	err = add_wall(live, options, failure);
	if (err)
		goto err_out;
	err = live_pace__init(live);
	if (err) {
		fail(failure, err, "cannot prepare the recording: %s", strerror(-err));
		goto err_out;
	}
	err = live_targets__add(live, options, failure);
	if (err)
		goto err_out;
	*result = live;
	return 0;
err_out:
	live__free(live);
	return err;
}

static void free_parts(const struct live *live, bool uses_kernel)
{
	each_part_with (live->parts, part, free)
		if (part->uses_kernel == uses_kernel)
			part->free(part->object);
}

void live__free(struct live *live)
{
	if (!live)
		return;
	if (live->pace.wakes > 0)
		close(live->pace.wakes);
	free_parts(live, true);
	if (!wall_parts__still_use(live->session))
		bpf_session__free(live->session);
	proc_snapshot__free(live->proc);
	dso_opener__free(live->opener);
	helper_pool__free(live->readers);
	free_parts(live, false);
	fact_readers__free(live->fact_readers);
	service_names__free(live->target.services);
	outside_books__free(live->books);
	cpu_idle__free(live->idle);
	tasks__free(live->tasks);
	event_queue__free(live->queue);
	vec_free(&live->tsc_lags);
	vec_free(&live->dropped);
	if (live->target.proc_fd >= 0)
		close(live->target.proc_fd);
	vec_free(&live->target.roots);
	thread_targets__fini(&live->target.threads);
	brief_lives__fini(&live->sideband.brief);
	interrupts__fini(&live->interrupts);
	event_queue__free(live->sideband.queue);
	free(live->target.text);
	free(live->target.command_line);
	free(live->target.command_short);
	free(live->cpu_notes);
	free(live);
}

/* ---- starting -------------------------------------------------------------------------------- */

static int push_meta(struct live *live)
{
	const struct bpf_session_info *info = bpf_session__info(live->session);
	uint64_t now = monotonic_ns();
	const struct {
		const char *key, *value;
	} facts[] = {
		{META_COMMAND, live->target.command_line},
		{META_COMMAND_SHORT,
		 *live->target.command_short ? live->target.command_short : NULL},
		{META_TARGET, live->target.text},
		{META_EVENT, info->event},
		{META_EVENT_UNIT, info->event_unit},
		{META_CLOCK, info->tsc ? "tsc" : "monotonic"},
		{META_CLOCK_REASON, info->clock_reason},
		{META_CPU_TIME_METHOD, info->cpu_time_source},
		{META_INTERRUPTS, live->marks_interrupts ? "root" : NULL},
	};
	int err = machine_facts__emit(event_queue__push, live->queue, now);

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]) && !err; i++)
		err = facts[i].value ? meta_event__emit(event_queue__push, live->queue, now,
							facts[i].key, facts[i].value)
				     : 0;
	return err ? err : live_push_rate(live, now);
}

/* An event_push_fn: the kernel's symbols. */
static int push_symbols(void *context, struct event_header *event)
{
	struct live *live = context;

	return interrupts__symbols(&live->interrupts, (const struct kallsyms_event *)event)
		       ?: event_queue__push(live->queue, event);
}

static int push_first_events(struct live *live)
{
	struct clock_anchor_event anchors[2];

	clock__start(&live->clock, bpf_session__info(live->session)->tsc, anchors);
	live->last_anchor = anchors[1].monotonic;
	return event_queue__push(live->queue, &anchors[0].header)
		       ?: event_queue__push(live->queue, &anchors[1].header)
		       ?: push_meta(live);
}

/* The side-band is enabled, so code that comes or goes during the reading is reported. */
static int push_kernel_symbols(struct live *live)
{
	int err;

	/* first: a module that is loaded meanwhile is a change then */
	kernel_modules__init(&live->modules, monotonic_ns());
	err = kernel_snapshot__kallsyms(monotonic_ns(), push_symbols, live);
	/* without kallsyms the kernel has no symbols; the profile reports that, it is no error */
	return err == -ENOMEM ? err : 0;
}

static int settle_at_start(struct live *live)
{
	uint64_t until = monotonic_ns() + FILES_AT_START;
	int err;

	do {
		err = live_settle_readers(live, LIVE_DRAIN_INTERVAL) ?: live_drain_in_time(live);
	} while (!err && helper_pool__waiting(live->readers) && monotonic_ns() < until);
	return err;
}

int live__begin(struct live *live, struct failure *failure)
{
	int err = push_first_events(live);

	if (err)
		return fail(failure, err, "cannot read the clocks: %s", strerror(-err));
	err = bpf_session__enable_sideband(live->session, failure);
	if (err)
		return err;
	err = push_kernel_symbols(live);
	if (err)
		return fail(failure, err, "cannot read the kernel's symbols: %s", strerror(-err));
	thread_targets__begin(&live->target.threads, target_thread_runs);
	if (live->target.inherit && live->target.mode == TARGET_PROCESSES) {
		err = live_targets__add_descendants(live, failure);
		if (err)
			return err;
	}
	err = live_targets__snapshot(live, true, live_push_from_proc);
	if (err)
		return fail(failure, err, "cannot read the processes in /proc: %s", strerror(-err));
	err = settle_at_start(live);
	if (err)
		return fail(failure, err, "cannot open mapped files: %s", strerror(-err));
	err = call_parts(live->parts, begin) ?: live_settle_readers(live, CODE_AT_START);
	if (err)
		return fail(failure, err, "cannot read the live processes: %s", strerror(-err));
	helper_pool__set_hurry(live->readers, true);
	return 0;
}

int live__start(struct live *live, struct failure *failure)
{
	int err;

	bpf_session__visit_cpus(live->session);
	/* baselines, as late as possible, because a snapshot of a big system takes time */
	err = live_targets__read_cpu(live, 0) ?: call_parts(live->parts, second, monotonic_ns());
	if (err)
		return fail(failure, err, "cannot read the processes in /proc: %s", strerror(-err));
	live->target.cpu_at_start = live_targets__cpu(live);
	cpu_idle__start(live->idle);
	live_pace__start(live, monotonic_ns());
	err = bpf_session__enable_ticks(live->session, failure);
	if (err)
		return err;
	live->start_time = bpf_session__info(live->session)->started;
	live->started = true;
	each_part_with (live->parts, part, started)
		part->started(part->object);
	err = live_push_number(live, META_SAMPLING_START, live->start_time, live->start_time);
	return err ? fail(failure, err, "cannot start: %s", strerror(-err)) : 0;
}
