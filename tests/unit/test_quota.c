/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accounts of users, eviction, rates, and the table of limits in docs/SECURITY.md, which --print prints.
 */
#include <sysprof/runtime_info.h>
#include <sysprof/unwind_table.h>

#include "document_table.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "jit/follow/jit_file.h"
#include "jit/follow/jit_follower.h"
#include "live/capture/tick_rings.h"
#include "live/live_private.h"
#include "live/proc/group_paths.h"
#include "runtimes/ask/code_private.h"
#include "runtimes/place/code_functions.h"
#include "runtimes/place/managed_frames.h"
#include "tenants/outside_books.h"
#include "tenants/quota.h"
#include "unwind/build_budget.h"
#include "unwind/made_code.h"
#include "world/recorder.h"

static struct quota q;

static void reset(uint64_t user, uint64_t all, uint64_t period)
{
	memset(&q, 0, sizeof(q));
	q.user = (struct quota_limit){.limit = user, .period = period};
	q.all = (struct quota_limit){.limit = all, .period = period};
}

/* ---- eviction -------------------------------------------------------------------------------- */

TEST(an_owner_can_evict_only_from_a_larger_one)
{
	reset(0, 0, 0);
	assert_int_equal(quota__most(&q, 1, 1), QUOTA_OWNERS); /* nothing is held */
	quota__take(&q, 1, 10, 0);
	assert_int_equal(quota__most(&q, 1, 1), QUOTA_OWNERS); /* the owner itself */
	assert_true(quota__is_of(&q, quota__most(&q, 2, 1), 1));
	quota__take(&q, 2, 9, 0);
	assert_int_equal(quota__most(&q, 2, 1), QUOTA_OWNERS); /* it would have as many */
	quota__give(&q, 2, 1);
	assert_true(quota__is_of(&q, quota__most(&q, 2, 1), 1));
	assert_int_equal(quota__most(&q, 2, 2), QUOTA_OWNERS);
	quota__take(&q, 3, 11, 0);
	assert_true(quota__is_of(&q, quota__most(&q, 4, 1), 3));
	assert_int_equal(quota__most(&q, 1, 1), QUOTA_OWNERS);
	quota__give(&q, 3, 11);
	quota__give(&q, 3, 1); /* has none */
	assert_true(quota__is_of(&q, quota__most(&q, 4, 1), 1));
	assert_int_equal(quota__used(&q, 3), 0);
	assert_int_equal(q.total.used, 18);
}

TEST(a_late_owner_gets_half_of_a_full_quota)
{
	unsigned int got = 0;

	reset(0, 0, 0);
	quota__take(&q, 7, 1000, 0);
	while (quota__most(&q, 8, 1) < QUOTA_OWNERS) {
		assert_true(quota__is_of(&q, quota__most(&q, 8, 1), 7));
		quota__give(&q, 7, 1);
		quota__take(&q, 8, 1, 0);
		got++;
	}
	assert_in_range(got, 499, 500);
}

/* ---- limits ---------------------------------------------------------------------------------- */

TEST(each_refusal_names_the_limit_that_was_reached)
{
	reset(10, 15, 0);
	quota__take(&q, 1, 10, 0);
	assert_int_equal(quota__refusal(&q, 1, 1, 0), OUTSIDE_BY_USER);
	assert_int_equal(quota__refusal(&q, 2, 5, 0), OUTSIDE_REASON_COUNT);
	assert_int_equal(quota__refusal(&q, 2, 6, 0), OUTSIDE_BY_ALL);
	assert_int_equal(quota__refusal(&q, 2, UINT64_MAX, 0), OUTSIDE_BY_USER);
	assert_int_equal(quota__left(&q, 2, 0), 5);
	assert_int_equal(quota__scarcest(&q, 1), OUTSIDE_BY_USER);
	assert_int_equal(quota__scarcest(&q, 2), OUTSIDE_BY_ALL);
	/* the limit of all alone refuses no owner */
	assert_int_equal(quota__refusal(&q, QUOTA_NOBODY, 6, 0), OUTSIDE_BY_ALL);
	quota__take(&q, QUOTA_NOBODY, 5, 0);
	assert_int_equal(quota__left(&q, 2, 0), 0);
	q.all.spares_root = true;
	assert_int_equal(quota__left(&q, QUOTA_ROOT, 0), 10);
	quota__take(&q, QUOTA_ROOT, 10, 0);
	assert_int_equal(quota__refusal(&q, QUOTA_ROOT, 1, 0), OUTSIDE_BY_USER);
	assert_int_equal(q.total.used, 15);
}

/* Owners for whom there is no account share one, and what is given back frees accounts. */
TEST(owners_without_an_account_share_one)
{
	reset(10, 0, 0);
	for (uint64_t owner = 0; owner < 3000; owner++)
		quota__take(&q, owner, 1, 0);
	assert_int_equal(q.total.used, 3000);
	assert_int_equal(quota__used(&q, 5), 1);
	assert_int_equal(quota__used(&q, 2999), 3000 - (QUOTA_OWNERS - 1));
	assert_int_equal(quota__refusal(&q, 9999, 1, 0), OUTSIDE_BY_USER);
	assert_int_equal(quota__most(&q, 5, 1), QUOTA_OWNERS - 1);
	assert_true(quota__is_of(&q, QUOTA_OWNERS - 1, 2999));
	assert_false(quota__is_of(&q, QUOTA_OWNERS - 1, 5));
	for (uint64_t owner = 3000; owner-- > 0;)
		quota__give(&q, owner, 1);
	assert_int_equal(q.total.used, 0);
	assert_int_equal(quota__left(&q, 9999, 0), 10);
}

/* It is refused nothing for what others take, or have taken for good: hangs are never given back. */
TEST(root_has_an_account_even_if_all_are_taken)
{
	reset(1, 0, 0);
	for (uint64_t owner = 1; owner < 3000; owner++)
		quota__take(&q, owner, 1, 0);
	assert_int_equal(quota__used(&q, 9999), 2999 - (QUOTA_OWNERS - 2));
	assert_int_equal(quota__used(&q, QUOTA_ROOT), 0);
	quota__take(&q, QUOTA_ROOT, 1, 0);
	assert_int_equal(quota__used(&q, QUOTA_ROOT), 1);
	quota__give(&q, QUOTA_ROOT, 1);
	assert_int_equal(quota__left(&q, QUOTA_ROOT, 0), 1);
	assert_int_equal(quota__used(&q, 9999), 2999 - (QUOTA_OWNERS - 2));
}

/* ---- rates ----------------------------------------------------------------------------------- */

TEST(a_meter_recovers_at_the_rate_of_its_limit)
{
	const struct quota_limit limit = {.limit = 100, .period = 1000};
	const uint64_t now = 1ull << 40;
	struct meter m = {};

	assert_int_equal(meter__left(&m, &limit, now), 100);
	meter__take(&m, &limit, 150, now);
	assert_int_equal(meter__left(&m, &limit, now), -50);
	assert_int_equal(meter__left(&m, &limit, now - 1), -50);
	assert_int_equal(meter__left(&m, &limit, now + 500), 0);
	assert_int_equal(meter__left(&m, &limit, now + 1500), 100);
	assert_int_equal(meter__left(&m, &limit, now + (1ull << 60)), 100);
	/* less than a unit at a time is given all the same */
	for (uint64_t i = 1; i <= 1000; i++)
		meter__take(&m, &limit, 0, now + i);
	assert_int_equal(meter__left(&m, &limit, now + 1000), 50);
}

TEST(an_emptied_account_goes_to_another_owner)
{
	const uint64_t now = 1ull << 40;

	reset(100, 0, 1000);
	for (uint64_t owner = 0; owner < QUOTA_OWNERS - 1; owner++)
		quota__take(&q, owner, 100, now);
	quota__take(&q, 5000, 60, now);
	quota__take(&q, 5001, 60, now);
	assert_int_equal(quota__left(&q, 5002, now), -20);
	assert_int_equal(quota__left(&q, 5002, now + 1000), 100);
	quota__take(&q, 5002, 40, now + 1000);
	assert_int_equal(quota__left(&q, 5002, now + 1000), 60);
	assert_int_equal(quota__left(&q, 5001, now + 1000), 100);
}

/* What grows adds up unused, for owners without an account of their own and for all as well. */
TEST(unused_amounts_of_a_growing_limit_add_up)
{
	const uint64_t began = 1ull << 40;

	reset(100, 250, 1000);
	q.user.grows = q.all.grows = true;
	quota__begin(&q, began);
	assert_int_equal(quota__left(&q, 1, began), 100);
	quota__take(&q, 1, 99, began);
	assert_int_equal(quota__refusal(&q, 1, 1, began), OUTSIDE_REASON_COUNT);
	quota__take(&q, 1, 1, began);
	assert_int_equal(quota__refusal(&q, 1, 1, began), OUTSIDE_BY_USER);
	assert_int_equal(quota__refusal(&q, 2, 1, began), OUTSIDE_REASON_COUNT);
	quota__take(&q, 2, 150, began);
	assert_int_equal(quota__refusal(&q, 3, 1, began), OUTSIDE_BY_ALL);
	assert_int_equal(quota__left(&q, 1, began + 1000), 100);
	quota__take(&q, 1, 100, began + 1000);
	assert_int_equal(quota__refusal(&q, 1, 1, began + 1000), OUTSIDE_BY_USER);
	assert_int_equal(quota__left(&q, 1, began + 11000), 1000);
	q.all.limit = 0;
	for (uint64_t owner = 3; owner < 3000; owner++)
		quota__take(&q, owner, 100, began);
	assert_int_equal(quota__refusal(&q, 2999, 1, began), OUTSIDE_BY_USER);
	assert_int_equal(quota__refusal(&q, 9999, 1, began), OUTSIDE_BY_USER);
}

/* The sums of a process that hangs are those of the next, and several quotas have one sum. Forged ones are bounded. */
TEST(a_successor_continues_the_sums_of_a_quota)
{
	static struct quota next;
	_Atomic int64_t all = 0;

	reset(10, 15, 0);
	q.shared = &all;
	quota__take(&q, 1, 10, 0);
	next = (struct quota){.user = q.user, .all = q.all, .shared = &all};
	quota__continue(&next, &q);
	assert_int_equal(quota__refusal(&next, 1, 1, 0), OUTSIDE_BY_USER);
	assert_int_equal(quota__refusal(&next, 2, 5, 0), OUTSIDE_REASON_COUNT);
	quota__take(&next, 2, 5, 0);
	assert_int_equal(all, 15);
	assert_int_equal(quota__refusal(&q, 3, 1, 0), OUTSIDE_BY_ALL);
	memset(&q, 0xff, sizeof(q));
	quota__continue(&next, &q);
	assert_ptr_equal(next.shared, &all);
	assert_int_equal(next.user.limit, 10);
	assert_int_equal(next.all.limit, 15);
	quota__take(&next, 1, 1, 0);
	assert_int_equal(quota__refusal(&next, 1, 1, 0), OUTSIDE_BY_USER);
}

/* ---- claims of processes ---------------------------------------------------------------------- */

#define SECOND QUOTA_SECOND
#define MS     QUOTA_MS

static unsigned int users_found;
static int64_t scarce;

static void begin_claims(enum quota_thing thing, unsigned int quarters)
{
	quota__init(&q, thing);
	scarce = (int64_t)q.all.limit / 4 * quarters;
}

/* Users have a thousand processes each. */
static uint32_t user_of(void *context, uint32_t pid)
{
	users_found++;
	return pid / 1000;
}

/* How much of `amount` at a time a process can take, and why it cannot take more. */
static uint64_t claim_all(struct meter *process, struct meter *all, uint32_t pid, uint64_t amount,
			  uint64_t now, enum outside_reason *refusal)
{
	const struct quota_claim claim = {
		.process = process,
		.all = all,
		.scarce = scarce,
		.now = now,
		.user_of = user_of,
		.pid = pid,
	};
	uint64_t taken = 0;

	while ((*refusal = quota__claim_refusal(&q, &claim, 1)) == OUTSIDE_REASON_COUNT) {
		quota__claim(&q, &claim, amount);
		taken += amount;
	}
	return taken;
}

static uint64_t publish_all(struct meter *process, uint32_t pid, uint64_t cost, uint64_t now)
{
	enum outside_reason refusal;

	return claim_all(process, &q.total, pid, cost, now, &refusal);
}

TEST(a_process_claims_its_share_and_repays_excess)
{
	const struct quota_claim large = {.process = &(struct meter){}, .all = &q.total};
	struct meter one = {}, other = {};
	uint64_t now = SECOND, spent = 0;
	enum outside_reason refusal;

	begin_claims(QUOTA_PUBLISHING, 2);
	assert_int_equal(claim_all(&one, &q.total, 1000, MS, now, &refusal), 50 * MS);
	assert_int_equal(refusal, OUTSIDE_BY_ITSELF);
	assert_int_equal(publish_all(&one, 1000, MS, now), 0);
	assert_int_equal(publish_all(&other, 2000, MS, now), 50 * MS);
	assert_int_equal(quota__claim_refusal(&q, &large, UINT64_MAX), OUTSIDE_BY_ITSELF);
	/* a hundredth of the time, however often it tries */
	for (int i = 0; i < 1000; i++)
		spent += publish_all(&one, 1000, MS, now += 10 * MS);
	assert_true(spent >= 99 * MS && spent <= 101 * MS);
	/* if one claim takes too much, it is paid back */
	now += 100 * SECOND;
	assert_int_equal(publish_all(&one, 1000, 500 * MS, now), 500 * MS);
	assert_int_equal(publish_all(&one, 1000, MS, now + 40 * SECOND), 0);
	assert_true(publish_all(&one, 1000, MS, now + 50 * SECOND) > 0);
}

/* No user is looked up as long as there is enough for all. */
TEST(processes_of_one_user_leave_enough_for_another)
{
	enum { MANY = 1000 };
	struct meter credits[MANY] = {}, victim = {};
	uint64_t now = SECOND, spent = 0, until;

	begin_claims(QUOTA_PUBLISHING, 2);
	users_found = 0;
	assert_int_equal(publish_all(&victim, 9000, 10 * MS, now), 50 * MS);
	assert_int_equal(users_found, 0);
	now += 10 * SECOND;
	for (until = now + 10 * SECOND; now < until; now += 10 * MS)
		for (int i = 0; i < MANY; i++)
			spent += publish_all(&credits[i], 1000 + i, MS, now);
	/* a user may have all that comes in while no other wants any, and leaves half of what there was */
	assert_true(users_found > 0);
	assert_true(spent <= (200 + 100) * MS + 10 * SECOND / 20);
	/* another user has enough */
	spent = 0;
	for (until = now + 10 * SECOND; now < until; now += 10 * MS) {
		for (int i = 0; i < MANY; i++)
			publish_all(&credits[i], 1000 + i, MS, now);
		spent += publish_all(&victim, 9000, MS / 10, now);
	}
	assert_true(spent >= 50 * MS + 10 * SECOND / 100 - 5 * MS);
}

TEST(claims_end_at_limits_of_process_user_and_all)
{
	const uint64_t now = 5 * quota_row(QUOTA_FUNCTIONS)->all.period;
	struct meter processes[16] = {};
	uint64_t first = 0, second = 0;
	enum outside_reason refusal;

	begin_claims(QUOTA_FUNCTIONS, 3);
	for (uint32_t i = 0; i < 8; i++) {
		first += claim_all(&processes[i], &q.total, 1000 + i, QUOTA_MB, now, &refusal);
		assert_int_equal(refusal, i < 6 ? OUTSIDE_BY_ITSELF : OUTSIDE_BY_USER);
	}
	/* amounts from before the accounts belong to no owner */
	assert_int_equal(first, q.all.limit / 4 + q.user.limit);
	for (uint32_t i = 8; i < 16; i++)
		second += claim_all(&processes[i], &q.total, 2000 + i, QUOTA_MB, now, &refusal);
	assert_int_equal(first + second, q.all.limit);
	assert_int_equal(claim_all(&(struct meter){}, &q.total, 3000, 1, now, &refusal), 0);
	assert_int_equal(refusal, OUTSIDE_BY_ALL);
}

/* A thousand users with large publications do not hold up those with small ones: those have another meter. */
TEST(large_publications_leave_room_for_small_ones)
{
	enum { MANY = 1000 };
	struct meter credits[MANY] = {}, victim = {}, large = {};
	uint64_t now = SECOND, spent = 0;
	enum outside_reason refusal;

	begin_claims(QUOTA_PUBLISHING, 2);
	for (uint32_t i = 0; i < MANY; i++)
		spent += claim_all(&credits[i], &large, 1000 * (i + 1), MS, now, &refusal);
	assert_true(spent >= 200 * MS && spent < 202 * MS);
	assert_int_equal(claim_all(&victim, &large, 2000000, MS, now, &refusal), 0);
	assert_int_equal(publish_all(&victim, 2000000, MS, now), 50 * MS);
}

static uint32_t user_itself(void *context, uint32_t pid)
{
	return *(uint32_t *)context;
}

TEST(root_is_spared_by_the_limit_of_all_users)
{
	struct meter process = {}, tenants[10] = {};
	uint32_t user = 0;
	struct quota_claim claim = {
		.process = &process,
		.all = &q.total,
		.scarce = INT64_MAX,
		.now = 1,
		.user_of = user_itself,
		.context = &user,
	};

	reset(10, 30, 0);
	q.all.spares_root = true;
	for (user = 1; user <= 3; user++) {
		claim.process = &tenants[user];
		quota__claim(&q, &claim, 10);
	}
	assert_int_equal(quota__claim_refusal(&q, &claim, 1), OUTSIDE_BY_ALL);
	user = 0;
	claim.process = &process;
	assert_int_equal(quota__claim_refusal(&q, &claim, 1), OUTSIDE_REASON_COUNT);
	quota__claim(&q, &claim, 10);
	assert_int_equal(q.total.used, 30);
	assert_int_equal(quota__claim_refusal(&q, &claim, 1), OUTSIDE_BY_USER);
}

TEST(root_has_half_the_turns_and_others_equal_shares)
{
	static const uint64_t OWNERS[] = {7, 3, QUOTA_ROOT, QUOTA_NOBODY, 1000};
	unsigned int served[5] = {};
	struct turns t = {};

	for (int turn = 0; turn < 80; turn++) {
		size_t next = 0;

		for (size_t i = 1; i < 5; i++)
			if (turns__is_before(&t, OWNERS[i], OWNERS[next]))
				next = i;
		turns__take(&t, OWNERS[next]);
		served[next]++;
	}
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(served[i], OWNERS[i] == QUOTA_ROOT ? 40 : 10);
	assert_false(turns__is_before(&t, 7, 7));
}

/* What is refused is not taken, and what was given again counts once. */
TEST(a_refused_amount_is_not_spent)
{
	const struct quota_limit *limit = &quota_row(QUOTA_CODE_COPIES)->all;
	const uint64_t now = 5 * limit->period;
	struct meter m = {};

	for (size_t i = 0; i < limit->limit / 1024; i++)
		assert_true(meter__spend(&m, limit, 1024, now));
	assert_false(meter__spend(&m, limit, 1024, now));
	assert_false(meter__spend(&m, limit, limit->limit / 2 + 1, now + limit->period / 2));
	assert_false(meter__spend(&m, limit, 1, now - 1)); /* CPUs are read one after the other */
	assert_false(meter__spend(&m, limit, limit->limit + 1, now + limit->period + 1));
	assert_true(meter__spend(&m, limit, limit->limit, now + limit->period + 1));
}

/* ---- docs/SECURITY.md ------------------------------------------------------------------------ */

static const char *const units[] = {"KB", "MB", "GB"};

static void print_amount(FILE *out, enum quota_unit unit, uint64_t amount)
{
	unsigned int i = 0;

	if (unit == QUOTA_COUNT && amount >= 1000) {
		print_amount(out, unit, amount / 1000);
		fprintf(out, ",%03llu", (unsigned long long)amount % 1000);
	} else if (unit == QUOTA_COUNT)
		fprintf(out, "%llu", (unsigned long long)amount);
	else if (unit != QUOTA_BYTES && amount % 1000000000 == 0)
		fprintf(out, "%llu s", (unsigned long long)amount / 1000000000);
	else if (unit != QUOTA_BYTES)
		fprintf(out, "%g ms", (double)amount / 1e6);
	else {
		for (amount >>= 10; amount % 1024 == 0 && i < 2; i++)
			amount >>= 10;
		fprintf(out, "%llu %s", (unsigned long long)amount, units[i]);
	}
}

static void print_limit(FILE *out, const struct quota_row *row, const struct quota_limit *l,
			const char *whose)
{
	if (!l->limit)
		return;
	if (!l->period || row->unit == QUOTA_BYTES || row->unit == QUOTA_COUNT) {
		print_amount(out, row->unit, l->limit);
	} else {
		fprintf(out, "%g %% of %s, ", 100.0 * (double)l->limit / (double)l->period,
			row->unit == QUOTA_CPU ? "a CPU" : "the time");
		print_amount(out, row->unit, l->limit);
		fprintf(out, " at once");
	}
	if (l->period && (row->unit == QUOTA_BYTES || row->unit == QUOTA_COUNT)) {
		fprintf(out, l->grows ? ", and as much again each " : " in ");
		print_amount(out, QUOTA_TIME, l->period);
	}
	fprintf(out, " %s; ", l->spares_root ? "for all but root" : whose);
}

static void print_row(FILE *out, const struct quota_row *row)
{
	static const char *const policies[] = {
		[QUOTA_REFUSE] = "refused",
		[QUOTA_EVICT] = "the user with the most gives way",
		[QUOTA_DEFER] = "waits",
	};

	fprintf(out, "| %s | ", row->text);
	print_limit(out, row, &row->each, "each");
	print_limit(out, row, &row->user, "a user");
	print_limit(out, row, &row->all, "in all");
	fprintf(out, "%s | %s |\n", policies[row->policy],
		row->books < OUTSIDE_THING_COUNT ? outside_things[row->books].name : "");
}

/* Limits that other rooms define. */
static void print_constants(FILE *out)
{
	const struct {
		const char *text;
		enum quota_unit unit;
		uint64_t amount;
		const char *whose;
	} constants[] = {
		{"requests about functions in the memory of runtimes", QUOTA_COUNT,
		 CODE_QUERIES_MAX, "each"},
		{"… of all", QUOTA_COUNT, CODE_QUERIES_ALL, "in all"},
		{"… that wait", QUOTA_COUNT, CODE_WAITING_MAX, "each"},
		{"names and lines of functions that are kept", QUOTA_BYTES, CODE_LIFE_BYTES,
		 "each"},
		{"… of all", QUOTA_BYTES, CODE_FUNCTIONS_BYTES, "in all"},
		{"places in code of runtimes", QUOTA_COUNT, MANAGED_PLACES_MAX, "a window"},
		{"processes with a runtime in the kernel's table; the one sampled longest ago is "
		 "evicted",
		 QUOTA_COUNT, RUNTIME_PROCESSES, "in all"},
		{"reading where runtimes have code, for unwinding, in 1 s", QUOTA_CPU,
		 QUOTA_SECOND / MADE_CODE_DIVISOR, "each and in all"},
		{"paths of control groups; then the half used last is kept", QUOTA_COUNT,
		 GROUP_PATHS_MAX, "in all"},
		{"… their bytes", QUOTA_BYTES, GROUP_PATHS_BYTES, "in all"},
		{"building an unwind table: .eh_frame", QUOTA_BYTES, BUILD_LIMITS.input, "each"},
		{"… Go's table", QUOTA_BYTES, BUILD_LIMITS.go, "each"},
		{"… rows", QUOTA_COUNT, BUILD_LIMITS.rows, "each"},
		{"… memory", QUOTA_BYTES, BUILD_LIMITS.memory, "each"},
		{"… CPU time", QUOTA_CPU, BUILD_LIMITS.cpu_ns, "each"},
		{"mappings in the kernel's tables", QUOTA_COUNT, UNWIND_PLACES_MAX, "each"},
		{"known mappings", QUOTA_COUNT, MAPPING_TABLE_MAX, "each"},
		{"… of all", QUOTA_COUNT, WORLD_MAPPINGS_MAX, "in all"},
		{"records of processes and mappings that wait", QUOTA_BYTES, LIVE_SIDEBAND_BYTES,
		 "in all"},
		{"bytes read of a perf map or jitdump with several names (hard links)", QUOTA_BYTES,
		 JIT_LINKED_MAX, "each"},
		{"users with rows of their own in the books of the outside", QUOTA_COUNT,
		 OUTSIDE_USERS_MAX, "in all"},
		{"rings for all CPUs (`--ring-mem`)", QUOTA_BYTES, RING_BYTES_DEFAULT, "in all"},
	};

	for (size_t i = 0; i < sizeof(constants) / sizeof(constants[0]); i++) {
		fprintf(out, "| %s | ", constants[i].text);
		print_amount(out, constants[i].unit, constants[i].amount);
		fprintf(out, " %s | |\n", constants[i].whose);
	}
	fprintf(out, "| rules of code without CFI, in half of a table's time: steps through it | ");
	print_amount(out, QUOTA_COUNT, BUILD_LIMITS.code_steps);
	fprintf(out, " each | %s |\n", outside_things[OUTSIDE_CODE].name);
}

static void print_table(FILE *out)
{
	fprintf(out, "| what | limit, and what is over it | counted as |\n|---|---|---|\n");
	for (int i = 0; i < QUOTA_THING_COUNT; i++)
		print_row(out, quota_row(i));
	print_constants(out);
}

DOCUMENT_TABLE(print_table);
