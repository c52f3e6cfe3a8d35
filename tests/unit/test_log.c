/* SPDX-License-Identifier: BSD-2-Clause */
/* Sentences about failures, and what is printed at which level. */
#include <pthread.h>
#include <sys/socket.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/log.h"

#define THREADS 4
#define LINES	200

TEST(failures_are_filled)
{
	struct failure f = {};
	char long_text[2000];

	assert_int_equal(fail(NULL, -EPERM, "nobody listens"), -EPERM);
	assert_int_equal(fail_remedy(NULL, -EPERM, "nobody listens"), -EPERM);
	assert_int_equal(fail(&f, -ENOENT, "open %s", "/x"), -ENOENT);
	assert_int_equal(fail_remedy(&f, -ENOENT, "touch %s", "/x"), -ENOENT);
	assert_string_equal(f.what, "open /x");
	assert_string_equal(f.remedy, "touch /x");
	assert_int_equal(fail(&f, -EIO, "again: %s", f.what), -EIO);
	assert_string_equal(f.what, "again: open /x");
	assert_string_equal(f.remedy, "");
	memset(long_text, 'x', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	fail(&f, -EIO, "%s", long_text);
	assert_int_equal(strlen(f.what), sizeof(f.what) - 1);
}

/* Standard error, into a file. */
struct capture {
	FILE *file;
	int saved;
};

static void capture__start(struct capture *c)
{
	c->saved = dup(STDERR_FILENO);
	c->file = tmpfile();
	assert_true(c->saved >= 0 && c->file);
	assert_int_equal(dup2(fileno(c->file), STDERR_FILENO), STDERR_FILENO);
}

/* What was written since; the caller frees it. */
static char *capture__end(struct capture *c)
{
	char *text;
	long size;

	dup2(c->saved, STDERR_FILENO);
	close(c->saved);
	assert_int_equal(fseek(c->file, 0, SEEK_END), 0);
	size = ftell(c->file);
	rewind(c->file);
	text = calloc(1, size + 1);
	assert_non_null(text);
	assert_int_equal(fread(text, 1, size, c->file), size);
	fclose(c->file);
	return text;
}

static void say_everything(void)
{
	log_print(LOG_ERROR, "error");
	log_print(LOG_WARNING, "warning");
	log_print(LOG_INFO, "info");
	log_debug(LOG_SYMBOLS, "debug");
}

TEST(levels_differ)
{
	static const struct {
		enum log_level level;
		const char *said;
		bool debug;
	} levels[] = {
		{LOG_ERROR, "sysprof: error\n", false},
		{LOG_WARNING, "sysprof: error\nsysprof: warning\n", false},
		{LOG_INFO, "sysprof: error\nsysprof: warning\nsysprof: info\n", false},
		{LOG_DEBUG, "sysprof: error\nsysprof: warning\nsysprof: info\n", true},
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		_cleanup_free_ char *text = NULL;
		struct capture c;
		size_t length = strlen(levels[i].said);

		capture__start(&c);
		log_set_level(levels[i].level);
		say_everything();
		log_set_level(LOG_INFO);
		text = capture__end(&c);
		assert_int_equal(strncmp(text, levels[i].said, length), 0);
		assert_int_equal(text[length] != '\0', levels[i].debug);
	}
}

TEST(debug_lines_have_subsystem_and_time)
{
	_cleanup_free_ char *text = NULL;
	double first, second;
	struct capture c;
	int end = 0;

	capture__start(&c);
	log_set_level(LOG_DEBUG);
	log_debug(LOG_BPF, "one of %d", 2);
	usleep(20000);
	log_debug(LOG_EXPORT, "two");
	log_set_level(LOG_INFO);
	text = capture__end(&c);
	assert_int_equal(sscanf(text,
				"sysprof: [bpf] %lf s: one of 2\nsysprof: [export] %lf s: two\n%n",
				&first, &second, &end),
			 2);
	assert_int_equal(end, strlen(text));
	assert_true(first >= 0 && second >= first + 0.019);
}

TEST(text_of_strangers_is_escaped)
{
	_cleanup_free_ char *text = NULL;
	struct capture c;

	capture__start(&c);
	log_set_level(LOG_DEBUG);
	log_print(LOG_INFO, "%s", "a\nsysprof: [bpf] forged\x1b[2J\x7f\xff");
	log_debug(LOG_JIT, "%s", "b\r\n\x9b");
	log_set_level(LOG_INFO);
	text = capture__end(&c);
	assert_non_null(strstr(text, "sysprof: a\\x0asysprof: [bpf] forged\\x1b[2J\\x7f\\xff\n"));
	assert_non_null(strstr(text, " s: b\\x0d\\x0a\\x9b\n"));
}

static int evaluate(int *times)
{
	return ++*times;
}

TEST(nothing_is_done_where_it_is_off)
{
	_cleanup_free_ char *text = NULL;
	struct capture c;
	int times = 0;

	capture__start(&c);
	log_debug(LOG_STREAM, "%d", evaluate(&times));
	text = capture__end(&c);
	assert_int_equal(times, 0);
	assert_string_equal(text, "");
}

TEST(errno_stays)
{
	_cleanup_free_ char *text = NULL;
	struct capture c;

	capture__start(&c);
	log_set_level(LOG_DEBUG);
	errno = EBUSY;
	log_print(LOG_ERROR, "one");
	log_debug(LOG_SESSION, "two");
	assert_int_equal(errno, EBUSY);
	log_set_level(LOG_INFO);
	text = capture__end(&c);
}

static void *say_lines(void *letter)
{
	char line[400];

	memset(line, *(char *)letter, sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	for (int i = 0; i < LINES; i++)
		log_debug(LOG_UNWIND, "%s", line);
	return NULL;
}

/* Each arrives in one piece: a datagram is one write. */
TEST(lines_of_threads_stay_whole)
{
	static char letters[THREADS] = {'a', 'b', 'c', 'd'};
	int saved = dup(STDERR_FILENO), ends[2], count = 0;
	pthread_t threads[THREADS];
	char line[1024];
	ssize_t got;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
	dup2(ends[1], STDERR_FILENO);
	close(ends[1]);
	log_set_level(LOG_DEBUG);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, say_lines, &letters[i]), 0);
	while (count < THREADS * LINES && (got = recv(ends[0], line, sizeof(line), 0)) > 0) {
		const char *text = line + got - 1 - 399;

		assert_int_equal(strncmp(line, "sysprof: [unwind] ", 18), 0);
		assert_int_equal(line[got - 1], '\n');
		for (int i = 0; i < 399; i++)
			assert_int_equal(text[i], text[0]);
		count++;
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	log_set_level(LOG_INFO);
	dup2(saved, STDERR_FILENO);
	close(saved);
	close(ends[0]);
	assert_int_equal(count, THREADS * LINES);
}
