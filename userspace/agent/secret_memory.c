/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of powers of two with a free list for each size, cut from chunks that core dumps leave out
 * (MADV_DONTDUMP). Chunks are never given back: libcurl needs only a few. Large blocks are mappings
 * of their own. A fork waits until no call is under way: the child may go on allocating.
 */
#include "agent/secret_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/minmax.h"

#define SMALLEST   6  /* 64 bytes, with the block's head */
#define LARGEST	   17 /* 128 KB */
#define CHUNK_SIZE (256u * 1024)

struct block {
	size_t size; /* with this head */
	struct block *next;
} __attribute__((aligned(16)));

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct block *free_blocks[LARGEST + 1];
static char *chunk;
static size_t chunk_left;

static void take_lock(void)
{
	pthread_mutex_lock(&lock);
}

static void give_lock(void)
{
	pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(take_lock, give_lock, give_lock);
}

static void *map_undumped(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	if (madvise(p, size, MADV_DONTDUMP)) {
		munmap(p, size);
		return NULL;
	}
	return p;
}

/* Under the lock. */
static struct block *cut_block(size_t size)
{
	struct block *b;

	if (chunk_left < size) {
		char *fresh = map_undumped(CHUNK_SIZE); /* the rest of the old one stays unused */

		if (!fresh)
			return NULL;
		chunk = fresh;
		chunk_left = CHUNK_SIZE;
	}
	b = (struct block *)chunk;
	b->size = size;
	chunk += size;
	chunk_left -= size;
	return b;
}

static struct block *get_block(int order)
{
	struct block *b;

	pthread_once(&once, watch_forks);
	take_lock();
	b = free_blocks[order];
	if (b)
		free_blocks[order] = b->next;
	else
		b = cut_block((size_t)1 << order);
	give_lock();
	return b;
}

static struct block *map_block(size_t size)
{
	struct block *b = map_undumped(size);

	if (b)
		b->size = size;
	return b;
}

void *secret_alloc(size_t size)
{
	size_t whole = size + sizeof(struct block);
	struct block *b;
	int order = SMALLEST;

	if (whole < size || whole > PTRDIFF_MAX) {
		errno = ENOMEM;
		return NULL;
	}
	while (order <= LARGEST && (size_t)1 << order < whole)
		order++;
	b = order > LARGEST ? map_block(whole) : get_block(order);
	if (!b) {
		errno = ENOMEM;
		return NULL;
	}
	return b + 1;
}

void secret_free(void *p)
{
	struct block *b;
	int saved = errno;

	if (!p)
		return;
	b = (struct block *)p - 1;
	if (b->size > (size_t)1 << LARGEST) {
		munmap(b, b->size);
		errno = saved;
		return;
	}
	explicit_bzero(p, b->size - sizeof(*b));
	take_lock();
	b->next = free_blocks[__builtin_ctzll(b->size)];
	free_blocks[__builtin_ctzll(b->size)] = b;
	give_lock();
	errno = saved;
}

void *secret_calloc(size_t count, size_t size)
{
	size_t all;
	void *p;

	if (__builtin_mul_overflow(count, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	p = secret_alloc(all);
	return p ? memset(p, 0, all) : NULL;
}

void *secret_realloc(void *p, size_t size)
{
	size_t old = p ? ((struct block *)p - 1)->size - sizeof(struct block) : 0;
	void *new;

	if (p && size <= old)
		return p;
	new = secret_alloc(size);
	if (!new)
		return NULL;
	if (p)
		memcpy(new, p, min_u64(old, size));
	secret_free(p);
	return new;
}

char *secret_strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = secret_alloc(size);

	return copy ? memcpy(copy, text, size) : NULL;
}
