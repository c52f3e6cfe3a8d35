/* SPDX-License-Identifier: BSD-2-Clause */
/* The page as bytes: what surrounds the profile, and that the profile in it is whole. */
#include "export_support.h"
#include "formats/out/html_data.h"

#include "formats/out/exporters.h"

static char *data_of(const struct profile *p, size_t *size)
{
	char *data = NULL;
	FILE *out = open_memstream(&data, size);

	assert_non_null(out);
	assert_int_equal(html_write_data(p, NULL, NULL, out), 0);
	assert_int_equal(fclose(out), 0);
	return data;
}

static uint64_t read_uint(const char **at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		unsigned char byte = (unsigned char)*(*at)++;

		value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return value;
	}
}

static int64_t read_int(const char **at)
{
	uint64_t value = read_uint(at);

	return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static cJSON *read_words(const char **at)
{
	size_t size = read_uint(at);
	cJSON *words = cJSON_ParseWithLength(*at, size);

	assert_non_null(words);
	*at += size;
	return words;
}

static uint64_t counted(const cJSON *words, const char *what)
{
	const cJSON *counts = cJSON_GetObjectItemCaseSensitive(words, "counts");

	return (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(counts, what));
}

static void skip_numbers(const char **at, uint64_t count)
{
	while (count--)
		read_uint(at);
}

static void check_waits_of(const struct profile *p, const struct profile_samples *s,
			   const char **at)
{
	uint64_t time = 0;

	for (size_t i = 0; i < s->count; i++) {
		time += read_uint(at);
		assert_int_equal(time, (s->since[i] - p->start) / 1000);
		time = (s->until[i] - p->start) / 1000;
	}
}

/* The columns of waits, each of all threads. */
static void check_waits(const struct profile *p, const cJSON *words, const char **at)
{
#define EACH_WAIT(check)                                                                           \
	for (size_t t = 1; t < p->thread_count; t++) {                                             \
		const struct profile_samples *s = &p->threads[t].samples[SAMPLE_WALL];             \
                                                                                                   \
		for (size_t i = 0; i < s->count; i++)                                              \
			check;                                                                     \
	}

	for (size_t t = 1; t < p->thread_count; t++)
		assert_int_equal(read_uint(at), p->threads[t].samples[SAMPLE_WALL].count);
	for (size_t t = 1; t < p->thread_count; t++)
		check_waits_of(p, &p->threads[t].samples[SAMPLE_WALL], at);
	EACH_WAIT(assert_int_equal(read_uint(at), (s->until[i] - p->start) / 1000 -
							  (s->since[i] - p->start) / 1000));
	EACH_WAIT(assert_int_equal(read_uint(at), s->time[i] > s->since[i]
							  ? (s->time[i] - p->start) / 1000 -
								    (s->since[i] - p->start) / 1000
							  : 0));
	EACH_WAIT(assert_int_equal(read_uint(at), s->weight[i]));
	EACH_WAIT(read_int(at));
	for (size_t t = 1; t < p->thread_count; t++)
		for (size_t i = 0; i < p->threads[t].samples[SAMPLE_WALL].count;) {
			assert_true(read_uint(at) < counted(words, "strings"));
			i += read_uint(at);
		}
	EACH_WAIT(assert_int_equal(read_uint(at) & 15, s->state[i]));
	EACH_WAIT(assert_int_equal(read_uint(at), s->holder[i].v));
#undef EACH_WAIT
}

/* Times and weights come out as they went in, and nothing is left over. */
static void check_samples(const struct profile *p, const cJSON *words, const char *at,
			  const char *end)
{
	uint64_t *passed = calloc(counted(words, "samples") + 1, sizeof(*passed)), *next = passed;

	for (size_t t = 1; t < p->thread_count; t++) {
		const struct profile_samples *s = &p->threads[t].samples[SAMPLE_CPU];
		uint64_t time = 0;

		for (size_t i = 0; i < s->count; i++) {
			time += *next = read_uint(&at);
			assert_int_equal(time, (s->time[i] - p->start) / 1000);
			*next++ *= i ? 1000 : 0;
		}
	}
	next = passed;
	for (size_t t = 1; t < p->thread_count; t++)
		for (size_t i = 0; i < p->threads[t].samples[SAMPLE_CPU].count; i++)
			assert_int_equal((uint64_t)read_int(&at) + *next++,
					 p->threads[t].samples[SAMPLE_CPU].weight[i]);
	for (size_t t = 1; t < p->thread_count; t++) {
		int64_t node = 0;

		for (size_t i = 0; i < p->threads[t].samples[SAMPLE_CPU].count; i++) {
			node += read_int(&at);
			assert_in_range(node, 1, counted(words, "nodes"));
		}
	}
	for (size_t t = 1; t < p->thread_count; t++)
		for (size_t i = 0; i < p->threads[t].samples[SAMPLE_CPU].count;) {
			assert_true(read_uint(&at) < counted(words, "strings"));
			i += read_uint(&at);
		}
	if (cJSON_HasObjectItem(cJSON_GetObjectItemCaseSensitive(words, "counts"), "waits"))
		check_waits(p, words, &at);
	assert_ptr_equal(at, end);
	free(passed);
}

static void check_data(const char *name)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_profile(&f, name);
	size_t size, text_size;
	_cleanup_free_ char *data = data_of(p, &size);
	const char *at = data;
	_cleanup_cjson_ cJSON *words = read_words(&at);

	assert_int_equal(counted(words, "threads") + 1, p->thread_count ? p->thread_count : 1);
	for (uint64_t i = 0; i < counted(words, "strings"); i++) {
		text_size = strnlen(at, (size_t)(data + size - at));
		at += text_size + 1;
	}
	skip_numbers(&at, 2 * counted(words, "functions") + 8 * counted(words, "frames"));
	skip_numbers(&at, 2 * counted(words, "nodes"));
	skip_numbers(&at, 10 * counted(words, "processes") + 6 * counted(words, "threads"));
	check_samples(p, words, at, data + size);
}

TEST(times_and_weights_of_samples_survive_the_encoding)
{
	for (size_t i = 0; i < NAMED_PROFILES; i++)
		check_data(named_profiles[i].name);
}

TEST(equal_frames_are_merged)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_profile(&f, "recursion");
	size_t size;
	_cleanup_free_ char *data = data_of(p, &size);
	const char *at = data;
	_cleanup_cjson_ cJSON *words = read_words(&at);

	/* fib, main, min, clamp, schedule, do_syscall_64, __libc_start_call_main */
	assert_int_equal(counted(words, "functions"), 7);
	/* fib has three lines of its own, and one below what was inlined */
	assert_int_equal(counted(words, "frames"), 7 + 3);
}

static const char base64_digits[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

/* Not inlined: gcc 12 then takes the text for a pointer to a variable of export_text(). */
static __attribute__((noinline)) char *page_of(const struct profile *p)
{
	return export_text(&html_exporter, p, NULL);
}

TEST(no_name_is_in_the_markup)
{
	_cleanup_fixture_ struct fixture f;
	const struct profile *p = build_profile(&f, "hostile");
	_cleanup_free_ char *page = page_of(p), *again = NULL;
	const char *mark = strstr(page, "id=\"profile\">");
	size_t size;

	assert_non_null(mark);
	mark = strchr(mark, '>') + 1;
	size = strspn(mark, base64_digits);
	assert_int_equal(size % 4, 0);
	assert_memory_equal(mark + size, "</script>", strlen("</script>"));
	assert_null(strstr(page, "LLLLLLLL"));
	assert_null(strstr(page, "trailing  "));
	assert_non_null(strstr(page, "default-src 'none'; script-src 'sha256-"));
	assert_null(strstr(page, "https://"));
	again = page_of(p);
	assert_string_equal(page, again);
}
