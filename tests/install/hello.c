/* SPDX-License-Identifier: BSD-3-Clause */
/* A stranger's program: built with what pkg-config says, outside the tree. */
#include <stdio.h>
#include <ulnet/nid.h>

int main(void)
{
	char text[LNET_NIDSTR_SIZE];
	struct ulnet_nid nid;

	if (lnet_nid_parse("10.0.0.1@tcp3", &nid))
		return 1;
	puts(lnet_nid_format(&nid, text, sizeof(text)));
	return 0;
}
