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
static struct asked *note_told(struct live_code *c, struct code_process *process,
			       const struct code_question *question, uint64_t now)
{
	struct asked *told;

	if (process->asked.count >= ASKED_MAX || c->asked >= ASKED_ALL)
		return NULL;
	told = asked_map__need(
		&process->asked,
		&(struct asked){.question = *question, .time = now, .window = c->window}, NULL);
	c->asked += told != NULL;
	return told;
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
static bool is_news(const struct live_code *c, const struct asked *asked,
		    const struct event_header *event, uint64_t hash)
{
	const struct code_function_event *e = (const struct code_function_event *)event;
	bool was_told = asked && asked->confirmed;
	bool tells = event->type == EVENT_CODE_CHAIN || e->state == CODE_STATE_CONFIRMED;

	if (!tells && e->state == CODE_STATE_STALE && is_known_for_good(c, e))
		tells = !was_told;
	else if (!tells && e->state == CODE_STATE_STALE)
		tells = was_told;
	if (!tells || !was_told || asked->answer != hash)
		return tells;
	return asked->doubtful && !(event->flags & EVENT_DOUBTFUL);
}

/* A function over a limit is requested again, regardless of its number of tries. */
static void give_another_try(struct asked *asked)
{
	if (asked && asked->tries == TRIES)
		asked->tries--;
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
static int report_change(struct live_code *c, struct asked *asked, const struct event_header *event)
{
	const struct code_function_event *e = (const struct code_function_event *)event;
	struct {
		struct code_function_event event;
		char text[EVENT_ALIGN]; /* no name, and no file */
	} gone = {};
	uint64_t hash;

	if (!asked || !asked->confirmed || !is_confirmed(event) || is_known_for_good(c, e))
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
	if (asked->answer == hash)
		return 0;
	asked->answer = hash;
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
		.process = &process->told,
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
	struct asked *asked = live_code_asked(taking->process, &question);
	uint64_t hash = hash_event(event);

	if (!is_news(c, asked, event, hash))
		return 0;
	if (!may_add(c, taking->process, event)) {
		give_another_try(asked);
		return report_change(c, asked, event);
	}
	if (!asked)
		asked = note_told(c, taking->process, &question, event->time);
	if (asked) {
		asked->confirmed = true;
		asked->answer = hash;
		asked->doubtful = event->flags & EVENT_DOUBTFUL;
		asked->read = is_confirmed(event) ? event->time : 0;
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
	struct asked *asked;
	int err;

	if (!memory || !process || process->tells || !process->layout.size)
		return 0;
	asked = live_code_asked(process, &question);
	if ((asked && asked->confirmed) || live_code_is_inherited(c, process->from, &question) ||
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
	taking.process->is_asked = false;
	err = code_reader__take_events(answer, request->pid, monotonic_ns(), take_event, &taking);
	if (!err && taking.process->waiting.count && !answer->refusal)
		err = live_code_ask(c, taking.process, monotonic_ns());
	c->err = c->err ? c->err : err;
}

/* Of these the memory may be used again within milliseconds. */
static bool is_of_a_new_function(const struct live_code *c, const struct asked *asked)
{
	const struct code_question *q = &asked->question;

	return !asked->tries && !q->address && c->notes.of[q->kind]->is_urgent;
}

int live_code_ask(struct live_code *c, struct code_process *process, uint64_t now)
{
	struct code_question questions[CODE_QUESTIONS_MAX];
	struct code_request *request;
	size_t count = 0;
	int err;

	while (count < CODE_QUESTIONS_MAX && count < process->waiting.count) {
		struct asked *asked = &process->asked.data[process->waiting.data[count]];

		if (!asked->tries)
			live_code_begins(c, process, now);
		if (is_of_a_new_function(c, asked))
			c->met = now;
		asked->waits = asked->is_open = false;
		asked->time = now;
		asked->tries += asked->tries < TRIES;
		questions[count] = asked->question;
		questions[count++].is_told = asked->confirmed;
	}
	process->waiting.count -= count;
	memmove(process->waiting.data, process->waiting.data + count,
		process->waiting.count * sizeof(*process->waiting.data));
	request = live_code_request(c, process);
	if (!request)
		return -ENOMEM;
	process->is_asked = true;
	err = code_reader__ask(c->options.readers, c->options.service, process->pid, process->life,
			       questions, count, take_events, request);
	if (err)
		free(request);
	return err;
}
