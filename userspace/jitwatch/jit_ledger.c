/* SPDX-License-Identifier: BSD-2-Clause */
#include "jitwatch/jit_ledger.h"

#include <stdatomic.h>

#include "base/minmax.h"

void jit_ledger__go_on(struct jit_ledger *l, const struct jit_ledger *old)
{
	_Atomic uint64_t *all = l->all;

	*l = *old;
	l->all = all;
	l->count = (uint32_t)min_u64(l->count, JIT_ACCOUNTS);
	l->rest.files = 0;
	for (uint32_t i = 0; i < l->count; i++)
		l->accounts[i].files = 0;
}

/* Those who come when there are very many users share an account. */
static struct jit_account *account_of(struct jit_ledger *l, uint32_t user)
{
	for (uint32_t i = 0; i < l->count; i++)
		if (l->accounts[i].user == user)
			return &l->accounts[i];
	if (l->count >= JIT_ACCOUNTS)
		return &l->rest;
	l->accounts[l->count] = (struct jit_account){.user = user};
	return &l->accounts[l->count++];
}

void jit_ledger__deny(struct jit_ledger *l, uint32_t user)
{
	account_of(l, user)->denied = true;
}

void jit_ledger__charge(struct jit_ledger *l, uint32_t user, uint64_t bytes)
{
	account_of(l, user)->bytes += bytes;
	if (l->all)
		l->bytes = atomic_fetch_add(l->all, bytes) + bytes;
	else
		l->bytes += bytes;
}

bool jit_ledger__add_file(struct jit_ledger *l, uint32_t user)
{
	struct jit_account *account = account_of(l, user);

	if (account->files >= JIT_USER_FILES)
		return false;
	account->files++;
	return true;
}

void jit_ledger__drop_file(struct jit_ledger *l, uint32_t user)
{
	struct jit_account *account = account_of(l, user);

	if (account->files)
		account->files--;
}

/* What a limit has grown to. */
static uint64_t grown(const struct jit_ledger *l, uint64_t limit, uint64_t now)
{
	uint64_t ms = now > l->began ? (now - l->began) / 1000000 : 0;

	return limit + limit / (JIT_LEDGER_GROWTH / 1000000) * ms;
}

enum jit_file_state jit_ledger__ask(struct jit_ledger *l, uint32_t user, uint64_t now)
{
	const struct jit_account *account = account_of(l, user);

	if (account->denied)
		return JIT_FILE_STATE_HUNG;
	if (account->bytes >= grown(l, JIT_USER_BYTES, now))
		return JIT_FILE_STATE_USER_LIMIT;
	return (l->all ? *l->all : l->bytes) >= grown(l, JIT_ALL_BYTES, now)
		       ? JIT_FILE_STATE_LIMIT
		       : JIT_FILE_STATE_FOLLOWED;
}
