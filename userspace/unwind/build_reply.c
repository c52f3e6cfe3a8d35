/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a builder says is looked at in this order: is the memory as it was made, and can nobody write it any more? Then it
 * is copied, and the copy is checked. What is not looked at is not used.
 */
#include "unwind/build_reply.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/io.h"

/* A copy that is ours alone of memory that nobody can write. 0, -EPROTO, -ENOMEM. */
static int copy_table(int memory, const struct unwind_table_image *told, uint64_t limit,
		      struct unwind_table_image *image)
{
	const int wanted = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;
	_cleanup_free_ void *bytes = NULL;
	int seals = fcntl(memory, F_GET_SEALS);

	if (seals < 0 || (seals & wanted) != wanted || !told->size || told->size > limit)
		return -EPROTO;
	if (posix_memalign(&bytes, UNWIND_IMAGE_ALIGNMENT, told->size))
		return -ENOMEM;
	if (pread_full(memory, bytes, told->size, 0) != (ssize_t)told->size)
		return -EPROTO;
	*image = *told;
	image->bytes = bytes;
	if (unwind_table_image__check(image)) {
		*image = (struct unwind_table_image){};
		return -EPROTO;
	}
	bytes = NULL;
	return 0;
}

/* Could a builder have said that of a file without a table? */
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

int build_reply__take(const struct build_reply *reply, uint64_t ticket, int memory,
		      const struct build_request *request, struct build_result *result)
{
	bool good = !reply->err && reply->refusal == TABLE_REFUSAL_NONE;

	if (reply->ticket != ticket)
		return -EPROTO;
	if (good)
		return copy_table(memory, &reply->image, request->limit, &result->image);
	if (!error_is_good(reply))
		return -EPROTO;
	result->refusal = reply->refusal;
	return reply->err;
}
