/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/rpc/replicas/servers.h"

struct lnet_sim *sim;
struct ulrpc *rpc;
struct ulrpc_replicas *rs;
struct ulrpc_replicas_conf conf;
struct server servers[SERVERS + 1];
struct one calls[CALLS];

struct later {
	struct ulrpc_request *request;
	unsigned int server, life;
	uint32_t answer;
	uint8_t *lent; /* what the call lends, a source; NULL: nothing */
};

char said[16];
const char *called;
uint8_t long_body[2 * 1048576];

static void reply_later(void *arg)
{
	struct later *l = arg;

	if (lnet_sim_node(sim, l->server) && servers[l->server].life == l->life)
		ulrpc_reply(l->request, &l->answer, sizeof(l->answer));
	free(l->lent);
	free(l);
}

static void on_taken(void *arg, int status, uint64_t moved)
{
	struct later *l = arg;

	if (status) {
		ulrpc_fail(l->request, status);
		free(l->lent);
		free(l);
		return;
	}
	cr_assert_eq(memcmp(l->lent, long_body, moved), 0);
	servers[l->server].taken++;
	cr_assert_eq(lnet_sim_at(sim, servers[l->server].delay, reply_later, l),
		     0);
}

/* Reads the source that the call lends. */
static void take(struct later *l, uint64_t length)
{
	const struct iovec iov = { l->lent = malloc(length), length };

	cr_assert_eq(ulrpc_bulk_get(l->request, 0, 0, &iov, 1, on_taken, l), 0);
}

/* Answers with the number of the server, after its delay. */
static void work(void *arg, struct ulrpc_request *r, const void *body,
		 size_t length)
{
	struct server *s = arg;
	struct later *l;
	struct ulrpc_metadata pair;
	struct ulrpc_bulk_info lent;
	uint32_t index;

	if (length != sizeof(index)) {
		cr_assert_eq(length, sizeof(long_body));
		cr_assert_eq(memcmp(body, long_body, length), 0);
	}
	memcpy(&index, body, sizeof(index));
	calls[index].executed++;
	if (!ulrpc_request_find(r, "user", &pair)) {
		const char own = (char)('0' + (s - servers));

		snprintf(said, sizeof(said), "%.*s", (int)pair.length,
			 (const char *)pair.value);
		cr_assert_eq(ulrpc_reply_add(r, "server", &own, 1), 0);
	}
	calls[index].by = (unsigned int)(s - servers);
	s->executed++;
	if (s->retry_after) {
		ulrpc_request_sleep(r, s->delay / 1000);
		ulrpc_reply(r, NULL, 0);
		return;
	}
	l = malloc(sizeof(*l));
	*l = (struct later){ r, (unsigned int)(s - servers), s->life,
			     (uint32_t)(s - servers), NULL };
	if (!ulrpc_request_bulk(r, 0, &lent) &&
	    lent.access == ULRPC_BULK_SOURCE)
		take(l, lent.length);
	else
		cr_assert_eq(lnet_sim_at(sim, s->delay, reply_later, l), 0);
}

static int start(void *arg, unsigned int index, struct lnet *node)
{
	struct server *s = &servers[index];
	const struct ulrpc_method_conf methods[] = {
		{ .name = "work", .handler = work, .arg = s },
		{ .name = "other", .handler = work, .arg = s },
	};
	struct ulrpc_service_conf service;
	struct ulrpc_service *svc;

	(void)arg;
	s->life++;
	cr_assert_eq(ulrpc_open(node, NULL, &s->rpc), 0);
	if (!index) {
		rpc = s->rpc;
		return 0;
	}
	ulrpc_service_conf_init(&service);
	service.name = "test";
	service.methods = methods;
	service.nmethods = ARRAY_SIZE(methods);
	if (s->retry_after) {
		service.workers_min = service.workers_max = 1;
		service.queue_max = 1;
		service.retry_after = s->retry_after;
	}
	cr_assert_eq(ulrpc_service_start(s->rpc, &service, &svc), 0);
	return 0;
}

struct ulnet_nid server_nid(unsigned int index)
{
	return lnet_nid_make(LNET_NET(LNET_TYPE_SOCK, 0),
			     0x0a000000 + index + 1);
}

/* @apart: each node has turns of its own, and so can be late. */
void sim_open_as(unsigned int cpts, bool apart)
{
	static const struct ulnet_sim_link link = { .latency = 50000,
						    .connect = 100000 };
	char nid[LNET_NIDSTR_SIZE];

	memset(servers, 0, sizeof(servers));
	memset(calls, 0, sizeof(calls));
	said[0] = 0;
	called = "work";
	cr_assert_eq(lnet_sim_new(7, cpts, &sim), 0);
	if (apart)
		lnet_sim_apart(sim);
	cr_assert_eq(
		lnet_sim_link_set(sim, &LNET_NID_ANY, &LNET_NID_ANY, &link), 0);
	for (unsigned int i = 0; i <= SERVERS; i++) {
		struct ulnet_nid own = server_nid(i);

		lnet_nid_format(&own, nid, sizeof(nid));
		cr_assert_eq(lnet_sim_node_add(sim, nid, NULL, start, NULL),
			     (int)i);
	}
	ulrpc_replicas_conf_init(&conf);
	conf.client.service = "test";
}

void sim_open(unsigned int cpts)
{
	sim_open_as(cpts, false);
}

void sim_close(void)
{
	ulrpc_replicas_close(rs);
	cr_assert_eq(lnet_sim_free(sim), 0);
}

/* The servers of this test are numbers 1 to @n. */
void open_nids(unsigned int n)
{
	struct ulnet_nid nids[SERVERS];

	for (unsigned int i = 0; i < n; i++)
		nids[i] = server_nid(i + 1);
	conf.client.nids = nids;
	conf.client.nnids = n;
	cr_assert_eq(ulrpc_replicas_open(rpc, &conf, &rs), 0);
}

void on_end(void *arg, const struct ulrpc_replicas_outcome *o,
	    const void *reply, size_t length)
{
	struct one *one = arg;

	one->n++;
	one->o = *o;
	one->took = lnet_sim_now(sim) - one->began;
	if (length == sizeof(one->answer))
		memcpy(&one->answer, reply, length);
}

struct ulrpc_replicas_call *call_with(
	unsigned int index, const struct ulrpc_replicas_call_conf *how)
{
	const uint32_t body = index;
	struct ulrpc_replicas_call *call;

	calls[index] = (struct one){ .began = lnet_sim_now(sim) };
	cr_assert_eq(ulrpc_replicas_call(rs, ulrpc_method(called), &body,
					 sizeof(body), how, on_end,
					 &calls[index], &call),
		     0);
	return call;
}

void call(unsigned int index, uint64_t deadline, enum ulrpc_semantics semantics)
{
	const struct ulrpc_replicas_call_conf how = {
		.call = { .deadline = deadline, .semantics = semantics },
	};

	ulrpc_replicas_call_put(call_with(index, &how));
}

/* It went well, at the server that it says. */
void went_well(unsigned int index)
{
	const struct one *one = &calls[index];
	struct ulnet_nid nid = server_nid(one->answer);

	cr_assert_eq(one->n, 1, "call %u has ended %u times", index, one->n);
	cr_assert_eq(one->o.call.cause, ULRPC_CAUSE_OK, "call %u: %s %s", index,
		     ulrpc_cause_name(one->o.call.cause), one->o.call.text);
	cr_assert(lnet_nid_eq(&one->o.server, &nid));
}

/* A call, which has to go well, and the server that has answered. */
unsigned int goes_to(void)
{
	call(0, 30000000, ULRPC_AT_MOST_ONCE);
	lnet_sim_run(sim, SEC);
	went_well(0);
	cr_assert_eq(calls[0].executed, 1);
	return calls[0].answer;
}

/* The name stands for these servers, which end with 0. */
void set_servers(const unsigned int *some)
{
	struct ulnet_address addresses[SERVERS] = { 0 };
	struct ulnet_name_answer a = { .addresses = addresses };

	for (; some[a.n]; a.n++)
		addresses[a.n].nid = server_nid(some[a.n]);
	cr_assert_eq(lnet_sim_name_set(sim, "servers", &a, 0), 0);
}
