/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Result files, which appear whole or not at all, also under names that others may have got at: testdata/output_place.txt. Here:
 * pipes, stdout, disks without room.
 */
#include "text_cases.h"
#include "output_support.h"

/* Of the running case. */
static struct output_place *place;
static struct output_file *file;
static int held = -1; /* a file, open */

static void begin(void)
{
	enter_directory();
}

static void end(void)
{
	output_place__free(place);
	place = NULL;
	if (held >= 0)
		close(held);
	held = -1;
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	leave_directory();
}

/* What it prints, in a line. */
static void run_shell(FILE *out, const char *command)
{
	FILE *shell = popen(command, "re");
	int c, status, gap = 0;

	assert_non_null(shell);
	while ((c = fgetc(shell)) != EOF) {
		if (gap && c != '\n')
			fputc(' ', out);
		gap = c == '\n';
		if (!gap)
			fputc(c, out);
	}
	status = pclose(shell);
	if (status)
		fprintf(out, "(status %d)", WEXITSTATUS(status));
}

/* "n*255": so many of them; "held": the link of procfs, which is more than its text. */
static const char *read_path(char **words)
{
	static char path[NAME_MAX + 2];
	const char *word = text_word(words);

	if (!strcmp(word, "held")) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
		return path;
	}
	if (word[0] == '\0' || word[1] != '*')
		return word;
	memset(path, *word, sizeof(path) - 1);
	path[strtoul(word + 2, NULL, 10)] = '\0';
	return path;
}

/* Its name, in which what is random has eight Xs. */
static void put_path(FILE *out)
{
	char *path = output_file__path(file), *random = strchr(path, '-');

	if (random && strlen(random) > 9 && random[9] == '.')
		memset(random + 1, 'X', 8);
	fputs(path, out);
	free(path);
}

/* Another's file where the temporary one is. */
static void exchange_temporary(void)
{
	char path[PATH_MAX];

	assert_int_equal(output_file__temporary(file, path, sizeof(path)), 0);
	assert_int_equal(unlink(path), 0);
	write_text(path, "another's");
}

static int open_place(const char *path, const char *name)
{
	output_place__free(place);
	place = NULL;
	return output_place__open(path, strcmp(name, "chosen") ? OUTPUT_GIVEN : OUTPUT_CHOSEN,
				  &place);
}

/* Beside the place that is open, a file with this text. */
static int put_beside(const char *name, const char *text)
{
	struct output_place *beside;
	struct output_file *f;
	int err = output_place__beside(place, name, &beside) ?: output_file__open_at(beside, &f);

	if (err)
		return err;
	fputs(text, output_file__stream(f));
	output_place__free(beside);
	return output_file__commit(f);
}

static void be_sudo_user(const char *uid, const char *gid)
{
	setenv("SUDO_UID", uid, 1);
	if (*gid)
		setenv("SUDO_GID", gid, 1);
}

/* What ends with an error, or none. 1: there is no such step. */
static int take_call(const char *name, char *words)
{
	struct output_file *f = file;
	const char *first;

	if (!strcmp(name, "open"))
		return output_file__open(read_path(&words), &file);
	if (!strcmp(name, "open-at"))
		return output_file__open_at(place, &file);
	if (!strcmp(name, "publish"))
		return output_file__publish(f);
	if (!strcmp(name, "finish"))
		return output_file__finish(f);
	if (!strcmp(name, "finish-otherwise"))
		return output_file__finish_otherwise(f, text_number(&words, 10));
	first = text_word(&words);
	if (!strcmp(name, "beside"))
		return put_beside(first, text_word(&words));
	file = NULL;
	return strcmp(name, "commit") ? 1 : output_file__commit(f);
}

static bool take_step(FILE *out, const char *name, char *words)
{
	const char *first;
	int err;

	if (!strcmp(name, "$"))
		run_shell(out, words);
	else if (!strcmp(name, "umask"))
		umask((mode_t)text_number(&words, 8));
	else if (!strcmp(name, "sudo"))
		first = text_word(&words), be_sudo_user(first, text_word(&words));
	else if (!strcmp(name, "put"))
		fputs(words, output_file__stream(file));
	else if (!strcmp(name, "put-much"))
		for (int i = 0; i < 100000; i++)
			fputs(words, output_file__stream(file));
	else if (!strcmp(name, "flush"))
		fflush(output_file__stream(file));
	else if (!strcmp(name, "failed"))
		fputs(ferror(output_file__stream(file)) ? "yes" : "no", out);
	else if (!strcmp(name, "moved"))
		fputs(output_file__moved(file) ? "yes" : "no", out);
	else if (!strcmp(name, "path"))
		put_path(out);
	else if (!strcmp(name, "exchange"))
		exchange_temporary();
	else if (!strcmp(name, "abort"))
		output_file__abort(file), file = NULL;
	else if (!strcmp(name, "take-back"))
		output_file__take_back(file), file = NULL;
	else if (!strcmp(name, "shared"))
		fputs(output_place__shared(place) ?: "none", out);
	else if (!strcmp(name, "hold"))
		held = open(words, O_RDONLY | O_CLOEXEC);
	else if (!strcmp(name, "place")) {
		first = read_path(&words);
		text_put_error(out, open_place(first, text_word(&words)));
		fputs(place && output_place__is_stream(place) ? " stream" : "", out);
	} else {
		err = take_call(name, words);
		if (err < 0)
			text_put_error(out, err);
		return err <= 0;
	}
	return true;
}

static void run_steps(FILE *out, char *input)
{
	text_run_steps(out, input, take_step);
}

static const struct text_verb verbs[] = {{"files", run_steps}, {"files-as-root", run_steps}, {}};

TEXT_TABLE("output_place", verbs, begin, end);

/* ---- pipes, stdout ---------------------------------------------------------------------------- */

static void *read_fifo(void *arg)
{
	static char text[64];
	FILE *f = fopen(arg, "re");
	size_t size = fread(text, 1, sizeof(text) - 1, f);

	text[size] = '\0';
	fclose(f);
	return text;
}

TEST(output_to_a_fifo)
{
	pthread_t thread;
	struct stat st;
	void *text;

	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(pthread_create(&thread, NULL, read_fifo, "fifo"), 0);
	put("fifo", "through");
	pthread_join(thread, &text);
	assert_string_equal(text, "through");
	assert_int_equal(lstat("fifo", &st), 0);
	assert_true(S_ISFIFO(st.st_mode));
	assert_int_equal(count_entries("."), 1);
}

TEST(output_to_stdout)
{
	int saved = dup(STDOUT_FILENO), fd = open("captured", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(saved >= 0 && fd >= 0);
	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	printf("before ");
	put("-", "text");
	printf(" after");
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	close(fd);
	expect_text("captured", "before text after");
	assert_int_equal(count_entries("."), 1);
}

TEST(output_to_a_socket_is_refused)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "socket"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct output_file *f;

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(output_file__open("socket", &f), -ENXIO);
	close(fd);
}

TEST(output_to_a_pipe_by_its_link_of_procfs)
{
	int pipes[2];
	char path[64], byte;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[1]);
	assert_int_equal(symlink(path, "link"), 0);
	assert_int_equal(open_place("link", "given"), 0);
	assert_true(output_place__is_stream(place));
	assert_int_equal(output_file__open_at(place, &file), 0);
	fputs("x", output_file__stream(file));
	assert_int_equal(output_file__commit(file), 0);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(pipes[0]);
	close(pipes[1]);
	output_place__free(place);
	place = NULL;
}

/* ---- disks ------------------------------------------------------------------------------------ */

TEST(output_beyond_the_file_size_limit)
{
	struct rlimit saved, limit;
	struct output_file *f;
	int err;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &saved);
	limit = saved;
	limit.rlim_cur = 1000;
	assert_int_equal(output_file__open("f", &f), 0);
	for (int i = 0; i < 1000; i++)
		fputs("0123456789", output_file__stream(f));
	setrlimit(RLIMIT_FSIZE, &limit);
	err = output_file__commit(f);
	setrlimit(RLIMIT_FSIZE, &saved);
	assert_int_equal(err, -EFBIG);
	assert_int_equal(count_entries("."), 0);
}

TEST(output_on_a_full_disk)
{
	struct output_file *f;

	mkdir("disk", 0700);
	if (mount("none", "disk", "tmpfs", 0, "size=64k")) {
		print_message("mount: %s (needs CAP_SYS_ADMIN)\n", strerror(errno));
		skip();
	}
	put("disk/old", "kept");
	assert_int_equal(output_file__open("disk/old", &f), 0);
	for (int i = 0; i < 20000; i++)
		fputs("0123456789", output_file__stream(f));
	assert_int_equal(output_file__error(f), -ENOSPC);
	assert_int_equal(output_file__commit(f), -ENOSPC);
	expect_text("disk/old", "kept");
	assert_int_equal(count_entries("disk"), 1);
	assert_int_equal(umount("disk"), 0);
}

TEST(what_is_no_user_of_sudo_s_gets_no_file)
{
	static const char *const bad[] = {"", "-1", "4294967295", "12x", " 12"};
	struct stat st;
	int fd;

	if (geteuid()) {
		print_message("only root can give files away\n");
		skip();
	}
	put("half", "");
	fd = open("half", O_RDONLY | O_CLOEXEC);
	setenv("SUDO_GID", "23456", 1);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		setenv("SUDO_UID", bad[i], 1);
		assert_true(give_to_sudo_user(fd) < 0);
	}
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_uid, 0);
	close(fd);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

EACH_TEST_WITH(enter_directory, leave_directory);
