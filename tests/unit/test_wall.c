/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting time: what visits are made of, in stories of events, and the tables of states; see testdata/wall.txt. */
#include <sys/syscall.h>

#include "text_cases.h"

#include "event_story.h"
#include "base/cleanup.h"
#include "world/wall_states.h"

#define KERNEL_START 0xffffffff81000000ull
#define BEGIN                                                                                      \
	"process 10 -750 prog, thread 10 11 -500 0 worker, map 10 10000 /bin/prog from-proc, "     \
	"read 10, begin"

/* ---- visits ---------------------------------------------------------------------------------- */

static const struct {
	const char *word;
	uint32_t flag;
} found[] = {
	{"runnable", VISIT_RUNNABLE}, {"account", VISIT_ACCOUNT},     {"running", VISIT_RUNNING},
	{"lock", VISIT_LOCK},	      {"io-wait", VISIT_IO_WAIT},     {"pending", VISIT_PENDING},
	{"stopped", VISIT_STOPPED},   {"throttled", VISIT_THROTTLED},
};

#define CALL(name)                                                                                 \
	{                                                                                          \
#name, SYS_##name                                                                  \
	}
static const struct {
	const char *word;
	int call;
} calls[] = {
	CALL(futex),
	CALL(flock),
	CALL(nanosleep),
	CALL(rt_sigsuspend),
	CALL(msgrcv),
	CALL(poll),
	CALL(rt_sigtimedwait),
	CALL(mq_timedreceive),
	CALL(epoll_wait),
	CALL(accept4),
	CALL(wait4),
	CALL(fsync),
	CALL(read),
	CALL(write),
	CALL(io_uring_enter),
	CALL(io_getevents),
	{"none", VISIT_NO_CALL},
	{"unknown", VISIT_CALL_UNKNOWN},
};

/* What a visit has found: "futex", "runnable", … False: it says something else. */
static bool add_finding(struct visit_account *account, const char *word)
{
	for (size_t i = 0; i < sizeof(found) / sizeof(found[0]); i++)
		if (!strcmp(found[i].word, word)) {
			account->found |= found[i].flag;
			return true;
		}
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (!strcmp(calls[i].word, word)) {
			account->call = calls[i].call;
			return true;
		}
	return false;
}

static void add_visit_word(struct visit_event *e, const char *word)
{
	struct visit_account *a = &e->account;
	const char *value = strchr(word, '=');
	uint64_t number = value ? strtoull(value + 1, NULL, 10) : 0;

	if (!strncmp(word, "unchanged=", 10))
		a->unchanged = S + number * MS;
	else if (!strncmp(word, "cpu=", 4))
		e->stack.cpu_time = number * MS;
	else if (!strncmp(word, "delay=", 6))
		a->run_delay = number * MS;
	else if (!strncmp(word, "switches=", 9))
		a->switches = number;
	else if (!strncmp(word, "since=", 6))
		a->since = S + number * MS;
	else if (!strncmp(word, "holder=", 7))
		a->holder = (uint32_t)number;
	else if (!strcmp(word, "kernel"))
		e->stack.frames[e->stack.kernel_frames++] = story_frame("k10", true);
	else if (!add_finding(a, word))
		fail_msg("no word of a visit: %s", word);
}

/* Of thread 11 of process 10, so many ms after the beginning. */
static void visit(const struct story_words *w)
{
	_cleanup_free_ struct visit_event *e = calloc(1, sizeof(*e) + 2 * sizeof(uint64_t));

	ev.now = S + ms_of(w->word[0]);
	e->account = (struct visit_account){
		.header = {.type = EVENT_VISIT, .time = ev.now}, .seen = ev.now, .started = S / 2};
	e->stack.tgid = 10;
	e->stack.tid = 11;
	for (int i = 1; i < w->count; i++)
		add_visit_word(e, w->word[i]);
	e->stack.frames[e->stack.kernel_frames] = IP(0x10010);
	e->stack.user_frames = 1;
	assert_int_equal(ev.h.visit(ev.h.context, e), 0);
}

/* The books of the visitor so far, at a time in ms; its latest visit began at `seen`. */
static void visit_books(const struct story_words *w)
{
	struct visit_books_event books = {.lines = VISIT_LINE_COUNT, .hz = 20};

	ev.now = S + ms_of(w->word[0]);
	books.header = header(0);
	books.made_at = S + ms_of(w->word[2]);
	books.count[VISIT_LINE_LOOKS] = story_number(w, 3);
	books.count[VISIT_LINE_UNCHANGED] = story_number(w, 4);
	assert_int_equal(ev.h.visit_books(ev.h.context, &books), 0);
}

/* What is open gets its state before the profile is checked, as the finisher does. */
static void settle(uint64_t end)
{
	assert_int_equal(recorder__close(ev.recorder, end), 0);
	assert_int_equal(wall_states__settle(ev.builder), 0);
}

static void end_window(uint64_t time)
{
	ev.now = time;
	settle(time);
	next_window();
}

static void end_thread(uint64_t cpu)
{
	thread_cpu(10, 11, cpu, EVENT_EXITED);
	exit_(10, 11);
}

/* The kernel's functions get this name. */
static void name_kernel_functions(const char *name)
{
	struct profile_line line = {};
	struct profile_function function = {};

	for (uint32_t i = 1; i < profile_builder__location_count(ev.builder); i++) {
		const struct profile_location *l =
			profile_builder__get_location(ev.builder, (struct location_id){i});

		if (l->category != CATEGORY_KERNEL)
			continue;
		function.name = profile_builder__string(ev.builder, name);
		function.dso = l->dso;
		line.function = profile_builder__function(ev.builder, &function);
		profile_builder__resolve(ev.builder, (struct location_id){i}, KERNEL_START, &line,
					 1);
	}
}

static void play_wall(const struct story_words *w)
{
	const char *verb = w->word[1];

	if (*w->word[0] < '0' || *w->word[0] > '9')
		play_words(w);
	else if (!strcmp(verb, "books"))
		visit_books(w);
	else if (!strcmp(verb, "window"))
		end_window(S + ms_of(w->word[0]));
	else if (!strcmp(verb, "at"))
		ev.now = S + ms_of(w->word[0]);
	else if (!strcmp(verb, "ends")) {
		ev.now = S + ms_of(w->word[0]);
		end_thread(ms_of(w->word[2]));
	} else
		visit(w);
}

/* ---- profiles -------------------------------------------------------------------------------- */

static void put_ms(FILE *out, const char *name, uint64_t time)
{
	if (time)
		fprintf(out, " %s %g", name, (double)time / MS);
}

static void put_wait(FILE *out, const struct profile_samples *w, size_t i)
{
	fprintf(out, "; %s %g", wall_state_name(w->state[i]), (double)w->weight[i] / MS);
	if (w->since[i] != w->until[i])
		fprintf(out, " %g..%g", ((double)w->since[i] - S) / MS,
			((double)w->until[i] - S) / MS);
	if (w->holder[i].v)
		fprintf(out, " held by %u", ev.p->threads[w->holder[i].v].tid);
	if (ev.p->stacks[w->stack[i].v].depth != 1)
		fprintf(out, " depth %u", ev.p->stacks[w->stack[i].v].depth);
}

static void put_wall(FILE *out, const struct profile *p)
{
	const struct profile_thread *t;

	ev.p = p;
	t = thread_of(11, 0);
	fprintf(out, "from %g:", ((double)t->wall.since - S) / MS);
	put_ms(out, "all", t->wall.until - t->wall.since);
	put_ms(out, "ran", t->wall.running);
	put_ms(out, "ready", t->wall.runnable);
	put_ms(out, "blocked", t->wall.blocked);
	put_ms(out, "unvisited", t->wall.unvisited);
	if (p->visits.count[VISIT_LINE_LOOKS])
		fprintf(out, ", %" PRIu64 " looks", p->visits.count[VISIT_LINE_LOOKS]);
	for (size_t i = 0; i < t->samples[SAMPLE_WALL].count; i++)
		put_wait(out, &t->samples[SAMPLE_WALL], i);
}

/* `function`: the name of all places in the kernel. */
static const struct profile *end_story(const char *function)
{
	stop();
	assert_int_equal(recorder__close(ev.recorder, 0), 0);
	if (function)
		name_kernel_functions(function);
	assert_int_equal(wall_states__settle(ev.builder), 0);
	return finish();
}

static void run_visits(FILE *out, char *story)
{
	const struct profile *last;

	set_up();
	play_with(play_wall, story);
	last = end_story(NULL);
	for (size_t i = 0; i < ev.windows; i++) {
		put_wall(out, ev.profiles[i]);
		fputs("\nwindow\n", out);
	}
	put_wall(out, last);
	tear_down();
}

static void run_waits(FILE *out, char *story)
{
	char whole[2048];

	snprintf(whole, sizeof(whole), "%s\n%s", BEGIN, story);
	run_visits(out, whole);
}

/* ---- states ---------------------------------------------------------------------------------- */

static void find_function(FILE *out, char *name)
{
	enum wall_state state = wall_state_of_function(name);

	fputs(state == WALL_NONE ? "none" : wall_state_name(state), out);
}

static struct visit_account finding(char *words)
{
	struct visit_account account = {};

	for (char *word = strtok(words, " "); word; word = strtok(NULL, " "))
		if (!add_finding(&account, word))
			fail_msg("no finding: %s", word);
	return account;
}

static void find_call(FILE *out, char *words)
{
	const struct visit_account account = finding(words);
	uint8_t open;
	enum wall_state state = wall_state_of_visit(&account, &open);

	fprintf(out, "%s%s%s", state == WALL_NONE ? "none" : wall_state_name(state),
		open & WALL_STATE_OPEN ? " open" : "", open & WALL_STATE_PENDING ? " pending" : "");
}

/* "FUNCTION CALL FOUND...": the state of a wait of 10 ms in this function. */
static void find_both(FILE *out, char *words)
{
	char *rest = words, *function = strsep(&rest, " "), story[512];

	set_up();
	play(BEGIN);
	snprintf(story, sizeof(story), "10 cpu=5 kernel %s, 20 cpu=5 kernel switches=1 %s", rest,
		 rest);
	play_with(play_wall, story);
	end_story(function);
	assert_int_equal(thread_of(11, 0)->samples[SAMPLE_WALL].count, 1);
	assert_int_equal(thread_of(11, 0)->samples[SAMPLE_WALL].weight[0], 10 * MS);
	fputs(wall_state_name(thread_of(11, 0)->samples[SAMPLE_WALL].state[0]), out);
	tear_down();
}

static const struct text_verb verbs[] = {{"visits", run_visits},      {"waits", run_waits},
					 {"function", find_function}, {"call", find_call},
					 {"both", find_both},	      {}};

TEXT_TABLE("wall", verbs, NULL, NULL);

static uint64_t random_state = 88172645463325252ull;

/* Mostly near `around`, sometimes anything. */
static uint64_t any_number(uint64_t around)
{
	switch (next_random(&random_state) % 8) {
	case 0:
		return random_state;
	case 1:
		return UINT64_MAX - random_state % 3;
	case 2:
		return random_state % 3;
	default:
		return around + random_state % (200 * MS);
	}
}

static void visit_with_anything(struct visit_event *e)
{
	ev.now += random_state % (3 * MS);
	e->account.header.time = ev.now;
	e->account.seen = any_number(ev.now - 100 * MS);
	e->account.unchanged = any_number(e->account.seen - 100 * MS);
	e->account.started = any_number(S / 2);
	e->account.run_delay = any_number(ev.now / 8);
	e->account.switches = any_number(ev.now / MS);
	e->account.since = any_number(ev.now - 50 * MS);
	e->account.holder = (uint32_t)any_number(10);
	e->account.call = (int32_t)any_number(200);
	e->account.found = any_number(0) & VISIT_ALL;
	e->stack.tgid = 10;
	e->stack.tid = 11 + random_state % 2;
	e->stack.cpu_time = any_number(ev.now / 4);
	assert_int_equal((ev.h.visit)(ev.h.context, e), 0);
	if (random_state % 16 == 1)
		thread_cpu(10, e->stack.tid, any_number(ev.now / 4), EVENT_EXITED);
}

TEST(random_accounts_give_no_time_twice)
{
	_cleanup_free_ struct visit_event *e = calloc(1, sizeof(*e) + sizeof(uint64_t));

	e->account.header.type = EVENT_VISIT;
	e->stack.frames[0] = IP(0x10010);
	e->stack.user_frames = 1;
	for (int round = 0; round < 200; round++) {
		set_up();
		play(BEGIN);
		for (int i = 0; i < 50; i++)
			visit_with_anything(e);
		end_story(NULL);
		tear_down();
	}
}

/* ---- the functions of this kernel ------------------------------------------------------------ */

/* By row: is it a function of this kernel? Names are there for any user, unlike addresses. */
static void find_functions(bool *found)
{
	FILE *symbols = fopen("/proc/kallsyms", "re");
	char line[1024], name[512];

	assert_non_null(symbols);
	while (fgets(line, sizeof(line), symbols)) {
		if (sscanf(line, "%*s %*s %511[^. \t\n]", name) != 1)
			continue;
		for (size_t i = 0; i < wall_function_count; i++)
			found[i] |= !strcmp(wall_functions[i].name, name);
	}
	fclose(symbols);
}

static bool is_found(const bool *found, const char *name)
{
	for (size_t i = 0; i < wall_function_count; i++)
		if (!strcmp(wall_functions[i].name, name))
			return found[i];
	return false;
}

/* A row that no stack can match has another way to its state. vmtest runs this in each kernel. */
TEST(each_row_can_match_here)
{
	bool *found = calloc(wall_function_count, sizeof(*found));
	unsigned int missing = 0;

	find_functions(found);
	for (size_t i = 0; i < wall_function_count; i++) {
		const struct wall_function *row = &wall_functions[i];
		const char *otherwise = row->otherwise;

		if (found[i] || (otherwise && (*otherwise == '(' || is_found(found, otherwise))))
			continue;
		print_message("%s: not in this kernel, and there is no other way\n", row->name);
		missing++;
	}
	free(found);
	assert_int_equal(missing, 0);
}

/* Each row can be found: they are in order, and none hides another. */
TEST(the_table_is_in_order)
{
	assert_true(wall_function_count > 60);
	for (size_t i = 0; i < wall_function_count; i++) {
		const char *name = wall_functions[i].name;

		if (wall_state_of_function(name) != wall_functions[i].state)
			fail_msg("%s is not found", name);
		if (i && strcmp(wall_functions[i - 1].name, name) >= 0)
			fail_msg("%s is out of order", name);
	}
}
