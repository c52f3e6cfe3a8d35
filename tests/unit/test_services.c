/* SPDX-License-Identifier: BSD-2-Clause */
/* Which service a process is given: by its own words, by its owner, by its neighbours; over windows, and by thousands. */
#include <sysprof/profile_builder.h>

#include "text_cases.h"
#include "agent/rules.h"
#include "agent/services.h"
#include "base/clocks.h"
#include "services/cgroup_path.h"
#include "services/process_names.h"
#include "services/service_memory.h"

#include "unit/tools.h"

#define S    1000000000ull
#define MS   1000000ull
#define ID   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD_ "12345678_1234_1234_1234_123456789abc"

/* ---- a window -------------------------------------------------------------------------------- */

static struct services *services;
static struct services_options options;
static struct label_rules *rules;
static struct service_filter *filter;
static struct profile_builder *b;
static struct agent_window window;
static uint64_t now;
static uint32_t pid;	      /* the last one, less 100 */
static unsigned int compared; /* processes whose names in a recording were as the agent's */

static void begin_window(void)
{
	profile_builder__free(b);
	b = profile_builder__new();
	assert_non_null(b);
	now += 15 * S;
	pid = 0;
}

static void set_up(void)
{
	options = (struct services_options){};
	rules = NULL;
	filter = NULL;
	services = NULL;
	b = NULL;
	now = S;
	make_scratch();
	options.root = scratch;
	begin_window();
}

static void tear_down(void)
{
	services__free(services);
	label_rules__free(rules);
	service_filter__free(filter);
	profile_builder__free(b);
	remove_scratch();
}

/* What a process is, for one call of process(). */
struct person {
	uint64_t life;
	const char *cgroup;
	enum facts_state state;
	const char *facts;   /* "key=value|key=value" */
	const char *mapped;  /* its program, by its mappings; NULL: unknown */
	const char *program; /* in its stacks; NULL: its samples are in the kernel */
	uint64_t cpu;	     /* 0: a millisecond */
	uint32_t parent;     /* its number + 100 is its pid */
	bool is_kernel, is_idle;
};

static void add_facts(struct process_id id, const struct person *who)
{
	struct profile_fact facts[PROCESS_FACTS_MAX];
	char *copy = strdup(who->facts ? who->facts : ""), *rest = copy, *pair;
	size_t count = 0;

	while ((pair = strsep(&rest, "|"))) {
		char *value = strchr(pair, '=');

		if (!value)
			continue;
		*value++ = '\0';
		facts[count].key = profile_builder__string(b, pair);
		facts[count++].value = profile_builder__string(b, value);
	}
	free(copy);
	if (who->state)
		profile_builder__process_facts(b, id, who->state, facts, count);
}

static struct stack_id stack_of(const struct person *who)
{
	struct profile_dso dso = {
		.kind = who->program ? DSO_FILE : DSO_KERNEL,
		.path = profile_builder__string(b, who->program ? who->program : "[kernel]"),
	};
	struct profile_dso libc = {
		.kind = DSO_FILE,
		.is_library = true,
		.path = profile_builder__string(b, "/lib/libc.so.6"),
	};
	struct dso_id id = profile_builder__dso(b, &dso);
	struct stack_id root = profile_builder__stack(
		b, (struct stack_id){0},
		profile_builder__location(b, id, 16, (struct process_id){0}, CATEGORY_USER));

	return profile_builder__stack(b, root,
				      profile_builder__location(b, profile_builder__dso(b, &libc),
								16, (struct process_id){0},
								CATEGORY_LIBRARY));
}

/* Its number in the window. */
static uint32_t process(struct person who)
{
	struct profile_process p = {
		.pid = ++pid + 100,
		.ppid = who.parent + 100,
		.name = profile_builder__string(b, "never-comm"),
		.start = 10,
		.cgroup = profile_builder__string(b, who.cgroup),
		.program = profile_builder__string(b, who.mapped),
		.life = who.life,
		.is_kernel = who.is_kernel,
	};
	struct process_id id = profile_builder__process(b, &p);
	struct thread_id thread = profile_builder__thread(b, id, p.pid, true, p.name, 10);
	struct profile_sample sample = {.time = 20,
					.weight = who.cpu ? who.cpu : MS,
					.stack = stack_of(&who),
					.comm = p.name};

	add_facts(id, &who);
	if (!who.is_idle)
		profile_builder__sample(b, thread, &sample);
	return id.v;
}

static void name_window(void)
{
	struct failure failure = {};
	char why[256] = "";

	if (!services && services__new(&options, &services, &failure))
		fail_msg("%s", failure.what);
	if (profile_builder__finish(b, &window.profile, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(services__name(services, &window, now), 0);
}

static const struct labeled_service *service_of(uint32_t number)
{
	assert_true(window.service_of_process[number] < window.service_count);
	return &window.services[window.service_of_process[number]];
}

static const char *label(uint32_t number, const char *name)
{
	const struct labeled_service *s = service_of(number);

	for (size_t i = 0; i < s->label_count; i++) {
		if (i)
			assert_true(strcmp(s->labels[i - 1].name, s->labels[i].name) < 0);
		if (!strcmp(s->labels[i].name, name))
			return s->labels[i].value;
	}
	return "";
}

/* "shop by env, node=host-1": its labels, in their order. */
static void put_service(FILE *out, uint32_t number)
{
	const struct labeled_service *s = service_of(number);

	fprintf(out, "%s by %s", label(number, "service_name"), label(number, "service_source"));
	for (size_t i = 0; i < s->label_count; i++)
		if (strcmp(s->labels[i].name, "service_name") &&
		    strcmp(s->labels[i].name, "service_source"))
			fprintf(out, ", %s=%s", s->labels[i].name, s->labels[i].value);
	fputs(s->excluded ? ", excluded" : "", out);
}

static struct services_stats stats(void)
{
	struct services_stats s;

	services__stats(services, &s);
	return s;
}

/* ---- windows as text ------------------------------------------------------------------------- */

#define WHOLE .state = FACTS_STATE_WHOLE

/* A path or list of facts: blanks and ends of lines are "~" and "^", and some ids have names. */
static char *spelled_out(const char *text)
{
	static const char *const ids[][2] = {{"$ID", ID}, {"$POD", POD_}};
	char *spelled = NULL;
	size_t size;
	FILE *out = open_memstream(&spelled, &size);

	for (size_t i; *text; text += i < 2 ? strlen(ids[i][0]) : 1) {
		for (i = 0; i < 2 && strncmp(text, ids[i][0], strlen(ids[i][0])); i++)
			;
		if (i < 2)
			fputs(ids[i][1], out);
		else
			fputc(*text == '~' ? ' ' : *text == '^' ? '\n' : *text, out);
	}
	fclose(out);
	return spelled;
}

static const char *value_of(const char *word, const char *key)
{
	size_t size = strlen(key);

	return strncmp(word, key, size) || word[size] != '=' ? NULL : word + size + 1;
}

static void add_word(struct person *who, const char *word)
{
	const char *value;

	if (!strcmp(word, "kernel"))
		who->is_kernel = true;
	else if (!strcmp(word, "idle"))
		who->is_idle = true;
	else if (!strcmp(word, "whole") || !strcmp(word, "first") || !strcmp(word, "refused"))
		who->state = *word == 'w'   ? FACTS_STATE_WHOLE
			     : *word == 'f' ? FACTS_STATE_FIRST
					    : FACTS_STATE_REFUSED;
	else if ((value = value_of(word, "life")))
		who->life = strtoull(value, NULL, 10);
	else if ((value = value_of(word, "ms")))
		who->cpu = strtoull(value, NULL, 10) * MS;
	else if ((value = value_of(word, "child-of")))
		who->parent = strtoul(value, NULL, 10);
	else if ((value = value_of(word, "in")))
		who->program = value;
	else if ((value = value_of(word, "maps")))
		who->mapped = value;
	else
		who->facts = word;
}

/* "CGROUP WORD..." */
static void add_process(char *line)
{
	char *words[8];
	struct person who = {};
	size_t count = 0;

	for (char *word; count < 8 && (word = strsep(&line, " "));)
		words[count++] = spelled_out(word);
	who.cgroup = strcmp(words[0], "-") ? words[0] : NULL;
	for (size_t i = 1; i < count; i++)
		add_word(&who, words[i]);
	process(who);
	while (count)
		free(words[--count]);
}

/* What a recording has of the containers: facts of the processes that were read. */
static void add_container(const struct profile *p, uint32_t number, struct containers *containers)
{
	const struct profile_process *process = &p->processes[number];
	struct profile_fact facts[PROCESS_FACTS_MAX];
	size_t count = process->fact_count;
	const struct container_names *names;
	struct cgroup_place place;

	cgroup_place__of_process(&place, profile__string(p, process->cgroup));
	names = containers__find(containers, place.container, place.pod_uid, now);
	if (!names || process->facts_state == FACTS_STATE_NONE ||
	    process->facts_state == FACTS_STATE_FIRST)
		return;
	memcpy(facts, &p->facts[process->first_fact], count * sizeof(*facts));
#define X(field, key)                                                                              \
	if (names->field)                                                                          \
		facts[count++] =                                                                   \
			(struct profile_fact){profile_builder__string(b, CONTAINER_FACT key),      \
					      profile_builder__string(b, names->field)};
	CONTAINER_NAMES(X)
#undef X
	profile_builder__process_facts(b, (struct process_id){number}, process->facts_state, facts,
				       count);
}

/*
 * In a recording the processes of this window have the same names; without facts of any process they
 * have none. How many were compared.
 */
static unsigned int compare_recording(const struct labeled_service *const *agents)
{
	const struct profile *p = profile_builder__view(b);
	struct containers *containers;
	unsigned int compared = 0;
	bool known = false;

	for (uint32_t i = 1; i < p->process_count; i++)
		known |= p->processes[i].facts_state != FACTS_STATE_NONE;
	assert_int_equal(containers__new(scratch, &containers), 0);
	for (uint32_t i = 1; i < p->process_count; i++)
		add_container(profile_builder__view(b), i, containers);
	containers__free(containers);
	assert_int_equal(name_processes(b), 0);
	p = profile_builder__view(b);
	for (uint32_t i = 1; i < p->process_count; i++) {
		if (!known)
			assert_int_equal(p->processes[i].names.service.v, 0);
		if (!known || !agents[i])
			continue;
		compared++;
#define X(field, key)                                                                              \
	if (strcmp(key, "container_id") && strcmp(key, "user"))                                    \
		assert_string_equal(profile__string(p, p->processes[i].names.field),               \
				    labeled_service__label(agents[i], key) ?: "");
		PROCESS_NAMES(X)
#undef X
	}
	return compared;
}

/* Of one window alone: with pods, as in recordings, and without the user's rules. */
static void check_recording(void)
{
	const struct labeled_service *agents[64] = {};
	struct services_options plain = {.pods = true, .root = scratch};
	struct services *other;
	struct failure failure = {};
	struct agent_window alone = {.profile = window.profile};

	assert_int_equal(services__new(&plain, &other, &failure), 0);
	assert_int_equal(services__name(other, &alone, now), 0);
	assert_true(window.profile->process_count <= 64);
	for (uint32_t i = 1; i < window.profile->process_count; i++) {
		const struct profile_thread *thread = &window.profile->threads[i];

		/* each process has one thread; the idle ones have no sample */
		if (thread->samples[SAMPLE_CPU].count)
			agents[thread->process.v] =
				&alone.services[alone.service_of_process[thread->process.v]];
	}
	compared += compare_recording(agents);
	services__free(other);
}

static void put_window(FILE *out)
{
	struct services_stats s;

	name_window();
	check_recording();
	s = stats();
	for (uint32_t i = 1; i < window.profile->process_count; i++) {
		fputs(i > 1 ? "; " : "", out);
		put_service(out, i);
	}
	if (window.service_count > 1)
		fprintf(out, "; %zu services", window.service_count);
	if (s.excluded + s.samples[SERVICE_FROM_PARENT] + s.samples[SERVICE_FROM_NONE])
		fprintf(out,
			", %zu excluded; samples by parents %" PRIu64 ", by the kernel %" PRIu64
			", by nothing %" PRIu64,
			s.excluded, s.samples[SERVICE_FROM_PARENT], s.samples[SERVICE_FROM_KERNEL],
			s.samples[SERVICE_FROM_NONE]);
	fputc('\n', out);
}

static void set_rules(const char *first, const char *second)
{
	const char *const texts[] = {first, second};
	struct failure failure = {};

	assert_int_equal(label_rules__new(texts, 2, &rules, &failure), 0);
	options.rules = rules;
}

static void exclude(const char *text)
{
	struct failure failure = {};

	assert_int_equal(service_filter__new(NULL, 0, &text, 1, &filter, &failure), 0);
	options.filter = filter;
}

/* Settings, "window" at the end of one, "others" that take pids, and processes. */
static void run_windows(FILE *out, char *input)
{
	static char node[64];

	set_up();
	for (char *line; (line = strsep(&input, "\n"));) {
		if (!strncmp(line, "rules ", 6)) {
			set_rules(line + 6, strsep(&input, "\n"));
		} else if (!strncmp(line, "exclude ", 8)) {
			exclude(line + 8);
		} else if (!strncmp(line, "node ", 5)) {
			snprintf(node, sizeof(node), "%s\n", line + 5); /* as in a file */
			options.node = node;
		} else if (!strncmp(line, "pods ", 5)) {
			char *paths = spelled_out(line + 5);

			options.pods = true;
			run("for path in %s; do mkdir -p $(dirname $path); touch $path; done",
			    paths);
			free(paths);
		} else if (!strcmp(line, "others")) {
			pid += 10;
		} else if (!strcmp(line, "window")) {
			put_window(out);
			fputs("window\n", out);
			begin_window();
		} else {
			for (char *one; (one = strsep(&line, ";"));)
				add_process(one + (*one == ' '));
		}
	}
	put_window(out);
	tear_down();
}

static const struct text_verb verbs[] = {{"windows", run_windows}, {}};

TEXT_TABLE("services", verbs, NULL, NULL);

/* ---- limits ---------------------------------------------------------------------------------- */

static void expect(uint32_t number, const char *name)
{
	assert_string_equal(label(number, "service_name"), name);
	assert_string_equal(label(number, "service_source"),
			    strcmp(name, SERVICE_OTHER) ? "exe" : "overflow");
}

TEST(names_of_programs_are_cut_between_letters)
{
	static char path[4096] = "/";
	uint32_t number;

	for (size_t i = 1; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "\xc3\xa4", 2);
	number = process((struct person){.cgroup = "/", .mapped = path});
	name_window();
	assert_int_equal(strlen(label(number, "service_name")), 254);
}

TEST(more_series_than_there_may_be)
{
	uint32_t number[20];
	struct agent_window first;

	options.most = 5;
	for (unsigned int i = 0; i < 20; i++) {
		char facts[64];

		snprintf(facts, sizeof(facts), "exe=/b/p%02u", i);
		number[i] = process((struct person){WHOLE, .facts = facts,
						    .cpu = (i == 3 ? 100 : 20 - i) * MS});
	}
	name_window();
	first = window;
	assert_int_equal(first.service_count, 5);
	expect(number[3], "p03"); /* the busiest four are themselves */
	expect(number[0], "p00");
	expect(number[2], "p02");
	expect(number[4], SERVICE_OTHER);
	expect(number[19], SERVICE_OTHER);
	assert_int_equal(stats().overflowed, 16);
	/* as many as there may be are all themselves */
	begin_window();
	for (unsigned int i = 0; i < 5; i++) {
		char facts[64];

		snprintf(facts, sizeof(facts), "exe=/b/p%02u", i);
		number[i] = process((struct person){WHOLE, .facts = facts});
	}
	name_window();
	assert_int_equal(window.service_count, 5);
	assert_int_equal(stats().overflowed, 0);
	expect(number[4], "p04");
}

TEST(thousands)
{
	uint64_t began, cost = 0;

	for (unsigned int round = 0; round < 12; round++) {
		if (round)
			begin_window();
		for (unsigned int i = 0; i < 10000; i++) {
			char group[128], facts[128];

			snprintf(group, sizeof(group), "/system.slice/docker-%08x%056x.scope",
				 i % 2000, i % 2000);
			snprintf(facts, sizeof(facts), "env:DD_SERVICE=s%u|exe=/b/x", i % 50);
			process((struct person){.life = 1 + round * 9000ull + i,
						.cgroup = group,
						WHOLE,
						.facts = facts});
		}
		began = thread_cpu_ns();
		name_window();
		cost = thread_cpu_ns() - began;
		assert_int_equal(window.service_count, 50);
	}
	print_message("10,000 processes in 2,000 control groups: %.1f ms a window\n", cost / 1e6);
	assert_true(stats().naming.lives_kept <= LIVES_KEPT);
	assert_true(stats().naming.groups_kept <= GROUPS_KEPT);
	assert_true(stats().naming.lives_evicted > 0);
	assert_true(stats().naming.sets_kept <= 2100);
}

TEST(names_that_never_come_again)
{
	for (unsigned int round = 0; round < 600; round++) {
		if (round)
			begin_window();
		for (unsigned int i = 0; i < 20; i++) {
			char group[64], facts[64];

			snprintf(group, sizeof(group), "/g%u-%u", round, i);
			snprintf(facts, sizeof(facts), "env:DD_SERVICE=n%u-%u", round, i);
			process((struct person){.life = 1 + round * 20 + i,
						.cgroup = group,
						WHOLE,
						.facts = facts});
		}
		name_window();
	}
	assert_true(stats().naming.lives_kept <= 20 * 480);
	assert_true(stats().naming.groups_kept <= GROUPS_KEPT);
	assert_true(stats().naming.sets_kept <= 20 * 480 + GROUPS_KEPT);
}

EACH_TEST_WITH(set_up, tear_down);

/* Of the tables above. */
TEST(recordings_name_processes_as_the_agent_does)
{
	assert_true(compared >= 40);
}
