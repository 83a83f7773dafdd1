/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of the program's own: lnet_control_add(3).
 */
#ifndef CONFIG_PROGRAM_H
#define CONFIG_PROGRAM_H

#include "config/request.h"

/* Carries out @r if the program has a command @name. */
bool program_run(struct request *r, const char *name) must_check;
/* Ends all commands, once no request is being carried out any more. */
void programs_free(struct lnet_control *control);

#endif
