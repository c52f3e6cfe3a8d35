/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/parts/code_private.h"

void plain_files__fini(struct plain_files *p)
{
	file_set__fini(&p->files);
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
	return file_set__find(&p->files, file);
}

void plain_files__add(struct plain_files *p, uint64_t file)
{
	if (p->files.count >= PLAIN_FILES_MAX && !plain_files__has(p, file))
		file_set__clear(&p->files);
	file_set__need(&p->files, &file, NULL);
}
