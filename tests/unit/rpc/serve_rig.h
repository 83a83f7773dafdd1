/* SPDX-License-Identifier: BSD-3-Clause */
/* A service by the real library, and clients by it, or played by hand: raw LNet
 * messages. Node 0 calls, node 1 serves. */
#ifndef TESTS_SERVE_RIG_H
#define TESTS_SERVE_RIG_H

#include "rpc/server/export.h"
#include "rpc/server/reply.h"
#include "rpc/server/request.h"
#include "rpc/server/service.h"
#include "rpc/stats/stat.h"
#include "rpc/wire/wire.h"
#include "tests/unit/lnet/cluster.h"
#include "ulnet/service.h"
#include "ulnet/thread.h"

#define CALLER 0
#define SERVER 1
#define SEC    (1000 * MSEC)

/* What handlers have not answered yet, and what they have seen. */
#define PARKED_MAX 256

struct served {
	unsigned int runs;
	unsigned int parked;
	struct ulrpc_request *park[PARKED_MAX];
	struct ulrpc_request_info info;
	char body[64];
	uint32_t order[PARKED_MAX]; /* first word of the bodies */
	pthread_mutex_t lock;	    /* as one needs it to wait */
	struct ulnet_cond unparked; /* workers wait for it */
	bool dismissed;		    /* or do not */
};

struct serve_rig {
	struct lnet_sim *sim;
	struct lnet *node[2];
	struct ulrpc *rpc[2];
	struct ulrpc_service *service;
	struct ulrpc_client *client;
	struct served served;
};

/* ---- handlers ---- */

static inline void note_request(struct served *s, struct ulrpc_request *r,
				const void *body, size_t length)
{
	uint32_t word = 0;

	if (length >= sizeof(word))
		memcpy(&word, body, sizeof(word));
	s->order[s->runs % PARKED_MAX] = word;
	s->runs++;
	memcpy(s->body, body, MIN(length, sizeof(s->body)));
	ulrpc_request_info(r, &s->info);
}

static inline void echo(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	note_request(arg, r, body, length);
	ulrpc_reply(r, body, length);
}

static inline void refuse_42(void *arg, struct ulrpc_request *r,
			     const void *body, size_t length)
{
	note_request(arg, r, body, length);
	ulrpc_fail(r, -42);
}

static inline void full(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	note_request(arg, r, body, length);
	ulrpc_overloaded(r);
}

/* Answered by serve_release(), later. */
static inline void hold(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	struct served *s = arg;

	note_request(s, r, body, length);
	cr_assert_lt(s->parked, PARKED_MAX);
	s->park[s->parked++] = r;
}

static inline bool is_parked(const struct served *s,
			     const struct ulrpc_request *r)
{
	for (unsigned int i = 0; i < s->parked; i++)
		if (s->park[i] == r)
			return true;
	return false;
}

/* The same, on a worker, which is not free before. */
static inline void park(void *arg, struct ulrpc_request *r, const void *body,
			size_t length)
{
	struct served *s = arg;
	int rc = 0;

	hold(arg, r, body, length);
	pthread_mutex_lock(&s->lock);
	while (!rc && !s->dismissed && is_parked(s, r))
		rc = lnet_cond_wait(&s->unparked, &s->lock, UINT64_MAX);
	pthread_mutex_unlock(&s->lock);
}

/* The oldest one. */
static inline struct ulrpc_request *unpark(struct served *s)
{
	struct ulrpc_request *r = s->park[0];

	cr_assert_gt(s->parked, 0);
	s->parked--;
	memmove(s->park, s->park + 1, s->parked * sizeof(r));
	lnet_cond_broadcast(&s->unparked);
	return r;
}

static inline void serve_dismiss(void *arg)
{
	struct served *s = arg;

	s->dismissed = true;
	lnet_cond_broadcast(&s->unparked);
}

/* From then on workers return from their handlers; what is parked stays so. */
static inline void serve_dismiss_at(struct serve_rig *g, uint64_t delay)
{
	cr_assert_eq(lnet_sim_at(g->sim, delay, serve_dismiss, &g->served), 0);
}

static inline void serve_release(struct served *s)
{
	while (s->parked)
		ulrpc_reply(unpark(s), "later", 5);
}

/* ---- the rig ---- */

/* The third, and so on, are for those who play by hand while a real client
 * calls. */
static inline unsigned int serve_node_add(struct serve_rig *g,
					  unsigned int index)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_id id = nth_id(index);

	lnet_nid_format(&id.nid, text, sizeof(text));
	cr_assert_eq(lnet_sim_node_add(g->sim, text, NULL, NULL, NULL),
		     (int)index);
	return index;
}

static inline void serve_init(struct serve_rig *g, uint64_t seed,
			      unsigned int cpts)
{
	*g = (struct serve_rig){ .served.lock = PTHREAD_MUTEX_INITIALIZER };
	cr_assert_eq(lnet_cond_init(&g->served.unparked), 0);
	cr_assert_eq(lnet_sim_new(seed, cpts, &g->sim), 0);
	for (unsigned int i = 0; i < 2; i++)
		g->node[i] = lnet_sim_node(g->sim, serve_node_add(g, i));
}

static inline void serve_open(struct serve_rig *g,
			      const struct ulrpc_conf *conf)
{
	cr_assert_eq(ulrpc_open(g->node[SERVER], conf, &g->rpc[SERVER]), 0);
}

static inline struct ulrpc_service_conf serve_conf(struct serve_rig *g)
{
	static struct ulrpc_method_conf m[9];
	struct ulrpc_service_conf conf;

	m[0] = (struct ulrpc_method_conf){ .name = "echo",
					   .handler = echo,
					   .arg = &g->served,
					   .run = ULRPC_RUN_INLINE };
	m[1] = (struct ulrpc_method_conf){ .name = "work",
					   .handler = echo,
					   .arg = &g->served };
	m[2] = (struct ulrpc_method_conf){ .name = "park",
					   .handler = park,
					   .arg = &g->served };
	m[3] = (struct ulrpc_method_conf){ .name = "hold",
					   .handler = hold,
					   .arg = &g->served,
					   .run = ULRPC_RUN_INLINE };
	m[4] = (struct ulrpc_method_conf){ .name = "fail",
					   .handler = refuse_42,
					   .arg = &g->served,
					   .run = ULRPC_RUN_INLINE };
	m[5] = (struct ulrpc_method_conf){ .name = "low",
					   .handler = park,
					   .arg = &g->served,
					   .priority =
						   ULRPC_PRIORITY_BACKGROUND };
	m[6] = (struct ulrpc_method_conf){ .name = "again",
					   .handler = echo,
					   .arg = &g->served,
					   .run = ULRPC_RUN_INLINE,
					   .semantics = ULRPC_IDEMPOTENT };
	m[7] = (struct ulrpc_method_conf){ .name = "full",
					   .handler = full,
					   .arg = &g->served,
					   .run = ULRPC_RUN_INLINE };
	m[8] = (struct ulrpc_method_conf){ .name = "hold_again",
					   .handler = hold,
					   .arg = &g->served,
					   .run = ULRPC_RUN_INLINE,
					   .semantics = ULRPC_IDEMPOTENT };
	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = m;
	conf.nmethods = ARRAY_SIZE(m);
	return conf;
}

static inline void serve_start(struct serve_rig *g,
			       const struct ulrpc_service_conf *conf)
{
	cr_assert_eq(ulrpc_service_start(g->rpc[SERVER], conf, &g->service), 0);
}

/* The service of serve_conf(), with all that @more says (NULL: nothing) but its
 * name and methods. */
static inline void serve_start_with(struct serve_rig *g,
				    const struct ulrpc_service_conf *more)
{
	struct ulrpc_service_conf plain = serve_conf(g), c = plain;

	if (more) {
		c = *more;
		c.name = plain.name;
		c.methods = plain.methods;
		c.nmethods = plain.nmethods;
	}
	serve_start(g, &c);
}

static inline void serve_fini(struct serve_rig *g)
{
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_close(g->rpc[i]), 0);
	lnet_sim_run_all(g->sim);
	cr_assert_eq(lnet_sim_free(g->sim), 0);
}

/* ---- real clients ---- */

static inline void serve_client(struct serve_rig *g)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf;

	if (!g->rpc[CALLER])
		cr_assert_eq(ulrpc_open(g->node[CALLER], NULL, &g->rpc[CALLER]),
			     0);
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "test";
	cr_assert_eq(ulrpc_client_open(g->rpc[CALLER], &conf, &g->client), 0);
}

struct called {
	unsigned int ended;
	struct ulrpc_outcome outcome;
	char reply[64];
	size_t length;
};

static inline void on_called(void *arg, const struct ulrpc_outcome *o,
			     const void *reply, size_t length)
{
	struct called *c = arg;

	c->ended++;
	c->outcome = *o;
	c->length = length;
	if (reply)
		memcpy(c->reply, reply, MIN(length, sizeof(c->reply)));
}

static inline void serve_call(struct serve_rig *g, const char *method,
			      const void *body, size_t length,
			      uint64_t deadline, enum ulrpc_priority priority,
			      struct called *c)
{
	struct ulrpc_call_conf conf = { .deadline = deadline,
					.priority = priority };

	*c = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g->client, ulrpc_method(method), body, length,
				&conf, on_called, c, NULL),
		     0);
}

/* ---- what was counted ---- */

/* Requests of a service that ended in this way, on a CPT. */
static inline uint64_t serve_ended(const struct service_cpt *sc,
				   unsigned int end)
{
	const struct stat_method *m = NULL;
	uint32_t bucket = 0;
	uint64_t n;

	stat_fold(sc->shard->stats);
	n = sc->stats->refused[end];
	while ((m = stat_method_walk(sc->stats, &bucket, m)))
		n += m->ends[end];
	return n;
}

static inline uint64_t serve_ended_all(const struct service_cpt *sc)
{
	uint64_t n = 0;

	for (unsigned int end = 0; end < STAT_REQUEST_ENDS; end++)
		n += serve_ended(sc, end);
	return n;
}

static inline uint64_t serve_counted(const struct service_cpt *sc,
				     enum rpc_stat stat)
{
	return sc->shard->stats->counts[stat];
}

/* Bytes that are held, but for replies that are kept. */
static inline uint64_t serve_holds(struct service_cpt *sc)
{
	return atomic_load(&sc->held_bytes) - atomic_load(&sc->kept_bytes);
}

static inline uint64_t serve_unreadable(const struct service_cpt *sc)
{
	return serve_counted(sc, RPC_STAT_requests_malformed) +
	       serve_counted(sc, RPC_STAT_requests_damaged) +
	       serve_counted(sc, RPC_STAT_requests_unversioned);
}

#endif
