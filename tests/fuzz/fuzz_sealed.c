/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client and a server, on two simulated nodes, that prove who they are and
 * make calls, with somebody on the way who does what the input says. Its first
 * byte chooses the keys and the flavour, and each of the next CALLS what
 * happens before a call. Of the rest each message of RPC takes a byte, and some
 * two bytes more: it passes, is changed, lost, cut off, repeated later, or
 * written over with another one; once the input is at its end, all pass.
 *
 * Whatever he does, nothing is executed that was not sent, or twice; nothing is
 * answered that the service has not said; each call ends; and when he has gone,
 * calls get through.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "sim/sim.h"
#include "tools/ulnet-keys/make.h"
#include "ulnet/keys.h"
#include "ulnet/lnet.h"
#include "ulnet/service.h"
#include "ulnet/sim.h"

#define SEC	       UINT64_C(1000000000)
#define MSEC	       UINT64_C(1000000)
#define CALLS	       3
#define KEPT	       4
#define KEPT_MAX       4096
#define DEADLINE       20 /* s */
#define STEP	       5  /* ms */
#define BODY	       16
#define CLIENT_ADDRESS 1 /* the last byte of it */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENT, SERVER };

/* LNet's header of a PUT between NIDs of 4 bytes. */
enum {
	HDR_SRC = 8,
	HDR_TYPE = 24,
	HDR_MATCH = 48,
	HDR_DATA = 56,
	HDR_PORTAL = 64,
	HDR_END = 68,
};

/* A message that was on its way. */
struct kept {
	unsigned int from;
	uint32_t portal;
	uint64_t match, hdr_data;
	uint8_t bytes[KEPT_MAX];
	size_t length;
};

struct call {
	unsigned int n, ran;
	bool ended;
	enum ulrpc_cause cause;
};

struct talk {
	struct lnet_sim *sim;
	struct ulrpc *rpc[2];
	struct ulrpc_client *client;
	enum ulrpc_flavour flavour;
	bool cluster;
	const uint8_t *input, *end;
	struct kept kept[KEPT], again; /* again: to be repeated, if length */
	const uint8_t *before;	       /* of each call */
	struct call calls[CALLS + 1];
};

/* ---- keys, made once ---- */

static const char *const files[] = { "client.crt",    "client.key",
				     "server.crt",    "server.key",
				     "authority.crt", "authority.key",
				     "revoked.crl",   "cluster.key" };

static struct ulrpc_keys *load(const char *dir, unsigned int side, bool cluster)
{
	char path[ARRAY_SIZE(files)][128], why[256];
	struct ulrpc_keys_conf conf = { .cluster = path[7] };
	struct ulrpc_keys *k;

	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", dir, files[i]);
	if (!cluster)
		conf = (struct ulrpc_keys_conf){
			.certificate = path[2 * side],
			.key = path[2 * side + 1],
			.authority = path[4],
			.revoked = path[6],
		};
	BUG_ON(ulrpc_keys_load(&conf, &k, why, sizeof(why)) != 0);
	return k;
}

static struct ulrpc_keys *keys_of(unsigned int side, bool cluster)
{
	static struct ulrpc_keys *made[2][2];
	char dir[] = "/tmp/ulnet-fuzz-XXXXXX", path[128];
	struct make m = { .who = "fuzz", .folder = dir, .days = 30 };

	if (made[0][0])
		return made[side][cluster];
	BUG_ON(!mkdtemp(dir));
	m.now = time(NULL);
	BUG_ON(make_authority(&m, "site") || make_node(&m, "client") ||
	       make_node(&m, "server") || make_cluster(&m, "one", false));
	for (unsigned int i = 0; i < 4; i++)
		made[i / 2][i % 2] = load(dir, i / 2, i % 2);
	for (unsigned int i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		unlink(path);
	}
	rmdir(dir);
	return made[side][cluster];
}

/* ---- who is on the way ---- */

static uint8_t next(struct talk *t)
{
	return t->input < t->end ? *t->input++ : 0;
}

static void keep(struct kept *k, const uint8_t *hdr, const uint8_t *payload,
		 size_t length)
{
	k->from = hdr[HDR_SRC] == CLIENT_ADDRESS ? CLIENT : SERVER;
	k->portal = load_le32(hdr + HDR_PORTAL);
	k->match = load_le64(hdr + HDR_MATCH);
	k->hdr_data = load_le64(hdr + HDR_DATA);
	k->length = MIN(length, (size_t)KEPT_MAX);
	memcpy(k->bytes, payload, k->length);
}

static bool is_of_rpc(const uint8_t *hdr, size_t hdr_len)
{
	uint32_t portal = load_le32(hdr + HDR_PORTAL);

	return hdr_len == LNET_HDR_SIZE &&
	       load_le32(hdr + HDR_TYPE) == LNET_MSG_PUT &&
	       portal >= ULRPC_PORTAL_FIRST && portal <= ULRPC_PORTAL_REPLY;
}

static void lose(uint8_t *hdr)
{
	store_le32(hdr + HDR_PORTAL, ULRPC_PORTAL_FIRST - 1);
}

static void on_wire(void *arg, uint8_t *hdr, size_t hdr_len, uint8_t *payload,
		    size_t length)
{
	struct talk *t = arg;
	struct kept *k;
	uint8_t what;
	size_t at;

	if (!is_of_rpc(hdr, hdr_len) || t->input >= t->end)
		return;
	what = next(t);
	k = &t->kept[what >> 3 & (KEPT - 1)];
	switch (what & 7) {
	case 2:
		at = next(t) % MAX(length, (size_t)1);
		if (length)
			payload[what & 8 ? length - 1 - at : at] ^= next(t) | 1;
		break;
	case 3:
		lose(hdr);
		break;
	case 4: /* all, or cut off */
		keep(&t->again, hdr, payload, length);
		at = next(t);
		if (at <= t->again.length)
			t->again.length -= at;
		if (what & 8)
			lose(hdr);
		break;
	case 5:
		memcpy(payload, k->bytes, MIN(length, k->length));
		break;
	case 6:
		at = next(t) % (HDR_END - HDR_MATCH);
		hdr[HDR_MATCH + at] ^= next(t) | 1;
		break;
	case 7:
		keep(k, hdr, payload, length);
		break;
	}
}

static void on_put(const struct ulnet_event *ev)
{
	if (ev->unlinked)
		free(ev->user_ptr);
}

/* What was kept is sent once more, by the NID that has sent it. */
static void repeat(struct talk *t)
{
	struct kept *k = &t->again;
	struct ulnet_md md = { .length = k->length, .handler = on_put };
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	struct ulnet_md_handle handle;

	if (!k->length)
		return;
	md.threshold = 1;
	md.start = md.user_ptr = malloc(k->length);
	BUG_ON(!md.start);
	memcpy(md.start, k->bytes, k->length);
	BUG_ON(lnet_nid_parse(k->from == CLIENT ? "10.77.0.2@tcp"
						: "10.77.0.1@tcp",
			      &to.nid));
	BUG_ON(LNetMDBind(lnet_sim_node(t->sim, k->from), &md, LNET_UNLINK,
			  &handle));
	BUG_ON(LNetPut(LNET_NID_ANY, handle, LNET_NOACK_REQ, to, k->portal,
		       k->match, 0, k->hdr_data));
	k->length = 0;
}

/* ---- the service, and its calls ---- */

static void body_of(unsigned int call, char body[BODY])
{
	memset(body, 0, BODY);
	snprintf(body, BODY, "call number %u", call);
}

static void on_call(void *arg, struct ulrpc_request *r, const void *body,
		    size_t length)
{
	struct talk *t = arg;
	struct ulrpc_peer peer;
	char genuine[BODY];
	unsigned int n;

	BUG_ON(length != BODY);
	n = (unsigned int)((const char *)body)[BODY - 4] - '0';
	BUG_ON(n > CALLS);
	body_of(n, genuine);
	BUG_ON(memcmp(body, genuine, BODY) != 0);
	BUG_ON(t->calls[n].ran++);
	ulrpc_request_peer(r, &peer);
	BUG_ON(peer.flavour != t->flavour);
	BUG_ON(strcmp(peer.name, t->cluster ? "one" : "client") != 0);
	genuine[0] = 'C';
	ulrpc_reply(r, genuine, BODY);
}

static void on_end(void *arg, const struct ulrpc_outcome *end,
		   const void *reply, size_t length)
{
	struct call *c = arg;
	char genuine[BODY];

	BUG_ON(c->ended);
	c->ended = true;
	c->cause = end->cause;
	BUG_ON(end->execution == ULRPC_NOT_EXECUTED && c->ran);
	BUG_ON(end->execution == ULRPC_EXECUTED && !c->ran);
	if (end->cause != ULRPC_CAUSE_OK)
		return;
	body_of(c->n, genuine);
	genuine[0] = 'C';
	BUG_ON(length != BODY || memcmp(reply, genuine, BODY) != 0);
}

static void server_open(struct talk *t)
{
	struct ulrpc_method_conf method = { .name = "say",
					    .handler = on_call,
					    .arg = t,
					    .run = ULRPC_RUN_INLINE };
	struct ulrpc_service_conf conf;
	struct ulrpc_conf rpc;

	ulrpc_conf_init(&rpc);
	rpc.keys = keys_of(SERVER, t->cluster);
	BUG_ON(ulrpc_open(lnet_sim_node(t->sim, SERVER), &rpc,
			  &t->rpc[SERVER]));
	ulrpc_service_conf_init(&conf);
	conf.name = "fuzz";
	conf.methods = &method;
	conf.nmethods = 1;
	conf.flavour = t->flavour;
	BUG_ON(ulrpc_service_start(t->rpc[SERVER], &conf, NULL));
}

static void client_open(struct talk *t)
{
	struct ulrpc_client_conf conf;
	struct ulnet_nid nid;
	struct ulrpc_conf rpc;

	ulrpc_conf_init(&rpc);
	rpc.keys = keys_of(CLIENT, t->cluster);
	BUG_ON(ulrpc_open(lnet_sim_node(t->sim, CLIENT), &rpc,
			  &t->rpc[CLIENT]));
	BUG_ON(lnet_nid_parse("10.77.0.2@tcp", &nid));
	ulrpc_client_conf_init(&conf);
	conf.nids = &nid;
	conf.nnids = 1;
	conf.service = "fuzz";
	conf.server = t->cluster ? NULL : "server";
	BUG_ON(ulrpc_client_open(t->rpc[CLIENT], &conf, &t->client));
}

static void call(struct talk *t, unsigned int n)
{
	const struct ulrpc_call_conf conf = {
		.deadline = DEADLINE * UINT64_C(1000000),
		.semantics = ULRPC_AT_MOST_ONCE,
	};
	struct call *c = &t->calls[n];
	char body[BODY];

	c->n = n;
	body_of(n, body);
	BUG_ON(ulrpc_call(t->client, ulrpc_method("say"), body, BODY, &conf,
			  on_end, c, NULL));
	for (unsigned int ms = 0; !c->ended; ms += STEP) {
		BUG_ON(ms > (DEADLINE + 1) * 1000);
		lnet_sim_run(t->sim, STEP * MSEC);
		repeat(t);
	}
}

/* What happens before a call: the connection is idle for so long that it ends,
 * or the server restarts. */
static void between(struct talk *t, uint8_t what)
{
	if (what & 1)
		lnet_sim_run(t->sim, 400 * SEC);
	if (what & 2) {
		BUG_ON(ulrpc_close(t->rpc[SERVER]));
		server_open(t);
	}
}

static void unheard(int level, const char *line, void *arg)
{
	(void)level;
	(void)line;
	(void)arg;
}

static void talk(struct talk *t)
{
	struct ulnet_conf conf = { .discovery = LNET_DISCOVERY_OFF };

	BUG_ON(lnet_sim_new(1, 1, &t->sim));
	BUG_ON(lnet_sim_node_add(t->sim, "10.77.0.1@tcp", &conf, NULL, NULL));
	BUG_ON(lnet_sim_node_add(t->sim, "10.77.0.2@tcp", &conf, NULL, NULL) !=
	       SERVER);
	server_open(t);
	client_open(t);
	sim_tap(t->sim, on_wire, t);
	for (unsigned int i = 0; i < CALLS; i++) {
		between(t, t->before[i]);
		call(t, i);
	}
	t->input = t->end; /* from now on all messages pass */
	t->again.length = 0;
	call(t, CALLS);
	BUG_ON(t->calls[CALLS].cause != ULRPC_CAUSE_OK);
	ulrpc_client_close(t->client);
	BUG_ON(lnet_sim_free(t->sim));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum ulrpc_flavour flavours[] = { ULRPC_FLAVOUR_AUTH,
						       ULRPC_FLAVOUR_INTEGRITY,
						       ULRPC_FLAVOUR_PRIVACY,
						       ULRPC_FLAVOUR_PRIVACY };
	struct talk *t;

	if (size < 1 + CALLS)
		return 0;
	t = calloc(1, sizeof(*t));
	BUG_ON(!t);
	lnet_log_set(LNET_LOG_ERR, unheard, NULL);
	t->cluster = data[0] & 1;
	t->flavour = flavours[data[0] >> 1 & 3];
	t->before = data + 1;
	t->input = data + 1 + CALLS;
	t->end = data + size;
	talk(t);
	free(t);
	return 0;
}
