/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kind of a mapping, by the name that the kernel gives it.
 *
 * Memory without an ELF file behind it (anonymous, heap, stack, shared memory, a memfd without a
 * build-id) can only be code that was made at run time: one image for each name, since device and
 * inode of such memory mean nothing to a reader.
 *
 * Slots of forgotten images are used again; slot 0 stays empty.
 */
#include "world/image_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/hashmap.h"
#include "base/proc_task.h"
#include "base/suffix.h"
#include "base/vec.h"
#include "tenants/quota.h"

#define LEFT_NAME "[unknown]" /* as for addresses outside of every mapping */
#define LEAST	  1024	      /* images that each user may have in any case */

struct slot {
	struct image *image; /* NULL: free */
	bool marked, idle;   /* idle: not marked the last time */
	bool charged;	     /* to this user */
	uint32_t user;
};

struct image_table {
	struct quota quota;
	size_t least;
	VEC(struct slot) slots;
	VEC(uint32_t) unused; /* has room for every slot */
	struct hashmap index;
};

/* ---- equality -------------------------------------------------------------------------------- */

static bool same_image(const struct image *image, const struct image *key)
{
	const struct profile_dso *a = &image->dso, *k = &key->dso;

	if (a->kind != k->kind || a->build_id_size != k->build_id_size ||
	    a->unshared != k->unshared || memcmp(a->build_id, k->build_id, k->build_id_size) != 0)
		return false;
	if (k->build_id_size && !k->unshared)
		return true;
	return a->major == k->major && a->minor == k->minor && a->inode == k->inode &&
	       a->inode_generation == k->inode_generation && !strcmp(image->path, key->path);
}

static uint64_t hash_image(const struct image *image)
{
	const struct profile_dso *dso = &image->dso;
	uint64_t hash = hash_u64(dso->kind);

	hash = hash_combine(hash, hash_bytes(dso->build_id, dso->build_id_size));
	if (dso->build_id_size && !dso->unshared)
		return hash;
	hash = hash_combine(hash, hash_u64((uint64_t)dso->major << 32 | dso->minor));
	hash = hash_combine(hash, hash_u64(dso->inode));
	hash = hash_combine(hash, hash_u64(dso->inode_generation));
	return hash_combine(hash, hash_bytes(image->path, strlen(image->path)));
}

static uint32_t find_image(const struct image_table *t, uint64_t hash, const struct image *key)
{
	uint32_t slot;

	hashmap_each (&t->index, hash, slot)
		if (same_image(t->slots.data[slot].image, key))
			break;
	return slot;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct image_table *image_table__new(void)
{
	struct image_table *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	image_table__limit(t, quota_row(QUOTA_IMAGES)->user.limit,
			   quota_row(QUOTA_IMAGES)->all.limit, LEAST);
	if (vec_push(&t->slots, (struct slot){})) {
		image_table__free(t);
		return NULL;
	}
	return t;
}

void image_table__limit(struct image_table *t, size_t user, size_t all, size_t least)
{
	quota__init(&t->quota, QUOTA_IMAGES);
	t->quota.user.limit = user;
	t->quota.all.limit = all;
	t->least = least;
}

void image_table__free(struct image_table *t)
{
	if (!t)
		return;
	vec_free_with(&t->slots, slot, free(slot->image));
	vec_free(&t->unused);
	hashmap__fini(&t->index);
	free(t);
}

size_t image_table__count(const struct image_table *t)
{
	return t->slots.count - 1 - t->unused.count;
}

const struct image *image_table__get(const struct image_table *t, struct image_id id)
{
	return t->slots.data[id.v].image;
}

void image__fill_event(const struct image *image, struct mmap_event_space *space)
{
	const struct profile_dso *dso = &image->dso;
	struct mmap_event *event = &space->event;

	memset(space, 0, sizeof(*space));
	event->header.type = EVENT_MMAP;
	event->header.size = event_aligned(sizeof(*event) + strlen(image->path) + 1);
	event->header.flags = (dso->build_id_size ? EVENT_BUILD_ID : 0) |
			      (dso->unshared ? EVENT_UNSHARED : 0);
	event->major = dso->major;
	event->minor = dso->minor;
	event->inode = dso->inode;
	event->inode_generation = dso->inode_generation;
	event->build_id_size = dso->build_id_size;
	memcpy(event->build_id, dso->build_id, sizeof(event->build_id));
	memcpy(event->path, image->path, strlen(image->path) + 1);
	event->file = image->file;
}

/* ---- from what was mapped -------------------------------------------------------------------- */

static enum dso_kind kind_of(const struct mmap_event *event, bool has_build_id)
{
	if (!strcmp(event->path, "[vdso]"))
		return DSO_VDSO;
	return mapping_is_run_time_code(event->path, has_build_id,
					event->file_state != FILE_STATE_NONE)
		       ? DSO_JIT
		       : DSO_FILE;
}

/* Copy without " (deleted)"; whether it was there. */
static bool copy_path(char *path, size_t size, const char *mapped)
{
	size_t length = strnlen(mapped, size - 1);

	memcpy(path, mapped, length);
	path[length] = '\0';
	path[mapping_path_length(path)] = '\0';
	return strlen(path) < length;
}

static const char *last_component(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void fill_identity(struct profile_dso *dso, const struct mmap_event *event)
{
	dso->major = event->major;
	dso->minor = event->minor;
	dso->inode = event->inode;
	dso->inode_generation = event->inode_generation;
	if (!(event->header.flags & EVENT_BUILD_ID) || event->build_id_size > BUILD_ID_SIZE)
		return;
	dso->unshared = (event->header.flags & EVENT_UNSHARED) != 0;
	dso->build_id_size = event->build_id_size;
	memcpy(dso->build_id, event->build_id, event->build_id_size);
}

/* The image of a mapping, with strings in `path`, which has EVENT_PATH_MAX bytes. */
static struct image describe_image(const struct mmap_event *event, char *path)
{
	struct image image = {.file = event->file};

	if (event->header.flags & EVENT_LEFT) {
		memcpy(path, LEFT_NAME, sizeof(LEFT_NAME));
		return (struct image){.dso.kind = DSO_UNKNOWN, .path = path, .name = path};
	}
	image.dso.deleted = copy_path(path, EVENT_PATH_MAX, event->path);
	fill_identity(&image.dso, event);
	image.dso.kind = kind_of(event, image.dso.build_id_size > 0);
	if (image.dso.kind == DSO_JIT) {
		image = (struct image){.dso.kind = DSO_JIT};
		if (!*path)
			memcpy(path, MAPPING_ANONYMOUS, sizeof(MAPPING_ANONYMOUS));
	} else if (event->file_state < FILE_STATE_COUNT && *path == '/') {
		image.dso.file_state = event->file_state;
	}
	image.path = path;
	image.name = strcmp(path, MAPPING_ANONYMOUS) ? last_component(path) : "[anon]";
	image.dso.is_library = image.dso.kind == DSO_FILE && is_library_path(image.name);
	return image;
}

/* With its strings behind it. NULL: no memory. */
static struct image *keep_image(const struct image *image)
{
	size_t path_size = strlen(image->path) + 1, name_size = strlen(image->name) + 1;
	struct image *copy = malloc(sizeof(*copy) + path_size + name_size);
	char *strings = (char *)(copy + 1);

	if (!copy)
		return NULL;
	*copy = *image;
	copy->path = memcpy(strings, image->path, path_size);
	copy->name = memcpy(strings + path_size, image->name, name_size);
	return copy;
}

/* A free slot, which stays among the unused until it is taken. 0: no memory. */
static uint32_t unused_slot(struct image_table *t)
{
	if (t->unused.count)
		return t->unused.data[t->unused.count - 1];
	if (t->slots.count >= HASHMAP_NONE || vec_reserve(&t->unused, t->slots.count + 1) ||
	    vec_push(&t->slots, (struct slot){}))
		return 0;
	t->unused.data[t->unused.count++] = t->slots.count - 1;
	return t->slots.count - 1;
}

/*
 * A search that is given up leaves a mapping with a build-id but without an inode; another mapping
 * of that path may have the file of the administrator that the build-id stands for.
 */
static void share_file(struct image_table *t, struct image *image)
{
	struct image other = *image;
	struct profile_dso *dso = &other.dso;
	const struct image *from;
	uint32_t slot;

	if (!dso->build_id_size || (dso->unshared && dso->inode))
		return;
	dso->unshared = !dso->unshared;
	dso->major = dso->minor = dso->inode = dso->inode_generation = 0;
	slot = find_image(t, hash_image(&other), &other);
	if (slot == HASHMAP_NONE || strcmp(t->slots.data[slot].image->path, image->path))
		return;
	from = image->dso.unshared ? t->slots.data[slot].image : image;
	if (from->file)
		t->slots.data[slot].image->file = image->file = from->file;
}

/* This mapping's file may have been opened where the first one's was not. */
static void update_image(struct image_table *t, struct image *image, const struct image *now)
{
	if (now->dso.file_state == FILE_STATE_RIGHT)
		image->dso.file_state = FILE_STATE_RIGHT;
	if (!now->file || now->file == image->file)
		return;
	image->file = now->file;
	share_file(t, image);
}

struct image_id image_table__add(struct image_table *t, const struct mmap_event *event)
{
	char path[EVENT_PATH_MAX];
	struct image key = describe_image(event, path);
	uint64_t hash = hash_image(&key);
	uint32_t slot = find_image(t, hash, &key);

	if (slot != HASHMAP_NONE) {
		update_image(t, t->slots.data[slot].image, &key);
		return (struct image_id){slot};
	}
	slot = unused_slot(t);
	if (!slot)
		return (struct image_id){0};
	t->slots.data[slot] = (struct slot){.image = keep_image(&key)};
	if (!t->slots.data[slot].image)
		return (struct image_id){0};
	if (hashmap__add(&t->index, hash, slot)) {
		free(t->slots.data[slot].image);
		t->slots.data[slot].image = NULL;
		return (struct image_id){0};
	}
	t->unused.count--;
	share_file(t, t->slots.data[slot].image);
	return (struct image_id){slot};
}

/* ---- users ----------------------------------------------------------------------------------- */

bool image_table__has(const struct image_table *t, const struct mmap_event *event)
{
	char path[EVENT_PATH_MAX];
	struct image key = describe_image(event, path);

	return find_image(t, hash_image(&key), &key) != HASHMAP_NONE;
}

bool image_table__admit(struct image_table *t, const struct mmap_event *event, uint32_t user,
			enum outside_reason *refusal)
{
	struct image_id id;
	struct slot *slot;

	*refusal = quota__refusal(&t->quota, user, 1, 0);
	if (*refusal == OUTSIDE_BY_USER ||
	    (*refusal == OUTSIDE_BY_ALL && quota__used(&t->quota, user) >= t->least))
		return false;
	id = image_table__add(t, event);
	slot = &t->slots.data[id.v];
	if (!slot->image || slot->charged)
		return true;
	slot->charged = true;
	slot->user = user;
	quota__take(&t->quota, user, 1, 0);
	return true;
}

/* ---- forgetting ------------------------------------------------------------------------------ */

void image_table__mark(struct image_table *t, struct image_id id)
{
	t->slots.data[id.v].marked = true;
}

static void forget_image(struct image_table *t, uint32_t number)
{
	struct slot *slot = &t->slots.data[number];

	hashmap__erase(&t->index, hash_image(slot->image), number);
	free(slot->image);
	if (slot->charged)
		quota__give(&t->quota, slot->user, 1);
	*slot = (struct slot){};
	t->unused.data[t->unused.count++] = number;
}

size_t image_table__forget(struct image_table *t, bool full, image_forget_fn may_forget,
			   void *context)
{
	size_t forgotten = 0;

	for (uint32_t i = 1; i < t->slots.count; i++) {
		struct slot *slot = &t->slots.data[i];
		bool was_idle = slot->idle;

		if (!slot->image)
			continue;
		slot->idle = !slot->marked;
		slot->marked = false;
		if (!slot->idle || !was_idle)
			continue;
		if (may_forget ? !may_forget(context, (struct image_id){i}, full) : !full)
			continue;
		forget_image(t, i);
		forgotten++;
	}
	return forgotten;
}
