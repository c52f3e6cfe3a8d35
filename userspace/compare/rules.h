/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of a gate: quantities that must not become worse, and their tolerance. */
#ifndef COMPARE_RULES_H
#define COMPARE_RULES_H

#include "compare/compare.h"

/* 0; -EINVAL: not a rule. The text is not copied. */
int compare_rule__parse(struct compare_rule *rule, const char *text);
struct compare_ruling compare_rule__apply(const struct compare_rule *rule,
					  const struct comparison *c,
					  const struct compare_result *result);

#endif
