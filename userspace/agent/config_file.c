/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The only user of libinih, which does not pass the number of a line to its handler, so lines are counted where it
 * reads them; and it cuts lines in two that do not fit into its buffer, so those are refused.
 */
#include "agent/config_file.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define SIZE_MAX_OF_FILE (1u << 20)

struct config {
	struct agent_settings *settings;
	const char *path;
	struct failure *failure;
	FILE *file;
	size_t size;
	unsigned int line;
	char section[64]; /* the one in hand */
	bool sink_open;	  /* its sink has been added */
	bool given[AGENT_SETTINGS_MAX];
	int err; /* the first */
};

__attribute__((format(printf, 2, 3))) static int refuse(struct config *c, const char *format, ...)
{
	_cleanup_free_ char *what = NULL;
	va_list arguments;

	if (c->err)
		return 0;
	va_start(arguments, format);
	if (vasprintf(&what, format, arguments) < 0)
		what = NULL;
	va_end(arguments);
	c->err = fail(c->failure, -EINVAL, "%s, line %u: %s", c->path, c->line, what ? what : "");
	return 0;
}

static void enter_section(struct config *c, const char *section)
{
	if (!strcmp(c->section, section))
		return;
	snprintf(c->section, sizeof(c->section), "%s", section);
	c->sink_open = false;
}

static int set(struct config *c, const struct setting *setting, const char *key, const char *value)
{
	struct failure why = {};
	int err = setting->set(c->settings, setting, value, &why);

	if (!err)
		return 1;
	if (err == -ENOMEM) {
		c->err = c->err ? c->err : fail(c->failure, err, "%s: out of memory", c->path);
		return 0;
	}
	return refuse(c, "%s = %s: %s", key, value, why.what);
}

static int take_of_agent(struct config *c, const char *key, const char *value)
{
	const struct setting *setting = agent_settings__find(key);
	size_t row;

	if (!setting || setting->of_sink || !strcmp(key, "sink"))
		return refuse(c, "unknown key '%s' in [agent]", key);
	row = setting - agent_settings__table();
	if (c->given[row] && !setting->is_list)
		return refuse(c, "'%s' is given twice", key);
	c->given[row] = true;
	return set(c, setting, key, value);
}

static int take_of_sink(struct config *c, const char *key, const char *value)
{
	const struct setting *setting = agent_settings__find(key);

	if (!strcmp(key, "to")) {
		if (c->sink_open)
			return refuse(c, "'%s' is given twice", key);
		c->sink_open = true;
		return set(c, agent_settings__find("sink"), key, value);
	}
	if (!setting || !setting->of_sink)
		return refuse(c, "unknown key '%s' in a section of a sink", key);
	if (!c->sink_open)
		return refuse(c, "'to = TYPE:URL' has to come before '%s'", key);
	return set(c, setting, key, value);
}

/* An ini_handler: 0 is an error. */
static int take_value(void *context, const char *section, const char *key, const char *value)
{
	struct config *c = context;

	if (c->err)
		return 0;
	enter_section(c, section);
	if (!strcmp(section, "agent"))
		return take_of_agent(c, key, value);
	if (!strncmp(section, "sink ", 5))
		return take_of_sink(c, key, value);
	return refuse(c, "unknown section [%s]: there are [agent] and [sink NAME]", section);
}

/* An ini_reader, as fgets(). */
static char *read_line(char *line, int size, void *context)
{
	struct config *c = context;

	if (c->err || !fgets(line, size, c->file))
		return NULL;
	c->line++;
	c->size += strlen(line);
	if (c->size > SIZE_MAX_OF_FILE) {
		refuse(c, "the file is larger than 1 MB");
		return NULL;
	}
	if (strlen(line) + 1 == (size_t)size && line[size - 2] != '\n') {
		refuse(c, "the line is too long");
		return NULL;
	}
	return line;
}

int config_file__read(const char *path, struct agent_settings *settings, struct failure *failure)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct config c = {.settings = settings, .path = path, .failure = failure, .file = file};
	int bad_line;

	if (!file)
		return fail(failure, -errno, "cannot read %s: %s", path, strerror(errno));
	bad_line = ini_parse_stream(read_line, &c, take_value, &c);
	if (c.err)
		return c.err;
	if (ferror(file))
		return fail(failure, -EIO, "cannot read %s: %s", path, strerror(EIO));
	if (bad_line < 0)
		return fail(failure, -ENOMEM, "cannot read %s: out of memory", path);
	if (bad_line)
		return fail(failure, -EINVAL, "%s, line %d: expected KEY = VALUE or [SECTION]",
			    path, bad_line);
	return 0;
}
