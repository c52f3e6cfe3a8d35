/* SPDX-License-Identifier: BSD-2-Clause */
/* Result files under names that others may have got at: links, directories and files that were put there. */
#include "output_support.h"

#define STRANGER 12345

static void need_to_give_away(void)
{
	if (!geteuid())
		return;
	print_message("only root can give files away\n");
	skip();
}

static int try_place(const char *path, enum output_name name)
{
	struct output_place *place;
	int err = output_place__open(path, name, &place);

	if (!err)
		output_place__free(place);
	return err;
}

static void put_at(const struct output_place *place, const char *text)
{
	struct output_file *f;

	assert_int_equal(output_file__open_at(place, &f), 0);
	fputs(text, output_file__stream(f));
	assert_int_equal(output_file__commit(f), 0);
}

static void expect_regular(const char *path, const char *text)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	expect_text(path, text);
}

TEST(chosen_names_replace_what_is_there)
{
	static const char *const names[] = {"file", "link", "dangling", "fifo", "-", "new"};
	struct output_place *place;

	write_text("victim", "kept");
	write_text("file", "old");
	assert_int_equal(symlink("victim", "link"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(output_place__open(names[i], OUTPUT_CHOSEN, &place), 0);
		assert_false(output_place__is_stream(place));
		put_at(place, "new");
		output_place__free(place);
		expect_regular(names[i], "new");
	}
	expect_text("victim", "kept");
	assert_int_equal(access("nowhere", F_OK), -1);
	mkdir("d", 0700);
	assert_int_equal(try_place("d", OUTPUT_CHOSEN), -EISDIR);
}

/* Beside the name that was given, not beside what a link of that name leads to. */
TEST(siblings_lie_beside_the_name)
{
	struct output_place *place, *beside;

	mkdir("d", 0700);
	write_text("victim", "kept");
	assert_int_equal(symlink("d/target", "link"), 0);
	assert_int_equal(symlink("victim", "sibling"), 0);
	assert_int_equal(output_place__open("link", OUTPUT_GIVEN, &place), 0);
	assert_int_equal(output_place__beside(place, "sibling", &beside), 0);
	put_at(place, "first");
	put_at(beside, "second");
	output_place__free(beside);
	output_place__free(place);
	expect_text("d/target", "first");
	expect_regular("sibling", "second");
	expect_text("victim", "kept");
	assert_int_equal(count_entries("d"), 1);
}

/* What is decided stays so: a link or a pipe that comes later is replaced. */
TEST(places_do_not_move)
{
	static const char *const ways[] = {"ln -s ../victim d/f", "mkfifo d/f",
					   "ln -s ../elsewhere/f d/f"};
	struct output_place *place;
	struct output_file *f;

	write_text("victim", "kept");
	mkdir("elsewhere", 0700);
	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		assert_int_equal(system("rm -rf d && mkdir d"), 0);
		assert_int_equal(output_place__open("d/f", OUTPUT_GIVEN, &place), 0);
		assert_int_equal(system(ways[i]), 0);
		put_at(place, "new");
		output_place__free(place);
		expect_regular("d/f", "new");
	}
	assert_int_equal(output_place__open("d/f", OUTPUT_GIVEN, &place), 0);
	assert_int_equal(system("mv d moved && ln -s elsewhere d"), 0);
	assert_int_equal(output_file__open_at(place, &f), 0);
	assert_int_equal(output_file__commit(f), -ENOENT);
	output_place__free(place);
	expect_text("moved/f", "new");
	assert_int_equal(count_entries("elsewhere"), 0);
	expect_text("victim", "kept");
}

/* As fs.protected_symlinks and fs.protected_fifos have it, whatever they are set to. */
TEST(strangers_decide_nothing_in_a_directory_for_all)
{
	static const char *const names[] = {"d/link", "d/dangling", "d/fifo"};

	need_to_give_away();
	write_text("victim", "kept");
	mkdir("d", 0700);
	assert_int_equal(symlink("../victim", "d/link"), 0);
	assert_int_equal(symlink("../new", "d/dangling"), 0);
	assert_int_equal(symlink("d/link", "way"), 0);
	assert_int_equal(mkfifo("d/fifo", 0600), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		assert_int_equal(lchown(names[i], STRANGER, STRANGER), 0);
		chmod("d", 0755);
		assert_int_equal(try_place(names[i], OUTPUT_GIVEN), 0);
		chmod("d", 01777);
		assert_int_equal(try_place(names[i], OUTPUT_GIVEN), -EACCES);
		chmod("d", 0777);
		assert_int_equal(try_place(names[i], OUTPUT_GIVEN), -EACCES);
		/* the directory's owner may say what is in it */
		assert_int_equal(chown("d", STRANGER, STRANGER), 0);
		assert_int_equal(try_place(names[i], OUTPUT_GIVEN), 0);
		assert_int_equal(chown("d", 0, 0), 0);
		assert_int_equal(lchown(names[i], 0, 0), 0);
		assert_int_equal(try_place(names[i], OUTPUT_GIVEN), 0);
	}
	/* on the way that one of our own links leads */
	assert_int_equal(lchown("d/link", STRANGER, STRANGER), 0);
	assert_int_equal(try_place("way", OUTPUT_GIVEN), -EACCES);
}

static void expect_shared(const char *path, const char *directory)
{
	struct output_place *place;
	const char *shared;

	assert_int_equal(output_place__open(path, OUTPUT_GIVEN, &place), 0);
	shared = output_place__shared(place);
	if (directory)
		assert_string_equal(shared ? shared : "none", directory);
	else
		assert_null(shared);
	output_place__free(place);
}

TEST(shared_directories_are_known)
{
	need_to_give_away();
	mkdir("d", 0700);
	assert_int_equal(symlink("d/target", "link"), 0);
	expect_shared("d/f", NULL);
	chmod("d", 01777);
	expect_shared("d/f", NULL);
	chmod("d", 0777);
	expect_shared("d/f", "d");
	expect_shared("link", "./d");
	expect_shared("-", NULL);
	expect_shared("/dev/null", NULL);
	chmod("d", 0775);
	expect_shared("d/f", NULL);
	assert_int_equal(chown("d", 0, STRANGER), 0);
	expect_shared("d/f", "d");
	chmod("d", 01775);
	expect_shared("d/f", NULL);
	chmod("d", 0775);
	assert_int_equal(chown("d", STRANGER, STRANGER), 0);
	expect_shared("d/f", "d");
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "12345", 1);
	expect_shared("d/f", NULL);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

/* A link of procfs is more than its text, which may name a file that is gone, or another one. */
TEST(links_of_procfs)
{
	struct output_place *place;
	int pipes[2], fd;
	char path[64], byte;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[1]);
	assert_int_equal(symlink(path, "link"), 0);
	assert_int_equal(output_place__open("link", OUTPUT_GIVEN, &place), 0);
	assert_true(output_place__is_stream(place));
	put_at(place, "x");
	output_place__free(place);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	assert_int_equal(byte, 'x');
	close(pipes[0]);
	close(pipes[1]);
	write_text("f", "old");
	fd = open("f", O_RDONLY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	put(path, "new");
	expect_text("f", "new");
	assert_int_equal(try_place(path, OUTPUT_GIVEN), -ENOENT); /* it has been replaced */
	write_text("f (deleted)", "another");
	assert_int_equal(try_place(path, OUTPUT_GIVEN), -ESTALE);
	close(fd);
}

TEST(finished_files_can_be_taken_back)
{
	struct output_file *f;

	assert_int_equal(output_file__open("f", &f), 0);
	assert_int_equal(output_file__finish(f), 0);
	assert_int_equal(access("f", F_OK), 0);
	output_file__take_back(f);
	assert_int_equal(count_entries("."), 0);
	assert_int_equal(output_file__open("f", &f), 0);
	assert_int_equal(output_file__finish(f), 0);
	assert_int_equal(unlink("f"), 0);
	write_text("f", "another's");
	output_file__take_back(f);
	expect_text("f", "another's");
	assert_int_equal(output_file__open("f", &f), 0);
	assert_int_equal(output_file__finish(f), 0);
	output_file__abort(f);
	expect_text("f", "");
}

TEST(a_directory_has_come_under_the_name)
{
	struct output_file *f;
	char *path;

	mkdir("d", 0700);
	assert_int_equal(output_file__open("d/f.json.gz", &f), 0);
	fputs("text", output_file__stream(f));
	path = output_file__path(f);
	assert_string_equal(path, "d/f.json.gz");
	free(path);
	mkdir("d/f.json.gz", 0700);
	assert_int_equal(output_file__finish(f), -EISDIR);
	assert_int_equal(output_file__finish_otherwise(f, 1), 0);
	path = output_file__path(f);
	assert_int_equal(strlen(path), strlen("d/f-XXXXXXXX.json.gz"));
	assert_memory_equal(path, "d/f-", 4);
	assert_string_equal(path + 12, ".json.gz");
	expect_regular(path, "text");
	output_file__take_back(f);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(count_entries("d"), 1);
	free(path);

	assert_int_equal(output_file__open("d/g.x", &f), 0);
	mkdir("d/g.x", 0700);
	assert_false(output_file__moved(f));
	assert_int_equal(output_file__publish(f), 0);
	assert_true(output_file__moved(f));
	fputs("text", output_file__stream(f));
	path = output_file__path(f);
	assert_memory_equal(path, "d/g-", 4);
	assert_string_equal(path + 12, ".x");
	assert_int_equal(output_file__commit(f), 0);
	expect_regular(path, "text");
	free(path);
}

TEST(temporary_file_is_exchanged)
{
	struct output_file *f;
	char path[PATH_MAX];

	write_text("f", "old");
	assert_int_equal(output_file__open("f", &f), 0);
	assert_int_equal(output_file__temporary(f, path, sizeof(path)), 0);
	assert_int_equal(unlink(path), 0);
	write_text(path, "another's");
	assert_int_equal(output_file__commit(f), -ENOENT);
	expect_text("f", "old");
}

EACH_TEST_WITH(enter_directory, leave_directory);

int main(void)
{
	unsetenv("SUDO_UID"); /* the tests themselves may run under sudo */
	unsetenv("SUDO_GID");
	return run_unit_tests();
}
