/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/settings.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/sink_format.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/parse.h"

#define WINDOW_DEFAULT (15 * NS_PER_SECOND)
#define WINDOW_MIN     (10 * NS_PER_SECOND)
#define WINDOW_MAX     (60 * NS_PER_SECOND)
#define HZ_DEFAULT     97 /* a prime: in step with nothing that comes every so often */
#define HZ_MAX	       1000
#define WALL_MIN       5
#define WALL_MAX       20
#define CPU_DEFAULT    0.005
#define MEMORY_DEFAULT (UINT64_C(100) << 20)
#define MEMORY_MIN     (UINT64_C(32) << 20)
#define SERIES_DEFAULT 1000
#define SERIES_MAX     10000

/* ---- values ---------------------------------------------------------------------------------- */

static int expected(struct failure *failure, const char *what)
{
	return fail(failure, -EINVAL, "expected %s", what);
}

#define FIELD(s, setting, type) ((type *)((char *)(s) + (setting)->field))

static int copy_text(char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int set_text(struct agent_settings *s, const struct setting *setting, const char *value,
		    struct failure *failure)
{
	(void)failure;
	return copy_text(FIELD(s, setting, char *), value);
}

static int set_number(struct agent_settings *s, const struct setting *setting, const char *value,
		      struct failure *failure)
{
	uint64_t parsed;

	if (parse_u64(value, 1, setting->max, &parsed))
		return fail(failure, -EINVAL, "expected a whole number from 1 to %u", setting->max);
	*FIELD(s, setting, unsigned int) = (unsigned int)parsed;
	return 0;
}

static int set_bool(struct agent_settings *s, const struct setting *setting, const char *value,
		    struct failure *failure)
{
	if (strcmp(value, "yes") && strcmp(value, "no"))
		return expected(failure, "yes or no");
	*FIELD(s, setting, bool) = !strcmp(value, "yes") != setting->negated;
	return 0;
}

static int set_of_sink(struct agent_settings *s, const struct setting *setting, const char *value,
		       struct failure *failure)
{
	if (!s->sinks.count)
		return fail(failure, -EINVAL, "a sink has to come before it");
	return copy_text(FIELD(&s->sinks.data[s->sinks.count - 1], setting, char *), value);
}

static int add_rule(struct agent_settings *s, const struct setting *setting, const char *value,
		    struct failure *failure)
{
	char *rule = strdup(value);
	int err = rule ? vec_push(FIELD(s, setting, agent_rules), rule) : -ENOMEM;

	(void)failure;
	if (err)
		free(rule);
	return err;
}

/* ---- the settings ---------------------------------------------------------------------------- */

static int add_sink(struct agent_settings *s, const struct setting *setting, const char *to,
		    struct failure *failure)
{
	const char *colon = strchr(to, ':');
	struct sink_settings sink = {};
	char name[32];
	int err;

	(void)setting;
	if (!colon || !colon[1] || (size_t)(colon - to) >= sizeof(name))
		return expected(failure, "TYPE:URL, as in pyroscope:http://127.0.0.1:4040");
	memcpy(name, to, colon - to);
	name[colon - to] = '\0';
	if (!sink_format__find(name))
		return expected(failure, "pyroscope:URL, parca:URL, otlp:URL or dir:PATH");
	err = copy_text(&sink.to, to) ?: vec_push(&s->sinks, sink);
	if (err)
		free(sink.to);
	return err;
}

static int set_window(struct agent_settings *s, const struct setting *setting, const char *value,
		      struct failure *failure)
{
	uint64_t window;

	(void)setting;
	if (parse_seconds(value, &window) || window < WINDOW_MIN || window > WINDOW_MAX)
		return expected(failure, "a number of seconds from 10 to 60");
	s->window = window;
	return 0;
}

static int set_cpu(struct agent_settings *s, const struct setting *setting, const char *value,
		   struct failure *failure)
{
	(void)setting;
	if (parse_share(value, &s->cpu))
		return expected(failure, "a share of one CPU, as in 0.5%, or 0 for no limit");
	return 0;
}

static int set_wall(struct agent_settings *s, const struct setting *setting, const char *value,
		    struct failure *failure)
{
	uint64_t hz;

	(void)setting;
	if (parse_u64(value, 0, WALL_MAX, &hz) || (hz && hz < WALL_MIN))
		return expected(failure, "a whole number from 5 to 20, or 0 for none");
	s->wall = (unsigned int)hz;
	return 0;
}

static int set_memory(struct agent_settings *s, const struct setting *setting, const char *value,
		      struct failure *failure)
{
	uint64_t bytes;

	(void)setting;
	if (parse_size(value, &bytes) || (bytes && bytes < MEMORY_MIN))
		return expected(failure, "a size of 32M or more, as in 100M, or 0 for no limit");
	s->memory = bytes;
	return 0;
}

static int set_spool(struct agent_settings *s, const struct setting *setting, const char *value,
		     struct failure *failure)
{
	return *value == '/' ? set_text(s, setting, value, failure)
			     : expected(failure, "a directory's path from the root");
}

static int set_listen(struct agent_settings *s, const struct setting *setting, const char *value,
		      struct failure *failure)
{
	return strchr(value, ':') || !strcmp(value, "none")
		       ? set_text(s, setting, value, failure)
		       : expected(failure, "ADDRESS:PORT, unix:PATH or none");
}

static int set_node(struct agent_settings *s, const struct setting *setting, const char *value,
		    struct failure *failure)
{
	return *value ? set_text(s, setting, value, failure) : expected(failure, "a name");
}

#undef FIELD
#define FIELD(name) .field = offsetof(struct agent_settings, name)
#define OF_SINK(name)                                                                              \
	.of_sink = true, .set = set_of_sink, .field = offsetof(struct sink_settings, name)

/* clang-format off */
static const struct setting table[] = {
	{.key = "sink", .argument = "TYPE:URL", .is_list = true, .set = add_sink,
	 .help = "where profiles go: pyroscope:URL, parca:URL, otlp:URL or dir:PATH; several are allowed"},
	{.key = "bearer-file", .argument = "FILE", OF_SINK(bearer_file),
	 .help = "bearer token of the sink before it; read for each request"},
	{.key = "basic-file", .argument = "FILE", OF_SINK(basic_file),
	 .help = "USER:PASSWORD for it"},
	{.key = "header-file", .argument = "FILE", OF_SINK(header_file),
	 .help = "headers, one per line, as in X-Api-Key: KEY"},
	{.key = "ca-file", .argument = "FILE", OF_SINK(ca_file),
	 .help = "CA certificates for it"},
	{.key = "tenant", .argument = "NAME", OF_SINK(tenant),
	 .help = "X-Scope-OrgID"},
	{.key = "window", .argument = "SECONDS", .set = set_window,
	 .help = "length of a window, 10 to 60, default 15"},
	{.key = "frequency", .flag = 'F', .argument = "HZ", .set = set_number, FIELD(hz), .max = HZ_MAX,
	 .help = "samples per second and CPU, default 97"},
	{.key = "wall", .argument = "HZ", .set = set_wall,
	 .help = "a series `wall` of each service: what threads wait for, 5 to 20 visits a second; default 0: none"},
	{.key = "cpu", .argument = "SHARE", .set = set_cpu,
	 .help = "CPU limit of the agent, of one CPU, default 0.5%; 0: none"},
	{.key = "memory", .argument = "SIZE", .set = set_memory,
	 .help = "memory limit of the agent, default 100M; 0: none"},
	{.key = "spool", .argument = "DIR", .set = set_spool, FIELD(spool),
	 .help = "keeps up to 64 MiB and 50 min of windows per sink; default: four in memory"},
	{.key = "listen", .argument = "ADDRESS", .set = set_listen, FIELD(listen),
	 .help = "serve /metrics and /healthz at ADDRESS:PORT, unix:PATH or none; default 127.0.0.1:4041"},
	{.key = "include", .argument = "RULE", .is_list = true, .set = add_rule, FIELD(includes),
	 .help = "only cgroup=PATTERN, unit=PATTERN or service=PATTERN; several are allowed"},
	{.key = "exclude", .argument = "RULE", .is_list = true, .set = add_rule, FIELD(excludes),
	 .help = "all but these"},
	{.key = "label", .argument = "RULE", .is_list = true, .set = add_rule, FIELD(labels),
	 .help = "a label: NAME = SOURCE ~ REGEX; SOURCE is cgroup, exe or env:VARIABLE"},
	{.key = "node", .argument = "NAME", .set = set_node, FIELD(node),
	 .help = "the label `node`, default: the host name"},
	{.key = "pods", .set = set_bool, FIELD(pods), .help = "the label `pod`: a series for each pod"},
	{.key = "raw-names", .set = set_bool, FIELD(synthetic_names), .negated = true,
	 .help = "send unnamed code by build-id and address, for the backend to symbolize"},
	{.key = "series", .argument = "N", .set = set_number, FIELD(series), .max = SERIES_MAX,
	 .help = "series per window at most, default 1000; the others become service _other"},
	{},
};
/* clang-format on */
_Static_assert(sizeof(table) / sizeof(table[0]) <= AGENT_SETTINGS_MAX, "too many settings");

const struct setting *agent_settings__table(void)
{
	return table;
}

const struct setting *agent_settings__find(const char *key)
{
	for (const struct setting *s = table; s->key; s++)
		if (!strcmp(s->key, key))
			return s;
	return NULL;
}

void agent_settings__init(struct agent_settings *s)
{
	*s = (struct agent_settings){
		.window = WINDOW_DEFAULT,
		.hz = HZ_DEFAULT,
		.cpu = CPU_DEFAULT,
		.memory = MEMORY_DEFAULT,
		.synthetic_names = true,
		.series = SERIES_DEFAULT,
	};
}

static void sink_settings__fini(struct sink_settings *sink)
{
	free(sink->to);
	free(sink->bearer_file);
	free(sink->basic_file);
	free(sink->header_file);
	free(sink->ca_file);
	free(sink->tenant);
}

static void free_rules(agent_rules *rules)
{
	vec_free_with(rules, rule, free(*rule));
}

static void free_sinks(struct agent_settings *s)
{
	vec_free_with(&s->sinks, sink, sink_settings__fini(sink));
}

void agent_settings__clear(struct agent_settings *s, const struct setting *setting)
{
	if (setting->set == add_sink)
		free_sinks(s);
	else
		free_rules((agent_rules *)((char *)s + setting->field));
}

int agent_settings__check(const struct agent_settings *s, struct failure *failure)
{
	for (size_t i = 0; i < s->sinks.count; i++) {
		const struct sink_settings *sink = &s->sinks.data[i];

		if (sink->bearer_file && sink->basic_file)
			return fail(failure, -EINVAL,
				    "sink %s: bearer-file and basic-file are mutually exclusive",
				    sink->to);
		for (size_t k = 0; k < i; k++)
			if (!strcmp(s->sinks.data[k].to, sink->to))
				return fail(failure, -EINVAL, "sink %s is given twice", sink->to);
	}
	return 0;
}

void agent_settings__fini(struct agent_settings *s)
{
	free_sinks(s);
	free_rules(&s->includes);
	free_rules(&s->excludes);
	free_rules(&s->labels);
	free(s->spool);
	free(s->listen);
	free(s->node);
	*s = (struct agent_settings){};
}

/* ---- the file -------------------------------------------------------------------------------- */

/*
 * The only user of libinih, which does not report line numbers, so lines are counted when read; it
 * also splits lines that do not fit into its buffer, so those are refused.
 */

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
