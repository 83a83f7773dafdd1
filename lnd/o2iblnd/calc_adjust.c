/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's tunables, as its LND adjusts them when the NI starts. */
#include <errno.h>

#include "lnd/o2iblnd/calc.h"

struct adjust {
	const struct calc_model *model;
	struct ulnet_o2ib_conf *c;
	struct ulnet_o2ib_node *node;
	struct ulnet_o2ib_notes *notes;
};

static bool is_user(const struct ulnet_o2ib_conf *c)
{
	return c->model == LNET_O2IB_USER;
}

/* *@value_p becomes @value, by this rule, if it is not yet. */
static void set(struct adjust *a, enum calc_rule rule, const char *name,
		uint32_t *value_p, uint32_t value)
{
	if (*value_p == value)
		return;
	calc_changed(a->notes, rule, name, *value_p, value);
	*value_p = value;
}

/* The same, where 0 says that there is no wish. */
static void choose(struct adjust *a, enum calc_rule rule, const char *name,
		   uint32_t *value_p, uint32_t value)
{
	if (*value_p) {
		set(a, rule, name, value_p, value);
		return;
	}
	calc_value(a->notes, rule, name, value);
	*value_p = value;
}

/* What has no meaning becomes what it means for want of another one. */
static void fill(struct ulnet_o2ib_conf *c)
{
	if ((unsigned int)c->model >= LNET_O2IB_MODELS)
		c->model = LNET_O2IB_2_15;
	if ((unsigned int)c->registration >= LNET_O2IB_REGS)
		c->registration = LNET_O2IB_REG_USUAL;
	c->kernel[LNET_O2IB_KERNEL_SIZE - 1] = 0;
	c->ncpts += !c->ncpts;
	c->wrq_sge += !c->wrq_sge;
	c->pieces += !c->pieces;
	c->max_writes += !c->max_writes;
	if (c->max_writes >= CALC_LONGEST_WRS)
		c->max_writes = CALC_LONGEST_WRS - 1;
	if (c->pieces > CALC_BULK_BYTES)
		c->pieces = CALC_BULK_BYTES;
	if (c->version != 1)
		c->version = 2;
	if (!c->page_size)
		c->page_size = 4096;
}

static bool has_global_mr(const struct ulnet_o2ib_conf *c)
{
	return c->global_mr == LNET_O2IB_MR_YES;
}

static void adjust_global_mr(struct adjust *a)
{
	struct ulnet_o2ib_conf *c = a->c;
	enum calc_rule rule = RULE_MR_GIVEN;
	int has = c->global_mr == LNET_O2IB_MR_YES;

	if (*c->kernel && lnet_o2ib_kernel_global_mr(c->kernel) < 0) {
		calc_note(a->notes, LNET_O2IB_ERROR, RULE_KERNEL_BAD, "kernel",
			  0, "%s", c->kernel);
		a->node->starts = false;
	}
	if (c->global_mr != LNET_O2IB_MR_YES &&
	    c->global_mr != LNET_O2IB_MR_NO) {
		rule = *c->kernel ? RULE_KERNEL : RULE_KERNEL_UNKNOWN;
		has = *c->kernel && lnet_o2ib_kernel_global_mr(c->kernel) > 0;
	}
	c->global_mr = has ? LNET_O2IB_MR_YES : LNET_O2IB_MR_NO;
	calc_value(a->notes, rule, "global_mr", has);
}

static void adjust_peer_credits(struct adjust *a)
{
	uint32_t *pc = &a->c->peer_credits;

	if (*pc < CALC_DEPTH_MIN)
		set(a, RULE_PC_MIN, "peer_credits", pc, CALC_DEPTH_MIN);
	if (*pc > CALC_DEPTH_MAX)
		set(a, RULE_PC_MAX, "peer_credits", pc, CALC_DEPTH_MAX);
	if (*pc > a->c->credits)
		set(a, RULE_PC_CREDITS, "peer_credits", pc, a->c->credits);
}

static void adjust_hiw(struct adjust *a)
{
	uint32_t *hiw = &a->c->peer_credits_hiw, pc = a->c->peer_credits;

	if (*hiw < pc / 2)
		choose(a, RULE_HIW_MIN, "peer_credits_hiw", hiw, pc / 2);
	if (*hiw >= pc)
		set(a, RULE_HIW_MAX, "peer_credits_hiw", hiw, pc ? pc - 1 : 0);
}

static void set_map(struct adjust *a, enum calc_rule rule, int32_t value)
{
	int32_t *map = &a->c->map_on_demand;

	if (*map < 0)
		calc_value(a->notes, rule, "map_on_demand", value);
	else if (*map != value)
		calc_changed(a->notes, rule, "map_on_demand", *map, value);
	*map = value;
}

static void adjust_map(struct adjust *a)
{
	bool global = has_global_mr(a->c), counts = a->model->map_counts;
	int32_t usual = global ? 0 : counts ? CALC_MAP_MAX : 1;
	int32_t *map = &a->c->map_on_demand;

	if (*map < 0)
		set_map(a, RULE_MAP_DEFAULT, usual);
	if (!counts) {
		if (*map == 0 && !global)
			set_map(a, RULE_MAP_NEEDED, 1);
		return;
	}
	if (*map > CALC_MAP_MAX || (*map == 0 && !global))
		set_map(a, RULE_MAP_RANGE, usual);
	if (*map == 1)
		set_map(a, RULE_MAP_ONE, 2);
}

static void adjust_sends(struct adjust *a)
{
	uint32_t *cs = &a->c->concurrent_sends, pc = a->c->peer_credits;
	bool few = a->model->map_counts && a->c->map_on_demand > 0 &&
		   a->c->map_on_demand <= CALC_MAP_SENDS;

	if (!*cs)
		choose(a, few ? RULE_CS_MAP : RULE_CS_DEFAULT,
		       "concurrent_sends", cs, few ? 2 * pc : pc);
	if (*cs > 2 * pc)
		set(a, RULE_CS_MAX, "concurrent_sends", cs, 2 * pc);
	if (*cs < pc / 2)
		set(a, RULE_CS_MIN, "concurrent_sends", cs, pc / 2);
	if (a->model->sends_ignored)
		calc_value(a->notes, RULE_CS_IGNORED, "concurrent_sends", *cs);
	else if (*cs < pc)
		calc_note(a->notes, LNET_O2IB_WARNING, RULE_CS_LOW,
			  "concurrent_sends", *cs, "%u < %u", *cs, pc);
}

static void adjust_pools(struct adjust *a)
{
	struct ulnet_o2ib_node *node = a->node;
	const struct ulnet_o2ib_conf *c = a->c;

	node->frags_fixed =
		has_global_mr(c) && c->map_on_demand == 0 && !is_user(c);
	node->pools = !node->frags_fixed && !is_user(c);
	calc_value(a->notes, RULE_POOLS, "pools", node->pools);
	if (node->pools && c->fmr_pool_size < c->ntx / 4) {
		calc_note(a->notes, LNET_O2IB_ERROR, RULE_POOL_SIZE,
			  "fmr_pool_size", c->fmr_pool_size, "%u < %u / 4",
			  c->fmr_pool_size, c->ntx);
		node->starts = false;
	}
}

static void set_registration(struct adjust *a, enum calc_rule rule,
			     enum ulnet_o2ib_registration registration)
{
	if (a->c->registration == registration)
		return;
	if (a->c->registration == LNET_O2IB_REG_USUAL)
		calc_note(a->notes, LNET_O2IB_COMPUTED, rule, "registration",
			  registration, "%s",
			  lnet_o2ib_registration_name(registration));
	else
		calc_changed(a->notes, rule, "registration", a->c->registration,
			     registration);
	a->c->registration = registration;
}

static void adjust_registration(struct adjust *a)
{
	struct ulnet_o2ib_conf *c = a->c;
	enum ulnet_o2ib_registration usual =
		is_user(c) ? LNET_O2IB_REG_USER : LNET_O2IB_REG_FASTREG;

	if (a->node->frags_fixed) {
		set_registration(a, RULE_REG_NO_POOLS, LNET_O2IB_REG_GLOBAL);
	} else if (c->registration == LNET_O2IB_REG_USUAL) {
		set_registration(a, RULE_REG_USUAL, usual);
	} else if (is_user(c) != (c->registration == LNET_O2IB_REG_USER)) {
		set_registration(a, RULE_REG_MODEL, usual);
	} else if (c->registration == LNET_O2IB_REG_GLOBAL &&
		   !has_global_mr(c)) {
		set_registration(a, RULE_REG_NO_MR, usual);
	}
	a->node->wrs_extra = c->registration == LNET_O2IB_REG_FASTREG ? 2 : 0;
	calc_value(a->notes, RULE_EXTRA, "wrs_extra", a->node->wrs_extra);
}

static void adjust_limits(struct adjust *a)
{
	struct ulnet_o2ib_node *node = a->node;
	const struct ulnet_o2ib_conf *c = a->c;
	enum calc_rule rule = is_user(c)	     ? RULE_FRAGS_USER
			      : a->model->map_counts ? RULE_FRAGS_MAP
						     : RULE_FRAGS_MODEL;

	node->frags_offered = a->model->frags_offered;
	node->frags_accepted = a->model->frags_accepted;
	if (a->model->map_counts && c->map_on_demand > 0) {
		node->frags_offered = (uint32_t)c->map_on_demand;
		node->frags_accepted = (uint32_t)c->map_on_demand;
	}
	calc_value(a->notes, rule, "frags_offered", node->frags_offered);
	calc_value(a->notes, rule, "frags_accepted", node->frags_accepted);
	node->depth_max = c->version == 1 ? CALC_DEPTH_V1 : c->peer_credits;
	calc_value(a->notes, c->version == 1 ? RULE_DEPTH_V1 : RULE_DEPTH,
		   "depth_max", node->depth_max);
}

void lnet_o2ib_conf_init(struct ulnet_o2ib_conf *conf)
{
	*conf = (struct ulnet_o2ib_conf){
		.model = LNET_O2IB_2_15,
		.peer_credits = 8,
		.credits = 256,
		.map_on_demand = -1,
		.ntx = 512,
		.fmr_pool_size = 512,
		.fmr_flush_trigger = 384,
		.ncpts = 1,
		.conns_per_peer = 1,
		.wrq_sge = 2,
		.version = 2,
		.page_size = 4096,
		.max_writes = CALC_USER_WRITES,
		.pieces = 1,
	};
}

int lnet_o2ib_adjust(const struct ulnet_o2ib_conf *conf,
		     struct ulnet_o2ib_node *node,
		     struct ulnet_o2ib_notes *notes)
{
	struct adjust a = { .c = &node->conf, .node = node, .notes = notes };

	*node = (struct ulnet_o2ib_node){ .conf = *conf, .starts = true };
	fill(&node->conf);
	a.model = calc_model(node->conf.model);
	adjust_global_mr(&a);
	adjust_peer_credits(&a);
	adjust_hiw(&a);
	adjust_map(&a);
	adjust_sends(&a);
	adjust_pools(&a);
	adjust_registration(&a);
	if (!node->conf.conns_per_peer)
		set(&a, RULE_CONNS, "conns_per_peer",
		    &node->conf.conns_per_peer, 1);
	if (node->conf.conns_per_peer > CALC_CONNS_MAX)
		set(&a, RULE_CONNS_MAX, "conns_per_peer",
		    &node->conf.conns_per_peer, CALC_CONNS_MAX);
	adjust_limits(&a);
	return node->starts ? 0 : -EINVAL;
}
