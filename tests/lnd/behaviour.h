/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A behaviour is something that every LND must do, written as a function that
 * gets a fixture and reports failures to it. This header also has what
 * behaviours of several topics use.
 */
#ifndef TESTS_LND_BEHAVIOUR_H
#define TESTS_LND_BEHAVIOUR_H

#include "tests/lnd/box.h"

#define TWO   1024 /* needs two nodes */
#define HASTY 2048 /* waits until a peer has been silent for too long */

struct behaviour {
	const char *name;
	unsigned int needs; /* RIG_*, TWO, HASTY */
	void (*fn)(struct fx *fx);
};

struct topic {
	const struct behaviour *list;
	unsigned int n;
};

extern const struct topic topic_message; /* message.c */
extern const struct topic topic_stream;	 /* stream.c */
extern const struct topic topic_ending;	 /* ending.c */

#define PORTAL 10
#define LAZY   20
#define EMPTY  63 /* nobody ever attaches anything */

/* Each direction between the two nodes; a single node has one. */
#define for_each_way(fx, from, to)                             \
	for (unsigned int from = 0, to = 1;                    \
	     from < ((fx)->rig->can & RIG_ONE_NODE ? 1u : 2u); \
	     from++, to = 1 - from)

/* ---- message.c ---- */

/* Fails unless messages get through in both directions. */
void still_works(struct fx *fx);
/* As still_works(), for a peer that was away: an LND that remembers failures
 * may not connect to it for a while. */
void works_again(struct fx *fx);
/* Fails unless the PUTs to @b, of @size bytes, arrived in the order in which
 * they were sent, if this LND promises that. */
void expect_order(struct fx *fx, struct box *b, uint32_t size);

/* ---- stream.c ---- */

/* The boxes of one direction, of two that are busy at once. */
struct stream {
	struct box *src, *dst;
	unsigned int from, to;
};

bool stream_open(struct fx *fx, struct stream *s, unsigned int from, uint32_t n,
		 uint32_t size, uint64_t timeout);
void stream_put(struct stream *s, uint32_t i);
/* Fails unless each PUT's outcome says what really happened to it. */
void expect_truth(struct fx *fx, const struct stream *s);
/* Sends @n PUTs with ACK in each direction at once. */
void many(struct fx *fx, uint32_t n, uint32_t size);
/* Sends a PUT and a GET in each direction, which nobody answers. */
void unanswered(struct fx *fx, uint64_t timeout);

#endif
