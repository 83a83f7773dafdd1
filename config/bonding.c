/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/bonding.h"

#include <errno.h>
#include <string.h>

#include "ulnet/lnet.h"

bool bonding_is_setting(const char *name)
{
	return !strcmp(name, "use_tcp_bonding");
}

int bonding_set(struct answer *a, int64_t value)
{
	if (value != 0 && value != 1)
		return -EINVAL;
	if (value)
		answer_note(a, "use_tcp_bonding: each interface has an NI of "
			       "its own here, and all of them are used");
	return 0;
}

void bonding_note_nis(struct answer *a, uint32_t net, unsigned int n)
{
	char text[LNET_NIDSTR_SIZE];

	lnet_net_format(net, text, sizeof(text));
	lnet_log(LNET_LOG_INFO, "config", "%s: %u interfaces of one NI become one NI each",
		 text, n);
	answer_note(a, "%s: %u interfaces of one NI become one NI each", text,
		    n);
}
