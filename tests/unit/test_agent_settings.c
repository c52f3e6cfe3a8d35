/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's settings and its file: every key, and each mistake with the number of its line. */
#include "agent/settings.h"
#include "base/io.h"
#include "base/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int read_text(const char *text, struct agent_settings *settings, struct failure *failure)
{
	int fd = memfd_create("conf", MFD_CLOEXEC), err;
	char path[64];

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, text, strlen(text)), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	agent_settings__init(settings);
	*failure = (struct failure){};
	err = config_file__read(path, settings, failure);
	close(fd);
	return err;
}

static int set(struct agent_settings *settings, const char *key, const char *value,
	       struct failure *failure)
{
	const struct setting *setting = agent_settings__find(key);

	return setting->set(settings, setting, value, failure);
}

static void settings_of_agent_and_sinks_are_read_from_file(void **state)
{
	struct agent_settings s;
	struct failure failure;

	(void)state;
	assert_int_equal(
		read_text("; what is said of it\n"
			  "[agent]\n"
			  "window = 12.5\nfrequency = 49\nwall = 20\ncpu = 1%\nmemory = 64M\n"
			  "spool = /var/lib/sysprof\nlisten = none\nnode = n1\npods = yes\n"
			  "raw-names = yes\nseries = 50\n"
			  "include = unit=nginx.*\ninclude = cgroup=/kube\nexclude = service=x\n"
			  "label = team = cgroup ~ .*team-([a-z]+)\n"
			  "[sink one]\nto = pyroscope:http://127.0.0.1:4040\n"
			  "bearer-file = /a\ntenant = t\n"
			  "[sink two]\nto = dir:/tmp/x\n",
			  &s, &failure),
		0);
	assert_int_equal(s.window, 12500000000);
	assert_int_equal(s.hz, 49);
	assert_int_equal(s.wall, 20);
	assert_true(s.cpu > 0.0099 && s.cpu < 0.0101);
	assert_int_equal(s.memory, 64u << 20);
	assert_string_equal(s.spool, "/var/lib/sysprof");
	assert_string_equal(s.listen, "none");
	assert_string_equal(s.node, "n1");
	assert_true(s.pods && !s.synthetic_names);
	assert_int_equal(s.series, 50);
	assert_int_equal(s.includes.count, 2);
	assert_string_equal(s.includes.data[1], "cgroup=/kube");
	assert_string_equal(s.excludes.data[0], "service=x");
	assert_string_equal(s.labels.data[0], "team = cgroup ~ .*team-([a-z]+)");
	assert_int_equal(s.sinks.count, 2);
	assert_string_equal(s.sinks.data[0].to, "pyroscope:http://127.0.0.1:4040");
	assert_string_equal(s.sinks.data[0].bearer_file, "/a");
	assert_string_equal(s.sinks.data[0].tenant, "t");
	assert_null(s.sinks.data[1].bearer_file);
	assert_int_equal(agent_settings__check(&s, &failure), 0);
	agent_settings__fini(&s);
}

static void mistakes_in_the_file_are_reported_with_their_line(void **state)
{
	static const struct {
		const char *text, *line, *why;
	} cases[] = {
		{"[agent]\nwindw = 3\n", "line 2", "unknown key 'windw'"},
		{"[agent]\n\nwindow = 3\n", "line 3", "10 to 60"},
		{"[agent]\nwindow = 15\nwindow = 20\n", "line 3", "twice"},
		{"window = 15\n", "line 1", "unknown section []"},
		{"[agents]\nwindow = 15\n", "line 2", "unknown section [agents]"},
		{"[agent]\nwindow\n", "line 2", "KEY = VALUE"},
		{"[agent]\ncpu = -1\n", "line 2", "share"},
		{"[agent]\nmemory = 1M\n", "line 2", "32M"},
		{"[agent]\nfrequency = 0\n", "line 2", "from 1 to 1000"},
		{"[agent]\npods = true\n", "line 2", "yes or no"},
		{"[agent]\nwall = 4\n", "line 2", "from 5 to 20"},
		{"[agent]\nwall = 21\n", "line 2", "from 5 to 20"},
		{"[agent]\nwall = yes\n", "line 2", "from 5 to 20"},
		{"[agent]\nwall = 10\nwall = 0\n", "line 3", "twice"},
		{"[agent]\nspool = here\n", "line 2", "path from the root"},
		{"[agent]\nsink = dir:/x\n", "line 2", "unknown key 'sink'"},
		{"[sink a]\nbearer-file = /x\nto = dir:/x\n", "line 2", "has to come before"},
		{"[sink a]\nto = ftp:/x\n", "line 2", "pyroscope:URL"},
		{"[sink a]\nto = dir:\n", "line 2", "TYPE:URL"},
		{"[sink a]\nto = dir:/x\nwindow = 15\n", "line 3", "unknown key 'window'"},
		{"[sink a]\nto = dir:/x\nto = dir:/y\n", "line 3", "twice"},
	};
	struct agent_settings s;
	struct failure failure;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(read_text(cases[i].text, &s, &failure), -EINVAL);
		if (!strstr(failure.what, cases[i].line) || !strstr(failure.what, cases[i].why))
			fail_msg("case %zu: %s", i, failure.what);
		agent_settings__fini(&s);
	}
}

/* Lines that libinih would cut, files without an end, bytes of all kinds. */
static void too_long_lines_and_missing_files_are_errors(void **state)
{
	char text[3000];
	struct agent_settings s;
	struct failure failure;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "[agent]\nnode = ", 15);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(read_text(text, &s, &failure), -EINVAL);
	assert_non_null(strstr(failure.what, "line 2: the line is too long"));
	agent_settings__fini(&s);
	for (unsigned int seed = 0; seed < 200; seed++) {
		srandom(seed);
		for (size_t i = 0; i < sizeof(text) - 1; i++)
			text[i] = "[]=; \nagent\tsink\xff\x01window"[random() % 24];
		(void)read_text(text, &s, &failure);
		agent_settings__fini(&s);
	}
	agent_settings__init(&s);
	assert_int_equal(config_file__read("/nonexistent", &s, &failure), -ENOENT);
	assert_true(config_file__read("/proc/self", &s, &failure) < 0);
	agent_settings__fini(&s);
}

static void command_line_lists_replace_those_of_the_file(void **state)
{
	struct agent_settings s;
	struct failure failure = {};

	(void)state;
	for (const struct setting *row = agent_settings__table(); row->key; row++) {
		assert_ptr_equal(agent_settings__find(row->key), row);
		assert_true(row->help && strlen(row->help) < 100 && row->set);
	}
	/* a list of the command line takes the place of the file's */
	assert_int_equal(
		read_text("[agent]\nlabel = a\nlabel = b\n[sink x]\nto = dir:/x\n", &s, &failure),
		0);
	agent_settings__clear(&s, agent_settings__find("label"));
	agent_settings__clear(&s, agent_settings__find("sink"));
	agent_settings__clear(&s, agent_settings__find("window"));
	assert_int_equal(s.labels.count + s.sinks.count, 0);
	assert_int_equal(set(&s, "tenant", "t", &failure), -EINVAL);
	assert_int_equal(set(&s, "sink", "dir:/y", &failure), 0);
	assert_int_equal(set(&s, "tenant", "t", &failure), 0);
	assert_int_equal(agent_settings__check(&s, &failure), 0);
	assert_int_equal(set(&s, "sink", "dir:/y", &failure), 0);
	assert_int_equal(agent_settings__check(&s, &failure), -EINVAL);
	agent_settings__fini(&s);
}

static void overflowing_sizes_and_double_units_are_errors(void **state)
{
	uint64_t bytes = 7;

	(void)state;
	assert_int_equal(parse_size("100M", &bytes), 0);
	assert_int_equal(bytes, 100u << 20);
	assert_int_equal(parse_size("0", &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(parse_size("3K", &bytes), 0);
	assert_int_equal(bytes, 3072);
	assert_int_equal(parse_size("16777215G", &bytes), 0);
	assert_true(parse_size("18446744073709551615G", &bytes) < 0);
	assert_true(parse_size("M", &bytes) < 0);
	assert_true(parse_size("", &bytes) < 0);
	assert_true(parse_size("-1M", &bytes) < 0);
	assert_true(parse_size("1MM", &bytes) < 0);
	assert_true(parse_size("99999999999999999999999999999999999", &bytes) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_of_agent_and_sinks_are_read_from_file),
		cmocka_unit_test(mistakes_in_the_file_are_reported_with_their_line),
		cmocka_unit_test(too_long_lines_and_missing_files_are_errors),
		cmocka_unit_test(command_line_lists_replace_those_of_the_file),
		cmocka_unit_test(overflowing_sizes_and_double_units_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
