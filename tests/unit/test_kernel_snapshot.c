/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's symbols and the session's facts as events. */
#include <sys/utsname.h>

#include "unit.h"
#include "base/clocks.h"
#include "base/io.h"
#include "live/proc/kernel_snapshot.h"
#include "live/proc/process_facts.h"
#include "stream/event_decode.h"
#include "stream/kallsyms_pieces.h"
#include "stream/meta.h"

struct reported {
	char *text;
	size_t size;
	unsigned int pieces;
	char meta[32][256]; /* "key=value", cut: longer than any fact of a machine */
	unsigned int meta_count;
	size_t last_value;
	int answer;
};

static int take(void *context, struct event_header *event)
{
	struct reported *reported = context;

	assert_int_equal(event_check(event, event->size), 0);
	assert_int_equal(event->time, 42);
	if (event->type == EVENT_KALLSYMS) {
		const struct kallsyms_event *e = (void *)event;

		assert_int_equal(e->piece, reported->pieces++);
		assert_true(e->text_size > 0 && e->text_size <= KALLSYMS_PIECE_MAX);
		assert_int_equal(e->text[e->text_size - 1], '\n');
		reported->text = realloc(reported->text, reported->size + e->text_size + 1);
		memcpy(reported->text + reported->size, e->text, e->text_size);
		reported->size += e->text_size;
		reported->text[reported->size] = '\0';
	} else {
		const char *key = ((struct meta_event *)event)->text;
		const char *value = key + strlen(key) + 1;

		assert_int_equal(event->type, EVENT_META);
		snprintf(reported->meta[reported->meta_count++], sizeof(reported->meta[0]), "%s=%s",
			 key, value);
		reported->last_value = strlen(value);
	}
	return reported->answer;
}

static int report_text(const char *text, size_t size, struct reported *reported)
{
	int fd = memfd_create("kallsyms", MFD_CLOEXEC), err;

	memset(reported, 0, sizeof(*reported));
	assert_int_equal(write_full(fd, text, size), 0);
	lseek(fd, 0, SEEK_SET);
	err = kernel_snapshot__kallsyms_fd(fd, 42, take, reported);
	close(fd);
	return err;
}

TEST(only_symbols_of_code_are_kept)
{
	static const char text[] = "0000000000000000 A fixed_percpu_data\n"
				   "0000000000000000 t early\n"
				   "ffffffff81000000 T _text\n"
				   "ffffffff81000001 D data\n"
				   "ffffffff81000002 t local\n"
				   "ffffffff81000003 W weak\n"
				   "ffffffff81000004 w weak2\n"
				   "ffffffff81000005 i ifunc\n"
				   "ffffffff81000006 b bss\n"
				   "ffffffffc0000000 t f\t[module]\n"
				   "ffffffffc0000001 tx\n"
				   "garbage\n"
				   "\n"
				   "ffffffffc0000002 t half a li";
	struct reported reported;

	assert_int_equal(report_text(text, strlen(text), &reported), 0);
	assert_int_equal(reported.pieces, 1);
	assert_string_equal(reported.text, "0000000000000000 t early\n"
					   "ffffffff81000000 T _text\n"
					   "ffffffff81000002 t local\n"
					   "ffffffff81000003 W weak\n"
					   "ffffffff81000004 w weak2\n"
					   "ffffffff81000005 i ifunc\n"
					   "ffffffffc0000000 t f\t[module]\n");
	free(reported.text);
	assert_int_equal(report_text("", 0, &reported), 0);
	assert_int_equal(reported.pieces, 0);
}

TEST(pieces_are_whole_lines)
{
	enum { LINES = 20000 };
	char *text = malloc(LINES * 64 + 200000);
	struct reported reported;
	size_t size = 0;

	for (int i = 0; i < LINES; i++)
		size += sprintf(text + size, "%016lx t function_%d\n", 0xffffffff81000000 + i, i);
	assert_int_equal(report_text(text, size, &reported), 0);
	assert_true(reported.pieces > 10);
	assert_int_equal(reported.size, size);
	assert_memory_equal(reported.text, text, size);
	free(reported.text);
	/* a line that is longer than any symbol is passed over, and the others are not */
	size = sprintf(text, "ffffffff81000000 t first\nffffffff81000001 t ");
	memset(text + size, 'x', 150000);
	size += 150000;
	size += sprintf(text + size, "\nffffffff81000002 t last\n");
	assert_int_equal(report_text(text, size, &reported), 0);
	assert_non_null(strstr(reported.text, " t first\n"));
	assert_non_null(strstr(reported.text, " t last\n"));
	assert_true(reported.size < 200);
	free(reported.text);
	free(text);
}

TEST(few_symbols_with_hidden_addresses_are_kept)
{
	char text[4096];
	struct reported reported;
	size_t size = 0, lines = 0;

	for (int i = 0; i < 100; i++)
		size += sprintf(text + size, "0000000000000000 T function_%d\n", i);
	assert_int_equal(report_text(text, size, &reported), 0);
	assert_int_equal(reported.pieces, 1);
	for (const char *p = reported.text; (p = strchr(p, '\n')); p++)
		lines++;
	assert_in_range(lines, 1, 20);
	free(reported.text);
}

TEST(symbols_of_the_running_kernel_are_reported)
{
	struct reported reported = {};
	uint64_t start = monotonic_ns();

	if (access("/proc/kallsyms", R_OK)) {
		print_message("no /proc/kallsyms here: not tested\n");
		skip();
	}
	assert_int_equal(kernel_snapshot__kallsyms(42, take, &reported), 0);
	print_message("%zu bytes in %u pieces, %llu ms\n", reported.size, reported.pieces,
		      (unsigned long long)(monotonic_ns() - start) / 1000000);
	assert_true(reported.pieces > 0);
	if (strncmp(reported.text, "0000000000000000", 16))
		assert_non_null(strstr(reported.text, " schedule\n"));
	free(reported.text);
	memset(&reported, 0, sizeof(reported));
	reported.answer = -ECANCELED;
	assert_int_equal(kernel_snapshot__kallsyms(42, take, &reported), -ECANCELED);
	assert_int_equal(reported.pieces, 1);
	free(reported.text);
}

static bool has_fact(const struct reported *reported, const char *key, const char *value)
{
	char fact[256];

	snprintf(fact, sizeof(fact), "%s=%s", key, value);
	for (unsigned int i = 0; i < reported->meta_count; i++) {
		if (!strcmp(reported->meta[i], fact))
			return true;
	}
	return false;
}

TEST(facts_of_the_machine_are_reported)
{
	struct reported reported = {};
	struct utsname machine;
	char cpus[16];

	uname(&machine);
	snprintf(cpus, sizeof(cpus), "%ld", sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(machine_facts__emit(take, &reported, 42), 0);
	assert_true(has_fact(&reported, "hostname", machine.nodename));
	assert_true(has_fact(&reported, "kernel", machine.release));
	assert_true(has_fact(&reported, "architecture", machine.machine));
	assert_true(has_fact(&reported, "cpus", cpus));
	assert_true(has_fact(&reported, "product", "sysprof " SYSPROF_VERSION));
	reported.answer = -ECANCELED;
	assert_int_equal(machine_facts__emit(take, &reported, 42), -ECANCELED);
}

TEST(long_values_are_cut_and_bad_keys_are_refused)
{
	char *value = malloc(40000), key[META_KEY_MAX + 1];
	struct reported reported = {};

	for (size_t i = 0; i + 3 < 40000; i += 3)
		memcpy(value + i, "\xe2\x82\xac", 4);
	assert_int_equal(meta_event__emit(take, &reported, 42, "command", value), 0);
	assert_int_equal(reported.last_value, (META_VALUE_MAX - 1) / 3 * 3);
	memset(value, 0xff, 39999);
	value[39999] = '\0';
	assert_int_equal(meta_event__emit(take, &reported, 42, "command", value), 0);
	assert_int_equal(reported.last_value, META_VALUE_MAX - 1);
	assert_int_equal(meta_event__emit(take, &reported, 42, "empty", ""), 0);
	assert_true(has_fact(&reported, "empty", ""));
	assert_int_equal(meta_event__emit(take, &reported, 42, "", "x"), -EINVAL);
	memset(key, 'k', META_KEY_MAX);
	key[META_KEY_MAX] = '\0';
	assert_int_equal(meta_event__emit(take, &reported, 42, key, "x"), -EINVAL);
	free(value);
}
