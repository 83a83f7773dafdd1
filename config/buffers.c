/* SPDX-License-Identifier: BSD-3-Clause */
#include "config/buffers.h"

#include "base/util.h"

bool buffers_sum(struct lnet *node, struct buffers_sum sums[LNET_BUFFER_KINDS])
{
	static const char *const kinds[LNET_BUFFER_KINDS] = { "tiny", "small",
							      "large" };
	struct ulnet_buffers_info info[LNET_BUFFER_KINDS];
	struct ulnet_routing routing;

	lnet_routing(node, &routing);
	if (!routing.enabled)
		return false;
	for (int k = 0; k < LNET_BUFFER_KINDS; k++)
		sums[k] = (struct buffers_sum){ .kind = kinds[k] };
	for (unsigned int i = 0; !lnet_routing_buffers(node, i, info); i++)
		for (int k = 0; k < LNET_BUFFER_KINDS; k++) {
			sums[k].count += info[k].count;
			sums[k].free += MAX(info[k].free, 0);
			sums[k].free_min += info[k].free_min;
			sums[k].waiting += MAX(-info[k].free, 0);
		}
	return true;
}
