/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers of the RPC scenario that block, as users write them. */
#include <errno.h>

#include "tests/sim/rpc_run.h"
#include "tests/unit/rpc/worker_sleep.h"

/* Is it certain that the service has not abandoned the request? */
static bool service_stays(const struct job *j)
{
	return !j->m->run->over && j->m->rpc && !j->m->shutting &&
	       j->m->services[j->body.service] &&
	       j->m->starts[j->body.service] == j->start;
}

uint64_t job_deadline(struct job *j)
{
	struct lnet_sim *sim = j->m->run->sim;
	uint64_t now = lnet_sim_now(sim) / US;
	struct ulrpc_request_info info;
	uint64_t at;

	ulrpc_request_info(j->request, &info);
	if (info.time_left == ULRPC_NEVER)
		return j->deadline = UINT64_MAX;
	at = now + info.time_left;
	/* each of two whole numbers may be rounded down by one */
	if (service_stays(j) && at + 1 < j->deadline)
		lnet_sim_fail(sim,
			      "node %u: call %lu has less time than it had: "
			      "until %lu us, not %lu us",
			      j->m->index, (unsigned long)j->body.id,
			      (unsigned long)at, (unsigned long)j->deadline);
	j->deadline = j->deadline > at ? j->deadline : at;
	return info.time_left ? at : 0;
}

static int work_move(struct job *j, unsigned int i)
{
	struct iovec iov[2];
	int rc;

	if (!part_begin(j, i, iov))
		return -EIO;
	if (j->parts[i].get)
		rc = ulrpc_bulk_get_wait(j->request, i, 0, iov, 2);
	else
		rc = ulrpc_bulk_put_wait(j->request, i, 0, iov, 2);
	part_end(j, i, rc, j->parts[i].size);
	return rc;
}

/* Blocks: in a sleep of its own, or in ulrpc_request_sleep(), which also ends
 * when the request does. */
static int work_sleep(struct job *j)
{
	struct run *r = j->m->run;
	struct lnet *node = lnet_sim_node(r->sim, j->m->index);
	uint32_t part = j->body.delay / 4;
	int rc = 0;

	if (chance(r, 50))
		return worker_sleep(node, j->body.delay * US);
	for (uint32_t i = 1; i <= 4 && !rc; i++) {
		rc = ulrpc_request_sleep(j->request, part);
		ulrpc_progress(j->request, 250 * i);
	}
	return rc;
}

static int work_do(struct job *j)
{
	struct ulrpc_request_info info;
	int rc = work_sleep(j);

	ulrpc_request_info(j->request, &info);
	for (unsigned int i = 0; i < info.nbulks && i < BULKS && !rc; i++)
		rc = work_move(j, i);
	if (!rc && j->body.asks)
		caller_ask(j->m, info.trace);
	return rc;
}

void work_block(struct job *j)
{
	struct run *r = j->m->run;
	bool crashed;
	int rc;

	j->blocked = true;
	if (j->body.delay > 100000)
		tally_count(r, HANDLER_IS_SLOW);
	job_deadline(j);
	rc = work_do(j);
	j->blocked = false;
	crashed = !lnet_sim_node(r->sim, j->m->index);
	if (!crashed)
		job_deadline(j);
	/* after a crash it does not matter whether there is an answer */
	if (!crashed || chance(r, 50))
		job_answer(j, rc ? -EREMOTEIO : 0);
	else
		j->request = NULL;
	job_check(j);
}
