/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * o2ibcalc(1): what the tunables of two nodes on an o2ib net come to. It knows
 * what is read and what is printed; lnet_o2ib_calculate(3) calculates.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "o2ibcalc_options.h"
#include "tools/common/option.h"

static void calculate(struct report *r)
{
	struct complaint c;

	(void)lnet_o2ib_calculate(&r->pair, &r->result, &r->notes);
	for (unsigned int i = 0; i < r->nwhat_ifs; i++) {
		struct what_if *w = &r->what_ifs[i];

		for (unsigned int k = 0; k < w->n; k++) {
			struct ulnet_o2ib_pair pair = r->pair;
			struct variant *v = &w->values[k];

			/* That the value is right is known already. */
			for (int side = 0; side < 2; side++)
				if (w->side == LNET_O2IB_BOTH ||
				    (int)w->side == side)
					(void)input_set(w->input, v->text,
							&pair.node[side], &c);
			(void)lnet_o2ib_calculate(&pair, &v->result, &v->notes);
		}
	}
}

static int print(const struct o2ibcalc_options *o)
{
	int rc = 0;

	if (o->format == FORMAT_TABLE)
		report_table(&o->report, stdout);
	else
		rc = report_emit(&o->report, o->format == FORMAT_JSON, stdout);
	if (rc) {
		option_wrong("o2ibcalc", "%s", strerror(-rc));
		return 1;
	}
	return option_printed("o2ibcalc") == OPTION_DONE ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct o2ibcalc_options *o = malloc(sizeof(*o));
	int status;

	if (!o) {
		perror("o2ibcalc");
		return 1;
	}
	status = o2ibcalc_options_parse(o, argc, argv);
	if (!status) {
		calculate(&o->report);
		status = print(o);
		if (!status)
			status = o->report.result.conn.verdict !=
					 LNET_O2IB_CONNECTED ||
				 report_differs(&o->report);
	}
	o2ibcalc_options_free(o);
	free(o);
	return status < 0 ? 0 : status;
}
