/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests to other nodes, in three layers: a single use of memory by LNet
 * (struct lst_md), a request with its bulk data and its reply (struct
 * lst_call), and a console that asks many nodes and waits (struct lst_ask).
 * Thread: a CPT of the node, in a turn, or whoever drives the node.
 */
#ifndef SERVICES_LST_CALL_H
#define SERVICES_LST_CALL_H

#include <sys/queue.h>

#include <ulnet/loop.h>

#include "message.h"

#define LST_HOME 0		      /* the CPT of sessions, and of consoles */
#define LST_TICK UINT64_C(1000000000) /* ns between looks at deadlines */

/* The object whose @member @p points to. */
#define LST_OF(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

/* ---- a single use of memory ---- */

/*
 * A message that is sent, data that are fetched, or a message that is expected.
 * The caller embeds the structure, and sets done. From a begin that succeeds
 * until done is called, the structure and the memory belong to LNet. done is
 * called once, on the same CPT, and never inside of the function that began.
 */
struct lst_md {
	void (*done)(struct lst_md *md);
	/* In done(): */
	int status;	       /* 0; negative errno: it did not happen */
	uint32_t length;       /* bytes moved */
	struct ulnet_id peer;  /* expected: where it came from */
	struct ulnet_nid self; /* expected: the NID it was sent to */
	/* Private: */
	struct ulnet_md_handle handle;
	enum ulnet_event_type wanted;
	bool busy;
};

/* Where a message goes, or comes from. */
struct lst_address {
	struct lnet *node;
	struct ulnet_nid self; /* sent from; LNET_NID_ANY: LNet chooses */
	struct ulnet_id peer;  /* expected: may be wildcards */
	unsigned int portal;
	uint64_t bits;
	uint64_t timeout; /* us, of what is sent and fetched */
};

/* 0, or a negative errno: nothing has begun, and done is not called. */
int lst_md_put(struct lst_md *md, const struct lst_address *to, void *memory,
	       uint32_t length);
int lst_md_get(struct lst_md *md, const struct lst_address *from, void *memory,
	       uint32_t length);
/* One PUT, or with LNET_MD_OP_GET one GET, of at most @length bytes. */
int lst_md_expect(struct lst_md *md, const struct lst_address *from,
		  unsigned int op, void *memory, uint32_t length);
/* done is called soon, unless it has been. */
void lst_md_cancel(struct lst_md *md);

/* ---- a request ---- */

/* It lives on the CPT that begins it, whose tick ends it at its deadline. */
struct lst_call {
	/* Set by the caller: */
	void (*done)(struct lst_call *call);
	/* In done(): 0: msg is the reply, whatever its status; -ETIMEDOUT,
	 * -EBADMSG: no such reply; -ECANCELED; or why it was not sent. */
	int status;
	struct lst_msg msg;
	uint32_t moved; /* bytes of bulk data */
	/* Private: */
	struct lst_calls *calls;
	TAILQ_ENTRY(lst_call) all;
	struct lst_md request, reply, bulk;
	uint64_t deadline; /* ns */
	unsigned int busy; /* how many of those three are */
	uint8_t out[LST_MSG_SIZE], in[LST_MSG_SIZE];
};

/* The calls of a CPT. */
struct lst_calls {
	struct lnet *node;
	unsigned int cpt;
	uint64_t next_id; /* of replies and bulk data; at first random */
	TAILQ_HEAD(lst_call_list, lst_call) all;
	_Atomic uint32_t sent, dropped, expired, errors; /* any thread reads */
};

void lst_calls_init(struct lst_calls *calls, struct lnet *node,
		    unsigned int cpt);
/* Ends the calls whose deadline has passed. False: there are no calls. */
bool lst_calls_tick(struct lst_calls *calls, uint64_t now);

/* What a call moves besides its messages. */
struct lst_bulk {
	unsigned int op; /* LNET_MD_OP_PUT: it comes; _GET: it is fetched; 0 */
	void *memory;
	uint32_t length;
};

/* Sends the request @msg, whose ids are set here. @bulk NULL: none. 0: done is
 * called once, later; until then @call and the memory are borrowed. A negative
 * errno: done is not called. */
int lst_call_begin(struct lst_calls *calls, struct lst_call *call,
		   struct ulnet_id to, struct lst_msg *msg,
		   const struct lst_bulk *bulk, uint32_t seconds);
/* Ends the call soon, with -ECANCELED unless its reply has come. */
void lst_call_cancel(struct lst_call *call);

/* ---- a console: console.c ---- */
/* On the thread that drives a node of LNET_RUN_POLL. */

/* A question to one node. */
struct lst_ask {
	struct ulnet_id to;
	struct lst_msg msg;   /* the request; ids are filled in */
	struct lst_bulk bulk; /* op 0: none */
	/* The answer: 0, or a negative errno: there is none. */
	int status;
	struct lst_msg reply;
	/* Private: */
	struct lst_call call;
	unsigned int *pending;
};

/* Asks all @n at once. Returns when each has its answer, or after @seconds. */
void lst_ask_all(struct lst_calls *calls, struct lst_ask *asks, unsigned int n,
		 uint32_t seconds);
/* Drives the node for @us. */
void lst_ask_wait(struct lst_calls *calls, uint64_t us);

#endif
