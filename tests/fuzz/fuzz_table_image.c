/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reply as a builder that was taken over may send it: the input is the reply and then what is in the memory for the
 * table. What is taken can be searched and walked by, and every rule in it is one of a builder's.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "fuzz_walk.h"
#include "models/unwind_find.h"
#include "unwind/build.h"
#include "unwind/unwind.h"
#include "unwind/unwind_table.h"

#define BUCKETS_TRIED 4096
#define FIELDS_SIZE   sizeof(struct build_reply)
#define LIMIT	      65536

/* As it is built: five rows, two rules. */
static const struct good {
	struct build_reply reply;
	struct {
		struct unwind_rule rules[2];
		uint32_t index[4];
		uint8_t numbers[6], addresses[6], rest[516];
	} bytes;
} GOOD = {
	.reply = {.image = {.table = {.base = 0x1000,
				      .buckets = 3,
				      .index = 32,
				      .numbers = 48,
				      .addresses = 54,
				      .number_size = 1},
			    .size = sizeof(GOOD.bytes),
			    .rows = 6}},
	.bytes = {.rules = {{},
			    {.cfa = UNWIND_CFA_SP,
			     .cfa_register = UNWIND_X86_RSP,
			     .cfa_offset = 8,
			     .ra = UNWIND_RA_AT_CFA,
			     .ra_offset = -8}},
		  .index = {1, 3, 3, 6},
		  .numbers = {0, 1, 0, 1, 0, 1},
		  .addresses = {0, 0, 200, 7, 8, 9}},
};

/* Most changes go to the fields, the rules and the index. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	size_t head = FIELDS_SIZE + 96;

	if (size < head) {
		size = max_size < sizeof(GOOD) ? 0 : sizeof(GOOD);
		memcpy(data, &GOOD, size);
		return size;
	}
	if (seed % 4 == 0)
		return LLVMFuzzerMutate(data, size, max_size);
	LLVMFuzzerMutate(data, head, head);
	return size;
}

static void try_all(const struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;

	for (uint64_t i = 0; i < t->buckets && i < BUCKETS_TRIED; i++) {
		uint64_t address = t->base + (i << UNWIND_BUCKET_BITS) + (i & 255);
		const struct unwind_rule *rule = unwind_table__find(image->bytes, t, address);

		MUST((const char *)(rule + 1) <= (const char *)image->bytes + t->index);
		MUST(rule->cfa <= UNWIND_CFA_STARTER && rule->cfa_register < 16);
		MUST(rule->fp <= UNWIND_FP_UNKNOWN && rule->rbx <= UNWIND_RBX_AT_CFA);
		MUST(rule->ra <= UNWIND_RA_REGISTER);
		walk(image, address);
	}
}

static int table_memory(const void *bytes, size_t size, bool sealed)
{
	int fd = memfd_create("table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, LIMIT));
	MUST(!fcntl(fd, F_ADD_SEALS, F_SEAL_GROW | F_SEAL_SHRINK));
	MUST(pwrite(fd, bytes, size, 0) == (ssize_t)size);
	MUST(!sealed || !fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE));
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum table_refusal refusal = TABLE_REFUSAL_NONE;
	struct unwind_table_image image = {};
	struct build_reply reply;
	bool sealed;
	int fd, err;

	if (size < FIELDS_SIZE || size - FIELDS_SIZE > LIMIT)
		return 0;
	memcpy(&reply, data, FIELDS_SIZE);
	sealed = !reply.image.bytes; /* a pointer of theirs is not used for anything else */
	fd = table_memory(data + FIELDS_SIZE, size - FIELDS_SIZE, sealed);
	err = build_reply__take(&reply, sizeof(reply), fd, LIMIT, &image, &refusal);
	close(fd);
	MUST(err <= 0 && !err == (image.bytes != NULL));
	MUST(refusal < TABLE_REFUSAL_DIED && (err == -EFBIG) == (refusal != 0));
	if (err)
		return 0;
	MUST(sealed && image.size <= LIMIT);
	try_all(&image);
	unwind_table_image__fini(&image);
	return 0;
}
