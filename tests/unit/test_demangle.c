/* SPDX-License-Identifier: BSD-2-Clause */
/* Names made readable: known ones, hostile ones, and thousands of real ones beside c++filt. */
#include <time.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "symbolize/demangle.h"
#include "symbolize/module_private.h"

static void assert_demangled(const char *mangled, const char *expected)
{
	char buffer[DEMANGLED_SIZE];
	size_t length = demangle(mangled, buffer, sizeof(buffer));

	assert_string_equal(buffer, expected);
	assert_int_equal(length, strlen(expected));
}

TEST(long_names_are_cut_between_characters)
{
	char name[6000], small[6];

	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = '\0';
	{
		char buffer[DEMANGLED_SIZE];

		assert_int_equal(demangle(name, buffer, sizeof(buffer)), DEMANGLED_SIZE - 1);
		assert_int_equal(strlen(buffer), DEMANGLED_SIZE - 1);
	}
	/* "abcd" and half of "é" do not fit in 6 with the NUL: the half goes. */
	assert_int_equal(demangle("abcd\xc3\xa9"
				  "f",
				  small, sizeof(small)),
			 4);
	assert_string_equal(small, "abcd");
	assert_int_equal(demangle("abc\xc3\xa9"
				  "f",
				  small, sizeof(small)),
			 5);
	assert_int_equal(demangle("ab\xf0\x9f\x98\x80", small, sizeof(small)), 2);
	assert_int_equal(demangle("abcd\xa9\xa9\xa9", small, sizeof(small)), 5);
	assert_int_equal(demangle("_ZN3foo3barEi", small, sizeof(small)), 5);
	assert_string_equal(small, "foo::");
}

static double cpu_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Each level names the level before twice: the whole would have 2^levels names in it. */
static void doubling_cxx(char *out, size_t size, int levels)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t used = (size_t)snprintf(out, size, "_Z1f1AI1BE");

	for (int i = 1; i <= levels; i++)
		used += (size_t)snprintf(out + used, size - used, "S_IS%c_S%c_E", digits[i],
					 digits[i]);
}

/* The same by back references, which Rust counts from behind "_R" in base 62. */
static void doubling_rust(char *out, size_t size, int levels)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t used = (size_t)snprintf(out, size, "_RINvC1a1fTyyE");
	size_t before = used - 4;

	for (int i = 0; i < levels; i++) {
		size_t here = used, value = before - 2 - 1;
		char number[3] = {};

		if (value < 62) {
			number[0] = digits[value];
		} else {
			number[0] = digits[value / 62];
			number[1] = digits[value % 62];
		}
		used += (size_t)snprintf(out + used, size - used, "TB%s_B%s_E", number, number);
		before = here;
	}
	snprintf(out + used, size - used, "E");
}

TEST(exponential_names_are_cut_or_left_mangled_in_time)
{
	char name[20000], buffer[DEMANGLED_SIZE];
	double start = cpu_seconds();

	for (int levels = 1; levels < 34; levels++) {
		doubling_cxx(name, sizeof(name), levels);
		demangle(name, buffer, sizeof(buffer));
		assert_memory_equal(buffer, "f(A<B>, A<A", 11);
		assert_true(levels < 12 || strlen(buffer) == sizeof(buffer) - 1);
		doubling_rust(name, sizeof(name), levels);
		demangle(name, buffer, sizeof(buffer));
		assert_memory_equal(buffer, "a::f::<(u64, u64), ((u64", 24);
		assert_true(levels < 12 || strlen(buffer) == sizeof(buffer) - 1);
	}
	/* D has no end to leave it by: past the limit such a name stays mangled. */
	strcpy(name, "_D1a1fFHiiHQeQg");
	for (int i = 0; i < 30; i++)
		strcat(name, "HQgQi");
	strcat(name, "Zv");
	assert_demangled(name, name);
	assert_demangled("_D1a1fFHiiHQeQgZv", "a.f(int[int], int[int][int[int]])");
	/* Nesting without end. */
	for (const char *p = "PKFTIXN"; *p; p++) {
		for (size_t length = 100; length < 8500; length += 2100) {
			memcpy(name, "_Z1f", 4);
			memset(name + 4, *p, length);
			name[4 + length] = '\0';
			demangle(name, buffer, sizeof(buffer));
			memcpy(name, "_RIC", 4);
			demangle(name, buffer, sizeof(buffer));
			memcpy(name, "_D1a", 4);
			demangle(name, buffer, sizeof(buffer));
		}
	}
	assert_true(cpu_seconds() - start < 20);
}

/* A fixed sequence (xorshift), so that a failure comes again. */
TEST(mutated_names_never_overflow_the_buffer)
{
	static const char *const names[] = {
		"_ZNSt6vectorISt4pairISsS0_IS1_S1_EESaIS2_EE17_M_realloc_insertIJS2_EEEvN9__gnu_cxx17__normal_iteratorIPS2_S4_EEDpOT_",
		"_ZZN12_GLOBAL__N_11fEvENKUlT_DpT0_E_clIiJdfEEEDaS0_S2_",
		"_RNvXs5_NtNtCs1234_4core3fmt3numjNtB7_7Display3fmt",
		"_RINvNtC3std3mem8align_ofFUdEuE",
		"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
		"_D3std5range__T4takeTAyaZQjFNaNbNiNfQnkZSQBmQBk__TQBeTQxZQBm",
	};
	static const char alphabet[] = "_0123456789ABCDEFGIJKLMNPQRSTUVXZabcdefghijlnoprstvxyz.$";
	char name[512], buffer[DEMANGLED_SIZE];
	uint64_t seed = 0x9e3779b97f4a7c15;

	for (int round = 0; round < 60000; round++) {
		size_t length;

		strcpy(name, names[round % 6]);
		length = strlen(name);
		for (uint64_t n = next_random(&seed) % 6; n; n--) {
			size_t at = 2 + next_random(&seed) % (length - 2);
			size_t from = 2 + next_random(&seed) % (length - 2);
			size_t span = next_random(&seed) % 24;

			name[at] = alphabet[next_random(&seed) % (sizeof(alphabet) - 1)];
			if (from + span < length && length + span < sizeof(name)) {
				/* Say a piece twice. */
				memmove(name + from + span, name + from, length - from + 1);
				length += span;
			}
		}
		assert_true(demangle(name, buffer, sizeof(buffer)) < sizeof(buffer));
	}
}

/* ---- beside c++filt -------------------------------------------------------------------------- */

static int first_existing(const char *const *paths)
{
	for (int i = 0; paths[i]; i++) {
		if (!access(paths[i], R_OK))
			return i;
	}
	return -1;
}

/* Feed at most `limit` names of a library's symbols to c++filt and compare its words with ours. */
static size_t compare_with_cxxfilt(const char *library, int limit)
{
	char command[1024], mangled[16384], expected[65536], buffer[DEMANGLED_SIZE];
	_cleanup_fclose_ FILE *names = NULL, *words = NULL;
	char list[] = "/tmp/sysprof-demangle-XXXXXX";
	int fd = mkstemp(list);
	size_t compared = 0;

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command),
		 "nm -D --defined-only %s | awk '{print $3}' | sed 's/@.*//' | head -%d >%s",
		 library, limit, list);
	assert_int_equal(system(command), 0);
	snprintf(command, sizeof(command), "c++filt -i <%s", list);
	names = fopen(list, "re");
	words = popen(command, "r");
	assert_non_null(names);
	assert_non_null(words);
	while (fgets(mangled, sizeof(mangled), names)) {
		assert_non_null(fgets(expected, sizeof(expected), words));
		mangled[strcspn(mangled, "\n")] = '\0';
		expected[strcspn(expected, "\n")] = '\0';
		expected[DEMANGLED_SIZE - 1] = '\0';
		demangle(mangled, buffer, sizeof(buffer));
		assert_string_equal(buffer, expected);
		compared++;
	}
	pclose(steal_ptr(words));
	unlink(list);
	return compared;
}

TEST(names_of_real_libraries_are_those_of_cxxfilt)
{
	static const char *const libstdcxx[] = {"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
						"/usr/lib/aarch64-linux-gnu/libstdc++.so.6",
						"/usr/lib64/libstdc++.so.6", NULL};
	static const char *const llvm[] = {"/usr/lib/x86_64-linux-gnu/libLLVM-14.so.1",
					   "/usr/lib/x86_64-linux-gnu/libLLVM-15.so.1",
					   "/usr/lib/aarch64-linux-gnu/libLLVM-14.so.1", NULL};
	int which = first_existing(libstdcxx);

	if (which < 0) {
		print_message("skipped: libstdc++ is not there\n");
		skip();
	}
	assert_true(compare_with_cxxfilt(libstdcxx[which], 20000) > 1000);
	which = first_existing(llvm);
	if (which >= 0)
		assert_true(compare_with_cxxfilt(llvm[which], 20000) > 1000);
}
