/* SPDX-License-Identifier: BSD-2-Clause */
/* The text for Prometheus: judged by promtool, and by what promtool does not see. */
#include "unit.h"
#include "agent/metrics.h"
#include "base/cleanup.h"
#include "base/utf8.h"

static struct metrics_sink sinks[METRICS_SINKS_MAX + 4];

/* Every figure another one. */
static struct agent_metrics full(size_t sink_count)
{
	struct agent_metrics m = {
		.version = "0.1.0",
		.kernel = "6.18.0-test",
		.started = 1700000000ull * 1000000000,
		.now = 1700000100ull * 1000000000,
		.healthy = true,
		.figures = {[FIGURE_DUE] = 1000, [FIGURE_CPU] = 12345678901},
		.hz = 97,
		.configured_hz = 97,
		.window_length = 15000000000,
		.services = 50,
		.cpu_limit = 0.005,
		.memory_limit = 100 << 20,
		.usage = {.cpu = 0.0031, .memory = 77 << 20, .threads = 4},
		.sinks = sinks,
		.sink_count = sink_count,
	};

	for (int i = 0; i < BOOK_COUNT; i++)
		m.figures[FIGURE_BOOKS + i] = 100 + (uint64_t)i;
	for (int i = 0; i < STACK_END_COUNT; i++)
		m.figures[FIGURE_ENDS + i] = 200 + (uint64_t)i;
	for (size_t i = 0; i < sink_count; i++) {
		struct sink_stats *s = &sinks[i].stats;

		*s = (struct sink_stats){.windows_put = 40,
					 .windows_sent = 30,
					 .series_invalid = 2,
					 .samples_invalid = 170,
					 .push_ns = 1500000000,
					 .cpu_ns_sent = 123456789012345,
					 .requests = 31,
					 .spool_windows = 3,
					 .spool_bytes = 4096,
					 .spool_oldest = 1700000055ull * 1000000000};
		for (int k = 0; k < SINK_VERDICT_COUNT; k++)
			s->windows_dropped[k] = 300 + (uint64_t)k;
		snprintf(s->last_error, sizeof(s->last_error), "secret token 12345");
	}
	return m;
}

/* promtool's opinion of the text: its exit status; what it says, if anything, is shown. */
static int run_promtool(const char *text, size_t size)
{
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[0], 0);
		close(ends[0]), close(ends[1]);
		execlp("promtool", "promtool", "check", "metrics", NULL);
		_exit(127);
	}
	close(ends[0]);
	assert_int_equal(write(ends[1], text, size), size);
	close(ends[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int compare_lines(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each series once, each name with HELP and TYPE before its first series, all of one name in one piece. */
static void check_structure(const char *text)
{
	_cleanup_free_ char *copy = strdup(text);
	char *lines[4096], name[256] = "", help[256] = "", type[256] = "";
	size_t count = 0;

	assert_non_null(copy);
	for (char *line = copy, *end; (end = strchr(line, '\n')); line = end + 1) {
		size_t length;

		*end = '\0';
		if (sscanf(line, "# HELP %255s", help) == 1)
			continue;
		if (sscanf(line, "# TYPE %255s", type) == 1) {
			assert_string_equal(help, type);
			continue;
		}
		assert_int_equal(strncmp(line, "sysprof_", 8), 0);
		length = strcspn(line, "{ ");
		snprintf(name, sizeof(name), "%.*s", (int)length, line);
		if (strncmp(name, type, strlen(type)))
			fail_msg("%s is not below its TYPE, that is %s", name, type);
		*strrchr(line, ' ') = '\0'; /* the series without its value */
		assert_true(count < 4096);
		lines[count++] = line;
	}
	assert_true(count > 60);
	qsort(lines, count, sizeof(*lines), compare_lines);
	for (size_t i = 1; i < count; i++)
		if (!strcmp(lines[i - 1], lines[i]))
			fail_msg("twice: %s", lines[i]);
}

static char *text_of(const struct agent_metrics *m)
{
	char *text = NULL;
	size_t size = 0;

	assert_int_equal(metrics__text(m, &text, &size), 0);
	assert_int_equal(strlen(text), size);
	assert_int_equal(text[size - 1], '\n');
	for (size_t at = 0, length; at < size; at += length) {
		length = utf8_sequence(text + at, size - at);
		assert_true(length);
	}
	return text;
}

static void check(const struct agent_metrics *m)
{
	_cleanup_free_ char *text = text_of(m);

	check_structure(text);
	assert_int_equal(run_promtool(text, strlen(text)), 0);
}

TEST(text_of_full_and_empty_metrics_passes_promtool)
{
	struct agent_metrics m = full(3);

	sinks[0].name = "pyroscope:http://a:4040";
	sinks[1].name = "otlp:http://b:4318";
	sinks[2].name = "dir:/var/lib/windows";
	check(&m);
	m = full(0);
	check(&m);
	m = (struct agent_metrics){};
	check(&m);
}

/* The judge is awake: what is wrong it finds. */
TEST(promtool_rejects_faulty_text)
{
	static const char NO_TOTAL[] = "# HELP a b\n# TYPE a counter\na 1\n";
	static const char NO_NEWLINE[] = "# HELP a b\n# TYPE a gauge\na 1";

	assert_int_equal(run_promtool(NO_TOTAL, sizeof(NO_TOTAL) - 1), 3);
	assert_int_equal(run_promtool(NO_NEWLINE, sizeof(NO_NEWLINE) - 1), 1);
}

TEST(hostile_sink_names_cannot_forge_series)
{
	static char huge[100000], invalid[] = "x\xff\xc0\x80";
	static const char *const NAMES[] = {
		"\"} 1\nsysprof_due_total 666\n",
		"a\\",
		"a\\\"",
		"\r\n\t\x01\x7f",
		"",
		NULL,
		invalid,
		huge,
		"same",
		"same",
		"same",
		"same-2",
		"\xf0\x9f\x94\xa5",
		"{}=,",
	};
	const size_t count = sizeof(NAMES) / sizeof(*NAMES);
	struct agent_metrics m = full(count);
	_cleanup_free_ char *text = NULL;

	memset(huge, 'h', sizeof(huge) - 1);
	for (size_t i = 0; i < count; i++)
		sinks[i].name = NAMES[i];
	m.version = "1\"\n2";
	m.kernel = "\\\"\n\xff";
	check(&m);
	text = text_of(&m);
	assert_true(strlen(text) < 200000);
	assert_null(strstr(text, "\nsysprof_due_total"));
	assert_null(strstr(text, "secret"));
}

TEST(sinks_beyond_the_limit_are_left_out)
{
	struct agent_metrics few = full(METRICS_SINKS_MAX), many = full(METRICS_SINKS_MAX + 4);
	_cleanup_free_ char *a = NULL, *b = NULL;

	for (size_t i = 0; i < METRICS_SINKS_MAX + 4; i++)
		sinks[i].name = "sink";
	check(&many);
	a = text_of(&few);
	b = text_of(&many);
	assert_string_equal(a, b);
}

/* The same series whatever the figures are: nothing that runs on the machine becomes a label. */
TEST(series_do_not_depend_on_the_figures)
{
	struct agent_metrics small = {.sinks = sinks, .sink_count = 2}, large = full(2);
	_cleanup_free_ char *a = NULL, *b = NULL;
	const char *x, *y;

	sinks[0].name = "one";
	sinks[1].name = "two";
	large.services = large.services_other = UINT64_MAX;
	large.version = large.kernel = NULL;
	a = text_of(&small);
	b = text_of(&large);
	for (x = a, y = b; *x && *y; x = strchr(x, '\n') + 1, y = strchr(y, '\n') + 1) {
		size_t length = *x == '#' ? strcspn(x, "\n") : strcspn(x, "\n") - strcspn(x, " ");

		if (*x == '#')
			assert_memory_equal(x, y, length);
		else
			assert_memory_equal(x, y, strcspn(x, " "));
	}
	assert_true(!*x && !*y);
}

static double value_of(const char *text, const char *series)
{
	char line[256];
	const char *found;

	snprintf(line, sizeof(line), "\n%s", series);
	found = strstr(text, line);
	if (!found)
		fail_msg("no %s", series);
	return strtod(found + strlen(line), NULL);
}

TEST(figures_are_written_to_their_series)
{
	struct agent_metrics m = full(1);
	_cleanup_free_ char *text = NULL;
	uint64_t sum = 0;

	sinks[0].name = "s";
	for (int i = 0; i < BOOK_COUNT; i++)
		sum += m.figures[FIGURE_BOOKS + i];
	m.figures[FIGURE_DUE] = sum + 2;
	m.figures[FIGURE_UNEXPLAINED] = 2;
	text = text_of(&m);
	assert_true(value_of(text, "sysprof_ticks_due_total ") == (double)sum + 2);
	assert_true(value_of(text, "sysprof_ticks_total{state=\"sent\"} ") == 100);
	assert_true(value_of(text, "sysprof_ticks_total{state=\"idle\"} ") == 101);
	assert_true(value_of(text, "sysprof_ticks_total{state=\"filtered\"} ") == 102);
	assert_true(value_of(text, "sysprof_ticks_total{state=\"lost\",reason=\"ring-full\"} ") ==
		    103);
	assert_true(
		value_of(text, "sysprof_ticks_total{state=\"idle\",reason=\"idle-not-run\"} ") ==
		107);
	assert_true(value_of(text, "sysprof_ticks_unexplained ") == 2);
	assert_true(value_of(text, "sysprof_windows_total{sink=\"s\",result=\"sent\"} ") == 30);
	assert_true(value_of(text, "sysprof_windows_total{sink=\"s\",result=\"rejected\"} ") ==
		    304);
	assert_true(value_of(text, "sysprof_series_invalid_total{sink=\"s\"} ") == 2);
	assert_true(value_of(text, "sysprof_samples_invalid_total{sink=\"s\"} ") == 170);
	assert_true(value_of(text, "sysprof_push_seconds_sum{sink=\"s\"} ") == 1.5);
	/* to the nanosecond: it is compared with what backends answer */
	assert_non_null(
		strstr(text, "sysprof_cpu_sent_seconds_total{sink=\"s\"} 123456.789012345\n"));
	assert_true(value_of(text, "sysprof_push_seconds_count{sink=\"s\"} ") == 31);
	assert_true(value_of(text, "sysprof_spool_oldest_seconds{sink=\"s\"} ") == 45);
	assert_true(value_of(text, "sysprof_agent_cpu_limit_ratio ") == 0.005);
}

TEST(infinite_and_undefined_ratios_are_written_as_zero)
{
	struct agent_metrics m = full(0);
	_cleanup_free_ char *text = NULL;

	m.usage.cpu = 0.0 / 0.0;
	m.cpu_limit = 1 / 0.0;
	text = text_of(&m);
	assert_true(value_of(text, "sysprof_agent_cpu_ratio ") == 0);
	assert_true(value_of(text, "sysprof_agent_cpu_limit_ratio ") == 0);
	assert_null(strstr(text, "nan"));
}
