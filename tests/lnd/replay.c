/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plays each tape of tests/wire/tcp/ against a node, from both sides
 * (replay.h).
 *
 *	replay [PART OF A NAME]...
 *
 * The node discovers its peer, and is discovered, as anywhere else. Each byte
 * that it sends must be what the real node has sent, except for what a node
 * chooses itself, such as incarnations and handles. The program prints the
 * frames of the tape that cannot be played, or that the test makes the node
 * send, and the messages that the node sends beyond the tape; "cases" says how
 * many of each there must be. Each tape runs in a process and a network
 * namespace of its own, with the real addresses and ports.
 */
#include "tests/lnd/replay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/lnd/apart.h"
#include "tests/lnd/netdev.h"
#include "tests/lnd/netns.h"
#include "tests/lnd/replay_lst.h"
#include "ulnet/route.h"

#define POLL_US	 500
#define PATIENCE 40 /* s without any progress: the node hangs */
/* ms. If the machine holds the node up for longer than this, the node's
 * time-outs make it repeat messages, and the repetitions are on no tape. The
 * tape is then played again, STALLS times in all. */
#define STALL	100
#define STALLS	5
#define STALLED 78 /* the exit status of such a run */
/* as kernel nodes show a peer's state: multi-rail, discovered, NIDs up to date
 */
#define PEER_IS_UP_TO_DATE 273
/* the first word of the handle in pings that the test sends, which are on no
 * tape */
#define PROBE	   UINT64_C(0x70726f6265)
#define PROBE_SINK PING_BY_DISCOVERY

static const struct replay_case cases[] = {
	{ .tape = "ping", .connects = true, .nis = { "10.77.0.3@tcp" } },
	{ .tape = "ping", .nis = { "10.77.0.2@tcp" } },
	{ .tape = "discover", .connects = true, .nis = { "10.77.0.3@tcp" } },
	{ .tape = "discover", .nis = { "10.77.0.2@tcp" } },
	{ .tape = "bulk", .connects = true, .nis = { "10.77.0.3@tcp" } },
	{ .tape = "bulk", .nis = { "10.77.0.2@tcp" }, .left_out = 2 },
	{ .tape = "bulk",
	  .connects = true,
	  .nis = { "10.77.0.3@tcp" },
	  .swapped = true },
	{ .tape = "bulk",
	  .nis = { "10.77.0.2@tcp" },
	  .swapped = true,
	  .left_out = 2 },
	{ .tape = "two-nis",
	  .connects = true,
	  .nis = { "10.77.0.41@tcp", "10.77.1.41@tcp" },
	  .late = "10.77.2.41@tcp3",
	  .late_frame = 16,
	  .history = 2,
	  .by_hand = 1,
	  .beside = { .pushes = 1, .questions = 1 } },
	{ .tape = "two-nis",
	  .nis = { "10.77.0.42@tcp", "10.77.1.42@tcp" },
	  .by_hand = 1,
	  .beside = { .pushes = 1, .questions = 1 } },
	{ .tape = "second-ni",
	  .connects = true,
	  .nis = { "10.77.0.41@tcp", "10.77.1.41@tcp" },
	  .by_hand = 1 },
	{ .tape = "second-ni",
	  .nis = { "10.77.0.42@tcp", "10.77.1.42@tcp" },
	  .beside = { .pushes = 1, .questions = 1 } },
	{ .tape = "cross",
	  .connects = true,
	  .nis = { "10.77.0.41@tcp", "10.77.1.41@tcp" },
	  .by_hand = 2 },
	{ .tape = "cross",
	  .nis = { "10.77.0.42@tcp", "10.77.1.42@tcp" },
	  .beside = { .pushes = 1, .questions = 1, .about_other_ni = true } },
	{ .tape = "keepalive",
	  .connects = true,
	  .nis = { "10.77.0.3@tcp" },
	  .keepalive = 1 },
	{ .tape = "keepalive", .nis = { "10.77.0.2@tcp" } },
	{ .tape = "large", .connects = true, .nis = { "fd77::3@tcp" } },
	{ .tape = "large", .nis = { "fd77::2@tcp" } },
	{ .tape = "router",
	  .connects = true,
	  .nis = { "10.77.0.2@tcp1" },
	  .gateway = "10.77.0.4@tcp1",
	  .far = "10.77.1.3@tcp2",
	  .left_out = 1 },
	{ .tape = "router",
	  .nis = { "10.77.0.4@tcp1", "10.77.1.4@tcp2" },
	  .router = true,
	  .far = "10.77.1.3@tcp2",
	  .left_out = 1 },
	{ .tape = "lst-ping",
	  .connects = true,
	  .nis = { "10.77.0.13@tcp" },
	  .lst = true,
	  .reminders = 6 },
	{ .tape = "lst-ping", .nis = { "10.77.0.14@tcp" }, .lst = true },
	{ .tape = "lst-brw",
	  .connects = true,
	  .nis = { "10.77.0.13@tcp" },
	  .lst = true,
	  .reminders = 4 },
	{ .tape = "lst-brw", .nis = { "10.77.0.14@tcp" }, .lst = true },
};

/* ---- the node ---- */

/* The handler of all operations and buffers. */
static void on_event(const struct ulnet_event *ev)
{
	struct replay_step *s = ev->user_ptr;

	if (!s->status)
		s->status = ev->status;
	if (ev->type != LNET_EVENT_SEND)
		s->mlength = ev->mlength;
	if (ev->unlinked)
		s->done = true;
}

static void on_ping(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct replay_step *s = arg;

	s->status = status;
	if (!status && info->nnis == 0)
		s->status = -EPROTO;
	s->done = true;
}

static int add_ni(struct replay *r, const char *text)
{
	/* Behave as a kernel node: open all connections at once, and use those
	 * for bulk from 1 KiB on. The pause before another attempt to connect,
	 * which would come from another port, is so long that a slow machine
	 * causes none. */
	struct ulnet_tunable tunables[] = { { "eager_bulk", 1 },
					    { "min_bulk", 1024 },
					    { "max_reconnectms", 3600000 },
					    { "keepalive", r->c->keepalive } };
	struct ulnet_ni_conf conf = { 0 };
	union netif_addr addr;
	int rc = lnet_nid_parse(text, &conf.nid);

	if (rc)
		return rc;
	conf.tunables = tunables;
	conf.ntunables = r->c->keepalive ? 4 : 3;
	addr = netif_addr(&conf.nid, 0);
	rc = replay_add_addr(&addr);
	return rc ? rc : lnet_ni_add(r->node, &conf);
}

/* Turns on routing on a router, or adds the route of another node. */
static int set_routing(struct replay *r)
{
	struct ulnet_routing routing = { .enabled = true };
	struct ulnet_route route = { 0 };
	struct ulnet_nid far;
	int rc;

	if (r->c->router)
		return lnet_routing_set(r->node, &routing);
	if (!r->c->gateway)
		return 0;
	rc = lnet_nid_parse(r->c->far, &far);
	if (!rc)
		rc = lnet_nid_parse(r->c->gateway, &route.gateway);
	route.net = lnet_nid_net(&far);
	return rc ? rc : lnet_route_add(r->node, &route);
}

/* Attaches a buffer for the PUT or GET of frame @i. */
static int post(struct replay *r, unsigned int i)
{
	struct replay_step *s = &r->plan.step[i];
	bool get = s->hdr.type == LNET_MSG_GET;
	struct ulnet_md md = { .start = s->buf,
			       .length = (uint32_t)s->len,
			       .threshold = 1,
			       .options = get ? LNET_MD_OP_GET : LNET_MD_OP_PUT,
			       .user_ptr = s,
			       .handler = on_event };
	struct ulnet_id any = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_me_handle me;
	struct ulnet_md_handle handle;
	int rc = LNetMEAttach(r->node, s->hdr.portal, any, s->hdr.match_bits, 0,
			      LNET_UNLINK, LNET_INS_AFTER, &me);

	return rc ? rc : LNetMDAttach(me, &md, LNET_UNLINK, &handle);
}

/* Makes the node send the PUT or GET of frame @i. */
static int begin(struct replay *r, unsigned int i)
{
	struct replay_step *s = &r->plan.step[i];
	const struct lnet_hdr *hdr = &s->hdr;
	struct ulnet_id target = { hdr->dest_nid, hdr->dest_pid };
	bool get = hdr->type == LNET_MSG_GET;
	bool ack = !get && !wire_handle_is_none(&hdr->wmd);
	struct ulnet_md md = { .start = s->buf,
			       .length = (uint32_t)s->len,
			       .threshold = get || ack ? 2 : 1,
			       .user_ptr = s,
			       .handler = on_event,
			       .options = get ? LNET_MD_TRUNCATE : 0 };
	struct ulnet_md_handle handle;
	int rc;

	s->begun = true;
	if (get && hdr->portal == PING_PORTAL && s->len == PING_BY_HAND &&
	    !r->c->nis[1])
		return lnet_ping(r->node, target, 0, on_ping, s);
	rc = LNetMDBind(r->node, &md, LNET_UNLINK, &handle);
	if (rc)
		return rc;
	if (get)
		return LNetGet(hdr->src_nid, handle, target, hdr->portal,
			       hdr->match_bits, hdr->offset);
	return LNetPut(hdr->src_nid, handle,
		       ack ? LNET_ACK_REQ : LNET_NOACK_REQ, target, hdr->portal,
		       hdr->match_bits, hdr->offset, hdr->hdr_data);
}

static void on_discovered(void *arg, int status)
{
	struct replay_step *s = arg;

	s->status = status;
	s->done = true;
}

/* Makes the node discover the peer at frame @i. The message that is next on the
 * tape does that, unless there is none, or a gateway is to be discovered: then
 * lnet_discover() does. */
static int begin_discovery(struct replay *r, unsigned int i)
{
	struct replay_step *s = &r->plan.step[i];
	unsigned int k = i;

	s->begun = true;
	while (++k < r->tape.nframes)
		if (r->plan.step[k].part == PART_ORIGIN &&
		    r->plan.step[k].hdr.portal != PING_PORTAL)
			break;
	if (k < r->tape.nframes && !r->c->gateway) {
		s->done = true;
		return begin(r, k);
	}
	return lnet_discover(r->node, &s->hdr.dest_nid, 0, on_discovered, s);
}

/* Makes the node send frame @i, if it does not by itself. */
static bool begin_ours(struct replay *r, unsigned int i)
{
	struct replay_step *s = &r->plan.step[i];
	int rc = 0;

	if (s->part == PART_ORIGIN && !s->begun)
		rc = begin(r, i);
	else if (s->part == PART_OWN && s->hdr.type == LNET_MSG_GET &&
		 !s->begun && !r->c->lst)
		rc = begin_discovery(r, i);
	return !rc || replay_complain(r, i, "cannot begin it");
}

/* Opens the node. It listens only if it is not the one that connects: the other
 * node's address is this machine's, too. */
static int node_up(struct replay *r)
{
	struct ulnet_conf conf;
	int rc;

	lnet_conf_init(&conf);
	conf.run = LNET_RUN_POLL;
	if (r->c->connects)
		conf.accept = LNET_ACCEPT_NONE;
	/* the pid of kernel nodes, whether they listen or not */
	conf.pid = LNET_PID_LUSTRE;
	rc = lnet_open(&conf, &r->node);
	for (unsigned int i = 0; !rc && i < REPLAY_NIS_MAX; i++)
		if (r->c->nis[i])
			rc = add_ni(r, r->c->nis[i]);
	if (!rc)
		rc = set_routing(r);
	if (!rc)
		rc = replay_lst_open(r);
	for (unsigned int i = 0; !rc && i < r->tape.nframes; i++)
		if (!r->plan.step[i].ours && r->plan.step[i].buf)
			rc = post(r, i);
	return rc;
}

/* ---- time ---- */

static int64_t milliseconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static void note_stall(struct replay *r)
{
	int64_t now = milliseconds();

	if (r->pumped && now - r->pumped > STALL)
		r->stalled = true;
	r->pumped = now;
}

static void be_patient(struct replay *r)
{
	note_stall(r);
	r->patient_until = r->pumped + PATIENCE * 1000;
}

bool replay_pump(struct replay *r, unsigned int i)
{
	lnet_poll(r->node, POLL_US);
	note_stall(r);
	for (unsigned int k = 0; k < r->tape.nconns; k++)
		if (r->conn[k].fd >= 0 && raw_fill(&r->conn[k]))
			return replay_complain(r, i, "cannot receive");
	if (!replay_far_fill(r))
		return replay_complain(r, i, "the far node cannot receive");
	if (!replay_beside(r))
		return replay_complain(r, i, "bad beside it");
	if (r->pumped < r->patient_until)
		return true;
	return replay_complain(r, i, "nothing happens");
}

/* ---- connections ---- */

static bool accept_conn(struct replay *r, unsigned int i, unsigned int k)
{
	const union netif_addr *want = &r->tape.conn[k].from;
	char text[SOCK_ADDRSTR_SIZE], real[SOCK_ADDRSTR_SIZE];
	union netif_addr from;
	int rc;

	while ((rc = raw_accept(r->listen_fd, &r->conn[k], &from)) == -EAGAIN)
		if (!replay_pump(r, i))
			return false;
	if (rc)
		return replay_complain(r, i, "cannot accept");
	sock_addr_format(&from, text, sizeof(text));
	if (strcmp(text, sock_addr_format(want, real, sizeof(real))) != 0) {
		fprintf(stderr, "connection from %s\n", text);
		return replay_complain(r, i,
				       "not from where the real one came");
	}
	return true;
}

/* Opens the connection of frame @i, or waits until our node has, unless it is
 * open. */
static bool need_conn(struct replay *r, unsigned int i)
{
	unsigned int k = r->tape.frame[i].conn;
	const struct tape_conn *c = &r->tape.conn[k];

	if (r->conn[k].fd >= 0)
		return true;
	if (r->c->connects)
		return accept_conn(r, i, k);
	if (raw_connect(&c->from, &c->to, &r->conn[k]))
		return replay_complain(r, i, "cannot connect");
	return true;
}

/* ---- what they send ---- */

/* Replaces the handle in an answer: the operation has another one on our node.
 */
static void patch_handle(const struct replay *r, unsigned int i, uint8_t *bytes)
{
	const struct replay_step *s = &r->plan.step[i];
	const struct replay_step *o;

	if (s->other < 0 || s->hdr.type == LNET_MSG_PUT ||
	    s->hdr.type == LNET_MSG_GET)
		return;
	o = &r->plan.step[s->other];
	if (o->part == PART_ORIGIN || o->part == PART_OWN ||
	    o->part == PART_TEST)
		memcpy(bytes + replay_head(&r->tape) - LNET_UNION_SIZE,
		       &o->handle, sizeof(o->handle));
}

static bool play_theirs(struct replay *r, unsigned int i)
{
	const struct tape_frame *f = &r->tape.frame[i];
	struct raw_conn *c = &r->conn[f->conn];
	size_t sent = 0;
	uint8_t *bytes;
	bool ok = true;

	if (r->c->late && r->c->late_frame == i + 1 && add_ni(r, r->c->late))
		return replay_complain(r, i, "cannot add the late NI");
	if (!need_conn(r, i) || (r->c->lst && !replay_lst_pause(r, i)))
		return false;
	bytes = malloc(f->len);
	if (!bytes)
		return replay_complain(r, i, "no memory");
	memcpy(bytes, f->bytes, f->len);
	if (f->kind == TAPE_LNET) {
		patch_handle(r, i, bytes);
		ok = !r->c->lst || replay_lst_patch(r, i, bytes);
		/* acknowledges nothing: what the real node acknowledged here,
		 * our node has not asked for */
		memset(bytes + 16, 0, 8);
	}
	if (f->kind == TAPE_HELLO && f->conn == 0)
		ok = sock_hello_size(&r->hello, bytes) == (int)f->len &&
		     sock_hello_decode(&r->hello, bytes, f->len) == 0;
	if (r->c->swapped)
		tape_swap(f->kind, bytes, f->len);
	while (ok && sent < f->len) {
		if (raw_send(c, bytes, f->len, &sent))
			ok = replay_complain(r, i,
					     "cannot send: connection lost");
		else if (sent < f->len)
			ok = replay_pump(r, i);
	}
	free(bytes);
	return ok;
}

/* ---- what we send ---- */

/* Before frame @i the node may have sent messages of discovery on this
 * connection that are on no tape: takes them. Takes nothing if frame @i itself
 * is such a message, as the two could not be told apart. */
static bool take_beside(struct replay *r, unsigned int i)
{
	struct raw_conn *c = &r->conn[r->tape.frame[i].conn];

	if (r->tape.frame[i].kind != TAPE_LNET ||
	    replay_is_asked(&r->plan, i) ||
	    replay_beside_take(r, c) != TAKEN_BAD)
		return true;
	return replay_complain(r, i, "bad before it");
}

static bool play_ours(struct replay *r, unsigned int i)
{
	const struct tape_frame *f = &r->tape.frame[i];
	struct raw_conn *c = &r->conn[f->conn];
	uint8_t *got;
	bool ok = false;

	if (!begin_ours(r, i) || !need_conn(r, i))
		return false;
	if (r->c->lst && f->kind == TAPE_LNET)
		return replay_lst_take(r, i);
	got = malloc(f->len);
	if (!got)
		return replay_complain(r, i, "no memory");
	while (take_beside(r, i) && !(ok = raw_take(c, got, f->len)) && !c->eof)
		if (!replay_pump(r, i))
			break;
	if (ok)
		ok = replay_check(r, i, got);
	else if (c->eof)
		replay_complain(r, i, "connection lost");
	free(got);
	return ok;
}

/* ---- the whole ---- */

/* Makes the node send the first message, for which it connects. */
static bool begin_first(struct replay *r)
{
	for (unsigned int i = 0; i < r->tape.nframes; i++)
		if (r->plan.step[i].part == PART_ORIGIN ||
		    r->plan.step[i].part == PART_OWN)
			return begin_ours(r, i);
	return true;
}

static void say(const struct replay *r, unsigned int i, const char *what)
{
	printf("  %s: frame %u (line %u): %s\n", what, i + 1,
	       r->tape.frame[i].line, r->plan.step[i].why);
}

bool replay_next(struct replay *r)
{
	unsigned int i = r->next++;
	struct replay_step *s = &r->plan.step[i];
	bool ok = true;

	be_patient(r);
	r->now = i;
	if (s->part == PART_LEFT_OUT)
		say(r, i, "left out");
	else if (s->part == PART_RETURN && !replay_far_sends(r, i))
		ok = false;
	else
		ok = s->ours ? play_ours(r, i) : play_theirs(r, i);
	if (ok && s->part == PART_PASS)
		ok = replay_far_takes(r, i);
	if (s->part == PART_ORIGIN && s->why)
		say(r, i, "made by the test");
	return ok;
}

void replay_give_up(const struct replay *r)
{
	exit(r->stalled ? STALLED : 1);
}

static bool play(struct replay *r)
{
	const union netif_addr *at = &r->tape.conn[0].to;
	bool ok = true;

	if (r->c->connects && raw_listen(at, &r->listen_fd))
		return replay_complain(r, 0, "cannot listen");
	be_patient(r);
	if (r->c->connects && !r->c->lst && !begin_first(r))
		return false;
	if (r->c->connects && r->c->lst && !replay_console(r))
		return false;
	while (ok && r->next < r->tape.nframes)
		ok = replay_next(r);
	return ok;
}

/* Runs one round after the last frame. */
static bool pump_after(struct replay *r, unsigned int i)
{
	return take_beside(r, r->tape.nframes - 1) && replay_pump(r, i);
}

/* Waits for the end of frame @i's operation, or of the buffer that was attached
 * for it. Fails unless all that was sent to it is there. */
static bool check_end(struct replay *r, unsigned int i)
{
	struct replay_step *s = &r->plan.step[i];
	const struct tape_frame *f = &r->tape.frame[i];
	bool get = s->hdr.type == LNET_MSG_GET;
	const uint8_t *data;

	while (!s->done)
		if (!pump_after(r, i))
			return false;
	if (s->status)
		return replay_complain(r, i, strerror(-s->status));
	/* the payload of the answer to our LNetGet() */
	if (get && s->ours)
		f = &r->tape.frame[s->other];
	data = f->bytes + replay_head(&r->tape);
	if (s->mlength && get == s->ours &&
	    memcmp(s->buf, data, s->mlength) != 0)
		return replay_complain(r, i, "not the bytes that were sent");
	if (!s->ours && s->mlength != s->len)
		return replay_complain(r, i, "not all of it came");
	return true;
}

static bool check_discovered(struct replay *r, unsigned int i)
{
	struct replay_step *s = &r->plan.step[i];

	while (s->begun && !s->done)
		if (!pump_after(r, i))
			return false;
	return !s->status || replay_complain(r, i, strerror(-s->status));
}

static bool finish(struct replay *r)
{
	bool ok = true;

	be_patient(r);
	for (unsigned int i = 0; ok && i < r->tape.nframes; i++)
		if (r->plan.step[i].buf)
			ok = check_end(r, i);
		else if (r->plan.step[i].part == PART_OWN)
			ok = check_discovered(r, i);
	while (ok && !replay_beside_is_over(r))
		ok = pump_after(r, r->tape.nframes - 1);
	return ok;
}

static bool is_known(struct replay *r, const struct ulnet_ping_info *info)
{
	struct ulnet_peer_info peer;
	bool ok = true;

	for (unsigned int k = 0; ok && k < info->nnis; k++)
		ok = lnet_peer_info(r->node, &info->ni[k].nid, &peer) == 0 &&
		     lnet_nid_eq(&peer.primary, &info->ni[0].nid) &&
		     peer.state == PEER_IS_UP_TO_DATE && !peer.recovering;
	return ok;
}

/* A node that has discovered the other node must know what the other node has
 * announced last, and have nothing left to ask. */
static bool knows(struct replay *r)
{
	unsigned int last = r->tape.nframes - 1;
	struct ulnet_ping_ni ni[REPLAY_NIDS_MAX];
	struct ulnet_ping_info info;

	if (!replay_discovers(&r->plan) && !r->c->beside.pushes)
		return true;
	if (!replay_told(r, last, &info, ni))
		return replay_complain(r, last, "nobody to be known");
	while (!is_known(r, &info))
		if (!pump_after(r, last))
			return replay_complain(r, last, "is not discovered");
	return true;
}

/* Sends a ping to the node, on connection @k, that is on no tape. */
static bool send_probe(struct replay *r, unsigned int k)
{
	const struct sock_hello *h = &r->hello;
	const size_t head = replay_head(&r->tape);
	uint8_t bytes[MESSAGE_HEAD_MAX];
	struct sock_hdr hdr = { .type = SOCK_MSG_LNET };
	struct lnet_hdr get = { .dest_nid = h->dst_nid,
				.src_nid = h->src_nid,
				.dest_pid = LNET_PID_LUSTRE,
				.src_pid = LNET_PID_LUSTRE,
				.type = LNET_MSG_GET,
				.wmd = { PROBE, k },
				.match_bits = UINT64_C(1) << 63,
				.length = PROBE_SINK };
	size_t sent = 0;

	sock_hdr_encode(&hdr, bytes);
	hdr_encode(&get, bytes + SOCK_HDR_SIZE, tape_hdr_size(&r->tape));
	if (r->c->swapped)
		tape_swap(TAPE_LNET, bytes, head);
	while (sent < head) {
		if (raw_send(&r->conn[k], bytes, head, &sent))
			return replay_complain(r, r->tape.nframes - 1,
					       "connection lost after it");
		if (!replay_pump(r, r->tape.nframes - 1))
			return false;
	}
	return true;
}

/* Fails unless the answer to probe @k is the next message on the first
 * connection. */
static bool take_probe(struct replay *r, unsigned int k)
{
	unsigned int last = r->tape.nframes - 1;
	uint8_t bytes[MESSAGE_HEAD_MAX + PROBE_SINK];
	const size_t head = replay_head(&r->tape);
	struct lnet_hdr hdr;

	while (!raw_take(&r->conn[0], bytes, head))
		if (r->conn[0].eof || !replay_pump(r, last))
			return replay_complain(r, last, "no answer after it");
	if (hdr_decode(&hdr, bytes + SOCK_HDR_SIZE, tape_hdr_size(&r->tape)) ||
	    hdr.type != LNET_MSG_REPLY || hdr.wmd.node != PROBE ||
	    hdr.wmd.object != k || hdr.payload_length > PROBE_SINK) {
		replay_dump("ours", bytes, head, 0);
		return replay_complain(r, last,
				       "more came after it than there was");
	}
	while (!raw_take(&r->conn[0], bytes, hdr.payload_length))
		if (r->conn[0].eof || !replay_pump(r, last))
			return replay_complain(r, last, "no answer after it");
	return true;
}

/* Fails unless all connections are still open, and the node has read all. */
static bool probe(struct replay *r)
{
	bool ok = true;

	be_patient(r);
	for (unsigned int k = 0; ok && k < r->tape.nconns; k++)
		ok = send_probe(r, k) && take_probe(r, k);
	return ok;
}

/* Fails if the node, which has been closed, has sent more. */
static bool nothing_more(struct replay *r)
{
	bool ok = true;

	for (unsigned int k = 0; k < r->tape.nconns; k++) {
		struct raw_conn *c = &r->conn[k];

		if (c->fd < 0)
			continue;
		if (raw_fill(c) || !c->eof) {
			fprintf(stderr, "connection %u is still there\n",
				k + 1);
			ok = false;
		}
		if (c->have) {
			fprintf(stderr, "connection %u: more than there was:\n",
				k + 1);
			replay_dump("ours", c->in, c->have, 0);
			ok = false;
		}
	}
	return ok;
}

int replay_add_addr(const union netif_addr *a)
{
	char text[SOCK_ADDRSTR_SIZE];
	int rc;

	if (a->any.sa_family == AF_INET)
		inet_ntop(AF_INET, &a->v4.sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &a->v6.sin6_addr, text, sizeof(text));
	rc = netdev_add_addr("lo", text);
	return rc == -EEXIST ? 0 : rc;
}

static int networked(const struct replay *r)
{
	int rc = netns_enter();

	if (!rc)
		rc = netdev_set("lo", true);
	if (rc) {
		printf("no network namespace: %s\n", strerror(-rc));
		return SKIPPED;
	}
	for (unsigned int k = 0; k < r->tape.nconns; k++) {
		rc = replay_add_addr(&r->tape.conn[k].from);
		if (!rc)
			rc = replay_add_addr(&r->tape.conn[k].to);
		if (rc) {
			printf("no address in a network namespace: %s\n",
			       strerror(-rc));
			return SKIPPED;
		}
	}
	return 0;
}

static int run_once(const void *arg)
{
	const struct replay_case *c = arg;
	struct replay r = { .c = c, .listen_fd = -1 };
	bool ok;
	int rc;

	for (unsigned int k = 0; k < TAPE_CONNS_MAX; k++)
		r.conn[k].fd = -1;
	for (unsigned int k = 0; k < REPLAY_FAR_CONNS; k++)
		r.far[k].fd = -1;
	if (!tape_load(&r.tape, c->tape))
		return 1;
	if (!replay_plan(&r.tape, c, &r.plan)) {
		tape_free(&r.tape);
		return 1;
	}
	rc = networked(&r);
	if (!rc) {
		rc = node_up(&r);
		if (rc)
			fprintf(stderr, "no node: %s\n", strerror(-rc));
		be_patient(&r);
		ok = !rc && replay_beside_open(&r) && replay_far_open(&r) &&
		     play(&r) && finish(&r) && knows(&r) && probe(&r);
		if (r.node)
			lnet_close(r.node);
		replay_lst_close(&r);
		ok = ok && nothing_more(&r) && replay_far_is_empty(&r) &&
		     replay_beside_is_empty(&r);
		rc = ok ? 0 : r.stalled ? STALLED : 1;
	}
	for (unsigned int k = 0; k < TAPE_CONNS_MAX; k++)
		raw_close(&r.conn[k]);
	if (r.listen_fd >= 0)
		close(r.listen_fd);
	replay_far_close(&r);
	replay_beside_close(&r);
	replay_plan_free(&r.plan);
	tape_free(&r.tape);
	return rc;
}

static int run(const void *arg)
{
	int rc = STALLED;

	for (unsigned int i = 0; i < STALLS && rc == STALLED; i++) {
		if (i)
			printf("  this machine was too slow: once more\n");
		rc = apart_status(run_once, arg);
	}
	return rc;
}

int main(int argc, char **argv)
{
	struct apart a = apart_begin(argc, argv, "network namespaces");
	char name[128];

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct replay_case *c = &cases[i];

		snprintf(name, sizeof(name), "%s, the node that %s%s", c->tape,
			 c->connects ? "connects" : "accepts",
			 c->swapped ? ", the other one big endian" : "");
		apart_run(&a, name, run, c);
	}
	return apart_end(&a);
}
