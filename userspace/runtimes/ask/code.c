/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each process has its own limits of work and memory: questions, one request at a time, bytes of
 * answers a minute (QUOTA_FUNCTIONS). So one that lies about its runtime takes nothing from others.
 */
#include "base/order.h"
#include "runtimes/ask/code_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "runtimes/answers.h"
#include "runtimes/ask/code_queries.h"

#define S	      1000000000ull
#define PROCESSES_MAX 16384u
/* processes whose program may have a runtime in it, as any may */
#define PROGRAMS_MAX (PROCESSES_MAX / 2)
#define AT_FIRST     16u /* processes to look at before the first tick */
#define RESTART	     S	 /* ns between two series of looks */
#define YOUNG	     S	 /* ns since its first sample: it may end soon, and its functions with it */

/*
 * When a process is looked at, after its first sample, while its runtime has not begun. At once,
 * because many processes end after some ticks; a perf map or jitdump of it is used once it has one.
 */
static const uint64_t looks[LOOKS] = {0,     S / 128, S / 64, S / 32, S / 16, S / 8,
				      S / 4, S / 2,   S,      2 * S,  10 * S};

/* A child of fork has what its parent has, and gets an entry of its own only if it stays. */
#define STAYS (S / 32)

/* ---- plain files ----------------------------------------------------------------------------- */

uint64_t plain_files__identity(const struct mmap_event *m)
{
	uint64_t hash = hash_combine((uint64_t)m->major << 32 | m->minor, m->inode);

	hash = hash_combine(hash, m->inode_generation);
	if (m->build_id_size <= BUILD_ID_SIZE)
		hash = hash_combine(hash, hash_bytes(m->build_id, m->build_id_size));
	if (!m->inode)
		hash = hash_combine(hash, hash_string(m->path));
	return hash | 1;
}

uint64_t plain_files__of_owner(uint64_t file, uint64_t owner)
{
	return hash_combine(file, owner) | 1;
}

void plain_files__add(struct file_set *p, uint64_t file)
{
	if (p->count >= PLAIN_FILES_MAX && !file_set__find(p, file))
		file_set__clear(p);
	file_set__need(p, &file, NULL);
}

/* ---- processes ------------------------------------------------------------------------------- */

static int add_process(struct code_part *c, struct task *task, uint64_t program)
{
	struct code_process *process;

	if (c->processes.count >= (program ? PROGRAMS_MAX : PROCESSES_MAX)) {
		outside_books__add(c->options.books,
				   outside_books__user_of(c->options.books, task->id.pid),
				   OUTSIDE_RUNTIMES, OUTSIDE_BY_ALL, 1);
		return 0;
	}
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->task = task;
	process->index = c->processes.count;
	process->program = program;
	if (vec_push(&c->processes, process)) {
		free(process);
		return -ENOMEM;
	}
	task->slots.program.code = process;
	return 0;
}

static bool is_settled(const struct code_process *process)
{
	return process->settled || process->looks == LOOKS;
}

/* Schedules a look: the series continues, or restarts if the last one is old. */
static int note_candidate(struct code_part *c, struct task *task, uint64_t program)
{
	struct code_process *process = task->slots.program.code;

	if (!process)
		return add_process(c, task, program);
	if (!program)
		process->program = 0;
	if (!process->looks)
		return 0;
	process->mapped = monotonic_ns();
	process->settled = false;
	if (process->mapped >= process->restarted + RESTART) {
		process->restarted = process->mapped;
		process->looks = 0;
		process->first = 0;
	}
	return 0;
}

static int note_program(struct code_part *c, struct task *task, const struct mmap_event *mapping)
{
	int err = note_candidate(c, task, plain_files__identity(mapping));
	struct code_process *process = task->slots.program.code;

	if (process) {
		process->device = makedev(mapping->major, mapping->minor);
		process->inode = mapping->inode;
	}
	return err;
}

/* Any program may have a runtime linked into it. */
static int code__mapped(void *code, struct task *task, const struct mmap_event *mapping)
{
	if (runtime_may_be_in(mapping->path))
		return note_candidate(code, task, 0);
	if (mapping->protection & PROT_EXEC && runtime_finder__is_program(mapping->path) &&
	    !task->slots.program.code)
		return note_program(code, task, mapping);
	return 0;
}

/* Does what the kernel did at the fork; see inherited_runtimes() there. */
static void inherit(struct code_process *child, const struct code_process *parent)
{
	uint32_t has = parent->has | (parent->inherits ? RUNTIME_FORKED : 0);

	child->is_forked = true;
	child->device = parent->device;
	child->inode = parent->inode;
	memcpy(child->reported, parent->reported, sizeof(child->reported));
	child->inherits = has & RUNTIME_FORKED;
	if (!child->inherits)
		return;
	child->is_like_parent = has == RUNTIME_FORKED && !parent->looked_at &&
				(is_settled(parent) || parent->is_like_parent);
	child->layout = parent->layout;
	child->info = parent->info;
	child->info.as_of = child->task->since;
	child->info.has = RUNTIME_FORKED;
}

static int code__forked(void *code, const struct task_event *fork)
{
	struct code_part *c = code;
	struct code_process *parent = code_find(c, (pid_t)fork->ppid);
	struct task *task = tasks__find(c->options.tasks, (pid_t)fork->pid);
	bool is_new;
	int err;

	if (fork->pid == fork->ppid || !parent || !task)
		return 0;
	/* a process that only forks and waits has no samples, but its children have */
	if (!parent->first && !parent->looks && !parent->looked_at && !parent->program)
		parent->wanted = true;
	is_new = !task->slots.program.code;
	err = note_candidate(c, task, parent->program);
	if (is_new && task->slots.program.code)
		inherit(task->slots.program.code, parent);
	return err;
}

/* The kernel notes nothing of the process any more. */
static void withdraw(struct code_part *c, struct code_process *process)
{
	if (process->has || process->inherits)
		c->options.set_runtime(c->options.runtime_context, process->task->id.pid, NULL);
	process->has = 0;
	process->inherits = process->is_like_parent = false;
}

static void free_process(struct code_part *c, struct code_process *process)
{
	code_free_questions(c, process);
	free(process);
}

static void forget(struct code_part *c, struct code_process *process)
{
	struct code_process *last = c->processes.data[--c->processes.count];

	last->index = process->index;
	c->processes.data[last->index] = last;
	process->task->slots.program.code = NULL;
	withdraw(c, process);
	free_process(c, process);
}

static int code__ended(void *code, struct task *task)
{
	if (task->slots.program.code)
		forget(code, task->slots.program.code);
	return 0;
}

/* ---- the kernel's copy ----------------------------------------------------------------------- */

/* Evicts the process sampled longest ago from the kernel. False: none can be evicted. */
static bool make_room(struct code_part *c, const struct code_process *except)
{
	struct code_process *oldest = NULL;

	for (size_t i = 0; i < c->processes.count; i++) {
		struct code_process *process = c->processes.data[i];

		if (process->has && process != except && (!oldest || process->last < oldest->last))
			oldest = process;
	}
	if (!oldest || oldest->last + S > except->last)
		return false;
	withdraw(c, oldest);
	oldest->looks = 0; /* if it is sampled again */
	oldest->settled = false;
	oldest->first = 0;
	return true;
}

static void publish(struct code_part *c, struct code_process *process,
		    const struct runtime_info *info)
{
	int err = c->options.set_runtime(c->options.runtime_context, process->task->id.pid, info);

	if (err == -E2BIG && make_room(c, process))
		err = c->options.set_runtime(c->options.runtime_context, process->task->id.pid,
					     info);
	if (err)
		return;
	process->has = info->has;
	process->info = *info;
	process->inherits = false;
}

/* Of a process with a perf map, only what its map does not have is noted. */
static void publish_wanted(struct code_part *c, struct code_process *process,
			   struct runtime_info *info)
{
	if (process->writes_map)
		info->has &= c->maps_pause ? RUNTIME_INSTEAD_OF_MAP : RUNTIME_BESIDE_MAP;
	if (info->has)
		publish(c, process, info);
	else
		withdraw(c, process);
}

/*
 * The process's functions are in a map or dump that is followed: its frames get no notes any more,
 * except in a JVM, whose map lacks interpreted methods and those compiled after it was written.
 */
static void take_over(struct code_part *c, pid_t pid)
{
	struct code_process *process = code_find(c, pid);
	struct runtime_info info;

	if (!process || process->writes_map)
		return;
	process->writes_map = true;
	info = process->info;
	if (process->has || process->inherits)
		publish_wanted(c, process, &info);
}

static int code__reported(void *code, const struct event_header *event)
{
	const struct jit_file_event *file = (const struct jit_file_event *)event;

	if (event->type != EVENT_JIT_FILE)
		return code_reported(code, event);
	if (jit_file_state_is_followed(file->state))
		take_over(code, (pid_t)file->pid);
	return 0;
}

/* Frames of processes with a map get notes like others while maps are not read. */
static void code__pause_jit(void *code, bool pause)
{
	struct code_part *c = code;

	if (c->maps_pause == pause)
		return;
	c->maps_pause = pause;
	for (size_t i = 0; i < c->processes.count; i++) {
		struct code_process *process = c->processes.data[i];
		struct runtime_info info = process->info;

		info.has = process->found;
		if (process->writes_map && process->found)
			publish_wanted(c, process, &info);
	}
}

bool code_keeps_frame_pointers(const struct tasks *tasks, pid_t pid)
{
	const struct task *task = tasks__find(tasks, pid);

	return task && task->slots.program.code && task->slots.program.code->keeps_frame_pointers;
}

/* ---- looks ----------------------------------------------------------------------------------- */

/* Reports runtimes that cannot be read, or can again. True: the process has a reported runtime. */
static bool report_states(struct code_part *c, struct code_process *process, uint64_t since,
			  const struct runtime_findings *findings)
{
	const struct runtime_memory *memory;
	bool any = false;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++) {
		const struct runtime_finding *found = &findings->of[i];
		struct code_runtime_event event = {
			.header = {.size = sizeof(event),
				   .type = EVENT_CODE_RUNTIME,
				   .time = since},
			.pid = (uint32_t)process->task->id.pid,
			.kind = memory->reports,
			.state = found->state,
		};
		int err;

		if (!memory->reports || !found->is_there)
			continue;
		any = true;
		if (process->reported[i] == found->state)
			continue;
		process->reported[i] = found->state;
		err = c->options.push(c->options.context, &event.header);
		c->err = c->err ? c->err : err;
	}
	return any;
}

void code_begins(struct code_part *c, const struct code_process *process, uint64_t now)
{
	if (process->first && now < process->first + YOUNG)
		c->begun = now;
}

/* Ends the looks, unless a runtime was mapped after this request. */
static void end_looks(struct code_process *process, const struct code_request *request)
{
	if (request->since >= process->mapped)
		process->settled = true;
}

#define LISTS_MAX 2u

/*
 * Lists pieces of code when found, and again at the first profile's end, because there are more. In
 * between with the first note: it may have been found before it had an interpreter.
 */
static void list_pieces(struct code_part *c, struct code_process *process)
{
	int err = 0;

	if (process->listed < LISTS_MAX)
		err = code_want_pieces(c, process, monotonic_ns());
	process->listed += process->listed < LISTS_MAX;
	c->err = c->err ? c->err : err;
}

/*
 * The process may have executed another program before the reader looked at it. Records with a build-id
 * have no inode, so there it cannot be seen.
 */
static bool is_of_program(const struct code_process *process,
			  const struct runtime_findings *findings)
{
	return !process->inode ||
	       (findings->inode == process->inode && findings->device == process->device);
}

/* A helper_answer_fn. */
static void take_info(void *context, const struct helper_answer *answer)
{
	_cleanup_free_ struct code_request *request = context;
	struct code_part *c = request->code;
	struct code_process *process = code_requested(request);
	struct runtime_findings found;
	bool is_reported;

	c->looking--;
	if (!process)
		return;
	process->looked_at = false;
	if (code_reader__take_info(answer, &found)) {
		if (answer->refusal != HELPER_LATE)
			end_looks(process, request);
		return;
	}
	log_debug(LOG_SYMBOLS, "process %u: runtimes %x%s", request->id.pid, found.info.has,
		  found.may_come ? ", more may come" : "");
	if (found.left)
		outside_books__add(c->options.books,
				   outside_books__user_of(c->options.books, process->task->id.pid),
				   OUTSIDE_RUNTIMES, OUTSIDE_BY_ITSELF, 1);
	process->keeps_frame_pointers = found.keeps_frame_pointers;
	is_reported = report_states(c, process, request->since, &found);
	if (!found.info.has && !found.may_come && process->program && !is_reported) {
		if (is_of_program(process, &found))
			plain_files__add(&c->plain, process->plain_key);
		forget(c, process);
		return;
	}
	if (!found.may_come)
		end_looks(process, request);
	if (found.may_come || found.info.has)
		code_begins(c, process, monotonic_ns());
	found.info.as_of = request->since;
	if (!found.info.has)
		return;
	process->layout = found.layout;
	process->found = found.info.has;
	process->info = found.info;
	list_pieces(c, process);
	publish_wanted(c, process, &found.info);
}

/*
 * Is its program known to have no runtime? Separately for each owner: a reader may find another
 * file than the process maps, so users can only deceive us about their own programs.
 */
static bool is_plain(struct code_part *c, struct code_process *process)
{
	if (!process->program)
		return false;
	process->plain_key = plain_files__of_owner(process->program,
						   task__read_owner(process->task, monotonic_ns()));
	return file_set__find(&c->plain, process->plain_key);
}

static void count_look(struct code_process *process)
{
	process->looks += process->looks < LOOKS;
	process->looked = process->samples;
}

/* For a child that has stayed: makes its own entry in the kernel. False: look at it instead. */
static bool take_as_parent(struct code_part *c, struct code_process *process)
{
	struct runtime_info info = process->info;

	if (!process->inherits || !process->is_like_parent)
		return false;
	publish_wanted(c, process, &info);
	process->wanted = false;
	if (process->has)
		process->settled = true;
	else
		count_look(process);
	return true;
}

static int look_at(struct code_part *c, struct code_process *process)
{
	int err;

	if (take_as_parent(c, process))
		return 0;
	process->wanted = false;
	if (is_plain(c, process)) {
		process->settled = true;
		return 0;
	}
	count_look(process);
	process->looked_at = true;
	c->looking++;
	err = code_request(c, process, NULL, 0, take_info);
	c->looking -= err != 0;
	return err;
}

static uint64_t next_look(const struct code_process *process)
{
	uint64_t after = looks[process->looks];

	return process->inherits && process->is_like_parent ? max_u64(after, STAYS) : after;
}

/*
 * Towards the end of the series also when its CPU time has doubled since the last look: on a busy
 * host a start takes long.
 */
static bool is_look_due(const struct code_process *process)
{
	if (process->settled || process->looked_at)
		return false;
	if (process->looks >= LOOKS - 1 && process->samples >= 2 * process->looked)
		return true;
	return process->looks < LOOKS && process->last >= process->first + next_look(process);
}

static void count_sample(struct code_process *process, uint64_t time)
{
	process->last = time;
	if (!process->first) {
		process->first = time;
		process->samples = process->looked = 0;
	}
	process->samples++;
}

static int code__sampled(void *code, struct task *task, const struct sample_event *e)
{
	struct code_process *process = task->slots.program.code;

	if (!process)
		return code_want_notes(code, NULL, e);
	count_sample(process, e->header.time);
	process->wanted |= is_look_due(process);
	return code_want_notes(code, process, e);
}

/* ---- requests -------------------------------------------------------------------------------- */

int code_request(struct code_part *c, struct code_process *process,
		 const struct code_question *questions, size_t count, helper_answer_fn answer)
{
	struct code_request *request = malloc(sizeof(*request));
	struct task_id id = process->task->id;
	uint64_t now = monotonic_ns();
	int err;

	if (!request)
		return -ENOMEM;
	*request = (struct code_request){c, id, now};
	err = code_reader__request(c->options.readers, c->options.service, (uint32_t)id.pid,
				   task__owner(process->task, now), id.serial, questions, count,
				   answer, request);
	if (err)
		free(request);
	return err;
}

struct code_process *code_requested(const struct code_request *request)
{
	const struct task *task = tasks__get(request->code->options.tasks, request->id);

	return task ? task->slots.program.code : NULL;
}

/* ---- all processes --------------------------------------------------------------------------- */

static int code__begin(void *code)
{
	struct code_part *c = code;
	bool all = c->processes.count <= AT_FIRST;
	size_t sure = 0;
	int err = 0;

	for (size_t i = 0; i < c->processes.count; i++)
		sure += !c->processes.data[i]->program;
	if (sure > AT_FIRST)
		return 0;
	for (size_t i = 0; i < c->processes.count && !err; i++)
		if (all || !c->processes.data[i]->program)
			err = look_at(c, c->processes.data[i]);
	return err;
}

/*
 * Functions that were sampled since their last reading are requested again, because their words may
 * have been another function's then.
 */
static int code__close(void *code, uint64_t now)
{
	struct code_part *c = code;
	int err = 0;

	c->window++;
	for (size_t i = 0; i < c->processes.count && !err; i++) {
		if (c->processes.data[i]->listed && c->processes.data[i]->listed < LISTS_MAX)
			list_pieces(c, c->processes.data[i]);
		err = code_forget_outdated(c, c->processes.data[i])
			      ?: code_want_open(c, c->processes.data[i], now, true);
	}
	return err;
}

static bool code__waits(const void *code)
{
	const struct code_part *c = code;

	return any_of(c->processes.data, c->processes.count, p,
		      (*p)->waiting.count || (*p)->has_request);
}

static void code__expect(const void *code, struct live_expectation *e)
{
	const struct code_part *c = code;

	e->looks |= c->looking > 0;
	e->begun = max_u64(e->begun, c->begun);
	e->met = max_u64(e->met, c->met);
}

static int code__tick(void *code, uint64_t now)
{
	struct code_part *c = code;
	int err = c->err ? c->err : code_want_early(c);

	for (size_t i = 0; i < c->processes.count && !err; i++) {
		struct code_process *process = c->processes.data[i];

		if (process->wanted)
			err = look_at(c, process);
		if (!err)
			err = code_want_open(c, process, now, false);
		if (!err && process->waiting.count && !process->has_request)
			err = code_send_queries(c, process, now);
	}
	c->err = 0;
	return err;
}

static void code__free(void *code)
{
	struct code_part *c = code;

	vec_free_with(&c->processes, process, free_process(c, *process));
	vec_free(&c->early);
	file_set__fini(&c->plain);
	free(c);
}

int code_part__new(const struct code_options *options, struct live_part *part)
{
	struct code_part *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	quota__init(&c->functions, QUOTA_FUNCTIONS);
	c->options = *options;
	note_table__init(&c->notes);
	*part = (struct live_part){.object = c,
				   .sampled = code__sampled,
				   .reported = code__reported,
				   .forked = code__forked,
				   .mapped = code__mapped,
				   .execed = code__ended,
				   .exited = code__ended,
				   .begin = code__begin,
				   .tick = code__tick,
				   .close = code__close,
				   .waits = code__waits,
				   .expect = code__expect,
				   .pause_jit = code__pause_jit,
				   .free = code__free};
	return 0;
}
