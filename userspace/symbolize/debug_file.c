/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for debug files.
 *
 * Names come from files that a process chose, so no name is trusted. Each is resolved inside a root
 * directory and cannot leave it. A file is used only if it is proved right: by build-id, or, for
 * .gnu_debuglink alone, by the CRC of all bytes. The roots are the process's, then the host's. If
 * they differ, only /usr/lib/debug of the host is searched: files beside equal paths mean nothing.
 *
 *   build-id        /usr/lib/debug/.build-id/xx/yyyy.debug
 *   .gnu_debuglink  beside the file, in .debug/ beside it, /usr/lib/debug/DIRECTORY/, and the same
 *                   without /usr (packages from before the merge of /lib with /usr/lib)
 *   dwz             as named, absolute or from the debug file's directory; the part from ".dwz/"
 *                   on below /usr/lib/debug (the name is relative to where the debug file
 *                   really lies, which a symbolic link in .build-id hides); by its build-id
 *
 * A module that has .debug_info itself needs no other file but dwz's.
 *
 * Runs in the process of file_finder.c, because profiled processes decide which files are opened
 * here, and opening may never return.
 */
#include "symbolize/debug_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/log.h"
#include "base/parse.h"
#include "elf/elf_build_id.h"
#include "elf/elf_file.h"
#include "elf/elf_sections.h"
#include "symbolize/debuginfod.h"
#include "symbolize/link_crc.h"
#include "tenants/tenant_open.h"

#define DEBUG_DIRECTORY	    "/usr/lib/debug"
#define FILE_SIZE_MAX	    (16ULL << 30)
#define PLACES_MAX	    7
#define BUILD_ID_MIN	    2
#define BUILD_ID_MAX	    64
#define SERVER_FAILURES_MAX 3

struct identity {
	size_t size; /* 0: none */
	uint8_t bytes[BUILD_ID_MAX];
};

enum { ROOT_TARGET, ROOT_HOST, ROOT_COUNT };

/* One request being worked on. */
struct search {
	const struct debug_file_request *request;
	struct debug_file_counts *counts;
	int roots[ROOT_COUNT]; /* -1: not to be looked in */
	bool has_self;
	struct stat self; /* the module: it is not its own debug file */
	struct identity id;
};

/* Where a file may be, the likeliest place first. */
struct places {
	size_t count;
	char paths[PLACES_MAX][PATH_MAX];
};

/* The proof that a file is the right one. */
struct proof {
	struct identity id; /* where both have one it decides */
	bool has_crc;
	uint32_t crc;
};

/* The file that was found, and its directory, for names that are relative to it. */
struct debug_file {
	int fd; /* -1: nothing */
	uint64_t base;
	char path[PATH_MAX];
};

static const char *name_of(const struct search *s)
{
	return s->request->path ? s->request->path : "[a module without a name]";
}

static const char *root_name(int root)
{
	return root == ROOT_TARGET ? "in the target's root" : "on the host";
}

/* ---- is it the right file? ------------------------------------------------------------------- */

static bool is_hard(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE;
}

/*
 * The build-id of an open file; none, or none within the bounds, is no error. 0; -ENOEXEC, -EBADMSG:
 * no ELF file; hard ones.
 */
static int read_identity(int fd, uint64_t base, struct identity *id)
{
	uint8_t bytes[BUILD_ID_MAX + 1];
	int result = elf_read_build_id(fd, base, bytes, sizeof(bytes));

	if (result < 0 && result != -ENOENT && result != -EFBIG)
		return result;
	id->size = 0;
	if (result < BUILD_ID_MIN || result > BUILD_ID_MAX)
		return 0;
	memcpy(id->bytes, bytes, result);
	id->size = result;
	return 0;
}

static bool same_identity(const struct identity *a, const struct identity *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static int pass_progress(void *context, uint64_t done, uint64_t total)
{
	const struct debug_file_request *r = context;

	return r->progress(r->context, r->path, done, total);
}

/* CRC of a whole file. -ECANCELED: the user has cancelled. */
static int calculate_crc(const struct search *s, int fd, uint32_t *crc)
{
	const struct debug_file_request *r = s->request;
	int err = link_crc(&s->counts->crcs, r->user, fd, r->progress ? pass_progress : NULL,
			   (void *)r, crc);

	if (err == -EFBIG)
		s->counts->refusal = DEBUG_REFUSAL_TOO_LARGE;
	else if (err == -EDQUOT)
		s->counts->refusal = DEBUG_REFUSAL_BUDGET;
	s->counts->crc_refused += err == -EFBIG || err == -EDQUOT;
	return err;
}

static int refuse_file(const struct search *s, const char *path, const char *why)
{
	log_debug(LOG_SYMBOLS, "%s: rejected debug file %s: %s", name_of(s), path, why);
	return -ENOENT;
}

/* 0: it is the one; -ENOENT: it is not, which is counted; hard errors. */
static int prove_file(const struct search *s, const char *path, int fd, const struct proof *proof)
{
	struct identity id;
	uint32_t crc = 0;
	int err = read_identity(fd, 0, &id);

	if (is_hard(err))
		return err;
	if (!err && proof->id.size && same_identity(&id, &proof->id))
		return 0;
	if (err || !proof->has_crc || (id.size && proof->id.size)) {
		s->counts->wrong_build_id++;
		return refuse_file(s, path, err ? "not an ELF file" : "its build-id differs");
	}
	err = calculate_crc(s, fd, &crc);
	if (err)
		return is_hard(err) ? err : refuse_file(s, path, strerror(-err));
	if (crc == proof->crc)
		return 0;
	s->counts->wrong_crc++;
	return refuse_file(s, path, "its CRC differs");
}

/* ---- places ---------------------------------------------------------------------------------- */

/* Does the text have a component ".."? */
static bool climbs_out(const char *path)
{
	for (const char *p = strstr(path, ".."); p; p = strstr(p + 1, ".."))
		if ((p == path || p[-1] == '/') && (p[2] == '/' || !p[2]))
			return true;
	return false;
}

/* On a host that is not the target's root, names of the target lead below /usr/lib/debug only. */
static bool may_look(const struct search *s, int root, const char *path)
{
	static const char below[] = DEBUG_DIRECTORY "/";

	if (s->roots[root] < 0)
		return false;
	if (root == ROOT_TARGET || s->roots[ROOT_TARGET] < 0)
		return true;
	return !strncmp(path, below, strlen(below)) && !climbs_out(path);
}

/* 0: found; -ENOENT: not there, or not the one; hard errors. */
static int try_path(const struct search *s, int root, const struct proof *proof,
		    struct debug_file *found, const char *path)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int err;

	if (!may_look(s, root, path) || strlen(path) >= sizeof(found->path))
		return -ENOENT;
	fd = tenant_open(s->roots[root], path, 0, FILE_SIZE_MAX, &st);
	if (fd < 0) {
		log_debug(LOG_SYMBOLS, "%s: cannot open %s %s: %s", name_of(s), path,
			  root_name(root), strerror(-fd));
		return is_hard(fd) ? fd : -ENOENT;
	}
	if (s->has_self && is_same_inode(&st, &s->self))
		return refuse_file(s, path, "that is the module itself");
	err = prove_file(s, path, fd, proof);
	if (err)
		return err;
	log_debug(LOG_SYMBOLS, "%s: debug file %s %s", name_of(s), path, root_name(root));
	snprintf(found->path, sizeof(found->path), "%s", path);
	found->fd = steal_fd(fd);
	return 0;
}

/* A path that is too long does not exist. */
__attribute__((format(printf, 2, 3))) static void add_place(struct places *p, const char *format,
							    ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(p->paths[p->count], PATH_MAX, format, arguments);
	va_end(arguments);
	p->count += length > 0 && length < PATH_MAX;
}

/* In the target's root first. */
static int try_places(const struct search *s, const struct places *p, const struct proof *proof,
		      struct debug_file *found)
{
	int err = -ENOENT;

	for (int root = 0; root < ROOT_COUNT; root++)
		for (size_t i = 0; i < p->count && err == -ENOENT; i++)
			err = try_path(s, root, proof, found, p->paths[i]);
	return err;
}

static void add_place_of_build_id(struct places *p, const struct identity *id)
{
	char hex[2 * BUILD_ID_MAX + 1];

	if (!id->size)
		return;
	put_hex_bytes(hex, id->bytes + 1, id->size - 1);
	add_place(p, DEBUG_DIRECTORY "/.build-id/%02x/%s.debug", id->bytes[0], hex);
}

/* Length of a path's directory without its last slash; -1: the path is not absolute. */
static int directory_length(const char *path)
{
	const char *slash = path && path[0] == '/' ? strrchr(path, '/') : NULL;

	return slash ? slash - path : -1;
}

static void add_places_of_link(struct places *p, const char *path, const char *name)
{
	int length = directory_length(path);

	if (length < 0)
		return;
	if (name[0] == '/') {
		add_place(p, "%s", name);
	} else {
		add_place(p, "%.*s/%s", length, path, name);
		add_place(p, "%.*s/.debug/%s", length, path, name);
	}
	add_place(p, DEBUG_DIRECTORY "%.*s/%s", length, path, name);
	if (length > 4 && !strncmp(path, "/usr/", 5))
		add_place(p, DEBUG_DIRECTORY "%.*s/%s", length - 4, path + 4, name);
}

/* ---- debuginfod ------------------------------------------------------------------------------ */

/* A debug file, or this source. -ENOENT also: no server is queried, or none any more. */
static int fetch(const struct debug_file_request *r, const uint8_t *build_id, size_t size,
		 const char *source, struct debug_file_counts *counts, int *fd)
{
	int err;

	if (!r->debuginfod || !size || counts->debuginfod_failures >= SERVER_FAILURES_MAX)
		return -ENOENT;
	err = debuginfod_fetch(build_id, size, source, r->progress ? pass_progress : NULL,
			       (void *)r, fd);
	if (err && err != -ENOENT && err != -ECANCELED) {
		counts->debuginfod_failures++;
		counts->debuginfod_error = err;
	}
	return err;
}

int debug_file_fetch_source(const struct debug_file_request *r, struct debug_file_counts *counts)
{
	int fd = -1, err = fetch(r, r->build_id, r->build_id_size, r->path, counts, &fd);

	return err ?: fd;
}

static int try_servers(const struct search *s, const struct identity *id, struct debug_file *found)
{
	struct debug_file_counts *counts = s->counts;
	_cleanup_close_ int fd = -1;
	struct proof proof = {.id = *id};
	int err = fetch(s->request, id->bytes, id->size, NULL, counts, &fd);

	if (err) {
		log_debug(LOG_SYMBOLS, "%s: no debug file from debuginfod: %s", name_of(s),
			  debuginfod_strerror(err));
		return is_hard(err) ? err : -ENOENT;
	}
	err = prove_file(s, "from debuginfod", fd, &proof);
	if (err)
		return err;
	log_debug(LOG_SYMBOLS, "%s: debug file from debuginfod", name_of(s));
	counts->by_debuginfod++;
	found->path[0] = '\0';
	found->fd = steal_fd(fd);
	return 0;
}

/* ---- dwz ------------------------------------------------------------------------------------- */

static void add_places_of_alternate(struct places *p, const struct debug_file *from,
				    const char *name)
{
	static const char usual[] = DEBUG_DIRECTORY "/.dwz/";
	const char *tail = strncmp(name, usual, strlen(usual)) ? strstr(name, ".dwz/") : NULL;
	int length = directory_length(from->path);

	if (name[0] == '/')
		add_place(p, "%s", name);
	else if (length >= 0)
		add_place(p, "%.*s/%s", length, from->path, name);
	if (tail)
		add_place(p, DEBUG_DIRECTORY "/%s", tail);
}

/* The dwz file that `from` refers to; nothing (0, fd -1) where it refers to none. */
static int find_alternate(const struct search *s, const struct debug_file *from,
			  struct debug_file *found)
{
	struct places places = {};
	struct proof proof = {};
	struct elf_file *file;
	char name[PATH_MAX];
	int result = elf_file__open_at(from->fd, from->base, &file);

	if (!result) {
		result = elf_file__alternate_link(file, name, sizeof(name), proof.id.bytes,
						  sizeof(proof.id.bytes));
		elf_file__free(file);
	}
	if (result < BUILD_ID_MIN)
		return is_hard(result) ? result : 0;
	proof.id.size = result;
	add_places_of_alternate(&places, from, name);
	add_place_of_build_id(&places, &proof.id);
	result = try_places(s, &places, &proof, found);
	if (result == -ENOENT)
		result = try_servers(s, &proof.id, found);
	return result == -ENOENT ? 0 : result;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Facts of the module, from its own file. */
struct module_facts {
	bool has_debug_info, has_link;
	char link[PATH_MAX];
	struct proof link_proof;
};

static bool has_section(struct elf_file *file, const char *name)
{
	struct elf_section section;

	return !elf_file__find_section(file, name, &section) && section.type != SHT_NOBITS;
}

static void take_requested_id(struct search *s)
{
	const struct debug_file_request *r = s->request;

	if (r->build_id_size < BUILD_ID_MIN || r->build_id_size > BUILD_ID_MAX)
		return;
	s->id.size = r->build_id_size;
	memcpy(s->id.bytes, r->build_id, r->build_id_size);
}

static int read_module(struct search *s, struct module_facts *facts)
{
	const struct debug_file_request *r = s->request;
	struct proof *proof = &facts->link_proof;
	struct identity own = {};
	struct elf_file *file;
	int err;

	take_requested_id(s);
	if (r->elf_fd < 0)
		return 0;
	s->has_self = !fstat(r->elf_fd, &s->self);
	/* the request's may have been cut to what an event holds */
	err = read_identity(r->elf_fd, r->elf_base, &own);
	if (!err && own.size)
		s->id = own;
	if (!err)
		err = elf_file__open_at(r->elf_fd, r->elf_base, &file);
	if (err)
		return is_hard(err) ? err : 0;
	facts->has_debug_info = has_section(file, ".debug_info") ||
				has_section(file, ".zdebug_info");
	proof->id = s->id;
	err = elf_file__debug_link(file, facts->link, sizeof(facts->link), &proof->crc);
	facts->has_link = proof->has_crc = !err;
	elf_file__free(file);
	return is_hard(err) ? err : 0;
}

/* At these places, by the build-id, and where a debug link leads to. At last at servers. */
static int find_debug(const struct search *s, const struct module_facts *facts,
		      struct places *places, struct debug_file *found)
{
	const struct proof proof = {.id = s->id};
	struct places by_link = {};
	int err = try_places(s, places, &proof, found);

	s->counts->by_build_id += !err;
	if (err == -ENOENT && facts->has_link) {
		add_places_of_link(&by_link, s->request->path, facts->link);
		err = try_places(s, &by_link, &facts->link_proof, found);
		s->counts->by_link += !err;
	}
	if (err == -ENOENT)
		err = try_servers(s, &s->id, found);
	return err == -ENOENT ? 0 : err;
}

/* The host's root, unless it is the target's as well. */
static int open_host_root(int root_fd)
{
	_cleanup_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat host, target;

	if (fd < 0)
		return -errno;
	if (root_fd >= 0 && !fstat(fd, &host) && !fstat(root_fd, &target) &&
	    is_same_inode(&host, &target))
		return -1;
	return steal_fd(fd);
}

static int search__init(struct search *s)
{
	int host = open_host_root(s->request->root_fd);

	s->roots[ROOT_TARGET] = s->request->root_fd;
	s->roots[ROOT_HOST] = host;
	return is_hard(host) ? host : 0;
}

static void search__fini(struct search *s)
{
	if (s->roots[ROOT_HOST] >= 0)
		close(s->roots[ROOT_HOST]);
}

/* The dwz file of `from`, which may be none itself, and both to the caller. */
static int hand_over(const struct search *s, const struct debug_file *from, int found_fd,
		     int *debug_fd, int *alt_fd)
{
	_cleanup_close_ int debug = found_fd;
	struct debug_file alternate = {.fd = -1};
	int err = from->fd >= 0 ? find_alternate(s, from, &alternate) : 0;

	if (err)
		return err;
	*debug_fd = steal_fd(debug);
	*alt_fd = alternate.fd;
	return 0;
}

static int find_of_module(struct search *s, int *debug_fd, int *alt_fd)
{
	const struct debug_file_request *request = s->request;
	struct module_facts facts = {};
	struct places places = {};
	struct debug_file from = {.fd = -1};
	int err = read_module(s, &facts);

	if (err)
		return err;
	if (!facts.has_debug_info) {
		add_place_of_build_id(&places, &s->id);
		return find_debug(s, &facts, &places, &from)
			       ?: hand_over(s, &from, from.fd, debug_fd, alt_fd);
	}
	log_debug(LOG_SYMBOLS, "%s: has its own .debug_info", name_of(s));
	from.fd = request->elf_fd;
	from.base = request->elf_base;
	snprintf(from.path, sizeof(from.path), "%s", request->path ? request->path : "");
	return hand_over(s, &from, -1, debug_fd, alt_fd);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Before and after the kernel's release. */
static const struct {
	const char *before, *after;
} VMLINUX_PLACES[] = {
	{DEBUG_DIRECTORY "/boot/vmlinux-", ""},	       /* Debian, Ubuntu */
	{DEBUG_DIRECTORY "/lib/modules/", "/vmlinux"}, /* Fedora, Debian */
	{DEBUG_DIRECTORY "/usr/lib/modules/", "/vmlinux"},
	{"/usr/lib/modules/", "/build/vmlinux"}, /* Arch; a kernel built by its user */
	{"/lib/modules/", "/build/vmlinux"},
	{"/boot/vmlinux-", ""},
};

static int find_kernel(struct search *s, int *debug_fd, int *alt_fd)
{
	const struct module_facts no_link = {};
	struct debug_file found = {.fd = -1};
	struct places places = {};

	take_requested_id(s);
	s->roots[ROOT_TARGET] = -1;
	/* the release may come from a recording */
	if (!s->id.size || strchr(s->request->release, '/'))
		return hand_over(s, &found, -1, debug_fd, alt_fd);
	add_place_of_build_id(&places, &s->id);
	for (size_t i = 0; i < sizeof(VMLINUX_PLACES) / sizeof(*VMLINUX_PLACES); i++)
		add_place(&places, "%s%s%s", VMLINUX_PLACES[i].before, s->request->release,
			  VMLINUX_PLACES[i].after);
	return find_debug(s, &no_link, &places, &found)
		       ?: hand_over(s, &found, found.fd, debug_fd, alt_fd);
}

int debug_file_find(const struct debug_file_request *request, int *debug_fd, int *alt_fd,
		    struct debug_file_counts *counts)
{
	_cleanup_(search__fini) struct search s = {.request = request, .counts = counts};
	int err = search__init(&s);

	counts->refusal = DEBUG_REFUSAL_NONE;
	if (err)
		return err;
	return request->release ? find_kernel(&s, debug_fd, alt_fd)
				: find_of_module(&s, debug_fd, alt_fd);
}

/* ---- identity -------------------------------------------------------------------------------- */

static struct file_stamp stamp_of(int fd)
{
	struct file_stamp stamp = {};

	if (fd >= 0 && file_stamp__read(fd, &stamp))
		return (struct file_stamp){};
	return stamp;
}

uint64_t debug_file_identity(int elf_fd, uint64_t elf_base, int debug_fd, int alt_fd)
{
	struct file_stamp stamps[] = {stamp_of(elf_fd), stamp_of(debug_fd), stamp_of(alt_fd)};
	uint64_t hash = hash_stable(stamps, sizeof(stamps));

	if (elf_base)
		hash = hash_combine(hash, hash_stable(&elf_base, sizeof(elf_base)));

	return hash ? hash : 1;
}
