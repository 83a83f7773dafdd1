/* SPDX-License-Identifier: BSD-3-Clause */
#include "o2ibcalc.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tools/common/nearest.h"

enum kind {
	KIND_NUMBER,
	KIND_LIMIT, /* of a device, which may be unknown */
	KIND_PAGE,
	KIND_MAP,
	KIND_MODEL,
	KIND_REGISTRATION,
	KIND_GLOBAL_MR,
	KIND_KERNEL,
};

struct input {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct ulnet_o2ib_conf */
	unsigned long min, max;
	const char *alias; /* in what lnetctl shows */
};

#define AT(field) offsetof(struct ulnet_o2ib_conf, field)

static const struct input table[] = {
	{ "model", KIND_MODEL, 0, 0, 0, NULL },
	{ "kernel", KIND_KERNEL, 0, 0, 0, NULL },
	{ "global_mr", KIND_GLOBAL_MR, 0, 0, 0, NULL },
	{ "registration", KIND_REGISTRATION, 0, 0, 0, NULL },
	{ "peer_credits", KIND_NUMBER, AT(peer_credits), 0, 65535, NULL },
	{ "credits", KIND_NUMBER, AT(credits), 1, 65535, NULL },
	{ "peer_credits_hiw", KIND_NUMBER, AT(peer_credits_hiw), 0, 65535,
	  "peercredits_hiw" },
	{ "concurrent_sends", KIND_NUMBER, AT(concurrent_sends), 0, 65535,
	  NULL },
	{ "map_on_demand", KIND_MAP, AT(map_on_demand), 0, 65535, NULL },
	{ "ntx", KIND_NUMBER, AT(ntx), 1, 1000000, NULL },
	{ "fmr_pool_size", KIND_NUMBER, AT(fmr_pool_size), 0, 1000000, NULL },
	{ "fmr_flush_trigger", KIND_NUMBER, AT(fmr_flush_trigger), 0, 1000000,
	  NULL },
	{ "ncpts", KIND_NUMBER, AT(ncpts), 1, 4096, NULL },
	{ "conns_per_peer", KIND_NUMBER, AT(conns_per_peer), 0, 127, NULL },
	{ "wrq_sge", KIND_NUMBER, AT(wrq_sge), 1, 256, NULL },
	{ "version", KIND_NUMBER, AT(version), 1, 2, NULL },
	{ "max_qp_wr", KIND_LIMIT, AT(max_qp_wr), 1, 100000000, NULL },
	{ "max_cqe", KIND_LIMIT, AT(max_cqe), 1, 100000000, NULL },
	{ "page_size", KIND_PAGE, AT(page_size), 4096, 1048576, NULL },
	{ "max_writes", KIND_NUMBER, AT(max_writes), 1, 257, NULL },
	{ "pieces", KIND_NUMBER, AT(pieces), 1, 1048576, NULL },
};
#define INPUTS (sizeof(table) / sizeof(table[0]))

int complain(struct complaint *c, const char *fmt, ...)
{
	va_list ap;

	c->near = NULL;
	va_start(ap, fmt);
	vsnprintf(c->what, sizeof(c->what), fmt, ap);
	va_end(ap);
	return -1;
}

unsigned int inputs(void)
{
	return INPUTS;
}

const struct input *input_at(unsigned int number)
{
	return &table[number];
}

const char *input_name(const struct input *in)
{
	return in->name;
}

const struct input *input_find(const char *name)
{
	for (unsigned int i = 0; i < INPUTS; i++)
		if (strcmp(table[i].name, name) == 0 ||
		    (table[i].alias && strcmp(table[i].alias, name) == 0))
			return &table[i];
	return NULL;
}

const char *input_near(const char *name)
{
	struct nearest near;

	nearest_init(&near, name);
	for (unsigned int i = 0; i < INPUTS; i++)
		nearest_try(&near, table[i].name);
	return near.name;
}

static bool is_one_of(const char *text, const char *a, const char *b)
{
	return strcasecmp(text, a) == 0 || strcasecmp(text, b) == 0;
}

/* ---- values from text ---- */

static int not_a(const struct input *in, const char *text, const char *expected,
		 struct complaint *c)
{
	return complain(c, "%s: %.80s: %s is expected", in->name, text,
			expected);
}

static int set_number(const struct input *in, const char *text, void *field,
		      const char *or_else, struct complaint *c)
{
	uint64_t value;
	uint32_t number;
	char range[96];

	if (!number_parse(text, in->min, in->max, &value)) {
		snprintf(range, sizeof(range), "a number from %lu to %lu%s",
			 in->min, in->max, or_else);
		return not_a(in, text, range, c);
	}
	number = (uint32_t)value;
	memcpy(field, &number, sizeof(number));
	return 0;
}

static int set_page(const struct input *in, const char *text, void *field,
		    struct complaint *c)
{
	uint64_t value;

	if (!number_parse(text, in->min, in->max, &value) ||
	    (value & (value - 1)))
		return not_a(in, text, "a power of 2 from 4096 to 1048576", c);
	return set_number(in, text, field, "", c);
}

static int set_map(const struct input *in, const char *text,
		   struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	if (strcmp(text, "default") == 0)
		conf->map_on_demand = -1;
	else if (is_one_of(text, "true", "yes"))
		conf->map_on_demand = 1;
	else if (is_one_of(text, "false", "no"))
		conf->map_on_demand = 0;
	else
		return set_number(in, text, &conf->map_on_demand,
				  ", true, false or default", c);
	return 0;
}

/* The names of an enumeration, as a list; and the nearest of them. */
static int no_name(const struct input *in, const char *text,
		   const char *(*name_of)(unsigned int), struct complaint *c)
{
	struct nearest near;
	char list[128] = "";
	size_t length = 0;

	nearest_init(&near, text);
	for (unsigned int i = 0; name_of(i); i++) {
		if (isalpha((unsigned char)*name_of(i)))
			nearest_try(&near, name_of(i));
		length += (size_t)snprintf(list + length, sizeof(list) - length,
					   "%s%s", i ? ", " : "", name_of(i));
	}
	complain(c, "%s: %.80s: there are: %s", in->name, text, list);
	c->near = near.name;
	return -1;
}

static const char *model_name(unsigned int i)
{
	return lnet_o2ib_model_name((enum ulnet_o2ib_model)i);
}

static const char *registration_name(unsigned int i)
{
	return lnet_o2ib_registration_name((enum ulnet_o2ib_registration)i);
}

static int set_model(const struct input *in, const char *text,
		     struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	if (lnet_o2ib_model_parse(text, &conf->model))
		return no_name(in, text, model_name, c);
	return 0;
}

static int set_registration(const struct input *in, const char *text,
			    struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	/* Kernel people write some of them in capitals. */
	for (unsigned int i = 0; registration_name(i); i++)
		if (strcasecmp(text, registration_name(i)) == 0)
			return lnet_o2ib_registration_parse(
				registration_name(i), &conf->registration);
	return no_name(in, text, registration_name, c);
}

static int set_global_mr(const struct input *in, const char *text,
			 struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	if (strcmp(text, "kernel") == 0)
		conf->global_mr = LNET_O2IB_MR_KERNEL;
	else if (is_one_of(text, "true", "yes"))
		conf->global_mr = LNET_O2IB_MR_YES;
	else if (is_one_of(text, "false", "no"))
		conf->global_mr = LNET_O2IB_MR_NO;
	else
		return not_a(in, text, "yes, no or kernel", c);
	return 0;
}

static int set_kernel(const struct input *in, const char *text,
		      struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	size_t size = strlen(text) + 1;

	if (strcmp(text, "none") == 0) {
		*conf->kernel = 0;
		return 0;
	}
	if (size > sizeof(conf->kernel) || lnet_o2ib_kernel_global_mr(text) < 0)
		return not_a(in, text,
			     "a release such as 3.10.0-693.el7, the build of "
			     "RHEL 7 alone, or none",
			     c);
	memcpy(conf->kernel, text, size);
	return 0;
}

int input_set(const struct input *in, const char *text,
	      struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	void *field = (char *)conf + in->offset;

	switch (in->kind) {
	case KIND_MODEL:
		return set_model(in, text, conf, c);
	case KIND_REGISTRATION:
		return set_registration(in, text, conf, c);
	case KIND_GLOBAL_MR:
		return set_global_mr(in, text, conf, c);
	case KIND_KERNEL:
		return set_kernel(in, text, conf, c);
	case KIND_MAP:
		return set_map(in, text, conf, c);
	case KIND_PAGE:
		return set_page(in, text, field, c);
	case KIND_LIMIT:
		if (strcmp(text, "unknown") != 0)
			return set_number(in, text, field, ", or unknown", c);
		memset(field, 0, sizeof(uint32_t));
		return 0;
	default:
		return set_number(in, text, field, "", c);
	}
}

/* ---- and back ---- */

static uint32_t number_of(const struct input *in,
			  const struct ulnet_o2ib_conf *conf)
{
	uint32_t number;

	memcpy(&number, (const char *)conf + in->offset, sizeof(number));
	return number;
}

bool input_is_number(const struct input *in, const struct ulnet_o2ib_conf *conf)
{
	switch (in->kind) {
	case KIND_NUMBER:
	case KIND_PAGE:
		return true;
	case KIND_LIMIT:
		return number_of(in, conf) != 0;
	case KIND_MAP:
		return conf->map_on_demand >= 0;
	default:
		return false;
	}
}

char *input_text(const struct input *in, const struct ulnet_o2ib_conf *conf,
		 char buf[INPUT_TEXT_SIZE])
{
	static const char *const mrs[] = { "kernel", "no", "yes" };
	const char *text = "unknown";

	if (input_is_number(in, conf)) {
		snprintf(buf, INPUT_TEXT_SIZE, "%u", number_of(in, conf));
		return buf;
	}
	switch (in->kind) {
	case KIND_MODEL:
		text = lnet_o2ib_model_name(conf->model);
		break;
	case KIND_REGISTRATION:
		text = lnet_o2ib_registration_name(conf->registration);
		break;
	case KIND_GLOBAL_MR:
		text = mrs[conf->global_mr];
		break;
	case KIND_KERNEL:
		text = *conf->kernel ? conf->kernel : "none";
		break;
	case KIND_MAP:
		text = "default";
		break;
	default:
		break;
	}
	snprintf(buf, INPUT_TEXT_SIZE, "%s", text);
	return buf;
}
