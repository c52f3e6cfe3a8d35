/* SPDX-License-Identifier: BSD-2-Clause */
/* Texts of tenants, made fit to be labels, and lists of attributes that they give in one variable. */
#ifndef AGENT_LABEL_TEXT_H
#define AGENT_LABEL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent_window.h"

#define LABEL_SERVICE_MAX 255 /* bytes of a service's name */

/* A name that all backends take, and that is not the backends' own. */
bool label_name_is_valid(const char *name);

/*
 * A value that all backends take: what is not valid UTF-8 and control characters become "_", blanks at both ends go, and
 * what is too long is cut between two characters. `size`: of `value`, AGENT_LABEL_VALUE_MAX + 1 bytes at most are used.
 * False: nothing is left.
 */
bool label_value_set(char *value, size_t size, const char *text);

/*
 * OTEL_RESOURCE_ATTRIBUTES, "key=value,key=value" with percent-encoded values: the attribute of this name, decoded, into
 * `value` as above. A pair that is not sound voids all of them, as the specification says. False: there is none.
 */
bool resource_attribute(const char *text, const char *name, char *value, size_t size);

#endif
