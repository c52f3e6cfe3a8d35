/* SPDX-License-Identifier: BSD-2-Clause */
/* The user's own rules: labels, and which services are sent. */
#ifndef AGENT_RULES_H
#define AGENT_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

/*
 * Labels of the user's own: "NAME = SOURCE ~ REGEX". SOURCE is cgroup (the control group's path),
 * exe (the program's path) or env:VARIABLE. REGEX is POSIX extended; its first group is the value,
 * or all that it matches. Without "~ REGEX" the value is the whole text. A rule that does not match
 * gives no label; of several with one name the first that matches counts.
 *
 *   team = cgroup ~ ^/kubepods.*team-([a-z]+)
 *   job  = env:SLURM_JOB_ID
 *
 * A rule with the name of a label that there is anyway overrides it; one named service_name ranks
 * behind the process's own facts.
 */

#define LABEL_RULES_MAX 12 /* with those that there are anyway: LABELS_MAX */

struct label_rules;

/* 0, -EINVAL (`failure` has the rule and the reason), -E2BIG: too many, -ENOMEM. */
int label_rules__new(const char *const *texts, size_t count, struct label_rules **rules,
		     struct failure *failure);
void label_rules__free(struct label_rules *rules);

size_t label_rules__count(const struct label_rules *rules);
const char *label_rules__name(const struct label_rules *rules, size_t i);

/* The variables that they look at: for session_options. Each once. Valid as long as the rules. */
const char *const *label_rules__variables(const struct label_rules *rules, size_t *count);

/* The input of a rule. NULL: unknown. `variable` looks a variable of the environment up. */
struct label_subject {
	const char *cgroup, *exe;
	const char *(*variable)(const void *context, const char *name);
	const void *context;
};

/* The value, fit to be a label; `size` of it. False: it does not match. */
bool label_rules__apply(const struct label_rules *rules, size_t i,
			const struct label_subject *subject, char *value, size_t size);

/* ---- filters --------------------------------------------------------------------------------- */

/*
 * Which services are sent: rules "cgroup=PATTERN", "unit=PATTERN", "service=PATTERN", with the
 * shell's *, ? and []. A pattern of cgroup without these is the group and all below. A service is
 * left out if it matches an exclude rule or, if there are include rules, none of them.
 */

#define FILTER_RULES_MAX 64

struct service_filter;

/* 0, -EINVAL (`failure` has the rule and the reason), -E2BIG, -ENOMEM. */
int service_filter__new(const char *const *include, size_t include_count,
			const char *const *exclude, size_t exclude_count,
			struct service_filter **filter, struct failure *failure);
void service_filter__free(struct service_filter *f);

/* "": there is none. `f` NULL: all are sent. */
bool service_filter__passes(const struct service_filter *f, const char *cgroup, const char *unit,
			    const char *service);

/* Can any process of this control group pass? False: none, so none of it need be sampled. */
bool service_filter__may_pass(const struct service_filter *f, const char *cgroup);

#endif
