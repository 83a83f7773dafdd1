/* SPDX-License-Identifier: BSD-3-Clause */
/* A user's program: built with what pkg-config says, outside the tree. */
#include <stdio.h>
#include <ulnet/sim.h>

static void done(void *arg, int status, const struct ulnet_ping_info *info)
{
	*(int *)arg = status == 0 && info->nnis == 1 ? 0 : 1;
}

int main(void)
{
	struct ulnet_id to = { .pid = LNET_PID_LUSTRE };
	struct lnet_sim *sim;
	int result = 1;

	if (lnet_sim_new(1, 1, &sim) || lnet_nid_parse("10.0.0.2@tcp", &to.nid))
		return 1;
	lnet_sim_node_add(sim, "10.0.0.1@tcp", NULL, NULL, NULL);
	lnet_sim_node_add(sim, "10.0.0.2@tcp", NULL, NULL, NULL);
	lnet_ping(lnet_sim_node(sim, 0), to, 0, done, &result);
	lnet_sim_run_all(sim);
	puts(result ? "no answer" : "pong");
	return lnet_sim_free(sim) ? 1 : result;
}
