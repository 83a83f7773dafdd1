/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's limits, as its LND computes them from the tunables. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lnd/o2iblnd/calc.h"

/* ---- models and names ---- */

static const struct calc_model models[LNET_O2IB_MODELS] = {
	[LNET_O2IB_2_10_54] = { "2.10.54", CALC_SEND_CS, CALC_HIW_CONFIGURED,
				256, 256, .map_counts = true,
				.never_lowers = true },
	[LNET_O2IB_2_10] = { "2.10", CALC_SEND_DEPTH, CALC_HIW_CONFIGURED, 256,
			     256, .map_counts = true, .never_lowers = true },
	[LNET_O2IB_2_11] = { "2.11", CALC_SEND_EXTRA, CALC_HIW_CONFIGURED, 256,
			     256, .sends_ignored = true, .cq_by_depth = true,
			     .never_lowers = true },
	[LNET_O2IB_2_12] = { "2.12", CALC_SEND_EXTRA, CALC_HIW_BELOW, 256, 256,
			     .capped = true, .never_lowers = true },
	[LNET_O2IB_2_15] = { "2.15", CALC_SEND_EXTRA, CALC_HIW_BELOW, 257, 257,
			     .capped = true },
	[LNET_O2IB_2_16] = { "2.16", CALC_SEND_EXTRA, CALC_HIW_SCALED, 257, 257,
			     .capped = true },
	[LNET_O2IB_USER] = { "user", CALC_SEND_USER, CALC_HIW_SCALED, 256, 257,
			     .capped = true },
};

static const char *const registrations[LNET_O2IB_REGS] = {
	[LNET_O2IB_REG_USUAL] = "usual", [LNET_O2IB_REG_GLOBAL] = "global",
	[LNET_O2IB_REG_FMR] = "fmr",	 [LNET_O2IB_REG_FASTREG] = "fastreg",
	[LNET_O2IB_REG_USER] = "user",
};

static const char *const answers[] = {
	[LNET_O2IB_ACCEPTED] = "accepted",
	[LNET_O2IB_QUEUE_SIZE] = "queue-size",
	[LNET_O2IB_FRAGS] = "fragments",
	[LNET_O2IB_UNCOMPAT] = "version",
	[LNET_O2IB_FATAL] = "fatal",
};

static const char *const verdicts[LNET_O2IB_VERDICTS] = {
	[LNET_O2IB_CONNECTED] = "connected",
	[LNET_O2IB_NO_NI] = "an NI does not start",
	[LNET_O2IB_FRAGS_FIXED] =
		"the acceptor allows fewer fragments, and the initiator, which "
		"has nothing but a global memory region, cannot use fewer",
	[LNET_O2IB_FRAGS_DEMANDED] =
		"the acceptor, which has nothing but a global memory region, "
		"demands more fragments than the initiator can use",
	[LNET_O2IB_FRAGS_V1] =
		"the acceptor allows fewer fragments, and version 1 of the "
		"protocol cannot say how many",
	[LNET_O2IB_NO_DEPTH] = "no queue is left: the depth would be 0",
	[LNET_O2IB_NO_VERSION] =
		"a node speaks version 1 of the protocol only, and the other "
		"one does not",
	[LNET_O2IB_NO_CQ] =
		"a device has no completion queue that is long enough",
	[LNET_O2IB_NO_CQ_TO_ASK] =
		"the initiator's device has no completion queue for what it "
		"would ask for, so it never asks",
};

/* Returns the table's row for @model, which may be any number; NULL: there is
 * none. */
const struct calc_model *calc_model(enum ulnet_o2ib_model model)
{
	return &models[(unsigned int)model < LNET_O2IB_MODELS ? model
							      : LNET_O2IB_2_15];
}

const char *lnet_o2ib_model_name(enum ulnet_o2ib_model model)
{
	return (unsigned int)model < LNET_O2IB_MODELS ? models[model].name
						      : NULL;
}

static int calc_node_take_number(const char **text, unsigned long *number_p)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	*number_p = strtoul(*text, &end, 10);
	*text = end;
	return 0;
}

/* Parses a release of Lustre. Releases of 2.10 are models by themselves; others
 * are told apart by their second number. */
static int release_parse(const char *name, enum ulnet_o2ib_model *model_p)
{
	static const struct {
		/* the first minor release that the model stands for */
		unsigned long from;
		enum ulnet_o2ib_model model;
	} releases[] = {
		{ 16, LNET_O2IB_2_16 },
		{ 15, LNET_O2IB_2_15 },
		{ 12, LNET_O2IB_2_12 },
		{ 11, LNET_O2IB_2_11 },
	};
	unsigned long minor;

	if (strncmp(name, "2.", 2) != 0)
		return -EINVAL;
	name += 2;
	if (calc_node_take_number(&name, &minor) || minor > 99)
		return -EINVAL;
	if (*name && (*name != '.' || !isdigit((unsigned char)name[1]) ||
		      name[1 + strspn(name + 1, "0123456789.")]))
		return -EINVAL;
	for (unsigned int i = 0; i < ARRAY_SIZE(releases); i++) {
		if (minor >= releases[i].from) {
			*model_p = releases[i].model;
			return 0;
		}
	}
	return -EINVAL;
}

int lnet_o2ib_model_parse(const char *name, enum ulnet_o2ib_model *model_p)
{
	for (unsigned int i = 0; i < LNET_O2IB_MODELS; i++) {
		if (strcmp(models[i].name, name) == 0) {
			*model_p = (enum ulnet_o2ib_model)i;
			return 0;
		}
	}
	return release_parse(name, model_p);
}

const char *lnet_o2ib_registration_name(
	enum ulnet_o2ib_registration registration)
{
	return (unsigned int)registration < LNET_O2IB_REGS
		       ? registrations[registration]
		       : NULL;
}

int lnet_o2ib_registration_parse(const char *name,
				 enum ulnet_o2ib_registration *registration_p)
{
	for (unsigned int i = 0; i < LNET_O2IB_REGS; i++) {
		if (strcmp(registrations[i], name) == 0) {
			*registration_p = (enum ulnet_o2ib_registration)i;
			return 0;
		}
	}
	return -EINVAL;
}

const char *lnet_o2ib_answer_name(enum ulnet_o2ib_answer answer)
{
	return (unsigned int)answer < ARRAY_SIZE(answers) ? answers[answer]
							  : NULL;
}

const char *lnet_o2ib_verdict_text(enum ulnet_o2ib_verdict verdict)
{
	return (unsigned int)verdict < LNET_O2IB_VERDICTS ? verdicts[verdict]
							  : NULL;
}

/* ---- kernels ---- */

/* RHEL 7 kernels have all the same version, and differ by build. */
#define RHEL7_MAJOR	 3
#define RHEL7_MINOR	 10
#define RHEL7_BUILD_NONE 693 /* RHEL 7.4 */
#define UPSTREAM_MAJOR	 4
#define UPSTREAM_MINOR	 9

int lnet_o2ib_kernel_global_mr(const char *kernel)
{
	unsigned long major, minor, patch = 0, build;

	if (calc_node_take_number(&kernel, &major))
		return -EINVAL;
	/* Without a version this is the build of a RHEL 7 kernel, since no
	 * kernel version is that high. */
	if (!*kernel)
		return major < 100 ? -EINVAL : major < RHEL7_BUILD_NONE;
	if (*kernel++ != '.' || calc_node_take_number(&kernel, &minor))
		return -EINVAL;
	if (*kernel == '.') {
		kernel++;
		if (calc_node_take_number(&kernel, &patch))
			return -EINVAL;
	}
	if (major == RHEL7_MAJOR && minor == RHEL7_MINOR && patch == 0 &&
	    *kernel == '-') {
		kernel++;
		if (!calc_node_take_number(&kernel, &build))
			return build < RHEL7_BUILD_NONE;
	}
	if (*kernel && !strchr("-+._~", *kernel))
		return -EINVAL;
	return major < UPSTREAM_MAJOR ||
	       (major == UPSTREAM_MAJOR && minor < UPSTREAM_MINOR);
}

/* ---- rules and notes ---- */

static const struct ulnet_o2ib_rule rules[RULE_COUNT] = {
#define RULE(rule, name, text) [RULE_##rule] = { name, text },
#include "lnd/o2iblnd/calc_rule.def"
#undef RULE
};

const struct ulnet_o2ib_rule *lnet_o2ib_rule(unsigned int number)
{
	return number < RULE_COUNT ? &rules[number] : NULL;
}

static struct ulnet_o2ib_note *note_add(struct ulnet_o2ib_notes *notes,
					enum ulnet_o2ib_note_kind kind,
					enum calc_rule rule, const char *name)
{
	struct ulnet_o2ib_note *note;

	if (!notes)
		return NULL;
	if (notes->n >= LNET_O2IB_NOTES_MAX) {
		notes->lost++;
		return NULL;
	}
	note = &notes->note[notes->n++];
	*note = (struct ulnet_o2ib_note){ .kind = kind,
					  .side = notes->side,
					  .name = name,
					  .rule = &rules[rule] };
	return note;
}

void calc_changed(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		  const char *name, int64_t before, int64_t value)
{
	struct ulnet_o2ib_note *note =
		note_add(notes, LNET_O2IB_CHANGED, rule, name);

	if (!note)
		return;
	note->before = before;
	note->value = value;
}

void calc_value(struct ulnet_o2ib_notes *notes, enum calc_rule rule,
		const char *name, int64_t value)
{
	struct ulnet_o2ib_note *note =
		note_add(notes, LNET_O2IB_COMPUTED, rule, name);

	if (note)
		note->value = value;
}

void calc_note(struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_note_kind kind,
	       enum calc_rule rule, const char *name, int64_t value,
	       const char *how, ...)
{
	struct ulnet_o2ib_note *note = note_add(notes, kind, rule, name);
	va_list ap;

	if (!note)
		return;
	note->value = value;
	va_start(ap, how);
	vsnprintf(note->how, sizeof(note->how), how, ap);
	va_end(ap);
}

void calc_side(struct ulnet_o2ib_notes *notes, enum ulnet_o2ib_side side)
{
	if (notes)
		notes->side = side;
}

/* ---- adjusting tunables ---- */

struct adjust {
	const struct calc_model *model;
	struct ulnet_o2ib_conf *c;
	struct ulnet_o2ib_node *node;
	struct ulnet_o2ib_notes *notes;
};

/* Sets *@value_p and notes the change, if it is one. */
static void set(struct adjust *a, enum calc_rule rule, const char *name,
		uint32_t *value_p, uint32_t value)
{
	if (*value_p == value)
		return;
	calc_changed(a->notes, rule, name, *value_p, value);
	*value_p = value;
}

/* As set(), for a tunable whose value 0 means that the user leaves it open. */
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

/* Replaces values that have no meaning by the default, or by the nearest bound.
 */
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

	node->frags_fixed = has_global_mr(c) && c->map_on_demand == 0 &&
			    !calc_is_user(a->node);
	node->pools = !node->frags_fixed && !calc_is_user(a->node);
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
	enum ulnet_o2ib_registration usual = calc_is_user(a->node)
						     ? LNET_O2IB_REG_USER
						     : LNET_O2IB_REG_FASTREG;

	if (a->node->frags_fixed) {
		set_registration(a, RULE_REG_NO_POOLS, LNET_O2IB_REG_GLOBAL);
	} else if (c->registration == LNET_O2IB_REG_USUAL) {
		set_registration(a, RULE_REG_USUAL, usual);
	} else if (calc_is_user(a->node) !=
		   (c->registration == LNET_O2IB_REG_USER)) {
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
	enum calc_rule rule = calc_is_user(a->node)  ? RULE_FRAGS_USER
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
