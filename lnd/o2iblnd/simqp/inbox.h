/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is to happen on a loop, each at its time: packets that arrive, connect
 * messages, completions. One item is handled at a time, out of a timer of the
 * loop. Inside simqp only.
 */
#ifndef LND_O2IBLND_SIMQP_INBOX_H
#define LND_O2IBLND_SIMQP_INBOX_H

#include "lnd/o2iblnd/simqp/fabric.h"

struct simqp_wr;
struct simqp_inbox;

enum simqp_kind {
	/* of queue pairs: data */
	SIMQP_DATA,
	SIMQP_ACK,   /* all up to seq */
	SIMQP_RNR,   /* seq has met no receive */
	SIMQP_NAK,   /* seq has failed, by wc */
	SIMQP_ABORT, /* the peer's has given up on receives */
	/* of queue pairs: connect messages */
	SIMQP_REP,
	SIMQP_RTU,
	SIMQP_REJ,
	SIMQP_DREQ,
	SIMQP_GONE, /* the active side gives up */
	/* of queue pairs: from nowhere else */
	SIMQP_RESOLVED,
	SIMQP_REQUEST,
	SIMQP_FAIL,
	/* of their completion queues */
	SIMQP_RECEIVED,
	SIMQP_SENT,
	/* of ports */
	SIMQP_REQ,
	SIMQP_CHANGED,
};

struct simqp_item {
	struct list link; /* simqp_inbox.items */
	uint64_t at;	  /* ns */
	enum simqp_kind kind;
	struct simqp_way *way; /* over which it comes; NULL: none */
	uint64_t from;	       /* id of the queue pair that has sent it */
	struct simqp_wr *wr;   /* a reference; DATA */
	uint64_t seq;	       /* DATA, ACK, RNR, NAK */
	int status;	       /* errno, or reason of a rejection */
	/* Completions, NAK: */
	enum ib_wc_status wc;
	void *cookie;
	uint32_t length;
	uint32_t nwr; /* work requests that have ended with it */
	/* CHANGED: */
	bool up, removed;
	const char *why;
	/* Connect messages: */
	uint16_t src_port, service;
	uint8_t private[IB_PRIVATE_ACCEPT_SIZE];
};

typedef void (*simqp_handle_fn)(struct simqp_inbox *b, struct simqp_item *it);

struct simqp_inbox {
	struct list items; /* by time */
	struct timer timer;
	struct loop *loop;
	/* Borrows the item until return; may end the inbox. */
	simqp_handle_fn handle;
};

struct simqp_item *simqp_item_new(enum simqp_kind kind);
void simqp_item_free(struct simqp_item *it);

void simqp_inbox_init(struct simqp_inbox *b, struct loop *loop,
		      simqp_handle_fn handle);
/* Drops what is in it. */
void simqp_inbox_fini(struct simqp_inbox *b);
/* Takes @it, which is handled at @at, behind all that are until then. Never
 * before this returns. */
void simqp_inbox_put(struct simqp_inbox *b, struct simqp_item *it, uint64_t at);
/* Drops what has come over some way. */
void simqp_inbox_cut(struct simqp_inbox *b);

#endif
