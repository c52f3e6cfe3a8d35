/* SPDX-License-Identifier: BSD-2-Clause */
/* What comparisons are made with: names that survive a rebuild, distributions, the family of tests. */
#include "compare/compare.h"
#include "compare/merged.h"
#include "compare/names.h"
#include "compare/statistics.h"

#include "export_support.h"

#include <math.h>

/* ---- names ----------------------------------------------------------------------------------- */

TEST(stable_names_survive_a_rebuild)
{
	static const char *const same[][2] = {
		{"parse", "parse"},
		{"parse.isra.0", "parse"},
		{"parse.constprop.0.isra.1", "parse"},
		{"parse.part.3.cold", "parse"},
		{"parse.cold", "parse"},
		{"parse.llvm.1234567890", "parse"},
		{"parse.lto_priv.0", "parse"},
		{"parse(int) [clone .isra.0]", "parse(int)"},
		{"a::b::h0123456789abcdef", "a::b"},
		{"a::{closure#3}::h0123456789abcdef", "a::{closure#}"},
		{"run()::{lambda(int)#2}::operator()(int) const",
		 "run()::{lambda(int)#}::operator()(int) const"},
		{"run()::$_0::operator()", "run()::$_::operator()"},
		{"main.run.func1", "main.run.func"},
		{"main.run.func1.2", "main.run.func"},
		{"a.B$$Lambda$14/0x00007f1234.run", "a.B$$Lambda$.run"},
		{"a.B$$Lambda/0x00007f1234.run", "a.B$$Lambda.run"},
		{"java.lang.invoke.LambdaForm$MH/0x7f12.invoke",
		 "java.lang.invoke.LambdaForm$MH.invoke"},
		{"jdk.GeneratedMethodAccessor12.invoke", "jdk.GeneratedMethodAccessor.invoke"},
		{"bpf_prog_0123456789abcdef_filter", "bpf_prog_filter"},
		{"[libfoo.so.1.2.3]", "[libfoo.so]"},
		{"[libfoo-1.2.so]", "[libfoo.so]"},
		{"entry+0x1f", "entry"},
		{"0x7f1234", "[JIT code without a name]"},
		{"", "[unknown]"},
		/* what looks like it and is not */
		{".cold", ".cold"},
		{"foo.1", "foo.1"},
		{"main.run", "main.run"},
		{"a.b.isra", "a.b"},
		{"operator+", "operator+"},
		{"a::hash", "a::hash"},
		{"sha256", "sha256"},
		{"main.function12", "main.function12"},
		{"run.func1x", "run.func1x"},
		{"/0x", "/0x"},
		{"#", "#"},
	};
	char name[256], again[256], small[8];

	for (size_t i = 0; i < sizeof(same) / sizeof(*same); i++) {
		stable_name(name, sizeof(name), same[i][0]);
		assert_string_equal(name, same[i][1]);
		stable_name(again, sizeof(again), name);
		assert_string_equal(again, name);
	}
	stable_name(small, sizeof(small), "parse_the_header.cold");
	assert_string_equal(small, "parse_t");
}

/* No bytes make it write outside of its room; the room is exact, so a sanitizer sees it. */
TEST(names_of_random_characters_fit_their_room)
{
	static const char alphabet[] = ".cold.isra0[]so-+0x/h:#$_lambda func1 bpf_prog_";
	unsigned int seed = 1;

	for (int i = 0; i < 20000; i++) {
		size_t size = (size_t)rand_r(&seed) % 40;
		_cleanup_free_ char *name = malloc(size + 1), *out = malloc(size + 26);

		for (size_t j = 0; j < size; j++)
			name[j] = alphabet[(size_t)rand_r(&seed) % (sizeof(alphabet) - 1)];
		name[size] = '\0';
		stable_name(out, size + 26, name);
		assert_true(*out && strlen(out) <= size + 25);
	}
}

/* ---- distributions --------------------------------------------------------------------------- */

/* Values of scipy.stats. */
TEST(the_t_distribution_has_the_values_of_scipy)
{
	assert_near(student_p(2, INFINITY), 0.04550026389635842, 1e-12);
	assert_near(student_p(2.776445105197793, 4), 0.05, 1e-9);
	assert_near(student_p(1, 1), 0.5, 1e-12);
	assert_near(student_p(-12, 3.7), 0.000426787399381, 1e-9);
	assert_near(student_t(0.05, INFINITY), 1.959963984540054, 1e-9);
	assert_near(student_t(0.05, 4), 2.7764451051977987, 1e-9);
	assert_near(student_t(0.001, 2), 31.599054576443616, 1e-9);
	assert_true(isinf(student_t(0, 3)));
	assert_near(student_p(0, 5), 1, 1e-12);
	assert_true(p_of((struct estimate){0, 0, INFINITY}) == 1);
	assert_true(p_of((struct estimate){1, 0, INFINITY}) == 0);
}

TEST(differences_have_the_degrees_of_freedom_of_welch)
{
	struct estimate d = difference_of((struct estimate){10, 4, 3}, (struct estimate){12, 1, 5});

	assert_true(d.value == 2 && d.variance == 5);
	assert_near(d.freedom, 25 / (16.0 / 3 + 1.0 / 5), 1e-12);
}

/* With equal weights, those of R's p.adjust(method = "BH"). */
TEST(false_discovery_rates_are_weighted_benjamini_hochberg)
{
	static const double p[] = {0.01, 0.04, 0.03, 0.5, 0.005};
	static const double wanted[] = {0.025, 0.05, 0.05, 0.5, 0.025};
	static const double equal[] = {3, 3, 3, 3, 3}, unequal[] = {1, 1, 1, 1, 6};
	double q[5];

	assert_int_equal(false_discovery_rates(p, equal, q, 5), 0);
	for (int i = 0; i < 5; i++)
		assert_near(q[i], wanted[i], 1e-12);
	assert_int_equal(false_discovery_rates(p, unequal, q, 5), 0);
	assert_near(q[4], 0.005 * 10 / 6, 1e-12);
	assert_int_equal(false_discovery_rates(p, equal, q, 0), 0);
}
