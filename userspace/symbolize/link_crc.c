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

#define STEP	      (256u << 10)
#define PROGRESS_STEP (1u << 20) /* less than what a slow disk reads in some seconds */
#define EXTENTS_MAX   16384	 /* pieces between holes: debuggers' files have a few */

/* One file being read. */
struct reading {
	int fd;
	uint64_t size, data; /* bytes; those of them that are no holes */
	uint64_t read;
	struct crc_ledger *ledger;
	uid_t user;
	crc_progress_fn progress;
	void *context;
	char *buffer;
	uint32_t crc;
};

/* ---- the books ------------------------------------------------------------------------------- */

void crc_ledger__init(struct crc_ledger *ledger)
{
	*ledger = (struct crc_ledger){.file_bytes = quota_row(QUOTA_CRC_BYTES)->each.limit};
	quota__init(&ledger->bytes, QUOTA_CRC_BYTES);
	quota__init(&ledger->time, QUOTA_CRC_TIME);
}

static bool has_credit(const struct reading *r, uint64_t bytes)
{
	return quota__refusal(&r->ledger->bytes, r->user, bytes, 0) == OUTSIDE_REASON_COUNT &&
	       quota__refusal(&r->ledger->time, r->user, 0, 0) == OUTSIDE_REASON_COUNT;
}

static void charge(struct reading *r, uint64_t bytes, uint64_t ns)
{
	quota__take(&r->ledger->bytes, r->user, bytes, 0);
	quota__take(&r->ledger->time, r->user, ns, 0);
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

/* [*start, *end): the next piece from `at` on that is no hole; *start is r->size: none is left. */
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
	uint64_t start, end, limit = r->ledger->file_bytes ? r->ledger->file_bytes : UINT64_MAX;
	unsigned int pieces = 0;

	for (uint64_t at = 0; at < r->size; at = end) {
		next_piece(r, at, &start, &end);
		r->data += end - start;
		if (r->data > limit || pieces++ == EXTENTS_MAX)
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

int link_crc(struct crc_ledger *ledger, uid_t user, int fd, crc_progress_fn progress, void *context,
	     uint32_t *crc)
{
	struct file_stamp before, after;
	const struct crc_memo *memo;
	struct reading r = {
		.fd = fd, .ledger = ledger, .user = user, .progress = progress, .context = context};
	int err = file_stamp__read(fd, &before);

	if (err)
		return err;
	memo = find_memo(ledger, &before);
	if (memo && !memo->err)
		*crc = memo->crc;
	if (memo)
		return memo->err;
	r.size = before.size;
	err = read_file(&r);
	if (!err && (file_stamp__read(fd, &after) || memcmp(&before, &after, sizeof(after))))
		return -ESTALE;
	if (!err || err == -EFBIG)
		keep_memo(ledger, &before, r.crc, err);
	if (!err)
		*crc = r.crc;
	return err;
}
