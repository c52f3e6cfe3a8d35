/* SPDX-License-Identifier: BSD-2-Clause */
/* What sealed children see of files: none by name, and what their parent opens for them instead. */
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include "unit.h"

#include "base/cleanup.h"
#include "base/io.h"
#include "symbolize/sealed.h"
#include "unit/sealed_support.h"

static char dwo_path[256], secret_path[256];
static struct file_finder *finder;

#define MUST(condition)                                                                            \
	do {                                                                                       \
		if (!(condition))                                                                  \
			return -(__LINE__ % 1000) - 1000;                                          \
	} while (0)

static bool refused(long result)
{
	return result == -1 && errno == EACCES;
}

/* Every way to a path, from inside. A child that gets through fails, and its lines are missing. */
static int try_paths(const struct module_files *files, const uint64_t *addresses, size_t count,
		     symbol_sink_fn sink, void *context, struct module_report *report)
{
	struct sysinfo memory;
	char text[256];
	struct stat st;

	if (files->symbols_only)
		return answer_all(files, addresses, count, sink, context, report);
	MUST(!sysinfo(&memory)); /* or qsort() is a quicksort */
	MUST(refused(open("/etc/passwd", O_RDONLY)));
	MUST(refused(open(secret_path, O_RDONLY)));
	MUST(refused(open("relative.dwo", O_RDONLY)));
	MUST(refused(open(dwo_path, O_RDWR)));
	MUST(refused(open(dwo_path, O_WRONLY | O_CREAT, 0600)));
	MUST(refused(open("/proc/self/mem", O_RDWR)));
	MUST(refused(stat("/etc/passwd", &st)));
	MUST(refused(lstat("/etc/passwd", &st)));
	MUST(refused(syscall(SYS_statx, AT_FDCWD, "/etc/passwd", 0, 0, text)));
	MUST(refused(access("/etc/passwd", R_OK)));
	MUST(refused(readlink("/proc/self/fd/3", text, sizeof(text))));
	MUST(refused(unlink(dwo_path)));
	MUST(refused(rename(dwo_path, secret_path)));
	MUST(refused(mkdir("/tmp/sealed", 0700)));
	MUST(refused(chdir("/")));
	MUST(syscall(SYS_getdents64, CHILD_SOCKET, text, sizeof(text)) == -1);
	MUST(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	     MAP_FAILED);
	MUST(fcntl(CHILD_SOCKET, F_SETOWN, 1) == -1);
	MUST(syscall(SYS_ioctl, CHILD_SOCKET, 0x541b, text) == -1);
	return answer_all(files, addresses, count, sink, context, report);
}

static int read_dwo(const struct module_files *files, const uint64_t *addresses, size_t count,
		    symbol_sink_fn sink, void *context, struct module_report *report)
{
	char text[64] = "";
	struct symbol_frame frame = {.function = text};
	struct symbol_result result = {.frames = &frame, .frame_count = 1};
	struct stat st;
	int fd = open(dwo_path, O_RDONLY);

	MUST(fd >= 0);
	MUST(!fstat(fd, &st) && S_ISREG(st.st_mode));
	MUST(pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	MUST(open("/nowhere/at/all.dwo", O_RDONLY) == -1 && errno == ENOENT);
	report->state = SYMBOL_STATE_RESOLVED;
	report->dwarf = DWARF_STATE_READ;
	return sink(context, 0, &result);
}

/* As libdw asks where a program's .dwo files are packed: beside a name under /proc/self/fd. */
static int read_package(const struct module_files *files, const uint64_t *addresses, size_t count,
			symbol_sink_fn sink, void *context, struct module_report *report)
{
	char text[64] = "";
	struct symbol_frame frame = {.function = text};
	struct symbol_result result = {.frames = &frame, .frame_count = 1};
	int fd;

	MUST(readlink("/proc/self/fd/3", text, sizeof(text)) == -1);
	MUST(errno == (files->package_size ? EINVAL : EACCES));
	fd = open("/proc/self/fd/7.dwp", O_RDONLY);
	MUST(fd >= 0 && pread(fd, text, sizeof(text) - 1, 0) > 0);
	close(fd);
	MUST(open("/proc/self/fd/sub/y.dwo", O_RDONLY) >= 0);
	MUST(open("/proc/self/fd/none.dwo", O_RDONLY) == -1 && errno == ENOENT);
	MUST(refused(open("/proc/self/fd/3", O_RDONLY)));
	report->state = SYMBOL_STATE_RESOLVED;
	report->dwarf = DWARF_STATE_READ;
	return sink(context, 0, &result);
}

static void write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
}

static const char *scratch_directory(void)
{
	static char path[] = "/tmp/test_sealed.XXXXXX";

	static bool made;

	if (!made)
		assert_non_null(mkdtemp(path));
	made = true;
	return path;
}

TEST(a_sealed_child_is_refused_every_path)
{
	struct sealed_job job;
	struct test_job test;

	snprintf(dwo_path, sizeof(dwo_path), "%s/x.dwo", scratch_directory());
	snprintf(secret_path, sizeof(secret_path), "%s/x.txt", scratch_directory());
	write_file(dwo_path, "split");
	write_file(secret_path, "secret");
	make_jobs(&job, &test, 1);
	job.finder = finder;
	assert_int_equal(
		sealed_run(&job, 1, 1, NULL, NULL, &(struct sealed_work){.resolve = try_paths}), 0);
	assert_int_equal(job.report.dwarf, DWARF_STATE_READ);
	assert_answered(&test, true);
	unlink(secret_path);
}

/* The file of the process's root comes before that of ours. */
TEST(split_files_of_a_container_precede_host_files)
{
	const struct sealed_work work = {.resolve = read_dwo};
	char root[300], inside[1200];
	struct sealed_job job;
	struct test_job test;
	_cleanup_close_ int root_fd = -1;

	snprintf(dwo_path, sizeof(dwo_path), "%s/x.dwo", scratch_directory());
	write_file(dwo_path, "of the host");
	make_jobs(&job, &test, 1);
	job.finder = finder;
	job.count = 1;
	assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL, &work), 0);
	assert_int_equal(job.report.dwarf, DWARF_STATE_READ);
	assert_string_equal(test.answers[0].name, "of the host");

	snprintf(root, sizeof(root), "%s/root", scratch_directory());
	snprintf(inside, sizeof(inside), "mkdir -p %s%s && printf 'of the container' >%s%s", root,
		 scratch_directory(), root, dwo_path);
	assert_int_equal(system(inside), 0);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	make_jobs(&job, &test, 1);
	job.finder = finder;
	job.count = 1;
	job.root_fd = root_fd;
	assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL, &work), 0);
	assert_string_equal(test.answers[0].name, "of the container");
	snprintf(inside, sizeof(inside), "rm -r %s", scratch_directory());
	assert_int_equal(system(inside), 0);
}

TEST(a_package_beside_the_module_is_handed_in)
{
	const struct sealed_work work = {.resolve = read_package};
	char root[] = "/tmp/test_sealed.XXXXXX", command[300];
	_cleanup_close_ int root_fd = -1;
	struct sealed_job job;
	struct test_job test;

	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command),
		 "mkdir -p %s/bin/sub && printf package >%s/bin/prog.dwp && "
		 "printf split >%s/bin/sub/y.dwo",
		 root, root, root);
	assert_int_equal(system(command), 0);
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (int packaged = 0; packaged < 2; packaged++) {
		make_jobs(&job, &test, 1);
		job.finder = finder;
		job.count = 1;
		job.root_fd = root_fd;
		job.path = "/bin/prog";
		job.files.package_size = packaged;
		assert_int_equal(sealed_run(&job, 1, 1, NULL, NULL, &work), 0);
		assert_int_equal(job.report.dwarf, DWARF_STATE_READ);
		assert_string_equal(test.answers[0].name, "package");
	}
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void start_finder(void)
{
	finder = file_finder__new(NULL);
	assert_false(!finder);
}

static void end_finder(void)
{
	file_finder__free(finder);
}

ALL_TESTS_WITH(start_finder, end_finder);
