/* SPDX-License-Identifier: BSD-2-Clause */
/* Which service a process is given: by its own words, by its owner, by its neighbours; over windows, and by thousands. */
#include <sysprof/profile_builder.h>

#include "unit.h"
#include "agent/services.h"
#include "base/clocks.h"

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
static uint32_t pid; /* the last one, less 100 */

static void begin_window(void)
{
	profile_builder__free(b);
	b = profile_builder__new();
	assert_non_null(b);
	now += 15 * S;
	pid = 0;
}

static int set_up(void **state)
{
	(void)state;
	options = (struct services_options){};
	rules = NULL;
	filter = NULL;
	services = NULL;
	b = NULL;
	now = S;
	if (make_scratch())
		return -1;
	options.root = scratch;
	begin_window();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	services__free(services);
	label_rules__free(rules);
	service_filter__free(filter);
	profile_builder__free(b);
	return remove_scratch();
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

static const struct agent_service *service_of(uint32_t number)
{
	assert_true(window.service_of_process[number] < window.service_count);
	return &window.services[window.service_of_process[number]];
}

static const char *label(uint32_t number, const char *name)
{
	const struct agent_service *s = service_of(number);

	for (size_t i = 0; i < s->label_count; i++) {
		if (i)
			assert_true(strcmp(s->labels[i - 1].name, s->labels[i].name) < 0);
		if (!strcmp(s->labels[i].name, name))
			return s->labels[i].value;
	}
	return "";
}

static void expect(uint32_t number, const char *name, const char *source)
{
	if (strcmp(label(number, "service_name"), name) ||
	    strcmp(label(number, "service_source"), source))
		fail_msg("it is %s by %s, not %s by %s", label(number, "service_name"),
			 label(number, "service_source"), name, source);
}

static struct services_stats stats(void)
{
	struct services_stats s;

	services__stats(services, &s);
	return s;
}

/* ---- one process ----------------------------------------------------------------------------- */

#define WHOLE .state = FACTS_STATE_WHOLE

TEST(what_decides)
{
	static const struct {
		const char *cgroup, *facts, *name, *source;
	} cases[] = {
		/* each step stands above those behind it */
		{"/system.slice/a.service",
		 "otel:service.name=ctx|env:DD_SERVICE=dd|env:OTEL_SERVICE_NAME=otel|"
		 "env:OTEL_RESOURCE_ATTRIBUTES=service.name=res|script=s.py|exe=/bin/python3",
		 "ctx", "otel_ctx"},
		{"/system.slice/a.service",
		 "env:DD_SERVICE=dd|env:OTEL_SERVICE_NAME=otel|exe=/bin/x", "dd", "env"},
		{"/system.slice/a.service",
		 "env:OTEL_SERVICE_NAME=otel|env:OTEL_RESOURCE_ATTRIBUTES=service.name=res", "otel",
		 "env"},
		{"/system.slice/a.service",
		 "env:OTEL_RESOURCE_ATTRIBUTES=a=b,service.name=r%65s|script=s.py", "res",
		 "resource_attributes"},
		{"/system.slice/a.service", "script=s.py|exe=/bin/python3", "a", "unit"},
		{"/user.slice/user-0.slice/session-1.scope", "script=s.py|exe=/bin/python3", "s.py",
		 "script"},
		{"/user.slice/user-0.slice/session-1.scope", "exe=/bin/sh", "sh", "exe"},
		{"/lxc.payload.box", "exe=/bin/sh", "box", "container"},
		/* what is empty or not sound says nothing */
		{"/x", "env:DD_SERVICE=|env:OTEL_SERVICE_NAME=  |exe=/bin/x", "x", "exe"},
		{"/x", "env:OTEL_RESOURCE_ATTRIBUTES=service.name=res,bad|exe=/bin/x", "x", "exe"},
		{"/x", "env:DD_SERVICE=a\nb\xff|exe=/bin/x", "a_b_", "env"},
		/* the shim's own, which it gives to whatever it starts */
		{"/x", "env:OTEL_SERVICE_NAME=containerd-shim-0123abcd|exe=/bin/web", "web", "exe"},
		/* a container without any name of its own */
		{"/system.slice/docker-" ID ".scope", "exe=/bin/web", "web", "exe"},
		{"/x", "exe=/", "x", "cgroup"},
	};
	uint32_t number[sizeof(cases) / sizeof(cases[0])];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		number[i] = process(
			(struct person){.cgroup = cases[i].cgroup, WHOLE, .facts = cases[i].facts});
	name_window();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect(number[i], cases[i].name, cases[i].source);
	assert_string_equal(label(number[12], "container"), ""); /* there would be too many */
}

/* Programs that are in no file any more, or in none that can be read, and names that are no text. */
TEST(names_of_programs)
{
	static const struct {
		const char *facts, *mapped, *name;
	} cases[] = {
		{"exe=/memfd:runc_cloned:/proc/self/exe", NULL, "memfd:runc_cloned"},
		{NULL, "/memfd:x (deleted)", "memfd:x"},
		{NULL, "/memfd:/a/b (deleted)", "memfd:"},
		{NULL, "/usr/bin/shop (deleted)", "shop"},
		{NULL, " (deleted)", "(deleted)"},
		{NULL, "//toolong", "toolong"},
		{"exe=", NULL, "toolong"},
		{"exe=", "/a/part/of/it", "toolong"},
		{"exe=/usr/bin/shop", "/usr/bin/other", "shop"},
		{NULL, "/tmp/a\nb\x1b[31m", "a_b_[31m"},
		{"exe=/tmp/\xff\xfe", NULL, "__"},
	};
	uint32_t number[sizeof(cases) / sizeof(cases[0])];
	static char path[4096] = "/";

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		number[i] = process((struct person){.cgroup = "/",
						    .state = cases[i].facts ? FACTS_STATE_WHOLE
									    : FACTS_STATE_NONE,
						    .facts = cases[i].facts,
						    .mapped = cases[i].mapped});
	for (size_t i = 1; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "\xc3\xa4", 2);
	process((struct person){.cgroup = "/", .mapped = path});
	name_window();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect(number[i], cases[i].name, "exe");
	assert_int_equal(strlen(label(number[10] + 1, "service_name")), 254); /* no half letter */
	assert_int_equal(stats().samples[SERVICE_FROM_NONE], 0);
}

TEST(kernel_and_unknown)
{
	uint32_t thread = process((struct person){.is_kernel = true, .cgroup = "/"});
	uint32_t gone = process((struct person){.cgroup = "/"});
	uint32_t nowhere = process((struct person){.program = "/usr/bin/tool"});
	uint32_t grouped = process((struct person){.cgroup = "/jobs/job_7"});
	uint32_t idle = process((struct person){.cgroup = "/jobs/idle", .is_idle = true});

	name_window();
	expect(thread, "kernel", "kernel");
	expect(gone, "unknown", "none");
	expect(nowhere, "tool", "exe"); /* by what its samples were in */
	expect(grouped, "job_7", "cgroup");
	assert_int_equal(window.service_of_process[idle], 0);
	assert_int_equal(window.service_count, 4);
	assert_int_equal(stats().samples[SERVICE_FROM_NONE], 1);
	assert_int_equal(stats().samples[SERVICE_FROM_KERNEL], 1);
	for (uint32_t i = 1; i < 5; i++)
		assert_null(strstr(label(i, "service_name"), "never-comm"));
}

TEST(labels_of_a_process)
{
	static const char *const texts[] = {"team = env:TEAM", "namespace = cgroup ~ ^/([a-z]+)"};
	struct failure failure = {};
	uint32_t one, two;

	assert_int_equal(label_rules__new(texts, 2, &rules, &failure), 0);
	options.rules = rules;
	options.node = "host-1\n";
	one = process((struct person){
		.cgroup = "/prod/system.slice/db@14.service",
		WHOLE,
		.facts = "env:DD_SERVICE=shop|env:DD_VERSION=1.2|env:TEAM=red|exe=/bin/x"});
	two = process((struct person){
		.cgroup = "/x.service",
		WHOLE,
		.facts = "env:OTEL_RESOURCE_ATTRIBUTES=service.version=3,service.namespace=ns"});
	name_window();
	assert_string_equal(label(one, "service_name"), "shop");
	assert_string_equal(label(one, "service_version"), "1.2");
	assert_string_equal(label(one, "team"), "red");
	assert_string_equal(label(one, "namespace"), "prod"); /* the rule stands above */
	assert_string_equal(label(one, "unit"), "db@.service");
	assert_string_equal(label(one, "instance"), "14");
	assert_string_equal(label(one, "node"), "host-1");
	assert_string_equal(label(two, "team"), "");
	assert_string_equal(label(two, "service_version"), "3");
	assert_string_equal(label(two, "namespace"), "x");
}

TEST(a_rule_for_the_name)
{
	static const char *const texts[] = {"service_name = cgroup ~ /team-([a-z]+)",
					    "service_name = exe ~ .*"};
	struct failure failure = {};
	uint32_t one, two, three;

	assert_int_equal(label_rules__new(texts, 2, &rules, &failure), 0);
	options.rules = rules;
	one = process((struct person){.cgroup = "/team-red/a.service", WHOLE, .facts = "exe=/b/x"});
	two = process((struct person){.cgroup = "/a.service", WHOLE, .facts = "exe=/b/x"});
	three = process((struct person){
		.cgroup = "/team-red", WHOLE, .facts = "env:DD_SERVICE=own|exe=/b/x"});
	name_window();
	expect(one, "red", "rule");
	expect(two, "/b/x", "rule");
	expect(three, "own", "env");
}

TEST(pods)
{
	static const char group[] = "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" ID
				    ".scope";
	uint32_t web, named, pause;

	options.pods = true;
	run("mkdir -p var/log/containers var/log/pods/prod_shop-0_%s",
	    "00000000-1234-1234-1234-123456789abc");
	run("touch var/log/containers/shop-7d9f-x_prod_web-" ID ".log");
	web = process((struct person){.cgroup = group, WHOLE, .facts = "exe=/bin/python3"});
	named = process((struct person){.cgroup = group, WHOLE, .facts = "env:DD_SERVICE=api"});
	pause = process(
		(struct person){.cgroup = "/kubepods/pod00000000-1234-1234-1234-123456789abc/f" ID,
				WHOLE,
				.facts = "exe=/pause"});
	name_window();
	expect(web, "prod/web", "kubernetes");
	assert_string_equal(label(web, "pod"), "shop-7d9f-x");
	assert_string_equal(label(web, "namespace"), "prod");
	assert_string_equal(label(web, "container"), "web");
	expect(named, "api", "env");
	assert_string_equal(label(named, "container"), "web");
	expect(pause, "prod/pause", "kubernetes");
	assert_string_equal(label(pause, "pod"), "shop-0");
}

/* ---- neighbours and windows ------------------------------------------------------------------ */

TEST(processes_that_are_gone)
{
	uint32_t gone, same, other, whole, shell;

	process((struct person){.cgroup = "/g", WHOLE, .facts = "env:DD_SERVICE=small|exe=/b/y"});
	process((struct person){
		.cgroup = "/g", WHOLE, .facts = "env:DD_SERVICE=shop|exe=/b/x", .cpu = 5 * MS});
	gone = process((struct person){.cgroup = "/g"});
	same = process(
		(struct person){.cgroup = "/g", .state = FACTS_STATE_FIRST, .facts = "exe=/b/x"});
	other = process((struct person){
		.cgroup = "/g", .state = FACTS_STATE_REFUSED, .facts = "exe=/b/other"});
	whole = process((struct person){.cgroup = "/g", WHOLE, .facts = "exe=/b/x"});
	process((struct person){.cgroup = "/h", WHOLE, .facts = "script=a.sh|exe=/bin/sh"});
	shell = process((struct person){
		.cgroup = "/h", .state = FACTS_STATE_FIRST, .facts = "exe=/bin/sh"});
	name_window();
	expect(gone, "shop", "cgroup"); /* as the busiest one */
	expect(same, "shop", "cgroup");
	expect(other, "other", "exe");
	expect(whole, "x", "exe");  /* it has said all it has to say */
	expect(shell, "sh", "exe"); /* another script, for all we know */
	begin_window();
	gone = process((struct person){.cgroup = "/g"});
	name_window();
	expect(gone, "shop", "cgroup"); /* none of them ran in this window */
}

/* Where there is no control group, the root is none: what is there has nothing in common. */
TEST(children_that_are_gone)
{
	uint32_t parent, child, orphan, stranger;

	process((struct person){
		.cgroup = "/", WHOLE, .facts = "env:DD_SERVICE=shop|exe=/b/x", .cpu = 5 * MS});
	parent = process((struct person){.cgroup = "/", WHOLE, .facts = "script=job.sh"});
	child = process((struct person){.cgroup = "/", .parent = parent});
	orphan = process((struct person){.cgroup = "/", .parent = 99999});
	stranger = process((struct person){.cgroup = "/", .parent = orphan});
	name_window();
	expect(child, "job.sh", "parent");
	expect(orphan, "unknown", "none");
	expect(stranger, "unknown", "none");
	assert_int_equal(stats().samples[SERVICE_FROM_PARENT], 1);
	assert_int_equal(stats().samples[SERVICE_FROM_NONE], 2);
}

/* It is read no more often than it runs: at a low rate that is hardly ever in the window of its children. */
TEST(parents_that_did_not_run)
{
	uint32_t parent, child, grandchild, orphan;

	parent =
		process((struct person){.life = 7, .cgroup = "/", WHOLE, .facts = "script=job.sh"});
	process((struct person){.life = 8, .cgroup = "/", .is_kernel = true});
	name_window();
	begin_window();
	pid += 10; /* other processes */
	child = process((struct person){.cgroup = "/", .parent = parent});
	grandchild = process((struct person){.cgroup = "/", .parent = pid});
	orphan = process((struct person){.cgroup = "/", .parent = 2});
	name_window();
	expect(child, "job.sh", "parent");
	expect(grandchild, "job.sh", "parent");
	expect(orphan, "unknown", "none");
}

TEST(a_life_moves_up_and_never_down)
{
	uint32_t number;

	number = process((struct person){.life = 7, .cgroup = "/a.service"});
	name_window();
	expect(number, "a", "unit");
	begin_window();
	number = process((struct person){
		.life = 7, .cgroup = "/a.service", WHOLE, .facts = "env:DD_SERVICE=s"});
	name_window();
	expect(number, "s", "env");
	/* facts are not read again: it stays the same */
	for (int i = 0; i < 3; i++) {
		begin_window();
		number = process((struct person){.life = 7, .cgroup = "/a.service"});
		name_window();
		expect(number, "s", "env");
	}
	begin_window();
	number = process((struct person){.life = 7,
					 .cgroup = "/a.service",
					 WHOLE,
					 .facts = "otel:service.name=late|env:DD_SERVICE=s"});
	name_window();
	expect(number, "late", "otel_ctx");
	/* another life of the same pid is somebody else */
	begin_window();
	number = process((struct person){.life = 8, .cgroup = "/a.service", WHOLE});
	name_window();
	expect(number, "a", "unit");
}

/* ---- limits ---------------------------------------------------------------------------------- */

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
	expect(number[3], "p03", "exe"); /* the busiest four are themselves */
	expect(number[0], "p00", "exe");
	expect(number[2], "p02", "exe");
	expect(number[4], SERVICE_OTHER, "overflow");
	expect(number[19], SERVICE_OTHER, "overflow");
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
	expect(number[4], "p04", "exe");
}

TEST(what_is_left_out)
{
	static const char *const exclude[] = {"service=noise"};
	struct failure failure = {};
	uint32_t noise, shop;

	assert_int_equal(service_filter__new(NULL, 0, exclude, 1, &filter, &failure), 0);
	options.filter = filter;
	noise = process((struct person){WHOLE, .facts = "exe=/b/noise"});
	shop = process((struct person){WHOLE, .facts = "exe=/b/shop"});
	name_window();
	assert_true(service_of(noise)->excluded);
	assert_false(service_of(shop)->excluded);
	assert_int_equal(stats().excluded, 1);
}

/* 10,000 processes in 2,000 control groups, again and again, and others each time. */
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
	assert_true(stats().lives_kept <= LIVES_KEPT);
	assert_true(stats().groups_kept <= GROUPS_KEPT);
	assert_true(stats().lives_evicted > 0);
	assert_true(stats().sets_kept <= 2100);
}

/* Names that are new in each window: nothing of them stays. */
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
	assert_true(stats().lives_kept <= 20 * 480);
	assert_true(stats().groups_kept <= GROUPS_KEPT);
	assert_true(stats().sets_kept <= 20 * 480 + GROUPS_KEPT);
}

EACH_TEST_WITH(set_up, tear_down);
