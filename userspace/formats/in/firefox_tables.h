/* SPDX-License-Identifier: BSD-2-Clause */
/* Libraries, categories, columns of tables and their stacks of a Firefox profile (firefox.h). */
#ifndef FORMATS_IN_FIREFOX_TABLES_H
#define FORMATS_IN_FIREFOX_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include <sysprof/profile.h>

#include "formats/in/json.h"

struct firefox_common;
struct firefox_in;

int firefox_common__libs(struct firefox_common *common, struct json_value libs);
int firefox_common__categories(struct firefox_common *common, struct json_value categories);
void firefox_common__fini(struct firefox_common *common);

/* Read the tables of `shared` or of a thread. `strings`, `sources`: used if it has none. -ENOENT: it has no stacks. */
int firefox_in__read(struct firefox_in *in, struct firefox_common *common, struct json_value tables,
		     struct json_value strings, struct json_value sources);
/* Room for what is made of `count` stacks, whose frames and prefixes are there. 0 or -ENOMEM. */
int firefox_in__add_stacks(struct firefox_in *in, size_t count);
void firefox_in__fini(struct firefox_in *in);

/* A string by a number below strings.count; a negative one is none. */
int firefox_in__string(struct firefox_in *in, int32_t number, struct string_id *id);

/*
 * A stack of a sample, by a number below stacks.count. `process`: whose JIT code it is. *idle: its
 * leaf is of the category Idle.
 */
int firefox_in__stack(struct firefox_in *in, uint32_t number, struct process_id process,
		      struct stack_id *stack, bool *idle);

#endif
