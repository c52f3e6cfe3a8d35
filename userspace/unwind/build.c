/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/build.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "unwind/unwind_table_check.h"

#define BIG_FILE  (1 << 20)	       /* bytes */
#define BIG_HEAP  (96 << 20)	       /* more than building most tables takes */
#define COUNT_MAX (1u << 20)	       /* pieces of JIT code … */
#define BYTES_MAX (UINT64_C(64) << 20) /* … and of their sections */

static const helper_serve_fn services[] = {build__serve};

const struct helper_pool_options builder_options = {
	.class = HELPER_BUILDER,
	.keeper = HELPER_SEALED_KEEPER,
	.services = services,
	.service_count = 1,
	.once = true,
	.at_once = 1,
	.most = 2,
	.any_cpu_time = true, /* QUOTA_TABLE_BUILDING is charged instead */
};

/* ---- pieces of JIT code ---------------------------------------------------------------------- */

/* The bytes of the section follow. */
struct piece_record {
	uint64_t start, end, address;
	uint32_t size;
	uint32_t is_eh_frame;
};

static int write_piece(const struct unwind_piece *piece, FILE *f)
{
	const struct cfi_section *section = &piece->section;
	const struct piece_record record = {
		.start = piece->start,
		.end = piece->end,
		.address = section->address,
		.size = (uint32_t)section->size,
		.is_eh_frame = section->is_eh_frame,
	};

	return fwrite(&record, sizeof(record), 1, f) == 1 &&
			       fwrite(section->data, 1, section->size, f) == section->size
		       ? 0
		       : -EIO;
}

int build_pieces__write(const struct unwind_piece *pieces, size_t count)
{
	_cleanup_close_ int fd = memfd_create("pieces", MFD_CLOEXEC);
	_cleanup_fclose_ FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	uint64_t left = BYTES_MAX;
	int err = f ? 0 : -errno, copy;

	if (f)
		fd = -1; /* owned by the stream */
	if (count > COUNT_MAX)
		return -E2BIG;
	for (size_t i = 0; i < count && !err; i++) {
		if (pieces[i].section.size > left)
			return -E2BIG;
		left -= pieces[i].section.size;
		err = write_piece(&pieces[i], f);
	}
	if (!err && fflush(f))
		err = -errno;
	if (err)
		return err;
	copy = fcntl(fileno(f), F_DUPFD_CLOEXEC, 0);
	return copy < 0 ? -errno : copy;
}

typedef VEC(struct unwind_piece) piece_list;

static int point_out(const char *bytes, size_t size, piece_list *pieces)
{
	struct piece_record r;
	int err = 0;

	for (size_t at = 0; at < size && !err; at += r.size) {
		if (size - at < sizeof(r) || pieces->count == COUNT_MAX)
			return -EBADMSG;
		memcpy(&r, bytes + at, sizeof(r));
		at += sizeof(r);
		if (r.size > size - at)
			return -EBADMSG;
		err = vec_push(pieces, (struct unwind_piece){
					       .start = r.start,
					       .end = r.end,
					       .section = {.data = (const uint8_t *)bytes + at,
							   .size = r.size,
							   .address = r.address,
							   .is_eh_frame = r.is_eh_frame != 0},
				       });
	}
	return err;
}

/* Calls unwind_table__build_pieces(). -EBADMSG: the input is invalid. */
static int build_pieces(int fd, size_t limit, struct unwind_table_image *image,
			enum table_refusal *refusal)
{
	_cleanup_free_ char *bytes = NULL;
	piece_list pieces = {};
	struct stat st;
	int err;

	if (fstat(fd, &st))
		return -errno;
	bytes = malloc(st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	if (pread_full(fd, bytes, st.st_size, 0) != st.st_size)
		return -EIO;
	err = point_out(bytes, st.st_size, &pieces)
		      ?: unwind_table__build_pieces(pieces.data, pieces.count, limit, image);
	if (err == -EFBIG)
		*refusal = TABLE_REFUSAL_SIZE;
	vec_free(&pieces);
	return err;
}

/* ---- in a builder ---------------------------------------------------------------------------- */

/*
 * A builder's memory is new, and a large table takes some ten thousand pages of it. Huge pages, if
 * the kernel has them, take a sixth of the time. All allocations are then in one block.
 */
static void expect_much(int fd)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	struct stat st;
	char *heap;

	if (fstat(fd, &st) || st.st_size < BIG_FILE)
		return;
	mallopt(M_MMAP_THRESHOLD, BIG_HEAP);
	mallopt(M_TRIM_THRESHOLD, BIG_HEAP);
	heap = malloc(BIG_HEAP - page);
	if (heap)
		madvise((void *)(((uintptr_t)heap + page) & ~(page - 1)), BIG_HEAP - 3 * page,
			MADV_HUGEPAGE);
	free(heap);
}

static int open_and_build(const struct build_question *q, int fd, struct unwind_table_image *image,
			  enum table_refusal *refusal)
{
	struct elf_file *file;
	int err;

	expect_much(fd);
	err = elf_file__open_at(fd, q->base, &file);
	if (err)
		return err;
	err = unwind_table__build_within(file, q->limit, &BUILD_LIMITS, image, refusal);
	elf_file__free(file);
	return err;
}

void build__serve(struct helper_job *job)
{
	const struct build_question *q = job->request;
	struct build_reply *reply = job->answer;
	enum table_refusal refusal = TABLE_REFUSAL_NONE;
	struct unwind_table_image image = {};
	int err;

	if (job->request_size != sizeof(*q) || job->fd_count != 2)
		return;
	if (q->kind == BUILD_PIECES)
		err = build_pieces(job->fds[0], q->limit, &image, &refusal);
	else
		err = open_and_build(q, job->fds[0], &image, &refusal);
	/* free the input first: the requester copies the table as soon as it is complete */
	malloc_trim(0);
	if (!err)
		err = write_full(job->fds[1], image.bytes, image.size);
	if (!err)
		err = sealed_memory__seal(job->fds[1]);
	reply->err = err;
	reply->refusal = refusal;
	reply->image = image;
	reply->image.bytes = NULL;
	job->answer_size = sizeof(*reply);
	unwind_table_image__fini(&image);
}

/* ---- the reply ------------------------------------------------------------------------------- */

/* Copies memory that no process can write any more. 0, -EPROTO, -ENOMEM. */
static int copy_table(int memory, const struct unwind_table_image *reported, uint64_t limit,
		      struct unwind_table_image *image)
{
	_cleanup_free_ void *bytes = NULL;
	struct unwind_table_image copy = *reported;

	if (!copy.size || copy.size > limit)
		return -EPROTO;
	if (posix_memalign(&bytes, UNWIND_IMAGE_ALIGNMENT, copy.size))
		return -ENOMEM;
	copy.bytes = bytes;
	if (sealed_memory__read(memory, bytes, copy.size) || unwind_table_image__check(&copy))
		return -EPROTO;
	*image = copy;
	bytes = NULL;
	return 0;
}

/* Is this a valid reply for a file without a table? */
static bool error_is_good(const struct build_reply *reply)
{
	static const int ERRORS[] = {ENODATA, ENOTSUP, EFBIG, EBADMSG, ENOMEM, EIO, ENOEXEC};

	/* refusals from DIED on are set by the requester only */
	if (reply->refusal >= TABLE_REFUSAL_DIED ||
	    (reply->err == -EFBIG) != (reply->refusal != TABLE_REFUSAL_NONE))
		return false;
	for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
		if (reply->err == -ERRORS[i])
			return true;
	return false;
}

int build_reply__take(const void *bytes, size_t size, int memory, uint64_t limit,
		      struct unwind_table_image *image, enum table_refusal *refusal)
{
	struct build_reply reply;

	if (size != sizeof(reply))
		return -EPROTO;
	memcpy(&reply, bytes, sizeof(reply));
	if (!reply.err && reply.refusal == TABLE_REFUSAL_NONE)
		return copy_table(memory, &reply.image, limit, image);
	if (!error_is_good(&reply))
		return -EPROTO;
	*refusal = reply.refusal;
	return reply.err;
}
