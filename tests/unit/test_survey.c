/* SPDX-License-Identifier: BSD-2-Clause */
/* What a survey's findings are judged to be, and which programs are not looked into again. */
#include "unit.h"
#include "runtimes/ask/code_private.h"
#include "runtimes/hotspot/answers.h"
#include "runtimes/hotspot/hotspot.h"
#include "runtimes/hotspot/layout.h"
#include "runtimes/python/cpython.h"
#include "runtimes/python/layout.h"
#include "runtimes/table.h"
#include "runtimes/v8/v8.h"
#include "session/process_survey.h"

static struct process_survey s;

/* What was found of the runtime that has such a file. */
static struct runtime_finding *found(const char *file)
{
	unsigned int number = 0;

	while (runtime_memory(number) != runtime_of_file(file)->memory)
		number++;
	return &s.found.of[number];
}

static void found_python(enum cpython_verdict verdict, uint32_t minor, uint32_t micro)
{
	*found("python") = (struct runtime_finding){.is_seen = true,
						    .is_read = verdict == CPYTHON_OK,
						    .verdict = verdict,
						    .version = {3, minor, micro}};
}

static void begin(const char *path)
{
	struct surveyed_file file = {.path = strdup(path), .answered = true};

	process_survey__fini(&s);
	s = (struct process_survey){.memory_answered = true};
	found("node")->verdict = V8_ABSENT;
	found("python")->verdict = CPYTHON_ABSENT;
	assert_int_equal(vec_push(&s.files, file), 0);
}

static const struct surveyed_runtime *judged(void)
{
	assert_int_equal(process_survey__judge(&s), 0);
	assert_int_equal(s.runtimes.count, 1);
	return &s.runtimes.data[0];
}

static void assert_has(const char *text, const char *words)
{
	if (!text || !strstr(text, words))
		assert_string_equal(text ? text : "nothing", words); /* fails, and says both */
}

static void assert_says(const struct surveyed_runtime *r, enum survey_mark mark, const char *words,
			const char *remedy)
{
	assert_int_equal(r->mark, mark);
	assert_has(r->text, words);
	if (remedy)
		assert_has(r->remedy, remedy);
	else
		assert_null(r->remedy);
}

TEST(python_is_good_only_if_its_memory_is_read)
{
	static const struct {
		enum cpython_verdict verdict;
		const char *words, *remedy;
	} refused[] = {
		{CPYTHON_FREE_THREADED, "free-threaded", "-X perf"},
		{CPYTHON_OTHER_LIBC, "other than glibc", "-X perf"},
		{CPYTHON_TOO_OLD, "before 3.11", "-X perf"},
		{CPYTHON_UNKNOWN_VERSION, "layout is unknown", "-X perf"},
		{CPYTHON_NOT_STARTED, "has not started", NULL},
	};

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		begin("/usr/bin/python3.14t");
		found_python(refused[i].verdict, 14, 2);
		/* its name has a letter behind the version: the memory has it */
		assert_says(judged(), SURVEY_BAD, refused[i].words, refused[i].remedy);
		assert_string_equal(s.runtimes.data[0].version, "3.14.2");
	}
	begin("/opt/myapp");
	found_python(CPYTHON_OK, 11, 2);
	assert_says(judged(), SURVEY_GOOD, "read from its memory", NULL);
}

TEST(v8_is_bad_if_unread_and_partly_without_lines)
{
	begin("/opt/chrome/chrome");
	assert_says(judged(), SURVEY_BAD, "constants", "--js-flags");
	begin("/usr/bin/node");
	found("node")->verdict = V8_TOO_OLD;
	assert_says(judged(), SURVEY_BAD, "older than", "--perf-basic-prof");
	begin("/usr/bin/node");
	found("node")->is_read = true;
	found("node")->verdict = V8_NAMES_ONLY;
	assert_says(judged(), SURVEY_PARTLY, "without lines", NULL);
	begin("/usr/bin/node");
	s.memory_answered = false;
	assert_says(judged(), SURVEY_BAD, "do not answer", NULL);
}

TEST(a_perf_map_counts_only_once_it_was_read)
{
	begin("/usr/bin/ruby");
	assert_says(judged(), SURVEY_BAD, "no names", "--yjit-perf");
	begin("/usr/bin/ruby");
	assert_int_equal(
		vec_push(&s.maps, ((struct surveyed_map){.state = JIT_FILE_STATE_FOREIGN})), 0);
	assert_says(judged(), SURVEY_BAD, "no names", "--yjit-perf");
	/* it is there, and nothing has come of it */
	s.maps.data[0].state = JIT_FILE_STATE_FOLLOWED;
	s.runtimes.count = 0;
	assert_says(judged(), SURVEY_BAD, "no names", "--yjit-perf");
	s.maps.data[0].was_read = true;
	s.runtimes.count = 0;
	assert_says(judged(), SURVEY_GOOD, "perf map", NULL);
	s.maps.data[0].state = JIT_FILE_STATE_HUNG;
	s.runtimes.count = 0;
	assert_says(judged(), SURVEY_PARTLY, "not read as a whole", NULL);
}

TEST(java_is_good_only_if_its_methods_are_found)
{
	begin("/usr/lib/jvm/17/lib/server/libjvm.so");
	assert_says(judged(), SURVEY_BAD, "cannot be read", "-XX:+PreserveFramePointer");
	found("libjvm.so")->flags = HOTSPOT_FLAG_OFF;
	s.runtimes.count = 0;
	assert_says(judged(), SURVEY_BAD, "first frame of Java", "-XX:+PreserveFramePointer");
	assert_null(strstr(s.runtimes.data[0].text, "cannot be read"));
	found("libjvm.so")->flags = HOTSPOT_FLAG_ON;
	s.runtimes.count = 0;
	assert_says(judged(), SURVEY_PARTLY, "whole stacks", "--jvm-perfmap");
	found("libjvm.so")->is_read = true;
	s.runtimes.count = 0;
	assert_says(judged(), SURVEY_PARTLY, "whole stacks", "--jvm-perfmap");
	found("libjvm.so")->flags |= HOTSPOT_FOUND_METHODS;
	s.runtimes.count = 0;
	assert_says(judged(), SURVEY_GOOD, "read from its memory", NULL);
}

/* So npm's package calls it, on Linux too. */
TEST(bun_is_recognized_by_either_name)
{
	static const char *const paths[] = {"/opt/bun", "/app/node_modules/bun/bin/bun.exe"};

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		begin(paths[i]);
		assert_says(judged(), SURVEY_BAD, "no names", "BUN_JSC_useJITDump=1");
		assert_string_equal(s.runtimes.data[0].name, "Bun");
	}
}

TEST(a_plain_program_has_no_runtime)
{
	begin("/usr/bin/cat");
	assert_int_equal(process_survey__judge(&s), 0);
	assert_int_equal(s.runtimes.count, 0);
	process_survey__fini(&s);
}

static uint64_t identity(uint64_t inode, uint32_t minor, uint8_t build_id)
{
	struct {
		struct mmap_event e;
		char path[8];
	} m = {.e = {.inode = inode,
		     .minor = minor,
		     .build_id_size = BUILD_ID_SIZE,
		     .build_id = {build_id}},
	       .path = "/a"};

	return plain_files__identity(&m.e);
}

TEST(plain_files_are_distinguished_by_identity_and_owner)
{
	struct file_set p;
	uint64_t file = identity(1, 2, 3);

	memset(&p, 0, sizeof(p));
	assert_null(file_set__find(&p, file));
	plain_files__add(&p, file);
	plain_files__add(&p, file);
	assert_non_null(file_set__find(&p, file));
	assert_int_equal(p.count, 1);
	/* another file, or the same one of somebody else */
	assert_null(file_set__find(&p, identity(2, 2, 3)));
	assert_null(file_set__find(&p, identity(1, 3, 3)));
	assert_null(file_set__find(&p, identity(1, 2, 4)));
	assert_int_not_equal(plain_files__of_owner(file, 0), plain_files__of_owner(file, 1));
	for (uint64_t i = 0; i < PLAIN_FILES_MAX + 10; i++)
		plain_files__add(&p, plain_files__of_owner(file, i));
	assert_true(p.count <= PLAIN_FILES_MAX);
	file_set__fini(&p);
}
