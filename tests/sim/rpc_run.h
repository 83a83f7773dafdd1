/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the RPC scenario share. */
#ifndef TESTS_SIM_RPC_RUN_H
#define TESTS_SIM_RPC_RUN_H

#include <stdbool.h>
#include <ulnet/rpc.h>
#include <ulnet/service.h>

#include "tests/sim/cluster.h"
#include "tests/sim/rules.h"
#include "tests/sim/scenario.h"

#define NODES_MAX   200
#define CLIENTS_MAX 4	 /* of each node */
#define SERVICES    2	 /* of each node */
#define METHODS	    7	 /* of each service */
#define CALLS	    1500 /* that a run begins by itself */
#define CALLS_MAX   4096
#define BULKS	    3	  /* of a call, at most */
#define MAX_REPLY   65536 /* longer than any reply */
/* LNet gives up what it can neither send nor be sure of. */
#define LNET_TIME (50 * SEC)

/* What happens more often in a run than in others. */
enum weather {
	WEATHER_MIXED,
	WEATHER_DELAYED, /* messages take many times a call's patience */
	WEATHER_ONE_WAY, /* nothing arrives, in one direction */
	WEATHER_SLOW,	 /* services take ten times as long as they used to */
	WEATHER_CROWDED, /* many calls at once */
	WEATHER_FICKLE,	 /* callers change their minds */
	WEATHER_FAIR,	 /* no faults; but slow services, and many calls */
	WEATHERS, /* those that come by chance */
	WEATHER_SPARED = WEATHERS, /* rails fail, but for one, and nothing else:
				    * calls that have the time succeed */
};

struct run;
struct simqp_fabric;
struct job;
struct member;
struct tally;

enum method {
	METHOD_INLINE, /* replies inside */
	METHOD_LATER,  /* inline, replies after a time */
	METHOD_WORK,   /* by a worker, who may keep his place for a time */
	METHOD_HIGH,   /* by a worker, of high priority */
	METHOD_BULK,   /* moves all bulk of the call, then replies */
	METHOD_AGAIN,  /* the same, by a worker that waits for that; may be
			* executed more than once */
	METHOD_STORE,  /* inline, replies after a time; exactly once */
};

extern const char *const method_names[METHODS];

static inline enum ulrpc_semantics method_semantics(enum method m)
{
	if (m == METHOD_INLINE || m == METHOD_WORK || m == METHOD_AGAIN)
		return ULRPC_IDEMPOTENT;
	return m == METHOD_HIGH || m == METHOD_STORE ? ULRPC_EXACTLY_ONCE
						     : ULRPC_AT_MOST_ONCE;
}

static inline bool method_has_bulk(enum method m)
{
	return m == METHOD_BULK || m == METHOD_AGAIN;
}

struct test_bulk {
	struct test_call *call;
	struct ulrpc_bulk *bulk; /* NULL: closed */
	char *buf;		 /* NULL: retired */
	uint32_t size;
	enum ulrpc_bulk_access access;
};

/* A call, and all that is known of it, on both sides. */
struct test_call {
	struct run *run;
	struct member *from;
	struct ulrpc_call *call; /* a reference to be given back, or NULL */
	uint64_t id;
	uint64_t deadline; /* ns; UINT64_MAX: none */
	unsigned int life; /* of the caller's node */
	unsigned int target, service;
	unsigned int cpt; /* where its callback belongs */
	enum method method;
	bool starting;	     /* ulrpc_call() has not returned */
	bool failed;	     /* it was not taken */
	bool waiting;	     /* ulrpc_call_wait(): no callback */
	bool ended, dead; /* dead: with its node, which crashed */
	bool canceled;
	bool given_up;	  /* some time ago, and its server has been told */
	uint64_t probe; /* struct probe; 0: it need not succeed */
	/* audit_lapses() when it began, on a connection that its server knew;
	 * else 0 */
	uint64_t lapses;
	unsigned int store; /* audit_store() then */
	enum ulrpc_semantics semantics;
	uint32_t reply_length, reply_max;
	struct ulrpc_outcome outcome;
	/* at the servers */
	unsigned int executed;
	unsigned int vain; /* executed without effect: nothing was stored */
	struct test_bulk bulks[BULKS];
	unsigned int nbulks;
};

/* What a request's body begins with. */
struct test_body {
	uint64_t magic, id;
	uint32_t length; /* of all of it */
	uint32_t reply_length;
	uint32_t delay; /* us */
	int32_t status; /* of the reply */
	uint8_t service, method, target;
	bool refuse; /* the handler cannot read it, it will say */
	bool early;  /* it replies before its bulk has been moved */
	bool blocks; /* its worker waits, rather than have it answered later */
	bool asks;   /* and calls another service meanwhile */
	bool stores_first; /* before it takes its time */
	bool disk_full;	   /* nothing can be stored */
};
#define TEST_MAGIC UINT64_C(0x756c727063626f64)

struct test_method {
	struct member *member;
	unsigned int service;
	enum method method;
};

/* Of a durable service. */
struct store {
	unsigned int number; /* of this run; 0: the service has none */
	uint8_t incarnation[16];
	const struct lnet_sim *sim;
	struct stored *first;
};

struct test_client {
	struct ulrpc_client *client;
	unsigned int target, service;
};

struct member {
	struct run *run;
	unsigned int index;
	unsigned int nnids;
	struct ulnet_nid nids[RAILS_MAX];
	enum ulnet_discovery discovery; /* when nobody has changed it */
	unsigned int life;
	bool busy;     /* it waits for something: no process ends then */
	bool shutting; /* requests may be left behind any time */
	bool crashing; /* time may pass, as its workers have to return */
	struct ulrpc *rpc;
	struct ulrpc_service *services[SERVICES];
	unsigned int starts[SERVICES]; /* of each */
	unsigned int opens;	       /* of RPC */
	uint64_t opened;	       /* ns: the last one */
	struct store stores[SERVICES];
	struct test_method methods[SERVICES][METHODS];
	struct test_client clients[CLIENTS_MAX];
	struct job *jobs;
};

/* What becomes of a transaction. */
enum job_store {
	STORE_NONE, /* there is none */
	STORE_BEGUN,
	STORE_COMMITTED,
	STORE_ABORTED,
};

/* A request that its handler has not answered yet, or whose bulk is moved. */
struct job {
	struct job *next, **prev; /* member.jobs */
	struct member *m;
	struct ulrpc_request *request; /* NULL: answered */
	struct test_body body;
	unsigned int start; /* of its service */
	unsigned int life;  /* of its node */
	enum job_store store;
	unsigned int store_number;
	uint64_t store_until; /* ns: the record is of no use after that */
	struct ulrpc_record record;
	bool delayed;	    /* the clock has it */
	bool blocked;	    /* a worker has it, which waits */
	bool dead;	    /* its node crashed */
	uint64_t deadline;  /* job_deadline(), at last; 0: not asked for */
	uint64_t expires;   /* of the request, when looked at last */
	bool lost;  /* its service has ended: the request is the handler's */
	int status; /* of bulk */
	unsigned int moving;
	struct {
		struct job *job;
		char *buf; /* NULL: retired */
		uint32_t size;
		bool get;
	} parts[BULKS];
};

struct run {
	struct lnet_sim *sim;
	struct member *members; /* NODES_MAX */
	unsigned int n;
	unsigned int left; /* calls to begin */
	struct test_call *calls[CALLS_MAX];
	unsigned int ncalls, first; /* first that may not have ended */
	unsigned int nstores;
	bool named; /* nodes have the same ids after each start */
	struct splits splits;
	struct links links;
	struct rules rules;
	struct simqp_fabric *fabric; /* NULL: there are no queue pairs */
	bool registered;     /* nodes with odd numbers register all memory */
	struct rails *rails; /* NULL: rails do not change in this scenario */
	struct liar *liar;   /* NULL: there is none */
	bool quiet; /* nobody calls: LNet's own operations only */
	struct ulrpc_conf conf;
	unsigned int steps;
	bool waiting;	     /* some node waits: no other may begin to */
	const char *awaited; /* NULL: nothing, or that has been said */
	uint64_t wait_began;
	bool healed;   /* nothing new begins any more */
	uint64_t calm; /* ns: since when there are no faults; 0: there are */
	bool over;
	enum weather weather;
	bool slow, harsh, tiny, late;
	unsigned int spare; /* WEATHER_SPARED: the rail, of all nodes */
	uint64_t longest; /* ns that a request took, so far */
	struct tally *tally;
};

/* Nobody minds if it is executed more than once. */
static inline bool call_is_idempotent(const struct test_call *c)
{
	return c->semantics == ULRPC_IDEMPOTENT &&
	       method_semantics(c->method) == ULRPC_IDEMPOTENT;
}

static inline uint64_t rnd(struct run *r, uint64_t below)
{
	return lnet_sim_random(r->sim, below);
}

static inline bool chance(struct run *r, unsigned int percent)
{
	return rnd(r, 100) < percent;
}

/* Does the network as a whole do what it should? */
static inline bool is_fair(const struct run *r)
{
	return r->weather == WEATHER_FAIR || r->weather == WEATHER_SPARED;
}

/* Contents, of a call with its id. */
static inline uint64_t request_pattern(uint64_t id)
{
	return id * 8;
}
static inline uint64_t reply_pattern(uint64_t id)
{
	return id * 8 + 1;
}
static inline uint64_t bulk_pattern(uint64_t id, unsigned int i)
{
	return id * 8 + 2 + i;
}

/* ---- rpc_play.c ---- */

/* The scenario's own: makes the cluster. Called by scenario_play(). */
int scenario_set_up(struct run *r);
/* Short times, so that all of them pass in a run. */
void play_conf(struct run *r);
/* Adds node @index, whose NIDs are set. Returns what lnet_sim_node_add() does.
 */
int play_node(struct run *r, unsigned int index);

/* ---- rpc_caller.c ---- */

/* One call more, of whatever kind. */
void caller_call(struct member *m);
/* A call that has to succeed. */
struct probe {
	uint64_t us;	 /* without faults, in which it does; 0: it need not,
			  * and takes time, until it is canceled */
	uint64_t faults; /* us that these may last first */
	bool idempotent; /* or of any kind */
};
/* One of each client there is. */
void caller_probe(struct member *m, const struct probe *probe);
/* On a worker: one that is waited for. */
void caller_ask(struct member *m);
void caller_cancel_one(struct run *r);
/* All that have no deadline, or would last longer than the run. */
void caller_cancel_long(struct run *r);
/* Those that were canceled some time ago are given up: no handler of theirs may
 * begin any more. */
void caller_given_up(struct run *r);
/* Calls of a node that crashed. */
void caller_crashed(struct member *m);
/* RPC of this node has been closed: all have ended. */
void caller_closed(struct member *m);
/* No call is past its deadline. Returns how many have not ended. */
unsigned int caller_check(struct run *r);
/* The simulation is no more: returns how many have not ended. */
unsigned int caller_left(struct run *r);
void caller_free(struct run *r);

/* ---- rpc_outcome.c ---- */

void outcome_wrong(const struct test_call *c, const char *what);
/* Violations: the call has ended in a way that it must not. */
void outcome_check(const struct test_call *c, const char *reply, size_t length);

/* ---- rpc_server.c ---- */

/* The call has its effects, at @m. Violation: again, or though it must not. */
void execute(struct test_call *c, const struct member *m);

void server_start(struct member *m, unsigned int service);
void server_stop(struct member *m, unsigned int service);
/* What it has not answered by now is of no interest any more. */
void server_stopped(struct member *m, unsigned int service);
void server_crashed(struct member *m);
unsigned int server_jobs(const struct member *m);
/* Answers what is not answered, and frees. */
void server_free(struct member *m);

struct job *job_new(struct member *m, struct ulrpc_request *request,
		    const struct test_body *body);
/* Frees it, if nobody has it any more. */
void job_check(struct job *j);
void job_answer(struct job *j, int status);
/* One of its bulks: false, it is not there. */
bool part_begin(struct job *j, unsigned int i, struct iovec iov[2]);
void part_end(struct job *j, unsigned int i, int status, uint64_t moved);

/* ---- rpc_store.c ---- */

/* Another one, with nothing in it. */
void store_make(struct run *r, struct store *s);
void store_free(struct store *s);
/* ulrpc_durable.lookup; @arg: the store. */
int store_lookup(void *arg, const void *key, void **value_p, size_t *length_p);
/* The effects of the job, and the record of its reply, are to be stored
 * together: both, or, if its process ends before that, neither. */
void store_begin(struct job *j);
void store_commit(struct job *j);
/* The job is about to be answered with @status. Returns what with; 0: with
 * body.status, as stored. */
int store_end(struct job *j, int status);

/* ---- rpc_work.c: handlers that block ---- */

/* On a worker: takes its time, and waits for what it needs; then answers. */
void work_block(struct job *j);
/* When the caller's time is over, us of the clock: UINT64_MAX, never; 0: now.
 * Never sooner than was known before. */
uint64_t job_deadline(struct job *j);

/* ---- rpc_faults.c ---- */

/* Something is waited for outside of handlers, one thing at a time. Violation:
 * for too long. */
void wait_begin(struct member *m, const char *what);
void wait_end(struct member *m);
void wait_check(struct run *r);

void fault_one(struct run *r);
/* One of the network, or of a server. */
void fault_outside(struct run *r);
void fault_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b);
/* Ends all faults: everybody is there, with all services. */
void fault_heal(struct run *r);
/* RPC of a node, with its services and clients. */
int member_open(struct member *m);
void member_clients(struct member *m);

/* ---- rpc_verbs.c: queue pairs, instead of simlnd, below nets of o2ib ---- */
/* Without verbs_new() nothing of it happens. */

/* Before the first node. As sim_verbs(). */
int verbs_new(struct run *r);
/* Devices for a node whose NIDs are set, before it starts. */
void verbs_device(struct run *r, const struct member *m);
/* One direction is like this or that from now on. */
void verbs_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b);
void verbs_fault(struct run *r);
/* All devices are there, and nothing is between them. */
void verbs_heal(struct run *r);
/* What the fabric has counted. */
void verbs_tell(const struct run *r, scenario_tell_fn tell, void *arg);

/* ---- rails.c: rails that come, fail, and go; and LNet's own traffic ---- */
/* Without rails_new() nothing of it happens. */

/* For @r->n nodes whose NIDs are set. */
void rails_new(struct run *r);
/* The node has started. */
void rails_start(struct run *r, unsigned int index, struct lnet *node);
/* Its process has died. */
void rails_crashed(struct run *r, unsigned int index);
/* Something happens, perhaps. */
void rails_step(struct run *r);
/* All are there again, and nothing is between them. */
void rails_heal(struct run *r);
/* Lets time pass until all know each other, and all is well. Violation: that
 * takes too long. */
void rails_settle(struct run *r);
/* Nothing new begins. */
void rails_over(struct run *r);
/* The simulation is no more. Returns what is left that should not be. */
unsigned int rails_free(struct run *r);

/* ---- rails_views.c: what nodes know of each other ---- */

/* For nodes that do not exist yet: who discovers whom. */
void views_plan(struct run *r);
/* An administrator changes something. */
void views_disturb(struct run *r);
/* All of that is taken back. */
void views_heal(struct run *r);
/* Nodes ask for each other. */
void views_meet(struct run *r);
/* Do all know what they should, some time after the faults? Else, if @say, a
 * violation. */
bool views_are_right(struct run *r, bool say);

/* ---- rails_liar.c: a node that claims what is not its own ---- */

/* One more node, which has a NID on each of so many nets. As
 * lnet_sim_node_add(). */
int liar_new(struct run *r, unsigned int nets);
/* It tells somebody something, if there is a liar. */
void liar_step(struct run *r);
/* The simulation is no more. */
void liar_free(struct run *r);

/* ---- rpc_tally.c ---- */

enum happening {
	SERVER_CRASHES,
	CALLER_CRASHES,
	NODE_IS_BACK,
	RPC_CLOSES,
	SERVICE_STOPS,
	SERVICE_LEAVES,
	CLIENT_CLOSES,
	CALL_IS_CANCELED,
	NI_IS_DOWN,
	PARTITION,
	CONNECTION_CUT,
	NI_IS_DELETED,
	NI_IS_ADDED,
	RULES_CHANGE,
	RAIL_IS_CUT,
	LINK_IS_ONE_WAY,
	PEER_IS_ADDED,
	PEER_IS_DELETED,
	DISCOVERY_IS_SET,
	LIE_IS_TOLD,
	HANDLER_IS_SLOW,
	STORE_IS_LOST,
	COMMIT_IS_LOST,
	DEVICE_IS_REMOVED,
	QUEUES_ARE_SILENT,
	QUEUES_ARE_CUT,
	VERBS_CALL_FAILS,
	HAPPENINGS
};

struct tally *tally_new(void);
void tally_count(struct run *r, enum happening what);
/* Of a call. */
void tally_end(struct run *r, const struct ulrpc_outcome *o);
/* What RPC has counted on a node, where it is about to end. */
void tally_rpc(struct member *m);
/* At the end. Violation: connections were lost, or calls sent again, in a run
 * without faults. */
void tally_check(const struct run *r);

/* ---- rpc_audit.c ---- */

/* Violations: calls wait for nothing, or counts of calls are wrong. Between
 * turns. */
void audit_waiting(struct member *m);
/* Violations: the time of requests got shorter, or they are extended too often.
 * Between turns. */
void audit_times(struct member *m);
/* The job is about to be answered. */
void audit_answer(const struct job *j);
/* Do all handlers know which of their calls were given up? @report: else those
 * are violations. */
bool audit_given_up(const struct member *m, bool report);
/* Is there nothing that belongs to a call or to a request? Else, if @say, a
 * violation. */
bool audit_rpc(struct member *m, bool say);
/* As long as this is the same, the node has forgotten no call of @service's. */
uint64_t audit_lapses(const struct member *m, unsigned int service);
/* Does the node know the connection of @client, and serve it? */
bool audit_knows(const struct member *m, unsigned int service,
		 const struct ulrpc_client *client);
/* The number of the service's store; 0: it has none, or @client knows of
 * another one. */
unsigned int audit_store(const struct member *m, unsigned int service,
			 const struct ulrpc_client *client);

#endif
