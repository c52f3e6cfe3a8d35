/* SPDX-License-Identifier: BSD-2-Clause */
/* What services are named by: paths of control groups, values of labels, attributes, rules, filters; sound and hostile. */
#include "text_cases.h"

#include "base/cleanup.h"
#include "agent/rules.h"
#include "services/cgroup_path.h"
#include "services/label_set.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* ---- control groups -------------------------------------------------------------------------- */

static const char *const IDS[][2] = {
	{"$ID2", "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"},
	{"$ID", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
	{"$UID_", "12345678_1234_1234_1234_123456789abc"},
	{"$UID", "12345678-1234-1234-1234-123456789abc"},
};

/* Text with each "from" of IDS replaced by its "to". */
static char *replace_ids(const char *text, int from, int to)
{
	char *replaced = NULL;
	size_t size;
	FILE *out = open_memstream(&replaced, &size);

	while (*text) {
		size_t i = 0;

		while (i < COUNT(IDS) && strncmp(text, IDS[i][from], strlen(IDS[i][from])))
			i++;
		if (i == COUNT(IDS)) {
			fputc(*text++, out);
			continue;
		}
		fputs(IDS[i][to], out);
		text += strlen(IDS[i][from]);
	}
	fclose(out);
	return replaced;
}

static void put_field(FILE *out, const char *name, const char *value)
{
	_cleanup_free_ char *shown = replace_ids(value, 1, 0);

	if (*value)
		fprintf(out, "%s%s=%s", ftell(out) ? " " : "", name, shown);
}

static void parse_cgroup(FILE *out, char *input)
{
	_cleanup_free_ char *path = replace_ids(input, 0, 1);
	struct cgroup_place place;

	cgroup_place__parse(&place, path);
	put_field(out, "container", place.container);
	put_field(out, "name", place.container_name);
	put_field(out, "pod", place.pod_uid);
	put_field(out, "unit", place.unit);
	put_field(out, "instance", place.instance);
	put_field(out, "service", place.unit_service);
	put_field(out, "monitor", place.is_monitor ? "yes" : "");
	if (!ftell(out))
		fputs("nothing", out);
}

TEST(hostile_paths_are_cut_to_their_fields)
{
	static const char pieces[] = "/@.-:\\x2f_aservicescopepodlxc.payload.machine-\xff\n";
	struct cgroup_place place;
	_cleanup_free_ char *path = malloc(1 << 20);
	uint64_t seed = 1;

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
}

/* ---- labels ---------------------------------------------------------------------------------- */

static void set_value(FILE *out, char *input)
{
	char value[LABEL_VALUE_MAX + 1];

	fputs(label_value_set(value, sizeof(value), input) ? value : "none", out);
}

static void check_name(FILE *out, char *input)
{
	fputs(label_name_is_valid(input) ? "valid" : "invalid", out);
}

static void find_attribute(FILE *out, char *input)
{
	char value[LABEL_VALUE_MAX + 1];

	fputs(resource_attribute(input, "service.name", value, sizeof(value)) ? value : "none",
	      out);
}

TEST(long_values_and_names_are_cut_or_refused)
{
	static char text[1 << 20], value[8], longest[LABEL_VALUE_MAX + 1];
	char name[LABEL_NAME_MAX + 2];

	memset(text, 'x', sizeof(text) - 1);
	assert_true(label_value_set(longest, sizeof(longest), text));
	assert_int_equal(strlen(longest), LABEL_VALUE_MAX);
	assert_true(label_value_set(value, sizeof(value), "123456\xc3\xa4")); /* not cut in two */
	assert_string_equal(value, "123456");
	assert_true(label_value_set(value, sizeof(value), "12345\xc3\xa4"));
	assert_string_equal(value, "12345\xc3\xa4");
	memset(name, 'a', sizeof(name));
	name[LABEL_NAME_MAX + 1] = '\0';
	assert_false(label_name_is_valid(name));
	name[LABEL_NAME_MAX] = '\0';
	assert_true(label_name_is_valid(name));
	for (const char *c = ",%"; *c; c++) {
		memset(text, *c, sizeof(text) - 1);
		assert_false(resource_attribute(text, "service.name", longest, sizeof(longest)));
	}
}

/* ---- rules ----------------------------------------------------------------------------------- */

static const char *variable(const void *context, const char *name)
{
	return !strcmp(name, "TEAM") ? "red" : NULL;
}

/* The rule behind another one, for a subject that has all, and for one that has nothing. */
static void apply_rule(FILE *out, char *input)
{
	const struct label_subject subject = {
		.cgroup = "/kubepods/team-blue/y", .exe = "/usr/bin/python3", .variable = variable};
	const char *const texts[] = {"fine = exe", input}, *const * variables;
	struct label_rules *rules = NULL;
	struct failure failure = {};
	char value[32];
	size_t count;
	int err = label_rules__new(texts, COUNT(texts), &rules, &failure);

	if (err) {
		text_put_error(out, err);
		fprintf(out, ": %s", failure.what);
		return;
	}
	fprintf(out, "%s: %s", label_rules__name(rules, 1),
		label_rules__apply(rules, 1, &subject, value, sizeof(value)) ? value : "no value");
	variables = label_rules__variables(rules, &count);
	for (size_t i = 0; i < count; i++)
		fprintf(out, ", asks for $%s", variables[i]);
	assert_false(label_rules__apply(rules, 1, &(struct label_subject){}, value, sizeof(value)));
	label_rules__free(rules);
}

TEST(too_long_and_too_many_rules_are_refused)
{
	static const char *many[LABEL_RULES_MAX + 1];
	struct label_rules *rules = NULL;
	struct label_subject subject = {};
	struct failure failure;
	char text[5000], value[32];
	const char *one = text;

	snprintf(text, sizeof(text), "a = exe ~ %0600d", 1);
	assert_int_equal(label_rules__new(&one, 1, &rules, &failure), -EINVAL);
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = "a = cgroup";
	assert_int_equal(label_rules__new(many, COUNT(many), &rules, &failure), -E2BIG);
	assert_null(rules);
	assert_int_equal(label_rules__count(NULL), 0);
	/* a path that is too long has no value */
	one = "team = cgroup ~ ^/kubepods.*team-([a-z]+)";
	assert_int_equal(label_rules__new(&one, 1, &rules, &failure), 0);
	memset(text, '/', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	subject.cgroup = text;
	assert_false(label_rules__apply(rules, 0, &subject, value, sizeof(value)));
	label_rules__free(rules);
}

/* ---- filters --------------------------------------------------------------------------------- */

static struct service_filter *filter;

static void free_filter(void)
{
	service_filter__free(filter);
	filter = NULL;
}

/* One that is refused is refused as the other kind as well. */
static void make_filter(FILE *out, char *input)
{
	char *exclude = strstr(input, "exclude=");
	const char *includes[] = {input + strlen("include=")};
	const char *excludes[] = {exclude ? exclude + strlen("exclude=") : NULL};
	struct failure failure = {};
	int err;

	if (exclude && exclude > input)
		exclude[-1] = '\0';
	free_filter();
	err = service_filter__new(includes, exclude != input, excludes, exclude != NULL, &filter,
				  &failure);
	text_put_error(out, err);
	if (!err)
		return;
	fprintf(out, ": %s", failure.what);
	assert_int_equal(service_filter__new(NULL, 0, includes, 1, &filter, &failure), err);
}

static void filter_service(FILE *out, char *input)
{
	const char *cgroup, *unit;

	if (!strncmp(input, "include=", 8) || !strncmp(input, "exclude=", 8)) {
		make_filter(out, input);
		return;
	}
	cgroup = strsep(&input, "|");
	unit = strsep(&input, "|");
	fprintf(out, "%s, ", service_filter__passes(filter, cgroup, unit, input) ? "yes" : "no");
	fputs(service_filter__may_pass(filter, cgroup) ? "yes" : "no", out);
}

TEST(too_many_rules_of_filters_are_refused)
{
	static const char *many[FILTER_RULES_MAX + 1];
	struct failure failure;

	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = "service=x";
	assert_int_equal(service_filter__new(many, COUNT(many), NULL, 0, &filter, &failure),
			 -E2BIG);
	assert_null(filter);
}

static const struct text_verb verbs[] = {
	{"cgroup", parse_cgroup},
	{"value", set_value},
	{"name", check_name},
	{"attribute", find_attribute},
	{"rule", apply_rule},
	{"filter", filter_service},
	{},
};

TEXT_TABLE("service_texts", verbs, NULL, free_filter);
