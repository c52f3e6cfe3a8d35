/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/rules.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_window.h"
#include "base/cleanup.h"
#include "base/order.h"
#include "live/proc/environment.h"
#include "live/proc/fact_reader.h"
#include "services/cgroup_path.h"
#include "services/label_set.h"

#define REGEX_MAX   512	 /* bytes */
#define SUBJECT_MAX 2048 /* bytes that are matched: the time that this takes grows with them */
#define PATTERN_MAX 1024 /* bytes, of a filter */

enum rule_source { RULE_CGROUP, RULE_EXE, RULE_ENV };

struct label_rule {
	char name[LABEL_NAME_MAX + 1];
	enum rule_source source;
	char variable[ENVIRONMENT_NAME_MAX];
	bool has_regex;
	regex_t regex;
};

struct label_rules {
	struct label_rule rules[LABEL_RULES_MAX];
	size_t count;
	const char *variables[LABEL_RULES_MAX];
	size_t variable_count;
};

/* ---- reading them ---------------------------------------------------------------------------- */

static int set_source(struct label_rule *rule, const char *source)
{
	if (!strcmp(source, "cgroup")) {
		rule->source = RULE_CGROUP;
	} else if (!strcmp(source, "exe")) {
		rule->source = RULE_EXE;
	} else if (!strncmp(source, "env:", 4) && environment_name_is_valid(source + 4)) {
		rule->source = RULE_ENV;
		memcpy(rule->variable, source + 4, strlen(source + 4) + 1);
	} else {
		return -EINVAL;
	}
	return 0;
}

/* A reference back makes matching take exponential time, in texts that are a tenant's. */
static bool refers_back(const char *regex)
{
	for (const char *at = regex; (at = strchr(at, '\\')) && at[1]; at += 2)
		if (isdigit((unsigned char)at[1]))
			return true;
	return false;
}

static int set_regex(struct label_rule *rule, const char *text, const char *whole,
		     struct failure *failure)
{
	char why[128];
	int err;

	if (!*text || strlen(text) > REGEX_MAX)
		return fail(failure, -EINVAL, "label rule \"%s\": the expression is %s", whole,
			    *text ? "too long" : "empty");
	if (refers_back(text))
		return fail(failure, -EINVAL, "label rule \"%s\": back-references are not taken",
			    whole);
	err = regcomp(&rule->regex, text, REG_EXTENDED);
	if (err) {
		regerror(err, &rule->regex, why, sizeof(why));
		return fail(failure, err == REG_ESPACE ? -ENOMEM : -EINVAL, "label rule \"%s\": %s",
			    whole, why);
	}
	rule->has_regex = true;
	return 0;
}

static int parse_rule(struct label_rule *rule, const char *text, struct failure *failure)
{
	_cleanup_free_ char *copy = strdup(text);
	char *source, *regex, *name;

	if (!copy)
		return fail(failure, -ENOMEM, "out of memory");
	source = strchr(copy, '=');
	if (!source)
		return fail(failure, -EINVAL, "label rule \"%s\": expected NAME = SOURCE ~ REGEX",
			    text);
	*source++ = '\0';
	regex = strchr(source, '~');
	if (regex)
		*regex++ = '\0';
	name = trim_blanks(copy);
	if (!label_name_is_valid(name) || !strcmp(name, "service_source"))
		return fail(failure, -EINVAL, "label rule \"%s\": \"%s\" cannot be a label's name",
			    text, name);
	memcpy(rule->name, name, strlen(name) + 1);
	if (set_source(rule, trim_blanks(source)))
		return fail(failure, -EINVAL,
			    "label rule \"%s\": expected cgroup, exe or env:VARIABLE, not \"%s\"",
			    text, trim_blanks(source));
	return regex ? set_regex(rule, trim_blanks(regex), text, failure) : 0;
}

static void add_variable(struct label_rules *rules, const char *name)
{
	for (size_t i = 0; i < rules->variable_count; i++)
		if (!strcmp(rules->variables[i], name))
			return;
	rules->variables[rules->variable_count++] = name;
}

int label_rules__new(const char *const *texts, size_t count, struct label_rules **result,
		     struct failure *failure)
{
	struct label_rules *rules;
	int err = 0;

	if (count > LABEL_RULES_MAX)
		return fail(failure, -E2BIG, "more than %d label rules", LABEL_RULES_MAX);
	rules = calloc(1, sizeof(*rules));
	if (!rules)
		return fail(failure, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count && !err; i++) {
		struct label_rule *rule = &rules->rules[rules->count];

		err = parse_rule(rule, texts[i], failure);
		if (err)
			break;
		rules->count++;
		if (rule->source == RULE_ENV)
			add_variable(rules, rule->variable);
	}
	return finish_new(err, rules, label_rules__free, result);
}

void label_rules__free(struct label_rules *rules)
{
	if (!rules)
		return;
	for (size_t i = 0; i < rules->count; i++)
		if (rules->rules[i].has_regex)
			regfree(&rules->rules[i].regex);
	free(rules);
}

size_t label_rules__count(const struct label_rules *rules)
{
	return rules ? rules->count : 0;
}

const char *label_rules__name(const struct label_rules *rules, size_t i)
{
	return rules->rules[i].name;
}

const char *const *label_rules__variables(const struct label_rules *rules, size_t *count)
{
	*count = rules ? rules->variable_count : 0;
	return rules ? rules->variables : NULL;
}

/* ---- applying them --------------------------------------------------------------------------- */

static const char *text_of(const struct label_rule *rule, const struct label_subject *subject)
{
	switch (rule->source) {
	case RULE_CGROUP:
		return subject->cgroup;
	case RULE_EXE:
		return subject->exe;
	case RULE_ENV:
		return subject->variable ? subject->variable(subject->context, rule->variable)
					 : NULL;
	}
	return NULL;
}

bool label_rules__apply(const struct label_rules *rules, size_t i,
			const struct label_subject *subject, char *value, size_t size)
{
	const struct label_rule *rule = &rules->rules[i];
	const char *text = text_of(rule, subject);
	char matched[SUBJECT_MAX];
	regmatch_t groups[2];
	const regmatch_t *group;

	if (!text || strlen(text) >= sizeof(matched))
		return false;
	if (!rule->has_regex)
		return label_value_set(value, size, text);
	if (regexec(&rule->regex, text, 2, groups, 0))
		return false;
	group = rule->regex.re_nsub ? &groups[1] : &groups[0];
	if (group->rm_so < 0)
		return false;
	memcpy(matched, text + group->rm_so, group->rm_eo - group->rm_so);
	matched[group->rm_eo - group->rm_so] = '\0';
	return label_value_set(value, size, matched);
}

/* ---- filters --------------------------------------------------------------------------------- */

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

static int parse_filter(struct filter_rule *rule, const char *text, struct failure *failure)
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

static int parse_filters(struct filter_rule *rules, size_t *parsed, const char *const *texts,
			 size_t count, struct failure *failure)
{
	int err = 0;

	if (count > FILTER_RULES_MAX)
		return fail(failure, -E2BIG, "more than %d filters of a kind", FILTER_RULES_MAX);
	for (size_t i = 0; i < count && !err; i++) {
		err = parse_filter(&rules[i], texts[i], failure);
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
	err = parse_filters(f->include, &f->include_count, include, include_count, failure)
		      ?: parse_filters(f->exclude, &f->exclude_count, exclude, exclude_count,
				       failure);
	return finish_new(err, f, service_filter__free, filter);
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
	return any_of(rules, count, r, r->kind == kind);
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
