/* SPDX-License-Identifier: BSD-2-Clause */
/* Indexes that sealed children send, with and without a keeper. The children are real, and read this test itself. */
#include "unit.h"
#include "symbolize/sealed.h"
#include "symbolize/sealed_child.h"
#include "symbolize/symbol_index.h"

#define ADDRESSES 3

static int self = -1;
static uint64_t offsets[ADDRESSES];

struct answers {
	size_t count;
	char names[ADDRESSES][64];
	uint32_t lines[ADDRESSES];
};

static int keep_answer(void *context, size_t index, const struct symbol_result *result)
{
	struct answers *a = context;

	a->count++;
	if (!result->frame_count)
		return 0;
	snprintf(a->names[index], sizeof(a->names[index]), "%s", result->frames[0].function);
	a->lines[index] = result->frames[0].line;
	return 0;
}

static struct answers run(struct sealed_keeper *keeper, size_t first, size_t count,
			  struct symbol_index **index)
{
	struct answers answers = {};
	struct sealed_job job = {
		.files = {.elf_fd = self, .debug_fd = -1, .alt_fd = -1, .kind = DSO_FILE},
		.root_fd = -1,
		.wants_index = index != NULL,
		.addresses = offsets + first,
		.count = count,
		.sink = keep_answer,
		.context = &answers,
	};

	assert_int_equal(
		sealed_run(&job, 1, 1, NULL, NULL, &(struct sealed_work){.keeper = keeper}), 0);
	assert_int_equal(job.report.state, SYMBOL_STATE_RESOLVED);
	assert_int_equal(answers.count, count);
	assert_true(job.cpu_time > 0);
	if (index)
		*index = job.index;
	else
		assert_null(job.index);
	return answers;
}

/* The only child of this process; 0: there is none. */
static pid_t only_child(void)
{
	char path[64];
	FILE *children;
	pid_t pid = 0, other;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	children = fopen(path, "re");
	assert_non_null(children);
	if (fscanf(children, "%d %d", &pid, &other) > 1)
		fail_msg("more than one child");
	fclose(children);
	return pid;
}

static void check_index(struct sealed_keeper *keeper, const struct answers *all)
{
	static struct symbol_answer answer;
	struct symbol_index *index;
	struct answers some = run(keeper, 1, 1, &index);

	assert_string_equal(some.names[0], all->names[1]);
	assert_non_null(index);
	for (size_t i = 0; i < ADDRESSES; i++) {
		assert_true(symbol_index__find(index, offsets[i], &answer));
		assert_true(answer.result.frame_count > 0);
		assert_string_equal(answer.frames[0].function, all->names[i]);
		assert_int_equal(answer.frames[0].line, all->lines[i]);
	}
	symbol_index__free(index);
}

/* Nothing stays but the keeper. */
TEST(an_index_has_all_answers_and_its_child_ends)
{
	struct sealed_keeper *keeper = sealed_keeper__new();
	struct answers all = run(NULL, 0, ADDRESSES, NULL);
	pid_t keeper_pid = only_child();

	assert_true(keeper_pid > 0);
	for (size_t i = 0; i < ADDRESSES; i++)
		assert_true(strchr(all.names[i], '_') && all.lines[i] > 0);
	check_index(keeper, &all);
	assert_int_equal(only_child(), keeper_pid);
	sealed_keeper__free(keeper);
	assert_int_equal(only_child(), 0);
	check_index(NULL, &all);
	assert_int_equal(only_child(), 0);
}

TEST(a_keeper_that_died_is_done_without)
{
	struct sealed_keeper *keeper = sealed_keeper__new();
	struct answers before = run(keeper, 0, ADDRESSES, NULL), after;

	kill(only_child(), SIGKILL);
	for (int i = 0; i < 2; i++) {
		after = run(keeper, 0, ADDRESSES, NULL);
		assert_memory_equal(&after, &before, sizeof(after));
	}
	assert_int_equal(only_child(), 0);
	sealed_keeper__free(keeper);
	sealed_keeper__free(NULL);
}

static int compare_offsets(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* As a session does: by their offsets in the file, ascending. */
static void find_offsets(void)
{
	const uintptr_t functions[ADDRESSES] = {
		(uintptr_t)an_index_has_all_answers_and_its_child_ends, (uintptr_t)check_index,
		(uintptr_t)keep_answer};
	unsigned long start, end, offset;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");

	self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	while (maps && fgets(line, sizeof(line), maps))
		for (size_t i = 0; i < ADDRESSES; i++)
			if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &offset) == 3 &&
			    functions[i] >= start && functions[i] < end)
				offsets[i] = functions[i] - start + offset;
	if (maps)
		fclose(maps);
	qsort(offsets, ADDRESSES, sizeof(*offsets), compare_offsets);
	assert_false(self < 0 || !offsets[0]);
}

ALL_TESTS_WITH(find_offsets, NULL);
