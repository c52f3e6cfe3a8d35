/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All work and memory that a process can cause has a limit of its own, so a process that lies about its runtime takes
 * nothing from another one: its questions, one request at a time, bytes of answers in a minute (QUOTA_FUNCTIONS).
 */
#include "session/live_code_private.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/minmax.h"
#include "base/vec.h"
#include "jitwatch/code_reader.h"
#include "runtimes/finder.h"
#include "process/code_functions.h"
#include "helpers/owner.h"

#define S	      1000000000ull
#define PROCESSES_MAX 16384u
#define PROGRAMS_MAX                                                                               \
	(PROCESSES_MAX /                                                                           \
	 2)		  /* that are only looked at because any program may have a runtime in it */
#define AT_FIRST    16u	  /* processes that are looked at before the first tick */
#define WAITING_MAX 1024u /* of one process */
#define RECHECK	    S	  /* ns between two readings of a function that may move, … */
#define RECHECK_SELDOM                                                                             \
	(5 * S)	  /* … of what is inlined in compiled code, and of a function that has a number */
#define RESTART S /* ns between two series of looks */
#define QUERY_WINDOWS                                                                              \
	2u /* a function that was not sampled for so many windows is requested again when it is */
#define YOUNG S /* ns since its first sample: it may be gone soon, and its functions with it */
#define SWEEP (10 * S) /* ns between two searches for processes whose end was not reported */

/*
 * How long after its first sample a process is looked at, and again while its runtime has not begun. At once, since many
 * processes are gone after some ticks; what writes down its functions itself is left to that when it does.
 */
static const uint64_t looks[LOOKS] = {0,     S / 128, S / 64, S / 32, S / 16, S / 8,
				      S / 4, S / 2,   S,      2 * S,  10 * S};

_Static_assert(
	QUERY_WINDOWS + 2 < CODE_WINDOWS_KEPT,
	"functions that are not kept any more are reported again, windows that wait included");

/* A child of fork has what its parent has, and needs nothing of its own unless it stays. */
#define STAYS (S / 32)

MAP_KEY(process_map, struct code_process *, uint32_t, (*entry)->pid)
MAP_FUNCTIONS(process_map, struct code_process *, uint32_t, process_map__key, map_hash_number,
	      map_same_number);

int live_code__new(const struct live_code_options *options, struct live_code **code)
{
	struct live_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	quota__init(&c->functions, QUOTA_FUNCTIONS);
	c->options = *options;
	note_table__init(&c->notes);
	*code = c;
	return 0;
}

static void free_process(struct live_code *c, struct code_process *process)
{
	c->query_count -= process->queries.count;
	query_map__fini(&process->queries);
	vec_free(&process->waiting);
	free(process);
}

void live_code__free(struct live_code *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->processes.count; i++)
		free_process(c, c->processes.data[i]);
	process_map__fini(&c->processes);
	plain_files__fini(&c->plain);
	free(c);
}

/* ---- processes ------------------------------------------------------------------------------- */

struct code_process *live_code_find(const struct live_code *c, uint32_t pid)
{
	struct code_process **process = process_map__find(&c->processes, pid);

	return process ? *process : NULL;
}

static int add_process(struct live_code *c, uint32_t pid, uint64_t program)
{
	struct code_process *process;

	if (c->processes.count >= (program ? PROGRAMS_MAX : PROCESSES_MAX))
		return 0;
	process = calloc(1, sizeof(*process));
	if (!process)
		return -ENOMEM;
	process->pid = pid;
	process->program = program;
	process->life = ++c->lives;
	if (process_map__need(&c->processes, &process, NULL))
		return 0;
	free(process);
	return -ENOMEM;
}

/* Schedules a look; restarts the series if the last one is old. */
static int note_candidate(struct live_code *c, uint32_t pid, uint64_t program)
{
	struct code_process *process = live_code_find(c, pid);
	uint64_t now;

	if (!process)
		return add_process(c, pid, program);
	if (!program)
		process->program = 0;
	now = process->looks ? monotonic_ns() : 0;
	if (now >= process->restarted + RESTART && process->looks) {
		process->restarted = now;
		process->looks = 0;
		process->first = 0;
	}
	return 0;
}

/* Any program may have a runtime linked into it. */
static int note_program(struct live_code *c, const struct mmap_event *mapping)
{
	if (live_code_find(c, mapping->pid))
		return 0;
	return note_candidate(c, mapping->pid, plain_files__identity(mapping));
}

int live_code__mapped(struct live_code *c, const struct mmap_event *mapping)
{
	if (runtime_may_be_in(mapping->path))
		return note_candidate(c, mapping->pid, 0);
	if (mapping->protection & PROT_EXEC && runtime_finder__is_program(mapping->path))
		return note_program(c, mapping);
	return 0;
}

int live_code__forked(struct live_code *c, uint32_t parent, uint32_t child, uint64_t time)
{
	struct code_process *process = parent == child ? NULL : live_code_find(c, parent);
	struct code_process *added;
	bool is_new;
	int err;

	if (!process)
		return 0;
	/* a process that only forks and waits has no samples, but its children have */
	if (!process->first && !process->looks && !process->looked_at && !process->program)
		process->wanted = true;
	is_new = !live_code_find(c, child);
	err = note_candidate(c, child, process->program);
	added = !err && is_new ? live_code_find(c, child) : NULL;
	if (added)
		live_code_inherit(added, process, time);
	return err;
}

/* The kernel notes nothing of it any more. */
static void withdraw(struct live_code *c, struct code_process *process)
{
	if (process->has || process->inherits)
		c->options.set_runtime(c->options.runtime_context, process->pid, NULL);
	process->has = 0;
	process->inherits = process->is_like_parent = false;
}

void live_code__forget(struct live_code *c, uint32_t pid)
{
	struct code_process **known = process_map__find(&c->processes, pid), *process;

	if (!known)
		return;
	process = *known;
	process_map__remove(&c->processes, known);
	if (process->from.life)
		c->gone[pid & (ORPHANS - 1)] = (struct gone_child){pid, process->from};
	withdraw(c, process);
	free_process(c, process);
}

/* Makes room in the kernel by evicting the process sampled longest ago. False: none can be evicted. */
static bool make_room(struct live_code *c, const struct code_process *who)
{
	struct code_process *oldest = NULL;

	for (size_t i = 0; i < c->processes.count; i++) {
		struct code_process *process = c->processes.data[i];

		if (process->has && process != who && (!oldest || process->last < oldest->last))
			oldest = process;
	}
	if (!oldest || oldest->last + S > who->last)
		return false;
	withdraw(c, oldest);
	oldest->looks = 0; /* should it be sampled again */
	oldest->first = 0;
	return true;
}

static void publish(struct live_code *c, struct code_process *process,
		    const struct runtime_info *info)
{
	int err = c->options.set_runtime(c->options.runtime_context, process->pid, info);

	if (err == -E2BIG && make_room(c, process))
		err = c->options.set_runtime(c->options.runtime_context, process->pid, info);
	if (err)
		return;
	process->has = info->has;
	process->info = *info;
	process->inherits = false;
}

/* Processes with a perf map get no frame notes, but their stacks are walked like others. */
static void publish_wanted(struct live_code *c, struct code_process *process,
			   struct runtime_info *info)
{
	if (process->writes_map)
		info->has &= RUNTIME_WALKED;
	if (info->has)
		publish(c, process, info);
	else
		withdraw(c, process);
}

void live_code__reports(struct live_code *c, uint32_t pid)
{
	struct code_process *process = live_code_find(c, pid);
	struct runtime_info info;

	if (!process || process->writes_map)
		return;
	process->writes_map = true;
	info = process->info;
	if (process->has || process->inherits)
		publish_wanted(c, process, &info);
}

bool live_code__keeps_frame_pointers(const struct live_code *c, uint32_t pid)
{
	const struct code_process *process = live_code_find(c, pid);

	return process && process->keeps_frame_pointers;
}

/* A runtime that is not read is reported; and if it is after all. True: the process has one that is or would be. */
static bool report_states(struct live_code *c, struct code_process *process,
			  const struct runtime_findings *findings)
{
	const struct runtime_memory *memory;
	bool any = false;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++) {
		const struct runtime_finding *found = &findings->of[i];
		struct code_runtime_event event = {
			.header = {.size = sizeof(event),
				   .type = EVENT_CODE_RUNTIME,
				   .time = monotonic_ns()},
			.pid = process->pid,
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

void live_code_begins(struct live_code *c, const struct code_process *process, uint64_t now)
{
	if (process->first && now < process->first + YOUNG)
		c->begun = now;
}

/* A helper_answer_fn. */
static void take_info(void *context, const struct helper_answer *answer)
{
	_cleanup_free_ struct code_request *request = context;
	struct live_code *c = request->code;
	struct code_process *process = live_code_find(c, request->pid);
	struct runtime_findings found;
	bool is_reported;

	c->looking--;
	if (!process || process->life != request->life)
		return;
	process->looked_at = false;
	if (code_reader__take_info(answer, &found)) {
		process->looks = answer->refusal == HELPER_LATE ? process->looks : LOOKS;
		return;
	}
	log_debug(LOG_SYMBOLS, "process %u: runtimes %x%s", request->pid, found.info.has,
		  found.may_come ? ", more may come" : "");
	process->keeps_frame_pointers = found.keeps_frame_pointers;
	is_reported = report_states(c, process, &found);
	if (!found.info.has && !found.may_come && process->program && !is_reported) {
		plain_files__add(&c->plain, process->plain_key);
		live_code__forget(c, request->pid);
		return;
	}
	if (!found.may_come)
		process->looks = LOOKS;
	if (found.may_come || found.info.has)
		live_code_begins(c, process, monotonic_ns());
	found.info.as_of = request->since;
	if (!found.info.has)
		return;
	process->layout = found.layout;
	publish_wanted(c, process, &found.info);
}

/*
 * Is it known that its program has no runtime in it? Separately for each user: a reader may find another file than
 * the process maps, and so a user can only deceive us about the user's own programs.
 */
static bool is_plain(struct live_code *c, struct code_process *process)
{
	if (!process->program)
		return false;
	process->plain_key = plain_files__of_owner(process->program,
						   helper_owner((pid_t)process->pid));
	return plain_files__has(&c->plain, process->plain_key);
}

/* A child that has lived long enough to have an entry of its own in the kernel. False: it has to be looked at. */
static bool take_as_parent(struct live_code *c, struct code_process *process)
{
	struct runtime_info info = process->info;

	if (!process->inherits || !process->is_like_parent)
		return false;
	publish_wanted(c, process, &info);
	process->wanted = false;
	process->looks = process->has ? LOOKS : process->looks + 1;
	return true;
}

static int look_at(struct live_code *c, struct code_process *process)
{
	struct code_request *request;
	int err;

	if (take_as_parent(c, process))
		return 0;
	request = live_code_request(c, process);
	if (!request)
		return -ENOMEM;
	process->wanted = false;
	if (is_plain(c, process)) {
		process->looks = LOOKS;
		free(request);
		return 0;
	}
	process->looks++;
	process->looked_at = true;
	c->looking++;
	err = code_reader__request(c->options.readers, c->options.service, process->pid,
				   process->life, NULL, 0, take_info, request);
	if (err) {
		c->looking--;
		free(request);
	}
	return err;
}

/* ---- functions ------------------------------------------------------------------------------- */

static void forget_questions(struct live_code *c, struct code_process *process)
{
	c->query_count -= process->queries.count;
	query_map__clear(&process->queries);
	process->waiting.count = 0;
	process->has_open = false;
}

enum code_lasting live_code_lasting(const struct live_code *c, uint32_t kind, uint64_t check)
{
	const struct note_ops *ops = kind < FRAME_NOTE_COUNT ? c->notes.of[kind] : NULL;

	return ops ? note_lasting(ops, check) : CODE_STAYS;
}

static enum code_lasting lasting(const struct live_code *c, const struct code_question *question)
{
	return live_code_lasting(c, question->kind, question->check);
}

/* 0: never. */
static uint64_t recheck_after(const struct live_code *c, const struct code_question *question)
{
	switch (lasting(c, question)) {
	case CODE_MOVES:
		return question->address ? RECHECK_SELDOM : RECHECK;
	case CODE_NUMBERED:
		return RECHECK_SELDOM;
	case CODE_STAYS:
	case CODE_LASTS:
		break;
	}
	return 0;
}

/* Is another request due? */
static bool is_due(const struct live_code *c, const struct query *query, uint64_t now)
{
	uint64_t after;

	if (query->waits)
		return false;
	if (!query->confirmed)
		return query->tries < TRIES && now >= query->time + (RECHECK << query->tries);
	after = recheck_after(c, &query->question);
	return after && now >= query->time + after;
}

static int repeat_query(struct code_process *process, uint32_t known, uint64_t now)
{
	struct query *query = &process->queries.data[known];

	if (query->confirmed)
		query->question.time = query->is_open ? query->open_since : now;
	query->waits = true;
	return vec_push(&process->waiting, known);
}

static int want_again(const struct live_code *c, struct code_process *process, uint32_t known,
		      uint64_t now)
{
	struct query *query = &process->queries.data[known];

	if (!is_due(c, query, now)) {
		query->open_since = query->is_open ? query->open_since : now;
		query->is_open = query->confirmed && !query->question.address &&
				 lasting(c, &query->question) == CODE_MOVES;
		process->has_open |= query->is_open;
		return 0;
	}
	return repeat_query(process, known, now);
}

/*
 * Functions that were sampled since their last reading. Their words may have been another function's at that time,
 * which only a later reading shows. `all`: also those read a moment ago, because there will be no later reading.
 */
static int want_open(const struct live_code *c, struct code_process *process, uint64_t now,
		     bool all)
{
	int err = 0;

	if (!process->has_open || (!all && now < process->closed + RECHECK))
		return 0;
	process->closed = now;
	process->has_open = false;
	for (size_t i = 0; i < process->queries.count && !err; i++) {
		const struct query *query = &process->queries.data[i];

		if (!query->is_open || query->waits)
			continue;
		if (process->waiting.count < WAITING_MAX && (all || is_due(c, query, now)))
			err = repeat_query(process, i, now);
		else
			process->has_open = true;
	}
	return err;
}

static int want_own(struct live_code *c, struct code_process *process,
		    const struct code_question *question, uint64_t now)
{
	struct query *known = live_code_find_query(process, question);

	if (process->waiting.count >= WAITING_MAX)
		return 0;
	if (known) {
		known->window = c->window;
		return want_again(c, process, known - process->queries.data, now);
	}
	if (process->queries.count >= QUERIES_MAX || c->query_count >= QUERIES_ALL)
		forget_questions(c, process);
	known = query_map__need(
		&process->queries,
		&(struct query){.question = *question, .waits = true, .window = c->window}, NULL);
	if (!known)
		return -ENOMEM;
	c->query_count++;
	return vec_push(&process->waiting, process->queries.count - 1);
}

struct query *live_code_find_query(const struct code_process *process,
				   const struct code_question *question)
{
	return query_map__find(&process->queries, &(struct query){.question = *question});
}

/* A function of a child of fork: most are its parent's as well, which lives longer. */
static int want_of_parent(struct live_code *c, const struct forked_from *from,
			  const struct code_question *question, uint64_t now)
{
	struct code_process *parent = live_code_parent(c, from);

	return parent ? want_own(c, parent, question, now) : 0;
}

static int want(struct live_code *c, struct code_process *process,
		const struct code_question *question, uint64_t now)
{
	int err = 0;

	if (process->from.life && c->notes.of[question->kind]->is_inherited &&
	    !live_code_find_query(process, question)) {
		if (live_code_is_inherited(c, process->from, question))
			return 0;
		err = want_of_parent(c, &process->from, question, now);
	}
	return err ? err : want_own(c, process, question, now);
}

/* An early_function_fn: of a process that was not known when it was sampled. */
static int want_early(void *context, const struct early_function *early)
{
	struct live_code *c = context;
	const struct code_question *q = &early->question;
	const struct gone_child *gone = &c->gone[early->pid & (ORPHANS - 1)];
	struct code_process *process = live_code_find(c, early->pid);

	if (process)
		return process->writes_map ? 0 : want(c, process, q, q->time);
	if (gone->pid != early->pid || gone->from.time > q->time)
		return EARLY_STILL;
	return live_code_is_inherited(c, gone->from, q)
		       ? 0
		       : want_of_parent(c, &gone->from, q, q->time);
}

static int want_note(struct live_code *c, struct code_process *process,
		     const struct sample_event *e, const struct frame_note *note)
{
	const struct note_ops *ops = c->notes.of[note->kind];
	struct code_question questions[NOTE_QUESTIONS_MAX] = {code_question(e, note)};
	unsigned int count = !ops || ops->order == NOTE_PLACES_GROUP ? 0
			     : ops->questions ? ops->questions(e, note, questions)
					      : 1;
	int err = 0;

	for (unsigned int i = 0; i < count && !err; i++)
		err = want(c, process, &questions[i], e->header.time);
	return err;
}

static uint64_t next_look(const struct code_process *process)
{
	uint64_t after = looks[process->looks];

	return process->inherits && process->is_like_parent ? max_u64(after, STAYS) : after;
}

int live_code__sampled(struct live_code *c, const struct sample_event *e)
{
	struct code_process *process = live_code_find(c, e->tgid);
	const struct frame_note *notes;
	int err = 0;

	if (!process) {
		early_functions__note(&c->early, &c->notes, e);
		return 0;
	}
	if (process->writes_map || e->header.flags & EVENT_STACK_COPY || !e->notes)
		notes = NULL;
	else
		notes = sample_notes(e);
	process->last = e->header.time;
	if (!process->first)
		process->first = e->header.time;
	if (process->looks < LOOKS && !process->looked_at &&
	    e->header.time >= process->first + next_look(process))
		process->wanted = true;
	for (size_t i = 0; notes && i < e->notes && !err; i++)
		err = want_note(c, process, e, &notes[i]);
	return err;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Processes that have ended, and whose exit record was lost. */
static void sweep(struct live_code *c, uint64_t now)
{
	if (now < c->swept + SWEEP)
		return;
	c->swept = now;
	for (size_t i = c->processes.count; i-- > 0;)
		if (kill((pid_t)c->processes.data[i]->pid, 0) && errno == ESRCH)
			live_code__forget(c, c->processes.data[i]->pid);
}

int live_code__begin(struct live_code *c)
{
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

static bool is_outdated(const struct live_code *c, const struct query *query)
{
	return !query->waits && !query->is_open && c->window - query->window >= QUERY_WINDOWS;
}

/*
 * Functions that were not sampled in the last windows are requested again when they are, because answers are not kept
 * for ever. 0 or -ENOMEM.
 */
static int forget_outdated(struct live_code *c, struct code_process *process)
{
	_cleanup_free_ uint32_t *numbers = calloc(process->queries.count + 1, sizeof(*numbers));
	size_t kept = 0;

	if (!numbers)
		return -ENOMEM;
	for (size_t i = 0; i < process->queries.count; i++) {
		numbers[i] = kept;
		if (!is_outdated(c, &process->queries.data[i]))
			process->queries.data[kept++] = process->queries.data[i];
	}
	if (kept == process->queries.count)
		return 0;
	c->query_count -= process->queries.count - kept;
	process->queries.count = kept;
	query_map__reindex(&process->queries);
	for (size_t i = 0; i < process->waiting.count; i++)
		process->waiting.data[i] = numbers[process->waiting.data[i]];
	return 0;
}

int live_code__close(struct live_code *c, uint64_t now)
{
	int err = 0;

	c->window++;
	for (size_t i = 0; i < c->processes.count && !err; i++) {
		err = forget_outdated(c, c->processes.data[i]);
		if (!err)
			err = want_open(c, c->processes.data[i], now, true);
	}
	return err;
}

bool live_code__waits(const struct live_code *c)
{
	for (size_t i = 0; i < c->processes.count; i++)
		if (c->processes.data[i]->waiting.count || c->processes.data[i]->has_request)
			return true;
	return false;
}

bool live_code__looks(const struct live_code *c)
{
	return c->looking > 0;
}

uint64_t live_code__begun(const struct live_code *c)
{
	return c->begun;
}

uint64_t live_code__met(const struct live_code *c)
{
	return c->met;
}

int live_code__run(struct live_code *c, uint64_t now)
{
	int err = c->err;

	sweep(c, now);
	if (!err)
		err = early_functions__take(&c->early, want_early, c);
	for (size_t i = 0; i < c->processes.count && !err; i++) {
		struct code_process *process = c->processes.data[i];

		if (process->wanted)
			err = look_at(c, process);
		if (!err)
			err = want_open(c, process, now, false);
		if (!err && process->waiting.count && !process->has_request)
			err = live_code_send_queries(c, process, now);
	}
	c->err = 0;
	return err;
}
