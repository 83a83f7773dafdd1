/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the self-test's service share: lst.c, slot.c, frame.c,
 * session.c. */
#ifndef SERVICES_LST_LST_PRIV_H
#define SERVICES_LST_LST_PRIV_H

#include <stdatomic.h>

#include "call.h"
#include "lst.h"

#define NS_PER_S UINT64_C(1000000000)

/* ---- requests of others: slot.c ---- */

struct lst_cpt;

/* A buffer for one request, from its posting until the reply has left. */
struct lst_slot {
	struct lst_cpt *cpt;
	struct lst_slot *next; /* of cpt->unposted */
	enum lst_service service;
	struct lst_md request, bulk, reply;
	struct lst_msg msg; /* the request, decoded */
	uint8_t in[LST_MSG_SIZE], out[LST_MSG_SIZE];
	void *memory; /* of bulk data */
	uint32_t memory_size, length;
};

struct lst_cpt {
	struct lst *lst;
	unsigned int index;
	bool closing;
	struct lst_slot *slots, *unposted;
	unsigned int nslots;
	struct ulnet_timer repost; /* posts the unposted slots */
	/* Of client tests: */
	struct lst_calls calls;
	unsigned int lanes; /* that run here */
	/* Units that send their next request in another turn, by the timer: an
	 * RPC with this very node takes no time, and its turn would never
	 * end. */
	TAILQ_HEAD(lst_units, lst_unit) yielding;
	struct ulnet_timer resume;
	struct ulnet_timer tick; /* deadlines of calls; on LST_HOME, sessions */
};

/* Any thread; posts nothing. */
void lst_slots_init(struct lst_cpt *cpt);
/* Post and withdraw slots, on the CPT. Slots that were posted before an error
 * stay so until the node is gone. */
int lst_slots_open(struct lst_cpt *cpt);
void lst_slots_close(struct lst_cpt *cpt);
void lst_slots_free(struct lst_cpt *cpt);
/* Sends @reply, of which type and address are set here, and posts the slot
 * again. */
void lst_slot_reply(struct lst_slot *slot, struct lst_msg *reply);
/* Posts the slot again, without an answer. */
void lst_slot_drop(struct lst_slot *slot);
/* Fetches @length bytes into slot->memory; @done is called as lst_md.done.
 * -ENOMEM, or an error of lst_md_get(): it is not called. */
int lst_slot_fetch(struct lst_slot *slot, uint32_t length,
		   void (*done)(struct lst_md *md));

/* ---- sessions: session.c; on LST_HOME, if nothing else is said ---- */

struct lst_test;
struct lst_lane;

/* RPCs to one destination, one after the other. Owner: the CPT of its lane. */
struct lst_unit {
	struct lst_test *test;
	struct lst_lane *lane;
	struct ulnet_id target;
	int64_t left; /* requests to send; < 0: without end */
	struct lst_call call;
	uint8_t *memory; /* of bulk data */
	uint32_t sequence;
	bool running;
	uint64_t began; /* the time of the turn in which its request was sent */
	TAILQ_ENTRY(lst_unit) yield;
};

/* The units of a test on one CPT. LST_HOME posts work to that CPT to run them,
 * and to abort them. The CPT posts it back when it is done; until then the test
 * is not freed. */
struct lst_lane {
	struct lst_test *test;
	struct lst_cpt *cpt;
	struct ulnet_work run, abort;
	bool running, aborting; /* that work is posted; LST_HOME */
	unsigned int nunits;
	unsigned int left; /* units that have not ended; its CPT */
};

struct lst_test {
	TAILQ_ENTRY(lst_test) entry;
	struct lst_session *session;
	bool is_client, stop_on_error;
	_Atomic bool stopping; /* LST_HOME writes */
	uint32_t service;
	int32_t loop;
	struct lst_brw_params brw; /* in bytes */
	unsigned int nunits;
	_Atomic unsigned int running; /* units that have not ended */
	unsigned int busy;	      /* posted work of its lanes */
	struct lst_unit *units;
	struct lst_lane *lanes; /* of each CPT */
};

struct lst_batch {
	TAILQ_ENTRY(lst_batch) entry;
	uint64_t id;
	TAILQ_HEAD(lst_test_list, lst_test) tests;
};

struct lst_session {
	LIST_ENTRY(lst_session) zombie;
	struct lst *lst;
	struct lst_session_id id;
	char name[LST_NAME_SIZE];
	uint32_t features;
	uint32_t refs;				  /* how often it was made */
	uint64_t made, deadline;		  /* ns */
	_Atomic uint32_t brw_errors, ping_errors; /* any CPT */
	unsigned int busy;			  /* tests with posted work */
	unsigned int ntests, nbatches;
	bool ended; /* a zombie: freed when no test is busy */
	TAILQ_HEAD(lst_batch_list, lst_batch) batches;
};

/* NULL: no memory. */
struct lst_session *lst_session_make(struct lst *lst,
				     const struct lst_msg *request);
/* Aborts the session's tests. It is freed when they have ended. */
void lst_session_end(struct lst_session *s);
/* A test is not busy any more. */
void lst_session_test_ended(struct lst_session *s);
struct lst_batch *lst_session_batch(struct lst_session *s, uint64_t id);
/* Found, or made. NULL: there are too many, or no memory. */
struct lst_batch *lst_session_need_batch(struct lst_session *s, uint64_t id);
/* The number of its client tests that run. */
unsigned int lst_batch_active(const struct lst_batch *b);
/* Makes the test that @request describes, the session's. @ids: the destinations
 * of a client test, borrowed until the return. -ENOMEM: a limit, or no
 * memory. */
int lst_test_new(struct lst_session *s, const struct lst_msg *request,
		 const struct ulnet_id *ids, struct lst_test **test_p);
void lst_test_run(struct lst_test *t);
/* Its units send no more requests. @abort: cancels those under way, too. */
void lst_test_stop(struct lst_test *t, bool abort);
/* Sends the next requests of the units that yield. On the CPT. */
void lst_units_resume(struct lst_cpt *cpt);

/* ---- framework requests: frame.c ---- */

void lst_frame_serve(struct lst_slot *slot);
/* Are requests of tests (brw, ping) served now? Any thread. */
bool lst_serves_tests(const struct lst *lst);

/* ---- the service ---- */

struct lst {
	struct ulnet_layer layer; /* first */
	struct lnet *node;
	struct lst_conf conf; /* with defaults */
	unsigned int ncpts;
	struct lst_cpt *cpts;
	/* Any CPT: */
	_Atomic uint32_t received, dropped, errors;
	_Atomic uint64_t bulk_got, bulk_put;
	_Atomic bool member;	   /* session is not NULL; LST_HOME writes */
	_Atomic uint32_t sequence; /* of pings */
	/* LST_HOME: */
	struct lst_session *session; /* NULL: none */
	LIST_HEAD(lst_session_list, lst_session) zombies;
	unsigned int units; /* of all tests */
	uint64_t unit_bytes;
};

/* Arms the tick of the CPT, which looks at deadlines. On the CPT. */
void lst_watch(struct lst_cpt *cpt);

#endif
