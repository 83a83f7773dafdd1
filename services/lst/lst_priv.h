/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the self-test's service have in common: lst.c, slot.c,
 * frame.c, session.c. */
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
	struct lst_slot *next; /* the next one in cpt->unposted */
	enum lst_service service;
	struct lst_md request, bulk, reply;
	struct lst_msg msg; /* the request, decoded */
	uint8_t in[LST_MSG_SIZE], out[LST_MSG_SIZE];
	void *memory; /* memory for bulk data; NULL if memory_size is 0 */
	uint32_t memory_size, length;
	bool used; /* the memory was used since the last lst_slots_tick() */
};

struct lst_cpt {
	struct lst *lst;
	unsigned int index;
	bool closing;
	struct lst_slot *slots, *unposted;
	unsigned int nslots;
	struct ulnet_timer repost; /* tries again to post the unposted slots */
	/* For client tests: */
	struct lst_calls calls;
	unsigned int lanes; /* lanes of tests that run on this CPT */
	/* Units that send their next request in another turn, when the timer
	 * resume fires. (An RPC with this node itself takes no time, so a turn
	 * in which a unit goes on at once would never end.) */
	TAILQ_HEAD(lst_units, lst_unit) yielding;
	struct ulnet_timer resume;
	/* Units whose last request failed before LST_TICK had passed: they go
	 * on at the next tick. (Otherwise those whose destination cannot be
	 * reached would send, and fail, in each turn.) */
	struct lst_units pausing;
	/* checks the deadlines of calls, and on LST_HOME that of the session;
	 * frees memory that slots do not use; resumes units */
	struct ulnet_timer tick;
};

/* Initializes the slots of @cpt, and posts none. Any thread. */
void lst_slots_init(struct lst_cpt *cpt);
/* lst_slots_open() posts slots, lst_slots_close() posts none any more; both on
 * the CPT. If posting fails, slots that were posted before stay posted until
 * the node is gone. */
int lst_slots_open(struct lst_cpt *cpt);
void lst_slots_close(struct lst_cpt *cpt);
void lst_slots_free(struct lst_cpt *cpt);
/* Frees the memory of slots that have not used it since the last call. Returns
 * whether any slot has memory. On the CPT. */
bool lst_slots_tick(struct lst_cpt *cpt);
/* Sends @reply, of which it sets the type, and then posts the slot again. */
void lst_slot_reply(struct lst_slot *slot, struct lst_msg *reply);
/* Posts the slot again, without an answer. */
void lst_slot_drop(struct lst_slot *slot);
/* Fetches @length bytes of bulk data into slot->memory. @done is lst_md.done of
 * slot->bulk. Returns 0; or -ENOMEM or an error of lst_md_get(): then @done is
 * not called. */
int lst_slot_fetch(struct lst_slot *slot, uint32_t length,
		   void (*done)(struct lst_md *md));

/* ---- sessions: session.c; on LST_HOME, if nothing else is said ---- */

struct lst_test;
struct lst_lane;

/* A part of a client test: sends RPCs to one destination, one after the other.
 * Owner: the CPT of its lane. */
struct lst_unit {
	struct lst_test *test;
	struct lst_lane *lane;
	struct ulnet_id target;
	int64_t left; /* requests that are still to be sent; < 0: no limit */
	struct lst_call call;
	uint8_t *memory; /* memory for bulk data */
	uint32_t sequence;
	bool running;
	uint64_t began;		       /* ns: when its last request was sent */
	TAILQ_ENTRY(lst_unit) waiting; /* in lst_cpt.yielding or .pausing */
};

/* The units of a test on one CPT. LST_HOME posts work to that CPT to run the
 * units, and to abort them. When that is done, the CPT posts the work back.
 * Until then the test is not freed. */
struct lst_lane {
	struct lst_test *test;
	struct lst_cpt *cpt;
	struct ulnet_work run, abort;
	/* LST_HOME has posted the work run, or the work abort, to the CPT of
	 * the lane, and it has not come back */
	bool running, aborting;
	unsigned int nunits;
	/* written by the lane's CPT: number of units that have not ended */
	unsigned int left;
};

struct lst_test {
	TAILQ_ENTRY(lst_test) entry;
	struct lst_session *session;
	bool is_client, stop_on_error;
	_Atomic bool stopping; /* written by LST_HOME */
	uint32_t service;
	int32_t loop;
	struct lst_brw_params brw; /* length and offset are in bytes */
	unsigned int nunits;
	_Atomic unsigned int running; /* number of units that have not ended */
	/* number of works of its lanes that are posted and not back */
	unsigned int busy;
	struct lst_unit *units;
	/* array: a lane for each CPT; NULL: the test is not a client's */
	struct lst_lane *lanes;
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
	/* how many MAKE requests there were for it, minus REMOVE requests */
	uint32_t refs;
	/* ns: when it was made; when it ends */
	uint64_t made, deadline;
	_Atomic uint32_t brw_errors, ping_errors; /* written by any CPT */
	/* number of tests that are busy */
	unsigned int busy;
	unsigned int ntests, nbatches;
	bool ended; /* in lst.zombies; freed when no test is busy */
	TAILQ_HEAD(lst_batch_list, lst_batch) batches;
};

/* Makes the session of @lst that @request describes. NULL: no memory. */
struct lst_session *lst_session_make(struct lst *lst,
				     const struct lst_msg *request);
/* Ends the session: aborts its tests, and frees it when they have ended. */
void lst_session_end(struct lst_session *s);
/* A test of @s is not busy any more. May free @s. */
void lst_session_test_ended(struct lst_session *s);
struct lst_batch *lst_session_batch(struct lst_session *s, uint64_t id);
/* Finds or makes the batch @id. NULL: there are too many, or there is no
 * memory. (lst_session_batch() only finds it; NULL: there is none.) */
struct lst_batch *lst_session_need_batch(struct lst_session *s, uint64_t id);
/* Returns how many client tests of @b are running. */
unsigned int lst_batch_active(const struct lst_batch *b);
/* Makes the test of @s that @request describes. @ids: the destinations of a
 * client test, borrowed until return. Returns 0; -ENOMEM: a limit is reached,
 * or there is no memory. */
int lst_test_new(struct lst_session *s, const struct lst_msg *request,
		 const struct ulnet_id *ids, struct lst_test **test_p);
void lst_test_run(struct lst_test *t);
/* Makes the units of @t send no more requests. @abort: also cancels the
 * requests that are under way. */
void lst_test_stop(struct lst_test *t, bool abort);
/* Sends the next requests of the @units, which are cpt->yielding or
 * cpt->pausing. On the CPT. */
void lst_units_resume(struct lst_units *units);

/* ---- framework requests: frame.c ---- */

void lst_frame_serve(struct lst_slot *slot);
/* Are requests of tests (brw, ping) served now? Any thread. */
bool lst_serves_tests(const struct lst *lst);

/* ---- the service ---- */

struct lst {
	struct ulnet_layer layer; /* the first field: see lst_on_close() */
	struct lnet *node;
	struct lst_conf conf; /* configuration, with the defaults filled in */
	unsigned int ncpts;
	struct lst_cpt *cpts;
	/* Written by any CPT: */
	_Atomic uint32_t received, dropped, errors;
	_Atomic uint64_t bulk_got, bulk_put;
	/* this node is in a session; written by LST_HOME */
	_Atomic bool member;
	_Atomic uint32_t sequence; /* number of the next ping */
	/* Only LST_HOME uses these: */
	struct lst_session *session; /* NULL: none */
	LIST_HEAD(lst_session_list, lst_session) zombies;
	unsigned int units; /* number of units of all tests */
	uint64_t unit_bytes;
};

/* Arms cpt->tick, which checks deadlines, unless it is armed. On the CPT. */
void lst_watch(struct lst_cpt *cpt);

#endif
