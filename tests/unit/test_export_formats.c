/* SPDX-License-Identifier: BSD-2-Clause */
/* What all exporters have in common: how they are found, full disks, and equal output. */
#include "export_support.h"
#include "formats/out/html_data.h"

#include "formats/out/describe.h"
#include "formats/out/exporters.h"
#include "formats/out/report.h"
#include "models/profile_dump.h"
#include "profile/figures.h"

/* Half a gigabyte of JSON is more than V8 takes, of anything else it is not. */
TEST(only_json_exports_have_a_size_limit)
{
	const uint64_t most = 536870888;

	for (const struct exporter *const *e = exporters(); *e; e++) {
		bool is_json = strstr((*e)->suffixes[0], "json") || *e == &cpuprofile_exporter;

		assert_null(export_size_problem(*e, most));
		assert_true(is_json == (export_size_problem(*e, most + 1) != NULL));
	}
}

TEST(exporters_are_found_by_their_exact_names)
{
	for (const struct exporter *const *e = exporters(); *e; e++) {
		assert_ptr_equal(exporter_by_name((*e)->name), *e);
		assert_non_null((*e)->suffixes[0]);
		assert_non_null(strstr((*e)->how_to_open, "%s"));
	}
	assert_null(exporter_by_name("fire"));
	assert_null(exporter_by_name(""));
}

TEST(a_full_disk_is_an_export_error)
{
	struct export_request request = {0};
	_cleanup_fixture_ struct fixture f;

	request.profile = build_random(&f, 1, 4, 4000); /* more than a FILE's buffer */
	for (const struct exporter *const *e = exporters(); *e; e++) {
		FILE *full = fopen("/dev/full", "we");
		int err;

		assert_non_null(full);
		request.out = full;
		err = (*e)->write(&request);
		if (!err && fflush(full))
			err = -errno;
		if (!err && ferror(full))
			err = -EIO;
		assert_true(err < 0);
		fclose(full);
	}
}

TEST(equal_profiles_are_exported_as_equal_bytes)
{
	for (const struct exporter *const *e = exporters(); *e; e++) {
		struct fixture a, b;
		const struct profile *p = build_random(&a, 7, 6, 600);
		const struct profile *q = build_random(&b, 7, 6, 600);
		size_t size, again_size, other_size;
		_cleanup_free_ char *first = export_bytes(*e, p, NULL, &size);
		_cleanup_free_ char *again = export_bytes(*e, p, NULL, &again_size);
		_cleanup_free_ char *other = export_bytes(*e, q, NULL, &other_size);

		assert_true(size > 0 && size == again_size && size == other_size);
		assert_memory_equal(first, again, size);
		assert_memory_equal(first, other, size);
		profile_builder__free(a.b);
		profile_builder__free(b.b);
	}
}

TEST(an_unknown_thread_is_an_invalid_request)
{
	_cleanup_fixture_ struct fixture f;
	const struct export_request request = {
		.profile = build_profile(&f, "gaps"),
		.out = fopen("/dev/null", "we"),
		.thread = {99},
	};

	assert_non_null(request.out);
	assert_int_equal(cpuprofile_exporter.write(&request), -EINVAL);
	fclose(request.out);
}

TEST(the_busiest_thread_is_that_with_the_most_events)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_profile(&f, "processes");

	assert_string_equal(profile__string(p, p->threads[export_busiest_thread(p).v].name),
			    "again");
	profile_builder__free(f.b);
	p = build_profile(&f, "empty");
	assert_int_equal(export_busiest_thread(p).v, 0);
}

/* Text of a size, which may have zeros before its end. */
static void assert_has(const char *data, size_t size, const char *wanted)
{
	assert_non_null(memmem(data, size, wanted, strlen(wanted)));
}

static int join_comments(void *context, const char *text)
{
	return fputs(text, context) == EOF ? -EIO : 0;
}

static int write_comments(const struct profile *p, FILE *out)
{
	return export_comments(p, join_comments, out);
}

static int write_report(const struct profile *p, FILE *out)
{
	const struct export_request request = {.profile = p, .out = out};

	return report_write(&request, &(struct report_options){.json = true});
}

static int write_dump(const struct profile *p, FILE *out)
{
	profile_dump(p, out);
	return 0;
}

static void assert_writes(int (*write)(const struct profile *p, FILE *out), const struct profile *p,
			  const char *wanted)
{
	_cleanup_free_ char *data = NULL;
	size_t size;
	FILE *out = open_memstream(&data, &size);

	assert_int_equal(write(p, out), 0);
	fclose(out);
	assert_has(data, size, wanted);
}

static int write_page(const struct profile *p, FILE *out)
{
	return html_write_data(p, NULL, NULL, out);
}

TEST(a_figure_is_in_every_format)
{
	static const struct {
		const struct exporter *exporter;
		const char *wanted;
	} files[] = {
		{&firefox_exporter,
		 "{\"label\":\"Inlined functions left out\",\"format\":\"integer\",\"value\":98765}"},
		{&cpuprofile_exporter, "\"inlinedLeftOut\":98765,"},
		{&trace_exporter, "\"inlinedLeftOut\":98765,"},
		{&text_exporter, "# left out   98765 inlined functions\n"},
	};
	_cleanup_fixture_ struct fixture f;
	struct profile p = *build_profile(&f, "recursion");

	p.inlined_left_out = 98765;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		_cleanup_free_ char *text = export_text(files[i].exporter, &p, NULL);

		assert_has(text, strlen(text), files[i].wanted);
	}
	assert_writes(write_report, &p, "\"inlined_left_out\":98765,");
	assert_writes(write_page, &p,
		      "\"left_out\":[{\"count\":98765,\"text\":\"inlined functions\"}]");
	assert_writes(write_comments, &p, "left out: 98765 inlined functions");
	assert_writes(write_dump, &p, "\ninlined-left-out 98765\n");
}

/* By /proc/stat; of ticks that were not run, those while the hypervisor had the CPU. */
TEST(times_by_the_kernel_are_in_every_format)
{
	static const char times[] = "irq 0.010 s, softirq 1.500 s, steal 0.003 s, guest 0.250 s";
	static const struct {
		const struct exporter *exporter;
		const char *stolen;
	} files[] = {
		{&firefox_exporter, "\"value\":3}"},
		{&cpuprofile_exporter,
		 "\"softirq\":1500000000,\"steal\":3000000,\"guest\":250000000},\"stolenTicks\":3,"},
		{&trace_exporter,
		 "\"softirq\":1500000000,\"steal\":3000000,\"guest\":250000000},\"stolenTicks\":3,"},
		{&text_exporter, "# stolen     3 ticks not run while the hypervisor had the CPU\n"},
	};
	_cleanup_fixture_ struct fixture f;
	struct profile p = *build_profile(&f, "recursion");
	struct profile_cpu_books books = p.books[0];

	books.times[CPU_TIME_IRQ] = 10 * MS;
	books.times[CPU_TIME_SOFTIRQ] = 1500 * MS;
	books.times[CPU_TIME_STEAL] = 3 * MS;
	books.times[CPU_TIME_GUEST] = 250 * MS;
	books.count[BOOK_NOT_RUN] = 5;
	p.books = &books;
	p.books_count = 1;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		_cleanup_free_ char *text = export_text(files[i].exporter, &p, NULL);

		assert_has(text, strlen(text), files[i].stolen);
		if (i == 0 || files[i].exporter == &text_exporter)
			assert_has(text, strlen(text), times);
	}
	assert_writes(write_report, &p,
		      "\"steal\":3000000,\"guest\":250000000},\"stolen_ticks\":3,");
	assert_writes(write_page, &p, "\"steal\":3000000,\"guest\":250000000},\"stolen_ticks\":3,");
	assert_writes(write_comments, &p, times);
	assert_writes(write_comments, &p, "ticks not run while the hypervisor had the CPU: 3");
}

/* Files are in the goldens. */
TEST(page_and_comments_show_the_counts_of_visits)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_profile(&f, "waits");

	assert_writes(write_page, p, "\"visits\":{\"hz\":200,\"cpu_ns\":12345,\"due\":20,");
	assert_writes(write_comments, p, "visits: 19 of 20 due at 200 a second, 0.000 s of CPU;");
}

/* Each has a key and a text: a row of an X-macro of event.h that is not in the table has neither. */
TEST(every_figure_has_a_key_and_a_text)
{
	for (unsigned int id = 0; id < FIGURE_COUNT; id++) {
		if (id == FIGURE_LEFT_OUT_END || id == FIGURE_STATES + WALL_NONE)
			continue;
		assert_true(figure_table[id].key && *figure_table[id].key);
		assert_non_null(figure_table[id].text);
	}
}
