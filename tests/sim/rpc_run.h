/* SPDX-License-Identifier: BSD-3-Clause */
/* The types and functions that the files of the RPC scenario share. */
#ifndef TESTS_SIM_RPC_RUN_H
#define TESTS_SIM_RPC_RUN_H

#include <stdbool.h>
#include <ulnet/context.h>
#include <ulnet/intercept.h>
#include <ulnet/rpc.h>
#include <ulnet/service.h>

#include "tests/sim/cluster.h"
#include "tests/sim/rules.h"
#include "tests/sim/scenario.h"

#define NODES_MAX   200
#define CLIENTS_MAX 4	 /* of each node */
#define SERVICES    2	 /* of each node */
/* The portal of service 1, which asks for checksums of bodies. */
#define PORTAL_CHECKED 20
#define METHODS	    7	 /* of each service */
#define CALLS	    1500 /* calls that a run begins by itself */
#define CALLS_MAX   4096
#define BULKS	    3	  /* of a call, at most */
#define MAX_REPLY      65536 /* longer than any reply but those in pieces */
#define IN_PIECES      2100000 /* bytes of a reply that is fetched in pieces */
/* bytes of replies that are fetched at a time, in some runs */
#define NARROW	       (20000 + ANNEX_ROOM)
#define LENT_LENGTH    50000   /* bytes of a request that is lent */
/* after this time LNet gives up a message of unknown fate */
#define LNET_TIME (50 * SEC)

/* What happens in a run more often than in others. */
enum weather {
	WEATHER_MIXED,
	WEATHER_DELAYED, /* messages take many times as long as a call waits */
	WEATHER_ONE_WAY, /* nothing arrives, in one direction */
	WEATHER_SLOW,	 /* services are suddenly ten times as slow */
	WEATHER_CROWDED, /* there are many calls at once */
	WEATHER_FICKLE,	 /* callers cancel calls */
	WEATHER_FAIR,	 /* no faults, but slow services and many calls */
	WEATHERS,	 /* the number of those that are drawn by chance */
	/* only rails fail, all but one: a call that has the time succeeds */
	WEATHER_SPARED = WEATHERS,
};

struct run;
struct simqp_fabric;
struct job;
struct member;
struct tally;

enum method {
	METHOD_INLINE, /* handled in the loop, replies at once */
	METHOD_LATER,  /* handled in the loop, replies after a time */
	METHOD_WORK,   /* handled by a worker, who may block for a time */
	METHOD_HIGH,   /* handled by a worker, with high priority */
	METHOD_BULK,   /* moves all bulk of the call, then replies */
	/* as METHOD_BULK, by a worker that waits for it; may be executed more
	 * than once */
	METHOD_AGAIN,
	/* handled in the loop, replies after a time; exactly once */
	METHOD_STORE,
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

/* A call, and all that both sides know of it. */
struct test_call {
	struct run *run;
	struct member *from;
	struct ulrpc_call *call; /* a reference, to be given back; or NULL */
	/* the call goes with metadata, and comes back with some; or NULL */
	struct ulrpc_context *context;
	uint64_t id;
	uint64_t began;	   /* ns */
	uint64_t deadline; /* ns; UINT64_MAX: none */
	/* the call does not wait for a server */
	bool hasty;
	unsigned int life; /* of the caller's node */
	unsigned int target, service;
	unsigned int cpt; /* the one that runs its callback */
	enum method method;
	bool starting;	  /* ulrpc_call() has not returned yet */
	bool failed;	  /* ulrpc_call() has refused it */
	bool waiting;	  /* by ulrpc_call_wait(), without a callback */
	bool ended, dead; /* dead: its node has crashed */
	bool canceled;
	bool given_up; /* canceled long enough ago for its server to know */
	/* us without faults within which it has to succeed (struct probe); 0:
	 * it need not succeed */
	uint64_t probe;
	/* audit_lapses() when it began, if its server knew the connection; else
	 * 0 */
	uint64_t lapses;
	uint64_t restarts;  /* audit_restarts() when it began */
	unsigned int store; /* audit_store() when it began */
	enum ulrpc_semantics semantics;
	uint32_t reply_length, reply_max, reply_limit;
	struct ulrpc_outcome outcome;
	/* executions, on all servers */
	unsigned int executed;
	unsigned int vain; /* executions without effect: nothing was stored */
	struct test_bulk bulks[BULKS];
	unsigned int nbulks;
	char trace[ULRPC_TRACE_SIZE]; /* "": the call is not sampled */
	uint64_t answered;	      /* ns: when a handler replied last */
	/* A server has crashed that may not have written its span. */
	bool span_lost;
};

/* The begin of a request's body. */
struct test_body {
	uint64_t magic, id;
	uint32_t length; /* length of the whole body */
	uint32_t reply_length;
	uint32_t delay; /* us */
	int32_t status; /* of the reply */
	uint8_t service, method, target;
	bool refuse; /* the handler says that it cannot decode the request */
	bool early;  /* the reply is sent before the bulk has been moved */
	bool blocks; /* its worker blocks, rather than answer later */
	bool asks;   /* ... and calls another service meanwhile */
	bool stores_first; /* it stores before it waits */
	bool disk_full;	   /* storing fails */
	bool annexed;	   /* the call has metadata */
};
#define TEST_MAGIC UINT64_C(0x756c727063626f64)

/* ---- metadata: rpc_annex.c ---- */

/* More bytes than metadata and details take, in a request or a reply. */
#define ANNEX_ROOM 512

/* Gives @c, which has a number, a context with metadata, or none. */
void annex_begin(struct test_call *c);
/* At the server: checks the metadata of the request with @b, and adds some, and
 * details, to its reply. */
void annex_serve(const struct member *m, struct ulrpc_request *request,
		 const struct test_body *b);
/* Checks what has come back with @c, which has ended. */
void annex_check(const struct test_call *c);

/* ---- spans: rpc_spans.c ---- */

/* From now on the RPC of @m writes spans, until it is closed or crashes. */
void spans_start(struct member *m);
/* The node is to crash: spans of requests that it is serving may be lost. */
void spans_crashing(struct member *m);
/* The RPC of @m is closed, or has crashed. */
void spans_stop(struct member *m);
/* Gives @c, which has a number, a trace, or none. */
void spans_trace(struct test_call *c);
/* After the simulation: compares all spans with all calls. Returns how many
 * are wrong. */
unsigned int spans_wrong(struct run *r);

/* ---- interceptors: rpc_intercept.c ---- */

/* Adds the interceptors of @m to the configuration of its RPC, if it has some.
 */
void intercept_conf(struct member *m, struct ulrpc_conf *conf);
void intercept_crashed(struct member *m);
/* Returns of how many ends interceptors have not heard. RPC is closed, and all
 * requests have been answered. */
unsigned int intercept_left(struct member *m);
/* May replies of node @index have metadata of its interceptors? */
bool intercept_adds(unsigned int index);

struct test_method {
	struct member *member;
	unsigned int service;
	enum method method;
};

/* The store of a durable service. */
struct store {
	/* unique in the run; 0: the service has no store */
	unsigned int number;
	uint8_t incarnation[16];
	const struct lnet_sim *sim;
	const struct member *owner;
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
	enum ulnet_discovery discovery; /* unless somebody changes it */
	unsigned int life;
	bool busy;     /* it waits for something: no process may end now */
	bool shutting; /* requests may be abandoned at any time */
	bool crashing; /* its workers have to return, which may take time */
	uint64_t paused; /* ns: until when its process stands still */
	struct ulrpc *rpc;
	struct ulrpc_service *services[SERVICES];
	unsigned int starts[SERVICES]; /* starts of each service */
	unsigned int opens;	       /* how often RPC was opened */
	uint64_t opened;	       /* ns: when RPC was opened last */
	struct store stores[SERVICES];
	struct test_method methods[SERVICES][METHODS];
	struct test_client clients[CLIENTS_MAX];
	struct job *jobs;
	struct ulrpc_spans *spans;
	/* for rpc_intercept.c: what has begun and not ended */
	struct sight *sights;
	struct ulrpc_call_interceptor sees_calls;
	struct ulrpc_request_interceptor sees_requests;
};

/* The state of a transaction. */
enum job_store {
	STORE_NONE, /* no transaction */
	STORE_BEGUN,
	STORE_COMMITTED,
	STORE_ABORTED,
};

/* A request that its handler has not answered, or whose bulk is being moved. */
struct job {
	struct job *next, **prev; /* link in member.jobs */
	struct member *m;
	struct ulrpc_request *request; /* NULL: it was answered */
	struct test_body body;
	unsigned int start; /* the service's start that it belongs to */
	unsigned int life;  /* the node's life that it belongs to */
	enum job_store store;
	unsigned int store_number;
	uint64_t store_until; /* ns: until when the record has to be kept */
	struct ulrpc_record record;
	bool delayed; /* a timer will answer it */
	bool blocked; /* a worker has it, and blocks */
	bool dead;    /* its node crashed */
	/* the last result of job_deadline(); 0: never called */
	uint64_t deadline;
	/* ns: when the request expires, as it was looked at last */
	uint64_t expires;
	/* the service has ended, and left the request to the handler */
	bool lost;
	int status; /* result of the bulk's moves: 0 or -errno */
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
	struct member *members; /* NODES_MAX of them */
	unsigned int n;
	unsigned int left; /* calls that are still to begin */
	struct test_call *calls[CALLS_MAX];
	/* first: the first call that may not have ended */
	unsigned int ncalls, first;
	unsigned int nstores;
	int spans_fd; /* of all spans; 0: not open */
	bool named; /* nodes have the same client ids after each start */
	/* other services have all portals but one: those that are called share
	 * it, but for the one with a fixed portal */
	bool crowded;
	struct splits splits;
	struct links links;
	struct rules rules;
	struct simqp_fabric *fabric; /* NULL: no rail has queue pairs */
	/* what else scenario_tell() calls; NULL: nothing */
	void (*world_tell)(scenario_tell_fn tell, void *arg);
	bool registered;     /* nodes with odd numbers register all memory */
	struct rails *rails; /* NULL: rails do not change */
	struct liar *liar;   /* NULL: no node lies */
	bool quiet;	     /* no calls, only operations of LNet itself */
	struct ulrpc_conf conf;
	struct ulrpc_rules *let_in; /* of all nodes; NULL: none */
	unsigned int steps;
	/* a node waits for something: no other may begin to */
	bool waiting;
	/* what is waited for; NULL: nothing, or it has been reported */
	const char *awaited;
	uint64_t wait_began;
	bool healed;   /* nothing new begins */
	uint64_t calm; /* ns: when faults ended; 0: they go on */
	bool over;
	enum weather weather;
	bool slow, harsh, tiny, late;
	bool pauses; /* processes stand still for a while */
	/* WEATHER_SPARED: the rail that never fails, on all nodes */
	unsigned int spare;
	uint64_t longest; /* ns: the longest that a request has taken so far */
	struct tally *tally;
};

/* May the call be executed more than once? */
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

/* Does the whole network work as it should? */
static inline bool is_fair(const struct run *r)
{
	return r->weather == WEATHER_FAIR || r->weather == WEATHER_SPARED;
}

/* Returns the pattern for what a call @id sends; for its reply; for its bulk
 * number @i. */
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

/* Does the node's process stand still? Then it does nothing, and what others do
 * for it from outside has to wait. */
static inline bool is_paused(const struct member *m)
{
	return lnet_sim_now(m->run->sim) < m->paused;
}

/* When, ns, @m does what is due at @at: later if it stood still then. */
static inline uint64_t member_late(const struct member *m, uint64_t at)
{
	return at > m->paused ? at : m->paused;
}

/* ---- rpc_play.c ---- */

/* Makes the cluster; each scenario has its own. Called by scenario_play(). */
int scenario_set_up(struct run *r);
/* How many flavours there are in this run: 0, if there are no keys, 1 or 3. */
unsigned int run_flavours(const struct run *r);
/* Which flavour client or service @who is opened with. Takes no random numbers.
 */
enum ulrpc_flavour run_flavour(const struct run *r, unsigned int who);
/* Draws how many nodes there are, 2 to 1 + @nodes, and how much they suffer. */
void play_size(struct run *r, unsigned int nodes);
/* Sets short times, so that all of them pass in a run. */
void play_conf(struct run *r);
/* Adds node @index, whose NIDs are set. Returns as lnet_sim_node_add(). */
int play_node(struct run *r, unsigned int index);

/* ---- rpc_caller.c ---- */

/* Begins a call of any kind. */
void caller_call(struct member *m);
/* The terms of a call that has to succeed. */
struct probe {
	/* us without faults within which it succeeds; 0: it need not, and lasts
	 * until it is canceled */
	uint64_t us;
	uint64_t faults; /* us of faults that may come before */
	/* it may be executed more than once, whatever its kind */
	bool idempotent;
};
/* Begins a call on the terms of @probe with each client of the node. */
void caller_probe(struct member *m, const struct probe *probe);
/* Makes a call from a worker, and waits for it. @trace: of the request that the
 * call is made for; "": none. */
void caller_ask(struct member *m, const char *trace);
void caller_cancel_one(struct run *r);
/* Cancels all calls that have no deadline, or would last longer than the run.
 */
void caller_cancel_long(struct run *r);
/* Marks calls that were canceled some time ago as given_up: their handlers may
 * not begin any more. */
void caller_given_up(struct run *r);
/* Marks the calls of a node that has crashed. */
void caller_crashed(struct member *m);
/* Violation: a call of this node has not ended, though its RPC is closed. */
void caller_closed(struct member *m);
/* Violation: a call is past its deadline. Returns how many calls have not
 * ended. */
unsigned int caller_check(struct run *r);
/* Frees all calls, after the simulation. Returns how many have not ended. */
unsigned int caller_left(struct run *r);
void caller_free(struct run *r);

/* ---- rpc_outcome.c ---- */

void outcome_wrong(const struct test_call *c, const char *what);
/* Violations: the call has ended in a way that it must not. */
void outcome_check(const struct test_call *c, const char *reply, size_t length);

/* ---- rpc_server.c ---- */

/* Counts one execution of the call, at @m. Violation: it is the second one, or
 * the call must not be executed. */
void execute(struct test_call *c, const struct member *m);

/* Starts services that nobody calls, as many as there are portals for. */
void server_crowd(struct member *m);
void server_start(struct member *m, unsigned int service);
void server_stop(struct member *m, unsigned int service);
/* Forgets what a service that has stopped has not answered. */
void server_stopped(struct member *m, unsigned int service);
void server_crashed(struct member *m);
unsigned int server_jobs(const struct member *m);
/* Answers what was not answered, and frees all jobs. */
void server_free(struct member *m);

struct job *job_new(struct member *m, struct ulrpc_request *request,
		    const struct test_body *body);
/* Frees the job if nobody uses it any more. */
void job_check(struct job *j);
void job_answer(struct job *j, int status);
/* Begins to move bulk number @i of the job's call. Returns false if the call
 * has no such bulk. */
bool part_begin(struct job *j, unsigned int i, struct iovec iov[2]);
void part_end(struct job *j, unsigned int i, int status, uint64_t moved);

/* ---- rpc_store.c ---- */

/* Makes a new, empty store. */
void store_make(const struct member *m, struct store *s);
void store_free(struct store *s);
/* Looks up a record: ulrpc_durable.lookup; @arg is the store. */
int store_lookup(void *arg, const void *key, void **value_p, size_t *length_p);
/* Begins a transaction that stores the effects of the job together with the
 * record of its reply: both, or neither if the process ends before the commit.
 */
void store_begin(struct job *j);
void store_commit(struct job *j);
/* Ends the transaction, before the job is answered with @status. Returns the
 * status to answer with; 0: body.status was stored. */
int store_end(struct job *j, int status);

/* ---- rpc_work.c: handlers that block ---- */

/* Handles the request in a worker: blocks, waits for what the request needs,
 * and answers. */
void work_block(struct job *j);
/* Returns when the caller's time is over, us of the clock: UINT64_MAX: never;
 * 0: now. Violation: sooner than was said before. */
uint64_t job_deadline(struct job *j);

/* ---- rpc_faults.c ---- */

/* wait_begin() says that somebody outside of handlers waits for @what, one at a
 * time; wait_end(), that the waiting is over. wait_check(): violation: it takes
 * too long. */
void wait_begin(struct member *m, const char *what);
void wait_end(struct member *m);
void wait_check(struct run *r);

void fault_one(struct run *r);
/* Lets the process of some node stand still for a while. */
void fault_pause(struct run *r);
/* Lets the network or a server fail once. */
void fault_outside(struct run *r);
void fault_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b);
/* Ends all faults: all nodes are up, with all services. */
void fault_heal(struct run *r);
/* Opens RPC on a node, with its services and clients. */
int member_open(struct member *m);
void member_clients(struct member *m);

/* ---- rpc_verbs.c: queue pairs, instead of simlnd, below nets of o2ib ---- */
/* Without verbs_new() the other functions do nothing. */

/* To be called before the first node is added. Returns as sim_verbs(). */
int verbs_new(struct run *r);
/* Adds the devices of a node, whose NIDs are set, before it starts. */
void verbs_device(struct run *r, const struct member *m);
/* Draws new faults for the direction from @a to @b. */
void verbs_link(struct run *r, struct ulnet_nid a, struct ulnet_nid b);
void verbs_fault(struct run *r);
/* Inserts all devices again, and makes all links perfect. */
void verbs_heal(struct run *r);
/* Reports what the fabric has counted. */
void verbs_tell(const struct run *r, scenario_tell_fn tell, void *arg);

/* ---- rails.c: rails that come, fail, and go; and LNet's own traffic ---- */
/* Without rails_new() the other functions do nothing. */

/* Prepares the rails of @r->n nodes, whose NIDs are set. */
void rails_new(struct run *r);
/* Called when node @index has started. */
void rails_start(struct run *r, unsigned int index, struct lnet *node);
/* Called when the process of node @index has died. */
void rails_crashed(struct run *r, unsigned int index);
/* Draws whether a rail changes, and which. */
void rails_step(struct run *r);
/* Makes all rails be there, and work. */
void rails_heal(struct run *r);
/* Runs until all nodes know each other, and all is well. Violation: it takes
 * too long. */
void rails_settle(struct run *r);
/* From now on nothing new begins. */
void rails_over(struct run *r);
/* Frees all, after the simulation. Returns how much is left that should not be.
 */
unsigned int rails_free(struct run *r);

/* ---- rails_views.c: what nodes know of each other ---- */

/* Draws who uses discovery, before there are nodes. */
void views_plan(struct run *r);
/* Lets an administrator change something on some node. */
void views_disturb(struct run *r);
/* Undoes all changes. */
void views_heal(struct run *r);
/* Lets nodes send to each other, so that they discover each other. */
void views_meet(struct run *r);
/* Some time after the faults: do all nodes know what they should? If not, and
 * @say: a violation. */
bool views_are_right(struct run *r, bool say);

/* ---- rails_liar.c: a node that claims what is not its own ---- */

/* Adds a node that lies, with a NID on each of @nets nets. Returns as
 * lnet_sim_node_add(). */
int liar_new(struct run *r, unsigned int nets);
/* Lets the liar, if there is one, lie to somebody. */
void liar_step(struct run *r);
/* Frees the liar, after the simulation. */
void liar_free(struct run *r);

/* ---- rpc_tally.c ---- */

enum happening {
	SERVER_CRASHES,
	CALLER_CRASHES,
	NODE_IS_BACK,
	NODE_PAUSES,
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
	LINK_HAS_HOLE,
	PEER_IS_ADDED,
	PEER_IS_DELETED,
	DISCOVERY_IS_SET,
	LIE_IS_TOLD,
	HANDLER_IS_SLOW,
	STORE_IS_LOST,
	KEY_IS_RENEWED,
	COMMIT_IS_LOST,
	DEVICE_IS_REMOVED,
	QUEUES_ARE_SILENT,
	QUEUES_ARE_CUT,
	VERBS_CALL_FAILS,
	HAPPENINGS
};

struct tally *tally_new(void);
void tally_count(struct run *r, enum happening what);
/* Counts the outcome of a call. */
void tally_end(struct run *r, const struct ulrpc_outcome *o);
/* Adds the statistics of a node's RPC that is about to end. */
void tally_rpc(struct member *m);
/* Violation at the end: connections were lost, or calls were sent again, in a
 * run without faults. */
void tally_check(const struct run *r);

/* ---- rpc_audit.c ---- */

/* Violations: a call waits for something that will not happen, or counts of
 * calls are wrong. To be called between turns. */
void audit_waiting(struct member *m);
/* Violations: the time of a request became shorter, or it is extended too
 * often. To be called between turns. */
void audit_times(struct member *m);
/* Notes the time of a job that is about to be answered. */
void audit_answer(const struct job *j);
/* Notes the time of the request that a store of @m is asked about: what is
 * answered from the store is a sample that no handler sees. */
void audit_lookup(const struct member *m, const void *key);
/* Do all handlers know which of their calls were given up? If not, and @report:
 * violations. */
bool audit_given_up(const struct member *m, bool report);
/* Is nothing left of calls and requests? If not, and @say: a violation. */
bool audit_rpc(struct member *m, bool say);
/* While this number is the same, the node has forgotten no call of @service. */
uint64_t audit_lapses(const struct member *m, unsigned int service);
/* While this number is the same, neither the node nor @service has restarted.
 */
uint64_t audit_restarts(const struct member *m, unsigned int service);
/* Does the node know @client's connection, and serve it? */
bool audit_knows(const struct member *m, unsigned int service,
		 const struct ulrpc_client *client);
/* Returns the number of the service's store; 0: it has none, or @client knows
 * another one. */
unsigned int audit_store(const struct member *m, unsigned int service,
			 const struct ulrpc_client *client);

#endif
