/* SPDX-License-Identifier: BSD-2-Clause */
/* The name of the program of a process whose leader may have renamed itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "live/proc/exec_name.h"

struct named {
	const char *exe, *comm, *words; /* the words end with '|' */
	const char *name;
};

static const struct named cases[] = {
	/* renamed by itself */
	{"/usr/bin/node", "MainThread", "node|app.js|", "node"},
	{"/usr/bin/node (deleted)", "MainThread", "node|", "node"},
	{"/opt/a-very-long-program-name", "main", "x|", "a-very-long-pro"},
	{"/usr/bin/tmux", "tmux: server", "tmux|", "tmux"},
	/* from the execve: the file, a link to it, a script with and without an argument */
	{"/usr/bin/dash", "dash", "dash|", "dash"},
	{"/usr/bin/dash", "sh", "sh|-c|true|", "sh"},
	{"/usr/bin/dash", "sh", "/bin/sh|", "sh"},
	{"/opt/a-very-long-program-name", "a-very-long-pro", "", "a-very-long-pro"},
	{"/usr/bin/python3.11", "app.py", "/usr/bin/python3|/srv/app.py|--port|80|", "app.py"},
	{"/usr/bin/python3.11", "app.py", "/usr/bin/python3|-E|/srv/app.py|", "app.py"},
	{"/usr/bin/python3.11", "worker", "/usr/bin/python3|/srv/app.py|worker|x|worker|",
	 "worker"},
	{"/usr/bin/python3.11", "x", "/usr/bin/python3|/srv/app.py|worker|x|", "python3.11"},
	/* a title over the command line */
	{"/usr/bin/python3.11", "gunicorn: maste", "gunicorn: master [shop]|", "gunicorn: maste"},
	/* started by its loader */
	{"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "ld-linux-x86-64",
	 "/lib64/ld-linux-x86-64.so.2|/srv/shop|--x|", "shop"},
	{"/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "MainThread",
	 "/lib64/ld-linux-x86-64.so.2|--library-path|/x/lib|--inhibit-cache|./shop|", "shop"},
	{"/lib/ld-musl-x86_64.so.1", "ld-musl-x86_64.", "/lib/ld-musl-x86_64.so.1|/bin/top|",
	 "top"},
	{"/lib/ld-musl-x86_64.so.1", "ld-musl-x86_64.", "/lib/ld-musl-x86_64.so.1|",
	 "ld-musl-x86_64."},
	/* a word that is cut off is no program */
	{"/lib/ld-musl-x86_64.so.1", "ld-musl-x86_64.", "/lib/ld-musl-x86_64.so.1|/bin/to",
	 "ld-musl-x86_64."},
	/* nothing is known of the file or of the command line */
	{"", "MainThread", "node|", "MainThread"},
	{"/usr/bin/node", "MainThread", "", "node"},
};

static void a_process_has_the_name_of_its_program(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct named *c = &cases[i];
		size_t size = strlen(c->words);
		char words[256], name[PROC_COMM_SIZE];

		memcpy(words, c->words, size + 1);
		for (char *at = words; (at = strchr(at, '|')); at++)
			*at = '\0';
		exec_name__choose(c->exe, c->comm, words, size, name);
		assert_string_equal(name, c->name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_process_has_the_name_of_its_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
