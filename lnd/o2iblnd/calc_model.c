/* SPDX-License-Identifier: BSD-3-Clause */
/* The models: which release calculates how; kernels; and names. */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "lnd/o2iblnd/calc.h"

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
};

/* Any number of an enumeration may come in. */
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

static int take_number(const char **text, unsigned long *number_p)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return -EINVAL;
	*number_p = strtoul(*text, &end, 10);
	*text = end;
	return 0;
}

/* Releases of 2.10 calculate in different ways; later ones are told apart by
 * their second number. */
static int release_parse(const char *name, enum ulnet_o2ib_model *model_p)
{
	static const struct {
		unsigned long from; /* 2.FROM, up to the next line */
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
	if (take_number(&name, &minor) || minor > 99)
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

/* RHEL 7 has one release, and tells by the build. */
#define RHEL7_MAJOR	 3
#define RHEL7_MINOR	 10
#define RHEL7_BUILD_NONE 693 /* RHEL 7.4 */
#define UPSTREAM_MAJOR	 4
#define UPSTREAM_MINOR	 9

int lnet_o2ib_kernel_global_mr(const char *kernel)
{
	unsigned long major, minor, patch = 0, build;

	if (take_number(&kernel, &major))
		return -EINVAL;
	/* A build of RHEL 7 alone; no kernel has such a version. */
	if (!*kernel)
		return major < 100 ? -EINVAL : major < RHEL7_BUILD_NONE;
	if (*kernel++ != '.' || take_number(&kernel, &minor))
		return -EINVAL;
	if (*kernel == '.') {
		kernel++;
		if (take_number(&kernel, &patch))
			return -EINVAL;
	}
	if (major == RHEL7_MAJOR && minor == RHEL7_MINOR && patch == 0 &&
	    *kernel == '-') {
		kernel++;
		if (!take_number(&kernel, &build))
			return build < RHEL7_BUILD_NONE;
	}
	if (*kernel && !strchr("-+._~", *kernel))
		return -EINVAL;
	return major < UPSTREAM_MAJOR ||
	       (major == UPSTREAM_MAJOR && minor < UPSTREAM_MINOR);
}

/* ---- rules, and notes of what they did ---- */

/* The rules in words, and the notes of what they did. */

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
