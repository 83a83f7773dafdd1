/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of o2ibcalc. The first byte says what they are: two nodes, one node, or
 * what was negotiated. Whatever nodes come of it, they can be calculated with,
 * and each of their inputs is read again from its text.
 */
#include "base/util.h"
#include "tools/o2ibcalc/o2ibcalc_yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct ulnet_o2ib_conf *conf)
{
	struct ulnet_o2ib_conf same;
	struct complaint c;
	char text[INPUT_TEXT_SIZE];

	lnet_o2ib_conf_init(&same);
	for (unsigned int i = 0; i < inputs(); i++)
		BUG_ON(input_set(input_at(i),
				 input_text(input_at(i), conf, text), &same,
				 &c));
	BUG_ON(memcmp(&same, conf, sizeof(same)) != 0);
}

static void fuzz_pair(const char *text, size_t size)
{
	static struct ulnet_o2ib_result result;
	static struct ulnet_o2ib_notes notes;
	struct ulnet_o2ib_pair pair = { .npeers = 1 };
	struct complaint c = { .what = "" };
	struct node_origin origin;

	lnet_o2ib_conf_init(&pair.node[0]);
	lnet_o2ib_conf_init(&pair.node[1]);
	if (pair_read(text, size, &pair, &origin, &c)) {
		BUG_ON(!*c.what);
		return;
	}
	notes.n = notes.lost = 0;
	lnet_o2ib_calculate(&pair, &result, &notes);
	BUG_ON(notes.lost || !notes.n);
	again(&pair.node[0]);
	again(&pair.node[1]);
}

static void fuzz_node(const char *text, size_t size)
{
	struct ulnet_o2ib_conf conf;
	struct complaint c = { .what = "" };
	struct node_origin origin;

	lnet_o2ib_conf_init(&conf);
	if (node_read(text, size, &conf, &origin, &c))
		BUG_ON(!*c.what);
	else
		again(&conf);
}

static void fuzz_negotiated(const char *text, size_t size)
{
	struct negotiated_list list;
	struct complaint c = { .what = "" };

	if (negotiated_read(text, size, &list, &c)) {
		BUG_ON(!*c.what || list.n);
		return;
	}
	BUG_ON(!list.n);
	negotiated_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 1;

	if (!size)
		return 0;
	switch (data[0] % 3) {
	case 0:
		fuzz_pair(text, size - 1);
		break;
	case 1:
		fuzz_node(text, size - 1);
		break;
	default:
		fuzz_negotiated(text, size - 1);
	}
	return 0;
}
