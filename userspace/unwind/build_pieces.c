/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/build_pieces.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

#define COUNT_MAX (1u << 20)
#define BYTES_MAX (UINT64_C(64) << 20)

struct piece_record {
	uint64_t start, end, address;
	uint32_t size;
	uint32_t is_eh_frame;
};

static int copy_records(const struct unwind_piece *pieces, size_t count,
			struct piece_record **result)
{
	struct piece_record *records = calloc(count + 1, sizeof(*records));
	uint64_t bytes = 0;

	if (!records)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct cfi_section *section = &pieces[i].section;

		if (section->size > BYTES_MAX - bytes) {
			free(records);
			return -E2BIG;
		}
		bytes += section->size;
		records[i] = (struct piece_record){
			.start = pieces[i].start,
			.end = pieces[i].end,
			.address = section->address,
			.size = (uint32_t)section->size,
			.is_eh_frame = section->is_eh_frame,
		};
	}
	*result = records;
	return 0;
}

int build_pieces__write(const struct unwind_piece *pieces, size_t count)
{
	_cleanup_free_ struct piece_record *records = NULL;
	_cleanup_close_ int fd = -1;
	uint64_t number = count;
	int err = count > COUNT_MAX ? -E2BIG : copy_records(pieces, count, &records);

	if (err)
		return err;
	fd = memfd_create("pieces", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_full(fd, &number, sizeof(number));
	if (!err)
		err = write_full(fd, records, count * sizeof(*records));
	for (size_t i = 0; i < count && !err; i++)
		err = write_full(fd, pieces[i].section.data, pieces[i].section.size);
	return err ? err : steal_fd(fd);
}

/* The sections follow the records in `bytes`, which has `size` bytes. */
static int point_out(const char *bytes, size_t size, struct unwind_piece **result, size_t *count)
{
	const struct piece_record *records = (const void *)(bytes + sizeof(uint64_t));
	uint64_t number, at;
	struct unwind_piece *pieces;

	if (size < sizeof(number))
		return -EBADMSG;
	number = *(const uint64_t *)(const void *)bytes;
	at = sizeof(number) + number * sizeof(*records);
	if (number > COUNT_MAX || at > size)
		return -EBADMSG;
	pieces = calloc(number + 1, sizeof(*pieces));
	if (!pieces)
		return -ENOMEM;
	for (uint64_t i = 0; i < number; i++) {
		const struct piece_record *r = &records[i];

		if (r->size > size - at) {
			free(pieces);
			return -EBADMSG;
		}
		pieces[i] = (struct unwind_piece){
			.start = r->start,
			.end = r->end,
			.section = {.data = (const uint8_t *)bytes + at,
				    .size = r->size,
				    .address = r->address,
				    .is_eh_frame = r->is_eh_frame != 0},
		};
		at += r->size;
	}
	*result = pieces;
	*count = number;
	return 0;
}

int build_pieces__build(int fd, size_t limit, struct unwind_table_image *image,
			enum table_refusal *refusal)
{
	_cleanup_free_ struct unwind_piece *pieces = NULL;
	_cleanup_free_ char *bytes = NULL;
	struct stat st;
	size_t count;
	int err;

	if (fstat(fd, &st))
		return -errno;
	bytes = malloc(st.st_size + 1);
	if (!bytes)
		return -ENOMEM;
	if (pread_full(fd, bytes, st.st_size, 0) != st.st_size)
		return -EIO;
	err = point_out(bytes, st.st_size, &pieces, &count);
	if (!err)
		err = unwind_table__build_pieces(pieces, count, limit, image);
	if (err == -EFBIG)
		*refusal = TABLE_REFUSAL_SIZE;
	return err;
}
