/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to other nodes, in three layers: a single use of memory by LNet
 * (struct lst_md), a request with its bulk data and its reply (struct
 * lst_call), and a console that asks many nodes and waits (struct lst_ask).
 * Thread: that of the CPT, in a turn; or, with LNET_RUN_POLL, the one that
 * calls lnet_poll().
 */
#ifndef SERVICES_LST_CALL_H
#define SERVICES_LST_CALL_H

#include <sys/queue.h>

#include <ulnet/loop.h>

#include "message.h"

/* the CPT that owns sessions, and runs consoles */
#define LST_HOME 0
#define LST_TICK UINT64_C(1000000000) /* ns between two checks of deadlines */

/* The object whose @member @p points to. */
#define LST_OF(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

/* ---- a single use of memory ---- */

/*
 * A message to be sent, data to be fetched, or a message that is expected. The
 * caller embeds the structure, and sets done. lst_md_put(), lst_md_get() and
 * lst_md_expect() take the structure and the memory, if they succeed, until
 * done is called: once, on the same CPT, and never inside of these functions.
 */
struct lst_md {
	void (*done)(struct lst_md *md);
	/* Valid in done(): */
	int status;	      /* 0; or -errno: the message was not moved */
	uint32_t length;      /* bytes that were moved */
	struct ulnet_id peer; /* of an expected message: who sent it */
	/* of an expected message: the NID it was sent to */
	struct ulnet_nid self;
	/* Private: */
	struct ulnet_md_handle handle;
	enum ulnet_event_type wanted;
	bool busy;
};

/* Where a message goes, or comes from. */
struct lst_address {
	struct lnet *node;
	/* the NID to send from; LNET_NID_ANY: LNet chooses */
	struct ulnet_nid self;
	/* for an expected message wildcards are allowed */
	struct ulnet_id peer;
	unsigned int portal;
	uint64_t bits;
	/* us, for sending and fetching; an expected message has no timeout */
	uint64_t timeout;
};

/* Return 0; or -errno: nothing has begun, and done is not called. lst_md_put()
 * sends, lst_md_get() fetches. */
int lst_md_put(struct lst_md *md, const struct lst_address *to, void *memory,
	       uint32_t length);
int lst_md_get(struct lst_md *md, const struct lst_address *from, void *memory,
	       uint32_t length);
/* Expects one PUT (@op LNET_MD_OP_PUT) or one GET (LNET_MD_OP_GET) of at most
 * @length bytes. Returns as lst_md_put(). */
int lst_md_expect(struct lst_md *md, const struct lst_address *from,
		  unsigned int op, void *memory, uint32_t length);
/* Ends @md: done is called soon, unless it has been called already. */
void lst_md_cancel(struct lst_md *md);

/* ---- a request ---- */

/* A request to another node, with its reply and bulk data. Owner: the CPT that
 * begins it, and that ends it at its deadline (lst_calls_tick()). */
struct lst_call {
	/* Set by the caller: */
	void (*done)(struct lst_call *call);
	/* Valid in done(). 0: msg is the reply, which may tell an error;
	 * -ETIMEDOUT, -EBADMSG: there was no reply, or none that can be read;
	 * -ECANCELED; other errors: the request was not sent. */
	int status;
	struct lst_msg msg;
	uint32_t moved; /* bytes of bulk data that were moved */
	/* Private: */
	struct lst_calls *calls;
	TAILQ_ENTRY(lst_call) all;
	struct lst_md request, reply, bulk;
	uint64_t deadline; /* ns: when the call ends without a reply */
	/* how many of the request, the reply and the bulk data are with LNet */
	unsigned int busy;
	uint8_t out[LST_MSG_SIZE], in[LST_MSG_SIZE];
};

/* The calls of a CPT. */
struct lst_calls {
	struct lnet *node;
	unsigned int cpt;
	/* the next match bits for replies and bulk data; the first ones are
	 * random */
	uint64_t next_id;
	TAILQ_HEAD(lst_call_list, lst_call) all;
	/* read by any thread */
	_Atomic uint32_t sent, dropped, expired, errors;
};

void lst_calls_init(struct lst_calls *calls, struct lnet *node,
		    unsigned int cpt);
/* Ends the calls whose deadline has passed. @now: ns. Returns whether there are
 * any calls. */
bool lst_calls_tick(struct lst_calls *calls, uint64_t now);

/* The bulk data of a call. */
struct lst_bulk {
	/* LNET_MD_OP_PUT: the peer sends them; LNET_MD_OP_GET: the peer fetches
	 * them; 0: there are none */
	unsigned int op;
	void *memory;
	uint32_t length;
};

/* Sends the request @msg, and sets its ids. @bulk: NULL: there are no bulk
 * data. @seconds: how long to wait for the reply. Returns 0: done is called
 * once, later, and until then @call and the memory are borrowed; or -errno:
 * done is not called. */
int lst_call_begin(struct lst_calls *calls, struct lst_call *call,
		   struct ulnet_id to, struct lst_msg *msg,
		   const struct lst_bulk *bulk, uint32_t seconds);
/* Cancels @call: it ends soon, with -ECANCELED unless something has failed
 * before. */
void lst_call_cancel(struct lst_call *call);

/* ---- a console: console.c ---- */
/* Thread: the one that calls lnet_poll(), for a node of LNET_RUN_POLL. */

/* A request of a console to one node. */
struct lst_ask {
	struct ulnet_id to;
	struct lst_msg msg;   /* the request; its ids are filled in */
	struct lst_bulk bulk; /* if op is 0: there are no bulk data */
	/* 0: reply is the answer; -errno: there is none. */
	int status;
	struct lst_msg reply;
	/* Private: */
	struct lst_call call;
	unsigned int *pending;
};

/* Sends all @n requests at once. On a node without interfaces of the user's
 * choice, lnet_ni_reach() adds those that are needed. Returns when each request
 * has its answer, or after @seconds. */
void lst_ask_all(struct lst_calls *calls, struct lst_ask *asks, unsigned int n,
		 uint32_t seconds);
/* Lets the node work for @us microseconds. */
void lst_ask_wait(struct lst_calls *calls, uint64_t us);

#endif
