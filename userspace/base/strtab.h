/* SPDX-License-Identifier: BSD-2-Clause */
/* Interned strings: equal strings have one number, number 0 is "". Strings never move. */
#ifndef BASE_STRTAB_H
#define BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

struct strtab;

struct strtab *strtab__new(void); /* NULL: no memory */
void strtab__free(struct strtab *table);

/* Number of the string, adding a copy of it if it is new. Negative errno: -ENOMEM. */
int64_t strtab__intern(struct strtab *table, const char *s);
/* The same: 0 or -ENOMEM. */
static inline int strtab__number(struct strtab *table, const char *s, uint32_t *number)
{
	int64_t found = strtab__intern(table, s);

	if (found >= 0)
		*number = (uint32_t)found;
	return found < 0 ? (int)found : 0;
}
/* The string; valid until the table is freed. An unknown number is "". */
const char *strtab__get(const struct strtab *table, uint32_t number);
size_t strtab__count(const struct strtab *table);
/* Array of all strings by number; valid until the next intern. */
const char *const *strtab__array(const struct strtab *table);

#endif
