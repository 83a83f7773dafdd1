/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the names whose certificates are in a folder, as ulnet-keys(8) fills
 * it. */
#ifndef TOOLS_NAMES_H
#define TOOLS_NAMES_H

#include <stdio.h>

/* Helps a user who has named a certificate that is not in @folder, or has named
 * none (@name is NULL): prints a line with the nearest name or, if none is
 * near, with all names. Prints nothing if there are too many, or none. */
void names_say(const char *folder, const char *name, FILE *to);

#endif
