/* SPDX-License-Identifier: BSD-2-Clause */
#include "unit.h"
#include "agent/http.h"

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	close(fd);
}

TEST(the_first_existing_file_is_taken)
{
	char directory[] = "/tmp/ca-file-XXXXXX", one[64], two[64], three[64];
	const char *paths[] = {one, two, three};

	assert_non_null(mkdtemp(directory));
	snprintf(one, sizeof(one), "%s/one", directory);
	snprintf(two, sizeof(two), "%s/two", directory);
	snprintf(three, sizeof(three), "%s/three", directory);
	assert_null(ca_file__first(paths, 3));
	make_file(three);
	assert_ptr_equal(ca_file__first(paths, 3), three);
	assert_null(ca_file__first(paths, 2));
	make_file(two);
	assert_ptr_equal(ca_file__first(paths, 3), two);
	unlink(two);
	unlink(three);
	rmdir(directory);
}

/* What the user names is not looked for: that it is missing is for him to hear. */
TEST(a_ca_file_of_the_environment_need_not_exist)
{
	setenv("SSL_CERT_FILE", "/nonexistent/ca.pem", 1);
	assert_string_equal(ca_file__of_system(), "/nonexistent/ca.pem");
	setenv("SSL_CERT_FILE", "", 1);
	assert_true(!ca_file__of_system() || *ca_file__of_system() == '/');
	if (ca_file__of_system())
		assert_string_not_equal(ca_file__of_system(), "/nonexistent/ca.pem");
	unsetenv("SSL_CERT_FILE");
}
