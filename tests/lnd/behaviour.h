/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A behaviour: what every LND must do, as a function that gets a fixture, and
 * complains to it. Here is also what behaviours of several topics use.
 */
#ifndef TESTS_LND_BEHAVIOUR_H
#define TESTS_LND_BEHAVIOUR_H

#include "tests/lnd/box.h"

#define TWO   1024 /* needs two nodes */
#define HASTY 2048 /* waits until a peer has been silent for too long */

struct behaviour {
	const char *name;
	unsigned int needs; /* RIG_*, TWO */
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

/* Each way between the two nodes; one node has one. */
#define for_each_way(fx, from, to)                             \
	for (unsigned int from = 0, to = 1;                    \
	     from < ((fx)->rig->can & RIG_ONE_NODE ? 1u : 2u); \
	     from++, to = 1 - from)

/* ---- message.c ---- */

/* Proof that the nodes are still on speaking terms, both ways. */
void still_works(struct fx *fx);
/* A peer that was away may be refused for a while by an LND that remembers how
 * it failed. Then everything works again. */
void works_again(struct fx *fx);
/* The PUTs to @b, of @size bytes, came in the order in which they were sent, if
 * this LND says so. */
void expect_order(struct fx *fx, struct box *b, uint32_t size);
/* The operation was never answered: it has ended at its deadline, and whether
 * it was delivered is not known. */
void expect_timed_out(struct fx *fx, const struct box *b);

/* ---- stream.c ---- */

/* Each way at once: the boxes of one of them. */
struct stream {
	struct box *src, *dst;
	unsigned int from, to;
};

bool stream_open(struct fx *fx, struct stream *s, unsigned int from, uint32_t n,
		 uint32_t size, uint64_t timeout);
void stream_put(struct stream *s, uint32_t i);
/* What was said of each PUT is what happened to it. */
void expect_truth(struct fx *fx, const struct stream *s);
/* @n PUTs with ACK each way at once. */
void many(struct fx *fx, uint32_t n, uint32_t size);
/* A PUT and a GET each way that nobody answers. */
void unanswered(struct fx *fx, uint64_t timeout);

#endif
