/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for debug files, in roots made for it with cc, objcopy and dwz: by build-id, by link,
 * dwz's, from a server; wrong files under the right names; links that want to lead elsewhere.
 *
 * The scratch directory's "root" is the target's root. What is on the host is tested in a child
 * that has a directory of ours as its "/".
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/gzip.h"
#include "elf/elf_file.h"
#include "symbolize/debug_file.h"
#include "symbolize/debuginfod.h"

#include "unit/tools.h"

static const char SOURCE[] =
	"struct pair { int first; int second; struct pair *next; };\n"
	"int use(struct pair *p) { return p ? p->first + use(p->next) : NUMBER; }\n"
	"int main(int argc, char **argv)\n"
	"{ struct pair p = {argc, **argv, 0}; return use(&p); }\n";

/* ---- files ----------------------------------------------------------------------------------- */

static int setup(void **state)
{
	(void)state;
	if (make_scratch())
		return -1;
	write_scratch("prog.c", SOURCE, sizeof(SOURCE) - 1);
	/* two builds with a build-id, two without; each whole, its debug part, and what is left */
	run("for n in 1 2; do"
	    " ${CC:-cc} -O1 -g -gdwarf-4 -DNUMBER=$n -Duse=use$n -Wl,--build-id=sha1 -o id$n prog.c;"
	    " ${CC:-cc} -O1 -g -DNUMBER=$n -Duse=use$n -Wl,--build-id=none -o plain$n prog.c; done;"
	    "for f in id1 id2 plain1 plain2; do objcopy --only-keep-debug $f $f.debug;"
	    " strip -o $f.stripped $f;"
	    " objcopy --add-gnu-debuglink=$f.debug $f.stripped $f.linked; done");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return remove_scratch();
}

static int empty_root(void **state)
{
	(void)state;
	run("rm -rf root outside; mkdir -p root/opt/app root/usr/lib/debug root/usr/bin outside");
	return 0;
}

static size_t build_id_of(const char *name, uint8_t id[64])
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
static void place_by_build_id(const char *root, const uint8_t *id, size_t size, const char *file)
{
	char hex[130];

	for (size_t i = 1; i < size; i++)
		snprintf(hex + 2 * (i - 1), 3, "%02x", id[i]);
	run("mkdir -p %s/usr/lib/debug/.build-id/%02x && "
	    "cp %s %s/usr/lib/debug/.build-id/%02x/%s.debug",
	    root, id[0], file, root, id[0], hex);
}

static void place_for(const char *root, const char *module, const char *file)
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

static void name_of(int fd, char *name, size_t size)
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

static struct answer ask(struct debug_file_request *request)
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
static struct answer ask_for(const char *module, const char *path)
{
	struct debug_file_request request = {
		.elf_fd = open_scratch(module, O_RDONLY),
		.root_fd = open_scratch("root", O_PATH | O_DIRECTORY),
		.path = path,
	};
	struct answer a = ask(&request);

	close(request.elf_fd);
	close(request.root_fd);
	return a;
}

static void assert_found(const char *module, const char *path, const char *where)
{
	struct answer a = ask_for(module, path);

	assert_int_equal(a.error, 0);
	assert_string_equal(a.debug, where);
	assert_string_equal(a.alternate, "");
	assert_int_equal(a.counts.by_build_id + a.counts.by_link, *where ? 1 : 0);
}

/* ---- by build-id ----------------------------------------------------------------------------- */

static void test_by_build_id(void **state)
{
	struct answer a;

	(void)state;
	place_for("root", "id1", "id1.debug");
	a = ask_for("id1.stripped", "/opt/app/prog");
	assert_int_equal(a.error, 0);
	assert_non_null(strstr(a.debug, "root/usr/lib/debug/.build-id/"));
	assert_int_equal(a.counts.by_build_id, 1);
	assert_int_equal(a.counts.wrong_build_id + a.counts.wrong_crc, 0);
	assert_found("id2.stripped", "/opt/app/prog", "");
	/* it has all it needs */
	assert_found("id1", "/opt/app/prog", "");
}

static void test_wrong_build_id(void **state)
{
	struct answer a;

	(void)state;
	place_for("root", "id1", "id2.debug");
	a = ask_for("id1.stripped", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	place_for("root", "id1", "plain1.debug"); /* has none */
	a = ask_for("id1.stripped", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	place_for("root", "id1", "prog.c");
	a = ask_for("id1.stripped", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
}

/* The record's build-id is enough, and it may be what an event could hold of a longer one. */
static void test_build_id_of_request(void **state)
{
	uint8_t id[64];
	size_t size = build_id_of("id1", id);
	struct debug_file_request request = {.elf_fd = -1, .build_id = id, .build_id_size = size};
	struct answer a;

	(void)state;
	place_for("root", "id1", "id1.debug");
	request.root_fd = open_scratch("root", O_PATH | O_DIRECTORY);
	a = ask(&request);
	assert_int_equal(a.counts.by_build_id, 1);
	request.build_id_size = 1;
	a = ask(&request);
	assert_string_equal(a.debug, "");
	request.build_id_size = size - 1;
	a = ask(&request);
	assert_string_equal(a.debug, "");
	request.elf_fd = open_scratch("id1.stripped", O_RDONLY);
	a = ask(&request);
	assert_int_equal(a.counts.by_build_id, 1);
	close(request.elf_fd);
	request.elf_fd = open_scratch("prog.c", O_RDONLY); /* no ELF file: the record's counts */
	request.build_id_size = size;
	a = ask(&request);
	assert_int_equal(a.counts.by_build_id, 1);
	close(request.elf_fd);
	close(request.root_fd);
}

/* A note of `size` bytes instead of 20. */
static void make_with_build_id(const char *name, unsigned int size)
{
	run("printf '.section .note.forged,\"a\",%%%%note\\n.long 4,%u,3\\n.asciz \"GNU\"\\n"
	    ".fill %u,1,0xab\\n.text\\n.globl _start\\n_start: ret\\n' >id.s && "
	    "${CC:-cc} -nostdlib -static -Wl,--build-id=none -o %s id.s",
	    size, size, name);
}

static void test_odd_build_ids(void **state)
{
	uint8_t id[255];

	(void)state;
	memset(id, 0xab, sizeof(id));
	make_with_build_id("long", 64);
	place_by_build_id("root", id, 64, "long");
	assert_int_equal(ask_for("long", "/opt/app/prog").counts.by_build_id, 1);
	make_with_build_id("too-long", 65);
	place_by_build_id("root", id, 64, "too-long");
	assert_string_equal(ask_for("too-long", "/opt/app/prog").debug, "");
	make_with_build_id("huge", 4096);
	assert_string_equal(ask_for("huge", "/opt/app/prog").debug, "");
	make_with_build_id("byte", 1);
	assert_string_equal(ask_for("byte", "/opt/app/prog").debug, "");
	struct debug_file_request request = {
		.elf_fd = -1, .root_fd = -1, .build_id = id, .build_id_size = 255};
	assert_string_equal(ask(&request).debug, "");
}

/* ---- by link --------------------------------------------------------------------------------- */

static void test_by_link(void **state)
{
	static const char *const places[] = {
		"root/opt/app/plain1.debug",
		"root/opt/app/.debug/plain1.debug",
		"root/usr/lib/debug/opt/app/plain1.debug",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		run("mkdir -p $(dirname %s) && cp plain1.debug %s", places[i], places[i]);
		assert_found("plain1.linked", "/opt/app/prog", places[i]);
		assert_found("plain1.linked", "/opt/other/prog", "");
		assert_found("plain1.linked", "prog", "");
		assert_found("plain1.linked", NULL, "");
		run("rm %s", places[i]);
	}
	run("mkdir -p root/usr/lib/debug/bin && cp plain1.debug root/usr/lib/debug/bin/");
	assert_found("plain1.linked", "/usr/bin/prog", "root/usr/lib/debug/bin/plain1.debug");
	run("cp plain1.debug root/");
	assert_found("plain1.linked", "/prog", "root/plain1.debug");
	/* the build-id proves a linked file as well */
	run("cp id1.debug root/opt/app/id1.debug && printf x >>root/opt/app/id1.debug");
	assert_found("id1.linked", "/opt/app/prog", "root/opt/app/id1.debug");
}

static void test_wrong_link(void **state)
{
	struct answer a;

	(void)state;
	run("cp plain2.debug root/opt/app/plain1.debug");
	run("mkdir root/opt/app/.debug && cp plain1.debug root/opt/app/.debug/ && "
	    "printf x >>root/opt/app/.debug/plain1.debug");
	a = ask_for("plain1.linked", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_crc, 2);
	/* of another build: the CRC is not even looked at */
	run("cp id2.debug root/opt/app/id1.debug");
	a = ask_for("id1.linked", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	assert_int_equal(a.counts.wrong_crc, 0);
	/* a file with a build-id is proved by CRC where the module has none, and the other way round */
	run("objcopy --remove-section .note.gnu.build-id id1.linked no-id");
	run("cp id1.debug root/opt/app/id1.debug");
	assert_found("no-id", "/opt/app/prog", "root/opt/app/id1.debug");
}

static void test_link_to_itself(void **state)
{
	struct answer a;

	(void)state;
	run("cp plain1.linked root/opt/app/plain1.debug && "
	    "ln -s plain1.debug root/opt/app/prog && mkdir root/opt/app/.debug && "
	    "ln root/opt/app/plain1.debug root/opt/app/.debug/plain1.debug");
	a = ask_for("root/opt/app/plain1.debug", "/opt/app/plain1.debug");
	assert_int_equal(a.error, 0);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id + a.counts.wrong_crc, 0);
}

/* A module whose .gnu_debuglink is this text, with the CRC of a file. */
static void make_linked(const char *name, const char *link, const char *crc_of)
{
	unsigned char section[4200] = {};
	size_t size, length = (strlen(link) + 4) & ~(size_t)3;
	unsigned char *data = read_scratch(crc_of, &size);
	uint32_t crc = crc32_update(0, data, size);

	free(data);
	assert_true(length + 4 <= sizeof(section));
	memcpy(section, link, strlen(link));
	memcpy(section + length, &crc, 4);
	write_scratch("link", section, length + 4);
	run("objcopy --add-section .gnu_debuglink=link plain1.stripped %s", name);
}

static void test_links_stay_inside(void **state)
{
	char link[4200], path[256];

	(void)state;
	run("cp plain1.debug outside/secret.debug");
	make_linked("up", "../../../outside/secret.debug", "plain1.debug");
	assert_found("up", "/opt/app/prog", "");
	snprintf(link, sizeof(link), "%s/outside/secret.debug", scratch);
	make_linked("absolute", link, "plain1.debug");
	assert_found("absolute", "/opt/app/prog", "");
	run("ln -s ../../../outside/secret.debug root/opt/app/plain1.debug; "
	    "mkdir root/opt/app/.debug; ln -s %s/outside root/opt/app/.debug/to",
	    scratch);
	assert_found("plain1.linked", "/opt/app/prog", "");
	make_linked("through", ".debug/to/secret.debug", "plain1.debug");
	assert_found("through", "/opt/app/prog", "");
	/* the path as mapped is no better */
	snprintf(path, sizeof(path), "/../../../../..%s/outside/prog", scratch);
	make_linked("path", "secret.debug", "plain1.debug");
	assert_found("path", path, "");
	/* the same names lead to what is there inside of the root */
	run("mkdir -p root/outside root%s/outside && cp plain1.debug root/outside/secret.debug && "
	    "cp plain1.debug root%s/outside/secret.debug",
	    scratch, scratch);
	assert_found("up", "/opt/app/prog", "root/outside/secret.debug");
	snprintf(path, sizeof(path), "root%s/outside/secret.debug", scratch);
	assert_found("absolute", "/opt/app/prog", path);
	assert_found("plain1.linked", "/opt/app/prog", "root/outside/secret.debug");
}

static void test_odd_links(void **state)
{
	static char section[70000];
	char *longest = calloc(1, 4100);

	(void)state;
	memset(longest, 'x', 4099);
	make_linked("longest", longest, "plain1.debug");
	assert_found("longest", "/opt/app/prog", "");
	longest[4094] = '\0';
	make_linked("longest", longest, "plain1.debug");
	assert_found("longest", "/opt/app/prog", "");
	make_linked("nothing", "", "plain1.debug");
	assert_found("nothing", "/opt/app/prog", "");
	make_linked("directory", ".", "plain1.debug");
	assert_found("directory", "/opt/app/prog", "");
	for (size_t size = 0; size < 12; size++) { /* without NUL, without CRC */
		memset(section, 'p', sizeof(section));
		write_scratch("link", section, size);
		run("objcopy --add-section .gnu_debuglink=link plain1.stripped odd");
		assert_found("odd", "/opt/app/prog", "");
	}
	write_scratch("link", section, sizeof(section));
	run("objcopy --add-section .gnu_debuglink=link plain1.stripped odd");
	assert_found("odd", "/opt/app/prog", "");
	run("mkfifo root/opt/app/plain1.debug && mkdir -p root/opt/app/.debug/plain1.debug && "
	    "mkdir -p root/usr/lib/debug/opt/app && "
	    "ln -s plain1.debug root/usr/lib/debug/opt/app/plain1.debug");
	assert_found("plain1.linked", "/opt/app/prog", "");
	free(longest);
}

/* What has been cut or changed is never taken by its CRC. */
static void test_damaged(void **state)
{
	size_t size, module_size;
	unsigned char *debug = read_scratch("plain1.debug", &size);
	unsigned char *module = read_scratch("plain1.linked", &module_size);
	uint64_t seed = 0x2545f4914f6cdd1d;

	(void)state;
	for (int round = 0; round < 200; round++) {
		size_t at = next_random(&seed) % size;
		unsigned char bit = 1 << next_random(&seed) % 8;

		debug[at] ^= bit;
		write_scratch("root/opt/app/plain1.debug", debug, size);
		assert_found("plain1.linked", "/opt/app/prog", "");
		debug[at] ^= bit;
		write_scratch("root/opt/app/plain1.debug", debug, at);
		assert_found("plain1.linked", "/opt/app/prog", "");
	}
	write_scratch("root/opt/app/plain1.debug", debug, size);
	assert_found("plain1.linked", "/opt/app/prog", "root/opt/app/plain1.debug");
	for (int round = 0; round < 1000; round++) {
		unsigned char *copy = malloc(module_size);
		size_t cut = round % 2 ? module_size : next_random(&seed) % module_size;

		memcpy(copy, module, module_size);
		for (int i = 0; i < 20; i++) /* mostly in headers */
			copy[next_random(&seed) % (i < 10 ? 64 : module_size)] = next_random(&seed);
		write_scratch("mutated", copy, cut);
		assert_int_equal(ask_for("mutated", "/opt/app/prog").error, 0);
		free(copy);
	}
	free(debug);
	free(module);
}

static int count_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
	int *calls = context;

	assert_string_equal(what, "/opt/app/prog");
	assert_true(done > 0 && done <= total);
	return ++*calls < 0;
}

static void test_progress(void **state)
{
	int calls = 0;
	struct debug_file_request request = {
		.path = "/opt/app/prog", .progress = count_progress, .context = &calls};

	(void)state;
	run("cp plain1.debug root/opt/app/");
	request.elf_fd = open_scratch("plain1.linked", O_RDONLY);
	request.root_fd = open_scratch("root", O_PATH | O_DIRECTORY);
	assert_string_equal(ask(&request).debug, "root/opt/app/plain1.debug");
	assert_true(calls > 0);
	calls = -1000; /* give up */
	assert_string_equal(ask(&request).debug, "");
	close(request.elf_fd);
	close(request.root_fd);
}

static void test_no_descriptors(void **state)
{
	struct debug_file_request request = {.path = "/opt/app/prog"};
	struct rlimit limit, none;
	struct answer a;

	(void)state;
	place_for("root", "id1", "id1.debug");
	request.elf_fd = open_scratch("id1.stripped", O_RDONLY);
	request.root_fd = open_scratch("root", O_PATH | O_DIRECTORY);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	for (none.rlim_cur = 3; none.rlim_cur < (rlim_t)request.root_fd + 3; none.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		a = ask(&request);
		assert_true(a.error == -EMFILE || a.counts.by_build_id == 1);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(ask(&request).counts.by_build_id, 1);
	close(request.elf_fd);
	close(request.root_fd);
}

static void test_identity(void **state)
{
	int a = open_scratch("id1", O_RDONLY), b = open_scratch("id2", O_RDONLY);
	uint64_t before = debug_file_identity(a, 0, -1, -1);

	(void)state;
	assert_true(before && before == debug_file_identity(a, 0, -1, -1));
	assert_true(before != debug_file_identity(b, 0, -1, -1));
	assert_true(before != debug_file_identity(a, 4096, -1, -1));
	assert_true(before != debug_file_identity(-1, 0, a, -1));
	assert_true(before != debug_file_identity(a, 0, b, -1));
	assert_true(debug_file_identity(a, 0, b, -1) != debug_file_identity(a, 0, -1, b));
	assert_true(debug_file_identity(-1, 0, -1, -1) != 0);
	usleep(20000); /* the clock of file systems is a tick old */
	run("touch id1");
	assert_true(before != debug_file_identity(a, 0, -1, -1));
	close(a);
	close(b);
}

/* ---- dwz ------------------------------------------------------------------------------------- */

/* id1.dwz and id2.dwz, which share `common`; they call it `name`. */
static void make_dwz(const char *name)
{
	run("cp id1.debug id1.dwz && cp id2.debug id2.dwz && "
	    "dwz -m common -M %s id1.dwz id2.dwz && test -s common",
	    name);
}

static void assert_alternate(const char *where)
{
	struct answer a = ask_for("id1.stripped", "/opt/app/prog");

	assert_int_equal(a.error, 0);
	assert_int_equal(a.counts.by_build_id, 1);
	assert_string_equal(a.alternate, where);
}

static void test_dwz(void **state)
{
	(void)state;
	if (!has_tool("dwz")) {
		print_message("skipped: there is no dwz\n");
		skip();
	}
	make_dwz("/usr/lib/debug/.dwz/x/common");
	place_for("root", "id1", "id1.dwz");
	assert_alternate("");
	run("mkdir -p root/usr/lib/debug/.dwz/x && cp common root/usr/lib/debug/.dwz/x/common");
	assert_alternate("root/usr/lib/debug/.dwz/x/common");
	/* another file of that name */
	run("cp id2.debug root/usr/lib/debug/.dwz/x/common");
	assert_int_equal(ask_for("id1.stripped", "/opt/app/prog").counts.wrong_build_id, 1);
	assert_alternate("");
	/* by its build-id */
	place_for("root", "common", "common");
	assert_true(*ask_for("id1.stripped", "/opt/app/prog").alternate);
	/* relative to where the debug file is, or was before links led to it */
	empty_root(NULL);
	make_dwz("../../.dwz/y/common");
	place_for("root", "id1", "id1.dwz");
	run("mkdir -p root/usr/lib/debug/.dwz/y && cp common root/usr/lib/debug/.dwz/y/common");
	assert_alternate("root/usr/lib/debug/.dwz/y/common");
	empty_root(NULL);
	make_dwz("../common");
	place_for("root", "id1", "id1.dwz");
	run("cp common root/usr/lib/debug/.build-id/");
	assert_alternate("root/usr/lib/debug/.build-id/common");
	/* out of the root it does not lead */
	empty_root(NULL);
	make_dwz("../../../../../../outside/common");
	place_for("root", "id1", "id1.dwz");
	run("cp common outside/");
	assert_alternate("");
}

/* A module that has its own debug information but for dwz's part. */
static void test_dwz_of_module(void **state)
{
	struct answer a;

	(void)state;
	if (!has_tool("dwz"))
		skip();
	run("cp id1 id1.whole && cp id2 id2.whole && "
	    "dwz -m common -M common.dwz id1.whole id2.whole && cp common root/opt/app/common.dwz");
	a = ask_for("id1.whole", "/opt/app/prog");
	assert_int_equal(a.error, 0);
	assert_string_equal(a.debug, "");
	assert_string_equal(a.alternate, "root/opt/app/common.dwz");
}

/* ---- the host -------------------------------------------------------------------------------- */

#define CHILD_ASSERT(condition)                                                                    \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/* Make the scratch directory "/", with "root" below it. */
static void enter_scratch(void)
{
	char proc[512];

	scratch_path("proc", proc, sizeof(proc));
	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    (mkdir(proc, 0755) && errno != EEXIST) ||
	    mount("/proc", proc, NULL, MS_BIND | MS_REC, NULL) || chroot(scratch) || chdir("/"))
		_exit(77);
}

static bool finds(const char *module, int root_fd, const char *path, const char *where)
{
	struct debug_file_request request = {.root_fd = root_fd, .path = path};
	struct debug_file_counts counts = {};
	char link[64], found[512] = "";
	int debug = -1, alternate = -1;

	request.elf_fd = open(module, O_RDONLY);
	CHILD_ASSERT(request.elf_fd >= 0);
	CHILD_ASSERT(!debug_file_find(&request, &debug, &alternate, &counts));
	if (debug >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", debug);
		CHILD_ASSERT(readlink(link, found, sizeof(found) - 1) > 0);
		close(debug);
	}
	close(request.elf_fd);
	return !strcmp(found, where);
}

static bool finds_kernel(const uint8_t *id, size_t size, const char *release, const char *where)
{
	struct debug_file_request request = {
		.elf_fd = -1, .root_fd = -1, .build_id = id, .build_id_size = size};
	struct debug_file_counts counts = {};
	char link[64], found[512] = "";
	int debug = -7, alternate = -7;

	CHILD_ASSERT(!debug_file_find_kernel(&request, release, &debug, &alternate, &counts));
	CHILD_ASSERT(alternate == -1);
	if (debug >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", debug);
		CHILD_ASSERT(readlink(link, found, sizeof(found) - 1) > 0);
		close(debug);
	}
	return !strcmp(found, where);
}

static void check_kernel(const uint8_t *id, size_t size)
{
	static const char place[] = "/usr/lib/debug/boot/vmlinux-6.1.0-test";

	CHILD_ASSERT(finds_kernel(id, size, "6.1.0-test", place));
	CHILD_ASSERT(finds_kernel(id, size, "6.1.0-other", "")); /* another build */
	CHILD_ASSERT(finds_kernel(id, size, "../boot/vmlinux-6.1.0-test", ""));
	CHILD_ASSERT(finds_kernel(id, 0, "6.1.0-test", ""));
	CHILD_ASSERT(!rename(place, "/boot/vmlinux-6.1.0-test"));
	CHILD_ASSERT(finds_kernel(id, size, "6.1.0-test", "/boot/vmlinux-6.1.0-test"));
}

static void check_host(const uint8_t *id, size_t size)
{
	int root, host;

	enter_scratch();
	root = open("/root", O_PATH | O_DIRECTORY);
	host = open("/", O_PATH | O_DIRECTORY);
	CHILD_ASSERT(root >= 0 && host >= 0);
	/* the root's own before the host's */
	CHILD_ASSERT(finds("/plain1.linked", root, "/opt/app/prog",
			   "/root/usr/lib/debug/opt/app/plain1.debug"));
	CHILD_ASSERT(!unlink("/root/usr/lib/debug/opt/app/plain1.debug"));
	CHILD_ASSERT(finds("/plain1.linked", root, "/opt/app/prog",
			   "/usr/lib/debug/opt/app/plain1.debug"));
	CHILD_ASSERT(finds("/plain1.linked", -1, "/opt/app/prog",
			   "/usr/lib/debug/opt/app/plain1.debug"));
	/* beside a path of another root is nothing to do with it */
	CHILD_ASSERT(finds("/plain2.linked", root, "/opt/app/prog", ""));
	CHILD_ASSERT(finds("/plain2.linked", -1, "/opt/app/prog", "/opt/app/plain2.debug"));
	CHILD_ASSERT(finds("/plain2.linked", host, "/opt/app/prog", "/opt/app/plain2.debug"));
	check_kernel(id, size);
	_exit(0);
}

static void test_host(void **state)
{
	uint8_t id[64];
	size_t size = build_id_of("id1", id);
	pid_t pid;
	int status;

	(void)state;
	if (geteuid() != 0) {
		print_message("skipped: needs root\n");
		skip();
	}
	run("mkdir -p root/usr/lib/debug/opt/app usr/lib/debug/opt/app opt/app && "
	    "cp plain1.debug root/usr/lib/debug/opt/app/ && "
	    "cp plain1.debug usr/lib/debug/opt/app/ && cp plain2.debug opt/app/");
	run("mkdir -p boot usr/lib/debug/boot && cp id1 usr/lib/debug/boot/vmlinux-6.1.0-test && "
	    "cp id2 usr/lib/debug/boot/vmlinux-6.1.0-other");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		check_host(id, size);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (status == 77 << 8) {
		print_message("skipped: no mount namespace to be had\n");
		skip();
	}
	assert_int_equal(status, 0);
}

/* ---- servers --------------------------------------------------------------------------------- */

enum server_mode {
	SERVE_FILE, /* "served" */
	SERVE_404,
	SERVE_500,
	SERVE_HTML,    /* a page, as captive portals do */
	SERVE_NOTHING, /* accepts and is silent */
	SERVE_ENDLESS, /* a body without end or length */
	SERVE_CUT,     /* half of what it promised */
};

struct server {
	pid_t pid;
	int port;
};

static void send_all(int fd, const void *data, size_t size)
{
	while (size) {
		ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

		if (sent <= 0)
			return;
		data = (const char *)data + sent;
		size -= sent;
	}
}

static void send_file(int fd, bool cut)
{
	size_t size;
	unsigned char *data = read_scratch("served", &size);
	char head[128];

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", size);
	send_all(fd, head, strlen(head));
	send_all(fd, data, cut ? size / 2 : size);
	free(data);
}

static void send_endless(int fd)
{
	static const char head[] = "HTTP/1.1 200 OK\r\n\r\n";
	static char body[65536];

	send_all(fd, head, sizeof(head) - 1);
	for (int i = 0; i < 4096; i++) { /* 256 MB, were they read */
		if (send(fd, body, sizeof(body), MSG_NOSIGNAL) <= 0)
			return;
	}
}

static void send_text(int fd, const char *text)
{
	send_all(fd, text, strlen(text));
}

static void answer_request(int fd, enum server_mode mode)
{
	char request[4096];
	ssize_t size = recv(fd, request, sizeof(request) - 1, 0);

	if (size <= 0)
		return;
	request[size] = '\0';
	if (!strstr(request, "GET /buildid/") || !strstr(request, "/debuginfo"))
		send_text(fd, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n");
	else if (mode == SERVE_FILE || mode == SERVE_CUT)
		send_file(fd, mode == SERVE_CUT);
	else if (mode == SERVE_404)
		send_text(fd, "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n");
	else if (mode == SERVE_500)
		send_text(fd, "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n");
	else if (mode == SERVE_HTML)
		send_text(fd, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\n<html>Log in</html>\n");
	else if (mode == SERVE_NOTHING)
		sleep(30);
	else
		send_endless(fd);
}

static struct server start_server(enum server_mode mode)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct server server;
	char url[64];

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	server.port = ntohs(address.sin_port);
	server.pid = fork();
	assert_true(server.pid >= 0);
	if (!server.pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int client; !server.pid;) {
		client = accept(fd, NULL, NULL);
		if (client < 0)
			_exit(0);
		answer_request(client, mode);
		close(client);
	}
	close(fd);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d/", server.port);
	setenv("DEBUGINFOD_URLS", url, 1);
	run("rm -rf client");
	return server;
}

static void stop_server(struct server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
}

static int cancel_later(void *context, const char *what, uint64_t done, uint64_t total)
{
	int *left = context;

	assert_non_null(what);
	assert_true(!total || done <= total);
	return (*left)-- <= 0;
}

static struct answer ask_servers(struct debug_file_counts counts, int *patience)
{
	struct debug_file_request request = {
		.elf_fd = open_scratch("id1.stripped", O_RDONLY),
		.root_fd = open_scratch("root", O_PATH | O_DIRECTORY),
		.path = "/opt/app/prog",
		.debuginfod = true,
		.progress = patience ? cancel_later : NULL,
		.context = patience,
	};
	struct answer a = {.counts = counts};
	int debug = -1, alternate = -1;

	a.error = debug_file_find(&request, &debug, &alternate, &a.counts);
	name_of(debug, a.debug, sizeof(a.debug));
	close(request.elf_fd);
	close(request.root_fd);
	return a;
}

static struct answer ask_server(enum server_mode mode)
{
	struct server server = start_server(mode);
	struct answer a = ask_servers((struct debug_file_counts){}, NULL);

	stop_server(&server);
	assert_int_equal(a.error, 0);
	return a;
}

/* The client's limits and cache; false: it is not installed. */
static bool prepare_client(void)
{
	uint8_t id[20] = {1};
	char cache[512];
	int fd;

	empty_root(NULL);
	scratch_path("client", cache, sizeof(cache));
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	setenv("DEBUGINFOD_TIMEOUT", "2", 1);
	setenv("DEBUGINFOD_MAXTIME", "5", 1);
	setenv("DEBUGINFOD_RETRY_LIMIT", "1", 1);
	unsetenv("DEBUGINFOD_MAXSIZE");
	setenv("DEBUGINFOD_URLS", " ", 1);
	assert_int_equal(debuginfod_fetch(id, sizeof(id), NULL, NULL, &fd), -EDESTADDRREQ);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
	if (debuginfod_fetch(id, sizeof(id), NULL, NULL, &fd) != -ENOPKG)
		return true;
	print_message("skipped: there is no libdebuginfod\n");
	return false;
}

static void test_server(void **state)
{
	struct answer a;

	(void)state;
	if (!prepare_client())
		skip();
	run("cp id1.debug served");
	a = ask_server(SERVE_FILE);
	assert_int_equal(a.counts.by_debuginfod, 1);
	assert_int_equal(a.counts.debuginfod_failures, 0);
	assert_non_null(strstr(a.debug, "client/"));
	/* from its cache, without a server */
	a = ask_servers((struct debug_file_counts){}, NULL);
	assert_int_equal(a.counts.by_debuginfod, 1);
	/* what is there already is not asked for */
	place_for("root", "id1", "id1.debug");
	a = ask_server(SERVE_404);
	assert_int_equal(a.counts.by_debuginfod, 0);
	assert_int_equal(a.counts.by_build_id, 1);
}

static void test_bad_servers(void **state)
{
	struct answer a;

	(void)state;
	if (!prepare_client())
		skip();
	a = ask_server(SERVE_404);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.debuginfod_failures, 0);
	a = ask_server(SERVE_500);
	assert_string_equal(a.debug, "");
	run("cp id2.debug served");
	a = ask_server(SERVE_FILE);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	assert_int_equal(a.counts.by_debuginfod, 0);
	a = ask_server(SERVE_HTML);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	run("cp id1.debug served");
	a = ask_server(SERVE_CUT);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.by_debuginfod, 0);
	a = ask_server(SERVE_NOTHING);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.debuginfod_failures, 1);
	assert_int_equal(a.counts.debuginfod_error, -ETIME);
	setenv("DEBUGINFOD_MAXSIZE", "1000000", 1);
	a = ask_server(SERVE_ENDLESS);
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.debuginfod_error, -EFBIG);
}

static void test_impatience(void **state)
{
	struct server server;
	struct answer a;
	int patience = 2;

	(void)state;
	if (!prepare_client())
		skip();
	server = start_server(SERVE_NOTHING);
	a = ask_servers((struct debug_file_counts){}, &patience);
	stop_server(&server);
	assert_int_equal(a.error, 0);
	assert_string_equal(a.debug, "");
	assert_int_equal(patience, -1); /* called no more once it said so */
	assert_int_equal(a.counts.debuginfod_failures, 0);
}

/* A server that is not there is given up. */
static void test_no_server(void **state)
{
	struct answer a = {};
	struct server server;

	(void)state;
	if (!prepare_client())
		skip();
	run("rm -rf client");
	for (int i = 1; i <= 3; i++) {
		setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
		a = ask_servers(a.counts, NULL);
		assert_int_equal(a.counts.debuginfod_failures, i);
		assert_true(a.counts.debuginfod_error < 0);
		assert_true(*debuginfod_strerror(a.counts.debuginfod_error));
	}
	run("cp id1.debug served");
	server = start_server(SERVE_FILE);
	a = ask_servers(a.counts, NULL);
	assert_string_equal(a.debug, "");
	a = ask_servers((struct debug_file_counts){}, NULL);
	assert_int_equal(a.counts.by_debuginfod, 1);
	stop_server(&server);
}

#define TEST(function) cmocka_unit_test_setup(function, empty_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_by_build_id),
		TEST(test_wrong_build_id),
		TEST(test_build_id_of_request),
		TEST(test_odd_build_ids),
		TEST(test_by_link),
		TEST(test_wrong_link),
		TEST(test_link_to_itself),
		TEST(test_links_stay_inside),
		TEST(test_odd_links),
		TEST(test_damaged),
		TEST(test_progress),
		TEST(test_no_descriptors),
		TEST(test_identity),
		TEST(test_dwz),
		TEST(test_dwz_of_module),
		TEST(test_host),
		TEST(test_server),
		TEST(test_bad_servers),
		TEST(test_impatience),
		TEST(test_no_server),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
