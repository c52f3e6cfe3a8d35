/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/build.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define BIG_FILE  (1 << 20)	 /* bytes */
#define BIG_HEAP  (96 << 20)	 /* more than most tables take to be built */
#define WALL_TIME 20000000000ull /* ns that a builder may take in all, on a busy machine */
#define HANGS	  3		 /* of one user's files: a disk may be slow */

static const helper_serve_fn services[] = {build__serve};

const struct helper_pool_options builder_options = {
	.class = HELPER_BUILDER,
	.keeper = HELPER_SEALED_KEEPER,
	.services = services,
	.service_count = 1,
	.once = true,
	.at_once = 1,
	.most = 2,
	.wall_time = WALL_TIME,
	.hangs = HANGS,
	.any_cpu_time = true, /* QUOTA_TABLE_BUILDING limits all of them */
};

/* ---- in a builder ---------------------------------------------------------------------------- */

/*
 * A builder's memory is new, and a large table takes some ten thousand pages of it: as huge ones, where the kernel has
 * them, they are a sixth of the time. All that is allocated then lies in one piece.
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
		err = build_pieces__build(job->fds[0], q->limit, &image, &refusal);
	else
		err = open_and_build(q, job->fds[0], &image, &refusal);
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

/* A copy of memory that no process can write any more. 0, -EPROTO, -ENOMEM. */
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

/* Could a builder have sent that of a file without a table? */
static bool error_is_good(const struct build_reply *reply)
{
	static const int ERRORS[] = {ENODATA, ENOTSUP, EFBIG, EBADMSG, ENOMEM, EIO, ENOEXEC};

	/* refusals from DIED on are what is found here */
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
