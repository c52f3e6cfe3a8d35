/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/capture/kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/btf.h>

#include <bpf/btf.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/log.h"
#include "base/vec.h"

#define TYPES_PATH "/sys/kernel/btf/vmlinux"
#define SIZE_LIMIT (256u << 20)
#define HEADER_MIN                                                                                 \
	(offsetof(struct btf_header, str_len) + sizeof(uint32_t)) /* later ones have more */
#define FLAVOR	  "___" /* what follows is no part of a type's name */
#define NAME_BITS 4096u /* a power of two */

/* Types by number; number 0 is void. */
struct types {
	const char *bytes;
	uint32_t *offsets, count;
	const char *strings;
	uint32_t strings_size;
};

struct kernel_types {
	struct types types;
	void *bytes;
	size_t size;
	bool is_mapped;
	int fd;		       /* the selection, or -1 */
	struct btf *by_libbpf; /* what could not be read or selected here */
	char path[32];
};

/* ---- reading --------------------------------------------------------------------------------- */

/* With what follows it. 0: of an unknown kind. */
static size_t size_of(const struct btf_type *type)
{
	size_t count = btf_vlen(type), size = sizeof(*type);

	switch (btf_kind(type)) {
	case BTF_KIND_PTR:
	case BTF_KIND_FWD:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return size;
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return size + sizeof(uint32_t);
	case BTF_KIND_ARRAY:
		return size + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return size + count * sizeof(struct btf_member);
	case BTF_KIND_ENUM:
		return size + count * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return size + count * sizeof(struct btf_enum64);
	case BTF_KIND_FUNC_PROTO:
		return size + count * sizeof(struct btf_param);
	case BTF_KIND_DATASEC:
		return size + count * sizeof(struct btf_var_secinfo);
	default:
		return 0;
	}
}

static const struct btf_type *type_at(const struct types *t, uint32_t number)
{
	return (const void *)(t->bytes + t->offsets[number]);
}

static int index_types(struct types *t, size_t size)
{
	t->offsets = calloc(1 + size / sizeof(struct btf_type), sizeof(*t->offsets));
	if (!t->offsets)
		return -ENOMEM;
	t->count = 1;
	for (size_t at = 0; at < size;) {
		const struct btf_type *type = (const void *)(t->bytes + at);
		size_t room = size - at, needed = room < sizeof(*type) ? 0 : size_of(type);

		if (!needed || needed > room)
			return -EPROTO;
		t->offsets[t->count++] = at;
		at += needed;
	}
	return 0;
}

static int parse(struct types *t, const void *bytes, size_t size)
{
	const struct btf_header *h = bytes;
	const char *start = bytes;

	if (size < HEADER_MIN || h->magic != BTF_MAGIC || h->version != BTF_VERSION ||
	    h->hdr_len < HEADER_MIN || h->hdr_len > size)
		return -EPROTO;
	start += h->hdr_len;
	size -= h->hdr_len;
	if (h->type_off % sizeof(uint32_t) || h->type_off > size ||
	    h->type_len > size - h->type_off || h->str_off > size ||
	    h->str_len > size - h->str_off || !h->str_len || start[h->str_off + h->str_len - 1])
		return -EPROTO;
	t->bytes = start + h->type_off;
	t->strings = start + h->str_off;
	t->strings_size = h->str_len;
	return index_types(t, h->type_len);
}

/* "": it has none. */
static const char *string_at(const struct types *t, uint32_t offset)
{
	return offset < t->strings_size ? t->strings + offset : "";
}

/* From 6.16 on they can be mapped. */
static int read_bytes(struct kernel_types *k)
{
	_cleanup_close_ int fd = open(TYPES_PATH, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	k->size = st.st_size;
	if (!k->size || k->size > SIZE_LIMIT)
		return -EFBIG;
	k->bytes = mmap(NULL, k->size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	k->is_mapped = k->bytes != MAP_FAILED;
	if (k->is_mapped)
		return 0;
	k->bytes = malloc(k->size);
	return k->bytes ? pread_exactly(fd, k->bytes, k->size, 0) : -ENOMEM;
}

/* libbpf opens it by its path. */
static int make_file(struct kernel_types *k)
{
	k->fd = memfd_create("kernel-types", MFD_CLOEXEC);
	snprintf(k->path, sizeof(k->path), "/proc/self/fd/%d", k->fd);
	return k->fd < 0 ? -errno : 0;
}

struct kernel_types *kernel_types__read(void)
{
	struct kernel_types *k = calloc(1, sizeof(*k));
	int err;

	if (!k)
		return NULL;
	k->fd = -1;
	err = read_bytes(k) ?: parse(&k->types, k->bytes, k->size) ?: make_file(k);
	if (!err)
		return k;
	log_debug(LOG_BPF, "the kernel's types are read by libbpf: %s", strerror(-err));
	k->by_libbpf = btf__load_vmlinux_btf();
	if (k->by_libbpf)
		return k;
	kernel_types__free(k);
	return NULL;
}

void kernel_types__free(struct kernel_types *k)
{
	if (!k)
		return;
	if (k->is_mapped)
		munmap(k->bytes, k->size);
	else
		free(k->bytes);
	cleanup_close(&k->fd);
	btf__free(k->by_libbpf);
	free(k->types.offsets);
	free(k);
}

const char *kernel_types__path(const struct kernel_types *k)
{
	return k && !k->by_libbpf ? k->path : NULL;
}

static uint32_t find(const struct types *t, uint32_t kind, const char *name)
{
	for (uint32_t i = 1; i < t->count; i++) {
		const struct btf_type *type = type_at(t, i);

		if (btf_kind(type) == kind && !strcmp(string_at(t, type->name_off), name))
			return i;
	}
	return 0;
}

bool kernel_types__have_functions(const struct kernel_types *k, const char *const *names,
				  size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (k->by_libbpf ? btf__find_by_name_kind(k->by_libbpf, names[i], BTF_KIND_FUNC) < 0
				 : !find(&k->types, BTF_KIND_FUNC, names[i]))
			return false;
	return true;
}

/* ---- the names in a program ------------------------------------------------------------------ */

struct name {
	const char *text;
	size_t length; /* without the flavor */
	uint64_t hash;
};

struct names {
	VEC(struct name) list;
	uint64_t bits[NAME_BITS / 64]; /* by a few bits of the hash */
};

/* Types of these kinds are compared. */
static bool is_compared(const struct btf_type *type)
{
	switch (btf_kind(type)) {
	case BTF_KIND_INT:
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
	case BTF_KIND_TYPEDEF:
		return type->name_off;
	default:
		return false;
	}
}

static struct name name_of(const struct types *t, const struct btf_type *type)
{
	const char *text = string_at(t, type->name_off);
	struct name name = {.text = text};
	uint64_t hash = 0;

	for (; *text && (*text != '_' || strncmp(text, FLAVOR, strlen(FLAVOR))); text++)
		hash = (hash ^ (unsigned char)*text) * 0x9e3779b97f4a7c15ull;
	name.length = text - name.text;
	name.hash = hash ^ hash >> 32;
	return name;
}

static uint64_t *bits_of(struct names *names, const struct name *name)
{
	return &names->bits[name->hash % NAME_BITS / 64];
}

static bool is_in(struct names *names, const struct name *name)
{
	if (!(*bits_of(names, name) >> name->hash % 64 & 1))
		return false;
	for (size_t i = 0; i < names->list.count; i++) {
		const struct name *other = &names->list.data[i];

		if (other->length == name->length && !memcmp(other->text, name->text, name->length))
			return true;
	}
	return false;
}

static int collect_names(struct names *names, const struct types *programs)
{
	int err = 0;

	for (uint32_t i = 1; i < programs->count && !err; i++) {
		const struct btf_type *type = type_at(programs, i);
		struct name name = name_of(programs, type);

		if (!is_compared(type) || is_in(names, &name))
			continue;
		*bits_of(names, &name) |= 1ull << name.hash % 64;
		err = vec_push(&names->list, name);
	}
	return err;
}

/* ---- the selection --------------------------------------------------------------------------- */

struct selection {
	const struct types *from;
	uint32_t *numbers; /* in the selection, of each of the kernel's types; 0: not selected */
	VEC(uint32_t) selected; /* the kernel's numbers, in order */
	VEC(char) bytes;
	VEC(char) strings;
	int err;
};

/* The number of a type in the selection; it is added if it is not there. */
static uint32_t select_type(struct selection *s, uint32_t number)
{
	if (!number || number >= s->from->count)
		return 0;
	if (!s->numbers[number]) {
		s->err = s->err ?: vec_push(&s->selected, number);
		s->numbers[number] = s->selected.count;
	}
	return s->numbers[number];
}

static uint32_t copy_string(struct selection *s, uint32_t offset)
{
	const char *string = string_at(s->from, offset);
	uint32_t at = s->strings.count;

	if (!*string)
		return 0;
	s->err = s->err ?: vec_append(&s->strings, string, strlen(string) + 1);
	return at;
}

static void copy_members(struct selection *s, struct btf_type *type)
{
	struct btf_member *member = btf_members(type);

	for (size_t i = 0; i < btf_vlen(type); i++) {
		member[i].name_off = copy_string(s, member[i].name_off);
		member[i].type = select_type(s, member[i].type);
	}
}

static void copy_values(struct selection *s, struct btf_type *type)
{
	struct btf_enum *value = btf_enum(type);
	struct btf_enum64 *large = btf_enum64(type);
	bool is_large = btf_kind(type) == BTF_KIND_ENUM64;

	for (size_t i = 0; i < btf_vlen(type); i++) {
		__u32 *name = is_large ? &large[i].name_off : &value[i].name_off;

		*name = copy_string(s, *name);
	}
}

/* What it refers to is selected, except by a pointer, which is one to void then. */
static void copy_references(struct selection *s, struct btf_type *type)
{
	switch (btf_kind(type)) {
	case BTF_KIND_PTR:
		type->type = 0;
		break;
	case BTF_KIND_ARRAY:
		btf_array(type)->type = select_type(s, btf_array(type)->type);
		btf_array(type)->index_type = select_type(s, btf_array(type)->index_type);
		break;
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		copy_members(s, type);
		break;
	case BTF_KIND_ENUM:
	case BTF_KIND_ENUM64:
		copy_values(s, type);
		break;
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPE_TAG:
		type->type = select_type(s, type->type);
		break;
	default:
		break;
	}
}

/* 0, and types of functions, which are only used through pointers, become an empty declaration. */
static void copy_type(struct selection *s, uint32_t number)
{
	static const struct btf_type nothing = {.info = BTF_KIND_FWD << 24};
	const struct btf_type *type = number ? type_at(s->from, number) : &nothing;
	size_t at = s->bytes.count;
	struct btf_type *copy;

	if (btf_kind(type) == BTF_KIND_FUNC_PROTO)
		type = &nothing;
	s->err = s->err ?: vec_append(&s->bytes, (const char *)type, size_of(type));
	if (s->err)
		return;
	copy = (void *)(s->bytes.data + at);
	copy->name_off = copy_string(s, copy->name_off);
	copy_references(s, copy);
}

static void select_named(struct selection *s, struct names *names)
{
	for (uint32_t i = 1; i < s->from->count; i++) {
		const struct btf_type *type = type_at(s->from, i);
		struct name name;

		if (!is_compared(type))
			continue;
		name = name_of(s->from, type);
		if (is_in(names, &name))
			select_type(s, i);
	}
}

static int write_selection(struct selection *s, int fd)
{
	const struct btf_header header = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(header),
		.type_len = s->bytes.count,
		.str_off = s->bytes.count,
		.str_len = s->strings.count,
	};

	return write_full(fd, &header, sizeof(header))
		       ?: write_full(fd, s->bytes.data, s->bytes.count)
		       ?: write_full(fd, s->strings.data, s->strings.count);
}

/* Programs have the kernel's number of this structure (bpf_rdonly_cast()), mostly a low one. */
static void select_task(struct selection *s)
{
	uint32_t number = find(s->from, BTF_KIND_STRUCT, "task_struct");

	while (s->selected.count + 1 < number && !s->err)
		s->err = vec_push(&s->selected, 0);
	select_type(s, number);
}

static int make_selection(struct selection *s, struct names *names, int fd)
{
	s->err = vec_push(&s->strings, '\0');
	select_task(s);
	select_named(s, names);
	for (size_t i = 0; i < s->selected.count && !s->err; i++)
		copy_type(s, s->selected.data[i]);
	return s->err ?: write_selection(s, fd);
}

static int select_types(const struct kernel_types *k, const struct btf *programs)
{
	struct selection s = {};
	struct names names = {};
	struct types own = {};
	const void *bytes;
	uint32_t size;
	int err;

	bytes = btf__raw_data(programs, &size);
	s.from = &k->types;
	s.numbers = calloc(k->types.count, sizeof(*s.numbers));
	err = bytes && s.numbers ? parse(&own, bytes, size) : -ENOMEM;
	err = err ?: collect_names(&names, &own) ?: make_selection(&s, &names, k->fd);
	vec_free(&names.list);
	vec_free(&s.selected);
	vec_free(&s.bytes);
	vec_free(&s.strings);
	free(s.numbers);
	free(own.offsets);
	return err;
}

int kernel_types__select(const struct kernel_types *k, const struct btf *programs)
{
	int err = k && !k->by_libbpf ? select_types(k, programs) : 0;

	if (!err)
		return 0;
	/* libbpf has the file's path */
	log_debug(LOG_BPF, "libbpf gets all types of the kernel: %s", strerror(-err));
	return ftruncate(k->fd, 0) || lseek(k->fd, 0, SEEK_SET)
		       ? -errno
		       : write_full(k->fd, k->bytes, k->size);
}
