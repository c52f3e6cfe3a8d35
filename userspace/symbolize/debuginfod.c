/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libdebuginfod is loaded when first needed, never linked: with libcurl and others it brings thirty
 * libraries, which a profiler without --debuginfod should not load as root. If it is missing, only
 * this feature is. Its cache, servers (DEBUGINFOD_URLS) and limits are the user's, as for other
 * tools. Without DEBUGINFOD_URLS the servers are those of /etc/debuginfod (which login shells get,
 * and sudo drops). A stalled server is abandoned sooner than by the library. Since elfutils 0.190
 * the library calls nothing before the first bytes of a file have come: until then, that limit or
 * the end of the process ends the request.
 */
#include "symbolize/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

/* The library writes its cache's settings with dprintf(), of which glibc 2.36 leaks the buffer. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#define BEGIN_FOREIGN_LEAKS() __lsan_disable()
#define END_FOREIGN_LEAKS()   __lsan_enable()
#else
#define BEGIN_FOREIGN_LEAKS()
#define END_FOREIGN_LEAKS()
#endif

#define LIBRARY		"libdebuginfod.so.1"
#define SERVER_FILES	"/etc/debuginfod/*.urls"
#define SERVER_FILE_MAX (64 << 10)
#define SERVERS_MAX	(256 << 10)

/* Seconds for a whole file, bytes. */
#define TOTAL_SECONDS "900"
#define BYTES_MAX     (8ULL << 30)
#define BUILD_ID_MAX  64

struct debuginfod_client; /* the library's */
typedef int (*client_progress_fn)(struct debuginfod_client *client, long done, long total);

struct library {
	void *handle;
	struct debuginfod_client *(*begin)(void);
	void (*end)(struct debuginfod_client *client);
	int (*find)(struct debuginfod_client *client, const unsigned char *build_id, int size,
		    char **path);
	int (*find_source)(struct debuginfod_client *client, const unsigned char *build_id,
			   int size, const char *source, char **path);
	void (*set_progress)(struct debuginfod_client *client, client_progress_fn progress);
	void (*set_user_data)(struct debuginfod_client *client, void *data);
};

/* The same in every loaded library: the callback gets nothing but the client. */
static void *(*client_user_data)(struct debuginfod_client *client);

/* A download that goes on. */
struct download {
	const struct library *library;
	debuginfod_progress_fn progress;
	void *context;
	uint64_t bytes_max;
	bool cancelled, too_big;
};

static void library__fini(struct library *l)
{
	if (l->handle)
		dlclose(l->handle);
}

#ifdef SYSPROF_STATIC /* a library of the host needs the host's C library */
static int library__init(struct library *l)
{
	(void)l;
	return -ENOPKG;
}
#else
static int library__init(struct library *l)
{
	/* NODELETE: libcurl cannot be unloaded */
	l->handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!l->handle)
		return -ENOPKG;
	*(void **)&l->begin = dlsym(l->handle, "debuginfod_begin");
	*(void **)&l->end = dlsym(l->handle, "debuginfod_end");
	*(void **)&l->find = dlsym(l->handle, "debuginfod_find_debuginfo");
	*(void **)&l->find_source = dlsym(l->handle, "debuginfod_find_source");
	*(void **)&l->set_progress = dlsym(l->handle, "debuginfod_set_progressfn");
	*(void **)&l->set_user_data = dlsym(l->handle, "debuginfod_set_user_data");
	*(void **)&client_user_data = dlsym(l->handle, "debuginfod_get_user_data");
	if (!l->begin || !l->end || !l->find || !l->find_source || !l->set_progress ||
	    !l->set_user_data || !client_user_data)
		return -ENOPKG;
	return 0;
}
#endif

/* Appends the words of a file. */
static int append_servers(char *servers, size_t size, const char *path)
{
	_cleanup_free_ char *data = NULL;
	size_t length = strlen(servers), data_size;
	int err = read_file_at(AT_FDCWD, path, SERVER_FILE_MAX, &data, &data_size);

	if (err)
		return err == -ENOMEM ? err : 0; /* not readable: as if it were not there */
	if (data_size + 2 > size - length)
		return 0;
	servers[length++] = ' ';
	for (const char *p = data; *p; p++)
		servers[length++] = *p == '\n' || *p == '\r' || *p == '\t' ? ' ' : *p;
	servers[length] = '\0';
	return 0;
}

/* DEBUGINFOD_URLS, from the system's files if the user has not set it. */
static int choose_servers(void)
{
	const char *chosen = getenv("DEBUGINFOD_URLS");
	_cleanup_free_ char *servers = NULL;
	glob_t files = {};
	int err = 0;

	if (chosen)
		return chosen[strspn(chosen, " ")] ? 0 : -EDESTADDRREQ;
	servers = calloc(1, SERVERS_MAX);
	if (!servers)
		return -ENOMEM;
	if (!glob(SERVER_FILES, 0, NULL, &files)) {
		for (size_t i = 0; i < files.gl_pathc && !err; i++)
			err = append_servers(servers, SERVERS_MAX, files.gl_pathv[i]);
		globfree(&files);
	}
	if (err)
		return err;
	if (!servers[strspn(servers, " ")])
		return -EDESTADDRREQ;
	return setenv("DEBUGINFOD_URLS", servers, 1) ? -errno : 0;
}

static uint64_t choose_limits(void)
{
	const char *bytes = getenv("DEBUGINFOD_MAXSIZE");
	unsigned long long limit = bytes ? strtoull(bytes, NULL, 10) : 0;
	char text[32];

	snprintf(text, sizeof(text), "%d", DEBUGINFOD_STALL_SECONDS);
	setenv("DEBUGINFOD_TIMEOUT", text, 0);
	snprintf(text, sizeof(text), "%llu", BYTES_MAX);
	setenv("DEBUGINFOD_MAXTIME", TOTAL_SECONDS, 0);
	setenv("DEBUGINFOD_MAXSIZE", text, 0);
	return limit ? limit : BYTES_MAX;
}

/* Servers need not say how much they send, and the library checks what they say only. */
static int continue_download(struct download *d, long done, long total)
{
	uint64_t so_far = done > 0 ? done : 0;

	if (so_far > d->bytes_max)
		d->too_big = true;
	else if (d->progress && d->progress(d->context, so_far, total > 0 ? total : 0))
		d->cancelled = true;
	return d->too_big || d->cancelled;
}

static int pass_progress(struct debuginfod_client *client, long done, long total)
{
	return continue_download(client_user_data(client), done, total);
}

static int download_file(struct download *d, struct debuginfod_client *client,
			 const uint8_t *build_id, size_t size, const char *source, int *fd)
{
	const struct library *l = d->library;
	int result;

	if (continue_download(d, 0, 0))
		return -ECANCELED;
	l->set_user_data(client, d);
	l->set_progress(client, pass_progress);
	BEGIN_FOREIGN_LEAKS();
	result = source ? l->find_source(client, build_id, size, source, NULL)
			: l->find(client, build_id, size, NULL);
	END_FOREIGN_LEAKS();
	if (d->progress && !d->cancelled)
		d->progress(d->context, 1, 1);
	if (result >= 0) {
		fcntl(result, F_SETFD, FD_CLOEXEC); /* which the library forgets */
		*fd = result;
		return 0;
	}
	if (d->cancelled)
		return -ECANCELED;
	if (d->too_big)
		return -EFBIG;
	return result == -ENOSYS ? -EDESTADDRREQ : result;
}

int debuginfod_fetch(const uint8_t *build_id, size_t size, const char *source,
		     debuginfod_progress_fn progress, void *context, int *fd)
{
	_cleanup_(library__fini) struct library library = {};
	struct download d = {.library = &library, .progress = progress, .context = context};
	struct debuginfod_client *client;
	int err;

	/* a size of 0 would mean that the build-id is text */
	if (!size || size > BUILD_ID_MAX)
		return -EINVAL;
	err = choose_servers() ?: library__init(&library);
	if (err)
		return err;
	d.bytes_max = choose_limits();
	client = library.begin();
	if (!client)
		return -ENOMEM;
	err = download_file(&d, client, build_id, size, source, fd);
	library.end(client);
	return err;
}

const char *debuginfod_strerror(int error)
{
	switch (error < 0 ? -error : error) {
	case ENOENT:
		return "no server has it";
	case ECANCELED:
		return "cancelled";
	case ENOPKG:
		return LIBRARY " is not installed";
	case EDESTADDRREQ:
		return "no server is configured: set DEBUGINFOD_URLS";
	case EFBIG:
		return "the file is larger than DEBUGINFOD_MAXSIZE";
	case ETIME:
		return "the server is too slow (DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME)";
	default:
		return strerror(error < 0 ? -error : error);
	}
}
