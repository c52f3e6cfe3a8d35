/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes began and ended between two readings, in any order of the rings, and passed nothing on. */
#include "unit.h"
#include "base/cleanup.h"
#include "live/brief_lives.h"

#define SHELL 10u
#define CHILD 20u

static void note(struct brief_lives *b, enum event_type type, uint64_t time, uint32_t pid,
		 uint32_t tid, uint32_t parent)
{
	const struct task_event event = {
		.header = {.size = sizeof(event), .type = type, .time = time},
		.pid = pid,
		.tid = tid,
		.ppid = parent,
		.ptid = parent,
	};

	brief_lives__note(b, &event);
}

static void forks(struct brief_lives *b, uint64_t time, uint32_t parent, uint32_t child)
{
	note(b, EVENT_FORK, time, child, child, parent);
}

static void exits(struct brief_lives *b, uint64_t time, uint32_t pid)
{
	note(b, EVENT_EXIT, time, pid, pid, SHELL);
}

TEST(brief_lives_are_dropped_from_fork_to_exit)
{
	_cleanup_(brief_lives__fini) struct brief_lives b = {};

	exits(&b, 130, CHILD); /* its ring is read first */
	forks(&b, 110, SHELL, CHILD);
	assert_false(brief_lives__drop(&b, CHILD, 110, 130)); /* a sample may still come */
	assert_false(brief_lives__drop(&b, CHILD, 100, 200)); /* an earlier life of this number */
	assert_false(brief_lives__drop(&b, CHILD, 140, 200)); /* a later one */
	assert_false(brief_lives__drop(&b, SHELL, 110, 200));
	assert_false(brief_lives__dropped(&b, CHILD, 120));
	assert_true(brief_lives__drop(&b, CHILD, 110, 200));
	assert_true(brief_lives__dropped(&b, CHILD, 120));
	assert_true(brief_lives__dropped(&b, CHILD, 130)); /* its end */
	assert_false(brief_lives__dropped(&b, CHILD, 109));
	assert_false(brief_lives__dropped(&b, CHILD, 131));
}

/* What has children, threads, no beginning or no end in view may have passed its mappings on, or lives. */
TEST(lives_with_children_threads_or_no_end_are_kept)
{
	_cleanup_(brief_lives__fini) struct brief_lives b = {};

	forks(&b, 110, SHELL, CHILD);
	assert_false(brief_lives__drop(&b, CHILD, 110, 200));
	exits(&b, 130, CHILD);
	forks(&b, 121, CHILD, CHILD + 1);
	assert_false(brief_lives__drop(&b, CHILD, 110, 200));

	forks(&b, 110, SHELL, CHILD + 2);
	note(&b, EVENT_FORK, 115, CHILD + 2, CHILD + 3, CHILD + 2);
	exits(&b, 130, CHILD + 2); /* its leader */
	assert_false(brief_lives__drop(&b, CHILD + 2, 110, 200));
	assert_false(brief_lives__drop(&b, CHILD + 2, 115, 200));

	exits(&b, 130, CHILD + 4);
	assert_false(brief_lives__drop(&b, CHILD + 4, 110, 200));

	forks(&b, 110, SHELL, CHILD + 5);
	note(&b, EVENT_EXIT, 130, CHILD + 5, CHILD + 6, SHELL); /* a thread */
	assert_false(brief_lives__drop(&b, CHILD + 5, 110, 200));

	forks(&b, 110, SHELL, CHILD + 7); /* the number is used twice */
	exits(&b, 112, CHILD + 7);
	forks(&b, 118, SHELL, CHILD + 7);
	exits(&b, 130, CHILD + 7);
	assert_false(brief_lives__drop(&b, CHILD + 7, 110, 200));
	assert_false(brief_lives__drop(&b, CHILD + 7, 118, 200));
}

TEST(a_process_whose_fork_was_kept_keeps_its_records)
{
	_cleanup_(brief_lives__fini) struct brief_lives b = {};

	forks(&b, 110, SHELL, CHILD);
	assert_false(brief_lives__drop(&b, CHILD, 110, 115));
	exits(&b, 130, CHILD);
	assert_false(brief_lives__dropped(&b, CHILD, 120));
	assert_false(brief_lives__dropped(&b, CHILD, 130));
}

TEST(only_records_before_the_given_time_are_forgotten)
{
	_cleanup_(brief_lives__fini) struct brief_lives b = {};

	forks(&b, 121, CHILD, CHILD + 1);
	brief_lives__forget(&b, 121);
	forks(&b, 110, SHELL, CHILD);
	exits(&b, 130, CHILD);
	assert_false(brief_lives__drop(&b, CHILD, 110, 200));
	brief_lives__forget(&b, 131);
	assert_int_equal(b.lives.count, 0);
}

TEST(missed_records_and_a_full_list_prevent_drops)
{
	_cleanup_(brief_lives__fini) struct brief_lives b = {};

	forks(&b, 110, SHELL, CHILD);
	exits(&b, 130, CHILD);
	brief_lives__miss(&b, 110);
	assert_false(brief_lives__drop(&b, CHILD, 110, 200));
	forks(&b, 111, SHELL, 7);
	exits(&b, 130, 7);
	assert_true(brief_lives__drop(&b, 7, 111, 200));
	brief_lives__forget(&b, 131);
	for (uint32_t pid = 1000; pid < 1000 + BRIEF_LIVES_MAX; pid++)
		forks(&b, 140, SHELL, pid);
	exits(&b, 150, 1000);
	assert_int_equal(b.lives.count, BRIEF_LIVES_MAX);
	assert_false(brief_lives__drop(&b, 1000, 140, 200));
	brief_lives__forget(&b, 151);
	forks(&b, 210, SHELL, CHILD);
	exits(&b, 230, CHILD);
	assert_true(brief_lives__drop(&b, CHILD, 210, 300));
}
