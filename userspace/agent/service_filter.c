/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/service_filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "agent/cgroup_path.h"
#include "agent/label_set.h"

#define PATTERN_MAX 1024

enum filter_kind { FILTER_CGROUP, FILTER_UNIT, FILTER_SERVICE, FILTER_KINDS };

static const char *const kinds[FILTER_KINDS] = {"cgroup", "unit", "service"};

struct filter_rule {
	enum filter_kind kind;
	char *pattern;
	bool is_path; /* of a cgroup, without wildcards and without "/" at its end */
};

struct service_filter {
	struct filter_rule include[FILTER_RULES_MAX], exclude[FILTER_RULES_MAX];
	size_t include_count, exclude_count;
};

static void cut_slashes(char *path)
{
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		path[--length] = '\0';
}

static int parse_rule(struct filter_rule *rule, const char *text, struct failure *failure)
{
	const char *equal = strchr(text, '=');
	size_t kind = 0;

	while (kind < FILTER_KINDS && equal &&
	       (strlen(kinds[kind]) != (size_t)(equal - text) ||
		strncmp(kinds[kind], text, equal - text)))
		kind++;
	if (!equal || kind == FILTER_KINDS)
		return fail(failure, -EINVAL,
			    "filter \"%s\": expected cgroup=PATTERN, unit=PATTERN or "
			    "service=PATTERN",
			    text);
	if (!equal[1] || strlen(equal + 1) > PATTERN_MAX)
		return fail(failure, -EINVAL, "filter \"%s\": the pattern is %s", text,
			    equal[1] ? "too long" : "empty");
	if (kind == FILTER_CGROUP && equal[1] != '/' && equal[1] != '*')
		return fail(failure, -EINVAL,
			    "filter \"%s\": the path of a cgroup begins with \"/\"", text);
	rule->kind = (enum filter_kind)kind;
	rule->pattern = strdup(equal + 1);
	if (!rule->pattern)
		return fail(failure, -ENOMEM, "out of memory");
	rule->is_path = kind == FILTER_CGROUP && !strpbrk(rule->pattern, "*?[\\");
	if (rule->is_path)
		cut_slashes(rule->pattern);
	return 0;
}

static int parse_rules(struct filter_rule *rules, size_t *parsed, const char *const *texts,
		       size_t count, struct failure *failure)
{
	int err = 0;

	if (count > FILTER_RULES_MAX)
		return fail(failure, -E2BIG, "more than %d filters of a kind", FILTER_RULES_MAX);
	for (size_t i = 0; i < count && !err; i++) {
		err = parse_rule(&rules[i], texts[i], failure);
		*parsed += !err;
	}
	return err;
}

int service_filter__new(const char *const *include, size_t include_count,
			const char *const *exclude, size_t exclude_count,
			struct service_filter **filter, struct failure *failure)
{
	struct service_filter *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return fail(failure, -ENOMEM, "out of memory");
	err = parse_rules(f->include, &f->include_count, include, include_count, failure)
		      ?: parse_rules(f->exclude, &f->exclude_count, exclude, exclude_count,
				     failure);
	if (err) {
		service_filter__free(f);
		return err;
	}
	*filter = f;
	return 0;
}

void service_filter__free(struct service_filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->include_count; i++)
		free(f->include[i].pattern);
	for (size_t i = 0; i < f->exclude_count; i++)
		free(f->exclude[i].pattern);
	free(f);
}

/* The group itself, or one below it. */
static bool is_within(const char *cgroup, const char *path)
{
	size_t length = strlen(path);

	if (!strcmp(path, "/"))
		return *cgroup == '/';
	return !strncmp(cgroup, path, length) && (!cgroup[length] || cgroup[length] == '/');
}

static bool matches(const struct filter_rule *rules, size_t count,
		    const char *const texts[FILTER_KINDS])
{
	for (size_t i = 0; i < count; i++) {
		const char *text = texts[rules[i].kind];

		if (rules[i].is_path ? is_within(text, rules[i].pattern)
				     : *text && !fnmatch(rules[i].pattern, text, 0))
			return true;
	}
	return false;
}

bool service_filter__passes(const struct service_filter *f, const char *cgroup, const char *unit,
			    const char *service)
{
	const char *const texts[FILTER_KINDS] = {cgroup, unit, service};

	if (!f)
		return true;
	if (f->include_count && !matches(f->include, f->include_count, texts))
		return false;
	return !matches(f->exclude, f->exclude_count, texts);
}

static bool has_kind(const struct filter_rule *rules, size_t count, enum filter_kind kind)
{
	for (size_t i = 0; i < count; i++)
		if (rules[i].kind == kind)
			return true;
	return false;
}

bool service_filter__may_pass(const struct service_filter *f, const char *cgroup)
{
	struct cgroup_place place;
	char unit[CGROUP_NAME_SIZE];
	const char *const texts[FILTER_KINDS] = {cgroup, unit, ""};

	if (!f)
		return true;
	cgroup_place__parse(&place, cgroup);
	if (!label_value_set(unit, sizeof(unit), place.unit))
		*unit = '\0';
	if (matches(f->exclude, f->exclude_count, texts))
		return false;
	return !f->include_count || has_kind(f->include, f->include_count, FILTER_SERVICE) ||
	       matches(f->include, f->include_count, texts);
}
