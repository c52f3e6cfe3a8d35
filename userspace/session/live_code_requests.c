/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about functions of a process, one request at a time, and what becomes of the answers. */
#include "session/live_code_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "runtimes/answers.h"

struct code_request *live_code_request(struct live_code *c, const struct code_process *process)
{
	struct code_request *request = malloc(sizeof(*request));

	if (request)
		*request = (struct code_request){c, process->pid, process->life, monotonic_ns()};
	return request;
}

struct taking {
	struct live_code *code;
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

/* Enter a function that came without a request, with code that it is inlined in. NULL: no room. */
static struct query *add_query(struct live_code *c, struct code_process *process,
			       const struct code_question *question, uint64_t now)
{
	struct query *query;

	if (process->queries.count >= QUERIES_MAX || c->query_count >= QUERIES_ALL)
		return NULL;
	query = query_map__need(
		&process->queries,
		&(struct query){.question = *question, .time = now, .window = c->window}, NULL);
	c->query_count += query != NULL;
	return query;
}

/* Does its answer hold, whatever is at its address by now? */
static bool is_known_for_good(const struct live_code *c, const struct code_function_event *e)
{
	enum code_lasting lasting = live_code_lasting(c, e->kind, e->check);

	return lasting == CODE_LASTS || lasting == CODE_NUMBERED;
}

/*
 * A failed reading is not reported, with two exceptions: functions for which there will be no other answer, and
 * methods that were reported before, because later samples may be of another one.
 */
static bool is_news(const struct live_code *c, const struct query *query,
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

/* A function over a limit is requested again, regardless of its number of tries. */
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
 * If an answer is over a limit, and the words were reported before, they may be another function's since. Report that
 * in a few bytes, once until the next answer.
 */
static int report_change(struct live_code *c, struct query *query, const struct event_header *event)
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

/* May the process add this event to the recording? If not, the books have a row, if there are any. */
static bool may_add(struct live_code *c, struct code_process *process,
		    const struct event_header *event)
{
	struct outside_books *books = c->options.books;
	const struct quota_claim claim = {
		.process = &process->events,
		.all = &c->functions.total,
		.scarce = (int64_t)c->functions.all.limit / 4 * 3,
		.now = event->time,
		.user_of = books ? user_of : NULL,
		.context = books,
		.pid = process->pid,
	};
	enum outside_reason refusal = quota__claim_refusal(&c->functions, &claim, event->size);

	if (refusal == OUTSIDE_REASON_COUNT) {
		quota__claim(&c->functions, &claim, event->size);
		return true;
	}
	outside_books__add(books, user_of(books, process->pid), OUTSIDE_FUNCTIONS, refusal, 1);
	return false;
}

/* An event_push_fn. */
static int take_event(void *context, struct event_header *event)
{
	struct taking *taking = context;
	struct live_code *c = taking->code;
	struct code_question question = question_of(event);
	struct query *query = live_code_find_query(taking->process, &question);
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

int live_code__copied(struct live_code *c, const struct code_copy_event *copy)
{
	enum frame_note_kind kind;
	const struct runtime_memory *memory = copied_runtime(&kind);
	const struct code_question question = {
		.function = copy->function, .check = copy->check, .kind = kind};
	struct taking taking = {c, live_code_find(c, copy->tgid)};
	struct code_process *process = taking.process;
	struct code_answers answers = {.pid = copy->tgid, .limit = EVENT_SIZE_MAX};
	struct event_header *event;
	struct query *query;
	int err;

	if (!memory || !process || process->writes_map || !process->layout.size)
		return 0;
	query = live_code_find_query(process, &question);
	if ((query && query->confirmed) || live_code_is_inherited(c, process->from, &question) ||
	    !meter__spend(&c->copies, &quota_row(QUOTA_CODE_COPIES)->all, copy->header.size,
			  copy->header.time)) /* rather as if there were no copy */
		return 0;
	err = memory->read_copy(&answers, copy, &process->layout);
	if (!err) {
		event = (struct event_header *)answers.bytes.data;
		event->time = monotonic_ns();
		err = take_event(&taking, event);
	}
	code_answers__fini(&answers);
	return err == -ENODATA ? 0 : err;
}

/* A helper_answer_fn. Then requests what waits. */
static void take_events(void *context, const struct helper_answer *answer)
{
	_cleanup_free_ struct code_request *request = context;
	struct live_code *c = request->code;
	struct taking taking = {c, live_code_find(c, request->pid)};
	int err;

	if (!taking.process || taking.process->life != request->life)
		return;
	taking.process->has_request = false;
	err = code_reader__take_events(answer, request->pid, monotonic_ns(), take_event, &taking);
	if (!err && taking.process->waiting.count && !answer->refusal)
		err = live_code_send_queries(c, taking.process, monotonic_ns());
	c->err = c->err ? c->err : err;
}

/* Of these the memory may be used again within milliseconds. */
static bool is_of_a_new_function(const struct live_code *c, const struct query *query)
{
	const struct code_question *q = &query->question;

	return !query->tries && !q->address && c->notes.of[q->kind]->is_urgent;
}

int live_code_send_queries(struct live_code *c, struct code_process *process, uint64_t now)
{
	struct code_question questions[CODE_QUESTIONS_MAX];
	struct code_request *request;
	size_t count = 0;
	int err;

	while (count < CODE_QUESTIONS_MAX && count < process->waiting.count) {
		struct query *query = &process->queries.data[process->waiting.data[count]];

		if (!query->tries)
			live_code_begins(c, process, now);
		if (is_of_a_new_function(c, query))
			c->met = now;
		query->waits = query->is_open = false;
		query->time = now;
		query->tries += query->tries < TRIES;
		questions[count] = query->question;
		questions[count++].is_answered = query->confirmed;
	}
	process->waiting.count -= count;
	memmove(process->waiting.data, process->waiting.data + count,
		process->waiting.count * sizeof(*process->waiting.data));
	request = live_code_request(c, process);
	if (!request)
		return -ENOMEM;
	process->has_request = true;
	err = code_reader__request(c->options.readers, c->options.service, process->pid,
				   process->life, questions, count, take_events, request);
	if (err)
		free(request);
	return err;
}
