/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of strangers to a whole node: the input is a script of headers as
 * they come, and of what the node's user and its LND do meanwhile. Handles that
 * an answer must name are put in where the script says so, because no stranger
 * could guess them.
 *
 * The memory of each MD is freed with its last event, so whoever touches it
 * later is found out; each operation must end once; afterwards nothing may be
 * left.
 */
#include "tests/unit/lnet/injector.h"

#include "base/buf.h"
#include "base/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MDS	       64
#define MES	       32
#define PAYLOAD_BUDGET (4u << 20)

static const struct ulnet_nid own[] = {
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 2 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 2 } },
	{ 12, LNET_TYPE_SOCK, { 0, 2 }, { 0xfd, 0x77, [15] = 2 } },
};

static const struct ulnet_nid peers[] = {
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 3 } },
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 4 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 3 } },
	{ 12, LNET_TYPE_SOCK, { 0, 2 }, { 0xfd, 0x77, [15] = 3 } },
	{ 0, LNET_TYPE_SOCK, { 0, 7 }, { 10, 77, 7, 7 } },
	{ 0, LNET_TYPE_LO, { 0, 0 }, { 0 } },
	{ 0, LNET_TYPE_SOCK, { 0, 0 }, { 10, 77, 0, 2 } },
	{ 0, LNET_TYPE_SOCK, { 0, 1 }, { 10, 77, 1, 2 } },
};

struct fuzz;

struct fuzz_md {
	struct fuzz *f;
	struct ulnet_md_handle handle;
	uint8_t *bytes; /* NULL: the MD was unlinked */
	struct iovec iov[4];
	uint32_t length;
	bool queued; /* events go to the queue */
	uint8_t action;
	unsigned int begun, ended;
};

struct fuzz {
	struct reader script;
	struct injector *in;
	struct ulnet_eq_handle eq;
	unsigned int payload; /* bytes of the payload that were used */
	unsigned int nmds, nmes;
	struct fuzz_md md[MDS];
	struct ulnet_me_handle me[MES];
	unsigned int pings, pongs;
};

static uint8_t next_u8(struct fuzz *f)
{
	uint8_t b;

	read_bytes(&f->script, &b, 1);
	return b;
}

static uint32_t next_u16(struct fuzz *f)
{
	uint32_t low = next_u8(f);

	return low | (uint32_t)next_u8(f) << 8;
}

static struct ulnet_id next_target(struct fuzz *f)
{
	return (struct ulnet_id){ peers[next_u8(f) % ARRAY_SIZE(peers)],
				  LNET_PID_LUSTRE };
}

/* ---- MDs ---- */

static void md_over(struct fuzz_md *m)
{
	free(m->bytes);
	m->bytes = NULL;
}

static void look_at(struct fuzz_md *m, const struct ulnet_event *ev)
{
	BUG_ON(!m->bytes);
	BUG_ON(ev->user_ptr != m);
	if (ev->status == 0 && ev->mlength &&
	    (ev->type == LNET_EVENT_PUT || ev->type == LNET_EVENT_GET))
		BUG_ON(ev->offset >= m->length ||
		       ev->mlength > m->length - ev->offset);
	if (ev->type == LNET_EVENT_REPLY)
		BUG_ON(ev->mlength > m->length);
	BUG_ON((ev->outcome != LNET_OUTCOME_NONE) != ev->terminal);
	m->ended += ev->terminal;
	BUG_ON(m->ended > m->begun);
	if (!ev->unlinked)
		return;
	BUG_ON(m->ended != m->begun);
	md_over(m);
}

static void md_event(const struct ulnet_event *ev)
{
	struct fuzz_md *m = ev->user_ptr;
	uint8_t action = m->action;

	look_at(m, ev);
	if (action & 1)
		LNetMDUnlink(ev->md);
	if (action & 2 &&
	    !LNetPut(LNET_NID_ANY, ev->md, LNET_ACK_REQ,
		     (struct ulnet_id){ peers[0], 12345 }, 5, 1, 0, 0))
		m->begun++;
	if (action & 4)
		LNetClearLazyPortal(m->f->in->node, 6);
	m->action = 0;
}

static void drain(struct fuzz *f)
{
	struct ulnet_event ev;

	while (LNetEQGet(f->eq, &ev) == 1)
		look_at(ev.user_ptr, &ev);
}

/* Makes an MD with memory of its own. Returns NULL if there are enough. */
static struct fuzz_md *new_md(struct fuzz *f, struct ulnet_md *umd,
			      uint32_t length, uint8_t flags)
{
	struct fuzz_md *m = f->nmds < MDS ? &f->md[f->nmds] : NULL;

	if (!m)
		return NULL;
	m->f = f;
	m->bytes = calloc(1, length + 1);
	BUG_ON(!m->bytes);
	m->length = length;
	m->queued = flags & 1;
	m->action = (flags >> 1) & 7;
	*umd = (struct ulnet_md){ .start = m->bytes,
				  .length = length,
				  .threshold = flags >> 5 ? flags >> 5
							  : LNET_MD_THRESH_INF,
				  .user_ptr = m };
	if (m->queued)
		umd->eq = f->eq;
	else
		umd->handler = md_event;
	if (flags & 16) {
		umd->start = m->iov;
		umd->length = ARRAY_SIZE(m->iov);
		umd->options = LNET_MD_IOVEC;
		for (unsigned int i = 0; i < ARRAY_SIZE(m->iov); i++) {
			uint32_t from = length * i / 4;

			m->iov[i].iov_base = m->bytes + from;
			m->iov[i].iov_len = length * (i + 1) / 4 - from;
		}
	}
	return m;
}

static void keep_md(struct fuzz *f, struct fuzz_md *m, int rc)
{
	if (rc)
		md_over(m);
	else
		f->nmds++;
}

static void do_request(struct fuzz *f, bool get)
{
	uint8_t flags = next_u8(f), more = next_u8(f);
	uint32_t length = next_u16(f);
	struct ulnet_id target = next_target(f);
	unsigned int portal = next_u8(f) % (LNET_PORTALS + 1);
	struct ulnet_md umd;
	struct fuzz_md *m = new_md(f, &umd, length, flags);
	struct ulnet_nid self =
		more & 1 ? own[more / 2 % ARRAY_SIZE(own)] : LNET_NID_ANY;
	int rc;

	if (!m)
		return;
	if (more & 8)
		umd.timeout = 1000;
	if (more & 16)
		umd.options |= LNET_MD_TRUNCATE;
	if (more & 32)
		umd.options |= LNET_MD_NO_TRACK_RESPONSE;
	rc = LNetMDBind(f->in->node, &umd,
			more & 64 ? LNET_RETAIN : LNET_UNLINK, &m->handle);
	keep_md(f, m, rc);
	if (rc)
		return;
	for (unsigned int i = 0; i <= more >> 7; i++) {
		rc = get ? LNetGet(self, m->handle, target, portal, flags, more)
			 : LNetPut(self, m->handle,
				   flags & 8 ? LNET_ACK_REQ : LNET_NOACK_REQ,
				   target, portal, flags, more, length);
		m->begun += rc == 0;
	}
}

static void do_post(struct fuzz *f)
{
	uint8_t flags = next_u8(f), more = next_u8(f);
	uint32_t length = next_u16(f);
	unsigned int portal = next_u8(f) % (LNET_PORTALS + 1);
	uint8_t bits = next_u8(f);
	struct ulnet_id id = { LNET_NID_ANY, LNET_PID_ANY };
	struct ulnet_md umd;
	struct fuzz_md *m;

	if (f->nmes == MES)
		return;
	if (more & 1)
		id.nid = peers[more % ARRAY_SIZE(peers)];
	if (more & 2)
		id.pid = LNET_PID_LUSTRE;
	if (LNetMEAttach(f->in->node, portal, id, bits, more & 4 ? 0xff : 0,
			 more & 8 ? LNET_RETAIN : LNET_UNLINK,
			 more & 16 ? LNET_INS_BEFORE : LNET_INS_AFTER,
			 &f->me[f->nmes]))
		return;
	m = new_md(f, &umd, length, flags);
	if (!m)
		return;
	umd.options |= LNET_MD_OP_PUT;
	if (more & 32)
		umd.options |= LNET_MD_OP_GET | LNET_MD_MANAGE_REMOTE;
	if (more & 64)
		umd.options |= LNET_MD_TRUNCATE | LNET_MD_ACK_DISABLE;
	if (more & 128) {
		umd.options |= LNET_MD_MAX_SIZE;
		umd.max_size = length / 3;
	}
	keep_md(f, m,
		LNetMDAttach(f->me[f->nmes], &umd,
			     bits & 1 ? LNET_UNLINK : LNET_RETAIN, &m->handle));
	f->nmes++;
}

static void ponged(void *arg, int status, const struct ulnet_ping_info *info)
{
	struct fuzz *f = arg;

	BUG_ON((info == NULL) != (status != 0));
	for (unsigned int i = 0; info && i < info->nnis; i++)
		BUG_ON(info->ni[i].nid.size > 12 &&
		       !lnet_nid_is_any(&info->ni[i].nid));
	f->pongs++;
}

static void do_ping(struct fuzz *f)
{
	f->pings += lnet_ping(f->in->node, next_target(f),
			      (uint64_t)next_u8(f) << 14, ponged, f) == 0;
}

/* ---- messages ---- */

enum {
	INJ_LARGE = 1,	  /* a 96-byte header */
	INJ_DEST = 2,	  /* its destination is the NI on which it comes */
	INJ_SRC = 4,	  /* its source is the peer from which it comes */
	INJ_HANDLE = 8,	  /* it names an operation of the node */
	INJ_ANSWER = 16,  /* it has the type that answers that operation */
	INJ_SHORT = 32,	  /* it has less payload than it says */
	INJ_PAYLOAD = 64, /* the payload is in the script */
};

static void substitute(struct fuzz *f, uint8_t flags, struct lnet_hdr *hdr,
		       unsigned int ni, const struct ulnet_nid *from)
{
	struct injector *in = f->in;

	if (flags & INJ_DEST)
		hdr->dest_nid = own[ni];
	if (flags & INJ_SRC)
		hdr->src_nid = *from;
	if (flags & (INJ_HANDLE | INJ_ANSWER) && in->nsent) {
		unsigned int back = next_u8(f) % MIN(in->nsent, INJECT_SENT);
		const struct lnet_hdr *req =
			&in->sent[(in->nsent - 1 - back) % INJECT_SENT].hdr;

		hdr->wmd = req->wmd;
		if (!(flags & INJ_ANSWER))
			return;
		hdr->type = req->type == LNET_MSG_GET ? LNET_MSG_REPLY
						      : LNET_MSG_ACK;
		hdr->payload_length = req->type == LNET_MSG_GET
					      ? hdr->payload_length & 0xffff
					      : 0;
	}
}

/* Returns how much payload really comes, of the @length in the header. */
static uint32_t payload_of(struct fuzz *f, uint8_t flags, uint32_t length)
{
	length = MIN(length, LNET_MTU);
	if (flags & INJ_SHORT)
		length = length * next_u8(f) / 256;
	length = MIN(length, PAYLOAD_BUDGET - f->payload);
	f->payload += length;
	return length;
}

static void do_inject(struct fuzz *f)
{
	uint8_t flags = next_u8(f), where = next_u8(f);
	size_t hdr_len =
		flags & INJ_LARGE ? LNET_HDR_LARGE_SIZE : LNET_HDR_SIZE;
	const struct ulnet_nid *from = &peers[(where >> 4) % ARRAY_SIZE(peers)];
	unsigned int ni = where % ARRAY_SIZE(own);
	uint8_t bytes[LNET_HDR_LARGE_SIZE];
	uint32_t length = 0;
	struct lnet_hdr hdr;
	uint8_t *payload;

	read_bytes(&f->script, bytes, hdr_len);
	if (hdr_decode(&hdr, bytes, hdr_len) == 0) {
		substitute(f, flags, &hdr, ni, from);
		/* large NIDs do not fit into a small header */
		if (!lnet_nid_is_nid4(&hdr.dest_nid) ||
		    !lnet_nid_is_nid4(&hdr.src_nid))
			hdr_len = LNET_HDR_LARGE_SIZE;
		hdr_encode(&hdr, bytes, hdr_len);
		length = payload_of(f, flags, hdr.payload_length);
	}
	payload = calloc(1, length + 1);
	BUG_ON(!payload);
	if (flags & INJ_PAYLOAD)
		read_bytes(&f->script, payload,
			   MIN(length, reader_left(&f->script)));
	inject(f->in, ni, bytes, hdr_len, from, payload, length);
	free(payload);
}

/* ---- the script ---- */

static void do_ni(struct fuzz *f)
{
	uint8_t b = next_u8(f);
	const struct ulnet_nid *nid = &own[b % ARRAY_SIZE(own)];
	struct ulnet_ni_conf conf = { .nid = *nid,
				      .credits = b >> 6,
				      .peer_credits = b >> 6 };

	if (b & 16) {
		for (unsigned int i = 0; i < INJECT_NIS; i++)
			if (f->in->ni[i] &&
			    lnet_nid_eq(&f->in->ni[i]->lnd->nid, nid))
				lnet_ni_set_up(f->in->ni[i]->lnd, b & 8,
					       "fuzzed");
	} else if (b & 8) {
		lnet_ni_del(f->in->node, nid);
	} else {
		lnet_ni_add(f->in->node, &conf);
	}
}

static void do_lazy(struct fuzz *f)
{
	uint8_t b = next_u8(f);

	if (b & 0x80)
		LNetSetLazyPortal(f->in->node, b & 0x7f);
	else
		LNetClearLazyPortal(f->in->node, b & 0x7f);
}

static void do_how(struct fuzz *f)
{
	uint8_t b = next_u8(f);

	f->in->store = b & 3;
	f->in->send = (b >> 2) & 3;
	f->in->bounce = (b >> 4) & 3;
}

static void do_unlink(struct fuzz *f)
{
	uint8_t b = next_u8(f);

	if (b & 0x80 && f->nmes)
		LNetMEUnlink(f->me[(b & 0x7f) % f->nmes]);
	else if (!(b & 0x80) && f->nmds)
		LNetMDUnlink(f->md[b % f->nmds].handle);
}

static void step(struct fuzz *f)
{
	switch (next_u8(f) % 16) {
	case 0 ... 3:
		do_inject(f);
		break;
	case 4:
		inject_run(f->in, UINT64_C(1) << next_u8(f) % 37);
		break;
	case 5:
		do_request(f, false);
		break;
	case 6:
		do_request(f, true);
		break;
	case 7:
		do_ping(f);
		break;
	case 8:
	case 9:
		do_post(f);
		break;
	case 10:
		do_unlink(f);
		break;
	case 11:
		do_lazy(f);
		break;
	case 12:
		inject_pump(f->in);
		break;
	case 13:
		do_how(f);
		break;
	case 14:
		do_ni(f);
		break;
	case 15:
		drain(f);
		inject_check(f->in);
		break;
	}
}

static void begin(struct fuzz *f)
{
	uint8_t b = next_u8(f);
	struct ulnet_conf conf;

	lnet_conf_init(&conf);
	conf.cpts = 1 + b % 3;
	if (b & 16) {
		conf.peers_max = 2;
		conf.messages_max = 5;
		conf.lazy_max = 2;
		conf.interfaces_max = 4;
	}
	f->in = inject_open(&conf, own, ARRAY_SIZE(own));
	BUG_ON(LNetEQAlloc(f->in->node, 16, &f->eq));
	BUG_ON(LNetSetLazyPortal(f->in->node, 6));
}

static void end(struct fuzz *f)
{
	drain(f);
	inject_close(f->in);
	BUG_ON(f->pings != f->pongs);
	for (unsigned int i = 0; i < f->nmds; i++) {
		struct fuzz_md *m = &f->md[i];

		/* the queue was freed, with the events in it */
		if (m->queued)
			md_over(m);
		BUG_ON(m->bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz *f;

	log_setup(LOG_ERR, NULL, NULL);
	f = calloc(1, sizeof(*f));
	BUG_ON(!f);
	f->script = reader_of(data, size);
	begin(f);
	while (reader_left(&f->script) && !f->script.bad)
		step(f);
	end(f);
	free(f);
	return 0;
}
