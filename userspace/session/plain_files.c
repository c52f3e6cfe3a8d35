/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/plain_files.h"

#include <stdlib.h>

static bool is_file(const void *owner, uint32_t index, const void *key)
{
	const struct plain_files *p = owner;

	return p->files.data[index] == *(const uint64_t *)key;
}

void plain_files__init(struct plain_files *p)
{
	*p = (struct plain_files){};
	hashmap__init(&p->by_file, is_file, p);
}

void plain_files__fini(struct plain_files *p)
{
	vec_free(&p->files);
	hashmap__fini(&p->by_file);
}

uint64_t plain_files__identity(const struct mmap_event *m)
{
	uint64_t hash = hash_combine((uint64_t)m->major << 32 | m->minor, m->inode);

	hash = hash_combine(hash, m->inode_generation);
	if (m->build_id_size <= BUILD_ID_SIZE)
		hash = hash_combine(hash, hash_bytes(m->build_id, m->build_id_size));
	if (!m->inode)
		hash = hash_combine(hash, hash_string(m->path));
	return hash | 1;
}

uint64_t plain_files__of_owner(uint64_t file, uint64_t owner)
{
	return hash_combine(file, owner) | 1;
}

bool plain_files__has(const struct plain_files *p, uint64_t file)
{
	return hashmap__find(&p->by_file, hash_u64(file), &file) != HASHMAP_NONE;
}

void plain_files__add(struct plain_files *p, uint64_t file)
{
	if (plain_files__has(p, file))
		return;
	if (p->files.count >= PLAIN_FILES_MAX) {
		hashmap__clear(&p->by_file);
		p->files.count = 0;
	}
	if (!vec_push(&p->files, file) &&
	    hashmap__add(&p->by_file, hash_u64(file), p->files.count - 1))
		p->files.count--;
}
