/* SPDX-License-Identifier: BSD-3-Clause */
#include "lnet/wire.h"

#include <errno.h>

#include "base/buf.h"

static void write_nid(struct writer *w, const struct ulnet_nid *nid, bool large)
{
	if (large)
		write_bytes(w, nid, sizeof(*nid));
	else
		write_le64(w, lnet_nid_to_nid4(nid));
}

static void read_nid(struct reader *r, struct ulnet_nid *nid, bool large)
{
	if (large)
		read_bytes(r, nid, sizeof(*nid));
	else
		*nid = lnet_nid_from_nid4(read_le64(r));
}

/* Large NIDs come from strangers: sizes that no NID has are refused, so that
 * nothing behind this file has to look at them again. */
static bool nid_sane(const struct ulnet_nid *nid)
{
	return nid->size == 0 || nid->size == 12 || lnet_nid_is_any(nid);
}

void hdr_encode(const struct lnet_hdr *hdr, void *buf, size_t len)
{
	bool large = len == LNET_HDR_LARGE_SIZE;
	struct writer w = writer_of(buf, len);

	write_nid(&w, &hdr->dest_nid, large);
	write_nid(&w, &hdr->src_nid, large);
	write_le32(&w, hdr->dest_pid);
	write_le32(&w, hdr->src_pid);
	write_le32(&w, hdr->type);
	write_le32(&w, hdr->payload_length);
	write_bytes(&w, &hdr->wmd, sizeof(hdr->wmd));
	switch (hdr->type) {
	case LNET_MSG_PUT:
		write_le64(&w, hdr->match_bits);
		write_bytes(&w, &hdr->hdr_data, sizeof(hdr->hdr_data));
		write_le32(&w, hdr->portal);
		write_le32(&w, hdr->offset);
		break;
	case LNET_MSG_GET:
		write_le64(&w, hdr->match_bits);
		write_le32(&w, hdr->portal);
		write_le32(&w, hdr->offset);
		write_le32(&w, hdr->length);
		break;
	case LNET_MSG_ACK:
		write_le64(&w, hdr->match_bits);
		write_le32(&w, hdr->length);
		break;
	}
	write_zero(&w, (size_t)(w.end - w.p));
	BUG_ON(w.bad);
}

static void read_union(struct reader *r, struct lnet_hdr *hdr)
{
	read_bytes(r, &hdr->wmd, sizeof(hdr->wmd));
	hdr->match_bits = read_le64(r);
	switch (hdr->type) {
	case LNET_MSG_PUT:
		read_bytes(r, &hdr->hdr_data, sizeof(hdr->hdr_data));
		hdr->portal = read_le32(r);
		hdr->offset = read_le32(r);
		hdr->length = 0;
		break;
	case LNET_MSG_GET:
		hdr->portal = read_le32(r);
		hdr->offset = read_le32(r);
		hdr->length = read_le32(r);
		hdr->hdr_data = 0;
		break;
	default:
		hdr->length = read_le32(r);
		hdr->hdr_data = 0;
		hdr->portal = 0;
		hdr->offset = 0;
		break;
	}
}

int hdr_decode(struct lnet_hdr *hdr, const void *buf, size_t len)
{
	bool large = len == LNET_HDR_LARGE_SIZE;
	struct reader r = reader_of(buf, len);

	if (!large && len != LNET_HDR_SIZE)
		return -EPROTO;
	read_nid(&r, &hdr->dest_nid, large);
	read_nid(&r, &hdr->src_nid, large);
	hdr->dest_pid = read_le32(&r);
	hdr->src_pid = read_le32(&r);
	hdr->type = read_le32(&r);
	hdr->payload_length = read_le32(&r);
	read_union(&r, hdr);
	if (!nid_sane(&hdr->dest_nid) || !nid_sane(&hdr->src_nid))
		return -EPROTO;
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
