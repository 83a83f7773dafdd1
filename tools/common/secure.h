/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOLS_SECURE_H
#define TOOLS_SECURE_H

/* Makes sure that descriptors 0 to 2 are open, before anything else is opened:
 * a program that was started without them would otherwise write its messages to
 * a socket that got such a number. 0 or -errno. */
int secure_stdio(void);

#endif
