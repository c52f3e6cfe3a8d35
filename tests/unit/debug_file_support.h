/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of the search for debug files: programs with and without build-id in the scratch
 * directory, made with cc and objcopy, a "root" below it, and questions about them.
 */
#ifndef TESTS_UNIT_DEBUG_FILE_SUPPORT_H
#define TESTS_UNIT_DEBUG_FILE_SUPPORT_H

#include "unit.h"
#include "elf/elf_file.h"
#include "symbolize/debug_file.h"

#include "unit/tools.h"

static const char SOURCE[] =
	"struct pair { int first; int second; struct pair *next; };\n"
	"int use(struct pair *p) { return p ? p->first + use(p->next) : NUMBER; }\n"
	"int main(int argc, char **argv)\n"
	"{ struct pair p = {argc, **argv, 0}; return use(&p); }\n";

/* ---- files ----------------------------------------------------------------------------------- */

static inline void setup(void)
{
	make_scratch();
	write_scratch("prog.c", SOURCE, sizeof(SOURCE) - 1);
	/* two builds with a build-id, two without; each whole, its debug part, and what is left */
	run("for n in 1 2; do"
	    " ${CC:-cc} -O1 -g -gdwarf-4 -DNUMBER=$n -Duse=use$n -Wl,--build-id=sha1 -o id$n prog.c;"
	    " ${CC:-cc} -O1 -g -DNUMBER=$n -Duse=use$n -Wl,--build-id=none -o plain$n prog.c; done;"
	    "for f in id1 id2 plain1 plain2; do objcopy --only-keep-debug $f $f.debug;"
	    " strip -o $f.stripped $f;"
	    " objcopy --add-gnu-debuglink=$f.debug $f.stripped $f.linked; done");
}

static inline void teardown(void)
{
	remove_scratch();
}

static inline void empty_root(void)
{
	run("rm -rf root outside; mkdir -p root/opt/app root/usr/lib/debug root/usr/bin outside");
}

static inline size_t build_id_of(const char *name, uint8_t id[64])
{
	int fd = open_scratch(name, O_RDONLY), size;
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	size = elf_file__build_id(file, id, 64);
	assert_true(size > 0);
	elf_file__free(file);
	close(fd);
	return size;
}

/* Put a file where debug files of a build-id are sought, below a root. */
static inline void place_by_build_id(const char *root, const uint8_t *id, size_t size,
				     const char *file)
{
	char hex[130];

	for (size_t i = 1; i < size; i++)
		snprintf(hex + 2 * (i - 1), 3, "%02x", id[i]);
	run("mkdir -p %s/usr/lib/debug/.build-id/%02x && "
	    "cp %s %s/usr/lib/debug/.build-id/%02x/%s.debug",
	    root, id[0], file, root, id[0], hex);
}

static inline void place_for(const char *root, const char *module, const char *file)
{
	uint8_t id[64];
	size_t size = build_id_of(module, id);

	place_by_build_id(root, id, size, file);
}

/* ---- questions ------------------------------------------------------------------------------- */

struct answer {
	int error;
	char debug[512], alternate[512]; /* where they are below the scratch directory; "" none */
	struct debug_file_counts counts;
};

static inline void name_of(int fd, char *name, size_t size)
{
	char link[64], path[512] = "";
	ssize_t length;

	name[0] = '\0';
	if (fd < 0)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	assert_true(length > 0);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	if (!strncmp(path, scratch, strlen(scratch)))
		snprintf(name, size, "%s", path + strlen(scratch) + 1);
	else
		snprintf(name, size, "%s", path);
	close(fd);
}

static inline struct answer send_request(struct debug_file_request *request)
{
	struct answer a = {};
	int debug = -7, alternate = -7;

	a.error = debug_file_find(request, &debug, &alternate, &a.counts);
	if (a.error) {
		assert_true(debug == -7 && alternate == -7);
		return a;
	}
	assert_true(debug >= -1 && alternate >= -1);
	name_of(debug, a.debug, sizeof(a.debug));
	name_of(alternate, a.alternate, sizeof(a.alternate));
	return a;
}

/* The debug file of a module of the scratch directory, mapped as `path` of "root". */
static inline struct answer request_of(const char *module, const char *path)
{
	struct debug_file_request request = {
		.elf_fd = open_scratch(module, O_RDONLY),
		.root_fd = open_scratch("root", O_PATH | O_DIRECTORY),
		.path = path,
	};
	struct answer a = send_request(&request);

	close(request.elf_fd);
	close(request.root_fd);
	return a;
}

static inline void assert_found(const char *module, const char *path, const char *where)
{
	struct answer a = request_of(module, path);

	assert_int_equal(a.error, 0);
	assert_string_equal(a.debug, where);
	assert_string_equal(a.alternate, "");
	assert_int_equal(a.counts.by_build_id + a.counts.by_link, *where ? 1 : 0);
}

#endif
