/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc as events, of real processes. The parsers: test_proc_texts.c. */
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/proc_task.h"
#include "base/vec.h"
#include "live/parts/reread.h"
#include "live/proc/proc_maps.h"
#include "live/proc/proc_snapshot.h"
#include "stream/event_decode.h"
#include "tenants/pool.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define MS	     1000000ULL

/* ---- what was reported --------------------------------------------------------------------------- */

struct reported {
	VEC(struct event_header *) events;
	unsigned int of_type[64];
	int answer;
};

static int take(void *context, struct event_header *event)
{
	struct reported *reported = context;
	struct event_header *copy;

	assert_int_equal(event_check(event, event->size), 0);
	assert_true(event->flags & EVENT_FROM_PROC);
	reported->of_type[event->type]++;
	if (reported->answer)
		return reported->answer;
	copy = malloc(event->size);
	memcpy(copy, event, event->size);
	assert_int_equal(vec_push(&reported->events, copy), 0);
	return 0;
}

static void reported_fini(struct reported *reported)
{
	for (size_t i = 0; i < reported->events.count; i++)
		free(reported->events.data[i]);
	vec_free(&reported->events);
	memset(reported, 0, sizeof(*reported));
}

static const struct mmap_event *reported_mapping(const struct reported *reported,
						 const void *address)
{
	for (size_t i = 0; i < reported->events.count; i++) {
		const struct mmap_event *e = (void *)reported->events.data[i];

		if (e->header.type == EVENT_MMAP && (uintptr_t)address >= e->start &&
		    (uintptr_t)address - e->start < e->length)
			return e;
	}
	return NULL;
}

/* One that was reported before MAPS_READ. */
static const struct mmap_event *last_mapping(const struct reported *reported)
{
	size_t i = reported->events.count;

	while (i-- && reported->events.data[i]->type != EVENT_MMAP)
		;
	assert_true(i < reported->events.count);
	return (const void *)reported->events.data[i];
}

/* Of the running test. */
static struct proc_snapshot *s;
static struct reported reported;

static void set_up(void)
{
	assert_int_equal(proc_snapshot__new(&s), 0);
}

static void tear_down(void)
{
	reported_fini(&reported);
	proc_snapshot__free(s);
}

static const struct thread_event *reported_thread(pid_t tid)
{
	for (size_t i = 0; i < reported.events.count; i++) {
		const struct thread_event *e = (void *)reported.events.data[i];

		if (e->header.type == EVENT_THREAD && e->tid == (uint32_t)tid)
			return e;
	}
	return NULL;
}

/* The process as it is now, and nothing else. */
static void read_process(pid_t pid, bool is_target)
{
	reported_fini(&reported);
	assert_int_equal(proc_snapshot__process(s, pid, is_target, take, &reported), 0);
}

/* When the last reading of a reader began and ended; its process writes it. */
struct reading {
	uint64_t began, ended;
};

static struct reading *reading;

static void serve_and_note(struct helper_job *job)
{
	reading->began = monotonic_ns();
	proc_maps__serve(job);
	reading->ended = monotonic_ns();
}

static const helper_serve_fn map_services[] = {serve_and_note};

static struct helper_pool *new_readers(void)
{
	const struct helper_pool_options options = {.services = map_services,
						    .service_count = 1,
						    .class = HELPER_READER,
						    .keeper = HELPER_READER_KEEPER};
	struct helper_pool *pool;

	if (!reading)
		reading = mmap(NULL, sizeof(*reading), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(reading != MAP_FAILED);
	assert_int_equal(helper_pool__new(&options, &pool), 0);
	return pool;
}

/* ---- one's own process ----------------------------------------------------------------------- */

static pthread_barrier_t barrier;
static pid_t helper_tid;

static void *helper_thread(void *context)
{
	helper_tid = syscall(SYS_gettid);
	prctl(PR_SET_NAME, "a)\n(\xff S 1 2 3");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

TEST(a_snapshot_has_threads_and_mappings)
{
	uint64_t before = monotonic_ns();
	const struct process_event *process;
	const struct mmap_event *mapping;
	const struct thread_event *thread;
	pthread_t helper;
	char path[4096] = "";

	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&helper, NULL, helper_thread, NULL), 0);
	pthread_barrier_wait(&barrier);
	read_process(getpid(), true);
	pthread_barrier_wait(&barrier);
	pthread_join(helper, NULL);

	process = (void *)reported.events.data[0];
	assert_int_equal(process->header.type, EVENT_PROCESS);
	assert_int_equal(process->pid, getpid());
	assert_int_equal(process->ppid, getppid());
	assert_int_equal(process->is_target, 1);
	assert_int_equal(process->is_kernel, 0);
	assert_memory_equal(process->name, "test_proc_snaps", 16);
	assert_true(process->start_time > 0 && process->start_time < before);
	assert_true(before - process->start_time < 3600 * 1000 * MS);

	assert_int_equal(reported.of_type[EVENT_PROCESS], 1);
	assert_int_equal(reported.of_type[EVENT_THREAD], 2);
	assert_int_equal(reported.of_type[EVENT_MAPS_READ], 1);
	thread = reported_thread(getpid());
	assert_non_null(thread);
	assert_true(thread->cpu_time > 0 && thread->cpu_time != UINT64_MAX);
	thread = reported_thread(helper_tid);
	assert_non_null(thread);
	assert_string_equal(thread->comm, "a)\n(\xff S 1 2 3");
	assert_true(thread->start_time + 20 * MS >= before);
	assert_true(thread->start_time <= monotonic_ns());

	mapping = reported_mapping(&reported,
				   (void *)(uintptr_t)a_snapshot_has_threads_and_mappings);
	assert_non_null(mapping);
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	assert_string_equal(mapping->path, path);
	assert_true(mapping->inode != 0);
	assert_int_equal(mapping->protection, PROT_READ | PROT_EXEC);
	assert_int_equal(mapping->file_state, FILE_STATE_UNOPENED);
	assert_null(reported_mapping(&reported, &reported)); /* the stack is no code */
	assert_int_equal(reported.events.data[reported.events.count - 1]->type, EVENT_MAPS_READ);
	for (size_t i = 0; i < reported.events.count; i++) {
		assert_true(reported.events.data[i]->time >= before);
		before = reported.events.data[i]->time;
	}
	reported_fini(&reported);

	reported.answer = -ECANCELED;
	assert_int_equal(proc_snapshot__process(s, getpid(), true, take, &reported), -ECANCELED);
	assert_int_equal(proc_snapshot__all(s, true, take, &reported), -ECANCELED);
	proc_snapshot__free(NULL);
}

/* Map a page of a file of this name, and see what name comes back. */
static void expect_exact_path(const char *path, bool deleted)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	const struct mmap_event *mapping;
	struct stat st;
	void *page;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(fstat(fd, &st), 0);
	page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(page != MAP_FAILED);
	if (deleted)
		unlink(path);
	read_process(getpid(), false);
	mapping = reported_mapping(&reported, page);
	assert_non_null(mapping);
	assert_memory_equal(mapping->path, path, strlen(path));
	assert_string_equal(mapping->path + strlen(path), deleted ? " (deleted)" : "");
	assert_int_equal(mapping->inode, st.st_ino);
	munmap(page, 4096);
	unlink(path);
	close(fd);
}

TEST(paths_of_mappings_are_exact)
{
	static const char *const names[] = {"plain",	   "new\nline",	 "literal\\012",
					    "both\n\\012", "  spaces  ", "\xff\xfe\x01",
					    "x (deleted)", "a\\134b"};
	char directory[] = "/tmp/sysprof-test-XXXXXX";
	char path[256], deep[4500] = "";

	assert_non_null(mkdtemp(directory));
	for (size_t i = 0; i < COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		/* map_files needs privileges; without them "\012" stays ambiguous */
		if (strstr(names[i], "\\012") && geteuid() != 0)
			continue;
		expect_exact_path(path, false);
		expect_exact_path(path, true);
	}
	/* as long as the kernel takes it */
	strcpy(deep, directory);
	while (strlen(deep) < 3600) {
		strcat(deep, "/");
		memset(deep + strlen(deep), 'd', 250);
		assert_int_equal(mkdir(deep, 0700), 0);
	}
	strcat(deep, "/f");
	expect_exact_path(deep, false);
	snprintf(path, sizeof(path), "rm -r %s", directory);
	assert_int_equal(system(path), 0);
}

/* ---- other processes ------------------------------------------------------------------------- */

/* Run `body` in a child that then waits to be killed; returns when body is done. */
static pid_t start_child(void (*body)(void))
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		body();
		if (write(ready[1], "x", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void stop_child(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
}

static void rename_itself(void)
{
	prctl(PR_SET_NAME, "MainThread");
}

static const char *reported_comm(void)
{
	for (size_t i = 0; i < reported.events.count; i++)
		if (reported.events.data[i]->type == EVENT_COMM)
			return ((const struct comm_event *)reported.events.data[i])->comm;
	return "";
}

TEST(a_renamed_leader_leaves_the_process_its_program_name)
{
	pid_t pid = start_child(rename_itself);

	read_process(pid, true);
	assert_string_equal(reported_thread(pid)->comm, "MainThread");
	assert_string_equal(reported_comm(), "test_proc_snaps");
	stop_child(pid);
}

enum { MANY = 60000 };

static void map_much(void)
{
	char *pages = mmap(NULL, MANY * 4096UL, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	if (pages == MAP_FAILED)
		_exit(1);
	for (int i = 1; i < MANY; i += 2) {
		if (mprotect(pages + i * 4096UL, 4096, PROT_READ))
			_exit(1);
	}
}

TEST(all_of_many_mappings_are_reported)
{
	pid_t pid = start_child(map_much);

	read_process(pid, false);
	assert_in_range(reported.of_type[EVENT_MMAP], MANY / 2 + 1, MANY / 2 + 100);
	assert_int_equal(reported.of_type[EVENT_MAPS_READ], 1);
	stop_child(pid);
	/* and now it is gone */
	read_process(pid, false);
	assert_int_equal(proc_snapshot__thread_cpu(s, pid, take, &reported), 0);
	assert_int_equal(reported.events.count, 0);
}

/* The mappings that both have; they are in the order of their addresses. */
static size_t count_same(const struct reported *a, const struct reported *b)
{
	size_t same = 0, at = 0;

	for (size_t i = 0; i < a->events.count; i++) {
		const struct mmap_event *x = (const void *)a->events.data[i], *y;

		if (x->header.type != EVENT_MMAP)
			continue;
		do {
			if (at == b->events.count)
				return same;
			y = (const void *)b->events.data[at++];
		} while (y->header.type != EVENT_MMAP || y->start < x->start);
		same += y->header.size == x->header.size &&
			!memcmp(&x->pid, &y->pid, x->header.size - sizeof(x->header));
	}
	return same;
}

/* Records that the kernel writes while a reader reads: of one mapping. */
struct meanwhile {
	struct proc_snapshot *s;
	struct mmap_event record;
	enum { BEFORE, SPREAD, AT_THE_END } when; /* BEFORE: they have the time in the record */
	unsigned int count, read_again;
	bool execs;
};

/* A catch_up of struct proc_readers. */
static int map_meanwhile(void *context)
{
	struct meanwhile *m = context;
	uint64_t step = (reading->ended - reading->began) / (m->count ? m->count : 1);

	for (unsigned int i = 1; i <= m->count; i++) {
		if (m->when == SPREAD)
			m->record.header.time = reading->began + i * step;
		if (m->when == AT_THE_END)
			m->record.header.time = reading->ended;
		proc_snapshot__mapped(m->s, &m->record);
		if (m->execs)
			proc_snapshot__execed(m->s, &(struct comm_event){.header = m->record.header,
									 .pid = m->record.pid});
	}
	return 0;
}

static void count_reading(void *context, uint32_t pid)
{
	((struct meanwhile *)context)->read_again += pid ==
						     ((struct meanwhile *)context)->record.pid;
}

/* What a reader reports of `pid` if these records are written meanwhile. */
static void read_meanwhile(struct meanwhile *m, struct helper_pool *pool, pid_t pid,
			   struct reported *reported)
{
	const struct proc_readers readers = {
		.pool = pool, .catch_up = map_meanwhile, .read_again = count_reading, .context = m};

	m->read_again = 0;
	reported_fini(reported);
	proc_snapshot__use_readers(m->s, &readers);
	assert_int_equal(proc_snapshot__process(m->s, pid, false, take, reported), 0);
	assert_int_equal(reported->of_type[EVENT_MMAP], 0);
	assert_true(proc_snapshot__pending_since(m->s) <= monotonic_ns());
	assert_true(helper_pool__settle(pool, 60000000000ull));
	assert_true(proc_snapshot__pending_since(m->s) == UINT64_MAX);
	assert_int_equal(proc_snapshot__error(m->s), 0);
}

/* The same, whoever reads it: a process that a reader reads, one with more than fits a message, one that is gone. */
TEST(readers_report_the_same_mappings_as_the_caller)
{
	struct reported here = {}, there = {};
	struct helper_pool *pool = new_readers();
	const struct event_header *last;
	pid_t pid = start_child(map_much);

	assert_int_equal(proc_snapshot__process(s, pid, false, take, &here), 0);
	read_meanwhile(&(struct meanwhile){.s = s}, pool, pid, &there);
	assert_true(here.of_type[EVENT_MMAP] > MANY / 2);
	assert_int_equal(there.of_type[EVENT_MMAP], here.of_type[EVENT_MMAP]);
	assert_int_equal(count_same(&here, &there), here.of_type[EVENT_MMAP]);
	last = (const void *)there.events.data[there.events.count - 1];
	assert_int_equal(last->type, EVENT_MAPS_READ);
	/* it ends after it was requested: nothing, or all of it */
	reported_fini(&there);
	assert_int_equal(proc_snapshot__process(s, pid, false, take, &there), 0);
	stop_child(pid);
	helper_pool__end(pool);
	assert_true(proc_snapshot__pending_since(s) == UINT64_MAX);
	assert_int_equal(there.of_type[EVENT_MAPS_READ], 0);
	reported_fini(&here);
	reported_fini(&there);
	helper_pool__free(pool);
}

/*
 * A mapping that is made while its process is read was not there when the reading began: what had been at
 * its addresses is theirs until its record.
 */
TEST(mappings_made_while_a_process_is_read_are_left_to_their_records)
{
	struct reported here = {}, there = {};
	struct meanwhile m = {.s = s, .count = 200, .when = SPREAD};
	pid_t pid = start_child(map_much);
	const struct mmap_event *one;
	const struct event_header *last;
	struct helper_pool *pool = new_readers();
	size_t all;

	assert_int_equal(proc_snapshot__process(s, pid, false, take, &here), 0);
	all = here.of_type[EVENT_MMAP];
	one = last_mapping(&here);
	m.record = (struct mmap_event){.pid = pid, .start = one->start, .length = one->length};
	read_meanwhile(&m, pool, pid, &there);
	assert_int_equal(there.of_type[EVENT_MMAP], all - 1);
	assert_null(reported_mapping(&there, (void *)(uintptr_t)one->start));
	last = (const void *)there.events.data[there.events.count - 1];
	assert_int_equal(last->type, EVENT_MAPS_READ);
	assert_in_range(last_mapping(&there)->header.time, reading->began, last->time - 1);
	assert_int_equal(m.read_again, 0);
	/* of a part: no record says since when the rest is there */
	m.record.length--;
	read_meanwhile(&m, pool, pid, &there);
	assert_int_equal(there.of_type[EVENT_MMAP], all - 1);
	assert_true(m.read_again > 0);

	/* of another process, and of before the reading: they say nothing */
	m.record.pid++;
	read_meanwhile(&m, pool, pid, &there);
	assert_int_equal(there.of_type[EVENT_MMAP], all);
	m.record.pid--;
	m.record.header.time = reading->began;
	m.when = BEFORE;
	m.count = 5000;
	read_meanwhile(&m, pool, pid, &there);
	assert_int_equal(there.of_type[EVENT_MMAP], all);
	assert_int_equal(m.read_again, 0);

	/* a program that is executed meanwhile, or was before */
	assert_int_equal(there.of_type[EVENT_COMM], 1);
	m.execs = true;
	read_meanwhile(&m, pool, pid, &there);
	assert_int_equal(there.of_type[EVENT_COMM], 1);
	m.when = AT_THE_END;
	m.count = 1;
	read_meanwhile(&m, pool, pid, &there);
	assert_int_equal(there.of_type[EVENT_COMM], 0);
	assert_int_equal(m.read_again, 1);
	m.execs = false;

	/* more than there is room for: nothing is certain */
	m.count = 5000;
	read_meanwhile(&m, pool, pid, &there);
	assert_int_equal(there.of_type[EVENT_MMAP], 0);
	assert_int_equal(m.read_again, 1);
	stop_child(pid);
	helper_pool__end(pool);
	reported_fini(&here);
	reported_fini(&there);
	helper_pool__free(pool);
}

static void nothing(void)
{
}

static void *signal_and_sleep(void *fd)
{
	/* wait until the leader is a zombie */
	for (;;) {
		struct proc_stat stat = {};
		char text[1024];
		int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
		ssize_t size = read(file, text, sizeof(text));

		close(file);
		if (size > 0 && !proc_parse_stat(text, size, &stat) && stat.state == 'Z')
			break;
		usleep(1000);
	}
	if (write(*(int *)fd, "x", 1) == 1)
		for (;;)
			pause();
	return NULL;
}

TEST(a_process_with_an_ended_leader_is_reported)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		pthread_t thread;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&thread, NULL, signal_and_sleep, &ready[1]);
		syscall(SYS_exit, 0); /* this thread alone */
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(proc_process_state(pid, NULL), PROC_ALIVE);
	read_process(pid, false);
	assert_int_equal(reported.of_type[EVENT_PROCESS], 1);
	assert_int_equal(reported.of_type[EVENT_THREAD], 1); /* not the dead one */
	assert_int_equal(reported.of_type[EVENT_MAPS_READ], 1);
	assert_non_null(reported_mapping(&reported,
					 (void *)(uintptr_t)a_snapshot_has_threads_and_mappings));
	assert_true(
		reported_mapping(&reported, (void *)(uintptr_t)a_snapshot_has_threads_and_mappings)
			->tid != (uint32_t)pid);
	stop_child(pid);
	close(ready[0]);
	close(ready[1]);
}

/* The states of a process and a thread of it where /proc shows neither, as hidepid does. */
static void expect_hidden(pid_t pid, pid_t thread)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("none", "/proc", "tmpfs", 0, NULL))
			_exit(77);
		_exit(proc_process_state(pid, NULL) != PROC_HIDDEN ||
		      proc_process_state(thread, NULL) != PROC_HIDDEN ||
		      proc_process_state(INT_MAX, NULL) != PROC_NONE);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (status == W_EXITCODE(77, 0))
		print_message("/proc cannot be hidden here: not tested\n");
	else
		assert_int_equal(status, 0);
}

TEST(each_kind_of_process_has_its_state)
{
	struct proc_identity identity = {};
	pthread_t helper;
	siginfo_t info;
	uint64_t before = monotonic_ns();
	pid_t pid = start_child(nothing);
	char comm[32];

	assert_int_equal(proc_process_state(pid, &identity), PROC_ALIVE);
	assert_int_equal(identity.tgid, pid);
	assert_int_equal(identity.ppid, getpid());
	assert_string_equal(identity.comm, "test_proc_snaps");
	assert_in_range(identity.start_time, before - 20 * MS, monotonic_ns());
	kill(pid, SIGKILL);
	assert_int_equal(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(proc_process_state(pid, &identity), PROC_ZOMBIE);
	read_process(pid, false);
	assert_int_equal(reported.events.count, 0);
	stop_child(pid);
	assert_int_equal(proc_process_state(pid, NULL), PROC_NONE);
	assert_int_equal(proc_process_state(0, NULL), PROC_NONE);
	assert_int_equal(proc_process_state(-1, NULL), PROC_NONE);

	pthread_barrier_init(&barrier, NULL, 2);
	assert_int_equal(pthread_create(&helper, NULL, helper_thread, NULL), 0);
	pthread_barrier_wait(&barrier);
	assert_int_equal(proc_process_state(helper_tid, &identity), PROC_ALIVE);
	assert_int_equal(identity.tgid, getpid());
	assert_string_equal(identity.comm, "a)\n(\xff S 1 2 3");
	expect_hidden(getpid(), helper_tid);
	pthread_barrier_wait(&barrier);
	pthread_join(helper, NULL);

	if (read_line("/proc/2/comm", comm, sizeof(comm)) || strcmp(comm, "kthreadd")) {
		print_message("kernel threads are not visible here: not tested\n");
	} else {
		assert_int_equal(proc_process_state(2, &identity), PROC_KERNEL);
		read_process(2, false);
		assert_int_equal(((struct process_event *)reported.events.data[0])->is_kernel, 1);
		assert_int_equal(reported.of_type[EVENT_THREAD], 1);
		assert_int_equal(reported.of_type[EVENT_MMAP], 0);
		assert_int_equal(reported.of_type[EVENT_MAPS_READ], 0);
	}
}

static void make_four(void)
{
	for (int i = 0; i < 4; i++)
		start_child(nothing);
}

static void make_grandchildren(void)
{
	start_child(make_four);
	start_child(nothing);
}

TEST(descendants_are_found_once_and_without_the_roots)
{
	pid_t pid = start_child(make_grandchildren), *found = NULL;
	size_t count = 0;

	assert_int_equal(proc_snapshot__descendants(s, &pid, 1, &found, &count), 0);
	assert_int_equal(count, 6); /* 2 children, 4 grandchildren */
	for (size_t i = 0; i < count; i++) {
		struct proc_identity identity;
		bool parent_known = false;

		assert_int_equal(proc_process_state(found[i], &identity), PROC_ALIVE);
		parent_known = identity.ppid == pid;
		for (size_t j = 0; j < i; j++) {
			assert_int_not_equal(found[i], found[j]);
			parent_known |= identity.ppid == found[j];
		}
		assert_true(parent_known);
	}
	/* a root among the descendants of another is not reported, what is below it is, once */
	pid_t roots[] = {pid, found[0], found[1]};
	pid_t *again = NULL;
	size_t count_again;
	assert_int_equal(proc_snapshot__descendants(s, roots, 3, &again, &count_again), 0);
	assert_int_equal(count_again, 4);
	free(again);
	for (size_t i = 0; i < count; i++)
		kill(found[i], SIGKILL);
	free(found);
	stop_child(pid);
	pid_t nobody[] = {pid};
	assert_int_equal(proc_snapshot__descendants(s, nobody, 1, &found, &count), 0);
	assert_int_equal(count, 0);
	free(found);
}

static uint64_t thread_cpu_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000 * MS + now.tv_nsec;
}

TEST(the_cpu_time_of_each_thread_is_reported)
{
	const struct thread_cpu_event *e;
	uint64_t start = thread_cpu_now(), before, after;

	while (thread_cpu_now() < start + 50 * MS)
		;
	before = thread_cpu_now();
	assert_int_equal(proc_snapshot__thread_cpu(s, getpid(), take, &reported), 0);
	after = thread_cpu_now();
	assert_int_equal(reported.events.count, 1);
	e = (void *)reported.events.data[0];
	assert_int_equal(e->header.type, EVENT_THREAD_CPU);
	assert_int_equal(e->tgid, getpid());
	assert_int_equal(e->tid, getpid());
	assert_true(e->cpu_time + 20 * MS >= before && e->cpu_time <= after);
	reported_fini(&reported);
	assert_int_equal(proc_snapshot__thread_cpu_all(s, take, &reported), 0);
	assert_true(reported.events.count > 1);
}

static void fork_storm(void)
{
	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t pid = fork();
		int status;

		if (pid == 0)
			_exit(0);
		waitpid(pid, &status, 0);
	}
}

TEST(all_processes_are_reported_while_others_come_and_go)
{
	pid_t storm = start_child(fork_storm);
	uint64_t end = monotonic_ns() + 300 * MS;
	unsigned int kernel = 0;

	do {
		reported_fini(&reported);
		assert_int_equal(proc_snapshot__all(s, false, take, &reported), 0);
		assert_int_equal(proc_snapshot__thread_cpu_all(s, take, &reported), 0);
	} while (monotonic_ns() < end);
	assert_non_null(reported_thread(getpid()));
	assert_non_null(reported_thread(1));
	for (size_t i = 0; i < reported.events.count; i++) {
		const struct process_event *e = (void *)reported.events.data[i];

		if (e->header.type == EVENT_PROCESS && e->is_kernel) {
			kernel++;
			if (!strncmp(e->name, "kworker/", 8) && e->name[8] != 'R')
				assert_null(strpbrk(e->name, "+-"));
		}
	}
	assert_true(kernel == 0 || kernel > 5);
	stop_child(storm);
}

/* ---- reading again --------------------------------------------------------------------------- */

/* Of the running test: a reread part at a made-up time, and how often it has read since the last look. */
static struct live_part r;

static unsigned int rereads_at(uint64_t now)
{
	unsigned int before = reported.of_type[EVENT_MAPS_READ];

	assert_int_equal(r.tick(r.object, now), 0);
	return reported.of_type[EVENT_MAPS_READ] - before;
}

TEST(repeated_rereading_of_a_process_is_delayed)
{
	struct tasks *tasks = tasks__new(&(struct tasks_options){});
	uint64_t now = 1000 * MS;

	assert_non_null(tasks);
	assert_int_equal(reread_part__new(&(struct reread_options){tasks, s, take, &reported}, &r),
			 0);
	assert_int_equal(rereads_at(now), 0);
	reread_part__request(r.object, getpid());
	reread_part__request(r.object, getpid());
	assert_int_equal(reported.of_type[EVENT_MAPS_READ], 0); /* not yet */
	assert_int_equal(rereads_at(now), 1);
	assert_true(reported.of_type[EVENT_MMAP] > 2);
	assert_int_equal(reported.of_type[EVENT_PROCESS], 1);
	assert_int_equal(rereads_at(now + 10000 * MS), 0); /* not requested */
	/* each time twice as late */
	for (uint64_t delay = 100 * MS; delay <= 400 * MS; delay *= 2) {
		reread_part__request(r.object, getpid());
		assert_int_equal(rereads_at(now + delay - 1), 0);
		now += delay;
		assert_int_equal(rereads_at(now), 1);
	}
	assert_int_equal(tasks__exec(tasks, getpid(), 1), 0);
	assert_int_equal(tasks__exec(tasks, 1, 1), 0);
	reread_part__request(r.object, getpid());
	assert_int_equal(rereads_at(now), 1);
	/* more processes than are remembered, none of which exists */
	for (uint32_t pid = 5000000; pid < 5150000; pid++)
		reread_part__request(r.object, pid);
	assert_int_equal(rereads_at(now), 0);
	r.free(r.object);
	tasks__free(tasks);
}

/* A child that has unshared its time; `grandchild`: with a child in that namespace. Until killed. */
static pid_t start_in_time(bool grandchild, const int ready[2])
{
	static const char OFFSET[] = "monotonic 5000 7";
	pid_t child = fork();
	int offsets;

	if (child)
		return child;
	offsets = unshare(CLONE_NEWTIME) ? -1 : open("/proc/self/timens_offsets", O_WRONLY);
	if (write(offsets, OFFSET, sizeof(OFFSET) - 1) < 0)
		_exit(1);
	child = grandchild ? fork() : 0;
	if (child || !grandchild)
		(void)!write(ready[1], &child, sizeof(child));
	for (;;)
		pause();
}

/*
 * A process has the offsets of its namespace. One that has unshared has another one than its
 * children: the offsets in its file are theirs.
 */
TEST(a_process_has_the_clock_offset_of_its_namespace)
{
	int64_t ahead = 1;

	assert_int_equal(proc_clock_ahead(getpid(), &ahead), 0);
	assert_int_equal(ahead, 0);
	if (access("/proc/self/timens_offsets", F_OK) || geteuid())
		skip();
	for (int grandchild = 0; grandchild < 2; grandchild++) {
		pid_t inner, outer;
		int ready[2];

		assert_int_equal(pipe(ready), 0);
		outer = start_in_time(grandchild, ready);
		close(ready[1]);
		assert_int_equal(read(ready[0], &inner, sizeof(inner)), sizeof(inner));
		close(ready[0]);
		assert_int_equal(proc_clock_ahead(inner ? inner : outer, &ahead), 0);
		assert_int_equal(ahead, grandchild ? 5000000000007ll : 0);
		if (inner)
			kill(inner, SIGKILL);
		kill(outer, SIGKILL);
		waitpid(outer, NULL, 0);
	}
	assert_int_equal(proc_clock_ahead(0x7fffffff, &ahead), -ESRCH);
}

EACH_TEST_WITH(set_up, tear_down);
