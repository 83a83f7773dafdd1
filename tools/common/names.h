/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose certificates are in a folder, as ulnet-keys(8) fills it. */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H

#include <stdio.h>

/* Helps who has named a certificate that is not in @folder, or has named none
 * (@name is NULL): prints a line with the nearest name, or else with all, or
 * nothing if there are too many, or none. */
void names_say(const char *folder, const char *name, FILE *to);

#endif
