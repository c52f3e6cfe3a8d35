/* SPDX-License-Identifier: BSD-2-Clause */
/* What services are named by: paths of control groups, values of labels, attributes, rules, filters; sound and hostile. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cgroup_path.h"
#include "agent/rules.h"
#include "agent/label_set.h"

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))
#define ID	     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2	     "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID	     "12345678-1234-1234-1234-123456789abc"
#define UID_	     "12345678_1234_1234_1234_123456789abc"

/* ---- control groups -------------------------------------------------------------------------- */

static void paths_of_control_groups(void **state)
{
	/* container id, its name, pod, unit, instance, service */
	static const struct {
		const char *path;
		const char *is[6];
	} cases[] = {
		{"", {"", "", "", "", "", ""}},
		{"/", {"", "", "", "", "", ""}},
		{"/../..", {"", "", "", "", "", ""}},
		{"/docker/" ID, {ID, "", "", "", "", ""}},
		{"/system.slice/docker-" ID ".scope", {ID, "", "", "", "", ""}},
		{"/system.slice/docker-" ID ".scope/init", {ID, "", "", "", "", ""}},
		/* docker in docker, kind: the last one */
		{"/docker/" ID "/kubelet/kubepods/burstable/pod" UID "/" ID2,
		 {ID2, "", UID, "", "", ""}},
		{"/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_
		 ".slice/cri-containerd-" ID ".scope",
		 {ID, "", UID, "", "", ""}},
		{"/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope/container",
		 {ID, "", UID, "", "", ""}},
		{"/kubepods/pod" UID "/" ID, {ID, "", UID, "", "", ""}},
		{"/system.slice/containerd.service/kubepods-burstable-pod" UID_
		 ".slice:cri-containerd:" ID,
		 {ID, "", UID, "", "", ""}},
		{"/machine.slice/libpod-" ID ".scope/container", {ID, "", "", "", "", ""}},
		{"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
		 {ID, "", "", "", "", ""}},
		{"/ecs/0123456789abcdef0123456789abcdef-1234567890",
		 {"0123456789abcdef0123456789abcdef-1234567890", "", "", "", "", ""}},
		{"/lxc.payload.web/system.slice/nginx.service",
		 {"", "web", "", "nginx.service", "", "nginx"}},
		{"/machine.slice/machine-my\\x2dbox.scope", {"", "my-box", "", "", "", ""}},
		/* a service in a container that runs systemd */
		{"/system.slice/docker-" ID ".scope/system.slice/cron.service",
		 {ID, "", "", "cron.service", "", "cron"}},
		{"/system.slice/nginx.service", {"", "", "", "nginx.service", "", "nginx"}},
		{"/system.slice/nginx.service/sub", {"", "", "", "nginx.service", "", "nginx"}},
		{"/system.slice/system-postgresql.slice/postgresql@14-main.service",
		 {"", "", "", "postgresql@.service", "14-main", "postgresql"}},
		{"/system.slice/a@x\\x2fy.service", {"", "", "", "a@.service", "x/y", "a"}},
		/* one for each connection */
		{"/system.slice/sshd@3-10.0.0.1:22-10.0.0.2:50000.service",
		 {"", "", "", "sshd@.service", "", "sshd"}},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/app-gnome-firefox-4711.scope",
		 {"", "", "", "app-gnome-firefox.scope", "", "gnome-firefox"}},
		{"/user.slice/user-1000.slice/user@1000.service/app.slice/pipewire.service",
		 {"", "", "", "pipewire.service", "", "pipewire"}},
		{"/user.slice/user-1000.slice/user@1000.service/init.scope",
		 {"", "", "", "init.scope", "", ""}},
		{"/user.slice/user-1000.slice/session-3.scope", {"", "", "", "", "", ""}},
		{"/system.slice/run-u17.service", {"", "", "", "", "", ""}},
		{"/system.slice/run-rdeadbeef.scope", {"", "", "", "", "", ""}},
		{"/system.slice/slurmstepd.scope/job_7/step_0",
		 {"", "", "", "slurmstepd.scope", "", ""}},
		/* nearly */
		{"/docker/0123", {"", "", "", "", "", ""}},
		{"/docker/0" ID, {"", "", "", "", "", ""}},
		{"/docker/x" ID, {ID, "", "", "", "", ""}},
		{"/docker/" ID "0", {"", "", "", "", "", ""}},
		{"/.service/.scope//@.service/\\x.service", {"", "", "", "\\x.service", "", "\\x"}},
		{"/pod/kubepods-pod/lxc.payload./machine-.scope",
		 {"", "", "", "machine-.scope", "", ""}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct cgroup_place place;
		const char *const is[] = {place.container, place.container_name,
					  place.pod_uid,   place.unit,
					  place.instance,  place.unit_service};

		cgroup_place__parse(&place, cases[i].path);
		for (size_t k = 0; k < COUNT(is); k++)
			if (strcmp(is[k], cases[i].is[k]))
				fail_msg("%s: %zu is \"%s\", not \"%s\"", cases[i].path, k, is[k],
					 cases[i].is[k]);
	}
}

static void monitors_of_containers(void **state)
{
	struct cgroup_place place;

	(void)state;
	cgroup_place__parse(&place, "/machine.slice/libpod-conmon-" ID ".scope");
	assert_true(place.is_monitor);
	cgroup_place__parse(&place, "/machine.slice/libpod-payload-" ID ".scope");
	assert_false(place.is_monitor);
	cgroup_place__parse(&place, "/lxc.monitor.web");
	assert_true(place.is_monitor);
}

static void paths_that_are_hostile(void **state)
{
	static const char pieces[] = "/@.-:\\x2f_aservicescopepodlxc.payload.machine-\xff\n";
	struct cgroup_place place;
	char *path = malloc(1 << 20);
	uint64_t seed = 1;

	(void)state;
	memset(path, 'a', 1 << 20);
	path[(1 << 20) - 1] = '\0';
	cgroup_place__parse(&place, path);
	memcpy(path + (1 << 20) - 9, ".service", 9);
	cgroup_place__parse(&place, path);
	assert_int_equal(strlen(place.unit_service), CGROUP_NAME_SIZE - 1);
	for (int round = 0; round < 20000; round++) {
		size_t size = 1 + round % 300;

		for (size_t i = 0; i < size; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			path[i] = pieces[(seed >> 33) % (sizeof(pieces) - 1)];
		}
		path[size] = '\0';
		cgroup_place__parse(&place, path);
		assert_true(memchr(place.unit, 0, sizeof(place.unit)));
		assert_true(memchr(place.instance, 0, sizeof(place.instance)));
		assert_true(memchr(place.unit_service, 0, sizeof(place.unit_service)));
		assert_true(memchr(place.container_name, 0, sizeof(place.container_name)));
	}
	free(path);
}

/* ---- labels ---------------------------------------------------------------------------------- */

static const char *value_of(const char *text)
{
	static char value[AGENT_LABEL_VALUE_MAX + 1];

	return label_value_set(value, sizeof(value), text) ? value : NULL;
}

static void values_of_labels(void **state)
{
	static char text[1 << 20], value[8];

	(void)state;
	assert_string_equal(value_of("shop"), "shop");
	assert_string_equal(value_of("  shop and more \t\n"), "shop and more");
	assert_string_equal(value_of("a\nb\x1b[31m\x7f"), "a_b_[31m_");
	assert_string_equal(value_of("a\xff\xfe\xc3"), "a___");
	assert_string_equal(value_of("\xc2\x85\xe2\x80\xa8 \xc3\xa4"), "__ \xc3\xa4");
	assert_string_equal(value_of("\xed\xa0\x80"), "___"); /* a surrogate */
	/* characters that turn the direction of writing, and invisible ones */
	assert_string_equal(value_of("a\xe2\x80\xae"
				     "b\xe2\x81\xa6"),
			    "a_b_");
	assert_string_equal(value_of("a\xe2\x80\x8b\xef\xbb\xbf\xc2\xad\xf3\xa0\x81\x81"), "a____");
	assert_string_equal(value_of("\xe2\x82\xac\xf0\x9f\x98\x80"),
			    "\xe2\x82\xac\xf0\x9f\x98\x80");
	assert_null(value_of(""));
	assert_null(value_of("   "));
	memset(text, 'x', sizeof(text) - 1);
	assert_int_equal(strlen(value_of(text)), AGENT_LABEL_VALUE_MAX);
	assert_true(label_value_set(value, sizeof(value), "123456\xc3\xa4")); /* not cut in two */
	assert_string_equal(value, "123456");
	assert_true(label_value_set(value, sizeof(value), "12345\xc3\xa4"));
	assert_string_equal(value, "12345\xc3\xa4");
}

static void names_of_labels(void **state)
{
	char name[AGENT_LABEL_NAME_MAX + 2];

	(void)state;
	assert_true(label_name_is_valid("team"));
	assert_true(label_name_is_valid("_a9"));
	assert_false(label_name_is_valid(""));
	assert_false(label_name_is_valid("9a"));
	assert_false(label_name_is_valid("__name__"));
	assert_false(label_name_is_valid("a.b"));
	assert_false(label_name_is_valid("a-b"));
	assert_false(label_name_is_valid("\xc3\xa4"));
	memset(name, 'a', sizeof(name));
	name[AGENT_LABEL_NAME_MAX + 1] = '\0';
	assert_false(label_name_is_valid(name));
	name[AGENT_LABEL_NAME_MAX] = '\0';
	assert_true(label_name_is_valid(name));
}

static const char *attribute(const char *text)
{
	static char value[AGENT_LABEL_VALUE_MAX + 1];

	return resource_attribute(text, "service.name", value, sizeof(value)) ? value : NULL;
}

static void attributes_of_resources(void **state)
{
	static char text[1 << 20];

	(void)state;
	assert_string_equal(attribute("service.name=shop"), "shop");
	assert_string_equal(attribute("a=b, service.name = sh%6Fp%20x ,c=%2C"), "shop x");
	assert_string_equal(attribute("service.name=one,service.name=two"), "two");
	assert_string_equal(attribute("service.name=x=y"), "x=y");
	assert_string_equal(attribute("service.name=shop,"), "shop");
	assert_string_equal(attribute("service.name=%0Ax%0Ay"), "x_y");
	assert_null(attribute(""));
	assert_null(attribute("service.name="));
	assert_null(attribute("service.nam=x"));
	/* one that is not sound voids all */
	assert_null(attribute("service.name=shop,a"));
	assert_null(attribute("service.name=shop,=x"));
	assert_null(attribute("service.name=shop,,a=b"));
	assert_null(attribute("service.name=shop,a=%"));
	assert_null(attribute("service.name=shop,a=%4"));
	assert_null(attribute("service.name=shop,a=%zz"));
	assert_null(attribute("service.name=sh%00op"));
	memset(text, ',', sizeof(text) - 1);
	assert_null(attribute(text));
	memset(text, '%', sizeof(text) - 1);
	assert_null(attribute(text));
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *variable(const void *context, const char *name)
{
	(void)context;
	return !strcmp(name, "TEAM") ? "red" : NULL;
}

static void rules_that_match(void **state)
{
	static const char *const texts[] = {
		"team = cgroup ~ ^/kubepods.*team-([a-z]+)",
		"team=env:TEAM",
		"prog = exe ~ [^/]+$",
		"who = env:NOBODY",
		"opt = cgroup ~ /(x)?y",
	};
	struct label_subject subject = {
		.cgroup = "/kubepods/team-blue/y", .exe = "/usr/bin/python3", .variable = variable};
	struct label_rules *rules = NULL;
	struct failure failure = {};
	const char *const *variables;
	char value[32], long_path[5000];
	size_t count;

	(void)state;
	assert_int_equal(label_rules__new(texts, COUNT(texts), &rules, &failure), 0);
	variables = label_rules__variables(rules, &count);
	assert_int_equal(count, 2);
	assert_string_equal(variables[0], "TEAM");
	assert_string_equal(label_rules__name(rules, 2), "prog");
	assert_true(label_rules__apply(rules, 0, &subject, value, sizeof(value)));
	assert_string_equal(value, "blue");
	assert_true(label_rules__apply(rules, 1, &subject, value, sizeof(value)));
	assert_string_equal(value, "red");
	assert_true(label_rules__apply(rules, 2, &subject, value, sizeof(value)));
	assert_string_equal(value, "python3");
	assert_false(label_rules__apply(rules, 3, &subject, value, sizeof(value)));
	assert_false(label_rules__apply(rules, 4, &subject, value, sizeof(value)));
	subject.cgroup = subject.exe = NULL;
	subject.variable = NULL;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_false(label_rules__apply(rules, i, &subject, value, sizeof(value)));
	memset(long_path, '/', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	subject.cgroup = long_path;
	assert_false(label_rules__apply(rules, 0, &subject, value, sizeof(value)));
	label_rules__free(rules);
}

static void rules_that_are_refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "expected NAME = SOURCE"},
		{"team", "expected NAME = SOURCE"},
		{"= cgroup", "cannot be a label's name"},
		{"a.b = cgroup", "cannot be a label's name"},
		{"__name__ = exe", "cannot be a label's name"},
		{"service_source = exe", "cannot be a label's name"},
		{"a =", "expected cgroup, exe or env:VARIABLE"},
		{"a = comm", "expected cgroup, exe or env:VARIABLE"},
		{"a = env:", "expected cgroup, exe or env:VARIABLE"},
		{"a = env:A B", "expected cgroup, exe or env:VARIABLE"},
		{"a = env:A-B ~ x", "expected cgroup, exe or env:VARIABLE"},
		{"a = exe ~", "empty"},
		{"a = exe ~ (", "nmatched"},
		{"a = exe ~ [z-a]", "ange"},
		{"a = exe ~ (a*)\\1", "back-references"},
	};
	static const char *many[LABEL_RULES_MAX + 1];
	struct label_rules *rules = NULL;
	struct failure failure;
	char text[700];
	const char *one = text;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *const two[] = {"fine = exe", cases[i].text};

		failure = (struct failure){};
		assert_int_equal(label_rules__new(two, 2, &rules, &failure), -EINVAL);
		if (!strstr(failure.what, cases[i].why) || !strstr(failure.what, cases[i].text))
			fail_msg("%s: %s", cases[i].text, failure.what);
	}
	snprintf(text, sizeof(text), "a = exe ~ %0600d", 1);
	assert_int_equal(label_rules__new(&one, 1, &rules, &failure), -EINVAL);
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = "a = exe";
	assert_int_equal(label_rules__new(many, COUNT(many), &rules, &failure), -E2BIG);
	assert_null(rules);
	assert_int_equal(label_rules__count(NULL), 0);
}

/* ---- filters --------------------------------------------------------------------------------- */

static struct service_filter *filter(const char *include, const char *exclude)
{
	struct service_filter *f = NULL;
	struct failure failure = {};

	if (service_filter__new(&include, include != NULL, &exclude, exclude != NULL, &f, &failure))
		fail_msg("%s", failure.what);
	return f;
}

static void what_filters_let_pass(void **state)
{
	struct service_filter *f = filter("cgroup=/a/b/", "service=bad*");

	(void)state;
	assert_true(service_filter__passes(f, "/a/b", "", "good"));
	assert_true(service_filter__passes(f, "/a/b/c", "", "good"));
	assert_false(service_filter__passes(f, "/a/bc", "", "good"));
	assert_false(service_filter__passes(f, "/a", "", "good"));
	assert_false(service_filter__passes(f, "", "", "good"));
	assert_false(service_filter__passes(f, "/a/b", "", "badly"));
	assert_true(service_filter__may_pass(f, "/a/b"));
	assert_true(service_filter__may_pass(f, "/a/b/c"));
	assert_false(service_filter__may_pass(f, "/a/bc"));
	assert_false(service_filter__may_pass(f, "/"));
	service_filter__free(f);
	f = filter("unit=nginx*", NULL);
	assert_true(service_filter__passes(f, "", "nginx.service", "x"));
	assert_false(service_filter__passes(f, "", "", "x"));
	assert_true(service_filter__may_pass(f, "/system.slice/nginx@2.service/worker"));
	assert_false(service_filter__may_pass(f, "/system.slice/cron.service"));
	assert_false(service_filter__may_pass(f, "/"));
	service_filter__free(f);
	f = filter(NULL, "cgroup=*/user.slice/*");
	assert_false(service_filter__passes(f, "/user.slice/x", "", "x"));
	assert_true(service_filter__passes(f, "/system.slice", "", "x"));
	assert_false(service_filter__may_pass(f, "/user.slice/x"));
	assert_true(service_filter__may_pass(f, "/system.slice"));
	service_filter__free(f);
	f = filter("cgroup=/", NULL);
	assert_true(service_filter__passes(f, "/a", "", "x"));
	assert_true(service_filter__may_pass(f, "/a"));
	service_filter__free(f);
	f = filter("cgroup=/kube*", NULL);
	assert_true(service_filter__passes(f, "/kubepods/x", "", "x"));
	assert_true(service_filter__may_pass(f, "/kubepods/x"));
	assert_false(service_filter__may_pass(f, "/system.slice"));
	service_filter__free(f);
	/* what a service will be called its group does not say; what its unit says stands */
	f = filter("service=shop", "unit=cron*");
	assert_true(service_filter__may_pass(f, "/system.slice/shop.service"));
	assert_true(service_filter__may_pass(f, "/"));
	assert_false(service_filter__may_pass(f, "/system.slice/cron.service"));
	service_filter__free(f);
	assert_true(service_filter__may_pass(NULL, "/a"));
	assert_true(service_filter__passes(NULL, "", "", ""));
}

static void filters_that_are_refused(void **state)
{
	static const char *const texts[] = {
		"", "x", "cgroup", "cgroup=", "cgroup=a", "pid=1", "services=x", "=x"};
	static const char *many[FILTER_RULES_MAX + 1];
	struct service_filter *f = NULL;
	struct failure failure;

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		failure = (struct failure){};
		assert_int_equal(service_filter__new(&texts[i], 1, NULL, 0, &f, &failure), -EINVAL);
		assert_non_null(strstr(failure.what, texts[i]));
		assert_int_equal(service_filter__new(NULL, 0, &texts[i], 1, &f, &failure), -EINVAL);
	}
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = "service=x";
	assert_int_equal(service_filter__new(many, COUNT(many), NULL, 0, &f, &failure), -E2BIG);
	assert_null(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_control_groups),
		cmocka_unit_test(monitors_of_containers),
		cmocka_unit_test(paths_that_are_hostile),
		cmocka_unit_test(values_of_labels),
		cmocka_unit_test(names_of_labels),
		cmocka_unit_test(attributes_of_resources),
		cmocka_unit_test(rules_that_match),
		cmocka_unit_test(rules_that_are_refused),
		cmocka_unit_test(what_filters_let_pass),
		cmocka_unit_test(filters_that_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
