/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/build.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"

#define COUNT_MAX (1u << 20)
#define BYTES_MAX (UINT64_C(64) << 20)

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
		fd = -1; /* it is the stream's */
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

int build_pieces__build(int fd, size_t limit, struct unwind_table_image *image,
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
	err = point_out(bytes, st.st_size, &pieces);
	if (!err)
		err = unwind_table__build_pieces(pieces.data, pieces.count, limit, image);
	if (err == -EFBIG)
		*refusal = TABLE_REFUSAL_SIZE;
	vec_free(&pieces);
	return err;
}
