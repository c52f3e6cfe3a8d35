/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The part that visits threads, with visits of the test's own: a visitor that ends or hangs costs
 * visits, never the recording, and the reason is reported.
 */
#include <sys/resource.h>

#include <sysprof/bpf_shared.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/io.h"
#include "live/capture/bpf_visits.h"
#include "live/parts/wall.h"

#define PATIENCE 60000000000ull /* ns */

/* ---- visits ---------------------------------------------------------------------------------- */

struct bpf_visits {
	int memory, programs[VISIT_PROGRAMS];
	struct visitor *shared;
};

/* What goes wrong. */
static struct {
	bool open, pass_programs, hang, kill_at_open;
	unsigned int opened;
} wrong;

static pid_t find_child(void)
{
	char path[64], line[64];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", getpid(), getpid());
	return read_line(path, line, sizeof(line)) ? 0 : atoi(line);
}

static void kill_child(void)
{
	siginfo_t info;
	pid_t child = find_child();

	assert_true(child > 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
}

int bpf_visits__open(struct bpf_session *session, bool small, struct bpf_visits **visits,
		     struct failure *failure)
{
	struct bpf_visits *v;

	wrong.opened++;
	if (wrong.kill_at_open)
		kill_child();
	if (wrong.open) {
		snprintf(failure->what, sizeof(failure->what), "no programs today");
		return -EPERM;
	}
	v = calloc(1, sizeof(*v));
	assert_non_null(v);
	v->memory = memfd_create("visits", MFD_CLOEXEC);
	assert_int_equal(ftruncate(v->memory, sizeof(*v->shared)), 0);
	v->shared = mmap(NULL, sizeof(*v->shared), PROT_READ | PROT_WRITE, MAP_SHARED, v->memory,
			 0);
	assert_ptr_not_equal(v->shared, MAP_FAILED);
	v->shared->due_count = wrong.hang;
	v->shared->due[0] = 77;
	*visits = v;
	return 0;
}

void bpf_visits__free(struct bpf_visits *v)
{
	if (!v)
		return;
	munmap(v->shared, sizeof(*v->shared));
	close(v->memory);
	free(v);
}

struct visitor *bpf_visits__shared(struct bpf_visits *v)
{
	return v->shared;
}

struct bpf_visits_memory bpf_visits__memory(const struct bpf_visits *v)
{
	return (struct bpf_visits_memory){.map = v->memory, .size = sizeof(*v->shared)};
}

/* VISIT_SCAN succeeds, VISIT_ONE never returns: the child distinguishes them by their order. */
int bpf_visits__programs(const struct bpf_visits *v, int fds[VISIT_PROGRAMS])
{
	fds[VISIT_SCAN] = STDIN_FILENO;
	fds[VISIT_ONE] = wrong.pass_programs ? -1 : v->memory;
	return VISIT_PROGRAMS;
}

static int first_program;

int bpf_visits__run(int program)
{
	first_program = first_program ?: program;
	while (program != first_program)
		pause();
	return 0;
}

int bpf_visits__pass(int pass)
{
	return -pass;
}

int bpf_visits__drain(struct bpf_visits *v, event_push_fn sink, void *context)
{
	return 0;
}

/* ---- the part -------------------------------------------------------------------------------- */

static uint64_t made; /* by the last books */

static int take_books(void *context, struct event_header *event)
{
	assert_int_equal(event->type, EVENT_VISIT_BOOKS);
	made = ((const struct visit_books_event *)event)->count[VISIT_LINE_MADE];
	return 0;
}

static struct live_part part; /* of the running test */

static void new_part(bool if_possible)
{
	const struct wall_options options = {
		.hz = 100, .budget = 1000000, .if_possible = if_possible, .push = take_books};
	struct failure failure = {};

	if (wall_part__new(&options, NULL, &part, &failure))
		fail_msg("%s", failure.what);
}

static void tick_until_refused(void)
{
	uint64_t until = monotonic_ns() + PATIENCE;

	while (!part.refused(part.object) && monotonic_ns() < until) {
		assert_int_equal(part.tick(part.object, monotonic_ns()), 0);
		usleep(10000);
	}
	assert_non_null(part.refused(part.object));
	assert_int_equal(part.tick(part.object, monotonic_ns()), 0);
}

static void end(void)
{
	part.stop(part.object);
	assert_int_equal(part.finish(part.object, monotonic_ns()), 0);
	part.free(part.object);
	while (waitpid(-1, NULL, 0) > 0) /* those that were left behind are killed */
		;
}

static void begin(void)
{
	memset(&wrong, 0, sizeof(wrong));
	made = 0;
}

static void tick_until_made(void)
{
	uint64_t until = monotonic_ns() + PATIENCE;

	part.started(part.object);
	while (!made && monotonic_ns() < until) {
		assert_int_equal(part.tick(part.object, monotonic_ns()), 0);
		usleep(10000);
		part.finish(part.object, monotonic_ns()); /* books */
	}
	assert_true(made > 0);
	assert_null(part.refused(part.object));
}

TEST(visits_are_made)
{
	new_part(false);
	tick_until_made();
}

/* It was requested, and the visitor ended before sampling began. */
TEST(an_early_end)
{
	wrong.kill_at_open = true;
	new_part(false);
	assert_null(part.refused(part.object));
	part.started(part.object);
	assert_non_null(part.refused(part.object));
	assert_non_null(strstr(part.refused(part.object), "does not answer"));
	tick_until_refused();
}

/* The memory of a thread never comes, and the next visitor cannot get its programs. */
TEST(no_second_visitor)
{
	wrong.hang = true;
	new_part(false);
	part.started(part.object);
	assert_null(part.refused(part.object));
	wrong.pass_programs = true;
	tick_until_refused();
	assert_int_equal(wrong.opened, 2);
	assert_int_equal(strncmp(part.refused(part.object), "after ", 6), 0);
	assert_non_null(strstr(part.refused(part.object), "does not answer"));
}

/* ... or there are no programs for it. */
TEST(no_second_programs)
{
	wrong.hang = true;
	new_part(false);
	part.started(part.object);
	wrong.open = true;
	tick_until_refused();
	assert_non_null(strstr(part.refused(part.object), ": no programs today"));
}

/* One after the other hangs: nothing is visited from then on. */
TEST(too_many_hang)
{
	wrong.hang = true;
	new_part(false);
	part.started(part.object);
	tick_until_refused();
	assert_int_equal(wrong.opened, 1 + VISIT_BANNED_MAX);
	assert_non_null(strstr(part.refused(part.object), "too many processes"));
}

TEST(a_visitor_that_ends_is_reported)
{
	new_part(false);
	tick_until_made();
	kill_child();
	tick_until_refused();
	assert_int_equal(wrong.opened, 1);
	assert_non_null(strstr(part.refused(part.object), "has ended"));
}

/* Visits that were not requested are no error, whatever fails. */
TEST(no_visitor)
{
	struct rlimit before, few;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	new_part(true);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	part.started(part.object);
	tick_until_refused();
	assert_non_null(strstr(part.refused(part.object), "cannot start the process"));
	assert_int_equal(wrong.opened, 0);
}

TEST(no_programs)
{
	const struct wall_options options = {.hz = 100, .budget = 1000000, .push = take_books};
	struct failure failure = {};

	wrong.open = true;
	new_part(true);
	part.started(part.object);
	tick_until_refused();
	assert_string_equal(part.refused(part.object), "no programs today");
	assert_int_equal(wall_part__new(&options, NULL, &part, &failure), -EPERM);
	assert_string_equal(failure.what, "no programs today");
}

EACH_TEST_WITH(begin, end);
