/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connections, and which of them to close: a crowd of idle or slow connections must not keep the browser out.
 * Peers that have not shown the token are *strangers*.
 */
#ifndef SERVE_PEERS_H
#define SERVE_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#define PEERS_MAX	128
#define STRANGERS_MAX	64
#define REQUEST_SECONDS 10 /* for all of a request, however it comes */

struct peers {
	struct peer *first; /* the youngest */
	unsigned int count, strangers;
};

/* A connection. All zero but what peers__add() sets. */
struct peer {
	struct peers *peers;
	struct peer *next, **link;
	int fd;		/* not ours */
	uint64_t since; /* it was accepted, or its last request was answered: CLOCK_MONOTONIC ns */
	bool trusted, answered, dropped;
};

/* NULL: no memory */
struct peer *peers__add(struct peers *peers, int fd, uint64_t now);
/* It has closed; frees it. NULL is fine. */
void peer__remove(struct peer *peer);

/* Before another one is accepted: drops the oldest stranger, if there are as many as there may be. */
void peers__make_room(struct peers *peers);
/* Drops those whose request takes too long to arrive. `now` may be before the last peer__is_done(). */
void peers__drop_slow(struct peers *peers, uint64_t now);

/* It has shown the token. */
void peer__trust(struct peer *peer);
/* Its request is complete; the rest is up to us. */
void peer__is_answered(struct peer *peer);
/* The next request may come. */
void peer__is_done(struct peer *peer, uint64_t now);

#endif
