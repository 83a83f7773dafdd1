/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages and rejects of hostile o2ib peers. What can be decoded is encoded,
 * and decodes to the same.
 */
#include "lnd/o2iblnd/wire.h"

#include <errno.h>
#include <string.h>

#include "base/util.h"
#include "tests/unit/o2iblnd/wire_again.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool end_same(const struct ib_end *a, const struct ib_end *b)
{
	return lnet_nid_eq(&a->nid, &b->nid) && a->stamp == b->stamp;
}

static bool params_same(const struct ib_conn_params *a,
			const struct ib_conn_params *b)
{
	return a->queue_depth == b->queue_depth &&
	       a->max_frags == b->max_frags &&
	       a->max_msg_size == b->max_msg_size;
}

static void check_rdma(const struct ib_rdma *was, const struct ib_rdma *is)
{
	uint64_t was_addr, is_addr, total = 0;
	uint32_t was_nob, is_nob;

	BUG_ON(was->key != is->key || was->nfrags != is->nfrags);
	for (unsigned int i = 0; i < was->nfrags; i++) {
		ib_rdma_frag(was, i, &was_addr, &was_nob);
		ib_rdma_frag(is, i, &is_addr, &is_nob);
		BUG_ON(was_addr != is_addr || was_nob != is_nob);
		total += was_nob;
	}
	BUG_ON(ib_rdma_nob(was) != total || ib_rdma_nob(is) != total);
}

static void check_same_ends(const struct ib_msg *was, const struct ib_msg *is)
{
	struct ib_envelope was_env = ib_msg_env(was), is_env = ib_msg_env(is);

	BUG_ON(was_env.version != is_env.version);
	BUG_ON(!end_same(&was_env.src, &is_env.src));
	BUG_ON(!end_same(&was_env.dst, &is_env.dst));
	BUG_ON(lnet_nid_is_any(&was_env.src.nid));
}

static void check_same(const struct ib_msg *was, const struct ib_msg *is)
{
	check_same_ends(was, is);
	BUG_ON(was->type != is->type || was->credits != is->credits);
	BUG_ON(!was->cksum != !is->cksum);
	BUG_ON(!params_same(&was->params, &is->params));
	BUG_ON(!was->lnet_hdr != !is->lnet_hdr);
	BUG_ON(was->lnet_hdr &&
	       memcmp(was->lnet_hdr, is->lnet_hdr, LNET_HDR_SIZE) != 0);
	BUG_ON(was->payload_len != is->payload_len);
	BUG_ON(was->payload_len &&
	       memcmp(was->payload, is->payload, was->payload_len) != 0);
	BUG_ON(was->cookie != is->cookie || was->dst_cookie != is->dst_cookie);
	BUG_ON(was->status != is->status);
	check_rdma(&was->rdma, &is->rdma);
}

/* A message must decode as well if it comes over a connection with its sender,
 * unless messages of its type or version do not come over connections. */
static void check_on(const struct ib_msg *was, const uint8_t *data, size_t size)
{
	struct ib_envelope env = ib_msg_env(was);
	struct ib_hdr hdr = ib_hdr_of(&env);
	const char *why = NULL;
	struct ib_msg on;
	int rc = 0;

	/* no connection has an end without a NID */
	if (lnet_nid_is_any(&env.dst.nid))
		return;
	if (was->version != IB_VERSION_2 || was->type < IB_MSG_NOOP)
		rc = -EPROTO;
	BUG_ON(ib_msg_decode_on(&hdr, data, size, &on, &why) != rc);
	BUG_ON(!rc != !why);
}

static void fuzz_message(const uint8_t *data, size_t size)
{
	uint8_t again[IB_MSG_SIZE_MAX];
	const char *why = NULL;
	struct ib_msg was, is;
	size_t len;
	int rc = ib_msg_decode(data, size, &was, &why);

	BUG_ON(rc != 0 && rc != -EPROTO);
	BUG_ON(!rc != !why);
	if (rc)
		return;
	BUG_ON(was.nob < IB_HDR_SIZE || was.nob > size);
	len = ib_again(&was, again);
	BUG_ON(ib_msg_decode(again, len, &is, &why) != 0 || is.nob != len);
	check_same(&was, &is);
	check_on(&was, data, size);
}

static void fuzz_reject(const uint8_t *data, size_t size)
{
	uint8_t again[IB_REJECT_SIZE];
	const char *why = NULL;
	struct ib_reject was, is;
	int rc = ib_reject_decode(data, size, &was, &why);

	BUG_ON(rc != 0 && rc != -EPROTO);
	BUG_ON(!rc != !why);
	if (rc)
		return;
	BUG_ON(size < IB_REJECT_SHORT_SIZE);
	BUG_ON(ib_reject_encode(&was, again) != sizeof(again));
	BUG_ON(ib_reject_decode(again, sizeof(again), &is, &why) != 0);
	BUG_ON(was.version != is.version || was.reason != is.reason);
	BUG_ON(was.stamp != is.stamp || !params_same(&was.params, &is.params));
	BUG_ON(is.full != (is.version == IB_VERSION_2));
	BUG_ON(was.full && !is.full);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	if (size > IB_MSG_SIZE_MAX)
		return 0;
	/* memory of just that length, so that the sanitizer notices a read
	 * behind it */
	copy = malloc(size ? size : 1);
	BUG_ON(!copy);
	if (size)
		memcpy(copy, data, size);
	fuzz_message(copy, size);
	fuzz_reject(copy, size);
	free(copy);
	return 0;
}
