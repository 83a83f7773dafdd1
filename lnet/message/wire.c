/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/message/wire.h"

#include <errno.h>

#include "base/buf.h"
#include "lnd/lnd.h"
#include "lnet/nid/nid.h"

/* Bytes of a header between the NIDs and the part that depends on the type. */
#define FIXED_SIZE 16
#define UNION_SIZE LNET_HDR_UNION_SIZE

/* As lnet_nid_to_nid4(), but faster: see decode_nid4(). */
static void encode_nid4(uint8_t *p, const struct ulnet_nid *nid)
{
	uint64_t head;

	memcpy(&head, nid, sizeof(head));
	store_le64(p, likely(lnet_nid_is_nid4(nid)) ? be64toh(head)
						    : lnet_nid_to_nid4(nid));
}

static uint8_t *encode_nid(uint8_t *p, const struct ulnet_nid *nid, bool large)
{
	if (large)
		memcpy(p, nid, sizeof(*nid));
	else
		encode_nid4(p, nid);
	return p + (large ? sizeof(*nid) : 8);
}

static void encode_union(uint8_t *p, const struct lnet_hdr *hdr)
{
	memset(p, 0, UNION_SIZE);
	memcpy(p, &hdr->wmd, sizeof(hdr->wmd));
	switch (hdr->type) {
	case LNET_MSG_PUT:
		store_le64(p + 16, hdr->match_bits);
		memcpy(p + 24, &hdr->hdr_data, sizeof(hdr->hdr_data));
		store_le32(p + 32, hdr->portal);
		store_le32(p + 36, hdr->offset);
		break;
	case LNET_MSG_GET:
		store_le64(p + 16, hdr->match_bits);
		store_le32(p + 24, hdr->portal);
		store_le32(p + 28, hdr->offset);
		store_le32(p + 32, hdr->length);
		break;
	case LNET_MSG_ACK:
		store_le64(p + 16, hdr->match_bits);
		store_le32(p + 24, hdr->length);
		break;
	}
}

void hdr_encode(const struct lnet_hdr *hdr, void *buf, size_t len)
{
	bool large = len == LNET_HDR_LARGE_SIZE;
	uint8_t *p = buf;

	BUG_ON(!large && len != LNET_HDR_SIZE);
	p = encode_nid(p, &hdr->dest_nid, large);
	p = encode_nid(p, &hdr->src_nid, large);
	store_le32(p, hdr->dest_pid);
	store_le32(p + 4, hdr->src_pid);
	store_le32(p + 8, hdr->type);
	store_le32(p + 12, hdr->payload_length);
	encode_union(p + FIXED_SIZE, hdr);
}

/* As lnet_nid_from_nid4(), but faster: the bytes of a nid4 in big endian are
 * the first bytes of the large form. */
static void decode_nid4(struct ulnet_nid *nid, const uint8_t *p)
{
	uint64_t nid4 = load_le64(p);
	uint64_t head = htobe64(nid4);

	if (unlikely(nid4 >> 48 >= 0xff)) {
		*nid = lnet_nid_from_nid4(nid4);
		return;
	}
	memcpy(nid, &head, sizeof(head));
	memset(nid->addr + 4, 0, sizeof(nid->addr) - 4);
}

static void decode_union(const uint8_t *p, struct lnet_hdr *hdr)
{
	memcpy(&hdr->wmd, p, sizeof(hdr->wmd));
	hdr->match_bits = load_le64(p + 16);
	switch (hdr->type) {
	case LNET_MSG_PUT:
		memcpy(&hdr->hdr_data, p + 24, sizeof(hdr->hdr_data));
		hdr->portal = load_le32(p + 32);
		hdr->offset = load_le32(p + 36);
		hdr->length = 0;
		break;
	case LNET_MSG_GET:
		hdr->portal = load_le32(p + 24);
		hdr->offset = load_le32(p + 28);
		hdr->length = load_le32(p + 32);
		hdr->hdr_data = 0;
		break;
	default:
		hdr->length = load_le32(p + 24);
		hdr->hdr_data = 0;
		hdr->portal = 0;
		hdr->offset = 0;
		break;
	}
}

static const uint8_t *decode_nids(struct reader *r, struct lnet_hdr *hdr,
				  bool large)
{
	const size_t size = sizeof(struct ulnet_nid);
	const uint8_t *p = read_skip(r, large ? 2 * size : 16);

	if (!p)
		return NULL;
	if (large) {
		memcpy(&hdr->dest_nid, p, size);
		memcpy(&hdr->src_nid, p + size, size);
	} else {
		decode_nid4(&hdr->dest_nid, p);
		decode_nid4(&hdr->src_nid, p + 8);
	}
	return read_skip(r, FIXED_SIZE + UNION_SIZE);
}

static int wire_check_payload(const struct lnet_hdr *hdr)
{
	switch (hdr->type) {
	case LNET_MSG_ACK:
	case LNET_MSG_GET:
		return hdr->payload_length ? -EPROTO : 0;
	case LNET_MSG_PUT:
	case LNET_MSG_REPLY:
		return hdr->payload_length > LNET_MTU ? -EPROTO : 0;
	default:
		return -EPROTO;
	}
}

int hdr_decode(struct lnet_hdr *hdr, const void *buf, size_t len)
{
	bool large = len == LNET_HDR_LARGE_SIZE;
	struct reader r = reader_of(buf, len);
	const uint8_t *p;

	if (!large && len != LNET_HDR_SIZE)
		return -EPROTO;
	p = decode_nids(&r, hdr, large);
	if (!p)
		return -EPROTO;
	/* Small NIDs have been written by decode_nid4() already. */
	if (large &&
	    (!nid_is_sane(&hdr->dest_nid) || !nid_is_sane(&hdr->src_nid)))
		return -EPROTO;
	hdr->dest_pid = load_le32(p);
	hdr->src_pid = load_le32(p + 4);
	hdr->type = load_le32(p + 8);
	hdr->payload_length = load_le32(p + 12);
	decode_union(p + FIXED_SIZE, hdr);
	return wire_check_payload(hdr);
}
