/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of /proc, sound and damaged, in memory of exactly their size: testdata/proc_texts.txt. */
#include "text_cases.h"

#include "base/cleanup.h"
#include "base/proc_task.h"
#include "live/capture/cpu_idle.h"
#include "live/proc/environment.h"
#include "live/proc/fact_reader.h"
#include "live/proc/proc_maps.h"
#include "live/proc/process_facts.h"

/* For ASan to guard. */
static char *exactly(const char *text, size_t size)
{
	return memcpy(malloc(size ?: 1), text, size);
}

#define REST                                                                                       \
	" S 12 34 34 0 -1 4194560 100 0 0 0 70 30 0 0 20 0 3 0 987654 1000 2 18446744073709551615"

/* The name of a task in a whole line. */
static void parse_name(FILE *out, char *name)
{
	struct proc_stat stat;
	char text[512];

	snprintf(text, sizeof(text), "77 (%s)%s\n", name, REST);
	assert_int_equal(proc_parse_stat(text, strlen(text), &stat), 0);
	fprintf(out, "%s, %c, parent %d, flags %u, %" PRIu64 " ticks, %d threads, since %" PRIu64,
		strcmp(stat.comm, name) ? stat.comm : "that name", stat.state, (int)stat.ppid,
		(unsigned int)stat.flags, (uint64_t)stat.cpu_ticks, (int)stat.threads,
		(uint64_t)stat.start_ticks);
}

static void parse_stat(FILE *out, char *text)
{
	struct proc_stat stat;

	text_put_error(out, proc_parse_stat(text, text_size, &stat));
}

TEST(a_stat_line_that_is_cut_before_its_start_time_is_refused)
{
	static const char text[] = "77 (cat)" REST "\n";
	struct proc_stat stat;

	for (size_t size = 0; size < strlen(text); size++) {
		_cleanup_free_ char *cut = exactly(text, size);
		int err = proc_parse_stat(cut, size, &stat);

		assert_true(err == 0 || err == -EBADMSG);
		assert_true(err || text + size > strstr(text, "987654"));
	}
}

static void parse_mapping(FILE *out, char *line)
{
	struct proc_mapping m;
	int err = proc_parse_mapping(line, text_size, &m);

	if (err) {
		text_put_error(out, err);
		return;
	}
	fprintf(out, "%" PRIx64 "-%" PRIx64 " %s%s%s %s +%" PRIx64 " %x:%x %" PRIu64 " %s%s",
		m.start, m.end, m.protection & PROT_READ ? "r" : "",
		m.protection & PROT_WRITE ? "w" : "", m.protection & PROT_EXEC ? "x" : "",
		m.map_flags == MAP_PRIVATE  ? "private"
		: m.map_flags == MAP_SHARED ? "shared"
					    : "strange",
		m.offset, m.major, m.minor, (uint64_t)m.inode, m.path,
		m.newline ? ", with a newline" : "");
	assert_int_equal(m.path_size, strlen(m.path));
}

static void parse_cgroup(FILE *out, char *input)
{
	_cleanup_free_ char *text = exactly(input, text_size);
	size_t size = 0;
	const char *path = proc_parse_cgroup(text, text_size, &size);

	fprintf(out, "%.*s", (int)(path ? size : 4), path ?: "none");
}

/* "N" or "N all", of this text. */
static void parse_cpu(FILE *out, char *input)
{
	static const char text[] = "cpu  9 9 9 999 9 0 0\n"
				   "cpu0 1 2 3 400 5 6 7 8 9 10\n"
				   "cpu1 1 2 3 0 0 0\n"
				   "cpu11 1 2 3 77 0 0\n"
				   "cpu12 1 2\n"
				   "intr 5\n";
	const char *from = strstr(input, "nothing") ? NULL : strstr(input, "empty") ? "" : text;
	uint64_t tick = 1000000000u / sysconf(_SC_CLK_TCK), idle;
	__u64 times[CPU_TIME_COUNT];
	uint32_t cpu = (uint32_t)atoi(input);

	idle = cpu_idle_parse(from, cpu);
	if (idle == UINT64_MAX)
		fputs("unknown", out);
	else
		fprintf(out, "idle %" PRIu64, idle / tick);
	if (cpu_times_parse(from, cpu, times))
		fprintf(out, ", irq %llu, softirq %llu, steal %llu, guest %llu",
			times[CPU_TIME_IRQ] / tick, times[CPU_TIME_SOFTIRQ] / tick,
			times[CPU_TIME_STEAL] / tick, times[CPU_TIME_GUEST] / tick);
}

/* "NAMES TEXT": "," between them stands for a NUL. */
static void pick(FILE *out, char *input)
{
	static char space[1024];
	struct fact_text facts = {.text = space, .room = sizeof(space), .most = 64};
	char *end = input + text_size, *names = strsep(&input, " "), *copy;
	size_t size = (size_t)(end - input), names_size = strlen(names);
	const char *at = space;

	for (char *c = names; c < end; c++)
		*c = *c == ',' ? '\0' : *c;
	copy = exactly(input, size);
	environment__pick(copy, size, *names == '-' ? NULL : names, *names == '-' ? 0 : names_size,
			  &facts);
	free(copy);
	for (unsigned int i = 0; i < facts.count; i++) {
		fprintf(out, "%s%s", i ? " " : "", at);
		at += strlen(at) + 1;
		fprintf(out, "=%s", at);
		at += strlen(at) + 1;
	}
	assert_ptr_equal(at, space + facts.size);
}

static void check_name(FILE *out, char *name)
{
	fputs(environment_name_is_valid(name) ? "valid" : "invalid", out);
}

static const struct text_verb verbs[] = {{"name", parse_name},	     {"stat", parse_stat},
					 {"mapping", parse_mapping}, {"cgroup", parse_cgroup},
					 {"cpu", parse_cpu},	     {"environment", pick},
					 {"variable", check_name},   {}};

TEXT_TABLE("proc_texts", verbs, NULL, NULL);
