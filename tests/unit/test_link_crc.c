/* SPDX-License-Identifier: BSD-2-Clause */
/* CRCs of files with holes, once for each file, within what a user may cost. */
#include "unit.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "base/io.h"
#include "symbolize/debug_file.h"
#include "symbolize/link_crc.h"

#define MB   (1u << 20)
#define ROOT 0
#define ANN  1000
#define BOB  1001

static struct crc_ledger *make_ledger(void)
{
	struct crc_ledger *ledger = malloc(sizeof(*ledger));

	assert_non_null(ledger);
	crc_ledger__init(ledger);
	assert_int_equal(ledger->file_bytes, UINT64_C(2) << 30);
	assert_int_equal(ledger->time.user.limit, 10 * QUOTA_SECOND);
	ledger->file_bytes = 2 * MB;
	ledger->bytes.user.limit = 3 * MB;
	ledger->bytes.all.limit = 5 * MB;
	ledger->time.user.limit = ledger->time.all.limit = INT64_MAX;
	return ledger;
}

static int make_file(uint64_t size)
{
	int fd = memfd_create("debug", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void fill(int fd, uint64_t offset, size_t size, char byte)
{
	_cleanup_free_ char *bytes = malloc(size);

	assert_non_null(bytes);
	memset(bytes, byte, size);
	assert_int_equal(pwrite(fd, bytes, size, (off_t)offset), (ssize_t)size);
}

static uint32_t plain_crc(int fd, size_t size)
{
	_cleanup_free_ char *bytes = malloc(size);

	assert_int_equal(pread_full(fd, bytes, size, 0), (ssize_t)size);
	return crc32_update(0, bytes, size);
}

static int request(struct crc_ledger *ledger, uid_t user, int fd, uint32_t *crc)
{
	return link_crc(ledger, user, fd, NULL, NULL, crc);
}

TEST(the_crc_of_zeros_is_that_of_zero_bytes)
{
	static const char zeros[100000];
	uint32_t begin = crc32_update(0, "begin", 5);

	for (size_t count = 0; count <= sizeof(zeros); count = 3 * count + 1) {
		assert_int_equal(crc32_zeros(0, count), crc32_update(0, zeros, count));
		assert_int_equal(crc32_zeros(begin, count), crc32_update(begin, zeros, count));
	}
	assert_int_equal(crc32_zeros(begin, UINT64_C(5) << 30),
			 crc32_zeros(crc32_zeros(begin, UINT64_C(3) << 30), UINT64_C(2) << 30));
}

TEST(holes_of_a_file_are_not_read)
{
	_cleanup_free_ struct crc_ledger *ledger = make_ledger();
	_cleanup_close_ int fd = make_file(3 * MB + 5), empty = make_file(0),
			    endless = make_file(UINT64_C(1) << 40);
	uint32_t crc = 0, expected;

	fill(fd, 1000, 5000, 'a');
	fill(fd, 2 * MB, 10, 'b');
	fill(fd, 3 * MB + 4, 1, 'c');
	expected = plain_crc(fd, 3 * MB + 5);
	assert_int_equal(request(ledger, ANN, fd, &crc), 0);
	assert_int_equal(crc, expected);
	assert_in_range(quota__used(&ledger->bytes, ANN), 3, 64 << 10); /* whole pages */
	assert_int_equal(request(ledger, ANN, empty, &crc), 0);
	assert_int_equal(crc, 0);
	/* nothing of this is read */
	fill(endless, 7, 1, 'x');
	expected = crc32_zeros(crc32_update(0, "\0\0\0\0\0\0\0x", 8), (UINT64_C(1) << 40) - 8);
	assert_int_equal(request(ledger, ANN, endless, &crc), 0);
	assert_int_equal(crc, expected);
	assert_in_range(quota__used(&ledger->bytes, ANN), 3, 64 << 10);
}

TEST(a_file_is_read_once_until_it_changes)
{
	_cleanup_free_ struct crc_ledger *ledger = make_ledger();
	_cleanup_close_ int fd = make_file(0);
	uint32_t crc = 0, first;

	fill(fd, 0, MB, 'a');
	for (int i = 0; i < 100; i++)
		assert_int_equal(request(ledger, i % 2 ? ANN : BOB, fd, &crc), 0);
	assert_int_equal(ledger->bytes.total.used, MB);
	first = crc;
	fill(fd, MB, 1, 'b'); /* it is another one now */
	assert_int_equal(request(ledger, ANN, fd, &crc), 0);
	assert_true(crc != first);
	assert_int_equal(ledger->bytes.total.used, 2 * MB + 1);
}

TEST(files_users_and_the_total_have_byte_limits)
{
	_cleanup_free_ struct crc_ledger *ledger = make_ledger();
	_cleanup_close_ int big = make_file(0), a = make_file(0), b = make_file(0),
			    c = make_file(0);
	uint32_t crc = 7;

	fill(big, 0, 2 * MB + 1, 'x');
	fill(a, 0, 2 * MB, 'a');
	fill(b, 0, 2 * MB, 'b');
	fill(c, 0, 2 * MB, 'c');
	/* too large: not a byte of it is read */
	assert_int_equal(request(ledger, ANN, big, &crc), -EFBIG);
	assert_int_equal(request(ledger, ANN, big, &crc), -EFBIG);
	assert_int_equal(quota__used(&ledger->bytes, ANN), 0);
	assert_int_equal(request(ledger, ANN, a, &crc), 0);
	crc = 7;
	/* a user's share, and that of all */
	assert_int_equal(request(ledger, ANN, b, &crc), -EDQUOT);
	assert_int_equal(crc, 7);
	assert_int_equal(request(ledger, BOB, b, &crc), 0);
	assert_int_equal(request(ledger, BOB + 1, c, &crc), -EDQUOT);
	assert_int_equal(request(ledger, ROOT, c, &crc), 0);
	/* what is known costs nothing */
	assert_int_equal(request(ledger, BOB + 1, c, &crc), 0);
}

/* One that is nothing but holes and bytes by turns is not followed to its end. */
TEST(a_file_of_too_many_holes_is_an_error)
{
	_cleanup_free_ struct crc_ledger *ledger = make_ledger();
	_cleanup_close_ int fd = make_file(UINT64_C(20000) << 13);
	uint32_t crc;

	ledger->file_bytes = UINT64_C(1) << 40;
	for (uint64_t i = 0; i < 20000; i++)
		fill(fd, i << 13, 1, 'x');
	assert_int_equal(link_crc(ledger, ANN, fd, NULL, NULL, &crc), -EFBIG);
	assert_int_equal(quota__used(&ledger->bytes, ANN), 0);
}

static int give_up(void *context, uint64_t done, uint64_t total)
{
	int *calls = context;

	assert_true(done > 0 && done <= total);
	return ++*calls;
}

TEST(a_cancelled_crc_is_not_stored)
{
	_cleanup_free_ struct crc_ledger *ledger = make_ledger();
	_cleanup_close_ int fd = make_file(0);
	uint32_t crc;
	int calls = 0;

	fill(fd, 0, 2 * MB, 'x');
	assert_int_equal(link_crc(ledger, ANN, fd, give_up, &calls, &crc), -ECANCELED);
	assert_int_equal(calls, 1);
	assert_int_equal(ledger->memo_count, 0);
	assert_int_equal(link_crc(ledger, ANN, -1, NULL, NULL, &crc), -EBADF);
}
