/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/sim/rules.h"

#include <errno.h>

#include "tests/sim/cluster.h"

#define RULES_MAX 4 /* of a kind on a node */

static bool likely_by(struct lnet_sim *sim, unsigned int percent)
{
	return lnet_sim_random(sim, 100) < percent;
}

const char *const rules_names[LNET_FAULT_KINDS] = {
	[LNET_FAULT_DROP] = "a rule drops a message, or fails it",
	[LNET_FAULT_DELAY] = "a rule delays a message",
	[LNET_FAULT_DUPLICATE] = "a rule sends a message twice",
	[LNET_FAULT_CORRUPT] = "a rule corrupts a message",
	[LNET_FAULT_ERROR] = "a rule fails a message",
};

static uint64_t struck_on(struct lnet *node, enum ulnet_fault_kind kind)
{
	struct ulnet_fault_info infos[RULES_MAX];
	int n = lnet_fault_list(node, kind, infos, RULES_MAX);
	uint64_t struck = 0;

	for (int i = 0; i < n; i++)
		struck += infos[i].fired;
	return struck;
}

void rules_forget(struct rules *r, struct lnet_sim *sim, struct lnet *node)
{
	for (unsigned int i = 0; i < LNET_FAULT_KINDS; i++) {
		enum ulnet_fault_kind kind = (enum ulnet_fault_kind)i;
		int rc;

		r->struck[i] += struck_on(node, kind);
		rc = lnet_fault_del(node, kind, NULL, NULL);
		if (rc < 0)
			lnet_sim_fail(sim, "fault rules stay: %d", rc);
	}
}

static void rule_times(struct lnet_sim *sim, struct ulnet_fault *f)
{
	if (likely_by(sim, 70))
		f->rate = 1 + (uint32_t)lnet_sim_random(sim, 20);
	else
		f->interval = 1 + lnet_sim_random(sim, 50 * MS / US);
	f->random = likely_by(sim, 30);
	if (f->kind == LNET_FAULT_DELAY)
		f->latency = 1 + lnet_sim_random(sim, 50 * MS / US);
}

static void rule_filters(struct lnet_sim *sim, struct ulnet_fault *f,
			 const struct ulnet_nid *a, const struct ulnet_nid *b)
{
	if (likely_by(sim, 20))
		f->source = *a;
	if (likely_by(sim, 20))
		f->dest = *b;
	if (likely_by(sim, 10))
		f->local = *a;
	if (likely_by(sim, 30))
		f->messages = 1 + (uint32_t)lnet_sim_random(sim, 15);
}

static uint32_t some_causes(struct lnet_sim *sim)
{
	uint32_t causes = (uint32_t)lnet_sim_random(sim, LNET_FAULT_CAUSES);

	return causes & LNET_FAULT_CAUSES ? causes & LNET_FAULT_CAUSES
					  : LNET_FAULT_CAUSES;
}

void rules_change(struct rules *r, struct lnet_sim *sim, struct lnet *node,
		  const struct ulnet_nid *a, const struct ulnet_nid *b,
		  uint64_t corrupt)
{
	struct ulnet_fault f;
	int rc;

	lnet_fault_init(&f, (enum ulnet_fault_kind)lnet_sim_random(
				    sim, LNET_FAULT_KINDS));
	if (likely_by(sim, 20) ||
	    lnet_fault_list(node, f.kind, NULL, 0) == RULES_MAX) {
		rules_forget(r, sim, node);
		return;
	}
	rule_times(sim, &f);
	rule_filters(sim, &f, a, b);
	if (f.kind == LNET_FAULT_ERROR ||
	    (f.kind == LNET_FAULT_DROP && likely_by(sim, 30)))
		f.causes = some_causes(sim);
	if (f.kind == LNET_FAULT_CORRUPT) {
		if (!corrupt)
			return;
		f.portals = corrupt;
		f.messages = LNET_FAULT_PUT;
	}
	rc = lnet_fault_add(node, &f);
	if (rc && rc != -EEXIST) /* the same rule may exist already */
		lnet_sim_fail(sim, "a fault rule is not taken: %d", rc);
}
