/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of a hostile peer to a node that takes part in the self-test:
 * messages one after the other, each behind a byte that names the service.
 * Lists of destinations are fetched from the bytes behind the last message. The
 * node must keep to its limits, and in the end free everything.
 */
#include "services/lst/lst_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "services/lst/message.h"
#include "ulnet/sim.h"

#define SEC	 UINT64_C(1000000000)
#define MSEC	 UINT64_C(1000000)
#define MESSAGES 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void md_done(struct lst_md *md)
{
	free(md);
}

static struct ulnet_id id_of(const char *text)
{
	struct ulnet_id id = { .pid = LNET_PID_LUSTRE };

	BUG_ON(lnet_nid_parse(text, &id.nid));
	return id;
}

/* Attaches what the node may fetch for the message: the end of the input. */
static void offer(struct lnet *node, const uint8_t *message, void *data,
		  size_t size)
{
	struct lst_md *md = calloc(1, sizeof(*md));
	struct lst_address at = { .node = node,
				  .peer = id_of("10.77.0.14@tcp"),
				  .portal = LST_PORTAL_REPLY };
	struct lst_msg msg = { 0 };

	BUG_ON(!md);
	md->done = md_done;
	lst_msg_decode(&msg, message, LST_MSG_SIZE);
	at.bits = msg.bulk_id;
	BUG_ON(lst_md_expect(md, &at, LNET_MD_OP_GET, data, (uint32_t)size));
}

static void throw(struct lnet * node, uint8_t service, uint8_t *message)
{
	struct lst_md *md = calloc(1, sizeof(*md));
	struct lst_address to = {
		.node = node,
		.self = LNET_NID_ANY,
		.peer = id_of("10.77.0.14@tcp"),
		.portal = service & 8 ? LST_PORTAL_TEST : LST_PORTAL_FRAME,
		.bits = service & 15,
	};

	BUG_ON(!md);
	md->done = md_done;
	BUG_ON(lst_md_put(md, &to, message, LST_MSG_SIZE));
}

static void check(const struct lst *lst)
{
	BUG_ON(lst->units > LST_UNITS_MAX);
	BUG_ON(lst->unit_bytes > LST_UNIT_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = MIN(size / (LST_MSG_SIZE + 1), (size_t)MESSAGES);
	size_t messages = n * (LST_MSG_SIZE + 1);
	uint8_t *copy = malloc(size ? size : 1);
	struct ulnet_conf conf = { .discovery = LNET_DISCOVERY_OFF };
	struct lnet_sim *sim;
	struct lst *lst;

	BUG_ON(!copy);
	memcpy(copy, data, size);
	lnet_log_set(LNET_LOG_ERR, NULL, NULL);
	BUG_ON(lnet_sim_new(1, 1, &sim));
	BUG_ON(lnet_sim_node_add(sim, "10.77.0.13@tcp", &conf, NULL, NULL));
	BUG_ON(lnet_sim_node_add(sim, "10.77.0.14@tcp", &conf, NULL, NULL) < 0);
	BUG_ON(lst_open(lnet_sim_node(sim, 1), NULL, &lst));
	for (size_t i = 0; i < n; i++) {
		uint8_t *message = copy + i * (LST_MSG_SIZE + 1) + 1;

		offer(lnet_sim_node(sim, 0), message, copy + messages,
		      size - messages);
		throw(lnet_sim_node(sim, 0), message[-1], message);
		lnet_sim_run(sim, MSEC);
		check(lst);
	}
	/* long enough for sessions and their tests to end */
	lnet_sim_run(sim, (LST_SESSION_S + 5) * SEC);
	BUG_ON(lst->session || lst->units || lst->unit_bytes);
	BUG_ON(lnet_sim_free(sim));
	lst_free(lst);
	free(copy);
	return 0;
}
