/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's settings and its file: testdata/agent_settings.txt has every key, and each mistake with its line. */
#include "text_cases.h"

#include "agent/settings.h"
#include "base/cleanup.h"
#include "base/io.h"

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

static void put_rules(FILE *out, const char *key, const agent_rules *rules)
{
	for (size_t i = 0; i < rules->count; i++)
		fprintf(out, "%s %s\n", key, rules->data[i]);
}

static void put_settings(FILE *out, const struct agent_settings *s)
{
	fprintf(out, "window %llu, %u Hz, wall %u, CPU %.15g, memory %llu, series %u%s%s\n",
		(unsigned long long)s->window, s->hz, s->wall, s->cpu,
		(unsigned long long)s->memory, s->series, s->pods ? ", pods" : "",
		s->synthetic_names ? ", synthetic names" : "");
	fprintf(out, "spool %s, listen %s, node %s\n", s->spool, s->listen, s->node);
	put_rules(out, "include", &s->includes);
	put_rules(out, "exclude", &s->excludes);
	put_rules(out, "label", &s->labels);
	for (size_t i = 0; i < s->sinks.count; i++)
		fprintf(out, "sink %s, bearer-file %s, tenant %s\n", s->sinks.data[i].to,
			s->sinks.data[i].bearer_file ?: "none", s->sinks.data[i].tenant ?: "none");
}

static void read_file(FILE *out, char *input)
{
	_cleanup_(agent_settings__fini) struct agent_settings s = {};
	struct failure failure;
	char text[1024];
	int err;

	snprintf(text, sizeof(text), "%s\n", input);
	err = read_text(text, &s, &failure);
	if (err) {
		assert_int_equal(err, -EINVAL);
		fputs(strstr(failure.what, "line "), out);
	} else {
		put_settings(out, &s);
		assert_int_equal(agent_settings__check(&s, &failure), 0);
	}
}

/* Lines that libinih would cut, files without an end, bytes of all kinds. */
TEST(too_long_lines_and_missing_files_are_errors)
{
	char text[3000];
	struct agent_settings s;
	struct failure failure;

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

TEST(command_line_lists_replace_those_of_the_file)
{
	_cleanup_(agent_settings__fini) struct agent_settings s = {};
	struct failure failure = {};

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
}

static const struct text_verb verbs[] = {{"file", read_file}, {}};

TEXT_TABLE("agent_settings", verbs, NULL, NULL);
