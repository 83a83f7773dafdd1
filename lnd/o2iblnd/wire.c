/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/o2iblnd/wire.h"

#include <errno.h>

#define WIRE_MAGIC UINT32_C(0x0be91b91)
/* The magic of a reject by a node that speaks another LND's protocol. */
#define REJECT_MAGIC UINT32_C(0x45726963)

/* bytes of the magic and the version */
#define START_SIZE 6

/* The first 7 bytes of an IMMEDIATE of version 2, as a number in little endian.
 * The eighth byte has the credits. */
#define IMMEDIATE_START                                                    \
	((uint64_t)IB_MSG_IMMEDIATE << 56 | (uint64_t)IB_VERSION_2 << 40 | \
	 (uint64_t)WIRE_MAGIC << 8)
#define LE_IS_SWAPPED (__BYTE_ORDER == __BIG_ENDIAN)

#define VERSION_OFFSET 4
#define CKSUM_OFFSET   12
#define CKSUM_SIZE     4
/* offset of the ends: NID and incarnation of the source, and of the destination
 */
#define ENDS_OFFSET 16
#define END_SIZE    16

/* ---- names ---- */

const char *ib_reject_name(unsigned int reason)
{
	static const char *const names[] = {
		[IB_REJECT_RACE] = "connecting the other way",
		[IB_REJECT_RESOURCES] = "out of resources",
		[IB_REJECT_FATAL] = "refused",
		[IB_REJECT_INCOMPATIBLE] = "incompatible version",
		[IB_REJECT_STALE] = "stale incarnation",
		[IB_REJECT_FRAGS] = "too many fragments",
		[IB_REJECT_DEPTH] = "queue too deep",
		[IB_REJECT_SERVICE] = "no such service",
		[IB_REJECT_EARLY] = "not up yet",
	};

	if (reason < ARRAY_SIZE(names) && names[reason])
		return names[reason];
	return "unknown";
}

/* ---- checksum ---- */

static uint32_t cksum_rotate(uint32_t sum)
{
	return sum << 1 | sum >> 31;
}

uint32_t ib_cksum(uint32_t sum, const void *buf, size_t len, bool negative)
{
	const uint8_t *p = buf, *end = p + len;

	if (negative)
		while (p < end)
			sum = cksum_rotate(sum) + (uint32_t)(int8_t)*p++;
	else
		while (p < end)
			sum = cksum_rotate(sum) + *p++;
	return sum;
}

/* Returns the checksum of the message of @nob bytes at @p, in which the
 * checksum's own field counts as 0. */
static uint32_t msg_cksum(const uint8_t *p, size_t nob, bool negative)
{
	static const uint8_t none[CKSUM_SIZE];
	const size_t behind = CKSUM_OFFSET + CKSUM_SIZE;
	uint32_t sum;

	sum = ib_cksum(0, p, CKSUM_OFFSET, negative);
	sum = ib_cksum(sum, none, sizeof(none), negative);
	sum = ib_cksum(sum, p + behind, nob - behind, negative);
	return sum ? sum : 1;
}

static out_of_line bool cksum_right(const uint8_t *p, const struct ib_msg *m)
{
	return m->cksum == msg_cksum(p, m->nob, false) ||
	       m->cksum == msg_cksum(p, m->nob, true);
}

static bool version_known(uint16_t version)
{
	return version == IB_VERSION_1 || version == IB_VERSION_2;
}

/* ---- writing ---- */

static void write_end(struct writer *w, const struct ib_end *end)
{
	BUG_ON(!lnet_nid_is_nid4(&end->nid) && !lnet_nid_is_any(&end->nid));
	write_le64(w, lnet_nid_to_nid4(&end->nid));
	write_le64(w, end->stamp);
}

struct ib_hdr ib_hdr_of(const struct ib_envelope *env)
{
	struct ib_hdr hdr;
	struct writer w = writer_of(hdr.bytes, sizeof(hdr.bytes));

	BUG_ON(!version_known(env->version));
	write_le32(&w, WIRE_MAGIC);
	write_le16(&w, env->version);
	write_u8(&w, 0);   /* type */
	write_u8(&w, 0);   /* credits */
	write_le32(&w, 0); /* size */
	write_le32(&w, 0); /* checksum */
	write_end(&w, &env->src);
	write_end(&w, &env->dst);
	BUG_ON(w.bad || w.p != w.end);
	return hdr;
}

/* Writes a header for @nob bytes, and returns a writer for the rest. */
static struct writer wire_write_header(const struct ib_hdr *hdr,
				       enum ib_msg_type type, size_t nob,
				       void *buf)
{
	struct writer w = writer_of(buf, nob);

	BUG_ON(nob > IB_MSG_SIZE_MAX);
	ib_hdr_put(hdr, type, nob, buf);
	write_skip(&w, IB_HDR_SIZE);
	return w;
}

static void write_params(struct writer *w, const struct ib_conn_params *params)
{
	write_le16(w, params->queue_depth);
	write_le16(w, params->max_frags);
	write_le32(w, params->max_msg_size);
}

static void write_sink(struct writer *w, const struct ib_sink *sink)
{
	BUG_ON(sink->nfrags == 0);
	write_le32(w, sink->key);
	write_le32(w, sink->nfrags);
	for (unsigned int i = 0; i < sink->nfrags; i++) {
		write_le32(w, sink->frags[i].nob);
		write_le64(w, sink->frags[i].addr);
	}
}

/* Checks that the whole message was written, and returns its size. */
static size_t write_finish(const struct writer *w, const void *buf)
{
	BUG_ON(w->bad || w->p != w->end);
	return (size_t)(w->p - (const uint8_t *)buf);
}

size_t ib_conn_encode(const struct ib_hdr *hdr, enum ib_msg_type type,
		      const struct ib_conn_params *params, void *buf)
{
	struct writer w = wire_write_header(hdr, type, IB_CONN_SIZE, buf);

	BUG_ON(type != IB_MSG_CONNREQ && type != IB_MSG_CONNACK);
	write_params(&w, params);
	return write_finish(&w, buf);
}

size_t ib_noop_encode(const struct ib_hdr *hdr, void *buf)
{
	struct writer w = wire_write_header(hdr, IB_MSG_NOOP, IB_HDR_SIZE, buf);

	return write_finish(&w, buf);
}

size_t ib_put_req_encode(const struct ib_hdr *hdr, uint64_t cookie, void *buf)
{
	struct writer w =
		wire_write_header(hdr, IB_MSG_PUT_REQ, IB_PUT_REQ_SIZE, buf);

	write_skip(&w, LNET_HDR_SIZE);
	write_le64(&w, cookie);
	return write_finish(&w, buf);
}

size_t ib_put_ack_encode(const struct ib_hdr *hdr, uint64_t cookie,
			 uint64_t dst_cookie, const struct ib_sink *sink,
			 void *buf)
{
	struct writer w = wire_write_header(hdr, IB_MSG_PUT_ACK,
					    IB_PUT_ACK_SIZE(sink->nfrags), buf);

	write_le64(&w, cookie);
	write_le64(&w, dst_cookie);
	write_sink(&w, sink);
	return write_finish(&w, buf);
}

size_t ib_get_req_encode(const struct ib_hdr *hdr, uint64_t cookie,
			 const struct ib_sink *sink, void *buf)
{
	struct writer w = wire_write_header(hdr, IB_MSG_GET_REQ,
					    IB_GET_REQ_SIZE(sink->nfrags), buf);

	write_skip(&w, LNET_HDR_SIZE);
	write_le64(&w, cookie);
	write_sink(&w, sink);
	return write_finish(&w, buf);
}

size_t ib_done_encode(const struct ib_hdr *hdr, enum ib_msg_type type,
		      uint64_t cookie, int32_t status, void *buf)
{
	struct writer w = wire_write_header(hdr, type, IB_DONE_SIZE, buf);

	BUG_ON(type != IB_MSG_PUT_NAK && type != IB_MSG_PUT_DONE &&
	       type != IB_MSG_GET_DONE);
	write_le64(&w, cookie);
	write_le32(&w, (uint32_t)status);
	return write_finish(&w, buf);
}

void ib_msg_set_cksum(void *buf)
{
	uint8_t *p = buf;
	uint32_t nob = load_le32(p + IB_NOB_OFFSET);

	BUG_ON(nob < IB_HDR_SIZE || nob > IB_MSG_SIZE_MAX);
	store_le32(p + CKSUM_OFFSET, msg_cksum(p, nob, false));
}

/* ---- reading: each returns what is wrong, or NULL ---- */

/* Is @seen the @magic, in either byte order? */
static bool wire_is_magic(uint32_t seen, uint32_t magic, bool *swap)
{
	*swap = seen != magic;
	return !*swap || seen == __builtin_bswap32(magic);
}

/* Read a field of a header, all of which was received. @swap: it is in the
 * other byte order. */
static uint16_t load_u16(const uint8_t *p, bool swap)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return swap ? __builtin_bswap16(v) : v;
}

static uint32_t load_u32(const uint8_t *p, bool swap)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return swap ? __builtin_bswap32(v) : v;
}

static uint64_t load_u64(const uint8_t *p, bool swap)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return swap ? __builtin_bswap64(v) : v;
}

static struct ib_end wire_load_end(const uint8_t *p, bool swap)
{
	return (struct ib_end){ lnet_nid_from_nid4(load_u64(p, swap)),
				load_u64(p + sizeof(uint64_t), swap) };
}

/* Is @nid4 the 64-bit form of LNET_NID_ANY (lnet/nid.h)? */
static bool wire_is_any(uint64_t nid4)
{
	return nid4 >> 48 >= 0xff;
}

static void read_params(struct reader *r, bool swap,
			struct ib_conn_params *params)
{
	params->queue_depth = read_u16(r, swap);
	params->max_frags = read_u16(r, swap);
	params->max_msg_size = read_u32(r, swap);
}

/* Reads the header from @len bytes at @p, and checks what all types have in
 * common. */
static const char *wire_read_header(const uint8_t *p, size_t len,
				    struct ib_msg *m)
{
	bool swap;

	if (unlikely(len < START_SIZE))
		return "too short for a version";
	if (!wire_is_magic(load_u32(p, false), WIRE_MAGIC, &swap))
		return "wrong magic";
	m->hdr = p;
	m->swap = swap;
	m->version = load_u16(p + VERSION_OFFSET, swap);
	if (!version_known(m->version))
		return "unknown version";
	if (unlikely(len < IB_HDR_SIZE))
		return "too short for a header";
	m->type = (enum ib_msg_type)p[IB_TYPE_OFFSET];
	m->credits = p[IB_CREDITS_OFFSET];
	m->nob = load_u32(p + IB_NOB_OFFSET, swap);
	m->cksum = load_u32(p + CKSUM_OFFSET, swap);
	if (m->nob > len)
		return "longer than what was received";
	if (m->nob < IB_HDR_SIZE)
		return "shorter than a header";
	return NULL;
}

/* The least size of a message by type, without payload and fragments; 0: no
 * such type. */
static const uint8_t sizes_min[UINT8_MAX + 1] = {
	[IB_MSG_CONNREQ] = IB_CONN_SIZE,
	[IB_MSG_CONNACK] = IB_CONN_SIZE,
	[IB_MSG_NOOP] = IB_HDR_SIZE,
	[IB_MSG_IMMEDIATE] = IB_PAYLOAD_OFFSET,
	[IB_MSG_PUT_REQ] = IB_PUT_REQ_SIZE,
	[IB_MSG_PUT_ACK] = IB_PUT_ACK_SIZE(0),
	[IB_MSG_GET_REQ] = IB_GET_REQ_SIZE(0),
	[IB_MSG_PUT_NAK] = IB_DONE_SIZE,
	[IB_MSG_PUT_DONE] = IB_DONE_SIZE,
	[IB_MSG_GET_DONE] = IB_DONE_SIZE,
};

static const char *check_header(const struct ib_msg *m)
{
	size_t min = sizes_min[m->type];

	if (wire_is_any(load_u64(m->hdr + ENDS_OFFSET, m->swap)))
		return "from nobody";
	if (min == 0)
		return "unknown type";
	if (m->nob < min)
		return "too short for its type";
	return NULL;
}

/* Reads the payload, which only an IMMEDIATE has. */
static const char *read_payload(struct ib_msg *m, size_t received)
{
	m->lnet_hdr = m->hdr + IB_LNET_OFFSET;
	m->payload = m->hdr + IB_PAYLOAD_OFFSET;
	m->payload_len = lnet_hdr_payload(m->lnet_hdr, LNET_HDR_SIZE);
	if (m->payload_len > received - IB_PAYLOAD_OFFSET)
		return "payload longer than what was received";
	return NULL;
}

static const char *read_rdma(struct reader *r, struct ib_msg *m)
{
	struct ib_rdma *rdma = &m->rdma;

	rdma->swap = m->swap;
	rdma->key = read_u32(r, m->swap);
	rdma->nfrags = read_u32(r, m->swap);
	if (rdma->nfrags == 0)
		return "no fragments";
	if (rdma->nfrags > reader_left(r) / IB_FRAG_SIZE)
		return "too short for its fragments";
	rdma->frags = read_skip(r, rdma->nfrags * IB_FRAG_SIZE);
	return NULL;
}

/* Reads the fields after the header. Their length was checked, except for
 * fragments. */
static const char *read_fields(struct reader *r, struct ib_msg *m)
{
	switch (m->type) {
	case IB_MSG_CONNREQ:
	case IB_MSG_CONNACK:
		read_params(r, m->swap, &m->params);
		return NULL;
	case IB_MSG_PUT_ACK:
		m->cookie = read_le64(r);
		m->dst_cookie = read_le64(r);
		return read_rdma(r, m);
	case IB_MSG_PUT_REQ:
	case IB_MSG_GET_REQ:
		m->lnet_hdr = read_skip(r, LNET_HDR_SIZE);
		m->cookie = read_le64(r);
		return m->type == IB_MSG_GET_REQ ? read_rdma(r, m) : NULL;
	case IB_MSG_PUT_NAK:
	case IB_MSG_PUT_DONE:
	case IB_MSG_GET_DONE:
		m->cookie = read_le64(r);
		m->status = (int32_t)read_u32(r, m->swap);
		return NULL;
	default:
		return NULL;
	}
}

static out_of_line const char *read_rest(struct ib_msg *m)
{
	struct reader r = reader_of(m->hdr, m->nob);
	const char *wrong;

	read_skip(&r, IB_HDR_SIZE);
	wrong = read_fields(&r, m);
	BUG_ON(r.bad);
	return wrong;
}

static in_line void clear_body(struct ib_msg *m)
{
	/* cleared one by one, which is faster than all at once */
	m->params = (struct ib_conn_params){ 0 };
	m->lnet_hdr = NULL;
	m->payload = NULL;
	m->payload_len = 0;
	m->cookie = 0;
	m->dst_cookie = 0;
	m->status = 0;
	m->rdma = (struct ib_rdma){ 0 };
}

/* Reads what follows the header. @received: number of bytes received, perhaps
 * more than the message has. */
static const char *read_body(struct ib_msg *m, size_t received)
{
	clear_body(m);
	return m->type == IB_MSG_IMMEDIATE ? read_payload(m, received)
					   : read_rest(m);
}

int ib_msg_decode(const void *buf, size_t len, struct ib_msg *m,
		  const char **why)
{
	const char *wrong = wire_read_header(buf, len, m);

	if (!wrong && unlikely(m->cksum) && !cksum_right(buf, m))
		wrong = "wrong checksum";
	if (!wrong)
		wrong = check_header(m);
	if (!wrong)
		wrong = read_body(m, len);
	if (!wrong)
		return 0;
	*why = wrong;
	return -EPROTO;
}

struct ib_envelope ib_msg_env(const struct ib_msg *msg)
{
	const uint8_t *ends = msg->hdr + ENDS_OFFSET;

	return (struct ib_envelope){
		.version = msg->version,
		.src = wire_load_end(ends, msg->swap),
		.dst = wire_load_end(ends + END_SIZE, msg->swap),
	};
}

/* Do source and destination at @p, in either byte order, differ from those at
 * @le? */
static bool ends_differ(const uint8_t *p, bool swap, const uint8_t *le)
{
	return (load_u64(p, swap) ^ load_le64(le)) |
	       (load_u64(p + 8, swap) ^ load_le64(le + 8)) |
	       (load_u64(p + 16, swap) ^ load_le64(le + 16)) |
	       (load_u64(p + 24, swap) ^ load_le64(le + 24));
}

static bool is_stale(const struct ib_msg *msg, const struct ib_hdr *hdr)
{
	const uint8_t *ends = msg->hdr + ENDS_OFFSET;
	const uint8_t *le = hdr->bytes + ENDS_OFFSET;

	return unlikely(msg->swap) ? ends_differ(ends, true, le)
				   : ends_differ(ends, false, le);
}

static out_of_line int decode_any_on(const struct ib_hdr *hdr, const void *buf,
				     size_t len, struct ib_msg *msg,
				     const char **why)
{
	int rc = ib_msg_decode(buf, len, msg, why);

	if (rc)
		return rc;
	if (msg->version != IB_VERSION_2 || msg->type < IB_MSG_NOOP) {
		*why = "it is of another protocol";
		return -EPROTO;
	}
	if (is_stale(msg, hdr)) {
		*why = "it is of another connection";
		return -ESTALE;
	}
	return 0;
}

/* The fast path for most messages: reads an IMMEDIATE of this connection that
 * is little-endian and has no checksum. Returns false if the message is
 * anything else, and then @msg is undefined. */
static in_line bool read_immediate(const struct ib_hdr *hdr, const uint8_t *p,
				   size_t len, struct ib_msg *m)
{
	if (len < IB_PAYLOAD_OFFSET || load_le64(p) << 8 != IMMEDIATE_START ||
	    load_le32(p + CKSUM_OFFSET) ||
	    ends_differ(p + ENDS_OFFSET, LE_IS_SWAPPED,
			hdr->bytes + ENDS_OFFSET))
		return false;
	m->hdr = p;
	m->type = IB_MSG_IMMEDIATE;
	m->nob = load_le32(p + IB_NOB_OFFSET);
	m->cksum = 0;
	m->version = IB_VERSION_2;
	m->swap = LE_IS_SWAPPED;
	m->credits = p[IB_CREDITS_OFFSET];
	if (m->nob > len || m->nob < IB_PAYLOAD_OFFSET)
		return false;
	clear_body(m);
	return !read_payload(m, len);
}

int ib_msg_decode_on(const struct ib_hdr *hdr, const void *buf, size_t len,
		     struct ib_msg *msg, const char **why)
{
	if (likely(read_immediate(hdr, buf, len, msg)))
		return 0;
	return decode_any_on(hdr, buf, len, msg, why);
}

void ib_rdma_frag(const struct ib_rdma *rdma, unsigned int i, uint64_t *addr,
		  uint32_t *nob)
{
	struct reader r;

	BUG_ON(i >= rdma->nfrags);
	r = reader_of(rdma->frags + (size_t)i * IB_FRAG_SIZE, IB_FRAG_SIZE);
	*nob = read_u32(&r, rdma->swap);
	*addr = read_u64(&r, rdma->swap);
}

uint64_t ib_rdma_nob(const struct ib_rdma *rdma)
{
	uint64_t sum = 0, addr;
	uint32_t nob;

	for (unsigned int i = 0; i < rdma->nfrags; i++) {
		ib_rdma_frag(rdma, i, &addr, &nob);
		sum += nob;
	}
	return sum;
}

/* ---- rejects ---- */

size_t ib_reject_encode(const struct ib_reject *reject, void *buf)
{
	struct writer w = writer_of(buf, IB_REJECT_SIZE);

	BUG_ON(!version_known(reject->version));
	write_le32(&w, WIRE_MAGIC);
	write_le16(&w, reject->version);
	write_u8(&w, reject->reason);
	write_u8(&w, 0);
	write_le64(&w, reject->stamp);
	write_params(&w, &reject->params);
	return write_finish(&w, buf);
}

int ib_reject_decode(const void *buf, size_t len, struct ib_reject *reject,
		     const char **why)
{
	struct reader r = reader_of(buf, len);
	struct ib_reject rej = { 0 };
	uint32_t magic;
	bool swap;

	if (len < IB_REJECT_SHORT_SIZE) {
		*why = "too short for a reject";
		return -EPROTO;
	}
	magic = read_u32(&r, false);
	if (!wire_is_magic(magic, WIRE_MAGIC, &swap) &&
	    !wire_is_magic(magic, REJECT_MAGIC, &swap)) {
		*why = "wrong magic";
		return -EPROTO;
	}
	rej.version = read_u16(&r, swap);
	if (!version_known(rej.version)) {
		*why = "unknown version";
		return -EPROTO;
	}
	rej.reason = read_u8(&r);
	rej.full = len >= IB_REJECT_SIZE && rej.version > IB_VERSION_1;
	if (rej.full) {
		read_skip(&r, 1);
		rej.stamp = read_u64(&r, swap);
		read_params(&r, swap, &rej.params);
	}
	BUG_ON(r.bad);
	*reject = rej;
	return 0;
}
