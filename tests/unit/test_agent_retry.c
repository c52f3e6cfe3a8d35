/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to try again, and what is sent to be known by: back-off, credentials from files, and that no secret is found in what a core dump would have.
 */
#include "unit.h"
#include "base/cleanup.h"
#include "agent/credentials.h"
#include "agent/http.h"
#include "agent/retry.h"
#include "agent/secret_memory.h"

#include "unit/tools.h"

#define NS_PER_SECOND UINT64_C(1000000000)

/* ---- back-off -------------------------------------------------------------------------------- */

TEST(back_off_is_spread_and_doubles_to_a_limit)
{
	const struct retry_pace pace = {.least = 500, .most = 60000};
	uint64_t most = 0;

	for (unsigned int failures = 1; failures < 40; failures++) {
		uint64_t limit = failures > 7 ? 60000 : 500u << (failures - 1), largest = 0;
		uint64_t sum = 0;

		for (uint64_t i = 0; i < 10000; i++) {
			uint64_t delay = retry_delay(&pace, failures,
						     i * UINT64_C(0x9e3779b97f4a7c15));

			assert_in_range(delay, 50, limit);
			largest = delay > largest ? delay : largest;
			sum += delay;
		}
		/* spread over all of it */
		assert_true(largest > limit * 9 / 10);
		assert_in_range(sum / 10000, limit * 4 / 10, limit * 6 / 10);
		most = largest > most ? largest : most;
	}
	assert_true(most > 54000);
	assert_in_range(retry_delay(&pace, UINT32_MAX, UINT64_MAX), 50, 60000);
}

/* ---- credentials ----------------------------------------------------------------------------- */

static char path[256];

static const char *file_of(const char *text, size_t size)
{
	int fd;

	snprintf(path, sizeof(path), "%s/secret", scratch);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), size);
	close(fd);
	return path;
}

static void expect_headers(const struct credential_files *files, const char *first,
			   const char *second)
{
	_cleanup_(credentials__fini) struct credentials c = {};
	struct failure failure = {};

	assert_int_equal(credentials__read(files, &c, &failure), 0);
	assert_int_equal(c.header_count, second ? 2 : 1);
	assert_string_equal(c.headers[0], first);
	if (second)
		assert_string_equal(c.headers[1], second);
}

static void refuse(const struct credential_files *files, int wanted, const char *secret)
{
	_cleanup_(credentials__fini) struct credentials c = {};
	struct failure failure = {};

	assert_int_equal(credentials__read(files, &c, &failure), wanted);
	assert_non_null(strstr(failure.what, scratch));
	assert_null(strstr(failure.what, secret));
	assert_null(strstr(failure.remedy, secret));
	assert_int_equal(c.header_count, 0);
}

TEST(credential_files_become_request_headers)
{
	struct credential_files bearer = {.bearer = file_of("tok-123\n", 8)};
	struct credential_files basic = {.basic = path}, header = {.header = path};

	expect_headers(&bearer, "Authorization: Bearer tok-123", NULL);
	file_of("a:b", 3);
	expect_headers(&basic, "Authorization: Basic YTpi", NULL);
	file_of("user:pass word", 14);
	expect_headers(&basic, "Authorization: Basic dXNlcjpwYXNzIHdvcmQ=", NULL);
	file_of("ab:\xff\xfe", 5);
	expect_headers(&basic, "Authorization: Basic YWI6//4=", NULL);
	file_of("X-Key:  secret 1\r\n\nX_Other: b\n", 30);
	expect_headers(&header, "X-Key: secret 1", "X_Other: b");
}

TEST(an_unusable_credential_is_refused_without_showing_it)
{
	struct credential_files bearer = {.bearer = file_of("", 0)};
	struct credential_files basic = {.basic = path}, header = {.header = path};
	char long_text[9000];

	refuse(&bearer, -ENODATA, "zzz");
	file_of("sesame\r\nX-Evil: 1", 17);
	refuse(&bearer, -EINVAL, "sesame");
	file_of("sesame open", 11);
	refuse(&bearer, -EINVAL, "sesame");
	file_of("sesame\0open", 11);
	refuse(&bearer, -EINVAL, "sesame");
	file_of("sesame", 6);
	refuse(&basic, -EINVAL, "sesame");
	refuse(&header, -EINVAL, "sesame");
	file_of("sesame:", 7);
	refuse(&basic, -EINVAL, "sesame");
	file_of("X-Good: 1\nContent-Length: sesame\n", 33);
	refuse(&header, -EINVAL, "sesame");
	file_of("X-Bad name: sesame", 18);
	refuse(&header, -EINVAL, "sesame");
	memset(long_text, 'x', sizeof(long_text));
	file_of(long_text, sizeof(long_text));
	refuse(&bearer, -EFBIG, "xxxxx");
	for (size_t i = 0; i < 17; i++)
		memcpy(long_text + i * 7, "A: abc\n", 7);
	file_of(long_text, 17 * 7);
	refuse(&header, -E2BIG, "abc");
	unlink(path);
	refuse(&bearer, -ENOENT, "sesame");
}

TEST(cut_or_escaped_secrets_are_found_in_a_text)
{
	struct credential_files basic = {.basic = file_of("user:correct-horse", 18)};
	_cleanup_(credentials__fini) struct credentials c = {};

	assert_int_equal(credentials__read(&basic, &c, NULL), 0);
	assert_true(credentials__are_in(&c, "so correct-horse it is", 22));
	assert_true(credentials__are_in(&c, "correct-", 8));	     /* cut */
	assert_true(credentials__are_in(&c, "\\u0063orrect-h", 14)); /* escaped, but for a piece */
	assert_true(credentials__are_in(&c, "dXNlcjpjb3JyZWN0LWhvcnNl", 24)); /* as it was sent */
	assert_false(credentials__are_in(&c, "correct horse", 13));
	assert_false(credentials__are_in(&c, "", 0));
}

/* ---- where secrets are ----------------------------------------------------------------------- */

/* The next mapping of this process that a dump would have. False: there is none. */
static bool next_dumped(FILE *smaps, char **begin, size_t *size)
{
	char line[512];
	uint64_t from = 0, to = 0;
	bool readable = false;

	while (fgets(line, sizeof(line), smaps)) {
		uint64_t a, b;
		char mode;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %c", &a, &b, &mode) == 3 &&
		    strchr(line, ' ') < strchr(line, ':')) {
			from = a;
			to = b;
			readable = mode == 'r';
		}
		if (strncmp(line, "VmFlags:", 8) || !readable || strstr(line, " dd"))
			continue;
		if (to - from > 1u << 30) /* shadows of the sanitizers */
			continue;
		*begin = (char *)(uintptr_t)from;
		*size = to - from;
		return true;
	}
	return false;
}

#define PIECE (1u << 20)

/* Is there another copy than `secret` itself? Read through the kernel: a sanitizer would see trespassing. */
static bool mapping_has(int memory, char *buffer, const char *begin, size_t size,
			const char *secret)
{
	size_t length = strlen(secret);

	for (size_t at = 0; at < size; at += PIECE - length) {
		size_t piece = size - at < PIECE ? size - at : PIECE;
		ssize_t got = pread(memory, buffer, piece, (off_t)(uintptr_t)(begin + at));
		const char *end = buffer + (got > 0 ? got : 0);

		for (char *p = buffer, *hit; p < end && (hit = memmem(p, end - p, secret, length));
		     p = hit + 1)
			if (begin + at + (hit - buffer) != secret)
				return true;
	}
	return false;
}

static bool dump_has(const char *secret)
{
	FILE *smaps = fopen("/proc/self/smaps", "re");
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char *begin, *buffer = mmap(NULL, PIECE, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool found = false;
	size_t size;

	assert_non_null(smaps);
	assert_true(memory >= 0);
	assert_ptr_not_equal(buffer, MAP_FAILED);
	assert_int_equal(madvise(buffer, PIECE, MADV_DONTDUMP), 0);
	while (next_dumped(smaps, &begin, &size))
		found |= mapping_has(memory, buffer, begin, size, secret);
	munmap(buffer, PIECE);
	close(memory);
	fclose(smaps);
	return found;
}

/* A text that is nowhere in this program. */
static void make_secret(char secret[32])
{
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	assert_int_equal(read(fd, secret, 31), 31);
	close(fd);
	for (int i = 0; i < 31; i++)
		secret[i] = 'a' + (secret[i] & 15);
	secret[31] = '\0';
}

static void write_secret(const char *secret)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_int_equal(write(fd, secret, strlen(secret)), strlen(secret));
}

TEST(no_dump_has_a_secret)
{
	struct credential_files bearer = {.bearer = file_of("x", 1)};
	const struct http_options options = {
		.url = "http://127.0.0.1:1", .credentials = bearer, .timeout = NS_PER_SECOND};
	const struct http_request request = {
		.path = "/", .type = "a/b", .encoding = "", .body = ""};
	char secret[32], *plain;
	struct http_answer answer;
	struct http_client *client;
	struct failure failure = {};
	struct credentials c;

	make_secret(secret);
	assert_false(dump_has(secret));
	plain = strdup(secret); /* the search finds what is there */
	assert_true(dump_has(secret));
	explicit_bzero(plain, 32);
	free(plain);
	write_secret(secret);
	assert_int_equal(credentials__read(&bearer, &c, NULL), 0);
	assert_string_equal(c.headers[0] + strlen("Authorization: Bearer "), secret);
	assert_false(dump_has(secret));
	credentials__fini(&c);
	if (http_client__new(&options, &client, &failure))
		fail_msg("%s", failure.what);
	assert_int_equal(http_client__post(client, &request, &answer), 0);
	assert_int_equal(answer.status, 0);
	assert_false(answer.sent); /* nobody listens there */
	assert_false(dump_has(secret));
	http_answer__fini(&answer);
	http_client__free(client);
	assert_false(dump_has(secret));
}

TEST(secret_memory_keeps_contents_and_is_cleared_when_freed)
{
	char *blocks[200], *p;

	for (size_t i = 0; i < 200; i++) {
		blocks[i] = secret_alloc(i * i * 7);
		assert_non_null(blocks[i]);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		memset(blocks[i], (int)i, i * i * 7);
	}
	for (size_t i = 0; i < 200; i++) {
		blocks[i] = secret_realloc(blocks[i], i * 1000 + 1);
		assert_non_null(blocks[i]);
		for (size_t j = 0; j < i * i * 7 && j < i * 1000; j++)
			assert_int_equal((unsigned char)blocks[i][j], i);
	}
	for (size_t i = 0; i < 200; i++)
		secret_free(blocks[i]);
	p = secret_calloc(100, 10);
	for (size_t i = 0; i < 1000; i++)
		assert_int_equal(p[i], 0);
	secret_free(p);
	/* what comes back from the heap of free blocks is empty */
	p = secret_strdup("open sesame, and a little more of it");
	secret_free(p);
	p = secret_alloc(37);
	for (size_t i = 0; i < 37; i++)
		assert_int_equal(p[i], 0);
	secret_free(p);
	assert_null(secret_alloc(SIZE_MAX));
	assert_null(secret_calloc(SIZE_MAX / 2, 3));
	secret_free(NULL);
}

/* ---- options --------------------------------------------------------------------------------- */

TEST(malformed_urls_and_bad_options_are_refused)
{
	static const char *const BAD[] = {
		"",
		"ftp://host",
		"localhost:4040",
		"http://",
		"http:///path",
		"http://user:hunter2@host",
		"http://hunter2@host/x",
		"http://host/?token=hunter2",
		"http://host/#x",
		"http://ho st",
		"http://host\r\nX: y",
	};
	struct http_options options = {.timeout = NS_PER_SECOND};
	struct http_client *client;

	for (size_t i = 0; i < sizeof(BAD) / sizeof(*BAD); i++) {
		struct failure failure = {};

		options.url = BAD[i];
		assert_int_equal(http_client__new(&options, &client, &failure), -EINVAL);
		assert_true(failure.what[0]);
		assert_null(strstr(failure.what, "hunter2"));
	}
	options.url = "https://host:4040/below/";
	assert_int_equal(http_client__new(&options, &client, NULL), 0);
	http_client__free(client);
	options.tenant = "a b";
	assert_int_equal(http_client__new(&options, &client, NULL), -EINVAL);
	options.tenant = NULL;
	options.ca_file = "/nowhere.pem";
	assert_int_equal(http_client__new(&options, &client, NULL), -ENOENT);
	options.ca_file = NULL;
	options.credentials = (struct credential_files){.bearer = "a", .basic = "b"};
	assert_int_equal(http_client__new(&options, &client, NULL), -EINVAL);
}

ALL_TESTS_WITH(make_scratch, remove_scratch);
