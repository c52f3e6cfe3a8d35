/* SPDX-License-Identifier: BSD-2-Clause */
/* What all exporters have in common: how they are found, full disks, and equal output. */
#include "export_support.h"

#include <errno.h>

static void test_suffixes(void **state)
{
	static const struct {
		const char *path, *format;
	} cases[] = {
		{"a.json", "firefox"},
		{"a.json.gz", "firefox"},
		{"/tmp/x.y/a.b.json", "firefox"},
		{"a.cpuprofile", "cpuprofile"},
		{"a.folded", "folded"},
		{"a.txt", "text"},
		{"trace.json", "firefox"},
		{"a.trace.json.json", "firefox"},
		{"a.trace.json", "trace"},
		{"a.trace.json.gz", "trace"},
		{"/x.json/a.trace.json", "trace"},
		{"a.pb.gz", "pprof"},
		{"a.pb", NULL},
		{"a.html", "html"},
		{"a.sysprof", NULL},
		{"a.gz", NULL},
		{"a.JSON", NULL},
		{".json", NULL},
		{"/tmp/.json.gz", NULL},
		{"json", NULL},
		{"", NULL},
		{"/tmp/a.json/b", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *why = NULL;
		const struct exporter *exporter = exporter_for_path(cases[i].path, &why);

		if (cases[i].format) {
			assert_non_null(exporter);
			assert_string_equal(exporter->name, cases[i].format);
			assert_null(why);
		} else {
			assert_null(exporter);
			assert_non_null(why);
		}
	}
}

/* Half a gigabyte of JSON is more than V8 takes, of anything else it is not. */
static void test_too_big(void **state)
{
	const uint64_t most = 536870888;

	(void)state;
	for (const struct exporter *const *e = exporters(); *e; e++) {
		bool is_json = strstr((*e)->suffixes[0], "json") || *e == &cpuprofile_exporter;

		assert_null(export_size_problem(*e, most));
		assert_true(is_json == (export_size_problem(*e, most + 1) != NULL));
	}
}

static void test_names(void **state)
{
	(void)state;
	for (const struct exporter *const *e = exporters(); *e; e++) {
		assert_ptr_equal(exporter_by_name((*e)->name), *e);
		assert_non_null((*e)->suffixes[0]);
		assert_non_null(strstr((*e)->how_to_open, "%s"));
	}
	assert_null(exporter_by_name("fire"));
	assert_null(exporter_by_name(""));
}

static void test_full_disk(void **state)
{
	struct export_request request = {0};
	struct fixture f;

	(void)state;
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
	profile_builder__free(f.b);
}

/* [C11] For all formats. */
static void test_same_input_same_bytes(void **state)
{
	(void)state;
	for (const struct exporter *const *e = exporters(); *e; e++) {
		struct fixture a, b;
		const struct profile *p = build_random(&a, 7, 6, 600);
		const struct profile *q = build_random(&b, 7, 6, 600);
		size_t size, again_size, other_size;
		char *first = export_bytes(*e, p, NULL, &size);
		char *again = export_bytes(*e, p, NULL, &again_size);
		char *other = export_bytes(*e, q, NULL, &other_size);

		assert_true(size > 0 && size == again_size && size == other_size);
		assert_memory_equal(first, again, size);
		assert_memory_equal(first, other, size);
		free(first);
		free(again);
		free(other);
		profile_builder__free(a.b);
		profile_builder__free(b.b);
	}
}

static void test_unknown_thread(void **state)
{
	struct fixture f;
	const struct export_request request = {
		.profile = build_profile(&f, "gaps"),
		.out = fopen("/dev/null", "we"),
		.thread = {99},
	};

	(void)state;
	assert_non_null(request.out);
	assert_int_equal(cpuprofile_exporter.write(&request), -EINVAL);
	fclose(request.out);
	profile_builder__free(f.b);
}

static void test_busiest_thread(void **state)
{
	struct fixture f;
	const struct profile *p = build_profile(&f, "processes");

	(void)state;
	assert_string_equal(profile__string(p, p->threads[export_busiest_thread(p).v].name),
			    "again");
	profile_builder__free(f.b);
	p = build_profile(&f, "empty");
	assert_int_equal(export_busiest_thread(p).v, 0);
	profile_builder__free(f.b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_suffixes),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_too_big),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_same_input_same_bytes),
		cmocka_unit_test(test_unknown_thread),
		cmocka_unit_test(test_busiest_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
