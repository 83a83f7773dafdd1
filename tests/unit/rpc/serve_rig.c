/* SPDX-License-Identifier: BSD-3-Clause */
/* A service, its handlers, and its clients: see the header. */
#include "tests/unit/rpc/serve_rig.h"

/* ---- handlers ---- */

void note_request(struct served *s, struct ulrpc_request *r, const void *body,
		  size_t length)
{
	uint32_t word = 0;

	if (length >= sizeof(word))
		memcpy(&word, body, sizeof(word));
	s->order[s->runs % PARKED_MAX] = word;
	s->runs++;
	memcpy(s->body, body, MIN(length, sizeof(s->body)));
	ulrpc_request_info(r, &s->info);
}

void echo(void *arg, struct ulrpc_request *r, const void *body, size_t length)
{
	note_request(arg, r, body, length);
	ulrpc_reply(r, body, length);
}

static void refuse_42(void *arg, struct ulrpc_request *r, const void *body,
		      size_t length)
{
	note_request(arg, r, body, length);
	ulrpc_fail(r, -42);
}

static void full(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	note_request(arg, r, body, length);
	ulrpc_overloaded(r);
}

void hold(void *arg, struct ulrpc_request *r, const void *body, size_t length)
{
	struct served *s = arg;

	note_request(s, r, body, length);
	cr_assert_lt(s->parked, PARKED_MAX);
	s->park[s->parked++] = r;
}

static bool is_parked(const struct served *s, const struct ulrpc_request *r)
{
	for (unsigned int i = 0; i < s->parked; i++)
		if (s->park[i] == r)
			return true;
	return false;
}

/* As hold(), but on a worker, which waits until the request is taken. */
static void park(void *arg, struct ulrpc_request *r, const void *body,
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

struct ulrpc_request *unpark(struct served *s)
{
	struct ulrpc_request *r = s->park[0];

	cr_assert_gt(s->parked, 0);
	s->parked--;
	memmove(s->park, s->park + 1, s->parked * sizeof(r));
	lnet_cond_broadcast(&s->unparked);
	return r;
}

static void serve_dismiss(void *arg)
{
	struct served *s = arg;

	s->dismissed = true;
	lnet_cond_broadcast(&s->unparked);
}

void serve_dismiss_at(struct serve_rig *g, uint64_t delay)
{
	cr_assert_eq(lnet_sim_at(g->sim, delay, serve_dismiss, &g->served), 0);
}

void serve_release(struct served *s)
{
	while (s->parked)
		ulrpc_reply(unpark(s), "later", 5);
}

/* ---- the rig ---- */

unsigned int serve_node_add(struct serve_rig *g, unsigned int index)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_id id = nth_id(index);

	lnet_nid_format(&id.nid, text, sizeof(text));
	cr_assert_eq(plain_node(g->sim, text, NULL, NULL, NULL), (int)index);
	return index;
}

static void rig_new(struct serve_rig *g, uint64_t seed, unsigned int cpts)
{
	*g = (struct serve_rig){ .served.lock = PTHREAD_MUTEX_INITIALIZER };
	cr_assert_eq(lnet_cond_init(&g->served.unparked), 0);
	cr_assert_eq(lnet_sim_new(seed, cpts, &g->sim), 0);
}

static void rig_init(struct serve_rig *g, uint64_t seed, unsigned int cpts,
		     bool apart)
{
	rig_new(g, seed, cpts);
	if (apart)
		lnet_sim_apart(g->sim);
	for (unsigned int i = 0; i < 2; i++)
		g->node[i] = lnet_sim_node(g->sim, serve_node_add(g, i));
}

void serve_init(struct serve_rig *g, uint64_t seed, unsigned int cpts)
{
	rig_init(g, seed, cpts, false);
}

void serve_init_apart(struct serve_rig *g, uint64_t seed, unsigned int cpts)
{
	rig_init(g, seed, cpts, true);
}

void serve_init_on(struct serve_rig *g, unsigned int cpts,
		   const char *const nids[2], const struct ulnet_conf conf[2])
{
	rig_new(g, 1, cpts);
	for (int i = 0; i < 2; i++) {
		cr_assert_eq(lnet_sim_node_add(g->sim, nids[i], &conf[i], NULL,
					       NULL),
			     i);
		g->node[i] = lnet_sim_node(g->sim, (unsigned int)i);
	}
}

void serve_open(struct serve_rig *g, const struct ulrpc_conf *conf)
{
	cr_assert_eq(ulrpc_open(g->node[SERVER], conf, &g->rpc[SERVER]), 0);
}

struct ulrpc_service_conf serve_conf(struct serve_rig *g)
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

void serve_start(struct serve_rig *g, const struct ulrpc_service_conf *conf)
{
	cr_assert_eq(ulrpc_service_start(g->rpc[SERVER], conf, &g->service), 0);
}

void serve_methods(struct serve_rig *g, const struct ulrpc_method_conf *methods,
		   uint32_t n)
{
	struct ulrpc_service_conf conf;

	ulrpc_service_conf_init(&conf);
	conf.name = "test";
	conf.methods = methods;
	conf.nmethods = n;
	serve_start(g, &conf);
}

void serve_start_with(struct serve_rig *g,
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

void serve_fini(struct serve_rig *g)
{
	for (unsigned int i = 0; i < 2; i++)
		cr_assert_eq(ulrpc_close(g->rpc[i]), 0);
	lnet_sim_run_all(g->sim);
	cr_assert_eq(lnet_sim_free(g->sim), 0);
}

/* ---- real clients ---- */

struct ulrpc_client *serve_client_of(struct ulrpc *rpc, const char *service)
{
	struct ulnet_nid nid = nth_id(SERVER).nid;
	struct ulrpc_client_conf conf;
	struct ulrpc_client *client;

	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = service;
	cr_assert_eq(ulrpc_client_open(rpc, &conf, &client), 0);
	return client;
}

void serve_client(struct serve_rig *g)
{
	if (!g->rpc[CALLER])
		cr_assert_eq(ulrpc_open(g->node[CALLER], NULL, &g->rpc[CALLER]),
			     0);
	g->client = serve_client_of(g->rpc[CALLER], "test");
}

void on_called(void *arg, const struct ulrpc_outcome *o, const void *reply,
	       size_t length)
{
	struct called *c = arg;

	c->ended++;
	c->outcome = *o;
	c->length = length;
	if (reply)
		memcpy(c->reply, reply, MIN(length, sizeof(c->reply)));
}

void serve_call(struct serve_rig *g, const char *method, const void *body,
		size_t length, uint64_t deadline, enum ulrpc_priority priority,
		struct called *c)
{
	struct ulrpc_call_conf conf = { .deadline = deadline,
					.priority = priority };

	*c = (struct called){ 0 };
	cr_assert_eq(ulrpc_call(g->client, ulrpc_method(method), body, length,
				&conf, on_called, c, NULL),
		     0);
}

/* ---- statistics ---- */

uint64_t serve_ended(const struct service_cpt *sc, unsigned int end)
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

uint64_t serve_ended_all(const struct service_cpt *sc)
{
	uint64_t n = 0;

	for (unsigned int end = 0; end < STAT_REQUEST_ENDS; end++)
		n += serve_ended(sc, end);
	return n;
}

uint64_t serve_counted(const struct service_cpt *sc, enum rpc_stat stat)
{
	return sc->shard->stats->counts[stat];
}

uint64_t serve_holds(struct service_cpt *sc)
{
	return atomic_load(&sc->used_bytes) - atomic_load(&sc->kept_bytes);
}

uint64_t serve_unreadable(const struct service_cpt *sc)
{
	return serve_counted(sc, RPC_STAT_requests_malformed) +
	       serve_counted(sc, RPC_STAT_requests_damaged) +
	       serve_counted(sc, RPC_STAT_requests_unversioned) +
	       serve_counted(sc, RPC_STAT_seals_broken);
}
