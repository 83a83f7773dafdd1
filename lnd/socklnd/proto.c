/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnd/socklnd/proto.h"

#include <errno.h>
#include <zlib.h>

#include "base/buf.h"

#define REQUEST_MAGIC UINT32_C(0xacce7100)
#define HELLO_MAGIC   UINT32_C(0x45726963)
/* The magic of version 1, which is not in use any more. */
#define OLD_MAGIC UINT32_C(0xeebc0ded)

/* ---- NIDs ---- */

/* Can @nid be the NID of one end of a connection? */
static bool proto_nid_sane(const struct ulnet_nid *nid)
{
	static const uint8_t zero[sizeof(nid->addr) - 4];

	if (lnet_nid_is_any(nid) || lnet_nid_is_lo(nid) || nid->type == 0)
		return false;
	if (nid->size == 0)
		return memcmp(nid->addr + 4, zero, sizeof(zero)) == 0;
	return nid->size == sizeof(nid->addr) - 4;
}

static void proto_read_nid(struct reader *r, bool large, bool swap,
			   struct ulnet_nid *nid)
{
	if (large)
		read_bytes(r, nid, sizeof(*nid));
	else
		*nid = lnet_nid_from_nid4(read_u64(r, swap));
}

static void proto_write_nid(struct writer *w, bool large,
			    const struct ulnet_nid *nid)
{
	BUG_ON(!large && !lnet_nid_is_nid4(nid) && !lnet_nid_is_any(nid));
	if (large)
		write_bytes(w, nid, sizeof(*nid));
	else
		write_le64(w, lnet_nid_to_nid4(nid));
}

/* Is @seen equal to @magic, in either byte order? Sets *@swap if it is in the
 * other one. */
static bool is_magic(uint32_t seen, uint32_t magic, bool *swap)
{
	*swap = seen != magic;
	return !*swap || seen == __builtin_bswap32(magic);
}

#define HDR_CSUM_OFFSET 4

/* ---- types ---- */

enum sock_type sock_type_invert(enum sock_type type)
{
	static const enum sock_type inverse[] = { SOCK_ANY, SOCK_CONTROL,
						  SOCK_BULK_OUT, SOCK_BULK_IN };

	return type < SOCK_ANY || type > SOCK_BULK_OUT ? SOCK_NONE
						       : inverse[type];
}

const char *sock_type_name(enum sock_type type)
{
	static const char *const names[] = {
		[SOCK_ANY] = "any",
		[SOCK_CONTROL] = "control",
		[SOCK_BULK_IN] = "bulk-in",
		[SOCK_BULK_OUT] = "bulk-out",
	};

	return type < SOCK_ANY || type > SOCK_BULK_OUT ? "none" : names[type];
}

/* ---- connection request ---- */

enum { REQUEST_SMALL = 1, REQUEST_LARGE = 2 };

size_t sock_request_encode(const struct ulnet_nid *target, void *buf)
{
	bool large = !lnet_nid_is_nid4(target);
	size_t len = large ? SOCK_REQUEST_LARGE_SIZE : SOCK_REQUEST_SIZE;
	struct writer w = writer_of(buf, len);

	write_le32(&w, REQUEST_MAGIC);
	write_le32(&w, large ? REQUEST_LARGE : REQUEST_SMALL);
	proto_write_nid(&w, large, target);
	BUG_ON(w.bad || w.p != w.end);
	return len;
}

void sock_request_refuse(void *buf)
{
	static const uint8_t refusal[SOCK_REQUEST_SIZE] = { 0x00, 0x71, 0xce,
							    0xac,
							    REQUEST_SMALL };

	memcpy(buf, refusal, sizeof(refusal));
}

int sock_request_size(const void *start)
{
	struct reader r = reader_of(start, SOCK_START_SIZE);
	uint32_t magic = read_u32(&r, false);
	bool swap;

	if (is_magic(magic, HELLO_MAGIC, &swap))
		return -EPROTONOSUPPORT;
	if (!is_magic(magic, REQUEST_MAGIC, &swap))
		return -EPROTO;
	switch (read_u32(&r, swap)) {
	case REQUEST_SMALL:
		return SOCK_REQUEST_SIZE;
	case REQUEST_LARGE:
		return SOCK_REQUEST_LARGE_SIZE;
	default:
		return -EPROTONOSUPPORT;
	}
}

int sock_request_decode(const void *buf, size_t len, struct ulnet_nid *target)
{
	struct reader r = reader_of(buf, len);
	struct ulnet_nid nid;
	bool swap;

	if (len < SOCK_START_SIZE || sock_request_size(buf) != (int)len)
		return -EPROTO;
	is_magic(read_u32(&r, false), REQUEST_MAGIC, &swap);
	read_skip(&r, 4);
	proto_read_nid(&r, len == SOCK_REQUEST_LARGE_SIZE, swap, &nid);
	BUG_ON(r.bad);
	if (!proto_nid_sane(&nid))
		return -EPROTO;
	*target = nid;
	return 0;
}

/* ---- HELLO ---- */

/* Returns the size of a HELLO of @version; 0: there is no such version. */
static size_t hello_size(uint32_t version)
{
	if (version == 4)
		return SOCK_HELLO_LARGE_SIZE;
	return version == 2 || version == 3 ? SOCK_HELLO_SIZE : 0;
}

size_t sock_hello_encode(const struct sock_hello *hello, void *buf)
{
	size_t len = hello_size(hello->version);
	bool large = len == SOCK_HELLO_LARGE_SIZE;
	struct writer w = writer_of(buf, len);

	BUG_ON(len == 0);
	write_le32(&w, HELLO_MAGIC);
	write_le32(&w, hello->version);
	proto_write_nid(&w, large, &hello->src_nid);
	proto_write_nid(&w, large, &hello->dst_nid);
	write_le32(&w, hello->src_pid);
	write_le32(&w, 0); /* dst_pid, which is not in use */
	write_le64(&w, hello->src_incarnation);
	write_le64(&w, 0); /* dst_incarnation, which is not in use */
	write_le32(&w, (uint32_t)hello->type);
	write_le32(&w, 0); /* number of addresses */
	BUG_ON(w.bad || w.p != w.end);
	return len;
}

int sock_hello_size(struct sock_hello *hello, const void *start)
{
	struct reader r = reader_of(start, SOCK_START_SIZE);
	uint32_t magic = read_u32(&r, false);
	bool swap;
	size_t size;

	if (is_magic(magic, OLD_MAGIC, &swap)) {
		hello->version = 1;
		hello->swap = swap;
		return -EPROTONOSUPPORT;
	}
	if (!is_magic(magic, HELLO_MAGIC, &swap))
		return -EPROTO;
	hello->version = read_u32(&r, swap);
	hello->swap = swap;
	size = hello_size(hello->version);
	return size ? (int)size : -EPROTONOSUPPORT;
}

static bool hello_sane(const struct sock_hello *hello)
{
	/* A HELLO of version 4 never has addresses. */
	uint32_t nips_max = hello->version == 4 ? 0 : SOCK_HELLO_IPS_MAX;

	return proto_nid_sane(&hello->src_nid) && hello->type >= SOCK_NONE &&
	       hello->type <= SOCK_BULK_OUT && hello->nips <= nips_max;
}

int sock_hello_decode(struct sock_hello *hello, const void *buf, size_t len)
{
	struct reader r = reader_of(buf, len);
	bool large = len == SOCK_HELLO_LARGE_SIZE;
	bool swap = hello->swap;

	if (len == 0 || len != hello_size(hello->version))
		return -EPROTO;
	read_skip(&r, SOCK_START_SIZE);
	proto_read_nid(&r, large, swap, &hello->src_nid);
	proto_read_nid(&r, large, swap, &hello->dst_nid);
	hello->src_pid = read_u32(&r, swap);
	read_skip(&r, 4);
	hello->src_incarnation = read_u64(&r, swap);
	read_skip(&r, 8);
	hello->type = (enum sock_type)(int32_t)read_u32(&r, swap);
	hello->nips = read_u32(&r, swap);
	BUG_ON(r.bad || reader_left(&r));
	return hello_sane(hello) ? (int)(4 * hello->nips) : -EPROTO;
}

int sock_hello_check_ips(const struct sock_hello *hello, const void *buf,
			 size_t len)
{
	struct reader r = reader_of(buf, len);

	if (len != 4 * (size_t)hello->nips)
		return -EPROTO;
	for (uint32_t i = 0; i < hello->nips; i++)
		if (read_u32(&r, hello->swap) == 0)
			return -EPROTO;
	return 0;
}

/* ---- the header in front of each message ---- */

void sock_hdr_encode(const struct sock_hdr *hdr, void *buf)
{
	struct writer w = writer_of(buf, SOCK_HDR_SIZE);

	write_le32(&w, hdr->type);
	write_le32(&w, hdr->csum);
	write_le64(&w, hdr->cookie[0]);
	write_le64(&w, hdr->cookie[1]);
	BUG_ON(w.bad || w.p != w.end);
}

void sock_hdr_clear_csum(void *buf)
{
	memset((uint8_t *)buf + HDR_CSUM_OFFSET, 0, sizeof(uint32_t));
}

int sock_hdr_decode(struct sock_hdr *hdr, const void *buf, bool swap)
{
	struct reader r = reader_of(buf, SOCK_HDR_SIZE);

	hdr->type = read_u32(&r, swap);
	hdr->csum = read_u32(&r, swap);
	hdr->cookie[0] = read_u64(&r, swap);
	hdr->cookie[1] = read_u64(&r, swap);
	BUG_ON(r.bad);
	if (hdr->type != SOCK_MSG_NOOP && hdr->type != SOCK_MSG_LNET)
		return -EPROTO;
	return 0;
}

/* ---- checksum ---- */

/* zlib inverts the initial value and the result; this protocol does not. */
uint32_t sock_csum(uint32_t csum, const void *buf, size_t len)
{
	return ~(uint32_t)crc32_z(~csum & UINT32_C(0xffffffff), buf, len);
}
