/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A request to another node, its bulk data and its reply. A call lives on the
 * CPT that begins it, whose tick ends those that take too long. Thread: that
 * CPT.
 */
#ifndef SERVICES_LST_CALL_H
#define SERVICES_LST_CALL_H

#include <sys/queue.h>

#include <ulnet/loop.h>

#include "md.h"
#include "message.h"

#define LST_HOME 0		      /* the CPT of sessions, and of consoles */
#define LST_TICK UINT64_C(1000000000) /* ns between looks at deadlines */

struct lst_call {
	/* Set by the caller: */
	void (*done)(struct lst_call *call);
	/* In done(): 0: msg is the reply, whatever its status; -ETIMEDOUT,
	 * -EBADMSG: no such reply; -ECANCELED; or why it was not sent. */
	int status;
	struct lst_msg msg;
	uint32_t moved; /* bytes of bulk data */
	/* Its own: */
	struct lst_calls *calls;
	TAILQ_ENTRY(lst_call) all;
	struct lst_md request, reply, bulk;
	uint64_t deadline; /* ns */
	unsigned int busy; /* of those three */
	uint8_t out[LST_MSG_SIZE], in[LST_MSG_SIZE];
};

/* Those of a CPT. */
struct lst_calls {
	struct lnet *node;
	unsigned int cpt;
	uint64_t next_id; /* of replies and bulk data; at first random */
	TAILQ_HEAD(lst_call_list, lst_call) all;
	_Atomic uint32_t sent, dropped, expired, errors; /* any thread reads */
};

void lst_calls_init(struct lst_calls *calls, struct lnet *node,
		    unsigned int cpt);
/* Ends those whose time is over. Is there any left? */
bool lst_calls_tick(struct lst_calls *calls, uint64_t now);

/* What a call moves besides its messages. */
struct lst_bulk {
	unsigned int op; /* LNET_MD_OP_PUT: it comes; _GET: it is fetched; 0 */
	void *memory;
	uint32_t length;
};

/* Sends @msg, a request, whose ids are filled in; @bulk NULL: none. 0, and done
 * is called once, later; or a negative errno, and it is not. The call, and the
 * memory, are borrowed until then. */
int lst_call_begin(struct lst_calls *calls, struct lst_call *call,
		   struct ulnet_id to, struct lst_msg *msg,
		   const struct lst_bulk *bulk, uint32_t seconds);
/* It ends soon, with -ECANCELED unless its reply is there. */
void lst_call_cancel(struct lst_call *call);

#endif
