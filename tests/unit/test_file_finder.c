/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that opens files: it finds what is there, and one that hangs, dies or takes too long costs a
 * deadline, not more. A stopped process stands for one that waits for a file system.
 */

#include "base/cleanup.h"
#include "base/clocks.h"
#include "symbolize/file_finder.h"
#include "tenants/helper_process.h"

#include "unit/debug_file_support.h"

#define SECOND	UINT64_C(1000000000)
#define TENANT	12345 /* the first of many */
#define PATIENT (60 * SECOND)
#define HASTY	(SECOND / 2)
#define TRIES	20 /* a hasty finder may give up a child that a busy host does not run */

static struct file_finder *finder(uint64_t silence)
{
	const struct finder_limits limits = {silence, PATIENT, PATIENT};
	struct file_finder *f = file_finder__new(&limits);

	assert_non_null(f);
	return f;
}

struct question {
	struct debug_file_request request;
	struct debug_file_counts counts;
	struct found_files found;
};

static void open_question(struct question *q, const char *module, uint32_t user)
{
	*q = (struct question){.request = {.elf_fd = open_scratch(module, O_RDONLY),
					   .user = user,
					   .root_fd = open_scratch("root", O_PATH | O_DIRECTORY),
					   .path = "/opt/app/prog",
					   .package = true},
			       .found = {.debug_fd = -1, .alt_fd = -1}};
}

static void close_question(struct question *q)
{
	close(q->request.elf_fd);
	close(q->request.root_fd);
	if (q->found.debug_fd >= 0)
		close(q->found.debug_fd);
	if (q->found.alt_fd >= 0)
		close(q->found.alt_fd);
}

static int request_finder(struct file_finder *f, struct question *q)
{
	return file_finder__find(f, &q->request, &q->counts, &q->found);
}

TEST(a_finder_finds_debug_files_and_packages)
{
	struct file_finder *f = finder(PATIENT);
	struct question q;
	struct stat st;
	char name[512];

	place_for("root", "id1", "id1.debug");
	run("cp plain1.debug root/opt/app/; printf 12345 >root/opt/app/prog.dwp");
	open_question(&q, "id1.stripped", 0);
	assert_int_equal(request_finder(f, &q), 0);
	assert_int_equal(q.counts.by_build_id, 1);
	assert_int_equal(q.found.package_size, 5);
	assert_int_equal(q.found.identity,
			 debug_file_identity(q.request.elf_fd, 0, q.found.debug_fd, -1));
	assert_int_equal(fstat(q.found.debug_fd, &st), 0);
	assert_true(q.found.total_size > (uint64_t)st.st_size);
	name_of(q.found.debug_fd, name, sizeof(name));
	q.found.debug_fd = -1;
	assert_non_null(strstr(name, ".build-id"));
	close_question(&q);
	/* the same process, another module, what was counted goes on */
	open_question(&q, "plain1.linked", 0);
	assert_int_equal(request_finder(f, &q), 0);
	assert_true(q.found.debug_fd >= 0 && q.found.alt_fd < 0);
	assert_int_equal(q.counts.by_build_id + q.counts.by_link, 2);
	close_question(&q);
	open_question(&q, "plain2.linked", 0);
	assert_int_equal(request_finder(f, &q), 0);
	assert_int_equal(q.found.debug_fd, -1);
	close_question(&q);
	assert_int_equal(file_finder__abandoned(f), 0);
	file_finder__free(f);
}

/* A module is sought once, while it stays the same; its process is that of the next run, whose counts are its own. */
TEST(a_search_is_recalled_only_if_nothing_has_changed)
{
	struct file_finder *f = finder(PATIENT);
	struct found_files found;
	struct question q;
	pid_t child;

	place_for("root", "id1", "id1.debug");
	open_question(&q, "id1.stripped", 0);
	assert_int_equal(file_finder__start(f), 0);
	child = file_finder__child(f);
	assert_true(child > 0);
	assert_false(file_finder__recall(f, &q.request, &found));
	assert_int_equal(request_finder(f, &q), 0);
	assert_int_equal(file_finder__requests(f), 1);
	file_finder__begin(f, NULL);
	assert_int_equal(file_finder__requests(f), 0);
	assert_true(file_finder__recall(f, &q.request, &found));
	assert_int_equal(found.identity, q.found.identity);
	assert_int_equal(found.total_size, q.found.total_size);
	assert_true(found.debug_fd == -1 && found.alt_fd == -1);
	/* another path, root directory or file, or servers: another search */
	q.request.path = "/opt/other";
	assert_false(file_finder__recall(f, &q.request, &found));
	q.request.path = "/opt/app/prog";
	q.request.debuginfod = true;
	assert_false(file_finder__recall(f, &q.request, &found));
	q.request.debuginfod = false;
	close(q.request.root_fd);
	q.request.root_fd = open_scratch("outside", O_PATH | O_DIRECTORY);
	assert_false(file_finder__recall(f, &q.request, &found));
	close_question(&q);
	run("cp id1.stripped changing");
	open_question(&q, "changing", 0);
	assert_int_equal(request_finder(f, &q), 0);
	assert_true(file_finder__recall(f, &q.request, &found));
	run("printf x >>changing");
	assert_false(file_finder__recall(f, &q.request, &found));
	/* one that was forked for a request ends with the run */
	file_finder__end(f);
	assert_int_equal(file_finder__child(f), child);
	kill(child, SIGKILL);
	assert_int_not_equal(request_finder(f, &q), 0);
	assert_int_equal(request_finder(f, &q), 0);
	assert_true(file_finder__child(f) > 0 && file_finder__child(f) != child);
	file_finder__end(f);
	assert_int_equal(file_finder__child(f), 0);
	close_question(&q);
	file_finder__free(f);
}

TEST(only_regular_files_within_a_limit_are_opened)
{
	struct file_finder *f = finder(PATIENT);
	_cleanup_close_ int root = open_scratch("root", O_PATH | O_DIRECTORY);
	_cleanup_close_ int module = open_scratch("id1", O_RDONLY), fd = -1;
	struct debug_file_request r = {.elf_fd = module, .root_fd = root, .path = "/opt/app/x.dwo"};
	char name[512];

	run("echo >root/opt/app/x.dwo; mkfifo root/opt/app/y.dwo");
	fd = file_finder__open(f, &r, 100, NULL);
	assert_true(fd >= 0);
	name_of(steal_fd(fd), name, sizeof(name));
	assert_string_equal(name, "root/opt/app/x.dwo");
	assert_int_equal(file_finder__open(f, &r, 0, NULL), -ENOENT);
	r.path = "/opt/app/y.dwo";
	assert_int_equal(file_finder__open(f, &r, 100, NULL), -ENOENT);
	r.path = "/no/such/file.dwo";
	r.root_fd = -1;
	assert_int_equal(file_finder__open(f, &r, 100, NULL), -ENOENT);
	file_finder__free(f);
}

/* A line of /proc/PID/status, as a hexadecimal number. */
static uint64_t status_of(pid_t pid, const char *name)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[64], line[256];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)))
			return strtoull(line + strlen(name), NULL, 16);
	fail_msg("%s has no %s", path, name);
	return 0;
}

/* It may read what it likes, and nothing else. */
TEST(reading_is_the_only_privilege_of_the_process)
{
	const uint64_t reads = UINT64_C(1) << 2; /* CAP_DAC_READ_SEARCH */
	struct file_finder *f = finder(PATIENT);
	struct question q;
	pid_t child;

	open_question(&q, "id1.stripped", 0);
	assert_int_equal(request_finder(f, &q), 0);
	close_question(&q);
	child = file_finder__child(f);
	assert_int_equal(status_of(child, "CapEff:"), geteuid() ? 0 : reads);
	assert_int_equal(status_of(child, "CapPrm:"), geteuid() ? 0 : reads);
	assert_int_equal(status_of(child, "NoNewPrivs:"), 1);
	if (!geteuid())
		assert_int_equal(status_of(child, "CapBnd:"), 0);
	file_finder__free(f);
}

/* A request of root, whose files are opened always. */
static int request_for_root(struct file_finder *f, struct question *q)
{
	int err = -ETIMEDOUT;

	q->request.user = 0;
	for (int i = 0; i < TRIES && err == -ETIMEDOUT; i++)
		err = request_finder(f, q);
	return err;
}

/* Start its child by a question, and stop that. */
static void stop_child(struct file_finder *f)
{
	struct question q;

	open_question(&q, "id1.stripped", 0);
	assert_int_equal(request_for_root(f, &q), 0);
	close_question(&q);
	assert_true(file_finder__child(f) > 0);
	assert_int_equal(kill(file_finder__child(f), SIGSTOP), 0);
}

TEST(files_of_a_user_stay_closed_after_a_hang)
{
	struct file_finder *f = finder(HASTY);
	uint64_t begin, abandoned;
	struct question q;
	pid_t child;

	stop_child(f);
	child = file_finder__child(f);
	open_question(&q, "id1.stripped", TENANT);
	abandoned = file_finder__abandoned(f);
	begin = monotonic_ns();
	assert_int_equal(request_finder(f, &q), -ETIMEDOUT);
	assert_true(monotonic_ns() - begin >= HASTY);
	assert_int_equal(q.counts.refusal, DEBUG_REFUSAL_HUNG);
	assert_int_equal(file_finder__abandoned(f), abandoned + 1);
	assert_int_equal(kill(child, 0), -1); /* it could be ended, and was waited for */
	/* its user's files are not opened again, of no process */
	assert_int_equal(request_finder(f, &q), -ETIMEDOUT);
	assert_int_equal(file_finder__child(f), 0);
	/* of other users they are, until many have hung; root's always */
	for (unsigned int i = 1; i < 8; i++) {
		stop_child(f);
		abandoned = file_finder__abandoned(f);
		q.request.user = TENANT + i;
		assert_int_equal(request_finder(f, &q), -ETIMEDOUT);
		assert_int_equal(file_finder__abandoned(f), abandoned + 1);
	}
	q.request.user = TENANT + 8;
	assert_int_equal(request_finder(f, &q), -ETIMEDOUT);
	assert_int_equal(file_finder__abandoned(f), abandoned + 1);
	assert_int_equal(request_for_root(f, &q), 0);
	assert_true(file_finder__child(f) > 0);
	close_question(&q);
	file_finder__free(f);
}

TEST(a_hang_with_a_copy_counts_against_its_user)
{
	struct file_finder *f = finder(HASTY);
	_cleanup_close_ int root = open_scratch("root", O_PATH | O_DIRECTORY);
	_cleanup_close_ int copy = memfd_create("copy", MFD_CLOEXEC), fd = -1;
	struct debug_file_request r = {
		.elf_fd = copy, .user = TENANT, .root_fd = root, .path = "/opt/app/x.dwo"};
	uint64_t abandoned;

	run("echo >root/opt/app/x.dwo");
	stop_child(f);
	abandoned = file_finder__abandoned(f);
	assert_int_equal(file_finder__open(f, &r, 100, NULL), -ETIMEDOUT);
	assert_int_equal(file_finder__abandoned(f), abandoned + 1);
	assert_int_equal(file_finder__open(f, &r, 100, NULL), -ETIMEDOUT);
	assert_int_equal(file_finder__child(f), 0);
	for (unsigned int i = 1; i < 8 && fd < 0; i++) {
		r.user = TENANT + i;
		fd = file_finder__open(f, &r, 100, NULL);
	}
	assert_true(fd >= 0);
	file_finder__free(f);
}

TEST(a_killed_process_is_replaced_by_the_next_request)
{
	struct file_finder *f = finder(PATIENT);
	struct question q;

	stop_child(f);
	assert_int_equal(kill(file_finder__child(f), SIGKILL), 0);
	open_question(&q, "id1.stripped", 0);
	assert_true(request_finder(f, &q) < 0);
	assert_int_equal(file_finder__child(f), 0);
	assert_int_equal(request_finder(f, &q), 0);
	close_question(&q);
	file_finder__free(f);
}

static int give_up(void *context, const char *what, uint64_t done, uint64_t total)
{
	int *calls = context;

	assert_true(done <= total);
	return ++*calls > 2;
}

TEST(a_request_can_be_cancelled_during_a_hang)
{
	struct file_finder *f = finder(PATIENT);
	struct question q;
	int calls = 0;

	stop_child(f);
	open_question(&q, "id1.stripped", 0);
	q.request.progress = give_up;
	q.request.context = &calls;
	assert_int_equal(request_finder(f, &q), -ECANCELED);
	assert_int_equal(calls, 3);
	assert_int_equal(file_finder__abandoned(f), 0);
	close_question(&q);
	file_finder__free(f);
}

TEST(requests_beyond_the_budget_of_a_user_are_refused)
{
	const struct finder_limits limits = {
		.silence_ns = PATIENT, .user_ns = 1, .others_ns = PATIENT};
	struct file_finder *f = file_finder__new(&limits);
	struct question q;

	open_question(&q, "id1.stripped", TENANT);
	assert_int_equal(request_finder(f, &q), 0);
	assert_int_equal(request_finder(f, &q), -EDQUOT);
	assert_int_equal(q.counts.refusal, DEBUG_REFUSAL_BUDGET);
	q.request.user = 0;
	assert_int_equal(request_finder(f, &q), 0);
	assert_int_equal(request_finder(f, &q), 0);
	close_question(&q);
	file_finder__free(f);
}

/* Looks four times a second. */
static bool is_stuck_until(struct liveness *l, pid_t pid, uint64_t from, uint64_t until)
{
	for (; from < until; from += SECOND / 4)
		if (liveness__is_stuck(l, pid, from, SECOND))
			return true;
	return false;
}

/* A child that runs, then one that is stopped, and one that sleeps. */
TEST(only_a_sleeping_process_counts_as_stuck)
{
	struct liveness l = {}, other = {};
	struct rusage usage;
	int status;
	pid_t pid = fork(), sleeper;

	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			;
	assert_false(is_stuck_until(&l, pid, SECOND, 4 * SECOND));
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(process_is_runnable(pid));
	assert_false(is_stuck_until(&l, pid, 4 * SECOND, 20 * SECOND));
	assert_int_equal(end_process(pid, 60 * SECOND, &status, &usage), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	sleeper = fork();
	if (!sleeper)
		for (;;)
			pause();
	while (process_is_runnable(sleeper))
		usleep(1000);
	/* what it took to begin */
	assert_true(process_cpu_ns_of(sleeper, &l.cpu_ns));
	other.cpu_ns = l.cpu_ns;
	l.since = 20 * SECOND;
	assert_false(is_stuck_until(&l, sleeper, 20 * SECOND, 21 * SECOND));
	assert_true(is_stuck_until(&l, sleeper, 21 * SECOND, 21 * SECOND + 1));
	/* of a minute in which nothing looked at it a quarter of a second counts */
	assert_false(is_stuck_until(&other, sleeper, 20 * SECOND, 20 * SECOND + 1));
	for (uint64_t i = 1; i < 4; i++)
		assert_false(liveness__is_stuck(&other, sleeper, (20 + 60 * i) * SECOND, SECOND));
	assert_true(liveness__is_stuck(&other, sleeper, (20 + 60 * 4) * SECOND, SECOND));
	assert_int_equal(end_process(sleeper, 60 * SECOND, &status, &usage), 0);
}

/* It must not be kill(0), which kills this process and all others of its group. */
TEST(the_end_of_no_process_kills_nothing)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct helper_process none = HELPER_PROCESS_NONE;

		_exit(setpgid(0, 0) || helper_process__end(&none, 0, NULL, NULL) != -ESRCH);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

ALL_TESTS_WITH(setup, teardown);
EACH_TEST_WITH(empty_root, NULL);
