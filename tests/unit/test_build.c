/* SPDX-License-Identifier: BSD-2-Clause */
/* Builders of unwind tables that do what they shall, and some that were taken over by what they read. */
#include <sys/sysinfo.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "unit.h"
#include "c_library.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/io.h"
#include "base/minmax.h"
#include "base/proc_task.h"
#include "tenants/quota.h"
#include "unwind/build.h"
#include "unwind/table_builder.h"
#include "unwind/unwind_table_check.h"

#define LIMIT  (4u << 20)
#define SECOND 1000000000ull
#define OWNER  1000

/* ---- what it shall --------------------------------------------------------------------------- */

/* One request at a time, as the feed makes them. */
struct built {
	int err;
	enum helper_refusal why; /* of the pool */
	enum table_refusal refusal;
	struct unwind_table_image image;
	uint64_t cpu_ns;
};

struct order {
	int memory;
	uint64_t limit;
	struct built built;
};

static void take(void *context, const struct helper_answer *answer)
{
	struct order *order = context;
	struct built *built = &order->built;

	built->why = answer->refusal;
	built->cpu_ns = answer->cpu_ns;
	if (!answer->refusal)
		built->err = build_reply__take(answer->data, answer->size, order->memory,
					       order->limit, &built->image, &built->refusal);
}

static struct built build_kind(struct helper_pool *pool, int fd, uint64_t limit,
			       enum build_kind kind, uint64_t owner)
{
	const struct build_question question = {.limit = limit, .kind = kind};
	struct order order = {.memory = sealed_memory__new("table", limit), .limit = limit};
	const int fds[] = {fd, order.memory};
	const struct helper_request request = {.owner = owner,
					       .data = &question,
					       .size = sizeof(question),
					       .fds = fds,
					       .fd_count = 2,
					       .answer = take,
					       .context = &order};

	assert_true(order.memory >= 0);
	assert_int_equal(helper_pool__request(pool, &request), 0);
	assert_true(helper_pool__settle(pool, 100 * SECOND));
	close(order.memory);
	return order.built;
}

static struct built build(struct helper_pool *pool, int fd, uint64_t limit)
{
	return build_kind(pool, fd, limit, BUILD_FILE, OWNER);
}

static struct helper_pool *start_builders(void)
{
	struct helper_pool *pool;

	assert_int_equal(helper_pool__new(&builder_options, &pool), 0);
	return pool;
}

static void build_here(int fd, struct unwind_table_image *image)
{
	struct elf_file *file;

	assert_int_equal(elf_file__open(fd, &file), 0);
	assert_int_equal(unwind_table__build(file, LIMIT, image), 0);
	elf_file__free(file);
}

TEST(a_builder_makes_the_same_table_as_this_process)
{
	_cleanup_close_ int library = open_c_library(),
			    null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	_cleanup_(unwind_table_image__fini) struct unwind_table_image own = {};
	struct helper_pool *s;
	struct built result;

	build_here(library, &own);
	s = start_builders();
	for (int i = 0; i < 5; i++) {
		result = build(s, library, LIMIT);
		assert_int_equal(result.err, 0);
		assert_int_equal(result.refusal, TABLE_REFUSAL_NONE);
		assert_int_equal(result.image.size, own.size);
		assert_int_equal(result.image.rows, own.rows);
		assert_memory_equal(result.image.bytes, own.bytes, own.size);
		assert_memory_equal(&result.image.counts, &own.counts, sizeof(own.counts));
		assert_true(result.cpu_ns > 100000 && result.cpu_ns < 10 * SECOND);
		unwind_table_image__fini(&result.image);
	}
	result = build(s, library, own.size / 4);
	assert_int_equal(result.err, -EFBIG);
	assert_int_not_equal(result.refusal, TABLE_REFUSAL_NONE);
	assert_true(result.refusal < TABLE_REFUSAL_DIED);
	result = build(s, null, LIMIT);
	assert_int_equal(result.err, -ENOEXEC);
	assert_int_equal(result.refusal, TABLE_REFUSAL_NONE);
	helper_pool__free(s);
}

/* A section that is longer than the file, and parts of a record behind the last section. */
TEST(forged_and_empty_pieces_are_errors)
{
	static const uint64_t FORGED[][5] = {
		{0x1000, 0x2000, 0, 1ull << 32 | 100}, {1ull << 60}, {0x1000, 0x2000}};
	const struct unwind_piece piece = {
		0x1000, 0x2000, {.data = (const uint8_t *)"", .size = 0}};
	int fd;
	struct built result;
	struct helper_pool *s;

	s = start_builders();
	for (size_t i = 0; i < 4; i++) {
		fd = i < 3 ? memfd_create("pieces", MFD_CLOEXEC) : build_pieces__write(&piece, 1);
		assert_true(fd >= 0);
		if (i < 3)
			assert_int_equal(write(fd, FORGED[i], sizeof(FORGED[i])),
					 sizeof(FORGED[i]));
		result = build_kind(s, fd, LIMIT, BUILD_PIECES, QUOTA_NOBODY);
		assert_int_equal(result.err, i < 3 ? -EBADMSG : -ENODATA);
		close(fd);
	}
	helper_pool__free(s);
}

/* ---- what somebody makes of them -------------------------------------------------------------- */

/* The file that is read says what is done. */
enum trick {
	HONEST,
	DIE,
	EXIT,
	SLEEP,
	SPIN,
	SHORT_REPLY,
	WRONG_TICKET,
	WRONG_SERVICE,
	ANOTHER_START,
	HALF_A_FRAME,
	TOO_BIG,
	NO_BYTES,
	NOT_SEALED,
	STILL_MAPPED,
	BAD_TABLE,
	BAD_LAYOUT,
	UNKNOWN_ERROR,
	UNKNOWN_REFUSAL,
	ERROR_WITH_REFUSAL,
	GROWN,
	FORK,
	SIGNAL,
	OPEN_FILE,
	SOCKET,
	MORE_MEMORY,
	WHO,
	TRICKS
};

static void make_honest(struct helper_job *job)
{
	const struct build_reply *reply = job->answer;

	build__serve(job);
	if (reply->err)
		_exit(EXIT_FAILURE);
}

/* Nothing that the filter forbids has worked. */
static void must_fail(long result, struct build_reply *reply)
{
	reply->err = result < 0 ? -ENODATA : -EIO;
}

/* Bytes that are one table, written without a seal. */
static void write_unsealed(const struct build_question *q, int library, int memory,
			   struct build_reply *reply, bool spoil)
{
	enum table_refusal refusal;
	struct unwind_table_image image;
	struct elf_file *file;

	if (elf_file__open(library, &file) ||
	    unwind_table__build_within(file, q->limit, &BUILD_LIMITS, &image, &refusal))
		_exit(EXIT_FAILURE);
	if (spoil) /* a row of no rule */
		((unsigned char *)image.bytes)[image.table.numbers + 1] = 0xff;
	if (spoil)
		((unsigned char *)image.bytes)[image.table.numbers + 2] = 0xff;
	if (write_full(memory, image.bytes, image.size))
		_exit(EXIT_FAILURE);
	reply->image = image;
	reply->image.bytes = NULL;
}

static void say_who(int memory, struct build_reply *reply)
{
	struct sysinfo host;

	/* what it could read of /proc, were it there; how much memory there is, or qsort() is a quicksort */
	reply->err = open("/proc/self/status", O_RDONLY) < 0 && open("/", O_RDONLY) < 0 &&
				     fcntl(memory, F_GET_SEALS) >= 0 && !sysinfo(&host)
			     ? -ENODATA
			     : -EIO;
}

static void __attribute__((noreturn)) write_frame(uint64_t ticket, uint32_t service, uint32_t flags)
{
	const struct message_frame frame = {.ticket = ticket, .service = service, .flags = flags};

	_exit(write_full(3, &frame, sizeof(frame)));
}

static void play(struct helper_job *job)
{
	const struct build_question *q = job->request;
	struct build_reply *reply = job->answer;
	int library = job->fds[0], memory = job->fds[1];
	unsigned char trick = HONEST;

	job->answer_size = sizeof(*reply);

	/* the trick lies behind the library, which is not changed by it */
	if (lseek(library, -1, SEEK_END) < 0 || read(library, &trick, 1) != 1)
		_exit(EXIT_FAILURE);
	switch (trick) {
	case DIE:
		__builtin_trap();
	case EXIT:
		_exit(EXIT_SUCCESS);
	case SLEEP:
		for (;;)
			if (read(3, &trick, 1) <= 0) /* no further byte */
				_exit(EXIT_SUCCESS);
	case SPIN:
		for (;;)
			;
	case SHORT_REPLY:
		job->answer_size--;
		break;
	case WRONG_TICKET: /* the answer to a request that is not there */
		write_frame(1000, 0, MESSAGE_DONE);
	case WRONG_SERVICE:
		write_frame(1, 1, MESSAGE_DONE);
	case ANOTHER_START:
		write_frame(0, 0, MESSAGE_PROGRESS);
	case HALF_A_FRAME:
		_exit(write_full(3, reply, sizeof(struct message_frame) - 1));
	case TOO_BIG:
		make_honest(job);
		reply->image.size = q->limit + UNWIND_IMAGE_ALIGNMENT;
		break;
	case NO_BYTES:
		make_honest(job);
		reply->image.size = 0;
		break;
	case NOT_SEALED:
		write_unsealed(q, library, memory, reply, false);
		break;
	case STILL_MAPPED:
		write_unsealed(q, library, memory, reply, false);
		if (mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0) == MAP_FAILED ||
		    !fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE))
			_exit(EXIT_FAILURE);
		break;
	case BAD_TABLE:
		write_unsealed(q, library, memory, reply, true);
		if (fcntl(memory, F_ADD_SEALS, F_SEAL_WRITE))
			_exit(EXIT_FAILURE);
		break;
	case BAD_LAYOUT:
		make_honest(job);
		reply->image.table.index += 16;
		break;
	case UNKNOWN_ERROR:
		reply->err = -EPERM;
		break;
	case UNKNOWN_REFUSAL:
		reply->err = -EFBIG;
		reply->refusal = TABLE_REFUSAL_COUNT;
		break;
	case ERROR_WITH_REFUSAL:
		reply->err = -ENODATA;
		reply->refusal = TABLE_REFUSAL_ROWS;
		break;
	case GROWN:
		must_fail(ftruncate(memory, 1 << 30), reply);
		break;
	case FORK:
		must_fail(fork(), reply);
		break;
	case SIGNAL:
		must_fail(kill(getppid(), SIGKILL), reply);
		break;
	case OPEN_FILE:
		must_fail(open("/etc/passwd", O_RDONLY), reply);
		break;
	case SOCKET:
		must_fail(socket(AF_UNIX, SOCK_STREAM, 0), reply);
		break;
	case MORE_MEMORY:
		must_fail((long)(intptr_t)mmap(NULL, 4ul << 30, PROT_READ | PROT_WRITE,
					       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
			  reply);
		if (memfd_create("more", 0) >= 0)
			reply->err = -EIO;
		break;
	case WHO:
		say_who(memory, reply);
		break;
	default:
		make_honest(job);
	}
}

static struct helper_pool *start_tricks_within(uint64_t wall_time)
{
	static const helper_serve_fn tricks[] = {play};
	struct helper_pool_options options = builder_options;
	struct helper_pool *s;

	options.services = tricks;
	options.silence = SECOND / 5;
	options.wall_time = wall_time;
	assert_int_equal(helper_pool__new(&options, &s), 0);
	return s;
}

static struct helper_pool *start_tricks(void)
{
	return start_tricks_within(60 * SECOND);
}

/* The C library with one byte behind it. */
static int trick_file(enum trick trick)
{
	_cleanup_close_ int library = open_c_library();
	int fd = memfd_create("trick", MFD_CLOEXEC);
	const char byte = (char)trick;
	char buffer[65536];
	ssize_t got;

	while ((got = read(library, buffer, sizeof(buffer))) > 0)
		assert_int_equal(write_full(fd, buffer, got), 0);
	assert_int_equal(write_full(fd, &byte, 1), 0);
	return fd;
}

static struct built do_trick(struct helper_pool *s, enum trick trick, uint64_t owner)
{
	_cleanup_close_ int fd = trick_file(trick);
	struct built result = build_kind(s, fd, LIMIT, BUILD_FILE, owner);

	assert_true((!result.err && !result.why) == (result.image.bytes != NULL));
	return result;
}

/* The one after it has its table. */
static void assert_next_is_good(struct helper_pool *s)
{
	struct built result = do_trick(s, HONEST, OWNER);

	assert_int_equal(result.why, HELPER_ANSWERED);
	assert_int_equal(result.err, 0);
	assert_int_equal(unwind_table_image__check(&result.image), 0);
	unwind_table_image__fini(&result.image);
}

TEST(a_dying_or_forging_builder_fails_only_its_request)
{
	static const struct {
		enum trick trick;
		int err;
		enum helper_refusal why;
	} CASES[] = {
		{DIE, 0, HELPER_DIED},
		{EXIT, 0, HELPER_DIED},
		{SHORT_REPLY, -EPROTO, HELPER_ANSWERED},
		{WRONG_TICKET, 0, HELPER_FORGED},
		{WRONG_SERVICE, 0, HELPER_FORGED},
		{ANOTHER_START, 0, HELPER_FORGED},
		{HALF_A_FRAME, 0, HELPER_FORGED},
		{TOO_BIG, -EPROTO, HELPER_ANSWERED},
		{NO_BYTES, -EPROTO, HELPER_ANSWERED},
		{NOT_SEALED, -EPROTO, HELPER_ANSWERED},
		{STILL_MAPPED, -EPROTO, HELPER_ANSWERED},
		{BAD_TABLE, -EPROTO, HELPER_ANSWERED},
		{BAD_LAYOUT, -EPROTO, HELPER_ANSWERED},
		{UNKNOWN_ERROR, -EPROTO, HELPER_ANSWERED},
		{UNKNOWN_REFUSAL, -EPROTO, HELPER_ANSWERED},
		{ERROR_WITH_REFUSAL, -EPROTO, HELPER_ANSWERED},
	};
	struct helper_pool *s = start_tricks();

	assert_next_is_good(s);
	for (size_t i = 0; i < sizeof(CASES) / sizeof(CASES[0]); i++) {
		struct built result = do_trick(s, CASES[i].trick, OWNER);

		if (result.err != CASES[i].err || result.why != CASES[i].why)
			fail_msg("trick %d: %s, %d", CASES[i].trick, strerror(-result.err),
				 result.why);
		assert_next_is_good(s);
	}
	helper_pool__free(s);
}

/* Fork and signals end it, other calls fail. */
TEST(forbidden_calls_fail_or_kill_the_builder)
{
	static const enum trick DEADLY[] = {FORK, SIGNAL, SOCKET},
				REFUSED[] = {GROWN, OPEN_FILE, MORE_MEMORY, WHO};
	struct helper_pool *s = start_tricks();

	for (size_t i = 0; i < sizeof(DEADLY) / sizeof(DEADLY[0]); i++)
		assert_int_equal(do_trick(s, DEADLY[i], OWNER).why, HELPER_DIED);
	for (size_t i = 0; i < sizeof(REFUSED) / sizeof(REFUSED[0]); i++) {
		struct built result = do_trick(s, REFUSED[i], OWNER);

		if (result.err != -ENODATA)
			fail_msg("trick %d: %s", REFUSED[i], strerror(-result.err));
	}
	assert_next_is_good(s);
	helper_pool__free(s);
}

/* One that does nothing, or never ends; a user with several of them waits in vain, others do not. */
TEST(hung_builders_ban_their_user_but_not_the_administrator)
{
	struct helper_pool *s = start_tricks_within(4 * SECOND);
	struct built result;
	uint64_t begin = monotonic_ns();

	result = do_trick(s, SPIN, OWNER);
	assert_int_equal(result.why, HELPER_HUNG);
	assert_true(result.cpu_ns > SECOND / 100); /* what it took is known all the same */
	for (int i = 0; i < 2; i++) {
		result = do_trick(s, SLEEP, OWNER);
		assert_int_equal(result.why, HELPER_HUNG);
		assert_true(result.cpu_ns < SECOND);
	}
	assert_true(monotonic_ns() - begin >= 4 * SECOND);
	result = do_trick(s, HONEST, OWNER);
	assert_int_equal(result.why, HELPER_BANNED);
	assert_int_equal(result.cpu_ns, 0);
	for (int i = 0; i < 2; i++) {
		result = do_trick(s, HONEST, i ? OWNER + 1 : QUOTA_NOBODY);
		assert_int_equal(result.err, 0);
		unwind_table_image__fini(&result.image);
	}
	/* not so for the administrator */
	for (int i = 0; i < 4; i++)
		assert_int_equal(do_trick(s, SLEEP, QUOTA_NOBODY).why, HELPER_HUNG);
	result = do_trick(s, HONEST, QUOTA_NOBODY);
	assert_int_equal(result.err, 0);
	unwind_table_image__fini(&result.image);
	helper_pool__free(s);
}

static enum table_refusal request_table(struct table_builder *b, int fd)
{
	const struct table_request request = {.fd = fd, .effort = TABLE_BUILD, .owner = OWNER};
	struct built_table built;

	assert_int_equal(table_builder__request(b, &request), 0);
	assert_true(table_builder__take(b, true, &built));
	assert_true(built.err || built.cpu_ns);
	unwind_table_image__fini(&built.image);
	return built.refusal;
}

TEST(a_banned_user_still_gets_tables_of_system_files)
{
	_cleanup_close_ int library = open_c_library(), bad = trick_file(SLEEP),
			    good = trick_file(HONEST);
	struct helper_pool *s = start_tricks();
	struct table_builder *b;
	struct stat st;

	if (fstat(library, &st) || st.st_uid || st.st_mode & (S_IWGRP | S_IWOTH))
		fail_msg("the C library is not the administrator's");
	assert_int_equal(table_builder__new(LIMIT, s, NULL, &b), 0);
	assert_int_equal(request_table(b, good), TABLE_REFUSAL_NONE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(request_table(b, bad), TABLE_REFUSAL_HUNG);
	assert_int_equal(request_table(b, good), TABLE_REFUSAL_BANNED);
	assert_int_equal(request_table(b, library), TABLE_REFUSAL_NONE);
	table_builder__free(b);
	helper_pool__free(s);
}

/* The file's table is being built, or is next. */
static int hand_over(struct table_builder *b, int fd)
{
	const struct table_request request = {.fd = fd, .effort = TABLE_BUILD, .owner = OWNER};
	struct built_table built;
	int err = table_builder__request(b, &request);

	assert_false(table_builder__take(b, false, &built));
	return err;
}

/* A builder of a large file counts until its table is there, or is not wanted any more. */
TEST(large_files_are_counted_while_their_build_is_pending)
{
	_cleanup_close_ int small = trick_file(SLEEP), big = trick_file(SLEEP);
	struct helper_pool *s = start_tricks();
	_Atomic int64_t large = 0;
	struct table_builder *b;
	const char byte = SLEEP;
	struct built_table built;

	assert_int_equal(pwrite(big, &byte, 1, (off_t)QUOTA_LARGE_FILE - 1), 1);
	assert_int_equal(table_builder__new(LIMIT, s, NULL, &b), 0);
	table_builder__count_large(b, &large);
	assert_int_equal(hand_over(b, small), 0);
	assert_int_equal(large, 0);
	assert_int_equal(hand_over(b, big), 0);
	assert_int_equal(large, 1);
	for (int i = 0; i < 2; i++) {
		assert_true(table_builder__take(b, true, &built));
		assert_int_equal(built.refusal, TABLE_REFUSAL_HUNG);
	}
	assert_int_equal(large, 0);
	assert_int_equal(hand_over(b, big), 0);
	assert_int_equal(large, 1);
	table_builder__free(b);
	assert_int_equal(large, 0);
	helper_pool__free(s);
}

/* ---- killed builders --------------------------------------------------------------------------- */

static pid_t first_child(pid_t pid)
{
	char path[64], line[4096];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (read_line(path, line, sizeof(line)))
		return 0;
	return (pid_t)strtol(line, NULL, 10);
}

static pid_t only_child(pid_t pid)
{
	char path[64], line[4096], *end;
	pid_t child;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	if (read_line(path, line, sizeof(line)))
		return 0;
	child = (pid_t)strtol(line, &end, 10);
	return strtol(end, NULL, 10) ? 0 : child;
}

static void wait_until(bool done)
{
	static unsigned int turns;

	turns = done ? 0 : turns + 1;
	assert_true(turns < 20000);
	usleep(1000);
}

/* When the builder is killed. */
enum builder_stage { FORKED, STARTED, IN_THE_POOL, STAGES };

static bool has_state(pid_t pid, char state)
{
	struct proc_stat stat;

	return pid && !proc_stat_of(pid, &stat) && stat.state == state;
}

/* The builder that is kept ready. The one before it has got SIGKILL with its answer, so it sleeps no more. */
static pid_t ready_builder(pid_t keeper)
{
	pid_t builder;

	while (!has_state(builder = only_child(keeper), 'S'))
		wait_until(false);
	wait_until(true);
	return builder;
}

/* A request during which no builder is forked: the pool has not read of the next one that it has started. */
static void use_ready_builder(struct helper_pool *s, pid_t keeper)
{
	ready_builder(keeper);
	assert_int_equal(kill(keeper, SIGSTOP), 0);
	while (!has_state(keeper, 'T'))
		wait_until(false);
	wait_until(true);
	assert_next_is_good(s);
	assert_int_equal(kill(keeper, SIGCONT), 0);
}

static pid_t kill_next_builder(struct helper_pool *s, pid_t keeper, enum builder_stage stage)
{
	pid_t builder;

	if (stage != IN_THE_POOL)
		use_ready_builder(s, keeper);
	if (stage != FORKED)
		ready_builder(keeper);
	if (stage == IN_THE_POOL)
		helper_pool__step(s);
	while (!(builder = only_child(keeper)) || kill(builder, SIGKILL))
		wait_until(false);
	wait_until(true);
	return builder;
}

/* The one that waits for its file is killed: the next request does not notice. */
TEST(a_killed_idle_builder_fails_no_request)
{
	struct helper_pool *s;
	pid_t keeper;

	assert_int_equal(first_child(getpid()), 0);
	s = start_tricks();
	keeper = first_child(getpid());
	for (int i = 0; i < 2 * STAGES; i++) {
		pid_t builder;

		assert_next_is_good(s);
		builder = kill_next_builder(s, keeper, i % STAGES);
		while (!kill(builder, 0))
			wait_until(false);
		wait_until(true);
	}
	assert_next_is_good(s);
	/* without a keeper there are no tables, and nothing else happens */
	assert_int_equal(kill(keeper, SIGKILL), 0);
	while (do_trick(s, ERROR_WITH_REFUSAL, OWNER).why == HELPER_ANSWERED)
		wait_until(false);
	wait_until(true);
	assert_int_equal(do_trick(s, HONEST, OWNER).why, HELPER_ENDED);
	helper_pool__free(s);
	assert_int_equal(first_child(getpid()), 0);
}
