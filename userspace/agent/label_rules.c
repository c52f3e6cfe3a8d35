/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/label_rules.h"

#include <ctype.h>
#include <errno.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent_window.h"
#include "agent/label_set.h"
#include "base/cleanup.h"

#define REGEX_MAX   512	 /* bytes */
#define SUBJECT_MAX 2048 /* bytes that are matched: the time that this takes grows with them */
#define NAME_MAX_   64	 /* of a variable */

enum rule_source { RULE_CGROUP, RULE_EXE, RULE_ENV };

struct label_rule {
	char name[AGENT_LABEL_NAME_MAX + 1];
	enum rule_source source;
	char variable[NAME_MAX_];
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

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		text[--length] = '\0';
	return text;
}

static bool is_variable(const char *name)
{
	size_t length = strlen(name);

	if (!length || length >= NAME_MAX_ || isdigit((unsigned char)*name))
		return false;
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)name[i]) && name[i] != '_')
			return false;
	return true;
}

static int set_source(struct label_rule *rule, const char *source)
{
	if (!strcmp(source, "cgroup")) {
		rule->source = RULE_CGROUP;
	} else if (!strcmp(source, "exe")) {
		rule->source = RULE_EXE;
	} else if (!strncmp(source, "env:", 4) && is_variable(source + 4)) {
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
	name = trim(copy);
	if (!label_name_is_valid(name) || !strcmp(name, "service_source"))
		return fail(failure, -EINVAL, "label rule \"%s\": \"%s\" cannot be a label's name",
			    text, name);
	memcpy(rule->name, name, strlen(name) + 1);
	if (set_source(rule, trim(source)))
		return fail(failure, -EINVAL,
			    "label rule \"%s\": expected cgroup, exe or env:VARIABLE, not \"%s\"",
			    text, trim(source));
	return regex ? set_regex(rule, trim(regex), text, failure) : 0;
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
	if (err) {
		label_rules__free(rules);
		return err;
	}
	*result = rules;
	return 0;
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
