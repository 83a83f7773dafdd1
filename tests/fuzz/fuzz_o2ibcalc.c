/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of o2ibcalc. The first byte says what they describe: two nodes, one
 * node, or what was negotiated. All nodes that can be read can be calculated
 * with, and each of their inputs prints as a text that reads as the same.
 */
#include "base/util.h"
#include "tools/o2ibcalc/o2ibcalc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct ulnet_o2ib_conf *conf)
{
	struct ulnet_o2ib_conf same;
	struct complaint c;
	char text[INPUT_TEXT_SIZE];

	lnet_o2ib_conf_init(&same);
	for (const struct input *in = inputs; in->name; in++)
		BUG_ON(input_set(in, input_text(in, conf, text), &same, &c));
	BUG_ON(memcmp(&same, conf, sizeof(same)) != 0);
}

static void fuzz_nodes(const char *text, enum ulnet_o2ib_side side)
{
	static struct ulnet_o2ib_result result;
	static struct ulnet_o2ib_notes notes;
	struct ulnet_o2ib_pair pair = { .npeers = 1 };
	struct complaint c = { .what = "" };
	struct shown_ni shown;

	lnet_o2ib_conf_init(&pair.node[0]);
	lnet_o2ib_conf_init(&pair.node[1]);
	if (nodes_read(text, &pair, side, &shown, &c)) {
		BUG_ON(!*c.what);
		return;
	}
	notes.n = notes.lost = 0;
	lnet_o2ib_calculate(&pair, &result, &notes);
	BUG_ON(notes.lost || !notes.n);
	again(&pair.node[0]);
	again(&pair.node[1]);
}

static void fuzz_negotiated(const char *text)
{
	struct negotiated_list list;
	struct complaint c = { .what = "" };

	if (negotiated_read(text, &list, &c)) {
		BUG_ON(!*c.what || list.n);
		return;
	}
	BUG_ON(!list.n);
	negotiated_free(&list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text;

	if (!size)
		return 0;
	text = malloc(size);
	if (!text)
		return 0;
	memcpy(text, data + 1, size - 1);
	text[size - 1] = 0;
	switch (data[0] % 3) {
	case 0:
		fuzz_nodes(text, LNET_O2IB_BOTH);
		break;
	case 1:
		fuzz_nodes(text, LNET_O2IB_A);
		break;
	default:
		fuzz_negotiated(text);
	}
	free(text);
	return 0;
}
