/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parent makes no system call that waits for a file system: a module's device comes from the
 * kernel's cache (AT_STATX_DONT_SYNC).
 *
 * A search that hangs is charged to the module's owner. Root's files are in tenants' mount
 * namespaces, too, where a tenant may have mounted a file system over /usr/lib/debug: so a root
 * directory on another mount than ours is charged as well. Searches for root's own modules, those
 * of root below our root directory, have no limit of time. One that hangs excludes root's own
 * modules on the device of its module, unless that is the device of our root directory. The hang of
 * a tenant says nothing about the device, because the tenant decides what hangs.
 *
 * The child answers one question at a time. It differs from its parent in privileges, signals and
 * descriptors. It has no sandbox, because it opens files by name; it reads their headers, section
 * names and CRCs.
 */
#include "symbolize/file_finder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"
#include "base/map.h"
#include "base/minmax.h"
#include "base/order.h"
#include "symbolize/debuginfod.h"
#include "symbolize/link_crc.h"
#include "tenants/child.h"
#include "tenants/file_system.h"
#include "tenants/helper_process.h"
#include "tenants/message.h"
#include "tenants/quota.h"
#include "symbolize/source_file.h"
#include "tenants/tenant_open.h"

#define SECOND_NS    UINT64_C(1000000000)
#define MS_NS	     UINT64_C(1000000)
#define POLL_NS	     (100 * MS_NS)
#define HUNG_MAX     8 /* of root's own modules, and of all others: then none is searched */
#define FOREIGN_MAX  4 /* hung roots of others, until none of them is looked into any more */
#define SUSPECTS     4
#define ROOT	     0
#define VALID_NS     (60 * SECOND_NS)
#define RESULTS_MAX  1024

#define RELEASE_SIZE 128
#define ID_MAX	     64
#define FDS	     2

/* The service of a request. */
enum finder_question { FINDER_FIND, FINDER_OPEN, FINDER_SOURCE };

/* With descriptors: the module and the root directory, if present, in this order. */
struct finder_request {
	struct debug_file_request of; /* its pointers and descriptors say what there is */
	uint64_t size_limit;
	uint64_t copy_max; /* bytes of copies in memory (tenants/file_system.h) */
	uint32_t reader;   /* of a source */
	uint8_t build_id[ID_MAX];
	char release[RELEASE_SIZE];
	char path[PATH_MAX];
};

/* With descriptors: the debug file and the dwz file, or the one that was opened. */
struct finder_answer {
	struct found_files found; /* its descriptors say which there are */
	int err;		  /* 0 or negative */
	bool is_fetched;	  /* a source that a server has sent */
	uint8_t copies_left;	  /* files that have more data than the copies may */
	uint64_t copied;	  /* bytes */
};

/* MESSAGE_PROGRESS */
struct finder_progress {
	uint64_t done, total;
};

/* What a hang is charged to, and how many hangs exclude it. */
enum suspect_kind { TENANT, MOUNT, DEVICE, ALL_TENANTS, ALL_FOREIGN, ALL_OURS };

struct suspect {
	uint64_t key;
	unsigned int hangs;
};

struct file_owner {
	uid_t user;
	bool is_ours;
	struct suspect suspects[SUSPECTS];
	size_t count;
};

/* What a search depends on: the module, its process's root directory, its path and build-id. */
struct search_key {
	uint64_t device, inode, size, changed, base, root_mount, root_inode, names;
};

struct search_result {
	struct search_key key;
	struct found_files found; /* without descriptors */
	uint64_t since;		  /* CLOCK_MONOTONIC ns */
};

MAP_TYPE(result_map, struct search_result);
MAP_FUNCTIONS_BY_BYTES(result_map, struct search_result, struct search_key, key);

struct file_finder {
	struct finder_limits limits;
	struct helper_process child;
	enum helper_class_id class;
	bool early;			  /* it stays when a run ends */
	struct debug_file_counts *counts; /* shared with it */
	uint64_t own_device, own_mount;	  /* of our root directory */
	struct quota hangs;		  /* of suspects */
	struct quota time, copies;	  /* of all but root's own files */
	uint64_t abandoned, requests;
	struct outside_books *books; /* or NULL */
	struct result_map results;
};

/* ---- in the child ---------------------------------------------------------------------------- */

/* If the parent does not wait, it kills this process. */
static int report_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
	const struct finder_progress progress = {.done = done, .total = total};

	(void)context;
	(void)what;
	return message__send(
		CHILD_SOCKET,
		&(struct message){.frame = {.flags = MESSAGE_PROGRESS, .size = sizeof(progress)},
				  .bytes = &progress},
		0);
}

static uint64_t size_of(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static int open_root(void)
{
	return open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* The package has its place beside the module. */
static uint64_t package_size(const struct debug_file_request *r)
{
	_cleanup_close_ int host = r->root_fd < 0 ? open_root() : -1, fd = -1;
	char path[PATH_MAX + 8];
	struct stat st;

	snprintf(path, sizeof(path), "%s.dwp", r->path);
	fd = tenant_open(r->root_fd < 0 ? host : r->root_fd, path, 0, UINT64_MAX, &st);
	return fd >= 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

static int find_files(const struct debug_file_request *r, struct debug_file_counts *counts,
		      struct found_files *found)
{
	int err = debug_file_find(r, &found->debug_fd, &found->alt_fd, counts);

	found->total_size = size_of(r->elf_fd) + size_of(found->debug_fd) + size_of(found->alt_fd);
	found->identity = debug_file_identity(r->elf_fd, r->elf_base, found->debug_fd,
					      found->alt_fd);
	if (r->package && r->path)
		found->package_size = package_size(r);
	return err;
}

static int open_below(int root_fd, const struct finder_request *r)
{
	struct stat st;

	return root_fd < 0 ? -ENOENT : tenant_open(root_fd, r->path, 0, r->size_limit, &st);
}

/* In the process's root, then in our own. */
static int open_named(const struct finder_request *r, int root_fd)
{
	int fd = open_below(root_fd, r);
	_cleanup_close_ int own = fd < 0 ? open_root() : -1;

	return fd >= 0 ? fd : open_below(own, r);
}

/* In the process's root; without one in ours. If it is not there a server may have it. */
static int open_source(const struct finder_request *request, const struct debug_file_request *r,
		       struct debug_file_counts *counts, bool *is_fetched)
{
	_cleanup_close_ int own = r->root_fd < 0 ? open_root() : -1;
	int fd = source_file__open(r->root_fd < 0 ? own : r->root_fd, r->path, request->reader,
				   request->size_limit);

	if (fd != -ENOENT && fd != -ENOTDIR)
		return fd;
	fd = debug_file_fetch_source(r, counts);
	*is_fetched = fd >= 0;
	if (fd < 0)
		return -ENOENT;
	if (size_of(fd) <= request->size_limit)
		return fd;
	close(fd);
	return -EFBIG;
}

/* On a file system that a user has mounted, owners and modes prove nothing. */
static void note_writers(int fd, struct debug_writers *writers)
{
	struct stat st;

	if (fstat(fd, &st) || !file_system__is_administrators(fd, getpid()))
		writers->is_several = true;
	else
		debug_writers__add_file(writers, &st);
}

/* The parent's descriptor can never block, even in close(). A file too big to copy is missing. */
static void keep_safe(int *fd, uint64_t copy_max, struct finder_answer *answer)
{
	uint64_t copied = 0;
	int err = 0;

	if (*fd >= 0) {
		note_writers(*fd, &answer->found.writers);
		err = file_system__make_safe(fd, getpid(), copy_max - answer->copied, &copied);
	}

	answer->copied += copied;
	answer->copies_left += err == -EFBIG;
	if (!err)
		return;
	close(*fd);
	*fd = -1;
}

static int answer_question(enum finder_question question, const struct finder_request *request,
			   const struct debug_file_request *r, struct debug_file_counts *counts)
{
	struct finder_answer answer = {.found = {.debug_fd = -1, .alt_fd = -1}};
	int *debug = &answer.found.debug_fd, *alt = &answer.found.alt_fd, fds[FDS], err;

	if (question != FINDER_FIND) {
		*debug = question == FINDER_OPEN
				 ? open_named(request, r->root_fd)
				 : open_source(request, r, counts, &answer.is_fetched);
		answer.err = *debug < 0 ? *debug : 0;
	} else {
		answer.err = find_files(r, counts, &answer.found);
	}
	keep_safe(debug, request->copy_max, &answer);
	keep_safe(alt, request->copy_max, &answer);
	if (question != FINDER_FIND && !answer.err && *debug < 0)
		answer.err = -EFBIG;
	fds[0] = *debug;
	fds[1] = *alt;
	err = message__send(
		CHILD_SOCKET,
		&(struct message){.frame = {.flags = MESSAGE_DONE, .size = sizeof(answer)},
				  .bytes = &answer,
				  .fds = fds + (*debug < 0),
				  .fd_count = (*debug >= 0) + (*alt >= 0)},
		0);
	message__close_fds(fds, FDS);
	return err;
}

static int run_finder(const struct child_self *self)
{
	static struct message_buffer buffer;
	const struct finder_request *request = (const void *)buffer.bytes;
	int err = 0;

	while (!err && message__receive(CHILD_SOCKET, &buffer, 0) == 1) {
		struct debug_file_request r = request->of;

		r.elf_fd = r.elf_fd < 0 ? -1 : buffer.fds[0];
		r.root_fd = r.root_fd < 0 ? -1 : buffer.fds[r.elf_fd >= 0];
		r.path = r.path ? request->path : NULL;
		r.release = r.release ? request->release : NULL;
		r.build_id = request->build_id;
		r.progress = report_progress;
		err = answer_question(buffer.frame.service, request, &r,
				      *(struct debug_file_counts *const *)self->data);
		message__close_fds(buffer.fds, buffer.fd_count);
	}
	return EXIT_FAILURE;
}

/* ---- the finder ------------------------------------------------------------------------------ */

static bool look_at(int fd, struct statx *st)
{
	const unsigned int wanted = STATX_INO | STATX_SIZE | STATX_CTIME | STATX_MNT_ID;

	return fd >= 0 && !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, wanted, st);
}

static void note_own_root(struct file_finder *f)
{
	_cleanup_close_ int fd = open_root();
	struct statx st;

	if (look_at(fd, &st)) {
		f->own_device = makedev(st.stx_dev_major, st.stx_dev_minor);
		f->own_mount = st.stx_mnt_id;
	}
}

struct file_finder *file_finder__new(const struct finder_limits *limits)
{
	struct file_finder *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->limits = limits ? *limits : (struct finder_limits){};
	f->child = HELPER_PROCESS_NONE;
	note_own_root(f);
	f->counts = mmap(NULL, sizeof(*f->counts), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->counts == MAP_FAILED) {
		free(f);
		return NULL;
	}
	file_finder__begin(f, NULL);
	return f;
}

void file_finder__begin(struct file_finder *f, struct outside_books *books)
{
	f->books = books;
	f->hangs = (struct quota){};
	f->abandoned = f->requests = 0;
	quota__init(&f->time, QUOTA_DEBUG_SEARCH);
	quota__init(&f->copies, QUOTA_DEBUG_COPIES);
	if (f->limits.user_ns) {
		f->time.user.limit = f->limits.user_ns;
		f->time.all.limit = f->limits.others_ns;
	}
	*f->counts = (struct debug_file_counts){};
	crc_ledger__init(&f->counts->crcs);
}

pid_t file_finder__child(const struct file_finder *f)
{
	return f->child.pid;
}

/* ---- the child ------------------------------------------------------------------------------- */

static void end_child(struct file_finder *f)
{
	if (f->child.pid)
		helper_process__end(&f->child, REAP_NS, NULL, NULL);
	f->early = false;
}

void file_finder__free(struct file_finder *f)
{
	if (!f)
		return;
	end_child(f);
	result_map__fini(&f->results);
	munmap(f->counts, sizeof(*f->counts));
	free(f);
}

static int start_child(struct file_finder *f, bool debuginfod)
{
	const struct child_plan plan = {
		.class = debuginfod ? HELPER_DOWNLOADER : HELPER_FINDER,
		.run = run_finder,
		.type = SOCK_SEQPACKET,
		.data = &f->counts,
	};

	if (f->child.pid && (f->class == plan.class || !debuginfod))
		return 0;
	end_child(f);
	f->class = plan.class;
	return helper_process__start(&f->child, NULL, &plan);
}

int file_finder__start(struct file_finder *f)
{
	int err = start_child(f, false);

	f->early = !err;
	return err;
}

void file_finder__end(struct file_finder *f)
{
	if (!f->early)
		end_child(f);
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void suspect(struct file_owner *o, enum suspect_kind kind, uint64_t number,
		    unsigned int hangs)
{
	o->suspects[o->count++] = (struct suspect){(uint64_t)kind << 56 | number, hangs};
}

static struct file_owner owner_of(const struct file_finder *f, const struct debug_file_request *r)
{
	struct file_owner o = {.user = r->user};
	struct statx st;
	uint64_t device = look_at(r->elf_fd, &st) ? makedev(st.stx_dev_major, st.stx_dev_minor) : 0;
	bool foreign = look_at(r->root_fd, &st) && st.stx_mnt_id != f->own_mount;
	unsigned int hangs = helper_classes[HELPER_FINDER].hangs;

	o.is_ours = o.user == ROOT && !foreign;
	suspect(&o, o.is_ours ? ALL_OURS : ALL_TENANTS, 0, HUNG_MAX);
	if (o.is_ours && device && device != f->own_device)
		suspect(&o, DEVICE, device, hangs);
	if (o.user != ROOT)
		suspect(&o, TENANT, o.user, hangs);
	if (foreign) {
		suspect(&o, MOUNT, st.stx_mnt_id, hangs);
		suspect(&o, ALL_FOREIGN, 0, FOREIGN_MAX);
	}
	return o;
}

static bool has_hung(const struct file_finder *f, const struct file_owner *o)
{
	return any_of(o->suspects, o->count, suspect,
		      quota__used(&f->hangs, suspect->key) >= suspect->hangs);
}

static void note_hung(struct file_finder *f, const struct file_owner *o)
{
	f->abandoned++;
	for (size_t i = 0; i < o->count; i++)
		quota__take(&f->hangs, o->suspects[i].key, 1, 0);
}

static uint64_t copies_allowed(const struct file_finder *f, const struct file_owner *o)
{
	int64_t left = quota__left(&f->copies, o->user, 0);

	return o->is_ours ? f->copies.user.limit : left > 0 ? (uint64_t)left : 0;
}

static void note_copies(struct file_finder *f, const struct file_owner *o,
			enum finder_question question, const struct finder_request *request,
			const struct finder_answer *answer)
{
	if (answer->copies_left)
		outside_books__add(f->books, o->user, OUTSIDE_FILE_COPIES,
				   request->copy_max < f->copies.user.limit ? OUTSIDE_BY_USER
									    : OUTSIDE_BY_ITSELF,
				   answer->copies_left);
	/* what is opened for a child is closed with it */
	if (o->is_ours || question != FINDER_FIND)
		return;
	quota__take(&f->copies, o->user, min_u64(answer->copied, f->copies.user.limit), 0);
}

/* Searches that were not made, or not to their end. */
static void note_left(struct file_finder *f, const struct file_owner *o, enum outside_reason reason)
{
	outside_books__add(f->books, o->user, OUTSIDE_DEBUG_FILES, reason, 1);
}

static enum outside_reason reason_of_refusal(enum debug_refusal refusal)
{
	return refusal == DEBUG_REFUSAL_BUDGET ? OUTSIDE_BY_USER : OUTSIDE_BY_ITSELF;
}

/* ---- requests -------------------------------------------------------------------------------- */

struct pending_request {
	int (*progress)(void *context, const char *what, uint64_t done, uint64_t total);
	void *context;
	const char *what;
	uint64_t deadline, silence;
	struct message_buffer buffer; /* its descriptors are the answer's */
	struct finder_answer answer;
};

static int pass_progress(const struct pending_request *a, uint64_t done, uint64_t total)
{
	return a->progress && a->progress(a->context, a->what, done, total) ? -ECANCELED : 0;
}

static int take_message(struct pending_request *a)
{
	const struct message_frame *frame = &a->buffer.frame;
	struct finder_progress progress;

	if (frame->flags == MESSAGE_DONE && frame->size == sizeof(a->answer)) {
		memcpy(&a->answer, a->buffer.bytes, sizeof(a->answer));
		return 1;
	}
	message__close_fds(a->buffer.fds, a->buffer.fd_count);
	a->buffer.fd_count = 0;
	if (frame->flags != MESSAGE_PROGRESS || frame->size != sizeof(progress))
		return -EBADMSG;
	memcpy(&progress, a->buffer.bytes, sizeof(progress));
	a->deadline = monotonic_ns() +
		      (progress.done || progress.total ? a->silence : DEBUGINFOD_FIRST_BYTES_NS);
	return pass_progress(a, progress.done, progress.total);
}

/* 1: the answer; 0: nothing, or progress; negative errno. */
static int listen_once(struct file_finder *f, struct pending_request *a)
{
	struct pollfd poll_fd = {.fd = f->child.socket, .events = POLLIN};
	uint64_t now = monotonic_ns();
	int got;

	if (now >= a->deadline)
		return -ETIMEDOUT;
	if (poll(&poll_fd, 1, (int)(min_u64(POLL_NS, a->deadline - now) / MS_NS) + 1) <= 0)
		return pass_progress(a, 0, 0);
	got = message__receive(f->child.socket, &a->buffer, MSG_DONTWAIT);
	if (got == -EAGAIN)
		return 0;
	return got > 0 ? take_message(a) : got ? got : -EPIPE;
}

static int await_answer(struct file_finder *f, struct pending_request *a)
{
	int result = 0;

	while (!result)
		result = listen_once(f, a);
	return result < 0 ? result : 0;
}

static int send_request(struct file_finder *f, enum finder_question question,
			const struct finder_request *request)
{
	const int fds[FDS] = {request->of.elf_fd, request->of.root_fd};

	return message__send(
		f->child.socket,
		&(struct message){.frame = {.service = question, .size = sizeof(*request)},
				  .bytes = request,
				  .fds = fds + (fds[0] < 0),
				  .fd_count = (fds[0] >= 0) + (fds[1] >= 0)},
		0);
}

/* For the module of `r`. 0: a->buffer has the answer's descriptors. Else the child has ended. */
static int request_answer(struct file_finder *f, enum finder_question question,
			  const struct debug_file_request *r, struct finder_request *request,
			  struct pending_request *a)
{
	const struct file_owner owner = owner_of(f, r);
	enum outside_reason refusal = OUTSIDE_REASON_COUNT;
	uint64_t begin = monotonic_ns();
	int err;

	if (has_hung(f, &owner)) {
		note_left(f, &owner, OUTSIDE_BY_BANNED);
		return -ETIMEDOUT;
	}
	if (!owner.is_ours)
		refusal = quota__refusal(&f->time, owner.user, 1, 0);
	if (refusal != OUTSIDE_REASON_COUNT) {
		note_left(f, &owner, refusal);
		return -EDQUOT;
	}
	request->copy_max = copies_allowed(f, &owner);
	f->counts->refusal = DEBUG_REFUSAL_NONE;
	err = start_child(f, request->of.debuginfod);
	if (err)
		return err;
	a->silence = f->limits.silence_ns ?: helper_classes[f->class].silence;
	a->deadline = begin + a->silence;
	f->requests++;
	err = send_request(f, question, request) ?: await_answer(f, a);
	if (!request->of.debuginfod && !owner.is_ours) /* a server may take its time */
		quota__take(&f->time, owner.user, monotonic_ns() - begin, 0);
	if (err == -ETIMEDOUT) {
		note_hung(f, &owner);
		note_left(f, &owner, OUTSIDE_BY_NO_ANSWER);
	}
	if (err) {
		end_child(f);
		return err;
	}
	note_copies(f, &owner, question, request, &a->answer);
	if (f->counts->refusal == DEBUG_REFUSAL_BUDGET ||
	    f->counts->refusal == DEBUG_REFUSAL_TOO_LARGE)
		note_left(f, &owner, reason_of_refusal(f->counts->refusal));
	return 0;
}

/* False: there is no text, or it does not fit. */
static bool set_text(char *to, size_t size, const char *text)
{
	bool fits = text && strlen(text) < size;

	if (fits)
		memcpy(to, text, strlen(text) + 1);
	return fits;
}

static struct finder_request request_of(const struct debug_file_request *r)
{
	struct finder_request request = {.of = *r};

	if (r->build_id_size > sizeof(request.build_id))
		request.of.build_id_size = 0;
	else if (r->build_id_size)
		memcpy(request.build_id, r->build_id, r->build_id_size);
	if (!set_text(request.path, sizeof(request.path), r->path))
		request.of.path = NULL;
	if (!set_text(request.release, sizeof(request.release), r->release))
		request.of.release = NULL;
	return request;
}

/* The counts of the child, at any time; of one that was killed as well. */
static void take_counts(const struct file_finder *f, struct debug_file_counts *counts, int err)
{
	*counts = *f->counts;
	if (err == -ETIMEDOUT)
		counts->refusal = DEBUG_REFUSAL_HUNG;
	else if (err == -EDQUOT)
		counts->refusal = DEBUG_REFUSAL_BUDGET;
	else if (err)
		counts->refusal = DEBUG_REFUSAL_NONE;
	if ((unsigned int)counts->refusal >= DEBUG_REFUSAL_COUNT)
		counts->refusal = DEBUG_REFUSAL_NONE;
}

/* The next descriptor of the answer. */
static int take_next(struct message_buffer *buffer)
{
	for (size_t i = 0; i < buffer->fd_count; i++)
		if (buffer->fds[i] >= 0)
			return steal_fd(buffer->fds[i]);
	return -1;
}

/* ---- results --------------------------------------------------------------------------------- */

static struct search_key search_key(const struct debug_file_request *r)
{
	struct search_key key = {.base = r->elf_base};
	struct statx st;

	if (look_at(r->elf_fd, &st)) {
		key.device = makedev(st.stx_dev_major, st.stx_dev_minor);
		key.inode = st.stx_ino;
		key.size = st.stx_size;
		key.changed = (uint64_t)st.stx_ctime.tv_sec * SECOND_NS + st.stx_ctime.tv_nsec;
	}
	if (look_at(r->root_fd, &st)) {
		key.root_mount = st.stx_mnt_id;
		key.root_inode = st.stx_ino;
	}
	key.names = hash_bytes(r->build_id, r->build_id_size);
	if (r->path)
		key.names += hash_string(r->path);
	return key;
}

static void keep_result(struct file_finder *f, const struct debug_file_request *r,
			const struct found_files *found)
{
	struct search_result new = {.key = search_key(r)}, *result;

	if (f->results.count >= RESULTS_MAX)
		result_map__clear(&f->results);
	result = result_map__need(&f->results, &new, NULL);
	if (!result)
		return;
	result->since = monotonic_ns();
	result->found = *found;
	result->found.debug_fd = result->found.alt_fd = -1;
}

bool file_finder__recall(const struct file_finder *f, const struct debug_file_request *r,
			 struct found_files *found)
{
	const struct search_key key = search_key(r);
	const struct search_result *result = result_map__find(&f->results, &key);

	if (!result || r->debuginfod || monotonic_ns() - result->since > VALID_NS)
		return false;
	*found = result->found;
	return true;
}

int file_finder__find(struct file_finder *f, const struct debug_file_request *r,
		      struct debug_file_counts *counts, struct found_files *found)
{
	struct finder_request request = request_of(r);
	struct pending_request a = {
		.progress = r->progress, .context = r->context, .what = r->path};
	int err = request_answer(f, FINDER_FIND, r, &request, &a);

	take_counts(f, counts, err);
	if (err)
		log_debug(LOG_SYMBOLS, "%s: no debug file sought: %s", r->path ? r->path : "",
			  strerror(-err));
	if (!err && !a.answer.err) {
		*found = a.answer.found;
		found->debug_fd = found->debug_fd < 0 ? -1 : take_next(&a.buffer);
		found->alt_fd = found->alt_fd < 0 ? -1 : take_next(&a.buffer);
		if (counts->refusal == DEBUG_REFUSAL_NONE)
			keep_result(f, r, found);
	}
	message__close_fds(a.buffer.fds, a.buffer.fd_count);
	return err ? err : a.answer.err;
}

/* `a`: its answer has what is known of the file. */
static int open_file(struct file_finder *f, enum finder_question question,
		     const struct debug_file_request *r, uint32_t reader, uint64_t size_limit,
		     struct pending_request *a)
{
	struct finder_request request = request_of(r);
	int err, fd;

	if (!request.of.path)
		return -ENAMETOOLONG;
	request.of.elf_fd = -1;
	request.of.debuginfod &= question == FINDER_SOURCE;
	request.size_limit = size_limit;
	request.reader = reader;
	*a = (struct pending_request){
		.progress = request.of.debuginfod ? r->progress : NULL,
		.context = r->context,
		.what = r->path,
	};
	err = request_answer(f, question, r, &request, a) ?: a->answer.err;
	if (!err && !a->buffer.fd_count)
		err = -EBADMSG;
	fd = err ? err : take_next(&a->buffer);
	message__close_fds(a->buffer.fds, a->buffer.fd_count);
	return fd;
}

int file_finder__open(struct file_finder *f, const struct debug_file_request *r,
		      uint64_t size_limit, struct debug_writers *writers)
{
	struct pending_request a;
	int fd = open_file(f, FINDER_OPEN, r, ROOT, size_limit, &a);

	if (fd >= 0 && writers)
		debug_writers__add_all(writers, &a.answer.found.writers);
	return fd;
}

int file_finder__open_source(struct file_finder *f, const struct debug_file_request *r,
			     uint32_t reader, uint64_t size_limit, bool *is_fetched)
{
	struct pending_request a;
	int fd = open_file(f, FINDER_SOURCE, r, reader, size_limit, &a);

	*is_fetched = fd >= 0 && a.answer.is_fetched;
	return fd;
}

uint64_t file_finder__abandoned(const struct file_finder *f)
{
	return f->abandoned;
}

uint64_t file_finder__requests(const struct file_finder *f)
{
	return f->requests;
}
