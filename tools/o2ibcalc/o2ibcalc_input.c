/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "o2ibcalc.h"
#include "tools/common/option.h"

/* A word that stands for a number. */
struct word {
	const char *name;
	int32_t value;
	bool shown; /* it is printed instead of the number */
};

static const struct word unknown[] = { { "unknown", 0, true }, { 0 } };
static const struct word maps[] = {
	{ "default", -1, true }, { "true", 1, false }, { "yes", 1, false },
	{ "false", 0, false },	 { "no", 0, false },   { 0 },
};
static const struct word mrs[] = {
	{ "kernel", LNET_O2IB_MR_KERNEL, true },
	{ "yes", LNET_O2IB_MR_YES, true },
	{ "no", LNET_O2IB_MR_NO, true },
	{ "true", LNET_O2IB_MR_YES, false },
	{ "false", LNET_O2IB_MR_NO, false },
	{ 0 },
};

static const char *model_name(unsigned int i)
{
	return lnet_o2ib_model_name((enum ulnet_o2ib_model)i);
}

static const char *registration_name(unsigned int i)
{
	return lnet_o2ib_registration_name((enum ulnet_o2ib_registration)i);
}

/* clang-format off */
#define INPUT(field, ...)                                               \
	{ .name = #field, .offset = offsetof(struct ulnet_o2ib_conf, field), \
	  __VA_ARGS__ }
/* clang-format on */
/* An input that is a number. Further fields of struct input may follow the
 * limits. */
#define NUMBER(field, min_, max_, ...) \
	INPUT(field, .min = (min_), .max = (max_), __VA_ARGS__)

const struct input inputs[] = {
	INPUT(model, .name_of = model_name),
	INPUT(kernel, .is_kernel = true),
	INPUT(global_mr, .words = mrs, .expected = "yes, no or kernel"),
	INPUT(registration, .name_of = registration_name),
	NUMBER(peer_credits, 0, 65535),
	NUMBER(credits, 1, 65535),
	NUMBER(peer_credits_hiw, 0, 65535, .alias = "peercredits_hiw"),
	NUMBER(concurrent_sends, 0, 65535),
	NUMBER(map_on_demand, 0, 65535, .words = maps,
	       .or_else = ", true, false or default"),
	NUMBER(ntx, 1, 1000000),
	NUMBER(fmr_pool_size, 0, 1000000),
	NUMBER(fmr_flush_trigger, 0, 1000000),
	NUMBER(ncpts, 1, 4096),
	NUMBER(conns_per_peer, 0, 127),
	NUMBER(wrq_sge, 1, 256),
	NUMBER(version, 1, 2),
	NUMBER(max_qp_wr, 1, 100000000, .words = unknown,
	       .or_else = ", or unknown"),
	NUMBER(max_cqe, 1, 100000000, .words = unknown,
	       .or_else = ", or unknown"),
	NUMBER(page_size, 4096, 1048576,
	       .expected = "a power of 2 from 4096 to 1048576"),
	NUMBER(max_writes, 1, 257),
	NUMBER(pieces, 1, 1048576),
	{ 0 },
};

int complain(struct complaint *c, const char *fmt, ...)
{
	va_list ap;

	c->near = NULL;
	va_start(ap, fmt);
	vsnprintf(c->what, sizeof(c->what), fmt, ap);
	va_end(ap);
	return -1;
}

bool side_parse(const char *text, enum ulnet_o2ib_side *side_p)
{
	if (strcasecmp(text, "a") != 0 && strcasecmp(text, "b") != 0)
		return false;
	*side_p = strcasecmp(text, "a") == 0 ? LNET_O2IB_A : LNET_O2IB_B;
	return true;
}

const struct input *input_find(const char *name)
{
	for (const struct input *in = inputs; in->name; in++)
		if (strcmp(in->name, name) == 0 ||
		    (in->alias && strcmp(in->alias, name) == 0))
			return in;
	return NULL;
}

const char *input_near(const char *name)
{
	struct nearest near;

	nearest_init(&near, name);
	for (const struct input *in = inputs; in->name; in++)
		nearest_try(&near, in->name);
	return near.name;
}

/* ---- values from text ---- */

static int not_expected(const struct input *in, const char *text,
			const char *expected, struct complaint *c)
{
	return complain(c, "%s: %.80s: %s is expected", in->name, text,
			expected);
}

static int set_number(const struct input *in, const char *text, void *field,
		      struct complaint *c)
{
	const struct word *w = in->words;
	uint64_t value = 0;
	char range[96];
	uint32_t number;

	while (w && w->name && strcasecmp(w->name, text) != 0)
		w++;
	snprintf(range, sizeof(range), "a number from %u to %u%s", in->min,
		 in->max, in->or_else ? in->or_else : "");
	if ((!w || !w->name) &&
	    (!number_parse(text, in->min, in->max, &value) ||
	     (in->expected && (!in->max || (value & (value - 1))))))
		return not_expected(in, text,
				    in->expected ? in->expected : range, c);
	number = w && w->name ? (uint32_t)w->value : (uint32_t)value;
	memcpy(field, &number, sizeof(number));
	return 0;
}

/* Sets an enumeration by the name of its value, in upper or lower case. If
 * there is no such name, @c lists them all. */
static int set_name(const struct input *in, const char *text,
		    struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	struct nearest near;
	char list[128] = "";
	size_t length = 0;
	uint32_t i;

	if (in->name_of == model_name &&
	    lnet_o2ib_model_parse(text, &conf->model) == 0)
		return 0;
	nearest_init(&near, text);
	for (i = 0; in->name_of(i); i++) {
		const char *name = in->name_of(i);

		if (strcasecmp(text, name) == 0) {
			memcpy((char *)conf + in->offset, &i, sizeof(i));
			return 0;
		}
		if (isalpha((unsigned char)*name))
			nearest_try(&near, name);
		length += (size_t)snprintf(list + length, sizeof(list) - length,
					   "%s%s", i ? ", " : "", name);
	}
	complain(c, "%s: %.80s: there are: %s", in->name, text, list);
	c->near = near.name;
	return -1;
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
		return not_expected(
			in, text,
			"a release such as 3.10.0-693.el7, the build of "
			"RHEL 7 alone, or none",
			c);
	memcpy(conf->kernel, text, size);
	return 0;
}

int input_set(const struct input *in, const char *text,
	      struct ulnet_o2ib_conf *conf, struct complaint *c)
{
	if (in->name_of)
		return set_name(in, text, conf, c);
	if (in->is_kernel)
		return set_kernel(in, text, conf, c);
	return set_number(in, text, (char *)conf + in->offset, c);
}

/* ---- values to text ---- */

static uint32_t number_of(const struct input *in,
			  const struct ulnet_o2ib_conf *conf)
{
	uint32_t number;

	memcpy(&number, (const char *)conf + in->offset, sizeof(number));
	return number;
}

/* Returns the word that is printed for the value; NULL: the number is printed.
 */
static const char *word_of(const struct input *in,
			   const struct ulnet_o2ib_conf *conf)
{
	uint32_t number = number_of(in, conf);

	if (in->name_of)
		return in->name_of(number);
	if (in->is_kernel)
		return *conf->kernel ? conf->kernel : "none";
	for (const struct word *w = in->words; w && w->name; w++)
		if (w->shown && (uint32_t)w->value == number)
			return w->name;
	return NULL;
}

bool input_is_number(const struct input *in, const struct ulnet_o2ib_conf *conf)
{
	return !word_of(in, conf);
}

char *input_text(const struct input *in, const struct ulnet_o2ib_conf *conf,
		 char buf[INPUT_TEXT_SIZE])
{
	const char *word = word_of(in, conf);

	if (word)
		snprintf(buf, INPUT_TEXT_SIZE, "%s", word);
	else
		snprintf(buf, INPUT_TEXT_SIZE, "%u", number_of(in, conf));
	return buf;
}
