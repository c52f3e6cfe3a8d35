/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cache of unwind tables: what was built comes out again; what is damaged, forged, of another file
 * or another version is thrown away; what is not kept; a disk that takes no more.
 */
#include <dirent.h>
#include <linux/magic.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "unit.h"
#include "c_library.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/disk_cache.h"
#include "base/gzip.h"
#include "base/io.h"
#include "elf/elf_file.h"
#include "models/unwind_find.h"
#include "unwind/build.h"
#include "unwind/table_builder.h"
#include "unwind/table_cache.h"

#include "unit/tools.h"
#include "unwind/unwind_table_check.h"

#define LIMIT	  (64u << 20)
#define CRC_AT	  12 /* in a file */
#define CRC_START 16
#define MAKER_AT  16

static char directory[64], copy[96]; /* the cache, and a file of ours */
static int library, nameless;	     /* of this process, and one without a name */

/* ---- the library of this process: it is large, and was not changed just now --------------------- */

static void build(int fd, struct unwind_table_image *image)
{
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build(file, LIMIT, image), 0);
	elf_file__free(file);
}

static struct file_stamp stamp_of(int fd)
{
	struct file_stamp stamp;

	assert_int_equal(file_stamp__read(fd, &stamp), 0);
	return stamp;
}

static struct table_cache *open_cache(void)
{
	struct table_cache *c = table_cache__open(directory, TABLE_CACHE_LIMIT, true);

	assert_non_null(c);
	return c;
}

/* How many files are in the cache; the last one's path. */
static size_t list_directory(char *path, size_t size)
{
	_cleanup_closedir_ DIR *d = opendir(directory);
	size_t count = 0;

	assert_non_null(d);
	for (struct dirent *e; (e = readdir(d));) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (path)
			snprintf(path, size, "%s/%s", directory, e->d_name);
		count++;
	}
	return count;
}

static void setup(void)
{
	snprintf(directory, sizeof(directory), "%s", "/tmp/table-cache-XXXXXX");
	assert_true(mkdtemp(directory));
}

static void teardown(void)
{
	char path[512];

	while (list_directory(path, sizeof(path)))
		assert_false(unlink(path) && rmdir(path));
	assert_int_equal(rmdir(directory), 0);
}

/* True: it was kept. */
static bool keep(struct table_cache *c, int fd, const struct unwind_table_image *image)
{
	struct file_stamp stamp = stamp_of(fd);

	table_cache__keep(c, fd, &stamp, image);
	return table_cache__write(c);
}

static void assert_same(const struct unwind_table_image *a, const struct unwind_table_image *b)
{
	assert_memory_equal(&a->table, &b->table, sizeof(a->table));
	assert_memory_equal(&a->counts, &b->counts, sizeof(a->counts));
	assert_int_equal(a->rows, b->rows);
	assert_int_equal(a->size, b->size);
	assert_memory_equal(a->bytes, b->bytes, a->size);
}

/* The library's table, which is in the cache then; its file. */
static void fill_cache(int fd, struct unwind_table_image *image, char *path, size_t size)
{
	struct table_cache *c = open_cache();

	build(fd, image);
	assert_true(keep(c, fd, image));
	assert_false(table_cache__write(c));
	assert_int_equal(list_directory(path, size), 1);
	table_cache__free(c);
}

static int read_fresh(int fd, size_t limit, struct unwind_table_image *image)
{
	struct table_cache *c = open_cache();
	int err = table_cache__read(c, fd, limit, image);

	table_cache__free(c);
	return err;
}

TEST(a_stored_table_is_read_back_unchanged)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct unwind_table_image built, read;
	struct stat st;
	char path[512];

	assert_int_equal(read_fresh(library, LIMIT, &read), -ENOENT);
	fill_cache(library, &built, path, sizeof(path));
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(read_fresh(library, LIMIT, &read), 0);
	assert_same(&built, &read);
	unwind_table_image__fini(&read);
	/* what would be built, but would not fit, is not read either */
	assert_int_equal(read_fresh(library, built.size, &read), 0);
	unwind_table_image__fini(&read);
	assert_int_equal(read_fresh(library, built.size - 1, &read), -EFBIG);
	assert_int_equal(read_fresh(null, LIMIT, &read), -ENOENT);
	assert_int_equal(read_fresh(-1, LIMIT, &read), -ENOENT);
	assert_int_equal(list_directory(NULL, 0), 1);
	unwind_table_image__fini(&built);
}

/* ---- what is not kept ------------------------------------------------------------------------ */

TEST(sparse_tables_and_changing_files_are_not_stored)
{
	_cleanup_close_ int own = open(copy, O_RDWR | O_CLOEXEC);
	struct table_cache *c = open_cache();
	struct unwind_table_image image, odd;
	struct file_stamp stamp = stamp_of(library);

	build(library, &image);
	odd = image;
	odd.rows = image.size / 64;
	assert_false(keep(c, library, &odd));
	/* changed since it was read */
	stamp.changed_ns ^= 1;
	table_cache__keep(c, library, &stamp, &image);
	assert_false(table_cache__write(c));
	/* changed just now, if this was not stopped in between */
	for (bool kept = true, timely = false; kept || !timely;) {
		uint64_t begin = monotonic_ns();

		assert_int_equal(futimens(own, NULL), 0);
		kept = keep(c, own, &image);
		timely = monotonic_ns() - begin < 1000000000;
		assert_false(kept && timely);
	}
	assert_true(keep(c, library, &image));
	table_cache__free(c);
	unwind_table_image__fini(&image);
}

/* 64 MB at once, of which 16 MB may wait. */
TEST(writing_is_limited_in_bytes_and_rate)
{
	struct table_cache *c = open_cache();
	struct unwind_table_image image = {.rows = 4 << 20, .size = 15 << 20};
	struct file_stamp stamp = stamp_of(library);
	int written = 0;

	image.bytes = calloc(1, image.size);
	assert_non_null(image.bytes);
	table_cache__keep(c, library, &stamp, &image);
	table_cache__keep(c, library, &stamp, &image);
	while (table_cache__write(c))
		written++;
	assert_int_equal(written, 1);
	for (int i = 0; i < 8; i++)
		written += keep(c, library, &image);
	assert_in_range(written, 4, 7); /* a second later there is room for 1 MB more */
	table_cache__free(c);
	free(image.bytes);
}

TEST(a_table_that_was_not_written_is_forgotten)
{
	struct table_cache *c = open_cache();
	struct file_stamp stamp = stamp_of(library);
	struct unwind_table_image image, read;

	build(library, &image);
	table_cache__keep(c, library, &stamp, &image);
	table_cache__free(c);
	assert_int_equal(list_directory(NULL, 0), 0);
	assert_int_equal(read_fresh(library, LIMIT, &read), -ENOENT);
	unwind_table_image__fini(&image);
}

/* ---- bad files ------------------------------------------------------------------------------- */

static void assert_thrown_away(int fd, const char *path)
{
	struct unwind_table_image image;
	struct stat st;

	assert_int_equal(read_fresh(fd, LIMIT, &image), -ENOENT);
	assert_int_equal(lstat(path, &st), -1);
}

TEST(damaged_and_foreign_files_are_deleted)
{
	_cleanup_free_ char *good = NULL, *bad = NULL;
	_cleanup_(unwind_table_image__fini) struct unwind_table_image built = {}, read = {};
	char path[512], elsewhere[600];
	size_t size;
	uint32_t crc;

	fill_cache(library, &built, path, sizeof(path));
	good = read_path(path, &size);
	bad = malloc(size + 1);
	for (size_t i = 0; i < 20; i++) { /* from its last byte to its first */
		size_t at = (size - 1) * (19 - i) / 19;

		memcpy(bad, good, size);
		bad[at] ^= 1 << i % 8;
		replace_path(path, bad, size);
		assert_thrown_away(library, path);
		replace_path(path, good, at);
		assert_thrown_away(library, path);
	}
	memcpy(bad, good, size);
	bad[size] = 0;
	replace_path(path, bad, size + 1);
	assert_thrown_away(library, path);
	/* by other sources */
	bad[MAKER_AT] ^= 1;
	crc = crc32_update(0, bad + CRC_START, size - CRC_START);
	memcpy(bad + CRC_AT, &crc, sizeof(crc));
	replace_path(path, bad, size);
	assert_thrown_away(library, path);
	/* somebody else's */
	replace_path(path, good, size);
	assert_int_equal(chmod(path, 0620), 0);
	assert_thrown_away(library, path);
	if (geteuid() == 0) {
		replace_path(path, good, size);
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_thrown_away(library, path);
	}
	snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", directory);
	replace_path(elsewhere, good, size);
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_thrown_away(library, path);
	replace_path(path, good, size);
	assert_int_equal(read_fresh(library, LIMIT, &read), 0);
	assert_same(&built, &read);
}

TEST(a_foreign_or_writable_directory_is_refused)
{
	assert_int_equal(chmod(directory, 0777), 0);
	assert_null(table_cache__open(directory, TABLE_CACHE_LIMIT, true));
	assert_int_equal(chmod(directory, 0700), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(directory, 12345, 12345), 0);
		assert_null(table_cache__open(directory, TABLE_CACHE_LIMIT, true));
		assert_int_equal(chown(directory, 0, 0), 0);
	}
	table_cache__free(open_cache());
	table_cache__free(NULL);
}

/* ---- small tables, every bit of them ---------------------------------------------------------- */

#define SMALL_BUCKETS 3
#define SMALL_ROWS    6

struct small_table {
	struct unwind_rule rules[2];
	uint32_t index[SMALL_BUCKETS + 1];
	uint8_t numbers[SMALL_ROWS], addresses[SMALL_ROWS];
	uint8_t rest[576 - 32 - 16 - 12];
};

_Static_assert(sizeof(struct small_table) == 576, "a multiple of 64, with the slack");

static void make_small(struct small_table *t, struct unwind_table_image *image)
{
	*t = (struct small_table){
		.rules = {{.cfa = UNWIND_CFA_NONE},
			  {.cfa = UNWIND_CFA_SP,
			   .cfa_register = UNWIND_X86_RSP,
			   .cfa_offset = 8,
			   .ra = UNWIND_RA_AT_CFA,
			   .ra_offset = -8}},
		.index = {1, 3, 3, SMALL_ROWS},
		.numbers = {0, 1, 0, 1, 0, 1},
		.addresses = {0, 0, 200, 7, 8, 9},
	};
	*image = (struct unwind_table_image){
		.table = {.base = 0x1000,
			  .buckets = SMALL_BUCKETS,
			  .index = offsetof(struct small_table, index),
			  .numbers = offsetof(struct small_table, numbers),
			  .addresses = offsetof(struct small_table, addresses),
			  .number_size = 1},
		.bytes = t,
		.size = sizeof(*t),
		.rows = SMALL_ROWS,
	};
}

static struct disk_cache *open_files(uint64_t maker)
{
	const struct disk_cache_kind kind = {
		.suffix = ".table", .limit = 1 << 20, .file_limit = 1 << 20, .maker = maker};
	struct disk_cache *c = disk_cache__open_at(&kind, directory);

	assert_non_null(c);
	return c;
}

TEST(each_flipped_bit_and_each_cut_is_detected)
{
	struct disk_cache *c = open_files(7);
	struct unwind_table_image image, read;
	_cleanup_free_ void *data = NULL;
	_cleanup_free_ char *bytes = NULL;
	struct small_table small;
	size_t size, file_size;
	char path[512];
	void *got;

	make_small(&small, &image);
	assert_int_equal(unwind_table_image__check(&image), 0);
	assert_int_equal(table_cache__encode(&image, &data, &size), 0);
	assert_int_equal(disk_cache__write(c, "small.table", data, size), 0);
	assert_int_equal(list_directory(path, sizeof(path)), 1);
	bytes = read_path(path, &file_size);
	for (size_t bit = 0; bit < 8 * file_size; bit++) {
		bytes[bit / 8] ^= 1 << bit % 8;
		replace_path(path, bytes, file_size);
		assert_int_equal(disk_cache__read(c, "small.table", &got, &size), -EBADMSG);
		bytes[bit / 8] ^= 1 << bit % 8;
	}
	for (size_t cut = 0; cut < file_size; cut++) {
		replace_path(path, bytes, cut);
		assert_int_equal(disk_cache__read(c, "small.table", &got, &size), -EBADMSG);
	}
	replace_path(path, bytes, file_size);
	assert_int_equal(disk_cache__read(c, "small.table", &got, &size), 0);
	assert_int_equal(table_cache__decode(got, size, LIMIT, &read), 0);
	assert_same(&image, &read);
	unwind_table_image__fini(&read);
	disk_cache__free(c);
}

/* Whatever is taken can be searched: the sanitizers look on. */
static void search(const struct unwind_table_image *image)
{
	const struct unwind_table *t = &image->table;

	for (uint32_t b = 0; b < t->buckets; b++)
		for (unsigned int i = 0; i < UNWIND_BUCKET_SIZE; i++) {
			uint64_t address = t->base + ((uint64_t)b << UNWIND_BUCKET_BITS) + i;
			const char *rule = (const void *)unwind_table__find(image->bytes, t,
									    address);

			assert_true(rule >= (const char *)image->bytes);
			assert_true(rule + sizeof(struct unwind_rule) <=
				    (const char *)image->bytes + t->index);
		}
}

/* An attacker gets the checksum right. */
TEST(forged_tables_are_refused_or_searched_safely)
{
	size_t size, taken = 0, refused = 0;
	uint64_t seed = 0x9e3779b97f4a7c15;
	_cleanup_free_ void *good = NULL;
	struct unwind_table_image image, read;
	struct small_table small;

	make_small(&small, &image);
	assert_int_equal(table_cache__encode(&image, &good, &size), 0);
	for (int round = 0; round < 20000; round++) {
		/* anywhere, or where sizes and offsets are */
		size_t start = round % 2 ? sizeof(small) : 0;
		char *bad = malloc(size);
		int err;

		memcpy(bad, good, size);
		for (uint64_t n = 1 + next_random(&seed) % 3; n; n--)
			bad[start + next_random(&seed) % (size - start)] =
				next_random(&seed) % 3 ? (char)next_random(&seed) : (char)0xff;
		err = table_cache__decode(bad, size, LIMIT, &read);
		if (err) {
			assert_int_equal(err, -EBADMSG);
			refused++;
			continue;
		}
		search(&read);
		unwind_table_image__fini(&read);
		taken++;
	}
	assert_true(taken > 100 && refused > 100);
}

/* ---- whose files these are --------------------------------------------------------------------- */

/* The device and inode of a file without a device are another's tomorrow, or somebody's invention. */
TEST(tables_for_files_on_unstable_devices_are_ignored)
{
	const uint64_t disk = makedev(254, 0), none = makedev(0, 40);
	struct unwind_table_image image, read;
	struct file_stamp stamp = stamp_of(nameless);
	_cleanup_free_ void *data = NULL;
	_cleanup_free_ char *other = NULL;
	struct small_table small;
	struct disk_cache *files;
	struct table_cache *c;
	char path[512], name[DISK_CACHE_NAME_SIZE];
	uint64_t maker;
	size_t size;

	assert_true(table_cache__is_stable(disk, EXT4_SUPER_MAGIC));
	assert_true(table_cache__is_stable(none, BTRFS_SUPER_MAGIC));
	assert_false(table_cache__is_stable(disk, FUSE_SUPER_MAGIC));
	assert_false(table_cache__is_stable(none, OVERLAYFS_SUPER_MAGIC));
	assert_false(table_cache__is_stable(none, NFS_SUPER_MAGIC));
	assert_false(table_cache__is_stable(none, TMPFS_MAGIC));
	assert_int_equal(major(stamp.device), 0);
	make_small(&small, &image);
	fill_cache(library, &read, path, sizeof(path));
	unwind_table_image__fini(&read);
	other = read_path(path, &size);
	memcpy(&maker, other + MAKER_AT, sizeof(maker));
	assert_int_equal(table_cache__encode(&image, &data, &size), 0);
	snprintf(name, sizeof(name), "%lx-%lx-%lx-%lx-%lx.table", stamp.device, stamp.inode,
		 stamp.size, stamp.changed, stamp.changed_ns);
	files = open_files(maker);
	assert_int_equal(disk_cache__write(files, name, data, size), 0);
	disk_cache__free(files);
	assert_int_equal(read_fresh(nameless, LIMIT, &read), 0);
	unwind_table_image__fini(&read);
	c = table_cache__open(directory, TABLE_CACHE_LIMIT, false);
	assert_int_equal(table_cache__read(c, nameless, LIMIT, &read), -ENOENT);
	table_cache__free(c);
}

/* ---- a disk that takes no more ---------------------------------------------------------------- */

/* In a child, since the limit is the process's: nothing is left behind, and nothing more is tried. */
static void fill_disk(int fd, const struct unwind_table_image *image)
{
	const struct rlimit little = {4096, RLIM_INFINITY}, all = {RLIM_INFINITY, RLIM_INFINITY};
	struct table_cache *c = open_cache();
	struct file_stamp stamp = stamp_of(fd);

	signal(SIGXFSZ, SIG_IGN);
	table_cache__keep(c, fd, &stamp, image);
	table_cache__keep(c, fd, &stamp, image);
	if (setrlimit(RLIMIT_FSIZE, &little))
		_exit(2);
	if (!table_cache__write(c) || table_cache__write(c))
		_exit(3);
	if (setrlimit(RLIMIT_FSIZE, &all))
		_exit(4);
	table_cache__keep(c, fd, &stamp, image);
	if (table_cache__write(c) || list_directory(NULL, 0))
		_exit(5);
	table_cache__free(c);
	_exit(0);
}

TEST(a_full_disk_ends_writing_and_leaves_no_file)
{
	_cleanup_(unwind_table_image__fini) struct unwind_table_image image = {};
	int status;
	pid_t pid;

	build(library, &image);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		fill_disk(library, &image);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(list_directory(NULL, 0), 0);
}

/* ---- files that change ------------------------------------------------------------------------ */

static int copy_file(int from, int to)
{
	char bytes[4096];
	ssize_t got;

	for (off_t done = 0; (got = pread_full(from, bytes, sizeof(bytes), done)) > 0; done += got)
		if (write_full(to, bytes, got))
			return -1;
	return got;
}

static void make_copies(void)
{
	_cleanup_close_ int to = -1;

	library = open_c_library();
	snprintf(copy, sizeof(copy), "%s", "/tmp/table-cache-copy-XXXXXX");
	to = mkostemp(copy, O_CLOEXEC);
	nameless = memfd_create("library", MFD_CLOEXEC);
	assert_false(to < 0 || nameless < 0 || copy_file(library, to) ||
		     copy_file(library, nameless));
}

static void delete_copies(void)
{
	close(library);
	close(nameless);
	assert_int_equal(unlink(copy), 0);
}

/*
 * The table of what a file was is not that of what it is, whatever time it pretends to have. A file
 * without a name is not kept, however old.
 */
TEST(the_table_of_a_changed_file_is_not_read)
{
	_cleanup_close_ int fd = open(copy, O_RDWR | O_CLOEXEC);
	struct unwind_table_image built, read;
	struct timespec times[2];
	struct table_cache *c;
	char path[512], byte;
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	while (time(NULL) < st.st_ctim.tv_sec + 4)
		usleep(100000);
	assert_int_equal(fstat(fd, &st), 0);
	fill_cache(fd, &built, path, sizeof(path));
	assert_int_equal(read_fresh(fd, LIMIT, &read), 0);
	assert_same(&built, &read);
	unwind_table_image__fini(&read);
	assert_int_equal(pread(fd, &byte, 1, st.st_size - 1), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, st.st_size - 1), 1);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(read_fresh(fd, LIMIT, &read), -ENOENT);
	c = open_cache();
	assert_false(keep(c, nameless, &built));
	table_cache__free(c);
	assert_int_equal(list_directory(NULL, 0), 1);
	unwind_table_image__fini(&built);
}

/* A file with the build-id of another, its size and its bytes: what was built of it is not the other's table. */
TEST(files_with_equal_build_ids_do_not_share_tables)
{
	_cleanup_close_ int other = open(copy, O_RDONLY | O_CLOEXEC);
	_cleanup_(unwind_table_image__fini) struct unwind_table_image built = {}, read = {};
	char path[512];

	while (time(NULL) < stamp_of(other).changed + 4)
		usleep(100000);
	fill_cache(other, &built, path, sizeof(path));
	assert_int_equal(read_fresh(library, LIMIT, &read), -ENOENT);
	assert_int_equal(read_fresh(other, LIMIT, &read), 0);
}

/* ---- with builders ---------------------------------------------------------------------------- */

static void request(struct table_builder *b, int fd, enum table_effort effort,
		    struct built_table *built)
{
	assert_int_equal(table_builder__request(
				 b, &(struct table_request){.id = 7, .fd = fd, .effort = effort}),
			 0);
	assert_true(table_builder__take(b, true, built));
	assert_int_equal(built->id, 7);
}

TEST(builders_store_tables_and_read_them_again)
{
	_cleanup_close_ int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct built_table first, second;
	struct helper_pool *builders;
	struct table_builder *b;

	assert_int_equal(helper_pool__new(&builder_options, &builders), 0);
	assert_int_equal(table_builder__new(LIMIT, builders, open_cache(), &b), 0);
	request(b, library, TABLE_READ, &first);
	assert_int_equal(first.err, -ENOENT);
	assert_false(first.cached);
	request(b, library, TABLE_BUILD, &first);
	assert_int_equal(first.err, 0);
	assert_false(first.cached);
	request(b, null, TABLE_BUILD, &second);
	assert_true(second.err && !second.cached);
	table_builder__free(b); /* writes it, if it has not yet */
	assert_int_equal(list_directory(NULL, 0), 1);
	assert_int_equal(table_builder__new(LIMIT, builders, open_cache(), &b), 0);
	for (int i = 0; i < 2; i++) {
		request(b, library, i ? TABLE_BUILD : TABLE_READ, &second);
		assert_int_equal(second.err, 0);
		assert_true(second.cached);
		assert_same(&first.image, &second.image);
		unwind_table_image__fini(&second.image);
	}
	/* what is not taken is freed */
	for (int i = 0; i < 20; i++)
		assert_int_equal(table_builder__request(
					 b, &(struct table_request){.id = i,
								    .fd = library,
								    .effort = i % 2 ? TABLE_BUILD
										    : TABLE_READ}),
				 0);
	table_builder__free(b);
	helper_pool__free(builders);
	unwind_table_image__fini(&first.image);
}

TEST(tables_refused_for_their_rows_are_counted)
{
	struct table_refusals refusals;
	struct built_table built;
	struct helper_pool *builders;
	struct table_builder *b;

	assert_int_equal(helper_pool__new(&builder_options, &builders), 0);
	assert_int_equal(table_builder__new(1000, builders, NULL, &b), 0);
	for (int i = 0; i < 3; i++) {
		request(b, library, TABLE_BUILD, &built);
		assert_int_equal(built.err, -EFBIG);
		assert_int_equal(built.refusal, TABLE_REFUSAL_ROWS);
	}
	table_builder__refusals(b, &refusals);
	for (int why = 0; why < TABLE_REFUSAL_COUNT; why++)
		assert_int_equal(refusals.count[why], why == TABLE_REFUSAL_ROWS ? 3 : 0);
	table_builder__free(b);
	helper_pool__free(builders);
}

EACH_TEST_WITH(setup, teardown);
ALL_TESTS_WITH(make_copies, delete_copies);
