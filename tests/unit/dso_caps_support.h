/* SPDX-License-Identifier: BSD-2-Clause */
/* Openers with small caps, and more files than they can keep. */
#ifndef TESTS_UNIT_DSO_CAPS_SUPPORT_H
#define TESTS_UNIT_DSO_CAPS_SUPPORT_H

#include "dso_support.h"

#include <dirent.h>
#include <elf.h>

#include "files/dso_opener_private.h"

enum { FEW = 10, MANY = 40 };

#define SECOND	1000000000ull
#define MINUTE	(60 * SECOND)
#define NOTE_ID 36 /* bytes: of a build-id's note */

/* A program that has a build-id, and nothing else. */
static inline void make_program(const char *path, uint32_t number)
{
	struct {
		Elf64_Ehdr header;
		Elf64_Phdr segment;
		Elf64_Nhdr note;
		char name[4];
		uint8_t id[BUILD_ID_SIZE];
	} file = {
		.header =
			{
				.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					    EV_CURRENT},
				.e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_version = EV_CURRENT,
				.e_phoff = sizeof(Elf64_Ehdr),
				.e_ehsize = sizeof(Elf64_Ehdr),
				.e_phentsize = sizeof(Elf64_Phdr),
				.e_phnum = 1,
			},
		.segment =
			{
				.p_type = PT_NOTE,
				.p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
				.p_filesz = NOTE_ID,
				.p_memsz = NOTE_ID,
				.p_align = 4,
			},
		.note = {.n_namesz = 4, .n_descsz = BUILD_ID_SIZE, .n_type = NT_GNU_BUILD_ID},
		.name = "GNU",
	};
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

	memset(file.id, 0xb5, sizeof(file.id));
	memcpy(file.id, &number, sizeof(number));
	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, &file, sizeof(file)), 0);
	close(fd);
}

static inline char *numbered(const char *what, uint32_t number)
{
	char name[40];

	snprintf(name, sizeof(name), "%s-%u", what, number);
	return in_directory(name);
}

/* A program of ours, mapped by us at that time, as perf reports it. */
static inline enum file_state see_program(struct dso_opener *o, uint32_t number, uint64_t time,
					  struct mapping *m)
{
	char *path = numbered("program", number);

	if (access(path, F_OK))
		make_program(path, number);
	make_perf_event(m, getpid(), path, path);
	m->event.header.time = time;
	return see(o, m);
}

/* A text of ours, which has no build-id. */
static inline enum file_state see_text(struct dso_opener *o, uint32_t number, uint64_t time,
				       struct mapping *m)
{
	char *path = numbered("text", number);

	if (access(path, F_OK))
		write_text(path, path);
	make_inode_event(m, getpid(), path, 0);
	m->event.header.time = time;
	return see(o, m);
}

static inline struct dso_opener *open_capped(struct dso_opener_options options)
{
	struct dso_opener *o;

	options.idle = MINUTE;
	assert_int_equal(dso_opener__new(&options, &o), 0);
	return o;
}

static inline struct dso_opener_stats stats_of(const struct dso_opener *o)
{
	struct dso_opener_stats stats;

	dso_opener__stats(o, &stats);
	return stats;
}

static inline size_t count_fds(void)
{
	DIR *fds = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(fds);
	while (readdir(fds))
		count++;
	closedir(fds);
	return count;
}

/* Every index has what its table has, and every count is right. */
static inline void close_opener(struct dso_opener *o)
{
	const struct dso_files *f = &o->files;
	const struct dso_sightings *s = &f->sightings;
	const struct dso_roots *r = &o->roots;
	size_t files = 0, fds = 0, roots = 0, sightings = 0, references = 0, counted = 0;

	for (size_t i = 0; i < f->files.count; i++) {
		const struct dso_file *file = &f->files.data[i];

		fds += file->fd >= 0;
		files += file->path != NULL;
		references += dso_roots__fd(r, file->root) >= 0;
	}
	for (uint32_t i = 0; i < s->sightings.count; i++) {
		uint32_t indexed = 0;

		if (!s->sightings.data[i].path)
			continue;
		assert_non_null(f->files.data[s->sightings.data[i].file].path);
		hashmap_each (&s->by_file, hash_u64(s->sightings.data[i].file), indexed)
			if (indexed == i)
				break;
		assert_int_equal(indexed, i);
		sightings++;
	}
	for (size_t i = 0; i < r->roots.count; i++) {
		roots += r->roots.data[i].fd >= 0;
		counted += r->roots.data[i].files;
	}
	assert_int_equal(files, f->order.count);
	assert_int_equal(sightings, s->order.count);
	assert_int_equal(roots, r->order.count);
	assert_int_equal(references, counted);
	assert_int_equal(fds, f->open.count);
	assert_true(f->by_build_id.count + f->by_inode.count <= files);
	assert_int_equal(s->by_numbers.count, sightings);
	assert_int_equal(s->by_file.count, sightings);
	dso_opener__free(o);
}

/* Is its file known without a search? */
static inline bool is_sighted(struct dso_opener *o, const struct mapping *m)
{
	uint64_t generation;

	return dso_files__of_mapping(&o->files, &m->event,
				     dso_roots__of_event(&o->roots, &m->event),
				     &generation) != HASHMAP_NONE;
}

struct read_file {
	const struct mapping *m;
	unsigned int right;
};

static inline int check_file(void *context, uint32_t key, const struct file_answer *answer)
{
	struct read_file *read = context;
	uint8_t id[BUILD_ID_SIZE];

	assert_int_equal(key, 5);
	read->right += answer->fd >= 0 &&
		       build_id_of(answer->fd, id) == read->m->event.build_id_size &&
		       !memcmp(id, read->m->event.build_id, sizeof(id));
	return 0;
}

static inline bool request_is_right(struct dso_opener *o, const struct mapping *m)
{
	struct read_file read = {.m = m};
	const struct file_request request = {check_file, &read, 5};

	assert_int_equal(dso_opener__request(o, m->event.file, &request), 0);
	return read.right == 1;
}

#endif
