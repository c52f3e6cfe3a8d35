/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit/follow/jit_follower.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/vec.h"
#include "jit/follow/jit_file.h"
#include "jit/follow/jit_owner.h"
#include "tenants/classes.h"

#define FILES_MAX      1024u /* open files */
#define WAITING_MAX    4096u
#define SLOW_WAIT      1000000000ull /* ns of pause for a file without CPU time left */
#define PARSING_A_BYTE 5	     /* ns */
#define LOOK_INTERVAL  1000000000ull /* ns between searches for new and replaced files */
#define LOOK_FIRST     (LOOK_INTERVAL / 64)
#define POLL_INTERVAL  50000000ull /* ns: of files without signs */
#define GLANCE_SHARE   64	   /* of the time since the last line was written */
#define GLANCE_MIN     5000000ull  /* ns */
#define GLANCE_FILES   8	   /* ... for so many files; in proportion for more */
#define IDENTITY_TRIES 2
#define SIGNS_AT_ONCE  16
#define SIGNS_SIZE     16384

struct followed {
	struct jit_file file;
	int watch; /* -1: none */
	struct jit_signs signs;
	bool more;	   /* there is more to read */
	uint64_t grown_at; /* last time that something was read */
	uint64_t glance_at;
	struct meter listing, reading; /* QUOTA_JIT_LISTING, QUOTA_JIT_READING */
	uint64_t slow_until;	       /* its CPU time is used up until then; 0: it is not */
	uint64_t poll_at;	       /* 0: it has a watch */
};

/* A process without a map so far. */
struct waiting {
	struct jit_owner owner;
	uint64_t next, interval;
};

struct jit_follower {
	struct jit_follower_output output;
	int inotify; /* -1: files are polled (a user can have no more than 128 instances) */
	VEC(struct followed) files;
	VEC(struct waiting) waiting;
	const struct quota *hangs; /* of users whose files are not opened; the caller's */
	struct quota *bytes;	   /* the caller's */
	struct quota file_counts;  /* files and waiting processes */
	uint32_t last_number;
	uint64_t last_read; /* of any file */
	uint64_t next_look;
	int err;
};

/* ---- life ------------------------------------------------------------------------------------ */

int jit_follower__new(const struct jit_follower_output *output, struct quota *bytes,
		      const struct quota *hangs, struct jit_follower **follower)
{
	struct jit_follower *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->output = *output;
	r->bytes = bytes;
	r->hangs = hangs;
	quota__init(&r->file_counts, QUOTA_JIT_FILES);
	r->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	*follower = r;
	return 0;
}

void jit_follower__free(struct jit_follower *r)
{
	if (!r)
		return;
	vec_free_with(&r->files, file, jit_file__close(&file->file));
	vec_free(&r->waiting);
	cleanup_close(&r->inotify);
	free(r);
}

int jit_follower__signs_fd(const struct jit_follower *r)
{
	return r->inotify;
}

static bool is_denied(const struct jit_follower *r, uint32_t user)
{
	return quota__used(r->hangs, user) >= helper_classes[HELPER_WATCHER].hangs;
}

/* Why files of this user must not be read; FOLLOWED: they may. */
static enum jit_file_state judge_user(const struct jit_follower *r, uint32_t user)
{
	if (is_denied(r, user))
		return JIT_FILE_STATE_HUNG;
	switch (quota__refusal(r->bytes, user, 1, monotonic_ns())) {
	case OUTSIDE_BY_USER:
		return JIT_FILE_STATE_USER_LIMIT;
	case OUTSIDE_BY_ALL:
		return JIT_FILE_STATE_LIMIT;
	default:
		return JIT_FILE_STATE_FOLLOWED;
	}
}

/* False: too many files of this user. */
static bool count_file(struct jit_follower *r, uint32_t user)
{
	if (quota__refusal(&r->file_counts, user, 1, 0) != OUTSIDE_REASON_COUNT)
		return false;
	quota__take(&r->file_counts, user, 1, 0);
	return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void touch(const struct jit_follower *r, const struct jit_owner *owner)
{
	r->output.touch(r->output.context, owner);
}

static void watch_file(struct jit_follower *r, struct followed *f)
{
	uint64_t now = monotonic_ns();
	char path[64];

	if (f->file.fd < 0)
		return;
	if (f->file.kind == JIT_FILE_DUMP) { /* it has exact times of its own */
		f->poll_at = now + LOOK_INTERVAL;
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f->file.fd);
	f->watch = inotify_add_watch(r->inotify, path, IN_MODIFY | IN_OPEN | IN_CLOSE_WRITE);
	f->poll_at = f->watch < 0 ? now + POLL_INTERVAL : 0;
}

static void unwatch_file(struct jit_follower *r, struct followed *f)
{
	if (f->watch >= 0)
		inotify_rm_watch(r->inotify, f->watch);
	f->watch = -1;
}

static void forget_file(struct jit_follower *r, size_t i)
{
	quota__give(&r->file_counts, r->files.data[i].file.owner.user, 1);
	unwatch_file(r, &r->files.data[i]);
	jit_file__close(&r->files.data[i].file);
	r->files.data[i] = r->files.data[--r->files.count];
}

/* Charges the later parsing of `bytes`, too. A file without CPU time left pauses for a second. */
static void account_reading(struct jit_follower *r, struct followed *f, uint64_t used,
			    uint64_t bytes)
{
	const struct quota_limit *limit =
		&quota_row(f->file.listed ? QUOTA_JIT_READING : QUOTA_JIT_LISTING)->each;
	struct meter *meter = f->file.listed ? &f->reading : &f->listing;
	uint64_t now = monotonic_ns();

	meter__take(meter, limit, used + bytes * PARSING_A_BYTE, now);
	if (meter__left(meter, limit, now) > 0 || f->slow_until)
		return;
	f->slow_until = now + SLOW_WAIT;
	unwatch_file(r, f);
}

/* After a long pause the exact time of the next write hardly matters. */
static void plan_glance(const struct jit_follower *r, struct followed *f)
{
	uint64_t now = monotonic_ns(), interval = (now - f->grown_at) / GLANCE_SHARE;
	uint64_t least = GLANCE_MIN * (1 + r->files.count / GLANCE_FILES);

	f->glance_at = now + min_u64(max_u64(interval, least), LOOK_INTERVAL);
}

/* 0: a glance would not help. */
static uint64_t glances_at(const struct followed *f)
{
	return f->file.kind == JIT_FILE_MAP && f->file.state == JIT_FILE_STATE_FOLLOWED &&
			       f->file.at_end && !f->slow_until && !f->poll_at
		       ? f->glance_at
		       : 0;
}

static bool is_full(const struct jit_follower *r, bool settle)
{
	return r->output.is_full(r->output.context, settle);
}

static void give_up_file(struct jit_follower *r, struct followed *f, enum jit_file_state why)
{
	int err = jit_file__give_up(&f->file, why);

	f->more = false;
	r->err = err ? err : r->err;
}

/* Gives the file up if its user is over a limit. */
static void charge_file(struct jit_follower *r, struct followed *f, uint64_t bytes)
{
	uint32_t user = f->file.owner.user;
	enum jit_file_state verdict;

	quota__take(r->bytes, user, bytes, monotonic_ns());
	verdict = judge_user(r, user);
	if (verdict == JIT_FILE_STATE_FOLLOWED || f->file.state != JIT_FILE_STATE_FOLLOWED)
		return;
	give_up_file(r, f, verdict);
	unwatch_file(r, f);
	jit_file__close(&f->file);
}

static void read_file(struct jit_follower *r, struct followed *f, bool settle)
{
	uint64_t began = thread_cpu_ns(), reported = f->file.reported;
	int more;

	if (f->slow_until) { /* watch it again */
		f->slow_until = 0;
		watch_file(r, f);
		f->signs.opened = true;
	}
	if (f->watch < 0) {
		f->poll_at = monotonic_ns() +
			     (f->file.kind == JIT_FILE_DUMP ? LOOK_INTERVAL : POLL_INTERVAL);
		f->signs = (struct jit_signs){.opened = true, .modified = true};
	}
	more = jit_file__read(&f->file, &f->signs, settle);
	if (f->file.reported != reported || !f->grown_at)
		f->grown_at = monotonic_ns();
	plan_glance(r, f);
	f->signs = (struct jit_signs){};
	f->more = more > 0;
	if (more < 0)
		r->err = more;
	charge_file(r, f, f->file.reported - reported);
	/* parsing of what the file had when it was found is not charged */
	reported = max_u64(reported, f->file.found_size);
	account_reading(r, f, thread_cpu_ns() - began,
			f->file.reported > reported ? f->file.reported - reported : 0);
}

static bool is_due(const struct followed *f, uint64_t now)
{
	uint64_t wakes = jit_file__wakes_at(&f->file);

	if (f->file.fd < 0)
		return false;
	if (f->slow_until)
		return now >= f->slow_until;
	if (f->poll_at && now >= f->poll_at)
		return true;
	return f->signs.modified || f->signs.closed || f->signs.opened || f->more ||
	       (wakes && now >= wakes);
}

static struct followed *find_file(const struct jit_follower *r, pid_t pid, enum jit_file_kind kind)
{
	return find_first(r->files.data, r->files.count, f,
			  f->file.owner.pid == pid && f->file.kind == kind);
}

/*
 * Processes in different pid namespaces can have the same pid and share /tmp. The file belongs to
 * the one that has it open, to neither if both have (the owner of its lines is unknown), so a file
 * with many names is read once. Of two users' processes (one runs a setuid program) it belongs to
 * the file owner's: searching the other's open files can hang, and would be charged to the wrong
 * user. FOLLOWED: it is the owner's.
 */
static enum jit_file_state judge_owner(const struct jit_owner *owner, const struct jit_owner *other,
				       const struct stat *st)
{
	int open;

	if (owner->user != other->user)
		return owner->uid != st->st_uid || other->uid == st->st_uid
			       ? JIT_FILE_STATE_SHARED
			       : JIT_FILE_STATE_FOLLOWED;
	open = jit_has_open(owner->pid, st);
	if (open > 0) {
		open = jit_has_open(other->pid, st);
		if (!open)
			return JIT_FILE_STATE_FOLLOWED;
	}
	return open < 0 ? JIT_FILE_STATE_TOO_MANY_OPEN : JIT_FILE_STATE_SHARED;
}

/* If the same file is followed for another process: whose it is. FOLLOWED: this one may read it. */
static enum jit_file_state judge_others(const struct jit_follower *r, const struct jit_owner *owner,
					const struct jit_found *found)
{
	for (size_t i = 0; i < r->files.count; i++) {
		const struct jit_file *f = &r->files.data[i].file;

		if ((f->fd >= 0 || jit_file_state_is_followed(f->state)) &&
		    f->owner.pid != owner->pid && f->device == found->st.st_dev &&
		    f->inode == found->st.st_ino)
			return judge_owner(owner, &f->owner, &found->st);
	}
	return JIT_FILE_STATE_FOLLOWED;
}

static void drop_found(struct jit_found *found, enum jit_file_state why)
{
	if (found->fd >= 0)
		close(found->fd);
	found->fd = -1;
	found->state = why;
}

static size_t count_open(const struct jit_follower *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->files.count; i++)
		count += r->files.data[i].file.fd >= 0;
	return count;
}

/* Closes a readable file that should not be read. */
static void judge_found(struct jit_follower *r, const struct jit_owner *owner,
			struct jit_found *found)
{
	enum jit_file_state verdict;

	if (found->fd < 0)
		return;
	verdict = judge_user(r, owner->user);
	if (verdict == JIT_FILE_STATE_FOLLOWED && count_open(r) >= FILES_MAX)
		verdict = JIT_FILE_STATE_TOO_MANY;
	if (verdict == JIT_FILE_STATE_FOLLOWED)
		verdict = judge_others(r, owner, found);
	if (verdict != JIT_FILE_STATE_FOLLOWED)
		drop_found(found, verdict);
}

/* Files that are not read are kept as well, so that they are reported once. */
static bool keep_file(struct jit_follower *r, const struct followed *f)
{
	if (r->files.count >= 2 * FILES_MAX || !count_file(r, f->file.owner.user))
		return false;
	if (!vec_push(&r->files, *f))
		return true;
	quota__give(&r->file_counts, f->file.owner.user, 1);
	r->err = -ENOMEM;
	return false;
}

static void begin_file(struct jit_follower *r, const struct jit_owner *owner,
		       enum jit_file_kind kind, struct jit_found *found)
{
	const struct jit_file_sink sink = {r->output.push, r->output.context};
	struct followed f = {.watch = -1};
	int err;

	judge_found(r, owner, found);
	err = jit_file__begin(&f.file, ++r->last_number, kind, owner, found, monotonic_ns(), &sink);
	r->err = r->err ? r->err : err;
	if (err || !keep_file(r, &f)) {
		if (f.file.fd >= 0)
			give_up_file(r, &f, JIT_FILE_STATE_TOO_MANY);
		jit_file__close(&f.file);
		return;
	}
	if (f.file.fd < 0)
		return;
	watch_file(r, &r->files.data[r->files.count - 1]);
	read_file(r, &r->files.data[r->files.count - 1], false);
}

/* Reports a file that was not searched. */
static void begin_unread(struct jit_follower *r, const struct jit_owner *owner,
			 enum jit_file_kind kind, const char *path, enum jit_file_state why)
{
	struct jit_found found = {.fd = -1, .state = why};

	if (path)
		snprintf(found.path, sizeof(found.path), "%s", path);
	else
		snprintf(found.path, sizeof(found.path), "/tmp/perf-%d.map", owner->own_pid);
	begin_file(r, owner, kind, &found);
}

/* ---- requests -------------------------------------------------------------------------------- */

/* Searches again if the process took another identity meanwhile. */
static int find_surely(struct jit_owner *owner, struct jit_found *found)
{
	for (int i = 0; i < IDENTITY_TRIES; i++) {
		struct jit_owner now;
		int err = jit_find_map(owner, found);

		if (err)
			return err;
		err = jit_owner__read(owner->pid, &now);
		if (!err && jit_owner__is_same(owner, &now))
			return 0;
		drop_found(found, JIT_FILE_STATE_NONE);
		if (err)
			return err;
		*owner = now;
	}
	return -ENOENT;
}

/* 0: found, or never will be; -EAGAIN: search later. */
static int look_for_map(struct jit_follower *r, struct jit_owner *owner)
{
	struct jit_found found;
	int err;

	if (jit_owner__refresh(owner))
		return -EAGAIN;
	if (is_denied(r, owner->user)) {
		begin_unread(r, owner, JIT_FILE_MAP, NULL, JIT_FILE_STATE_HUNG);
		return 0;
	}
	touch(r, owner);
	err = find_surely(owner, &found);
	if (!err)
		begin_file(r, owner, JIT_FILE_MAP, &found);
	touch(r, NULL);
	return err == -ENOENT ? -EAGAIN : 0;
}

static size_t find_waiting(const struct jit_follower *r, pid_t pid)
{
	for (size_t i = 0; i < r->waiting.count; i++)
		if (r->waiting.data[i].owner.pid == pid)
			return i;
	return r->waiting.count;
}

bool jit_follower__has_map(const struct jit_follower *r, pid_t pid)
{
	return find_file(r, pid, JIT_FILE_MAP) || find_waiting(r, pid) < r->waiting.count;
}

static void forget_waiting(struct jit_follower *r, size_t i)
{
	quota__give(&r->file_counts, r->waiting.data[i].owner.user, 1);
	r->waiting.data[i] = r->waiting.data[--r->waiting.count];
}

static void keep_waiting(struct jit_follower *r, const struct waiting *w)
{
	if (r->waiting.count >= WAITING_MAX || !count_file(r, w->owner.user))
		begin_unread(r, &w->owner, JIT_FILE_MAP, NULL, JIT_FILE_STATE_TOO_MANY);
	else if (vec_push(&r->waiting, *w))
		r->err = -ENOMEM;
}

void jit_follower__follow_map(struct jit_follower *r, const struct jit_owner *owner)
{
	struct waiting w = {.owner = *owner, .interval = LOOK_FIRST};

	if (!look_for_map(r, &w.owner))
		return;
	w.next = monotonic_ns() + w.interval;
	keep_waiting(r, &w);
}

void jit_follower__expect_map(struct jit_follower *r, pid_t pid)
{
	size_t i = find_waiting(r, pid);

	if (i < r->waiting.count)
		r->waiting.data[i].next = monotonic_ns();
}

void jit_follower__follow_dump(struct jit_follower *r, pid_t pid, const char *path, uint64_t start,
			       uint64_t end)
{
	struct jit_owner owner, now;
	struct jit_found found;

	if (find_file(r, pid, JIT_FILE_DUMP) || jit_owner__read(pid, &owner))
		return;
	if (is_denied(r, owner.user)) {
		begin_unread(r, &owner, JIT_FILE_DUMP, path, JIT_FILE_STATE_HUNG);
		return;
	}
	touch(r, &owner);
	if (!jit_open_dump(&owner, path, start, end, &found)) {
		if (jit_owner__read(pid, &now) || !jit_owner__is_same(&owner, &now))
			drop_found(&found, JIT_FILE_STATE_DENIED);
		begin_file(r, &owner, JIT_FILE_DUMP, &found);
	}
	touch(r, NULL);
}

void jit_follower__let_go(struct jit_follower *r, pid_t pid)
{
	size_t i = find_waiting(r, pid);

	if (i < r->waiting.count)
		forget_waiting(r, i);
	for (i = r->files.count; i-- > 0;) {
		struct followed *f = &r->files.data[i];

		if (f->file.owner.pid != pid)
			continue;
		touch(r, &f->file.owner);
		do
			read_file(r, f, true);
		while (f->more && !r->err && !f->slow_until && !is_full(r, true));
		if (f->more) /* no time for the rest */
			give_up_file(r, f, JIT_FILE_STATE_TOO_BIG);
		forget_file(r, i);
		touch(r, NULL);
	}
}

/* ---- rounds ---------------------------------------------------------------------------------- */

static void note_sign(struct jit_follower *r, const struct inotify_event *sign)
{
	for (size_t i = 0; i < r->files.count; i++) {
		struct followed *f = &r->files.data[i];

		if (!(sign->mask & IN_Q_OVERFLOW) && f->watch != sign->wd)
			continue;
		if (sign->mask & IN_IGNORED) { /* another process had the same file */
			f->watch = -1;
			f->poll_at = 1;
			continue;
		}
		f->signs.opened |= sign->mask & (IN_OPEN | IN_Q_OVERFLOW) ? true : false;
		f->signs.modified |= sign->mask & (IN_MODIFY | IN_Q_OVERFLOW) ? true : false;
		f->signs.closed |= sign->mask & IN_CLOSE_WRITE ? true : false;
	}
}

void jit_follower__take_signs(struct jit_follower *r)
{
	_Alignas(struct inotify_event) char buffer[SIGNS_SIZE];

	for (int n = 0; n < SIGNS_AT_ONCE; n++) {
		ssize_t size = read(r->inotify, buffer, sizeof(buffer));

		if (size < 0 && errno == EINTR)
			continue;
		if (size <= 0)
			return;
		for (ssize_t at = 0; at < size;) {
			const struct inotify_event *sign = (const void *)(buffer + at);

			note_sign(r, sign);
			at += (ssize_t)(sizeof(*sign) + sign->len);
		}
	}
}

static void look_for_waiting(struct jit_follower *r, uint64_t now)
{
	for (size_t i = r->waiting.count; i-- > 0;) {
		struct waiting w = r->waiting.data[i];
		bool found;

		if (now < w.next)
			continue;
		w.interval = min_u64(w.interval * 2, LOOK_INTERVAL);
		w.next = now + w.interval;
		found = look_for_map(r, &w.owner) != -EAGAIN;
		forget_waiting(r, i);
		if (!found) /* perhaps of another user now */
			keep_waiting(r, &w);
	}
}

/* A file that could not be read before. True: the list has changed. */
static bool begin_again(struct jit_follower *r, size_t i, const struct jit_owner *owner,
			struct jit_found *found)
{
	judge_found(r, owner, found);
	if (found->fd < 0)
		return false;
	forget_file(r, i);
	begin_file(r, owner, JIT_FILE_MAP, found);
	return true;
}

/* True: the list has changed. */
static bool look_again(struct jit_follower *r, size_t i, uint64_t now)
{
	struct followed *f = &r->files.data[i];
	struct jit_owner owner = f->file.owner;
	struct jit_found found;
	int err;

	if (jit_owner__refresh(&owner) || is_denied(r, owner.user))
		return false;
	touch(r, &owner);
	if (find_surely(&owner, &found) || found.fd < 0)
		return false;
	if (f->file.fd < 0)
		return begin_again(r, i, &owner, &found);
	if (found.st.st_dev == f->file.device && found.st.st_ino == f->file.inode) {
		close(found.fd);
		f->file.named_at = now;
		return false;
	}
	read_file(r, f, false);
	unwatch_file(r, f);
	err = jit_file__replace(&f->file, found.fd, &found.st, now);
	r->err = r->err ? r->err : err;
	watch_file(r, f);
	return false;
}

/* Given up for good. */
static bool is_left(enum jit_file_state state)
{
	return jit_file_state_is_followed(state) && state != JIT_FILE_STATE_FOLLOWED;
}

/* New maps, and files that replaced a followed one. */
void jit_follower__look_for_files(struct jit_follower *r)
{
	uint64_t now = monotonic_ns();
	bool changed = false;

	look_for_waiting(r, now);
	if (now < r->next_look)
		return;
	r->next_look = now + LOOK_INTERVAL;
	for (size_t i = 0; i < r->files.count && !changed; i++) {
		const struct jit_file *file = &r->files.data[i].file;

		if (file->kind == JIT_FILE_DUMP || is_left(file->state))
			continue;
		changed = look_again(r, i, now);
		touch(r, NULL);
	}
}

void jit_follower__read_due(struct jit_follower *r, bool settle)
{
	uint64_t now = monotonic_ns();

	for (size_t i = 0; i < r->files.count && !r->err; i++) {
		struct followed *f = &r->files.data[i];

		if (f->file.fd < 0)
			continue;
		if (!settle && !is_due(f, now)) {
			if (glances_at(f) && now >= f->glance_at) {
				touch(r, &f->file.owner);
				jit_file__glance(&f->file);
				plan_glance(r, f);
				touch(r, NULL);
			}
			continue;
		}
		if (is_full(r, settle)) {
			if (settle)
				give_up_file(r, f, JIT_FILE_STATE_TOO_BIG);
			continue;
		}
		touch(r, &f->file.owner);
		read_file(r, f, settle);
		touch(r, NULL);
		r->last_read = now;
	}
}

bool jit_follower__has_more(const struct jit_follower *r, bool settle)
{
	return any_of(r->files.data, r->files.count, f, f->more && (settle || !f->slow_until));
}

/* 0: never. */
static uint64_t earlier_due(uint64_t a, uint64_t b)
{
	return b && b < a ? b : a;
}

uint64_t jit_follower__next_due(const struct jit_follower *r, bool full)
{
	uint64_t next = UINT64_MAX;

	for (size_t i = 0; i < r->waiting.count; i++)
		next = earlier_due(next, r->waiting.data[i].next);
	for (size_t i = 0; i < r->files.count && !full; i++) {
		const struct followed *f = &r->files.data[i];

		if (f->file.fd < 0)
			continue;
		next = earlier_due(next, f->slow_until ? f->slow_until : f->poll_at);
		if (!f->slow_until)
			next = earlier_due(next, jit_file__wakes_at(&f->file));
		next = earlier_due(next, glances_at(f));
	}
	return r->files.count ? earlier_due(next, r->next_look) : next;
}

uint64_t jit_follower__last_read(const struct jit_follower *r)
{
	return r->last_read;
}

int jit_follower__error(const struct jit_follower *r)
{
	return r->err;
}
