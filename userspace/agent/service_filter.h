/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which services are sent: rules "cgroup=PATTERN", "unit=PATTERN" and "service=PATTERN", with the shell's *, ? and [].
 * A pattern of cgroup that has none of these means the group and all below it. What any exclude rule matches is left out;
 * if there are include rules, so is what none of them matches.
 */
#ifndef AGENT_SERVICE_FILTER_H
#define AGENT_SERVICE_FILTER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"

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

/*
 * Can any process of this control group pass? False: none can, whatever its service is called, so nothing of it need be
 * sampled.
 */
bool service_filter__may_pass(const struct service_filter *f, const char *cgroup);

#endif
