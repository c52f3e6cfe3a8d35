/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The search for debug files, in roots made for it with cc, objcopy and dwz: by build-id, by link,
 * dwz's; wrong files under the right names; links that want to lead elsewhere. The scratch
 * directory's "root" is the target's root.
 */
#include <limits.h>
#include <sys/resource.h>

#include "unit.h"
#include "base/cleanup.h"
#include "base/gzip.h"
#include "elf/elf_file.h"
#include "symbolize/debug_file.h"

#include "unit/debug_file_support.h"

/* ---- by build-id ----------------------------------------------------------------------------- */

TEST_WITH(a_debug_file_is_found_by_its_build_id, empty_root, NULL)
{
	struct answer a;

	place_for("root", "id1", "id1.debug");
	a = request_of("id1.stripped", "/opt/app/prog");
	assert_int_equal(a.error, 0);
	assert_non_null(strstr(a.debug, "root/usr/lib/debug/.build-id/"));
	assert_int_equal(a.counts.by_build_id, 1);
	assert_int_equal(a.counts.wrong_build_id + a.counts.wrong_crc, 0);
	assert_found("id2.stripped", "/opt/app/prog", "");
	/* it has all it needs */
	assert_found("id1", "/opt/app/prog", "");
}

TEST_WITH(a_file_without_the_right_build_id_is_refused, empty_root, NULL)
{
	struct answer a;

	place_for("root", "id1", "id2.debug");
	a = request_of("id1.stripped", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	place_for("root", "id1", "plain1.debug"); /* has none */
	a = request_of("id1.stripped", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	place_for("root", "id1", "prog.c");
	a = request_of("id1.stripped", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
}

/* The record's build-id is enough, and it may be what an event could hold of a longer one. */
TEST_WITH(a_whole_build_id_needs_no_module, empty_root, NULL)
{
	uint8_t id[64];
	size_t size = build_id_of("id1", id);
	struct debug_file_request request = {.elf_fd = -1, .build_id = id, .build_id_size = size};
	struct answer a;

	place_for("root", "id1", "id1.debug");
	request.root_fd = open_scratch("root", O_PATH | O_DIRECTORY);
	a = send_request(&request);
	assert_int_equal(a.counts.by_build_id, 1);
	request.build_id_size = 1;
	a = send_request(&request);
	assert_string_equal(a.debug, "");
	request.build_id_size = size - 1;
	a = send_request(&request);
	assert_string_equal(a.debug, "");
	request.elf_fd = open_scratch("id1.stripped", O_RDONLY);
	a = send_request(&request);
	assert_int_equal(a.counts.by_build_id, 1);
	close(request.elf_fd);
	request.elf_fd = open_scratch("prog.c", O_RDONLY); /* no ELF file: the record's counts */
	request.build_id_size = size;
	a = send_request(&request);
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

TEST_WITH(too_long_or_short_build_ids_find_nothing, empty_root, NULL)
{
	uint8_t id[255];

	memset(id, 0xab, sizeof(id));
	make_with_build_id("long", 64);
	place_by_build_id("root", id, 64, "long");
	assert_int_equal(request_of("long", "/opt/app/prog").counts.by_build_id, 1);
	make_with_build_id("too-long", 65);
	place_by_build_id("root", id, 64, "too-long");
	assert_string_equal(request_of("too-long", "/opt/app/prog").debug, "");
	make_with_build_id("huge", 4096);
	assert_string_equal(request_of("huge", "/opt/app/prog").debug, "");
	make_with_build_id("byte", 1);
	assert_string_equal(request_of("byte", "/opt/app/prog").debug, "");
	struct debug_file_request request = {
		.elf_fd = -1, .root_fd = -1, .build_id = id, .build_id_size = 255};
	assert_string_equal(send_request(&request).debug, "");
}

/* ---- by link --------------------------------------------------------------------------------- */

TEST_WITH(a_linked_file_is_found_in_the_usual_places, empty_root, NULL)
{
	static const char *const places[] = {
		"root/opt/app/plain1.debug",
		"root/opt/app/.debug/plain1.debug",
		"root/usr/lib/debug/opt/app/plain1.debug",
	};

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

TEST_WITH(linked_files_need_the_right_crc_or_build_id, empty_root, NULL)
{
	struct answer a;

	run("cp plain2.debug root/opt/app/plain1.debug");
	run("mkdir root/opt/app/.debug && cp plain1.debug root/opt/app/.debug/ && "
	    "printf x >>root/opt/app/.debug/plain1.debug");
	a = request_of("plain1.linked", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_crc, 2);
	/* of another build: the CRC is not even looked at */
	run("cp id2.debug root/opt/app/id1.debug");
	a = request_of("id1.linked", "/opt/app/prog");
	assert_string_equal(a.debug, "");
	assert_int_equal(a.counts.wrong_build_id, 1);
	assert_int_equal(a.counts.wrong_crc, 0);
	/* a file with a build-id is proved by CRC where the module has none, and the other way round */
	run("objcopy --remove-section .note.gnu.build-id id1.linked no-id");
	run("cp id1.debug root/opt/app/id1.debug");
	assert_found("no-id", "/opt/app/prog", "root/opt/app/id1.debug");
}

TEST_WITH(a_module_is_not_its_own_debug_file, empty_root, NULL)
{
	struct answer a;

	run("cp plain1.linked root/opt/app/plain1.debug && "
	    "ln -s plain1.debug root/opt/app/prog && mkdir root/opt/app/.debug && "
	    "ln root/opt/app/plain1.debug root/opt/app/.debug/plain1.debug");
	a = request_of("root/opt/app/plain1.debug", "/opt/app/plain1.debug");
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

TEST_WITH(links_do_not_lead_out_of_the_root, empty_root, NULL)
{
	char link[4200], path[256];

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

TEST_WITH(malformed_links_and_special_files_find_nothing, empty_root, NULL)
{
	static char section[70000];

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
}

/* "./././plain1.debug", with which the whole path has this length. */
static void make_long_link(const char *name, size_t path_length)
{
	static const char directory[] = "/opt/app/", file[] = "plain1.debug";
	size_t length = path_length - strlen(directory), dots = length - strlen(file);
	char link[PATH_MAX + 8] = "";

	assert_true(dots % 2 == 0);
	for (size_t i = 0; i < dots; i += 2)
		memcpy(link + i, "./", 2);
	memcpy(link + dots, file, sizeof(file));
	make_linked(name, link, "plain1.debug");
}

/* Cut at the limit, the path of the longer one is that of another file. */
TEST_WITH(a_path_as_long_as_possible_is_found_and_none_beyond, empty_root, NULL)
{
	run("cp plain1.debug root/opt/app/ && cp plain1.debug root/opt/app/plain1.deb");
	make_long_link("fits", PATH_MAX - 1);
	assert_found("fits", "/opt/app/prog", "root/opt/app/plain1.debug");
	make_long_link("longer", PATH_MAX + 1);
	assert_found("longer", "/opt/app/prog", "");
}

/* What has been cut or changed is never taken by its CRC. */
TEST_WITH(damaged_linked_files_are_never_used, empty_root, NULL)
{
	size_t size, module_size;
	_cleanup_free_ unsigned char *debug = read_scratch("plain1.debug", &size);
	_cleanup_free_ unsigned char *module = read_scratch("plain1.linked", &module_size);
	uint64_t seed = 0x2545f4914f6cdd1d;

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
		_cleanup_free_ unsigned char *copy = malloc(module_size);
		size_t cut = round % 2 ? module_size : next_random(&seed) % module_size;

		memcpy(copy, module, module_size);
		for (int i = 0; i < 20; i++) /* mostly in headers */
			copy[next_random(&seed) % (i < 10 ? 64 : module_size)] = next_random(&seed);
		write_scratch("mutated", copy, cut);
		assert_int_equal(request_of("mutated", "/opt/app/prog").error, 0);
	}
}

static int count_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
	int *calls = context;

	assert_string_equal(what, "/opt/app/prog");
	assert_true(done > 0 && done <= total);
	return ++*calls < 0;
}

TEST_WITH(checking_a_crc_reports_progress_and_can_be_cancelled, empty_root, NULL)
{
	int calls = 0;
	struct debug_file_request request = {
		.path = "/opt/app/prog", .progress = count_progress, .context = &calls};

	run("cp plain1.debug root/opt/app/");
	request.elf_fd = open_scratch("plain1.linked", O_RDONLY);
	request.root_fd = open_scratch("root", O_PATH | O_DIRECTORY);
	assert_string_equal(send_request(&request).debug, "root/opt/app/plain1.debug");
	assert_true(calls > 0);
	calls = -1000; /* give up */
	assert_string_equal(send_request(&request).debug, "");
	close(request.elf_fd);
	close(request.root_fd);
}

TEST_WITH(a_lack_of_descriptors_is_never_a_missing_file, empty_root, NULL)
{
	struct debug_file_request request = {.path = "/opt/app/prog"};
	struct rlimit limit, none;
	struct answer a;

	place_for("root", "id1", "id1.debug");
	request.elf_fd = open_scratch("id1.stripped", O_RDONLY);
	request.root_fd = open_scratch("root", O_PATH | O_DIRECTORY);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	for (none.rlim_cur = 3; none.rlim_cur < (rlim_t)request.root_fd + 3; none.rlim_cur++) {
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
		a = send_request(&request);
		assert_true(a.error == -EMFILE || a.counts.by_build_id == 1);
	}
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(send_request(&request).counts.by_build_id, 1);
	close(request.elf_fd);
	close(request.root_fd);
}

TEST_WITH(the_identity_changes_with_any_file_or_offset, empty_root, NULL)
{
	_cleanup_close_ int a = open_scratch("id1", O_RDONLY), b = open_scratch("id2", O_RDONLY);
	uint64_t before = debug_file_identity(a, 0, -1, -1);

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
	struct answer a = request_of("id1.stripped", "/opt/app/prog");

	assert_int_equal(a.error, 0);
	assert_int_equal(a.counts.by_build_id, 1);
	assert_string_equal(a.alternate, where);
}

TEST_WITH(dwz_files_are_found_by_path_or_build_id, empty_root, NULL)
{
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
	assert_int_equal(request_of("id1.stripped", "/opt/app/prog").counts.wrong_build_id, 1);
	assert_alternate("");
	/* by its build-id */
	place_for("root", "common", "common");
	assert_true(*request_of("id1.stripped", "/opt/app/prog").alternate);
	/* relative to where the debug file is, or was before links led to it */
	empty_root();
	make_dwz("../../.dwz/y/common");
	place_for("root", "id1", "id1.dwz");
	run("mkdir -p root/usr/lib/debug/.dwz/y && cp common root/usr/lib/debug/.dwz/y/common");
	assert_alternate("root/usr/lib/debug/.dwz/y/common");
	empty_root();
	make_dwz("../common");
	place_for("root", "id1", "id1.dwz");
	run("cp common root/usr/lib/debug/.build-id/");
	assert_alternate("root/usr/lib/debug/.build-id/common");
	/* out of the root it does not lead */
	empty_root();
	make_dwz("../../../../../../outside/common");
	place_for("root", "id1", "id1.dwz");
	run("cp common outside/");
	assert_alternate("");
}

TEST_WITH(a_module_with_debug_information_gets_its_dwz_file, empty_root, NULL)
{
	struct answer a;

	if (!has_tool("dwz"))
		skip();
	run("cp id1 id1.whole && cp id2 id2.whole && "
	    "dwz -m common -M common.dwz id1.whole id2.whole && cp common root/opt/app/common.dwz");
	a = request_of("id1.whole", "/opt/app/prog");
	assert_int_equal(a.error, 0);
	assert_string_equal(a.debug, "");
	assert_string_equal(a.alternate, "root/opt/app/common.dwz");
}

ALL_TESTS_WITH(setup, teardown);
