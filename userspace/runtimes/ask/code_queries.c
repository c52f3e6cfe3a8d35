/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtimes/ask/code_queries.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "runtimes/answers.h"
#include "runtimes/ask/code_private.h"
#include "tenants/owner.h"

#define S	    1000000000ull
#define TRIES	    6u	  /* of a question without an answer */
#define EARLY_MAX   1024u /* functions in samples of unknown processes */
#define EARLY_TURNS 3u	  /* for which they wait */
#define RECHECK	    S	  /* ns between two readings of a function that may move, … */
/* … of code inlined in compiled code, and of a function with a number */
#define RECHECK_SELDOM (5 * S)
/* a function not sampled for so many windows is requested again */
#define QUERY_WINDOWS 2u

_Static_assert(
	QUERY_WINDOWS + 2 < CODE_WINDOWS_KEPT,
	"functions that are not kept any more are reported again, windows that wait included");

static uint64_t query_hash(const struct query *query)
{
	const struct code_question *q = &query->question;

	return hash_combine(hash_combine(hash_u64(q->function), hash_u64(q->check)),
			    hash_u64(q->address + q->kind));
}

static bool query_equal(const struct query *x, const struct query *y)
{
	const struct code_question *a = &x->question, *b = &y->question;

	return a->kind == b->kind && a->function == b->function && a->check == b->check &&
	       a->address == b->address;
}

MAP_FUNCTIONS_OF(query_map, struct query, query_hash, query_equal);

struct code_process *code_find(const struct code_part *c, pid_t pid)
{
	const struct task *task = tasks__find(c->options.tasks, pid);

	return task ? task->slots.program.code : NULL;
}

/* NULL: no such question. */
static struct query *find_query(const struct code_process *process,
				const struct code_question *question)
{
	return query_map__find(&process->queries, &(struct query){.question = *question});
}

/* ---- children of fork ------------------------------------------------------------------------ */

/* The process that the task was forked from. NULL: gone, or without a runtime. */
static struct code_process *parent_of(const struct code_part *c, const struct task *task)
{
	const struct task *parent = tasks__get(c->options.tasks, task->parent);

	return parent ? parent->slots.program.code : NULL;
}

/* Was it read before the fork, of the parent or its parents? Then it is known of the child. */
static bool is_inherited(const struct code_part *c, const struct task *task,
			 const struct code_question *question)
{
	struct code_process *parent;

	for (unsigned int i = 0; i < CODE_KIN_MAX && (parent = parent_of(c, task)); i++) {
		struct query *query = find_query(parent, question);

		if (query && query->read && query->read <= task->since) {
			query->window = c->window;
			return true;
		}
		if (!parent->is_forked)
			break;
		task = parent->task;
	}
	return false;
}

/* ---- questions ------------------------------------------------------------------------------- */

static void forget_questions(struct code_part *c, struct code_process *process)
{
	c->query_count -= process->queries.count;
	query_map__clear(&process->queries);
	process->waiting.count = 0;
	process->has_open = false;
}

/* How long a reading of such a function is valid. */
static enum code_lasting lasting_of(const struct code_part *c, uint32_t kind, uint64_t check)
{
	const struct note_ops *ops = kind < FRAME_NOTE_COUNT ? c->notes.of[kind] : NULL;

	return ops ? note_lasting(ops, check) : CODE_STAYS;
}

static enum code_lasting lasting(const struct code_part *c, const struct code_question *question)
{
	return lasting_of(c, question->kind, question->check);
}

/* 0: never. */
static uint64_t recheck_after(const struct code_part *c, const struct code_question *question)
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
static bool is_due(const struct code_part *c, const struct query *query, uint64_t now)
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

static int want_again(const struct code_part *c, struct code_process *process, uint32_t known,
		      uint64_t now)
{
	struct query *query = &process->queries.data[known];

	if (process->waiting.count >= CODE_WAITING_MAX || !is_due(c, query, now)) {
		query->open_since = query->is_open ? query->open_since : now;
		query->is_open = query->confirmed && !query->question.address &&
				 lasting(c, &query->question) == CODE_MOVES;
		process->has_open |= query->is_open;
		return 0;
	}
	return repeat_query(process, known, now);
}

int code_want_open(struct code_part *c, struct code_process *process, uint64_t now, bool all)
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
		if (process->waiting.count < CODE_WAITING_MAX && (all || is_due(c, query, now)))
			err = repeat_query(process, i, now);
		else
			process->has_open = true;
	}
	return err;
}

static int want_own(struct code_part *c, struct code_process *process,
		    const struct code_question *question, uint64_t now)
{
	struct query *known = find_query(process, question);

	if (known) {
		known->window = c->window;
		return want_again(c, process, known - process->queries.data, now);
	}
	if (process->waiting.count >= CODE_WAITING_MAX) {
		process->missed = process->missed ? process->missed : now;
		return 0;
	}
	if (process->queries.count >= CODE_QUERIES_MAX || c->query_count >= CODE_QUERIES_ALL)
		forget_questions(c, process);
	known = query_map__need(
		&process->queries,
		&(struct query){.question = *question, .waits = true, .window = c->window}, NULL);
	if (!known)
		return -ENOMEM;
	if (process->missed)
		known->question.time = min_u64(process->missed, known->question.time);
	c->query_count++;
	return vec_push(&process->waiting, process->queries.count - 1);
}

/* Requests a child's function of its parent: most are the parent's, too, and it lives longer. */
static int want_of_parent(struct code_part *c, const struct task *task,
			  const struct code_question *question, uint64_t now)
{
	struct code_process *parent = parent_of(c, task);

	return parent ? want_own(c, parent, question, now) : 0;
}

static int want(struct code_part *c, struct code_process *process,
		const struct code_question *question, uint64_t now)
{
	int err = 0;

	if (process->is_forked && c->notes.of[question->kind]->is_inherited &&
	    !find_query(process, question)) {
		if (is_inherited(c, process->task, question))
			return 0;
		err = want_of_parent(c, process->task, question, now);
	}
	return err ? err : want_own(c, process, question, now);
}

int code_want_pieces(struct code_part *c, struct code_process *process, uint64_t now)
{
	int err = 0;

	for (unsigned int kind = 0; kind < FRAME_NOTE_COUNT && !err; kind++) {
		const struct code_question question = {.kind = kind, .time = now};
		const struct note_ops *ops = c->notes.of[kind];
		struct query *known = find_query(process, &question);

		if (!ops || !ops->has_pieces ||
		    !(runtime_of_note(kind)->memory->bits & process->found))
			continue;
		if (!known)
			err = want_own(c, process, &question, now);
		else if (!known->waits)
			err = repeat_query(process, known - process->queries.data, now);
	}
	return err;
}

/* A question with only the words of a note. */
static struct code_question question_of_words(const struct sample_event *e,
					      const struct frame_note *note)
{
	return (struct code_question){.function = note->function,
				      .check = note->check,
				      .time = e->header.time,
				      .kind = note->kind};
}

static int want_note(struct code_part *c, struct code_process *process,
		     const struct sample_event *e, const struct frame_note *note)
{
	const struct note_ops *ops = c->notes.of[note->kind];
	struct code_question questions[NOTE_QUESTIONS_MAX] = {question_of_words(e, note)};
	bool none = !ops || ops->order == NOTE_PLACES_GROUP ||
		    (ops->only_checked && !(note->function && note->check));
	unsigned int count = none ? 0 : ops->questions ? ops->questions(e, note, questions) : 1;
	int err = 0;

	if (ops && ops->has_pieces && !process->is_noted) {
		process->is_noted = true;
		err = code_want_pieces(c, process, e->header.time);
	}
	for (unsigned int i = 0; i < count && !err; i++)
		err = want(c, process, &questions[i], e->header.time);
	return err;
}

/*
 * Keeps inherited functions of a child: the kernel notes them from its first sample on, and its
 * fork is read after the samples. Functions of other runtimes are noted again with the next sample.
 */
static int note_early(struct code_part *c, const struct sample_event *e,
		      const struct frame_note *note)
{
	const struct note_ops *ops = c->notes.of[note->kind];

	if (!ops || !ops->is_inherited || !note->function || !note->check ||
	    c->early.count >= EARLY_MAX)
		return 0;
	return vec_push(&c->early,
			((struct early_function){.pid = (pid_t)e->tgid,
						 .question = question_of_words(e, note)}));
}

int code_want_notes(struct code_part *c, struct code_process *process, const struct sample_event *e)
{
	const struct frame_note *notes = sample_notes(e);
	int err = 0;

	if (e->header.flags & EVENT_STACK_COPY)
		return 0;
	for (size_t i = 0; i < e->notes && !err; i++)
		err = process ? want_note(c, process, e, &notes[i]) : note_early(c, e, &notes[i]);
	return err;
}

/* 1: its process is still unknown. If it has ended, the request goes to its parent. */
static int want_early(struct code_part *c, const struct early_function *early)
{
	const struct code_question *q = &early->question;
	const struct task *task = tasks__find(c->options.tasks, early->pid);
	struct code_process *process = task ? task->slots.program.code : NULL;

	if (process)
		return process->writes_map ? 0 : want(c, process, q, q->time);
	if (!task || !task->parent.serial || task->since > q->time)
		return 1;
	return is_inherited(c, task, q) ? 0 : want_of_parent(c, task, q, q->time);
}

int code_want_early(struct code_part *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->early.count; i++) {
		struct early_function early = c->early.data[i];
		int result = want_early(c, &early);

		if (result < 0)
			return result;
		if (result && ++early.turns < EARLY_TURNS)
			c->early.data[kept++] = early;
	}
	c->early.count = kept;
	return 0;
}

static bool is_outdated(const struct code_part *c, const struct query *query)
{
	return !query->waits && !query->is_open && c->window - query->window >= QUERY_WINDOWS;
}

int code_forget_outdated(struct code_part *c, struct code_process *process)
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

void code_free_questions(struct code_part *c, struct code_process *process)
{
	c->query_count -= process->queries.count;
	query_map__fini(&process->queries);
	vec_free(&process->waiting);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct taking {
	struct code_part *code;
	struct code_process *process;
};

static uint64_t hash_event(const struct event_header *event)
{
	return hash_bytes((const char *)event + sizeof(*event), event->size - sizeof(*event));
}

/* The question that an event answers. */
static struct code_question question_of(const struct event_header *event)
{
	const struct code_chain_event *chain = (const struct code_chain_event *)event;

	if (event->type == EVENT_CODE_FUNCTION) {
		const struct code_function_event *e = (const struct code_function_event *)event;

		return (struct code_question){
			.function = e->function, .check = e->check, .kind = e->kind};
	}
	return (struct code_question){
		.function = chain->function,
		.check = chain->call_count ? chain->calls[chain->call_count - 1].check : 0,
		.address = chain->address,
		.kind = chain->kind};
}

/* Adds a function that came unrequested, with the code that it is inlined in. NULL: no room. */
static struct query *add_query(struct code_part *c, struct code_process *process,
			       const struct code_question *question, uint64_t now)
{
	struct query *query;

	if (process->queries.count >= CODE_QUERIES_MAX || c->query_count >= CODE_QUERIES_ALL)
		return NULL;
	query = query_map__need(
		&process->queries,
		&(struct query){.question = *question, .time = now, .window = c->window}, NULL);
	c->query_count += query != NULL;
	return query;
}

/* Does its answer stay valid, whatever is at its address later? */
static bool is_known_for_good(const struct code_part *c, const struct code_function_event *e)
{
	enum code_lasting lasting = lasting_of(c, e->kind, e->check);

	return lasting == CODE_LASTS || lasting == CODE_NUMBERED;
}

/*
 * A failed reading is not reported, with two exceptions: functions that will get no other answer,
 * and methods that were reported before, because later samples may be of another one.
 */
static bool is_news(const struct code_part *c, const struct query *query,
		    const struct event_header *event, uint64_t hash)
{
	const struct code_function_event *e = (const struct code_function_event *)event;
	bool was_answered = query && query->confirmed;
	bool reports = event->type == EVENT_CODE_CHAIN || e->state == CODE_STATE_CONFIRMED;

	if (!reports && e->state == CODE_STATE_STALE && is_known_for_good(c, e))
		reports = !was_answered;
	else if (!reports && e->state == CODE_STATE_STALE)
		reports = was_answered;
	if (!reports || !was_answered || query->answer != hash)
		return reports;
	return query->doubtful && !(event->flags & EVENT_DOUBTFUL);
}

/* A function over a limit may be requested again, whatever its number of tries. */
static void give_another_try(struct query *query)
{
	if (query && query->tries == TRIES)
		query->tries--;
}

static bool is_confirmed(const struct event_header *event)
{
	return event->type == EVENT_CODE_FUNCTION &&
	       ((const struct code_function_event *)event)->state == CODE_STATE_CONFIRMED;
}

/*
 * If an answer is over a limit and the words were reported before, they may have become another
 * function's. Reports that in a few bytes, once until the next answer.
 */
static int report_change(struct code_part *c, struct query *query, const struct event_header *event)
{
	const struct code_function_event *e = (const struct code_function_event *)event;
	struct {
		struct code_function_event event;
		char text[EVENT_ALIGN]; /* no name, and no file */
	} gone = {};
	uint64_t hash;

	if (!query || !query->confirmed || !is_confirmed(event) || is_known_for_good(c, e))
		return 0;
	gone.event = (struct code_function_event){
		.header = {.size = sizeof(gone), .type = EVENT_CODE_FUNCTION, .time = event->time},
		.pid = e->pid,
		.kind = e->kind,
		.state = CODE_STATE_STALE,
		.name_size = 1,
		.file_size = 1,
		.function = e->function,
		.check = e->check,
	};
	hash = hash_event(&gone.event.header);
	if (query->answer == hash)
		return 0;
	query->answer = hash;
	return c->options.push(c->options.context, &gone.event.header);
}

static uint32_t user_of(void *books, uint32_t pid)
{
	return outside_books__user_of(books, (pid_t)pid);
}

/* Functions that a limit cut short where they were read. */
static void note_cut(struct code_part *c, uint32_t pid, uint32_t count)
{
	if (count)
		outside_books__add(c->options.books, user_of(c->options.books, pid),
				   OUTSIDE_FUNCTIONS, OUTSIDE_BY_ITSELF, count);
}

/* May the process add this event to the recording? If not, the books count it, if there are any. */
static bool may_add(struct code_part *c, struct code_process *process,
		    const struct event_header *event)
{
	struct outside_books *books = c->options.books;
	const uint32_t pid = (uint32_t)process->task->id.pid;
	const struct quota_claim claim = {
		.process = &process->events,
		.all = &c->functions.total,
		.scarce = (int64_t)c->functions.all.limit / 4 * 3,
		.now = event->time,
		.user_of = books ? user_of : NULL,
		.context = books,
		.pid = pid,
	};
	enum outside_reason refusal = quota__claim_refusal(&c->functions, &claim, event->size);

	if (refusal == OUTSIDE_REASON_COUNT) {
		quota__claim(&c->functions, &claim, event->size);
		return true;
	}
	outside_books__add(books, user_of(books, pid), OUTSIDE_FUNCTIONS, refusal, 1);
	return false;
}

/* An event_push_fn. */
static int take_event(void *context, struct event_header *event)
{
	struct taking *taking = context;
	struct code_part *c = taking->code;
	struct code_question question = question_of(event);
	struct query *query = find_query(taking->process, &question);
	uint64_t hash = hash_event(event);

	if (!is_news(c, query, event, hash))
		return 0;
	if (!may_add(c, taking->process, event)) {
		give_another_try(query);
		return report_change(c, query, event);
	}
	if (!query)
		query = add_query(c, taking->process, &question, event->time);
	if (query) {
		query->confirmed = true;
		query->answer = hash;
		query->doubtful = event->flags & EVENT_DOUBTFUL;
		query->read = is_confirmed(event) ? event->time : 0;
	}
	return c->options.push(c->options.context, event);
}

/* The runtime whose functions are copied, and the kind of its notes. */
static const struct runtime_memory *copied_runtime(enum frame_note_kind *kind)
{
	const struct runtime_memory *memory;

	for (unsigned int i = 0; (memory = runtime_memory(i)); i++)
		if (memory->read_copy)
			break;
	*kind = memory ? memory->notes[0].kind : FRAME_NOTE_NONE;
	return memory;
}

static int take_copy(struct code_part *c, const struct code_copy_event *copy)
{
	enum frame_note_kind kind;
	const struct runtime_memory *memory = copied_runtime(&kind);
	const struct code_question question = {
		.function = copy->function, .check = copy->check, .kind = kind};
	struct taking taking = {c, code_find(c, copy->tgid)};
	struct code_process *process = taking.process;
	struct code_answers answers = {.pid = copy->tgid, .limit = EVENT_SIZE_MAX};
	struct event_header *event;
	struct query *query;
	int err;

	if (!memory || !process || process->writes_map || !process->layout.size)
		return 0;
	query = find_query(process, &question);
	if ((query && query->confirmed) ||
	    (process->is_forked && is_inherited(c, process->task, &question)) ||
	    !meter__spend(&c->copies, &quota_row(QUOTA_CODE_COPIES)->all, copy->header.size,
			  copy->header.time)) /* over the limit: as if there were no copy */
		return 0;
	err = memory->read_copy(&answers, copy, &process->layout);
	if (answers.is_cut)
		note_cut(c, copy->tgid, 1);
	if (!err) {
		event = (struct event_header *)answers.bytes.data;
		event->time = copy->header.time;
		err = take_event(&taking, event);
	}
	code_answers__fini(&answers);
	return err == -ENODATA ? 0 : err;
}

int code_reported(void *code, const struct event_header *event)
{
	return event->type == EVENT_CODE_COPY
		       ? take_copy(code, (const struct code_copy_event *)event)
		       : 0;
}

/* A helper_answer_fn; then sends waiting requests. */
static void take_events(void *context, const struct helper_answer *answer)
{
	_cleanup_free_ struct code_request *request = context;
	struct code_part *c = request->code;
	struct taking taking = {c, code_requested(request)};
	uint64_t now = monotonic_ns();
	int err;

	if (!taking.process)
		return;
	taking.process->has_request = false;
	note_cut(c, (uint32_t)request->id.pid, code_reader__left(answer));
	err = code_reader__take_events(answer, (uint32_t)request->id.pid, request->since,
				       take_event, &taking);
	if (err == -ENODATA) {
		outside_books__add(c->options.books,
				   helper_owner_user(task__owner(taking.process->task, now)),
				   OUTSIDE_RUNTIMES, OUTSIDE_BY_NO_ANSWER, 1);
		err = 0;
	}
	if (!err && taking.process->waiting.count && !answer->refusal)
		err = code_send_queries(c, taking.process, now);
	c->err = c->err ? c->err : err;
}

/* Its memory may be reused within milliseconds. */
static bool is_of_a_new_function(const struct code_part *c, const struct query *query)
{
	const struct code_question *q = &query->question;

	return !query->tries && !q->address && c->notes.of[q->kind]->is_urgent;
}

int code_send_queries(struct code_part *c, struct code_process *process, uint64_t now)
{
	struct code_question questions[CODE_QUESTIONS_MAX];
	size_t count = 0;

	while (count < CODE_QUESTIONS_MAX && count < process->waiting.count) {
		struct query *query = &process->queries.data[process->waiting.data[count]];

		if (!query->tries)
			code_begins(c, process, now);
		if (is_of_a_new_function(c, query))
			c->met = now;
		query->waits = query->is_open = false;
		query->time = now;
		query->tries += query->tries < TRIES;
		questions[count] = query->question;
		questions[count++].is_answered = query->confirmed;
	}
	vec_drop(&process->waiting, count);
	process->has_request = true;
	return code_request(c, process, questions, count, take_events);
}
