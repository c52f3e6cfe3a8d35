/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stranger too many drops the oldest, not the newest: the browser's connections are strangers for a millisecond,
 * until their request is read. To drop is to shut the socket down; its reader gets the end of the stream and closes
 * it.
 */
#include "serve/server_private.h"

#include <stdlib.h>
#include <sys/socket.h>

struct peer *peers__add(struct peers *peers, int fd, uint64_t now)
{
	struct peer *peer = calloc(1, sizeof(*peer));

	if (!peer)
		return NULL;
	*peer = (struct peer){.peers = peers, .fd = fd, .since = now};
	LIST_INSERT_HEAD(&peers->list, peer, link);
	peers->count++;
	peers->strangers++;
	return peer;
}

/* One that still has its connection, and has not shown the token. */
static bool is_stranger(const struct peer *peer)
{
	return !peer->trusted && !peer->dropped;
}

void peer__remove(struct peer *peer)
{
	if (!peer)
		return;
	LIST_REMOVE(peer, link);
	peer->peers->count--;
	peer->peers->strangers -= is_stranger(peer);
	free(peer);
}

static void drop(struct peer *peer)
{
	if (peer->dropped)
		return;
	peer->peers->strangers -= is_stranger(peer);
	peer->dropped = true;
	shutdown(peer->fd, SHUT_RDWR);
}

void peers__make_room(struct peers *peers)
{
	struct peer *oldest = NULL, *peer;

	if (peers->strangers < STRANGERS_MAX)
		return;
	for (peer = LIST_FIRST(&peers->list); peer; peer = LIST_NEXT(peer, link))
		if (is_stranger(peer))
			oldest = peer;
	if (oldest)
		drop(oldest);
}

void peers__drop_slow(struct peers *peers, uint64_t now)
{
	struct peer *peer;

	for (peer = LIST_FIRST(&peers->list); peer; peer = LIST_NEXT(peer, link))
		if (!peer->answered && now > peer->since + REQUEST_SECONDS * 1000000000ull)
			drop(peer);
}

void peer__trust(struct peer *peer)
{
	peer->peers->strangers -= is_stranger(peer);
	peer->trusted = true;
}

void peer__is_answered(struct peer *peer)
{
	peer->answered = true;
}

void peer__is_done(struct peer *peer, uint64_t now)
{
	peer->answered = false;
	peer->since = now;
}
