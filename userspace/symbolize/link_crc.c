/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/link_crc.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/gzip.h"
#include "base/io.h"
#include "base/minmax.h"

#define GB	      (UINT64_C(1) << 30)
#define SECOND_NS     UINT64_C(1000000000)
#define STEP	      (256u << 10)
#define PROGRESS_STEP (1u << 20) /* less than what a slow disk reads in some seconds */
#define EXTENTS_MAX   16384	 /* pieces between holes: debuggers' files have a few */
#define ROOT	      0

/* 2 GB take a second or two where they are in memory. */
const struct crc_limits CRC_LIMITS = {
	.file_bytes = 2 * GB,
	.user_bytes = 4 * GB,
	.user_ns = 10 * SECOND_NS,
	.others_bytes = 8 * GB,
	.others_ns = 20 * SECOND_NS,
};

/* One file being read. */
struct reading {
	int fd;
	uint64_t size, data; /* bytes; those of them that are no holes */
	uint64_t read;
	const struct crc_limits *limits;
	struct crc_account *user, *others; /* `others`: NULL for root */
	crc_progress_fn progress;
	void *context;
	char *buffer;
	uint32_t crc;
};

/* ---- the books ------------------------------------------------------------------------------- */

/* Users for whom there is no account share the last one. */
static struct crc_account *account_of(struct crc_ledger *l, uid_t user)
{
	uint64_t count = min_u64(l->user_count, CRC_USERS);

	for (uint64_t i = 0; i < count; i++)
		if (l->users[i].user == user)
			return &l->users[i];
	if (count == CRC_USERS)
		return &l->users[CRC_USERS - 1];
	l->users[count] = (struct crc_account){.user = user};
	l->user_count = count + 1;
	return &l->users[count];
}

static bool has_credit(const struct reading *r, uint64_t bytes)
{
	const struct crc_limits *l = r->limits;
	const struct crc_account *u = r->user, *o = r->others;

	return u->bytes + bytes <= l->user_bytes && u->ns <= l->user_ns &&
	       (!o || (o->bytes + bytes <= l->others_bytes && o->ns <= l->others_ns));
}

static void charge(struct reading *r, uint64_t bytes, uint64_t ns)
{
	r->user->bytes += bytes;
	r->user->ns += ns;
	if (!r->others)
		return;
	r->others->bytes += bytes;
	r->others->ns += ns;
}

static const struct crc_memo *find_memo(const struct crc_ledger *l, const struct file_stamp *stamp)
{
	uint64_t count = min_u64(l->memo_count, CRC_MEMOS);

	for (uint64_t i = 0; i < count; i++)
		if (!memcmp(&l->memos[i].stamp, stamp, sizeof(*stamp)))
			return &l->memos[i];
	return NULL;
}

static void keep_memo(struct crc_ledger *l, const struct file_stamp *stamp, uint32_t crc, int err)
{
	l->memos[l->memo_count++ % CRC_MEMOS] =
		(struct crc_memo){.stamp = *stamp, .crc = crc, .err = err};
}

/* ---- reading --------------------------------------------------------------------------------- */

/* [*start, *end): the next piece from `at` on that is no hole; *start is the size where there is none. */
static void next_piece(const struct reading *r, uint64_t at, uint64_t *start, uint64_t *end)
{
	off_t data = lseek(r->fd, (off_t)at, SEEK_DATA), hole;

	if (data < 0 && errno == ENXIO) {
		*start = *end = r->size;
		return;
	}
	*start = data < 0 ? at : min_u64((uint64_t)data, r->size);
	hole = data < 0 ? data : lseek(r->fd, data, SEEK_HOLE);
	*end = hole < 0 ? r->size : min_u64((uint64_t)hole, r->size);
	if (*end <= *start)
		*end = r->size; /* it is being changed */
}

/* How much there is to read, before any of it is. */
static int count_data(struct reading *r)
{
	uint64_t start, end;
	unsigned int pieces = 0;

	for (uint64_t at = 0; at < r->size; at = end) {
		next_piece(r, at, &start, &end);
		r->data += end - start;
		if (r->data > r->limits->file_bytes || pieces++ == EXTENTS_MAX)
			return -EFBIG;
	}
	return 0;
}

/* At the first step, and then now and then. */
static int report_progress(const struct reading *r, size_t size)
{
	uint64_t before = r->read - size;

	if (!r->progress || (before && before / PROGRESS_STEP == r->read / PROGRESS_STEP))
		return 0;
	return r->progress(r->context, r->read, r->data) ? -ECANCELED : 0;
}

/* A piece of at most STEP bytes. */
static int read_step(struct reading *r, uint64_t at, size_t size)
{
	uint64_t begin = monotonic_ns();
	ssize_t got = pread_full(r->fd, r->buffer, size, at);

	if (got > 0)
		r->crc = crc32_update(r->crc, r->buffer, got);
	charge(r, size, monotonic_ns() - begin);
	if (got < 0)
		return got;
	if ((size_t)got < size)
		return -EBADMSG;
	r->read += size;
	return has_credit(r, 0) ? report_progress(r, size) : -EDQUOT;
}

static int read_piece(struct reading *r, uint64_t start, uint64_t end)
{
	int err = 0;

	for (uint64_t at = start; at < end && !err; at += min_u64(end - at, STEP))
		err = read_step(r, at, min_u64(end - at, STEP));
	return err;
}

static int read_pieces(struct reading *r)
{
	uint64_t start, end;
	unsigned int pieces = 0;
	int err = 0;

	for (uint64_t at = 0; at < r->size && !err; at = end) {
		next_piece(r, at, &start, &end);
		r->crc = crc32_zeros(r->crc, start - at);
		err = pieces++ == EXTENTS_MAX ? -EFBIG : read_piece(r, start, end);
	}
	return err;
}

static int read_file(struct reading *r)
{
	_cleanup_free_ char *buffer = malloc(STEP);
	uint64_t begin = monotonic_ns();
	int err;

	if (!buffer)
		return -ENOMEM;
	r->buffer = buffer;
	err = count_data(r);
	charge(r, 0, monotonic_ns() - begin);
	if (err)
		return err;
	if (!has_credit(r, r->data))
		return -EDQUOT;
	return read_pieces(r);
}

int link_crc(struct crc_ledger *ledger, const struct crc_limits *limits, uid_t user, int fd,
	     crc_progress_fn progress, void *context, uint32_t *crc)
{
	struct file_stamp before, after;
	const struct crc_memo *memo;
	struct reading r = {.fd = fd, .limits = limits, .progress = progress, .context = context};
	int err = file_stamp__read(fd, &before);

	if (err)
		return err;
	memo = find_memo(ledger, &before);
	if (memo && !memo->err)
		*crc = memo->crc;
	if (memo)
		return memo->err;
	r.size = before.size;
	r.user = account_of(ledger, user);
	r.others = user == ROOT ? NULL : &ledger->strangers;
	err = read_file(&r);
	if (!err && (file_stamp__read(fd, &after) || memcmp(&before, &after, sizeof(after))))
		return -ESTALE;
	if (!err || err == -EFBIG)
		keep_memo(ledger, &before, r.crc, err);
	if (!err)
		*crc = r.crc;
	return err;
}
