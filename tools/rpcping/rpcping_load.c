/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpcping.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ulnet/loop.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_S  UINT64_C(1000000000)
/* ns: pause of a slot whose call was lost, before it begins another one */
#define PAUSE_NS (10 * 1000 * NS_PER_US)
#define PAGE	 4096
#define NEVER	 UINT64_MAX

/* The object whose @member @p points to. */
#define OBJECT_OF(p, type, member) \
	((type *)((char *)(p)-offsetof(type, member)))

/* A slot has one call at a time. */
struct slot {
	struct load *load;
	struct slot *next; /* in load.free or load.paused */
	uint64_t begin;	   /* ns: when its call was due */
	void *body;
	size_t length;
	struct ulrpc_bulk *bulk;
	bool registered; /* the memory @call.bulk is registered with the node */
	struct probe_call call;
	bool good; /* its last call got the right answer */
	struct ulnet_work released;
};

struct load {
	/* Immutable after load_open(): */
	struct ulrpc *rpc;
	struct lnet *node;
	unsigned int cpt;
	/* its pointers, except for probe, are not used after load_open() */
	struct load_conf conf;
	uint32_t method;
	struct ulrpc_call_conf call;
	struct ulrpc_client *client;
	struct ulrpc_replicas *set; /* with conf.replicas, instead of @client */
	struct slot *slots;
	void *body;   /* the body of all calls, unless conf.verify */
	size_t room;  /* bytes of memory for each body */
	double every; /* ns from one call to the next; 0: no rate */
	struct ulnet_work start;
	/* For the thread of the CPT: */
	struct slot *free, *paused;
	struct ulnet_timer pace, pause;
	/* ns: when the load began, and when the last call may begin */
	uint64_t begin, end;
	/* ns: calls that were due before this time are not counted */
	uint64_t count_from;
	uint64_t begun;	  /* number of calls that were begun, counted or not */
	uint64_t counted; /* number of calls that were begun and are counted */
	uint64_t seed;
	/* number of slots that have a call, or whose memory is in use */
	unsigned int busy;
	bool started, stopping, ended;
	struct load_stats stats;
};

static void advance(struct load *l, uint64_t now);

/* ---- counting ---- */

static void count_rail(struct load_explain *e, const struct ulnet_nid *local,
		       const struct ulnet_nid *target, uint64_t n)
{
	struct load_rail *r = e->rail;
	unsigned int i;

	for (i = 0; i < e->nrails; i++, r++)
		if (lnet_nid_eq(&r->local, local) &&
		    lnet_nid_eq(&r->target, target))
			break;
	if (i == LOAD_RAILS) {
		r--;
		r->local = r->target = LNET_NID_ANY;
	} else if (i == e->nrails) {
		e->nrails++;
		r->local = *local;
		r->target = *target;
	}
	r->n += n;
}

/* Returns how often the call itself was sent, without queries about it. */
static uint32_t sendings(const struct ulrpc_outcome *o)
{
	return o->attempts - o->queries;
}

static void count_explain(struct load_explain *e, const struct ulrpc_outcome *o)
{
	const uint64_t us[LOAD_STAGES] = {
		[LOAD_CONNECTING] = o->connecting,
		[LOAD_WINDOW] = o->window,
		[LOAD_WIRE] = o->wire,
		[LOAD_THROTTLED] = o->server_throttled,
		[LOAD_SERVER_QUEUE] = o->server_queue,
		[LOAD_SERVICE] = o->service,
		[LOAD_FETCH] = o->fetch,
	};

	for (unsigned int i = 0; i < LOAD_STAGES; i++)
		histogram_add(&e->stage[i], us[i] * NS_PER_US);
	if (sendings(o) > e->attempts_max)
		e->attempts_max = sendings(o);
	e->paths += o->paths;
	count_rail(e, &o->local, &o->target, 1);
}

/* Returns the entry of a server. */
static struct load_server *find_server(struct load_stats *s,
				       const struct ulnet_nid *nid)
{
	struct load_server *at = s->server;
	unsigned int i;

	for (i = 0; i < s->nservers; i++, at++)
		if (lnet_nid_eq(&at->nid, nid))
			return at;
	if (i == LOAD_SERVERS) {
		at--;
		at->nid = LNET_NID_ANY;
		return at;
	}
	s->nservers++;
	at->nid = *nid;
	return at;
}

/* Counts a call that has ended with @o. @ns: its latency if it was answered. */
static void count_server(struct load *l, const struct ulrpc_replicas_outcome *o,
			 bool answered, uint64_t ns)
{
	struct load_server *at = find_server(&l->stats, &o->server);

	l->stats.moves += o->moves;
	l->stats.hedged += o->hedged;
	at->lost += !answered;
	if (!answered)
		return;
	at->answered++;
	at->sum += ns;
	if (ns > at->max)
		at->max = ns;
}

/* @server: NULL: the load has no load_conf.replicas. */
static void count_lost(struct load *l, unsigned int kind,
		       const struct ulrpc_outcome *o,
		       const struct ulnet_nid *server, const char *what)
{
	struct load_loss *loss = &l->stats.loss[kind];

	l->stats.lost++;
	if (loss->n++)
		return;
	loss->first = *o;
	loss->server = server ? *server : LNET_NID_ANY;
	if (what)
		memcpy(loss->what, what, sizeof(loss->what));
}

static void count_answered(struct load *l, const struct slot *s, uint64_t now,
			   size_t length)
{
	l->stats.answered++;
	l->stats.bytes += l->conf.bulk ? l->conf.bulk : s->length + length;
	histogram_add(&l->stats.latency, now - s->begin);
}

/* Counts a call that has ended; @set: with load_conf.replicas, all of its
 * outcome. Returns whether its answer was right. */
static bool judge(struct load *l, const struct slot *s,
		  const struct ulrpc_outcome *o,
		  const struct ulrpc_replicas_outcome *set, const void *reply,
		  size_t length, uint64_t now)
{
	char what[sizeof(l->stats.loss[0].what)] = "";
	bool counts = s->begin >= l->count_from;
	unsigned int kind = o->cause;

	if (kind == ULRPC_CAUSE_OK && l->conf.verify &&
	    !l->conf.probe->check(&s->call, reply, length, what, sizeof(what)))
		kind = LOAD_WRONG;
	if (!counts)
		return kind == ULRPC_CAUSE_OK;
	l->stats.last = now;
	if (sendings(o) > 1)
		l->stats.resent += sendings(o) - 1;
	l->stats.went[LOAD_ATTEMPTS] += sendings(o);
	l->stats.went[LOAD_RETRIES] += o->retries;
	l->stats.went[LOAD_QUERIES] += o->queries;
	l->stats.went[LOAD_EXTENSIONS] += o->extensions;
	l->stats.went[LOAD_REFUSALS] += o->refusals;
	if (l->conf.explain)
		count_explain(&l->stats.explain, o);
	if (set)
		count_server(l, set, kind == ULRPC_CAUSE_OK, now - s->begin);
	if (kind == ULRPC_CAUSE_OK)
		count_answered(l, s, now, length);
	else
		count_lost(l, kind, o, set ? &set->server : NULL, what);
	return kind == ULRPC_CAUSE_OK;
}

/* ---- slots ---- */

static void slot_push(struct slot **list, struct slot *s)
{
	s->next = *list;
	*list = s;
}

static struct slot *slot_pop(struct slot **list)
{
	struct slot *s = *list;

	*list = s->next;
	return s;
}

/* Frees the slot for the next call: at once, or, if its last call was lost,
 * after @ns or PAUSE_NS, whichever is longer. So a server that refuses calls at
 * once is not called as fast as it refuses. */
static void slot_back(struct load *l, struct slot *s, uint64_t ns, uint64_t now)
{
	if (s->good) {
		slot_push(&l->free, s);
		return;
	}
	slot_push(&l->paused, s);
	if (ns < PAUSE_NS)
		ns = PAUSE_NS;
	if (!lnet_timer_armed(&l->pause))
		lnet_timer_arm(l->node, l->cpt, &l->pause, now + ns);
}

static void on_pause_over(struct ulnet_timer *timer)
{
	struct load *l = OBJECT_OF(timer, struct load, pause);

	while (l->paused)
		slot_push(&l->free, slot_pop(&l->paused));
	advance(l, lnet_now(l->node, l->cpt));
}

static int slot_bulk(struct load *l, struct slot *s)
{
	struct iovec iov = { s->call.bulk, l->conf.bulk };
	struct ulrpc_bulk_conf conf = {
		.iov = &iov,
		.niov = 1,
		.access = l->conf.probe->bulk,
		.flags = l->conf.checksum ? ULRPC_BULK_CHECKSUM : 0,
	};

	if (l->conf.segments)
		conf.segment =
			(uint32_t)((l->conf.bulk + l->conf.segments - 1) /
				   l->conf.segments);
	return ulrpc_bulk_new(l->rpc, &conf, &s->bulk);
}

/* The server cannot access the memory of the slot's bulk any more. */
static void slot_released(struct ulnet_work *work)
{
	struct slot *s = OBJECT_OF(work, struct slot, released);
	struct load *l = s->load;
	uint64_t now = lnet_now(l->node, l->cpt);

	l->busy--;
	slot_back(l, s, 0, now);
	advance(l, now);
}

static void on_released(void *arg)
{
	struct slot *s = arg;

	s->released.fn = slot_released;
	lnet_post(s->load->node, s->load->cpt, &s->released);
}

/* ---- calls ---- */

/* The first answer decides whether there is a server. */
static void load_on_answer(struct load *l, enum ulrpc_cause cause)
{
	if (l->call.wait_for_ready == ULRPC_WAIT_READY)
		return;
	switch (cause) {
	case ULRPC_CAUSE_UNREACHABLE:
	case ULRPC_CAUSE_NO_SERVICE:
	case ULRPC_CAUSE_SHUTDOWN:
	case ULRPC_CAUSE_NAME:
		l->stopping = true;
		break;
	case ULRPC_CAUSE_OK:
		l->call.wait_for_ready = ULRPC_WAIT_READY;
		break;
	default:
		break;
	}
}

/* @set: as for judge(). */
static void call_ended(struct slot *s, const struct ulrpc_outcome *o,
		       const struct ulrpc_replicas_outcome *set,
		       const void *reply, size_t length)
{
	struct load *l = s->load;
	uint64_t now = lnet_now(l->node, l->cpt);

	s->good = judge(l, s, o, set, reply, length, now);
	load_on_answer(l, o->cause);
	l->stats.inflight--;
	if (s->bulk && !o->bulk_free) {
		struct ulrpc_bulk *bulk = s->bulk;

		s->bulk = NULL;
		/* on_released() will lower `busy` */
		ulrpc_bulk_close(bulk, on_released, s);
		return;
	}
	l->busy--;
	slot_back(l, s, o->retry_after * NS_PER_US, now);
	advance(l, now);
}

static void on_call_done(void *arg, const struct ulrpc_outcome *o,
			 const void *reply, size_t length)
{
	call_ended(arg, o, NULL, reply, length);
}

static void on_set_done(void *arg, const struct ulrpc_replicas_outcome *o,
			const void *reply, size_t length)
{
	call_ended(arg, &o->call, o, reply, length);
}

/* Returns the bytes of a slot's bulk memory, which is whole pages. */
static size_t bulk_size(const struct load *l)
{
	return (l->conf.bulk + PAGE - 1) / PAGE * PAGE;
}

/* Allocates the bulk memory of @s, unless it has some. With a rate this happens
 * at the slot's first call, because most slots are seldom used. */
static int slot_bulk_memory(struct load *l, struct slot *s)
{
	size_t size = bulk_size(l);

	if (!size || s->call.bulk)
		return 0;
	s->call.bulk = aligned_alloc(PAGE, size);
	if (!s->call.bulk)
		return -ENOMEM;
	/* Pages that were never written share one page of zeros: writes to
	 * them, so that each has its own memory. */
	memset(s->call.bulk, 0x5a, size);
	/* If the memory cannot be registered, as on the thread of one CPT of
	 * several, LNet copies the data. */
	s->registered = !lnet_mem_register(l->node, s->call.bulk, size);
	return 0;
}

static int call(struct load *l, struct slot *s)
{
	struct ulrpc_call_conf conf = l->call;
	int rc;

	if (l->conf.bulk) {
		rc = slot_bulk_memory(l, s);
		if (!rc && !s->bulk)
			rc = slot_bulk(l, s);
		if (rc)
			return rc;
		conf.bulks = &s->bulk;
		conf.nbulks = 1;
	}
	if (l->conf.verify) {
		s->call.seed = l->seed++;
		rc = l->conf.probe->prepare(&s->call, s->body);
		if (rc < 0)
			return rc;
		s->length = (size_t)rc;
	}
	if (l->set) {
		const struct ulrpc_replicas_call_conf own = { .call = conf };

		return ulrpc_replicas_call(l->set, l->method, s->body,
					   s->length, &own, on_set_done, s,
					   NULL);
	}
	return ulrpc_call(l->client, l->method, s->body, s->length, &conf,
			  on_call_done, s, NULL);
}

static void slot_begin(struct load *l, struct slot *s, uint64_t begin,
		       uint64_t now)
{
	struct ulrpc_outcome o = { 0 };

	l->begun++;
	s->begin = begin;
	l->counted += begin >= l->count_from;
	o.status = call(l, s);
	if (!o.status) {
		l->busy++;
		l->stats.inflight++;
		return;
	}
	if (begin >= l->count_from)
		count_lost(l, LOAD_NOT_MADE, &o, NULL, NULL);
	s->good = false;
	slot_back(l, s, 0, now);
}

/* ---- when ---- */

/* Returns when the next call is due, ns: @now, or the time that the rate says;
 * NEVER: there is no next call. */
static uint64_t next_begin(const struct load *l, uint64_t now)
{
	uint64_t at = now;

	if (l->every > 0)
		at = l->begin + (uint64_t)((double)l->begun * l->every);
	if (l->stopping || now >= l->end || at >= l->end ||
	    (l->conf.count && l->counted >= l->conf.count))
		return NEVER;
	return at;
}

static void load_finish(struct load *l, uint64_t now)
{
	double due;

	l->ended = true;
	lnet_timer_cancel(l->node, l->cpt, &l->pause);
	if (l->every > 0 && !l->conf.count) {
		due = (double)((now < l->end ? now : l->end) - l->begin) /
		      l->every;
		if (due > (double)l->begun)
			l->stats.behind = (uint64_t)(due - (double)l->begun);
	}
	if (l->conf.ended)
		l->conf.ended(l->conf.arg);
}

/* Begins the calls that are due, and ends the load after the last one. */
static void advance(struct load *l, uint64_t now)
{
	uint64_t at;

	for (;;) {
		at = next_begin(l, now);
		if (at > now || !l->free)
			break;
		slot_begin(l, slot_pop(&l->free), at, now);
	}
	if (at == NEVER) {
		lnet_timer_cancel(l->node, l->cpt, &l->pace);
		if (!l->busy && !l->ended)
			load_finish(l, now);
	} else if (l->free) {
		lnet_timer_arm(l->node, l->cpt, &l->pace, at);
	}
}

static void on_pace(struct ulnet_timer *timer)
{
	struct load *l = OBJECT_OF(timer, struct load, pace);

	advance(l, lnet_now(l->node, l->cpt));
}

static void on_start(struct ulnet_work *work)
{
	struct load *l = OBJECT_OF(work, struct load, start);
	uint64_t now = lnet_now(l->node, l->cpt);

	l->started = true;
	l->begin = now;
	l->count_from = now + l->conf.warmup * NS_PER_US;
	l->end =
		l->conf.time ? l->count_from + l->conf.time * NS_PER_US : NEVER;
	l->stats.first = l->stats.last = l->count_from;
	advance(l, now);
}

static int begin_no_more(void *arg)
{
	struct load *l = arg;

	l->stopping = true;
	if (l->started)
		advance(l, lnet_now(l->node, l->cpt));
	return 0;
}

void load_start(struct load *l)
{
	lnet_post(l->node, l->cpt, &l->start);
}

void load_stop(struct load *l)
{
	lnet_call(l->node, l->cpt, begin_no_more, l);
}

static void clients_close(struct load *l)
{
	ulrpc_client_close(l->client);
	l->client = NULL;
	ulrpc_replicas_close(l->set);
	l->set = NULL;
}

void load_cancel(struct load *l)
{
	load_stop(l);
	clients_close(l);
}

/* ---- open and free ---- */

static int slot_init(struct load *l, struct slot *s)
{
	int rc;

	s->load = l;
	s->call = (struct probe_call){ .size = l->conf.size,
				       .delay = l->conf.delay,
				       .progress = l->conf.progress,
				       .length = l->conf.bulk };
	rc = l->every > 0 ? 0 : slot_bulk_memory(l, s);
	if (rc)
		return rc;
	s->body = l->conf.verify ? malloc(l->room) : l->body;
	if (!s->body)
		return -ENOMEM;
	slot_push(&l->free, s);
	return 0;
}

/* Makes the body that all calls have unless conf.verify. Returns its length, or
 * an error of load_open(). */
static int body_make(struct load *l)
{
	struct probe_call call = { .size = l->conf.size,
				   .delay = l->conf.delay,
				   .progress = l->conf.progress,
				   .length = l->conf.bulk,
				   .seed = l->conf.seed };
	int rc = (int)l->conf.size;

	l->room = l->conf.size + PROBE_ROOM;
	l->body = calloc(1, l->room);
	if (!l->body)
		return -ENOMEM;
	if (l->conf.probe && !l->conf.probe->bulk)
		rc = l->conf.probe->prepare(&call, l->body);
	if (rc < 0)
		return rc;
	return rc > (int)ULRPC_BODY_MAX ? -EMSGSIZE : rc;
}

static int load_slots_make(struct load *l)
{
	int length = body_make(l), rc;

	if (length < 0)
		return length;
	l->slots = calloc(l->conf.inflight, sizeof(*l->slots));
	if (!l->slots)
		return -ENOMEM;
	for (uint32_t i = l->conf.inflight; i-- > 0;) {
		rc = slot_init(l, &l->slots[i]);
		if (rc)
			return rc;
		l->slots[i].length = (size_t)length;
	}
	/* With bulk data the body only describes them, and is the same in all
	 * calls. */
	if (l->conf.probe && l->conf.probe->bulk && !l->conf.verify) {
		struct slot *s = &l->slots[0];

		length = l->conf.probe->prepare(&s->call, l->body);
		if (length < 0)
			return length;
		for (uint32_t i = 0; i < l->conf.inflight; i++)
			l->slots[i].length = (size_t)length;
	}
	return 0;
}

static int set_open(struct load *l, const struct ulrpc_client_conf *client)
{
	struct ulrpc_replicas_conf conf;
	int rc;

	ulrpc_replicas_conf_init(&conf);
	conf.client = *client;
	conf.choice = l->conf.choice;
	conf.hedge = l->conf.hedge;
	rc = ulrpc_replicas_open(l->rpc, &conf, &l->set);
	if (!rc)
		l->cpt = ulrpc_replicas_cpt(l->set);
	return rc;
}

static int client_open(struct load *l)
{
	struct ulrpc_client_conf conf;
	int rc;

	ulrpc_client_conf_init(&conf);
	conf.target = l->conf.target;
	if (!conf.target) {
		conf.nids = l->conf.nids;
		conf.nnids = l->conf.nnids;
		conf.pid = l->conf.pid;
	}
	conf.service = l->conf.service;
	conf.server = l->conf.server;
	conf.flavour = l->conf.flavour;
	conf.inflight_max = l->conf.inflight;
	conf.batch_max = l->conf.batch;
	conf.retry = l->conf.retry;
	conf.checksum = l->conf.checksum;
	/* If there is no memory, statistics show the method's number, not its
	 * name. */
	(void)ulrpc_method_declare(l->rpc, l->conf.method);
	if (l->conf.replicas)
		return set_open(l, &conf);
	rc = ulrpc_client_open(l->rpc, &conf, &l->client);
	if (!rc)
		l->cpt = ulrpc_client_cpt(l->client);
	return rc;
}

int load_open(struct ulrpc *rpc, const struct load_conf *conf,
	      struct load **load_p)
{
	struct load *l = calloc(1, sizeof(*l));
	int rc;

	if (!l)
		return -ENOMEM;
	l->rpc = rpc;
	l->node = ulrpc_node(rpc);
	l->conf = *conf;
	l->seed = conf->seed;
	l->method = ulrpc_method(conf->method);
	l->every = conf->rate > 0 ? (double)NS_PER_S / conf->rate : 0;
	l->call = (struct ulrpc_call_conf){
		.deadline = conf->deadline,
		.reply_max = (uint32_t)(conf->size + PROBE_ROOM),
		.semantics = conf->semantics,
		.wait_for_ready =
			conf->wait ? ULRPC_WAIT_READY : ULRPC_WAIT_NOT,
	};
	if (l->call.reply_max > ULRPC_BODY_MAX)
		l->call.reply_max = ULRPC_BODY_MAX;
	l->start.fn = on_start;
	lnet_timer_init(&l->pace, on_pace);
	lnet_timer_init(&l->pause, on_pause_over);
	rc = load_slots_make(l);
	if (!rc)
		rc = client_open(l);
	if (rc) {
		load_free(l);
		return rc;
	}
	*load_p = l;
	return 0;
}

void load_free(struct load *l)
{
	if (!l)
		return;
	clients_close(l);
	for (uint32_t i = 0; l->slots && i < l->conf.inflight; i++) {
		struct slot *s = &l->slots[i];

		if (s->bulk)
			ulrpc_bulk_close(s->bulk, NULL, NULL);
		if (!s->registered ||
		    !lnet_mem_unregister(l->node, s->call.bulk, bulk_size(l)))
			free(s->call.bulk);
		if (s->body != l->body)
			free(s->body);
	}
	free(l->slots);
	free(l->body);
	free(l);
}

/* ---- statistics ---- */

struct copy {
	const struct load *load;
	struct load_stats *to;
};

static int copy_stats(void *arg)
{
	const struct copy *c = arg;

	*c->to = c->load->stats;
	return 0;
}

void load_stats(struct load *l, struct load_stats *stats)
{
	struct copy c = { l, stats };

	lnet_call(l->node, l->cpt, copy_stats, &c);
}

static void explain_merge(struct load_explain *to,
			  const struct load_explain *from)
{
	for (unsigned int i = 0; i < LOAD_STAGES; i++)
		histogram_merge(&to->stage[i], &from->stage[i]);
	if (from->attempts_max > to->attempts_max)
		to->attempts_max = from->attempts_max;
	to->paths += from->paths;
	for (unsigned int i = 0; i < from->nrails; i++)
		count_rail(to, &from->rail[i].local, &from->rail[i].target,
			   from->rail[i].n);
}

static void servers_merge(struct load_stats *to, const struct load_stats *from)
{
	to->moves += from->moves;
	to->hedged += from->hedged;
	for (unsigned int i = 0; i < from->nservers; i++) {
		const struct load_server *f = &from->server[i];
		struct load_server *t = find_server(to, &f->nid);

		t->answered += f->answered;
		t->lost += f->lost;
		t->sum += f->sum;
		if (f->max > t->max)
			t->max = f->max;
	}
}

void load_stats_merge(struct load_stats *to, const struct load_stats *from)
{
	to->answered += from->answered;
	to->lost += from->lost;
	to->resent += from->resent;
	to->bytes += from->bytes;
	to->behind += from->behind;
	to->inflight += from->inflight;
	if (!to->first || from->first < to->first)
		to->first = from->first;
	if (from->last > to->last)
		to->last = from->last;
	histogram_merge(&to->latency, &from->latency);
	for (unsigned int i = 0; i < LOAD_LOSSES; i++) {
		if (from->loss[i].n && !to->loss[i].n) {
			to->loss[i] = from->loss[i];
			continue;
		}
		to->loss[i].n += from->loss[i].n;
	}
	for (unsigned int i = 0; i < LOAD_WENT; i++)
		to->went[i] += from->went[i];
	servers_merge(to, from);
	explain_merge(&to->explain, &from->explain);
}

/* ---- histograms ---- */

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	if (!from->n)
		return;
	if (!to->n || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->n += from->n;
	to->sum += from->sum;
	for (unsigned int i = 0; i < HISTOGRAM_SIZE; i++)
		to->count[i] += from->count[i];
}

static uint64_t middle_of(unsigned int index)
{
	unsigned int shift;
	uint64_t low;

	if (index < 2u << HISTOGRAM_BITS)
		return index;
	shift = (index >> HISTOGRAM_BITS) - 1;
	low = (uint64_t)(index - (shift << HISTOGRAM_BITS)) << shift;
	return low + ((UINT64_C(1) << shift) - 1) / 2;
}

uint64_t histogram_quantile(const struct histogram *h, double q)
{
	uint64_t rank = (uint64_t)(q * (double)h->n), seen = 0, ns;

	if (!h->n)
		return 0;
	/* The rank is rounded up, and at least 1. */
	if ((double)rank < q * (double)h->n || !rank)
		rank++;
	if (rank >= h->n)
		return h->max;
	for (unsigned int i = 0; i < HISTOGRAM_SIZE; i++) {
		seen += h->count[i];
		if (seen < rank)
			continue;
		ns = middle_of(i);
		return ns < h->min ? h->min : ns > h->max ? h->max : ns;
	}
	return h->max;
}

void histogram_since(struct histogram *to, const struct histogram *now,
		     const struct histogram *before)
{
	to->n = now->n - before->n;
	to->min = now->min;
	to->max = now->max;
	to->sum = now->sum - before->sum;
	for (unsigned int i = 0; i < HISTOGRAM_SIZE; i++)
		to->count[i] = now->count[i] - before->count[i];
}
