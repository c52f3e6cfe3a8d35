/* SPDX-License-Identifier: BSD-2-Clause */
/* Jitdumps, record by record. To be included after cmocka.h. */
#ifndef TESTS_UNIT_FORGE_JITDUMP_H
#define TESTS_UNIT_FORGE_JITDUMP_H

struct dump {
	unsigned char bytes[8192];
	size_t size;
};

static inline void put(struct dump *d, const void *data, size_t size)
{
	assert_true(d->size + size <= sizeof(d->bytes));
	memcpy(d->bytes + d->size, data, size);
	d->size += size;
}

static inline void put32(struct dump *d, uint32_t value)
{
	put(d, &value, sizeof(value));
}

static inline void put64(struct dump *d, uint64_t value)
{
	put(d, &value, sizeof(value));
}

/* Any header. */
static inline void put_header_as(struct dump *d, uint32_t magic, uint32_t version, uint32_t size,
				 uint64_t flags)
{
	put32(d, magic);
	put32(d, version);
	put32(d, size);
	put32(d, 62);
	put32(d, 0);
	put32(d, 1234);
	put64(d, 5);
	put64(d, flags);
}

static inline void put_header(struct dump *d, uint64_t flags)
{
	put_header_as(d, 0x4a695444, 1, 40, flags);
}

/* The size comes when the record ends. */
static inline size_t begin_record(struct dump *d, uint32_t id, uint64_t time)
{
	size_t at = d->size;

	put32(d, id);
	put32(d, 0);
	put64(d, time);
	return at;
}

static inline void end_record(struct dump *d, size_t at)
{
	uint32_t size = d->size - at;

	memcpy(d->bytes + at + 4, &size, sizeof(size));
}

/* With so many bytes of its code, all of them this one. */
static inline void put_load_of(struct dump *d, uint64_t time, uint64_t address, uint64_t size,
			       uint64_t written, unsigned char byte, const char *name)
{
	size_t at = begin_record(d, 0, time);

	put32(d, 1234);
	put32(d, 1235);
	put64(d, address);
	put64(d, address);
	put64(d, size);
	put64(d, 7);
	put(d, name, strlen(name) + 1);
	for (uint64_t i = 0; i < written; i++)
		put(d, &byte, 1);
	end_record(d, at);
}

/* All but its code, which comes next. */
static inline void put_load_head(struct dump *d, uint64_t time, uint64_t address, uint64_t size,
				 const char *name)
{
	size_t at = d->size;
	uint32_t record;

	put_load_of(d, time, address, size, 0, 0, name);
	record = d->size - at + size;
	memcpy(d->bytes + at + 4, &record, sizeof(record));
}

static inline void put_load_cut(struct dump *d, uint64_t time, uint64_t address, uint64_t size,
				uint64_t written, const char *name)
{
	put_load_of(d, time, address, size, written, 0x90, name);
}

static inline void put_load(struct dump *d, uint64_t time, uint64_t address, uint64_t size,
			    const char *name)
{
	put_load_cut(d, time, address, size, size, name);
}

static inline void put_move(struct dump *d, uint64_t time, uint64_t from, uint64_t to,
			    uint64_t size)
{
	size_t at = begin_record(d, 1, time);

	put32(d, 1234);
	put32(d, 1235);
	put64(d, to);
	put64(d, from);
	put64(d, to);
	put64(d, size);
	put64(d, 7);
	end_record(d, at);
}

static inline void put_close(struct dump *d, uint64_t time)
{
	end_record(d, begin_record(d, 3, time));
}

static inline void put_line(struct dump *d, uint64_t address, uint32_t line, uint32_t column,
			    const char *file)
{
	put64(d, address);
	put32(d, line);
	put32(d, column);
	put(d, file, strlen(file) + 1);
}

#endif
