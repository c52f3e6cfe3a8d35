/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parent's side. It makes no system call that waits for a file system: owner and device of a module come from the
 * kernel's cache (AT_STATX_DONT_SYNC).
 *
 * A search that hangs is charged to the owner of the module. Root's own files are in tenants' mount namespaces too,
 * where a tenant may have mounted another file system over /usr/lib/debug: so a root directory on another mount than
 * ours is charged as well, and so is the module's device, unless it is ours.
 */
#include "symbolize/file_finder.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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
#include "base/minmax.h"
#include "base/quota.h"
#include "helpers/message.h"
#include "helpers/watch.h"

#define SECOND_NS   UINT64_C(1000000000)
#define MS_NS	    UINT64_C(1000000)
#define POLL_NS	    (100 * MS_NS)
#define HUNG_MAX    8
#define FOREIGN_MAX 4 /* hung roots of others, until none of them is looked into any more */
#define ROOT	    0
#define NO_OWNER    ((uid_t)-1)

static const struct finder_limits LIMITS = {
	.silence_ns = 5 * SECOND_NS,
};

struct file_owner {
	uid_t user;
	dev_t device;
	bool foreign;	/* its root directory is not ours … */
	uint64_t mount; /* … but on this mount */
};

struct file_finder {
	struct finder_limits limits;
	pid_t pid; /* 0: there is none */
	int socket;
	bool debuginfod;		  /* what it was started for */
	struct debug_file_counts *counts; /* shared with it */
	struct file_owner own;		  /* of our root directory */
	struct file_owner hung[HUNG_MAX];
	size_t hung_count, foreign_count;
	struct quota time, copies; /* of all but root's own files */
	uint64_t abandoned;
	struct outside_books *books; /* or NULL */
};

static void note_own_root(struct file_finder *f);

struct file_finder *file_finder__new(const struct finder_limits *limits)
{
	struct file_finder *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->limits = limits ? *limits : LIMITS;
	f->socket = -1;
	note_own_root(f);
	quota__init(&f->time, QUOTA_DEBUG_SEARCH);
	quota__init(&f->copies, QUOTA_DEBUG_COPIES);
	if (f->limits.user_ns) {
		f->time.user.limit = f->limits.user_ns;
		f->time.all.limit = f->limits.others_ns;
	}
	f->counts = mmap(NULL, sizeof(*f->counts), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (f->counts == MAP_FAILED) {
		free(f);
		return NULL;
	}
	crc_ledger__init(&f->counts->crcs);
	return f;
}

pid_t file_finder__child(const struct file_finder *f)
{
	return f->pid;
}

/* ---- the child ------------------------------------------------------------------------------- */

static void end_child(struct file_finder *f)
{
	struct rusage usage;
	int status;

	if (!f->pid)
		return;
	close(f->socket);
	if (end_process(f->pid, REAP_NS, &status, &usage))
		log_debug(LOG_SYMBOLS, "process %d, which opens files, does not end: left behind",
			  f->pid);
	f->pid = 0;
	f->socket = -1;
}

void file_finder__free(struct file_finder *f)
{
	if (!f)
		return;
	end_child(f);
	munmap(f->counts, sizeof(*f->counts));
	free(f);
}

static int start_child(struct file_finder *f, bool debuginfod)
{
	pid_t pid;

	if (f->pid && (f->debuginfod || !debuginfod))
		return 0;
	end_child(f);
	pid = finder_child__start(f->counts, debuginfod, &f->socket);
	if (pid < 0)
		return pid;
	f->pid = pid;
	f->debuginfod = debuginfod;
	return 0;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static bool look_at(int fd, struct statx *st)
{
	return fd >= 0 && !statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
				 STATX_UID | STATX_INO | STATX_MNT_ID, st);
}

static struct file_owner owner_of(const struct file_finder *f, int elf_fd, int root_fd,
				  uint32_t copied_for)
{
	struct file_owner o = {.user = elf_fd < 0 ? ROOT : NO_OWNER};
	struct statx st;

	if (copied_for) { /* the copy itself is ours */
		o.user = copied_for;
	} else if (look_at(elf_fd, &st)) {
		o.user = st.stx_uid;
		o.device = makedev(st.stx_dev_major, st.stx_dev_minor);
	}
	if (look_at(root_fd, &st)) {
		o.mount = st.stx_mnt_id;
		o.foreign = o.mount != f->own.mount;
	}
	return o;
}

static void note_own_root(struct file_finder *f)
{
	struct statx st;
	int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (look_at(fd, &st)) {
		f->own.device = makedev(st.stx_dev_major, st.stx_dev_minor);
		f->own.mount = st.stx_mnt_id;
	}
	if (fd >= 0)
		close(fd);
}

static bool is_suspect(const struct file_finder *f, const struct file_owner *o,
		       const struct file_owner *hung)
{
	if (o->user == hung->user && o->user != ROOT)
		return true;
	if (o->foreign && hung->foreign && o->mount == hung->mount)
		return true;
	return o->device && o->device == hung->device && o->device != f->own.device;
}

static bool has_hung(const struct file_finder *f, const struct file_owner *o)
{
	for (size_t i = 0; i < f->hung_count; i++)
		if (is_suspect(f, o, &f->hung[i]))
			return true;
	return f->hung_count == HUNG_MAX || (o->foreign && f->foreign_count >= FOREIGN_MAX);
}

static void note_hung(struct file_finder *f, const struct file_owner *o)
{
	f->abandoned++;
	f->foreign_count += o->foreign;
	if (f->hung_count < HUNG_MAX)
		f->hung[f->hung_count++] = *o;
}

static bool is_ours(const struct file_owner *o)
{
	return o->user == ROOT && !o->foreign;
}

static uint64_t copies_allowed(const struct file_finder *f, const struct file_owner *o)
{
	int64_t left = quota__left(&f->copies, o->user, 0);

	return is_ours(o) ? f->copies.user.limit : left > 0 ? (uint64_t)left : 0;
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
	if (is_ours(o) || question == FINDER_OPEN)
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

void file_finder__count_in(struct file_finder *f, struct outside_books *books)
{
	f->books = books;
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
	a->deadline = monotonic_ns() + a->silence;
	return pass_progress(a, progress.done, progress.total);
}

/* 1: the answer; 0: nothing, or progress; negative errno. */
static int listen_once(struct file_finder *f, struct pending_request *a)
{
	struct pollfd poll_fd = {.fd = f->socket, .events = POLLIN};
	uint64_t now = monotonic_ns();
	int got;

	if (now >= a->deadline)
		return -ETIMEDOUT;
	if (poll(&poll_fd, 1, (int)(min_u64(POLL_NS, a->deadline - now) / MS_NS) + 1) <= 0)
		return pass_progress(a, 0, 0);
	got = message__receive(f->socket, &a->buffer, MSG_DONTWAIT);
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
			const struct finder_request *request, int elf_fd, int root_fd)
{
	const int fds[FINDER_FDS] = {elf_fd, root_fd};

	return message__send(
		f->socket,
		&(struct message){.frame = {.service = question, .size = sizeof(*request)},
				  .bytes = request,
				  .fds = fds + !request->has_elf,
				  .fd_count = request->has_elf + request->has_root},
		0);
}

/* For the module `elf_fd`. 0: an answer has come, and a->buffer has its descriptors. The child is gone otherwise. */
static int request_answer(struct file_finder *f, enum finder_question question,
			  struct finder_request *request, int elf_fd, int root_fd,
			  struct pending_request *a)
{
	const struct file_owner owner = owner_of(f, elf_fd, root_fd, request->copied_for);
	enum outside_reason refusal = OUTSIDE_REASON_COUNT;
	uint64_t begin = monotonic_ns();
	int err;

	if (has_hung(f, &owner)) {
		note_left(f, &owner, OUTSIDE_BY_BANNED);
		return -ETIMEDOUT;
	}
	if (!is_ours(&owner))
		refusal = quota__refusal(&f->time, owner.user, 1, 0);
	if (refusal != OUTSIDE_REASON_COUNT) {
		note_left(f, &owner, refusal);
		return -EDQUOT;
	}
	request->copy_max = copies_allowed(f, &owner);
	f->counts->refusal = DEBUG_REFUSAL_NONE;
	err = start_child(f, request->debuginfod);
	if (err)
		return err;
	a->silence = f->limits.silence_ns;
	a->deadline = begin + a->silence;
	err = send_request(f, question, request, elf_fd, root_fd);
	if (!err)
		err = await_answer(f, a);
	if (!request->debuginfod && !is_ours(&owner)) /* a server may take its time */
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
	struct finder_request request = {
		.has_elf = r->elf_fd >= 0,
		.has_root = r->root_fd >= 0,
		.debuginfod = r->debuginfod,
		.package = r->package,
		.wants_progress = r->progress != NULL,
		.elf_base = r->elf_base,
		.copied_for = r->copied_for,
	};

	if (r->build_id_size <= sizeof(request.build_id) && r->build_id_size) {
		request.build_id_size = r->build_id_size;
		memcpy(request.build_id, r->build_id, r->build_id_size);
	}
	request.has_path = set_text(request.path, sizeof(request.path), r->path);
	request.has_release = set_text(request.release, sizeof(request.release), r->release);
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

int file_finder__find(struct file_finder *f, const struct debug_file_request *r,
		      struct debug_file_counts *counts, struct found_files *found)
{
	struct finder_request request = request_of(r);
	struct pending_request a = {
		.progress = r->progress, .context = r->context, .what = r->path};
	int err = request_answer(f, FINDER_FIND, &request, r->elf_fd, r->root_fd, &a);

	take_counts(f, counts, err);
	if (err)
		log_debug(LOG_SYMBOLS, "%s: no debug file sought: %s", r->path ? r->path : "",
			  strerror(-err));
	if (!err && !a.answer.err)
		*found = (struct found_files){
			.debug_fd = a.answer.has_debug ? take_next(&a.buffer) : -1,
			.alt_fd = a.answer.has_alt ? take_next(&a.buffer) : -1,
			.package_size = a.answer.package_size,
			.total_size = a.answer.total_size,
			.identity = a.answer.identity,
		};
	message__close_fds(a.buffer.fds, a.buffer.fd_count);
	return err ? err : a.answer.err;
}

int file_finder__open(struct file_finder *f, int elf_fd, int root_fd, const char *path,
		      uint64_t size_limit)
{
	struct finder_request request = {
		.has_root = root_fd >= 0,
		.size_limit = size_limit,
	};
	struct pending_request a = {.what = path};
	int err, fd;

	request.has_path = set_text(request.path, sizeof(request.path), path);
	if (!request.has_path)
		return -ENAMETOOLONG;
	err = request_answer(f, FINDER_OPEN, &request, elf_fd, root_fd, &a);
	if (!err)
		err = a.answer.err;
	if (!err && !a.buffer.fd_count)
		err = -EBADMSG;
	fd = err ? err : take_next(&a.buffer);
	message__close_fds(a.buffer.fds, a.buffer.fd_count);
	return fd;
}

uint64_t file_finder__abandoned(const struct file_finder *f)
{
	return f->abandoned;
}
