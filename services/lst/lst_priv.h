/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the self-test's service share: lst.c, slot.c, frame.c,
 * session.c, unit.c. */
#ifndef SERVICES_LST_LST_PRIV_H
#define SERVICES_LST_LST_PRIV_H

#include <stdatomic.h>

#include "call.h"
#include "lst.h"

#define NS_PER_S UINT64_C(1000000000)

/* ---- requests of others: slot.c ---- */

struct lst_cpt;

/* Room for one request, from when it is posted until the reply has left. */
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
	struct ulnet_timer again; /* posts those that could not be posted */
	/* Of client tests: */
	struct lst_calls calls;
	unsigned int lanes; /* that run here */
	/* Units that go on when the timer fires: an RPC with this very node
	 * takes no longer than a turn, and the turn would never end. */
	TAILQ_HEAD(lst_units, lst_unit) yielding;
	struct ulnet_timer go;
	struct ulnet_timer tick; /* deadlines of calls; on LST_HOME, sessions */
};

/* Any thread; nothing is posted yet. */
void lst_slots_init(struct lst_cpt *cpt);
/* What is posted on error is so until the node is gone. These two: owner. */
int lst_slots_open(struct lst_cpt *cpt);
void lst_slots_close(struct lst_cpt *cpt);
void lst_slots_free(struct lst_cpt *cpt);
/* Answers, and takes the slot back. What a reply has to say of the request, its
 * type and where it goes, is filled in. */
void lst_slot_reply(struct lst_slot *slot, struct lst_msg *reply);
/* No answer. */
void lst_slot_drop(struct lst_slot *slot);
/* Fetches @length bytes into slot->memory; @done is called as that of struct
 * lst_md, or -ENOMEM. */
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
	int64_t left; /* < 0: no end */
	struct lst_call call;
	uint8_t *memory; /* of bulk data */
	uint32_t sequence;
	bool running;
	uint64_t began; /* the turn in which its request was sent */
	TAILQ_ENTRY(lst_unit) yield;
};

/* The units of a test on one CPT, that of their peers. It is begun, and told to
 * abort, by work that goes there and comes back when it is done; until then the
 * test is not freed. */
struct lst_lane {
	struct lst_test *test;
	struct lst_cpt *cpt;
	struct ulnet_work run, abort;
	bool running, aborting;	   /* such work has not come back; LST_HOME */
	unsigned int nunits, left; /* units; those that run: its CPT */
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
	_Atomic unsigned int running; /* units */
	unsigned int busy;	      /* lanes with work under way */
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
	uint32_t refs;				  /* of its console */
	uint64_t made, deadline;		  /* ns */
	_Atomic uint32_t brw_errors, ping_errors; /* any CPT */
	unsigned int busy;			  /* tests */
	unsigned int ntests, nbatches;
	bool ended; /* it is a zombie: freed as its last test ends */
	TAILQ_HEAD(lst_batch_list, lst_batch) batches;
};

/* NULL: no memory. */
struct lst_session *lst_session_make(struct lst *lst,
				     const struct lst_msg *request);
/* Units are aborted; the rest follows in the background. */
void lst_session_end(struct lst_session *s);
void lst_session_test_ended(struct lst_session *s);
struct lst_batch *lst_session_batch(struct lst_session *s, uint64_t id);
/* Found, or made. NULL: there are too many, or no memory. */
struct lst_batch *lst_session_need_batch(struct lst_session *s, uint64_t id);
/* Client tests of it that run. */
unsigned int lst_batch_active(const struct lst_batch *b);

/* ---- client tests: unit.c ---- */

/* A test as @request wants it, without destinations in a server's; @ids:
 * borrowed until return. -ENOMEM: limits, too. */
int lst_test_new(struct lst_session *s, const struct lst_msg *request,
		 const struct ulnet_id *ids, struct lst_test **test_p);
/* Nothing of it runs. */
void lst_test_free(struct lst_test *t);
void lst_test_run(struct lst_test *t);
/* @abort: RPCs under way, too. */
void lst_test_stop(struct lst_test *t, bool abort);
/* Goes on with the units that wait for another turn. Owner. */
void lst_units_go(struct lst_cpt *cpt);

/* ---- framework requests: frame.c ---- */

void lst_frame_serve(struct lst_slot *slot);
/* May tests of anybody be served now? Any thread. */
bool lst_serves_tests(const struct lst *lst);

/* ---- the service ---- */

struct lst {
	struct ulnet_layer layer; /* first */
	struct lnet *node;
	struct lst_conf conf; /* without zeros */
	unsigned int ncpts;
	struct lst_cpt *cpts;
	/* Any CPT: */
	_Atomic uint32_t received, dropped, errors;
	_Atomic uint64_t bulk_got, bulk_put;
	_Atomic bool member;	   /* is there a session? LST_HOME writes */
	_Atomic uint32_t sequence; /* of pings */
	/* LST_HOME: */
	struct lst_session *session; /* NULL: none */
	LIST_HEAD(lst_session_list, lst_session) zombies;
	unsigned int units;
	uint64_t unit_bytes;
};

/* Looks after deadlines from now on. Owner. */
void lst_watch(struct lst_cpt *cpt);

#endif
