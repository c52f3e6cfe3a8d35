/* SPDX-License-Identifier: BSD-2-Clause */
#include "tenants/outside_books.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clocks.h"
#include "base/map.h"
#include "tenants/tenant_user.h"

#define KNOWN_PIDS 256		 /* a power of two */
#define KNOWN_NS   1000000000ull /* how long the user of a process is cached */
#define FIRST_NAMESPACE                                                                            \
	0xF0000000u /* from here on numbers are those of namespaces (tenant_user.h) */

const struct outside_text outside_things[OUTSIDE_THING_COUNT] = {
#define X(id, name, unit, text) [OUTSIDE_##id] = {name, unit, text, false},
	OUTSIDE_THINGS(X)
#undef X
};

const struct outside_text outside_reasons[OUTSIDE_REASON_COUNT] = {
#define X(id, name, waited, text) [OUTSIDE_BY_##id] = {name, NULL, text, waited},
	OUTSIDE_REASONS(X)
#undef X
};

void outside_user__describe(char *text, size_t size, uint32_t user)
{
	if (user == OUTSIDE_USER_OTHERS)
		snprintf(text, size, "other users");
	else if (user == OUTSIDE_USER_UNKNOWN)
		snprintf(text, size, "users of processes that were gone");
	else
		snprintf(text, size, "user%s %" PRIu32, user >= FIRST_NAMESPACE ? " namespace" : "",
			 user);
}

void outside_row__describe(char *text, size_t size, const struct outside_row *row)
{
	char user[64];

	outside_user__describe(user, sizeof(user), row->user);
	snprintf(text, size, "%s: %" PRIu64 " %s %s (%s): %s", user, row->count,
		 outside_things[row->thing].unit,
		 outside_reasons[row->reason].waited ? "late" : "left",
		 outside_things[row->thing].text, outside_reasons[row->reason].text);
}

/* ---- the books ------------------------------------------------------------------------------- */

struct known_pid {
	pid_t pid;
	uint32_t user;
	uint64_t until; /* CLOCK_MONOTONIC ns */
};

MAP_TYPE(row_map, struct outside_row);
MAP_FUNCTIONS_BY_NUMBER(row_map, struct outside_row,
			(uint64_t)entry->user << 16 | (uint64_t)entry->thing << 8 | entry->reason);

struct outside_books {
	struct row_map rows;
	uint32_t users[OUTSIDE_USERS_MAX];
	size_t user_count;
	struct known_pid known[KNOWN_PIDS];
	size_t emitted; /* rows before this one have nothing new */
};

struct outside_books *outside_books__new(void)
{
	return calloc(1, sizeof(struct outside_books));
}

void outside_books__free(struct outside_books *b)
{
	if (!b)
		return;
	row_map__fini(&b->rows);
	free(b);
}

/* The user's row in the books: its own, as long as there is room. */
static uint32_t user_in(struct outside_books *b, uint32_t user)
{
	if (user == OUTSIDE_USER_UNKNOWN)
		return user;
	for (size_t i = 0; i < b->user_count; i++)
		if (b->users[i] == user)
			return user;
	if (b->user_count == OUTSIDE_USERS_MAX)
		return OUTSIDE_USER_OTHERS;
	b->users[b->user_count++] = user;
	return user;
}

void outside_books__add(struct outside_books *b, uint32_t user, enum outside_thing thing,
			enum outside_reason reason, uint64_t count)
{
	struct outside_row key = {.thing = (uint8_t)thing, .reason = (uint8_t)reason}, *row;

	if (!b || !count)
		return;
	key.user = user_in(b, user);
	row = row_map__need(&b->rows, &key, NULL);
	if (!row)
		return;
	if (!row->count)
		row->since = monotonic_ns();
	row->count += count;
	b->emitted = 0;
}

uint32_t outside_books__user_of(struct outside_books *b, pid_t pid)
{
	uint64_t now = monotonic_ns();
	struct known_pid *known;

	if (!b)
		return OUTSIDE_USER_UNKNOWN;
	known = &b->known[(unsigned int)pid & (KNOWN_PIDS - 1)];
	if (known->pid != pid || now >= known->until)
		*known = (struct known_pid){pid, tenant_user(pid), now + KNOWN_NS};
	return known->user;
}

bool outside_books__take(struct outside_books *b, struct outside_row *row)
{
	for (; b->emitted < b->rows.count; b->emitted++) {
		struct outside_row *next = &b->rows.data[b->emitted];

		if (!next->count)
			continue;
		*row = *next;
		next->count = next->since = 0;
		b->emitted++;
		return true;
	}
	return false;
}
