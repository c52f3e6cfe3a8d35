/* SPDX-License-Identifier: BSD-2-Clause */
/* When the symbols of the kernel's modules are read again: by lists that change, and for addresses without names. */
#include "unit.h"
#include "live/proc/kernel_snapshot.h"
#include "stream/event_decode.h"

#define S 1000000000ull

struct reported {
	char text[4096];
	unsigned int events, last;
};

static int take(void *context, struct event_header *event)
{
	const struct kallsyms_event *e = (const void *)event;
	struct reported *reported = context;

	assert_int_equal(event_check(event, event->size), 0);
	assert_int_equal(event->type, EVENT_KALLSYMS);
	assert_true(event->flags & EVENT_KALLSYMS_MODULES);
	assert_int_equal(e->piece, reported->events++);
	reported->last += (event->flags & EVENT_KALLSYMS_LAST) != 0;
	strncat(reported->text, e->text, e->text_size);
	return 0;
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static struct reported look(struct kernel_modules *m, uint64_t now)
{
	struct reported reported = {};

	assert_int_equal(kernel_modules__look(m, now, take, &reported), 0);
	assert_int_equal(reported.last, reported.events ? 1 : 0);
	return reported;
}

TEST(changes_and_unnamed_addresses_cause_new_readings)
{
	char list[] = "/tmp/modules-XXXXXX", symbols[] = "/tmp/kallsyms-XXXXXX";
	struct kernel_modules m;
	uint64_t now = 1000 * S, last = 0, longest = 0;
	unsigned int readings = 0;

	close(mkstemp(list));
	close(mkstemp(symbols));
	kernel_modules__init(&m, now);
	m.list = list;
	m.symbols = symbols;
	write_text(list, "ext4 1000 1 - Live 0xffffffffc0000000\n");
	write_text(symbols, "ffffffff81000000 T image\nffffffffc0000000 t f\t[ext4]\n");
	/* what is there was not there when it was looked at first */
	assert_int_equal(look(&m, now + 29 * S).events, 0);
	assert_string_equal(look(&m, now + 31 * S).text, "ffffffffc0000000 t f\t[ext4]\n");
	now += 100 * S;
	assert_int_equal(look(&m, now).events, 0);
	/* the use of a module is no change; an unload or another address is */
	write_text(list, "ext4 1000 2 jbd2, Live 0xffffffffc0000000\n");
	assert_int_equal(look(&m, now += 100 * S).events, 0);
	write_text(list, "ext4 1000 2 jbd2, Live 0xffffffffc0040000\n");
	assert_int_equal(look(&m, now + 1 * S).events, 0);
	assert_int_equal(look(&m, now += 31 * S).events, 1);
	write_text(list, "");
	write_text(symbols, "ffffffff81000000 T image\n");
	/* nothing is left: that is reported as well */
	assert_int_equal(look(&m, now += 31 * S).events, 1);
	/* hidden addresses are not reported */
	write_text(symbols, "0000000000000000 t f\t[ext4]\n");
	write_text(list, "ext4 1000 2 jbd2, Live 0x0000000000000000\n");
	assert_int_equal(look(&m, now += 31 * S).events, 0);
	/* addresses without names, all day: less and less often, but again and again */
	write_text(symbols, "ffffffff81000000 T image\n");
	for (uint64_t end = now + 86400 * S; now < end; now += 15 * S) {
		kernel_modules__want(&m);
		if (!look(&m, now).events)
			continue;
		readings++;
		longest = last && now - last > longest ? now - last : longest;
		last = now;
	}
	assert_in_range(readings, 24, 40);
	assert_in_range(longest, 3600 * S, 3615 * S);
	/* a change is not made to wait for that */
	write_text(list, "xfs 1 0 - Live 0xffffffffc0000000\n");
	assert_int_equal(look(&m, now += 31 * S).events, 1);
	kernel_modules__want(&m);
	assert_int_equal(look(&m, now += 31 * S).events, 1);
	unlink(list);
	unlink(symbols);
}

/* The kernel's own files, whatever they have here: it has no modules where there is no list. */
TEST(an_unchanged_list_of_modules_causes_no_reading)
{
	struct kernel_modules m;
	struct reported *reported = calloc(1, sizeof(*reported));

	kernel_modules__init(&m, 1000 * S);
	assert_int_equal(m.loaded == 0, access("/proc/modules", R_OK) != 0);
	assert_int_equal(kernel_modules__look(&m, 2000 * S, take, reported), 0);
	assert_int_equal(m.readings, 0);
	free(reported);
}
